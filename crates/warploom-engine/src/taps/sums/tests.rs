//! Sums of routines against their definition, one number at a time.

use super::*;

fn noise(seed: u32, count: usize) -> Vec<f32> {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from_bits(state >> 9 | 0x3f80_0000) - 1.4
    };
    (0..count).map(next).collect()
}

fn kinds(reach: usize) -> Vec<Taps<f32>> {
    let weights = |count: usize| noise(count as u32, count);
    vec![
        Taps::Symmetric(weights(reach + 1)),
        Taps::Antisymmetric(weights(reach.max(1))),
        Taps::General {
            weights: weights(reach + 2),
            before: reach / 2,
        },
    ]
}

/// As the definition has it.
fn sum(taps: &Taps<f32>, at: impl Fn(i64) -> f32) -> f32 {
    match taps {
        Taps::Symmetric(weights) => {
            let more = (1..).zip(&weights[1..]);
            more.fold(weights[0] * at(0), |sum, (k, w)| {
                w.mul_add(at(-k) + at(k), sum)
            })
        }
        Taps::Antisymmetric(weights) => {
            let more = (2..).zip(&weights[1..]);
            more.fold(weights[0] * (at(1) - at(-1)), |sum, (k, w)| {
                w.mul_add(at(k) - at(-k), sum)
            })
        }
        Taps::General { weights, before } => {
            let first = -(*before as i64);
            let more = (first + 1..).zip(&weights[1..]);
            more.fold(weights[0] * at(first), |sum, (k, w)| w.mul_add(at(k), sum))
        }
    }
}

fn widths() -> Vec<Width> {
    let all = [Width::Bits256, Width::Bits512];
    let there: Vec<Width> = all.into_iter().filter(|width| width.is_there()).collect();
    if there.is_empty() {
        println!("skipped: this machine has no vectors that routines are made for");
    }
    there
}

fn same(found: f32, wanted: f32, what: &str) {
    assert_eq!(
        found.to_bits(),
        wanted.to_bits(),
        "{what}: {found} {wanted}"
    );
}

#[test]
fn sums_are_those_of_the_definition() {
    for width in widths() {
        for reach in [0, 1, 4, 33, 64] {
            for taps in kinds(reach) {
                both_ways(&taps, width);
            }
        }
    }
}

fn both_ways(taps: &Taps<f32>, width: Width) {
    let mut memory = Memory::default();
    let made = |axis| Sums::with(taps, axis, width).expect("it is short enough");
    let (down, along) = (made(Axis::Y), made(Axis::X));
    let (before, after) = (taps.before(), taps.after());
    for (rows, columns) in [(1, 1), (3, 40), (8, 16), (13, 100), (21, 333)] {
        let step = stride::<f32>(columns);
        let height = rows + before + after;
        let data = noise(7, (height + 1) * step);
        let starts: Vec<usize> = (0..height).map(|y| y * step).collect();
        let to: Vec<usize> = (0..rows).map(|y| y * step).collect();
        let src = Rows {
            data: &data,
            starts: &starts,
        };
        let what = format!("{taps:?} {width:?} {rows}x{columns}");
        let vertical = |y: usize, x: usize| {
            let row = |by: i64| (y + before).checked_add_signed(by as isize).unwrap();
            sum(taps, |by| data[starts[row(by)] + x])
        };
        let mut out = vec![f32::NAN; rows * step];
        let mut dst = RowsMut {
            data: &mut out,
            starts: &to,
        };
        down.down(src, &mut dst, columns, &mut memory);
        for (y, x) in (0..rows).flat_map(|y| (0..columns).map(move |x| (y, x))) {
            same(out[to[y] + x], vertical(y, x), &what);
        }
        for boundary in [
            Boundary::Clamp,
            Boundary::Zero,
            Boundary::Reflect,
            Boundary::Wrap,
        ] {
            let beside = |x: usize, by: i64| boundary.source(x as i64 + by, columns as i64);
            let mut dst = RowsMut {
                data: &mut out,
                starts: &to,
            };
            let lines = Rows {
                data: &data,
                starts: &starts[..rows],
            };
            along.along(lines, &mut dst, columns, boundary, &mut memory);
            for (y, x) in (0..rows).flat_map(|y| (0..columns).map(move |x| (y, x))) {
                let at = |by| beside(x, by).map_or(0.0, |x| data[starts[y] + x as usize]);
                same(out[to[y] + x], sum(taps, at), &what);
            }
            let mut dst = RowsMut {
                data: &mut out,
                starts: &to,
            };
            along.along_those(&down, src, &mut dst, columns, boundary, &mut memory);
            for y in 0..rows {
                let row: Vec<f32> = (0..columns).map(|x| vertical(y, x)).collect();
                for x in 0..columns {
                    let at = |by| beside(x, by).map_or(0.0, |x| row[x as usize]);
                    same(out[to[y] + x], sum(taps, at), &what);
                }
            }
        }
    }
}

#[test]
fn long_sums_are_left_to_compiled_code() {
    for width in widths() {
        let taps = Taps::Symmetric(vec![1.0; LONGEST / 2 + 2]);
        assert!(Sums::with(&taps, Axis::Y, width).is_none());
    }
}
