//! PNG: planes of u8 and u16.

use std::io::{BufReader, Read, Seek, Write};

use png::{BitDepth, ColorType, DecodingError, Encoder, EncodingError, Transformations};
use warploom_core::{DType, Shape};

use crate::error::Fault;
use crate::image::Image;

/// Deflate makes at most 1032 bytes of one.
const EXPANSION: u64 = 1032;

/// Reads a plane. Gray of less than 8 bits is spread over 0 to 255, as the format says it means.
pub(crate) fn read(file: &mut (impl Read + Seek), length: u64) -> Result<Image, Fault> {
    let mut decoder = png::Decoder::new(BufReader::with_capacity(1 << 17, file));
    // Palettes become colours, a transparent colour an alpha channel: then only channels are left.
    decoder.set_transformations(Transformations::EXPAND);
    // Texts and profiles are no pixels.
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let mut reader = decoder.read_info().map_err(decoding)?;
    let info = reader.info();
    if let Some(animation) = info.animation_control()
        && animation.num_frames > 1
    {
        return Err(Fault::Unread {
            what: format!("an animation of {} frames", animation.num_frames),
            instead: "save the frames as the pages of a .tif".into(),
        });
    }
    let (width, height) = (u64::from(info.width), u64::from(info.height));
    let (colour, depth) = reader.output_color_type();
    let channels = colour.samples() as u64;
    let dtype = match depth {
        BitDepth::Sixteen => DType::U16,
        _ => DType::U8,
    };
    // The stored bits, which may be fewer than those they are spread over.
    let stored = width
        .saturating_mul(info.bits_per_pixel() as u64)
        .div_ceil(8);
    let claimed = (stored + 1).saturating_mul(height);
    if claimed > length.saturating_mul(EXPANSION) {
        return Err(Fault::Absurd {
            what: format!("{height}x{width} pixels"),
            claimed,
            length,
        });
    }
    let whole = Shape::new(&[height, width, channels]).map_err(Fault::damaged)?;
    let mut pixels = Image::zeroed(dtype, whole)?;
    reader.next_frame(pixels.bytes_mut()).map_err(decoding)?;
    // Checksums and the rest of the file: damage at the end is damage, too.
    reader.finish().map_err(decoding)?;
    if let Some(values) = pixels.elements_mut::<u16>() {
        for value in values {
            *value = u16::from_be(*value);
        }
    }
    let plane = Shape::new(&[height, width]).map_err(Fault::damaged)?;
    match (colour, pixels.elements::<u16>()) {
        (ColorType::Grayscale, _) => Ok(pixels.reshaped(plane)?),
        (_, Some(values)) => gray(values, channels, plane),
        (_, None) => gray(pixels.bytes(), channels, plane),
    }
}

/// The gray image of which the channels are copies, if all are and nothing is transparent.
fn gray<T>(values: &[T], channels: u64, plane: Shape) -> Result<Image, Fault>
where
    T: warploom_core::Element + Into<u16> + Bounds,
{
    let channels = usize::try_from(channels).unwrap_or(1);
    let has_alpha = channels.is_multiple_of(2);
    let colours = channels - usize::from(has_alpha);
    let mut image = Image::zeroed(T::DTYPE, plane)?;
    let from = values.chunks_exact(channels);
    let to = image.elements_mut::<T>().unwrap_or_default();
    for (at, (pixel, to)) in from.zip(to).enumerate() {
        let opaque = !has_alpha || pixel[colours] == T::MOST;
        if !opaque || pixel[..colours].iter().any(|value| *value != pixel[0]) {
            let width = plane.dims()[1];
            return Err(Fault::Colour {
                y: at as u64 / width,
                x: at as u64 % width,
                values: pixel.iter().map(|value| (*value).into()).collect(),
            });
        }
        *to = pixel[0];
    }
    Ok(image)
}

/// What an opaque pixel has for alpha.
trait Bounds {
    const MOST: Self;
}

impl Bounds for u8 {
    const MOST: Self = Self::MAX;
}

impl Bounds for u16 {
    const MOST: Self = Self::MAX;
}

fn decoding(error: DecodingError) -> Fault {
    match error {
        DecodingError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            Fault::damaged("it ends before the image does")
        }
        DecodingError::IoError(error) => Fault::open(&error),
        error => Fault::damaged(error),
    }
}

/// Writes a plane of u8 or u16.
pub(crate) fn write(file: &mut impl Write, image: &Image) -> Result<(), Fault> {
    let dims = image.shape().dims();
    let extent = |at: usize| u32::try_from(dims[dims.len() - at]).unwrap_or(u32::MAX);
    let mut encoder = Encoder::new(file, extent(1), extent(2));
    encoder.set_color(ColorType::Grayscale);
    let turned: Vec<u8>;
    let (depth, bytes) = match image.elements::<u16>() {
        Some(values) => {
            turned = values
                .iter()
                .flat_map(|value| value.to_be_bytes())
                .collect();
            (BitDepth::Sixteen, turned.as_slice())
        }
        None => (BitDepth::Eight, image.bytes()),
    };
    encoder.set_depth(depth);
    let mut writer = encoder.write_header().map_err(encoding)?;
    writer.write_image_data(bytes).map_err(encoding)?;
    writer.finish().map_err(encoding)
}

fn encoding(error: EncodingError) -> Fault {
    match error {
        EncodingError::IoError(error) => Fault::write(&error),
        other => Fault::Write {
            kind: std::io::ErrorKind::Other,
            message: other.to_string(),
        },
    }
}
