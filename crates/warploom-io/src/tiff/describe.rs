//! The extent of the whole image, which TIFF itself does not say: it knows only pages. tifffile and
//! ImageJ write it into the first page's description, each in a way of its own.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use warploom_core::{Axis, DType, Shape};

use super::ome;
use crate::header::Header;

/// What a description says of the planes.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Said {
    /// The extent, with the planes in the order of its axes.
    pub(super) shape: Shape,
    /// For every plane, which one it is in the file; none where the orders are the same.
    pub(super) order: Option<Vec<u64>>,
    /// The pixels of all planes follow those of the first, and there are no pages for them.
    pub(super) is_one_piece: bool,
    pub(super) z_spacing: Option<f64>,
    pub(super) unit: Option<f64>,
}

#[derive(Serialize, Deserialize)]
struct Description {
    shape: Vec<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    axes: Option<String>,
    #[serde(default, skip_serializing)]
    truncated: bool,
}

/// What a description says of an image of so many pages; `None` where it is silent, or speaks of
/// another image: programs copy descriptions of images they have changed.
///
/// `most` planes are all that the file can hold.
pub(super) fn read(text: &str, pages: u64, [height, width]: [u64; 2], most: u64) -> Option<Said> {
    let said = if text.starts_with("ImageJ=") {
        imagej(text, pages, height, width, most)
    } else {
        shaped(text, pages, height, width)
    };
    said.filter(|said| said.shape.elements() / (height * width) <= most)
}

fn shaped(text: &str, pages: u64, height: u64, width: u64) -> Option<Said> {
    let said: Description = serde_json::from_str(text).ok()?;
    let planes = said
        .shape
        .iter()
        .rev()
        .skip(2)
        .try_fold(1_u64, |product, extent| product.checked_mul(*extent))?;
    let is_one_piece = said.truncated && pages == 1 && planes > 1;
    if !said.shape.ends_with(&[height, width]) || !(planes == pages || is_one_piece) {
        return None;
    }
    let labelled = said
        .axes
        .and_then(|axes| axes.chars().map(axis).collect::<Option<Vec<_>>>())
        .and_then(|axes| Shape::with_axes(&axes, &said.shape).ok());
    Some(Said {
        shape: labelled.or_else(|| Shape::new(&said.shape).ok())?,
        order: None,
        is_one_piece,
        z_spacing: None,
        unit: None,
    })
}

/// ImageJ's planes go by channel, then depth, then time; beyond 4 GiB it stores all but the first
/// without telling the format.
fn imagej(text: &str, pages: u64, height: u64, width: u64, most: u64) -> Option<Said> {
    let value = |name: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    };
    let count = |name| value(name).and_then(|text| text.trim().parse::<u64>().ok());
    let images = count("images").unwrap_or(1);
    let is_one_piece = images > pages && pages == 1;
    let (channels, frames) = (count("channels").unwrap_or(1), count("frames").unwrap_or(1));
    // A plain stack has but a number of images.
    let is_plain = channels == 1 && frames == 1;
    let slices = count("slices").unwrap_or(if is_plain { images } else { 1 });
    let product = channels.checked_mul(slices)?.checked_mul(frames)?;
    let is_here = images == pages || is_one_piece;
    if product != images || !is_here || images == 0 || images > most {
        return None;
    }
    let stack = [(Axis::T, frames), (Axis::C, channels), (Axis::Z, slices)];
    let stack = stack.into_iter().filter(|(_, extent)| *extent > 1);
    let (mut axes, mut dims): (Vec<_>, Vec<_>) = stack.unzip();
    axes.extend([Axis::Y, Axis::X]);
    dims.extend([height, width]);
    let in_order = channels == 1 || slices == 1;
    let order = (!in_order).then(|| {
        let plane = |t, c, z| (t * slices + z) * channels + c;
        let mut order = Vec::new();
        for t in 0..frames {
            for c in 0..channels {
                order.extend((0..slices).map(|z| plane(t, c, z)));
            }
        }
        order
    });
    let unit = value("unit").and_then(|unit| ome::micrometres(unit.trim()));
    let spacing = value("spacing").and_then(|text| text.trim().parse::<f64>().ok());
    let z_spacing = unit.zip(spacing).map(|(unit, spacing)| unit * spacing);
    Some(Said {
        shape: Shape::with_axes(&axes, &dims).ok()?,
        order,
        is_one_piece,
        z_spacing: z_spacing.filter(|value| value.is_finite() && *value > 0.0),
        unit,
    })
}

/// The description of an image that is to be written: ImageJ's where that says more, which is for
/// times and channels, and otherwise tifffile's, which keeps every extent.
pub(super) fn text(header: &Header) -> Option<String> {
    let mut text = if let Some(text) = hyperstack(header) {
        text
    } else {
        let shape = &header.shape;
        let description = Description {
            shape: shape.dims().to_vec(),
            axes: Some(shape.axes().iter().map(|axis| letter(*axis)).collect()),
            truncated: false,
        };
        serde_json::to_string(&description).ok()?
    };
    // With the zero that ends it in the file, what follows begins at an even place.
    if text.len().is_multiple_of(2) {
        text.push(' ');
    }
    Some(text)
}

/// ImageJ's description of an image with times or channels, if that is the same image: planes in
/// its order, elements of its types, no axis of one.
fn hyperstack(header: &Header) -> Option<String> {
    if !matches!(header.dtype, DType::U8 | DType::U16 | DType::F32) {
        return None;
    }
    let shape = &header.shape;
    let (stack, plane) = shape.axes().split_at(shape.rank().checked_sub(2)?);
    let order = [Axis::T, Axis::Z, Axis::C];
    let places = stack
        .iter()
        .map(|axis| order.iter().position(|o| o == axis));
    let is_alike = plane == [Axis::Y, Axis::X]
        && places.clone().all(|place| place.is_some())
        && places.is_sorted()
        && stack.iter().any(|axis| *axis != Axis::Z)
        && shape.dims()[..stack.len()].iter().all(|extent| *extent > 1);
    let is_small = header.bytes() < u64::from(u32::MAX) - (1 << 24);
    if !is_alike || !is_small {
        return None;
    }
    let images: u64 = shape.dims()[..stack.len()].iter().product();
    let mut text = format!("ImageJ=1.54f\nimages={images}\n");
    for (axis, name) in [
        (Axis::C, "channels"),
        (Axis::Z, "slices"),
        (Axis::T, "frames"),
    ] {
        if let Some(extent) = shape.extent(axis) {
            // Writing to a text cannot fail.
            let _ = writeln!(text, "{name}={extent}");
        }
    }
    text += "hyperstack=true\nmode=grayscale\nloop=false\n";
    Some(text)
}

fn letter(axis: Axis) -> char {
    match axis {
        // tifffile's letter for an axis without a meaning.
        Axis::N => 'Q',
        Axis::T => 'T',
        Axis::C => 'C',
        Axis::Z => 'Z',
        Axis::Y => 'Y',
        Axis::X => 'X',
    }
}

fn axis(letter: char) -> Option<Axis> {
    Some(match letter {
        'Q' => Axis::N,
        'T' => Axis::T,
        'C' => Axis::C,
        'Z' => Axis::Z,
        'Y' => Axis::Y,
        'X' => Axis::X,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case(r#"{"shape": [1, 4, 5]}"#, 1, Some("1x4x5"))]
    #[case(r#"{"shape": [2, 3, 4, 5], "axes": "TCYX"}"#, 6, Some("2x3x4x5"))]
    #[case(r#"{"shape": [2, 3, 4, 5], "axes": "????"}"#, 6, Some("2x3x4x5"))]
    #[case(r#"{"shape": [40, 4, 5], "truncated": true}"#, 1, Some("40x4x5"))]
    #[case(r#"{"shape": [2, 4, 5]}"#, 3, None)]
    #[case(r#"{"shape": [3, 5, 4]}"#, 3, None)]
    #[case(r#"{"shape": [18446744073709551615, 3, 4, 5]}"#, 3, None)]
    #[case("ImageJ=1.53\nimages=3\n", 3, Some("3x4x5"))]
    #[case("ImageJ=1.53\nimages=40\n", 1, Some("40x4x5"))]
    #[case(
        "ImageJ=1.53\nimages=12\nchannels=2\nslices=3\nframes=2\n",
        12,
        Some("2x2x3x4x5")
    )]
    #[case("ImageJ=1.53\nimages=12\nchannels=2\nslices=3\n", 12, None)]
    #[case("a microscope", 1, None)]
    fn descriptions_are_believed_where_they_fit(
        #[case] text: &str,
        #[case] pages: u64,
        #[case] wanted: Option<&str>,
    ) {
        let said = read(text, pages, [4, 5], 100);
        let shape = said.map(|said| said.shape.to_string());
        assert_eq!(shape.as_deref(), wanted);
    }

    #[test]
    fn imagej_s_order_is_not_ours() {
        let text = "ImageJ=1.53\nimages=6\nchannels=2\nslices=3\nspacing=2.5\nunit=nm\n";
        let said = read(text, 6, [4, 5], 6).unwrap();
        assert_eq!(said.order, Some(vec![0, 2, 4, 1, 3, 5]));
        assert_eq!(said.z_spacing, Some(2.5e-3));
    }

    #[test]
    fn what_is_described_is_read_back() {
        let cases: &[(&[Axis], &[u64], bool)] = &[
            (&[Axis::C, Axis::Y, Axis::X], &[2, 4, 5], true),
            (&[Axis::Z, Axis::Y, Axis::X], &[2, 4, 5], false),
            (&[Axis::T, Axis::Z, Axis::Y, Axis::X], &[3, 2, 4, 5], true),
            (&[Axis::C, Axis::Z, Axis::Y, Axis::X], &[3, 2, 4, 5], false),
            (&[Axis::C, Axis::Y, Axis::X], &[1, 4, 5], false),
            (&[Axis::N, Axis::Y, Axis::X], &[3, 4, 5], false),
        ];
        for (axes, dims, is_imagej) in cases {
            let shape = Shape::with_axes(axes, dims).unwrap();
            let text = text(&Header::new(DType::U16, shape)).unwrap();
            assert_eq!(text.starts_with("ImageJ"), *is_imagej, "{axes:?}");
            let pages = dims[..dims.len() - 2].iter().product();
            assert_eq!(read(&text, pages, [4, 5], pages).unwrap().shape, shape);
        }
    }
}
