//! Writing: first the pixels of all planes, then a page for each, uncompressed.
//!
//! All pixels lie together, because tifffile takes pages that it finds described as one image for
//! one piece if they are small, and because others can map them into memory.

use std::io::{self, Seek, Write};

use tiff::TiffError;
use tiff::encoder::{DirectoryEncoder, TiffEncoder, TiffKind, TiffKindBig, TiffKindStandard};
use tiff::tags::{CompressionMethod, PhotometricInterpretation, SampleFormat, Tag};
use warploom_core::DType;

use super::layout;
use crate::error::Fault;
use crate::image::Image;

/// Strips are made about this long: what readers are used to, and can decode in parallel.
const STRIP: u64 = 1 << 20;

/// Tags of one page with one strip, rounded up.
const PAGE_OVERHEAD: u64 = 512;

/// Writes an image; `Format::takes` has agreed to it.
pub(crate) fn write(file: &mut (impl Write + Seek), image: &Image) -> Result<(), Fault> {
    let planes = Planes::of(image);
    let written = if planes.need_big() {
        pages::<_, TiffKindBig>(file, image, &planes, |directory, tag, values| {
            directory.write_tag(tag, values)
        })
    } else {
        pages::<_, TiffKindStandard>(file, image, &planes, |directory, tag, values| {
            let values = values.iter().map(|value| u32::try_from(*value));
            directory.write_tag(tag, &values.collect::<Result<Vec<_>, _>>()?[..])
        })
    };
    written.map_err(|error| match error {
        TiffError::IoError(error) => Fault::write(&error),
        other => Fault::Write {
            kind: io::ErrorKind::Other,
            message: other.to_string(),
        },
    })
}

/// How an image falls into pages and strips.
#[derive(Debug)]
struct Planes {
    count: u64,
    height: u64,
    width: u64,
    /// Bytes of a row.
    row: u64,
    rows_per_strip: u64,
}

impl Planes {
    fn of(image: &Image) -> Self {
        let dims = image.shape().dims();
        let (stack, plane) = dims.split_at(dims.len() - 2);
        let row = plane[1] * image.dtype().bytes();
        Self {
            count: stack.iter().product(),
            height: plane[0],
            width: plane[1],
            row,
            rows_per_strip: (STRIP / row).clamp(1, plane[0]),
        }
    }

    /// Classic TIFF counts bytes with 32 bits.
    fn need_big(&self) -> bool {
        let strips = self.height.div_ceil(self.rows_per_strip);
        let page = u128::from(self.height * self.row) + u128::from(PAGE_OVERHEAD + 8 * strips);
        page * u128::from(self.count) > u128::from(u32::MAX)
    }

    /// Where the strips of a plane start, counted from its first byte, and how long they are.
    fn strips(&self) -> (Vec<u64>, Vec<u64>) {
        let starts = (0..self.height).step_by(usize::try_from(self.rows_per_strip).unwrap_or(1));
        let rows = starts.clone().map(|start| {
            let rows = (self.height - start).min(self.rows_per_strip);
            rows * self.row
        });
        (
            starts.clone().map(|start| start * self.row).collect(),
            rows.collect(),
        )
    }
}

/// Bits and sort of the elements.
fn samples(dtype: DType) -> (u16, SampleFormat) {
    let format = match dtype {
        _ if dtype.is_float() => SampleFormat::IEEEFP,
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => SampleFormat::Int,
        _ => SampleFormat::Uint,
    };
    // Elements have eight bytes at most.
    (u16::try_from(8 * dtype.bytes()).unwrap_or(64), format)
}

/// Writes a list of places or lengths, as wide as this kind of file wants them.
type WriteList<W, K> = fn(&mut DirectoryEncoder<'_, W, K>, Tag, &[u64]) -> Result<(), TiffError>;

fn pages<W: Write + Seek, K: TiffKind>(
    file: W,
    image: &Image,
    planes: &Planes,
    write_list: WriteList<W, K>,
) -> Result<(), TiffError> {
    let (starts, lengths) = planes.strips();
    let (bits, format) = samples(image.dtype());
    let mut encoder = TiffEncoder::<_, K>::new_generic(file)?;
    let mut first_byte = 0;
    for at in 0..planes.count {
        let mut page = encoder.image_directory()?;
        if at == 0 {
            first_byte = page.write_data(image.bytes())?;
            // Directories begin at even places.
            if !image.bytes().len().is_multiple_of(2) {
                page.write_data(0_u8)?;
            }
            if let Some(text) = layout::describe(image.shape()) {
                page.write_tag(Tag::ImageDescription, text.as_str())?;
            }
        }
        let plane = first_byte + at * planes.height * planes.row;
        let starts: Vec<u64> = starts.iter().map(|start| plane + start).collect();
        page.write_tag(Tag::ImageWidth, u32::try_from(planes.width)?)?;
        page.write_tag(Tag::ImageLength, u32::try_from(planes.height)?)?;
        page.write_tag(Tag::BitsPerSample, bits)?;
        page.write_tag(Tag::Compression, CompressionMethod::None.to_u16())?;
        page.write_tag(
            Tag::PhotometricInterpretation,
            PhotometricInterpretation::BlackIsZero.to_u16(),
        )?;
        write_list(&mut page, Tag::StripOffsets, &starts)?;
        page.write_tag(Tag::SamplesPerPixel, 1_u16)?;
        page.write_tag(Tag::RowsPerStrip, u32::try_from(planes.rows_per_strip)?)?;
        write_list(&mut page, Tag::StripByteCounts, &lengths)?;
        page.write_tag(Tag::SampleFormat, format.to_u16())?;
        page.finish()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use warploom_core::Shape;

    use super::*;

    fn planes(count: u64, height: u64, width: u64) -> Planes {
        Planes {
            count,
            height,
            width,
            row: width,
            rows_per_strip: (STRIP / width).clamp(1, height),
        }
    }

    #[test]
    fn four_gibibytes_are_the_end_of_classic_tiff() {
        assert!(!planes(4000, 1000, 1000).need_big());
        assert!(!planes(1, 65_535, 65_535).need_big());
        assert!(planes(1, 65_536, 65_536).need_big());
        assert!(planes(9_000_000, 1, 1).need_big());
        assert!(planes(1 << 40, 1 << 20, 1 << 2).need_big());
    }

    #[test]
    fn strips_cover_every_row_once() {
        let (starts, lengths) = planes(1, 2500, 1000).strips();
        assert_eq!(starts, [0, 1_048_000, 2_096_000]);
        assert_eq!(lengths, [1_048_000, 1_048_000, 404_000]);
    }

    #[test]
    fn both_kinds_hold_the_same() {
        let shape = Shape::new(&[3, 1, 3]).unwrap();
        let image = Image::new(shape, &[1_u8, 2, 3, 4, 5, 6, 7, 8, 9]).unwrap();
        let planes = Planes::of(&image);
        let mut classic = Cursor::new(Vec::new());
        write(&mut classic, &image).unwrap();
        let mut big = Cursor::new(Vec::new());
        pages::<_, TiffKindBig>(&mut big, &image, &planes, |page, tag, list| {
            page.write_tag(tag, list)
        })
        .unwrap();
        assert_eq!(classic.get_ref()[2], 42);
        assert_eq!(big.get_ref()[2], 43);
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in [("classic.tif", classic), ("big.tif", big)] {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes.into_inner()).unwrap();
            assert_eq!(crate::read(&path).unwrap(), image, "{name}");
        }
    }
}
