//! Which share of each stage each device should do, if work could be cut at will.

/// Differences this small are none.
const TINY: f64 = 1e-9;

/// The least time per frame in which the devices can hold all stages, and for each stage the share
/// of each device.
///
/// A linear programme: the load of every device is at most T, the shares of every stage add up to
/// 1, and T is least. Put so that nothing is infeasible at the start: every stage begins at
/// its fastest device, and `u` is how much less than that start T becomes. Solved by the simplex
/// method with Bland's rule, which cannot go in circles.
pub(super) fn of(costs: &[Vec<f64>]) -> (f64, Vec<Vec<f64>>) {
    let (devices, stages) = (costs.len(), costs.first().map_or(0, Vec::len));
    let fastest: Vec<usize> = (0..stages)
        .map(|stage| {
            let of = |device: &usize| costs[*device][stage];
            (0..devices)
                .min_by(|a, b| of(a).total_cmp(&of(b)))
                .unwrap_or(0)
        })
        .collect();
    let base = |device: usize| -> f64 {
        let own = (0..stages).filter(|stage| fastest[*stage] == device);
        own.map(|stage| costs[device][stage]).sum()
    };
    let start = (0..devices).map(base).fold(0.0, f64::max);
    // Columns: what of a stage moves from its fastest device to another one, then `u`.
    let moves: Vec<(usize, usize)> = (0..stages)
        .flat_map(|stage| (0..devices).map(move |device| (stage, device)))
        .filter(|(stage, device)| fastest[*stage] != *device)
        .collect();
    let gain = moves.len();
    let (rows, columns) = (devices + stages, moves.len() + 1);
    let mut table = vec![vec![0.0; columns + rows + 1]; rows + 1];
    for device in 0..devices {
        for (column, (stage, to)) in moves.iter().enumerate() {
            if *to == device {
                table[device][column] = costs[device][*stage];
            } else if fastest[*stage] == device {
                table[device][column] = -costs[device][*stage];
            }
        }
        table[device][gain] = 1.0;
        table[device][columns + rows] = start - base(device);
    }
    for stage in 0..stages {
        for (column, (of, _)) in moves.iter().enumerate() {
            table[devices + stage][column] = f64::from(u8::from(*of == stage));
        }
        table[devices + stage][columns + rows] = 1.0;
    }
    for (row, line) in table.iter_mut().enumerate().take(rows) {
        line[columns + row] = 1.0;
    }
    table[rows][gain] = -1.0;
    let basis = maximise(&mut table, rows, columns + rows);
    let value = |column: usize| {
        let row = basis.iter().position(|known| *known == column);
        row.map_or(0.0, |row| table[row][columns + rows].max(0.0))
    };
    let mut shares = vec![vec![0.0; devices]; stages];
    for (column, (stage, device)) in moves.iter().enumerate() {
        shares[*stage][*device] = value(column);
    }
    for (stage, shares) in shares.iter_mut().enumerate() {
        let moved: f64 = shares.iter().sum();
        shares[fastest[stage]] = (1.0 - moved).max(0.0);
    }
    (start - value(gain), shares)
}

/// Goes from corner to corner until the last row has nothing to gain. Answers which column each row
/// stands for.
fn maximise(table: &mut [Vec<f64>], rows: usize, end: usize) -> Vec<usize> {
    let mut basis: Vec<usize> = (end - rows..end).collect();
    while let Some(column) = (0..end).find(|column| table[rows][*column] < -TINY) {
        let mut leaving: Option<(usize, f64)> = None;
        for row in 0..rows {
            let slope = table[row][column];
            if slope <= TINY {
                continue;
            }
            let ratio = table[row][end] / slope;
            let is_better = leaving.is_none_or(|(known, best)| {
                ratio < best - TINY || (ratio < best + TINY && basis[row] < basis[known])
            });
            if is_better {
                leaving = Some((row, ratio));
            }
        }
        let Some((row, _)) = leaving else {
            // Shares are bounded, so this does not happen but for costs that are no numbers.
            break;
        };
        let pivot = table[row][column];
        for cell in &mut table[row] {
            *cell /= pivot;
        }
        let line = table[row].clone();
        for (at, other) in table.iter_mut().enumerate() {
            let factor = other[column];
            if at != row && factor != 0.0 {
                for (cell, by) in other.iter_mut().zip(&line) {
                    *cell -= factor * by;
                }
            }
        }
        basis[row] = column;
    }
    basis
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_devices_share_equally_in_sum() {
        let (time, _) = of(&[vec![10.0, 6.0], vec![10.0, 6.0]]);
        assert!((time - 8.0).abs() < 1e-6, "{time}");
    }

    #[test]
    fn what_suits_a_device_goes_there() {
        let (time, shares) = of(&[
            vec![2.0, 4.0, 3.0],
            vec![16.0, 4.0, 6.0],
            vec![16.0, 4.0, 6.0],
        ]);
        assert!((time - 3.5).abs() < 1e-6, "{time}");
        assert!((shares[0][0] - 1.0).abs() < 1e-6, "{shares:?}");
        assert!(shares[1][0] < 1e-6, "{shares:?}");
        assert!((shares[2][0] - 0.5).abs() < 1e-6, "{shares:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// No assignment of thirds, tried one by one, does better; and shares give what is said.
        #[test]
        fn nothing_beats_it(costs in proptest::collection::vec(
            proptest::collection::vec(1_u32..40, 3..=3), 2..=3,
        )) {
            let costs: Vec<Vec<f64>> =
                costs.iter().map(|row| row.iter().map(|c| f64::from(*c)).collect()).collect();
            let devices = costs.len();
            let (time, shares) = of(&costs);
            for device in 0..devices {
                let load: f64 = (0..3).map(|stage| shares[stage][device] * costs[device][stage]).sum();
                prop_assert!(load <= time + 1e-6, "{load} of {time}");
            }
            for stage in &shares {
                prop_assert!((stage.iter().sum::<f64>() - 1.0).abs() < 1e-6);
            }
            // Each stage in thirds: which device gets which third.
            for code in 0..devices.pow(9) {
                let mut loads = vec![0.0; devices];
                let mut rest = code;
                for third in 0..9 {
                    loads[rest % devices] += costs[rest % devices][third / 3] / 3.0;
                    rest /= devices;
                }
                let most = loads.iter().copied().fold(0.0, f64::max);
                prop_assert!(time <= most + 1e-6, "{time} {most}");
            }
        }
    }
}
