//! Fast ways against neighbourhoods gathered pixel by pixel: the same bits.

use proptest::prelude::*;

use super::super::image::with_type;
use super::super::lanes::levels;
use super::super::share::for_bands;
use super::*;
use warploom_core::DType;

const TYPES: [DType; 7] = [
    DType::U8,
    DType::U16,
    DType::I16,
    DType::I32,
    DType::U32,
    DType::F32,
    DType::F64,
];

/// Numbers with many equal ones; floats have NaN, zeros of both signs and infinities among them.
fn pixels<T: Pixel>(count: usize, seed: u32) -> Vec<T> {
    let mut state = seed;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 16
    };
    (0..count)
        .map(|_| {
            let value = f64::from(random() % 40) * 7.0 - 90.0;
            let odd = random() % 64;
            match odd {
                0 if T::IS_FLOAT && seed.is_multiple_of(2) => T::from_f64(f64::NAN),
                1 if T::IS_FLOAT => T::from_f64(-0.0),
                2 => T::from_f64(f64::INFINITY),
                3 => T::from_f64(f64::NEG_INFINITY),
                4 => T::ZERO,
                _ => T::from_f64(value),
            }
        })
        .collect()
}

/// Pixel by pixel, as the primitives say it.
fn plainly<T: Pixel, U: Pixel>(
    image: View<'_, T>,
    lined: &Lined,
    boundary: Boundary,
    make: impl Fn(&mut [T]) -> U + Sync,
) -> Vec<U> {
    let mut out = vec![U::ZERO; image.dims().iter().product()];
    for_bands(ViewMut::packed(&mut out, image.dims()), 3, &|mut band| {
        naive::each(image, lined, boundary, &mut band, &make);
    });
    out
}

/// NaN is one value, zeros of either sign are two unless `equal_zeros`.
fn bits<T: Pixel>(values: &[T], equal_zeros: bool) -> Vec<u64> {
    let bits = |value: &T| {
        if naive::is_nan(*value) {
            return u64::MAX;
        }
        let value = value.to_f64();
        (if equal_zeros { value + 0.0 } else { value }).to_bits()
    };
    values.iter().map(bits).collect()
}

fn agrees<T: Pixel>(prim: &Prim, dims: [usize; 3], seed: u32)
where
    for<'a> Image<'a>: From<View<'a, T>>,
    for<'a> ImageMut<'a>: From<ViewMut<'a, T>> + From<ViewMut<'a, T::Real>>,
{
    let data = pixels::<T>(dims.iter().product(), seed);
    let image = View::packed(&data, dims);
    let around = Around::new(prim, T::DTYPE).unwrap();
    let lined = &around.lined;
    for level in levels() {
        match prim {
            Prim::Around {
                combine: Combine::Sum,
                boundary,
                ..
            } => {
                let mut out = vec![T::Real::ZERO; data.len()];
                let to = ViewMut::packed(&mut out, dims);
                around.run_on(level, image.into(), to.into());
                let wanted = plainly(image, lined, *boundary, |window| {
                    let rest = window[1..].iter();
                    rest.fold(window[0].to_real(), |sum, element| sum + element.to_real())
                });
                assert_eq!(
                    bits(&out, false),
                    bits(&wanted, false),
                    "{prim:?} {level:?}"
                );
            }
            Prim::Around {
                combine, boundary, ..
            } => {
                let mut out = vec![T::ZERO; data.len()];
                let to = ViewMut::packed(&mut out, dims);
                around.run_on(level, image.into(), to.into());
                let wanted = plainly(image, lined, *boundary, |window| {
                    let all = window.iter();
                    if *combine == Combine::Max {
                        all.fold(T::LEAST, |best, element| best.greater(*element))
                    } else {
                        all.fold(T::GREATEST, |best, element| best.lesser(*element))
                    }
                });
                assert_eq!(
                    bits(&out, false),
                    bits(&wanted, false),
                    "{prim:?} {level:?}"
                );
            }
            Prim::Rank { rank, boundary, .. } => {
                let mut out = vec![T::ZERO; data.len()];
                let to = ViewMut::packed(&mut out, dims);
                around.run_on(level, image.into(), to.into());
                let mut wanted = vec![T::ZERO; data.len()];
                let to = ViewMut::packed(&mut wanted, dims);
                for_bands(to, 3, &|mut band| {
                    naive::ranks(image, lined, *rank as usize, *boundary, &mut band);
                });
                assert_eq!(bits(&out, true), bits(&wanted, true), "{prim:?} {level:?}");
            }
            other => panic!("{other:?} is not over a neighbourhood"),
        }
    }
}

fn agrees_for(dtype: DType, prim: &Prim, dims: [usize; 3], seed: u32) {
    with_type!(dtype, T => agrees::<T>(prim, dims, seed), else unreachable!("only these types"));
}

fn footprints() -> impl Strategy<Value = Footprint> {
    prop_oneof![
        [0..2_u32, 0..4_u32, 0..4_u32].prop_map(Footprint::Box),
        [0.0..2.5_f64, 0.0..4.5_f64, 0.0..4.5_f64].prop_map(Footprint::Ball),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn sums_and_extremes_are_those_of_single_pixels(
        footprint in footprints(),
        dims in (1_usize..4, 1_usize..9, prop_oneof![1_usize..9, 60_usize..150]).prop_map(|(z, y, x)| [z, y, x]),
        combine in prop_oneof![Just(Combine::Sum), Just(Combine::Min), Just(Combine::Max)],
        boundary in proptest::sample::select(&Boundary::ALL[..]),
        dtype in proptest::sample::select(&TYPES[..]),
        seed: u32,
    ) {
        agrees_for(dtype, &Prim::Around { footprint, combine, boundary }, dims, seed);
    }

    #[test]
    fn ranks_are_those_of_sorted_pixels(
        footprint in footprints(),
        dims in (1_usize..4, 1_usize..9, prop_oneof![1_usize..9, 60_usize..150]).prop_map(|(z, y, x)| [z, y, x]),
        part in 0.0..1.0_f64,
        boundary in proptest::sample::select(&Boundary::ALL[..]),
        dtype in proptest::sample::select(&TYPES[..]),
        seed: u32,
    ) {
        let rank = (footprint.offsets().len() as f64 * part) as u32;
        agrees_for(dtype, &Prim::Rank { footprint, rank, boundary }, dims, seed);
    }
}

#[test]
fn medians_of_small_squares_are_those_of_sorted_pixels() {
    for (radius, rank) in [(1, 4), (2, 12)] {
        for boundary in Boundary::ALL {
            for (seed, dtype) in TYPES.into_iter().enumerate() {
                let footprint = Footprint::Box([0, radius, radius]);
                let prim = Prim::Rank {
                    footprint,
                    rank,
                    boundary,
                };
                for dims in [[1, 1, 1], [1, 9, 3], [2, 3, 100], [1, 5, 700]] {
                    agrees_for(dtype, &prim, dims, seed as u32);
                }
            }
        }
    }
}

#[test]
fn very_large_neighbourhoods_are_no_networks() {
    let footprint = Footprint::Box([0, 16, 16]);
    let prim = Prim::Rank {
        footprint,
        rank: 500,
        boundary: Boundary::Reflect,
    };
    let around = Around::new(&prim, DType::F32).unwrap();
    assert!(matches!(around.work, Work::Partition { rank: 500 }));
    agrees::<f32>(&prim, [1, 3, 5], 2);
}

/// Boxes and balls of every reach, over images that are larger and far smaller.
#[test]
fn counted_ranks_are_those_of_sorted_pixels() {
    let footprints = [
        Footprint::Box([0, 7, 7]),
        Footprint::Box([1, 5, 9]),
        Footprint::Box([0, 200, 3]),
        Footprint::Box([0, 0, 300]),
        Footprint::Ball([0.0, 12.5, 11.0]),
        Footprint::Ball([3.0, 6.0, 8.5]),
    ];
    let shapes = [[1, 1, 1], [1, 4, 90], [3, 20, 33], [1, 40, 7], [2, 3, 700]];
    for (at, footprint) in footprints.into_iter().enumerate() {
        let count = footprint.offsets().len();
        for (seed, dtype) in [DType::U8, DType::U16, DType::I16].into_iter().enumerate() {
            for boundary in Boundary::ALL {
                for part in [0.0, 0.5, 1.0] {
                    let rank = ((count - 1) as f64 * part) as u32;
                    let prim = Prim::Rank {
                        footprint,
                        rank,
                        boundary,
                    };
                    let around = Around::new(&prim, dtype).unwrap();
                    let counted = matches!(around.work, Work::Count { .. });
                    assert_eq!(counted, count::pays(dtype, count), "{footprint:?} {dtype}");
                    let dims = shapes[(at + seed + rank as usize) % shapes.len()];
                    agrees_for(dtype, &prim, dims, seed as u32);
                }
            }
        }
    }
}

/// Counted ranks of pixels against sorted ones.
fn counted<T: Pixel>(prim: &Prim, data: &[T], dims: [usize; 3])
where
    for<'a> Image<'a>: From<View<'a, T>>,
    for<'a> ImageMut<'a>: From<ViewMut<'a, T>>,
{
    let (image, mut out) = (View::packed(data, dims), vec![T::ZERO; data.len()]);
    let around = Around::new(prim, T::DTYPE).unwrap();
    assert!(matches!(around.work, Work::Count { .. }));
    around.run(image.into(), ViewMut::packed(&mut out, dims).into());
    let mut wanted = vec![T::ZERO; data.len()];
    for_bands(ViewMut::packed(&mut wanted, dims), 3, &|mut band| {
        naive::ranks(image, &around.lined, 220, Boundary::Reflect, &mut band);
    });
    assert_eq!(bits(&out, false), bits(&wanted, false));
}

/// Values of all sizes, so that every place of the counts is used.
#[test]
fn counted_ranks_of_every_value() {
    let dims = [1, 256, 300];
    let words: Vec<u16> = (0..256 * 300_u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 16) as u16)
        .collect();
    let bytes: Vec<u8> = words.iter().map(|word| (word >> 8) as u8).collect();
    let prim = Prim::Rank {
        footprint: Footprint::Box([0, 10, 10]),
        rank: 220,
        boundary: Boundary::Reflect,
    };
    counted(&prim, &words, dims);
    counted(&prim, &bytes, dims);
}
