//! Cases of unequal devices that a dealer is held against.

use warploom_sched::Work;

/// The cases: what is believed, and what is true.
pub(crate) fn cases() -> Vec<(&'static str, Work, Work)> {
    let same = |name, work: Work| (name, work.clone(), work);
    let rows = |row: &[f64], count| vec![row.to_vec(); count];
    let mixed = || {
        vec![
            vec![2.0, 4.0, 3.0],
            vec![16.0, 4.0, 6.0],
            vec![16.0, 4.0, 6.0],
        ]
    };
    let heavy = (0..64).map(|at| if at % 16 == 15 { 12.0 } else { 1.0 });
    // Weights between 0.7 and 1.3, the same in every run.
    let mut state = 1_u64;
    let mut uneven = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        0.7 + 0.6 * ((state >> 33) as f64 / f64::from(1_u32 << 31))
    };
    let wrong = |costs| Work::new(costs, 96).moving(vec![1.0; 3], vec![1.0; 3]);
    vec![
        same(
            "two_equal",
            Work::new(rows(&[10.0], 2), 64).moving(vec![2.0; 2], vec![1.0; 2]),
        ),
        same(
            "speeds_4_2_1",
            Work::new(vec![vec![5.0], vec![10.0], vec![20.0]], 96)
                .moving(vec![2.0; 3], vec![1.0; 3])
                .weighing((0..96).map(|_| uneven()).collect()),
        ),
        same("mixed", Work::new(mixed(), 60)),
        same(
            "mixed_moving",
            Work::new(mixed(), 60).moving(vec![1.0, 0.5, 0.5], vec![1.0, 0.0, 0.0]),
        ),
        same(
            "locality",
            Work::new(rows(&[5.0; 8], 4), 32)
                .moving(vec![20.0; 4], vec![5.0; 4])
                .holding(4),
        ),
        same(
            "heavy_tail",
            Work::new(rows(&[8.0], 4), 64)
                .moving(vec![1.0; 4], vec![1.0; 4])
                .weighing(heavy.collect()),
        ),
        (
            "wrong_model",
            wrong(rows(&[8.0], 3)),
            wrong(vec![vec![8.0], vec![8.0], vec![24.0]]),
        ),
    ]
}
