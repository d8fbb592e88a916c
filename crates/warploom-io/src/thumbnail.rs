//! Small pictures of images, for people to look at.

use png::{BitDepth, ColorType, Encoder};
use warploom_core::DType;

/// The picture of a plane as the bytes of a PNG file, at most `most` pixels wide and high.
///
/// Whole numbers of 32 bits are taken for labels and get a colour each; everything else is gray, from
/// the darkest hundredth to the brightest. `None` where there is nothing to see, or `bytes` are not
/// those of such a plane.
pub fn thumbnail(
    dtype: DType,
    height: u64,
    width: u64,
    bytes: &[u8],
    most: u32,
) -> Option<Vec<u8>> {
    let (height, width) = (usize::try_from(height).ok()?, usize::try_from(width).ok()?);
    let size = usize::try_from(dtype.bytes()).ok()?;
    let all = height.checked_mul(width)?.checked_mul(size)?;
    if all == 0 || bytes.len() != all || most == 0 {
        return None;
    }
    let step = height.max(width).div_ceil(most as usize).max(1);
    let (rows, columns) = (height.div_ceil(step), width.div_ceil(step));
    let value = |y: usize, x: usize| number(dtype, &bytes[(y * width + x) * size..][..size]);
    let is_labels = matches!(dtype, DType::U32 | DType::I32);
    let mut values = Vec::with_capacity(rows * columns);
    for y in (0..height).step_by(step) {
        for x in (0..width).step_by(step) {
            if is_labels {
                values.push(value(y, x));
                continue;
            }
            // The brightest of a few on the diagonal: small bright things stay to be seen.
            let inside = (0..step).step_by(step.div_ceil(4));
            let some = inside.map(|by| value((y + by).min(height - 1), (x + by).min(width - 1)));
            values.push(some.fold(f64::NEG_INFINITY, f64::max));
        }
    }
    let pixels = if is_labels {
        values.iter().flat_map(|value| colour(*value)).collect()
    } else {
        stretched(&values)
    };
    let mut picture = Vec::new();
    let extent = |count: usize| u32::try_from(count).ok();
    let mut encoder = Encoder::new(&mut picture, extent(columns)?, extent(rows)?);
    encoder.set_color(if is_labels {
        ColorType::Rgb
    } else {
        ColorType::Grayscale
    });
    encoder.set_depth(BitDepth::Eight);
    let mut writer = encoder.write_header().ok()?;
    writer.write_image_data(&pixels).ok()?;
    writer.finish().ok()?;
    Some(picture)
}

fn number(dtype: DType, bytes: &[u8]) -> f64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let [a, b, c, d, ..] = word;
    match dtype {
        DType::U8 => f64::from(a),
        DType::U16 => f64::from(u16::from_ne_bytes([a, b])),
        DType::I16 => f64::from(i16::from_ne_bytes([a, b])),
        DType::U32 => f64::from(u32::from_ne_bytes([a, b, c, d])),
        DType::I32 => f64::from(i32::from_ne_bytes([a, b, c, d])),
        DType::F32 => f64::from(f32::from_ne_bytes([a, b, c, d])),
        DType::F64 => f64::from_ne_bytes(word),
        _ => 0.0,
    }
}

/// Grays between the darkest and the brightest, but for a hundredth at either end.
fn stretched(values: &[f64]) -> Vec<u8> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let at = |share: usize| sorted.get(sorted.len() * share / 100).copied();
    let last = sorted.last().copied().unwrap_or(1.0);
    let (mut low, mut high) = (at(1).unwrap_or(0.0), at(99).unwrap_or(last));
    if high <= low {
        (low, high) = (sorted.first().copied().unwrap_or(0.0), last);
    }
    let range = if high > low { high - low } else { 1.0 };
    let gray = |value: &f64| {
        let share = ((value - low) / range).clamp(0.0, 1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and 255; what is not a number becomes 0"
        )]
        let gray = (share * 255.0).round() as u8;
        gray
    };
    values.iter().map(gray).collect()
}

/// A colour for a label: bright, and unlike those of the labels beside it. What is no object is black.
fn colour(label: f64) -> [u8; 3] {
    if label == 0.0 {
        return [0; 3];
    }
    // Steps of the golden ratio around the circle of colours.
    let turn = (label * 0.618_033_988_749_894_9).rem_euclid(1.0) * 6.0;
    let channel = |shift: f64| {
        let at = (turn + shift).rem_euclid(6.0);
        let share = ((at - 3.0).abs() - 1.0).clamp(0.0, 1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 64 and 255"
        )]
        let level = (64.0 + 191.0 * share) as u8;
        level
    };
    [channel(0.0), channel(4.0), channel(2.0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(picture: &[u8]) -> (u32, u32, Vec<u8>) {
        let mut reader = png::Decoder::new(std::io::Cursor::new(picture))
            .read_info()
            .unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        (info.width, info.height, pixels)
    }

    #[test]
    fn a_gray_picture_goes_from_dark_to_bright() {
        let pixels: Vec<u8> = (0..1000_u16).flat_map(u16::to_ne_bytes).collect();
        let picture = thumbnail(DType::U16, 25, 40, &pixels, 100).unwrap();
        let (width, height, gray) = decoded(&picture);
        assert_eq!((width, height), (40, 25));
        assert_eq!((gray[0], gray[999]), (0, 255));
        assert!(gray.is_sorted());
    }

    #[test]
    fn labels_have_colours_and_the_rest_is_black() {
        let labels: Vec<u8> = [0_u32, 1, 2, 3]
            .iter()
            .flat_map(|n| n.to_ne_bytes())
            .collect();
        let (_, _, rgb) = decoded(&thumbnail(DType::U32, 2, 2, &labels, 64).unwrap());
        let colours: Vec<&[u8]> = rgb.chunks_exact(3).collect();
        assert_eq!(colours[0], [0, 0, 0]);
        for (at, one) in colours.iter().enumerate() {
            assert!(!colours[..at].contains(one), "{colours:?}");
        }
    }

    #[test]
    fn large_images_become_small_ones() {
        let bytes = vec![7; 300 * 1000];
        let (width, height, _) = decoded(&thumbnail(DType::U8, 300, 1000, &bytes, 128).unwrap());
        assert_eq!((width, height), (125, 38));
    }

    #[test]
    fn what_is_not_a_number_harms_nobody() {
        let bytes: Vec<u8> = [f32::NAN, f32::INFINITY, 1.0, 2.0]
            .iter()
            .flat_map(|n| n.to_ne_bytes())
            .collect();
        assert!(thumbnail(DType::F32, 2, 2, &bytes, 16).is_some());
        let nothing: Vec<u8> = f64::NAN.to_ne_bytes().to_vec();
        assert!(thumbnail(DType::F64, 1, 1, &nothing, 16).is_some());
        assert_eq!(thumbnail(DType::F32, 2, 2, &bytes[1..], 16), None);
        assert_eq!(thumbnail(DType::F32, 0, 2, &[], 16), None);
    }
}
