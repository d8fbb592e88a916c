//! Operations of several lanes, against the formulas of the manual.

use crate::args;
use crate::rig::{Noise, Rig, Shape};

/// Runs `body` in `threads` threads; `%a` is the input of the thread, `%d` and `%pd` the results.
fn run(body: &str, inputs: &[u64]) -> Vec<(u32, bool)> {
    run_for("sm_100", body, inputs)
}

fn run_for(target: &str, body: &str, inputs: &[u64]) -> Vec<(u32, bool)> {
    let text = format!(
        ".version 8.6
.target {target}
.address_size 64
.visible .entry k(.param .u64 from, .param .u64 to)
{{
    .reg .pred %pa, %pb, %pd;
    .reg .b32 %a, %b, %c, %d, %t;
    .reg .b64 %w, %x, %y;
    ld.param.u64 %x, [from];
    ld.param.u64 %y, [to];
    mov.u32 %t, %tid.x;
    mad.wide.u32 %x, %t, 8, %x;
    mad.wide.u32 %y, %t, 8, %y;
    ld.global.u64 %w, [%x];
    cvt.u32.u64 %a, %w;
    setp.ne.u32 %pa, %a, 0;
    mov.pred %pd, 0;
    mov.b32 %d, 0;
    {body}
    st.global.u32 [%y], %d;
    selp.u32 %t, 1, 0, %pd;
    st.global.u32 [%y+4], %t;
    ret;
}}"
    );
    let count = inputs.len();
    let mut results = Vec::new();
    for seed in [0, 3] {
        let rig = Rig::new(&text).with_seed(seed);
        let from = rig.memory.buffer(inputs);
        let to = rig.memory.zeros::<[u32; 2]>(count);
        rig.run("k", Shape::line(1, count as u32), args!(from, to));
        let found: Vec<[u32; 2]> = rig.memory.read(to, count);
        results.push(found.into_iter().map(|[d, p]| (d, p == 1)).collect());
    }
    assert_eq!(
        results[0], results[1],
        "the order of threads does not matter"
    );
    results.remove(0)
}

fn noise(count: usize, limit: u64) -> Vec<u64> {
    let mut noise = Noise::new(71 + limit);
    (0..count).map(|_| noise.below(limit)).collect()
}

#[test]
fn shuffles() {
    let values = noise(64, 1 << 32);
    let clamps = [
        0,
        31,
        0x1f,
        0x0f,
        0x1800 | 7,
        0x181f,
        0x1c03,
        0x101f,
        0x1000,
        0x1e1f,
        0x1010,
    ];
    for mode in ["up", "down", "bfly", "idx"] {
        for distance in [0, 1, 2, 5, 7, 16, 31, 33] {
            for clamp in clamps {
                let body = format!("shfl.sync.{mode}.b32 %d|%pd, %a, {distance}, {clamp}, -1;");
                for (thread, (found, in_range)) in run(&body, &values).into_iter().enumerate() {
                    let lane = thread as i32 % 32;
                    let (bval, cval) = (distance & 31, clamp & 31);
                    let segment = clamp >> 8 & 31;
                    let max = (lane & segment) | (cval & !segment);
                    let min = lane & segment;
                    let (mut j, p) = match mode {
                        "up" => (lane - bval, lane - bval >= max),
                        "down" => (lane + bval, lane + bval <= max),
                        "bfly" => (lane ^ bval, lane ^ bval <= max),
                        _ => (min | (bval & !segment), (min | (bval & !segment)) <= max),
                    };
                    if !p {
                        j = lane;
                    }
                    let source = thread / 32 * 32 + j as usize;
                    assert_eq!(in_range, p, "{body} {lane}");
                    if (0..32).contains(&j) {
                        assert_eq!(u64::from(found), values[source], "{body} {lane}");
                    }
                }
            }
        }
    }
    // The old form, and operands in registers.
    let body = "mov.b32 %b, 3; mov.b32 %c, 31; shfl.down.b32 %d, %a, %b, %c;";
    let found = run_for("sm_60", body, &values[..32]);
    for (thread, (found, _)) in found.into_iter().enumerate() {
        let source = if thread + 3 < 32 { thread + 3 } else { thread };
        assert_eq!(u64::from(found), values[source]);
    }
}

#[test]
fn values_of_absent_lanes_are_poison() {
    // Twenty threads; lanes 20 to 31 do not exist.
    let values = noise(20, 1000);
    let found = run("shfl.sync.down.b32 %d|%pd, %a, 4, 31, -1;", &values);
    for (lane, (value, in_range)) in found.into_iter().enumerate() {
        assert_eq!(in_range, lane + 4 < 32);
        if lane + 4 < 20 {
            assert_eq!(u64::from(value), values[lane + 4]);
        } else {
            assert!(f32::from_bits(value).is_nan(), "{value:#x}");
        }
    }
}

#[test]
fn votes() {
    for values in [noise(32, 2), vec![1; 32], vec![0; 32], noise(17, 2)] {
        let ballot: u32 = (0..)
            .zip(&values)
            .map(|(lane, v)| (*v as u32) << lane)
            .sum();
        for sync in [".sync", ""] {
            let (mask, target) = match sync {
                "" => ("", "sm_60"),
                _ => (", 0xffffffff", "sm_90"),
            };
            let go = |rest: &str| run_for(target, &format!("vote{sync}.{rest}{mask};"), &values);
            let all = go("all.pred %pd, %pa");
            let any = go("any.pred %pd, %pa");
            let none = go("any.pred %pd, !%pa");
            let uni = go("uni.pred %pd, %pa");
            let bits = go("ballot.b32 %d, %pa");
            for lane in 0..values.len() {
                assert_eq!(all[lane].1, values.iter().all(|v| *v == 1));
                assert_eq!(any[lane].1, values.contains(&1));
                assert_eq!(none[lane].1, values.contains(&0));
                assert_eq!(uni[lane].1, values.iter().all(|v| *v == values[0]));
                assert_eq!(bits[lane].0, ballot);
            }
        }
    }
}

#[test]
fn matches() {
    for values in [noise(32, 4), vec![9; 32]] {
        let any = run("match.any.sync.b32 %d, %a, -1;", &values);
        let wide = run(
            "shl.b64 %w, %w, 40; match.any.sync.b64 %d, %w, -1;",
            &values,
        );
        let all = run("match.all.sync.b32 %d|%pd, %a, 0xffffffff;", &values);
        let same = values.iter().all(|value| *value == values[0]);
        for lane in 0..32 {
            let own = (0..32)
                .filter(|other| values[*other] == values[lane])
                .map(|other| 1u32 << other)
                .sum::<u32>();
            assert_eq!(any[lane].0, own);
            assert_eq!(wide[lane].0, own);
            assert_eq!(all[lane], (if same { u32::MAX } else { 0 }, same));
        }
    }
}

#[test]
fn reductions() {
    let values = noise(32, 1 << 32);
    let words: Vec<u32> = values.iter().map(|value| *value as u32).collect();
    let signed = words.iter().map(|word| *word as i32);
    let expected = [
        (
            "add.u32",
            words.iter().fold(0u32, |a, b| a.wrapping_add(*b)),
        ),
        (
            "add.s32",
            words.iter().fold(0u32, |a, b| a.wrapping_add(*b)),
        ),
        ("min.u32", *words.iter().min().unwrap()),
        ("max.u32", *words.iter().max().unwrap()),
        ("min.s32", signed.clone().min().unwrap() as u32),
        ("max.s32", signed.max().unwrap() as u32),
        ("and.b32", words.iter().fold(u32::MAX, |a, b| a & b)),
        ("or.b32", words.iter().fold(0, |a, b| a | b)),
        ("xor.b32", words.iter().fold(0, |a, b| a ^ b)),
    ];
    for (name, wanted) in expected {
        let found = run(&format!("redux.sync.{name} %d, %a, 0xffffffff;"), &values);
        assert!(found.iter().all(|(value, _)| *value == wanted), "{name}");
    }
    // A few lanes only, the others elsewhere.
    let body = "setp.lt.u32 %pb, %t, 5; @!%pb bra REST; redux.sync.add.u32 %d, %a, 0x1f; bra OUT;
        REST: redux.sync.add.u32 %d, 1, 0xffffffe0; OUT:";
    let sum: u64 = values[..5].iter().sum();
    for (lane, (value, _)) in run(body, &values).into_iter().enumerate() {
        assert_eq!(value, if lane < 5 { sum as u32 } else { 27 });
    }
}

#[test]
fn one_lane_is_elected() {
    let found = run("elect.sync %d|%pd, 0xffffffff;", &noise(32, 2));
    let leaders: Vec<usize> = (0..32).filter(|lane| found[*lane].1).collect();
    assert_eq!(leaders.len(), 1);
    assert!(
        found
            .iter()
            .all(|(leader, _)| *leader as usize == leaders[0])
    );
}

#[test]
fn lanes_at_one_place_are_active_together() {
    let values = noise(32, 2);
    let ones: u32 = (0..)
        .zip(&values)
        .map(|(lane, v)| (*v as u32) << lane)
        .sum();
    let body = "@%pa bra ONES; activemask.b32 %d; bra OUT; ONES: activemask.b32 %d; OUT:";
    // Two instructions on one line would be taken for one place.
    let body = body.replace("; ", ";\n");
    for (lane, (value, _)) in run(&body, &values).into_iter().enumerate() {
        assert_eq!(value, if values[lane] == 1 { ones } else { !ones });
    }
}

#[test]
fn barriers_that_count() {
    let values = noise(50, 2);
    let ones = values.iter().sum::<u64>() as u32;
    let found = run("barrier.cta.red.popc.aligned.u32 %d, 0, %pa;", &values);
    assert!(found.iter().all(|(value, _)| *value == ones));
    let found = run("bar.red.and.pred %pd, 3, %pa;", &values);
    assert!(found.iter().all(|(_, all)| !all));
    let found = run(
        "bar.red.or.pred %pd, 1, 64, !%pa; barrier.sync 2; membar.gl; fence.sc.cta;",
        &values,
    );
    assert!(found.iter().all(|(_, any)| *any));
}
