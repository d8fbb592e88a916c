//! What numbers have to be, group by group. A target that nobody measured is one that is not met.

/// What a number may be at most: promises to users, not readings of one machine.
pub(crate) const TARGETS: &[(&str, f64)] = &[
    ("survey_64_devices_us", 1_000.0),
    ("checked_launch_ns", 200.0),
    ("lease_local_ns", 1_000.0),
    ("lease_local_any_ns", 1_000.0),
    ("lease_shared_ns", 30_000.0),
    ("lease_shared_any_ns", 30_000.0),
    ("lease_shared_beside_ns", 30_000.0),
    ("plan_10_steps_us", 1_000.0),
    ("plan_1000_steps_ms", 100.0),
    ("plan_batch_10000_ms", 1_000.0),
    ("plan_hostile_worst_ms", 1_000.0),
    ("deal_ours_worst_ratio", 1.10),
    ("layout_mean_ratio", 1.05),
    ("layout_worst_ratio", 1.05),
    ("sched_batch_us", 5.0),
    ("sched_task_ns", 100.0),
    ("sched_task_short_ns", 100.0),
    ("sched_slot_ns", 200.0),
    ("sched_batch_allocations_count", 0.0),
    ("sched_slot_allocations_count", 0.0),
    ("sched_wake_ratio", 1.2),
    ("sched_wake_p50_us", 30.0),
    ("sched_wake_p99_us", 200.0),
    ("sched_wake_opencl_ratio", 1.2),
    ("sched_footprint_fake_ratio", 1.3),
    ("sched_footprint_cpu_ratio", 1.3),
    ("sched_footprint_opencl_ratio", 1.3),
    ("sched_footprint_host_stages_ratio", 1.3),
    // Equal, but for a page here and there.
    ("sched_footprint_fake_growth_ratio", 1.02),
    ("sched_footprint_cpu_growth_ratio", 1.02),
    ("sched_footprint_opencl_growth_ratio", 1.02),
    ("sched_footprint_host_stages_growth_ratio", 1.02),
    // 0.97 of the ideal.
    ("sched_overlap_2_slots_ratio", 1.031),
    ("sched_overlap_3_slots_ratio", 1.031),
    ("sched_overlap_4_slots_ratio", 1.031),
    ("sched_overlap_busy_ratio", 1.031),
    ("sched_plan_us", 50_000.0),
    ("sched_deadlock_ms", 50.0),
    ("sched_choice_ns", 1_000.0),
    // Not slower, and not worse, than the peer in the same run.
    ("sched_choice_starpu_ratio", 1.0),
    ("sched_hetero_starpu_ratio", 1.0),
    // What the best known rule of each case takes above the bound.
    ("sched_deal_two_equal_ratio", 1.0095),
    ("sched_deal_speeds_4_2_1_ratio", 1.0225),
    ("sched_deal_mixed_ratio", 1.0572),
    ("sched_deal_mixed_moving_ratio", 1.0596),
    ("sched_deal_locality_ratio", 1.2346),
    ("sched_deal_heavy_tail_ratio", 1.2137),
    ("sched_deal_wrong_model_ratio", 1.1002),
    // 0.90 of the bound.
    ("sched_hetero_real_ratio", 1.1112),
    ("sched_drift_ratio", 1.1112),
    ("sched_drift_real_ratio", 1.1112),
    ("sched_enqueue_ratio", 1.1),
    ("sched_tiny_ratio", 1.5),
    // 0.95 of the ideal.
    ("sched_overlap_real_ratio", 1.0527),
    // Threads with whole frames each, and no scheduler.
    ("sched_overlap_pool_ratio", 1.05),
    // 0.95 of linear.
    ("fleet_2_devices_ratio", 1.0526),
    ("fleet_4_devices_ratio", 1.0526),
    ("fleet_8_devices_ratio", 1.0526),
    ("fleet_16_devices_ratio", 1.0526),
    ("fleet_unequal_guided_ratio", 1.10),
    ("fleet_record_us", 50.0),
    // 3 GB/s, from workers and to them.
    ("fleet_gigabyte_ms", 333.0),
    ("fleet_gigabyte_to_workers_ms", 333.0),
    ("span_collect_ns", 100.0),
    ("trace_100000_spans_ms", 1_000.0),
    ("report_100000_spans_ms", 1_000.0),
    ("notice_update_us", 1_000.0),
];

/// What a number has to be at least: it shows what the number beside it is good for.
pub(crate) const FLOORS: &[(&str, f64)] = &[
    // Parts fixed beforehand wait for the slower device: 2.5 at speeds of 1 and 4.
    ("fleet_unequal_static_ratio", 2.4),
];

/// Numbers of which nothing is demanded but to be measured: peers that ours are to be seen beside.
const SHOWN: &[&str] = &["sched_task_tbb_ratio"];

/// How the numbers of each group begin.
const BEGINNINGS: &[(&str, &[&str])] = &[
    ("contract", &["survey_", "checked_", "lease_"]),
    ("plan", &["plan_", "deal_", "layout_"]),
    ("sched", &["sched_"]),
    ("fleet", &["fleet_"]),
    ("watch", &["span_", "trace_", "report_", "notice_"]),
];

/// The group whose programs measure a number.
fn group_of(name: &str) -> Option<&'static str> {
    let is_of = |beginnings: &[&str]| beginnings.iter().any(|start| name.starts_with(start));
    let mut groups = BEGINNINGS.iter();
    let found = groups.find(|(_, beginnings)| is_of(beginnings))?;
    Some(found.0)
}

/// The numbers that have to be measured with these groups; with none, of all.
pub(crate) fn wanted(groups: &[String]) -> impl Iterator<Item = &'static str> {
    let all = TARGETS.iter().chain(FLOORS).map(|(name, _)| *name);
    let all = all.chain(SHOWN.iter().copied());
    let is_of = |name: &str| group_of(name).is_some_and(|of| groups.iter().any(|g| g == of));
    all.filter(move |name| groups.is_empty() || is_of(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_belongs_to_a_group() {
        for (name, _) in TARGETS.iter().chain(FLOORS) {
            assert!(group_of(name).is_some(), "{name}");
        }
        let fleet: Vec<&str> = wanted(&["fleet".into()]).collect();
        assert!(
            fleet.contains(&"fleet_record_us") && fleet.contains(&"fleet_unequal_static_ratio")
        );
        assert!(fleet.iter().all(|name| name.starts_with("fleet_")));
        assert_eq!(
            wanted(&[]).count(),
            TARGETS.len() + FLOORS.len() + SHOWN.len()
        );
    }
}
