//! Numbers at the ends of what their types hold, each with the name of what once went wrong there.

use warploom_core::{DType, Element};
use warploom_kernels::lower::lower;
use warploom_kernels::op::{Given, OpCall};
use warploom_kernels::{Boundary, ImageType};

use super::case::{Case, image};
use super::devices::agree;

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

/// `"maximum_box radius=1"` of an image, and what it must give.
fn case<T: Element>(line: &str, kind: ImageType, pixels: &[T], want: &[f64]) -> Case {
    let mut words = line.split(' ');
    let name = words.next().unwrap();
    let call = OpCall::new(name, &Given::parse(words).unwrap(), &[kind]).unwrap();
    let mut case = Case::new(format!("{line} of {kind}"), lower(&call)).with_input(0, pixels);
    case.expected = Some(want.to_vec());
    case
}

fn plane(dtype: DType, y: u64, x: u64) -> ImageType {
    image(dtype, [1, y, x])
}

#[test]
fn local_thresholds_of_large_whole_numbers_lose_no_digit() {
    let below = [0_u32, 20, 3, 7, 1, 18, 2, 9, 4];
    let mask = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0];
    let pixels = below.map(|by| u32::MAX - by);
    let signed = below.map(|by| i32::MAX - by.cast_signed());
    // More pixels than f32 counts the sum of: all but one have 65535, and so has the mean, rounded.
    let mut bright = vec![u16::MAX; 41 * 41];
    bright[20 * 41 + 20] = u16::MAX - 1;
    let most: Vec<f64> = bright.iter().map(|v| f64::from(*v == u16::MAX)).collect();
    agree([
        case(
            "threshold_local radius=1",
            plane(DType::U32, 3, 3),
            &pixels,
            &mask,
        ),
        case(
            "threshold_local radius=1",
            plane(DType::I32, 3, 3),
            &signed,
            &mask,
        ),
        case(
            "threshold_local radius=20",
            plane(DType::U16, 41, 41),
            &bright,
            &most,
        ),
        case(
            "threshold_local radius=1 offset=12.5",
            plane(DType::U32, 3, 3),
            &pixels,
            &[0.0; 9],
        ),
    ]);
}

#[test]
fn minus_infinity_behind_nan_is_the_greatest_of_its_column() {
    let columns = [NAN, NAN, -INF, 1.0, -INF, NAN, NAN, NAN];
    let wide = columns.map(f64::from);
    let want = [1.0, 0.0, 0.0, 0.0];
    agree([
        case("argmax_z", image(DType::F32, [2, 1, 4]), &columns, &want),
        case("argmax_z", image(DType::F64, [2, 1, 4]), &wide, &want),
    ]);
}

#[test]
fn windows_of_one_pixel_ignore_nan_as_others_do() {
    let pixels = [NAN, 1.0, 2.0, NAN];
    let most = [f64::NEG_INFINITY, 1.0, 2.0, f64::NEG_INFINITY];
    let least = [f64::INFINITY, 1.0, 2.0, f64::INFINITY];
    let square = plane(DType::F32, 2, 2);
    let column = plane(DType::F32, 3, 1);
    let pixel = plane(DType::F32, 1, 1);
    agree([
        case("maximum_sphere radius=0.5", square, &pixels, &most),
        case("minimum_sphere radius=0.5", square, &pixels, &least),
        case("opening_sphere radius=0.5", square, &pixels, &least),
        case("closing_sphere radius=0.5", square, &pixels, &most),
        case("maximum_box radius=1", pixel, &[NAN], &[f64::NEG_INFINITY]),
        case("minimum_box radius=1", pixel, &[NAN], &[f64::INFINITY]),
        case("maximum_box radius=0,1", column, &pixels[..3], &most[..3]),
        case("median_box radius=1", pixel, &[NAN], &[f64::NAN]),
        case(
            "top_hat_sphere radius=0.5",
            square,
            &pixels,
            &[f64::NAN, 0.0, 0.0, f64::NAN],
        ),
    ]);
}

#[test]
fn nothing_is_above_the_threshold_of_one_value() {
    let methods = ["otsu", "triangle", "isodata", "mean"];
    let cases = methods.into_iter().flat_map(|method| {
        let of = move |bins: u32, value: f64| {
            let line = format!("threshold_{method} bins={bins}");
            let (narrow, wide) = ([value as f32; 30], [value; 30]);
            [
                case(&line, plane(DType::F32, 5, 6), &narrow, &[0.0; 30]),
                case(&line, plane(DType::F64, 5, 6), &wide, &[0.0; 30]),
            ]
        };
        [of(3, 0.0), of(3, 1.0), of(256, 7.3), of(7, -0.1)]
            .into_iter()
            .flatten()
    });
    let whole = case(
        "threshold_mean",
        plane(DType::U32, 101, 97),
        &vec![4_294_967_291_u32; 101 * 97],
        &vec![0.0; 101 * 97],
    );
    agree(cases.chain([whole]));
}

/// The variances of boxes, from whole numbers that hold every digit.
fn variances(kind: ImageType, pixels: &[i64], radius: [i64; 3], boundary: Boundary) -> Vec<f64> {
    let [nz, ny, nx] = kind.dims.map(u64::cast_signed);
    let at = |place: [i64; 3]| {
        let sources: Option<Vec<i64>> = (0..3)
            .map(|axis| boundary.source(place[axis], [nz, ny, nx][axis]))
            .collect();
        sources.map_or(0, |at| {
            let index = (at[0] * ny + at[1]) * nx + at[2];
            i128::from(pixels[usize::try_from(index).unwrap()])
        })
    };
    let mut found = Vec::new();
    for index in 0..nz * ny * nx {
        let [z, y, x] = [index / (ny * nx), index / nx % ny, index % nx];
        let (mut count, mut sum, mut squares) = (0_i128, 0_i128, 0_i128);
        for dz in -radius[0]..=radius[0] {
            for dy in -radius[1]..=radius[1] {
                for dx in -radius[2]..=radius[2] {
                    let value = at([z + dz, y + dy, x + dx]);
                    count += 1;
                    sum += value;
                    squares += value * value;
                }
            }
        }
        let variance = (count * squares - sum * sum) as f64 / (count * count) as f64;
        found.push(f64::from(variance as f32));
    }
    found
}

#[test]
fn variances_of_whole_numbers_lose_nothing_to_an_offset() {
    let kind = ImageType::stack(DType::U32, 3, 9, 40);
    let near: Vec<u32> = (0..3 * 9 * 40_u32).map(|i| i * 7919 % 1013 % 11).collect();
    let high: Vec<u32> = near.iter().map(|by| u32::MAX - by).collect();
    let low: Vec<i32> = near.iter().map(|by| i32::MIN + by.cast_signed()).collect();
    let mut cases = Vec::new();
    for boundary in Boundary::ALL {
        let line = format!("variance_box radius=1,2,3 boundary={boundary}");
        let pixels: Vec<i64> = high.iter().map(|v| i64::from(*v)).collect();
        let want = variances(kind, &pixels, [1, 2, 3], boundary);
        cases.push(case(&line, kind, &high, &want).strictly());
        let kind = ImageType::stack(DType::I32, 3, 9, 40);
        let pixels: Vec<i64> = low.iter().map(|v| i64::from(*v)).collect();
        let want = variances(kind, &pixels, [1, 2, 3], boundary);
        cases.push(case(&line, kind, &low, &want).strictly());
    }
    agree(cases);
}
