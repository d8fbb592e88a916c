//! The extent of the whole image, which TIFF itself does not say: it knows only pages.
//!
//! tifffile writes it into the first page's description as `{"shape": [5, 64, 64]}`; so do we.
//! Without it a plane is a plane and several are a stack.

use serde::{Deserialize, Serialize};
use warploom_core::{Axis, Shape};

use crate::error::Fault;

#[derive(Serialize, Deserialize)]
struct Description {
    shape: Vec<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    axes: Option<String>,
    #[serde(default, skip_serializing)]
    truncated: bool,
}

/// The description of an image that is to be written.
pub(super) fn describe(shape: &Shape) -> Option<String> {
    let description = Description {
        shape: shape.dims().to_vec(),
        axes: Some(shape.axes().iter().map(|axis| letter(*axis)).collect()),
        truncated: false,
    };
    let mut text = serde_json::to_string(&description).ok()?;
    // With the zero that ends it in the file, what follows begins at an even place.
    if text.len().is_multiple_of(2) {
        text.push(' ');
    }
    Some(text)
}

/// The extent of `pages` planes of `height` x `width`, with what the first one's description says.
pub(super) fn shape(
    description: Option<&str>,
    pages: u64,
    height: u64,
    width: u64,
) -> Result<Shape, Fault> {
    if let Some(text) = description {
        if let Some(count) = imagej_images(text)
            && count > pages
        {
            return Err(missing_pages("ImageJ", count, pages));
        }
        if let Ok(said) = serde_json::from_str::<Description>(text) {
            let planes = said
                .shape
                .iter()
                .rev()
                .skip(2)
                .try_fold(1_u64, |product, extent| product.checked_mul(*extent));
            let fits = said.shape.ends_with(&[height, width]);
            if said.truncated
                && let Some(planes) = planes.filter(|planes| fits && *planes > pages)
            {
                return Err(missing_pages("tifffile", planes, pages));
            }
            // Other programs copy descriptions of images they have changed.
            if fits && planes == Some(pages) {
                let labelled = said
                    .axes
                    .and_then(|axes| axes.chars().map(axis).collect::<Option<Vec<_>>>())
                    .and_then(|axes| Shape::with_axes(&axes, &said.shape).ok());
                if let Some(shape) = labelled.or_else(|| Shape::new(&said.shape).ok()) {
                    return Ok(shape);
                }
            }
        }
    }
    let dims = [pages, height, width];
    let dims = if pages == 1 { &dims[1..] } else { &dims[..] };
    Shape::new(dims).map_err(Fault::damaged)
}

/// `images=40` in ImageJ's description. Beyond 4 GiB it stores all but the first without telling
/// the format.
fn imagej_images(text: &str) -> Option<u64> {
    let mut lines = text.strip_prefix("ImageJ=")?.lines();
    let count = lines.find_map(|line| line.strip_prefix("images="))?;
    count.trim().parse().ok()
}

fn missing_pages(writer: &str, said: u64, pages: u64) -> Fault {
    Fault::Unread {
        what: format!("{said} planes by the word of {writer}, but {pages} by that of the format"),
        instead: "save it as BigTIFF, or in pages of its own".into(),
    }
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
    #[case(None, 1, "4x5")]
    #[case(None, 3, "3x4x5")]
    #[case(Some(r#"{"shape": [1, 4, 5]}"#), 1, "1x4x5")]
    #[case(Some(r#"{"shape": [2, 3, 4, 5], "axes": "TCYX"}"#), 6, "2x3x4x5")]
    #[case(Some(r#"{"shape": [2, 3, 4, 5], "axes": "????"}"#), 6, "2x3x4x5")]
    #[case(Some(r#"{"shape": [2, 4, 5]}"#), 3, "3x4x5")]
    #[case(Some(r#"{"shape": [3, 5, 4]}"#), 3, "3x4x5")]
    #[case(Some(r#"{"shape": [18446744073709551615, 3, 4, 5]}"#), 3, "3x4x5")]
    #[case(Some("ImageJ=1.53\nimages=3\n"), 3, "3x4x5")]
    #[case(Some("a microscope"), 1, "4x5")]
    fn descriptions_are_believed_where_they_fit(
        #[case] text: Option<&str>,
        #[case] pages: u64,
        #[case] wanted: &str,
    ) {
        assert_eq!(shape(text, pages, 4, 5).unwrap().to_string(), wanted);
    }

    #[test]
    fn what_is_described_is_read_back() {
        let stack = Shape::with_axes(&[Axis::C, Axis::Y, Axis::X], &[2, 4, 5]).unwrap();
        let text = describe(&stack).unwrap();
        assert_eq!(text.trim_end(), r#"{"shape":[2,4,5],"axes":"CYX"}"#);
        assert_eq!(shape(Some(&text), 2, 4, 5).unwrap(), stack);
    }

    #[test]
    fn planes_that_only_a_description_knows_are_not_dropped() {
        for text in [
            "ImageJ=1.53\nimages=40\n",
            r#"{"shape": [40, 4, 5], "truncated": true}"#,
        ] {
            assert!(matches!(
                shape(Some(text), 1, 4, 5),
                Err(Fault::Unread { .. })
            ));
        }
    }
}
