//! Writing: first the pixels of all planes, then a page for each, uncompressed, from the first byte
//! to the last without going back.
//!
//! All pixels lie together, because tifffile and ImageJ take pages that they find described as one
//! image for one piece, and because others can map them into memory.

use std::io::Write;

use warploom_core::DType;

use super::{describe, directory as tag, ome};
use crate::error::Fault;
use crate::format::Format;
use crate::header::Header;

/// Strips are made about this long: what readers are used to, and can decode in parallel.
const STRIP: u64 = 1 << 20;

/// Where pixels begin, in both kinds of file.
const FIRST: u64 = 16;

/// Whether OME-XML has words for such an image.
pub(crate) fn check_ome(header: &Header) -> Result<(), Fault> {
    let no = |what, instead| {
        Err(Fault::Unholdable {
            format: Format::Tiff,
            what,
            instead,
        })
    };
    if ome::type_name(header.dtype).is_none() {
        let what = format!("{} elements as OME-TIFF", header.dtype);
        return no(what, "write it to .tif, .npy or .zarr");
    }
    if ome::order(header.shape.axes()).is_none() {
        let what = format!("axes {:?} as OME-TIFF", header.shape.axes());
        return no(what, "write it to .tif or .npy");
    }
    Ok(())
}

/// Writes an image that `Format::takes` has agreed to; as OME-TIFF where it has a name.
pub(crate) fn write(
    file: &mut impl Write,
    header: &Header,
    bytes: &[u8],
    ome: Option<&str>,
) -> Result<(), Fault> {
    let text = match ome {
        Some(name) => ome::text(header, name),
        None => describe::text(header),
    };
    let planes = Planes::of(header);
    let wide = planes.need_wide(text.as_deref());
    planes
        .write(file, bytes, text.as_deref(), wide)
        .map_err(|error| Fault::write(&error))
}

/// How an image falls into pages and strips.
#[derive(Debug)]
struct Planes {
    dtype: DType,
    count: u64,
    height: u64,
    width: u64,
    /// Bytes of a row.
    row: u64,
    rows_per_strip: u64,
}

/// The bytes of a page's tags while they are put together.
struct Tags {
    wide: bool,
    count: u64,
    entries: Vec<u8>,
}

impl Tags {
    fn add(&mut self, tag: u16, kind: u16, count: u64, value: &[u8]) {
        self.count += 1;
        self.entries.extend(tag.to_ne_bytes());
        self.entries.extend(kind.to_ne_bytes());
        self.entries.extend(place(count, self.wide));
        let room = if self.wide { 8 } else { 4 };
        self.entries.extend(value);
        self.entries
            .extend(std::iter::repeat_n(0, room - value.len()));
    }

    fn short(&mut self, tag: u16, value: u16) {
        self.add(tag, 3, 1, &value.to_ne_bytes());
    }

    fn long(&mut self, tag: u16, value: u64) {
        // Extents were checked to have 32 bits.
        let value = u32::try_from(value).unwrap_or(u32::MAX);
        self.add(tag, 4, 1, &value.to_ne_bytes());
    }
}

/// A place or a count in the file.
fn place(value: u64, wide: bool) -> Vec<u8> {
    if wide {
        return value.to_ne_bytes().to_vec();
    }
    let value = u32::try_from(value).unwrap_or(u32::MAX);
    value.to_ne_bytes().to_vec()
}

/// Directories begin at even places, and BigTIFF's numbers at multiples of eight.
fn padding(at: u64) -> usize {
    let missing = at.next_multiple_of(8) - at;
    usize::try_from(missing).unwrap_or(0)
}

impl Planes {
    fn of(header: &Header) -> Self {
        let dims = header.shape.dims();
        let (stack, plane) = dims.split_at(dims.len() - 2);
        let row = plane[1] * header.dtype.bytes();
        Self {
            dtype: header.dtype,
            count: stack.iter().product(),
            height: plane[0],
            width: plane[1],
            row,
            rows_per_strip: (STRIP / row).clamp(1, plane[0]),
        }
    }

    fn strips(&self) -> u64 {
        self.height.div_ceil(self.rows_per_strip)
    }

    /// Bytes of the lists of one page: none where a value fits into its tag.
    fn lists(&self, wide: bool) -> u64 {
        let width = if wide { 8 } else { 4 };
        let bytes = match self.strips() {
            1 => 0,
            strips => 2 * strips * width,
        };
        bytes.next_multiple_of(8)
    }

    /// Classic TIFF counts bytes with 32 bits.
    fn need_wide(&self, text: Option<&str>) -> bool {
        let text = text.map_or(0, str::len) as u128;
        let pixels = u128::from(self.height) * u128::from(self.row);
        // A page's tags have less than 200 bytes.
        let page = pixels + u128::from(self.lists(false)) + 200;
        page * u128::from(self.count) + text + 64 > u128::from(u32::MAX)
    }

    fn write(
        &self,
        file: &mut impl Write,
        bytes: &[u8],
        text: Option<&str>,
        wide: bool,
    ) -> std::io::Result<()> {
        let pixels_end = FIRST + bytes.len() as u64;
        let text_at = pixels_end + padding(pixels_end) as u64;
        let text_end = text_at + text.map_or(0, |text| text.len() as u64 + 1);
        let mut at = text_end + padding(text_end) as u64;
        let mut head = Vec::new();
        head.extend(if cfg!(target_endian = "big") {
            b"MM"
        } else {
            b"II"
        });
        head.extend((if wide { 43_u16 } else { 42 }).to_ne_bytes());
        if wide {
            head.extend(8_u16.to_ne_bytes());
            head.extend(0_u16.to_ne_bytes());
        }
        let lists = self.lists(wide);
        head.extend(place(at + lists, wide));
        head.resize(16, 0);
        file.write_all(&head)?;
        file.write_all(bytes)?;
        file.write_all(&[0; 8][..padding(pixels_end)])?;
        if let Some(text) = text {
            file.write_all(text.as_bytes())?;
            file.write_all(&[0])?;
        }
        file.write_all(&[0; 8][..padding(text_end)])?;
        for page in 0..self.count {
            let description = text
                .filter(|_| page == 0)
                .map(|text| (text_at, text.len() as u64 + 1));
            let block = self.page(page, at, description, wide);
            at += block.len() as u64;
            file.write_all(&block)?;
            at += ptr(wide);
            if page + 1 == self.count {
                file.write_all(&place(0, wide))?;
                break;
            }
            let gap = padding(at);
            at += gap as u64;
            file.write_all(&place(at + lists, wide))?;
            file.write_all(&[0; 8][..gap])?;
        }
        Ok(())
    }

    /// A page's lists and tags, to be at `at`; what is left to be written is where the next is.
    fn page(&self, page: u64, at: u64, description: Option<(u64, u64)>, wide: bool) -> Vec<u8> {
        let mut block = Vec::new();
        let first = FIRST + page * self.height * self.row;
        let strip = self.rows_per_strip * self.row;
        let strips = self.strips();
        let starts = (0..strips).map(|at| first + at * strip);
        let sizes = (0..strips).map(|at| strip.min(self.height * self.row - at * strip));
        if strips > 1 {
            block.extend(starts.clone().flat_map(|start| place(start, wide)));
            block.extend(sizes.clone().flat_map(|size| place(size, wide)));
            block.resize(block.len().next_multiple_of(8), 0);
        }
        // The value, or where the list of them is.
        let list = |mut values: Box<dyn Iterator<Item = u64> + '_>, at: u64| match strips {
            1 => place(values.next().unwrap_or(0), wide),
            _ => place(at, wide),
        };
        let kind = if wide { 16 } else { 4 };
        let mut tags = Tags {
            wide,
            count: 0,
            entries: Vec::new(),
        };
        tags.long(tag::WIDTH, self.width);
        tags.long(tag::HEIGHT, self.height);
        // Elements have eight bytes at most.
        let bits = u16::try_from(8 * self.dtype.bytes()).unwrap_or(64);
        tags.short(tag::BITS, bits);
        tags.short(tag::COMPRESSION, 1);
        tags.short(tag::PHOTOMETRIC, 1);
        if let Some((at, count)) = description {
            tags.add(tag::DESCRIPTION, 2, count, &place(at, wide));
        }
        let starts = list(Box::new(starts), at);
        tags.add(tag::STRIP_OFFSETS, kind, strips, &starts);
        tags.short(tag::SAMPLES, 1);
        tags.long(tag::ROWS_PER_STRIP, self.rows_per_strip);
        let sizes = list(Box::new(sizes), at + strips * ptr(wide));
        tags.add(tag::STRIP_BYTES, kind, strips, &sizes);
        let format = match self.dtype {
            dtype if dtype.is_float() => 3,
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => 2,
            _ => 1,
        };
        tags.short(tag::SAMPLE_FORMAT, format);
        if wide {
            block.extend(tags.count.to_ne_bytes());
        } else {
            let count = u16::try_from(tags.count).unwrap_or(0);
            block.extend(count.to_ne_bytes());
        }
        block.extend(tags.entries);
        block
    }
}

/// Bytes of a place in the file.
fn ptr(wide: bool) -> u64 {
    if wide { 8 } else { 4 }
}

#[cfg(test)]
mod tests {
    use warploom_core::Shape;

    use super::*;
    use crate::image::Image;

    fn planes(count: u64, height: u64, width: u64) -> Planes {
        let shape = Shape::new(&[count, height, width]).unwrap();
        Planes::of(&Header::new(DType::U8, shape))
    }

    #[test]
    fn four_gibibytes_are_the_end_of_classic_tiff() {
        assert!(!planes(4000, 1000, 1000).need_wide(None));
        assert!(!planes(1, 65_535, 65_535).need_wide(None));
        assert!(planes(1, 65_536, 65_536).need_wide(None));
        assert!(planes(22_000_000, 1, 1).need_wide(None));
        assert!(planes(1 << 30, 1 << 20, 1 << 2).need_wide(None));
    }

    #[test]
    fn both_kinds_hold_the_same() {
        for dims in [&[3, 1, 3][..], &[2, 2500, 1000], &[1, 5], &[7, 1]] {
            let shape = Shape::new(dims).unwrap();
            let mut image = Image::zeroed(DType::U8, shape).unwrap();
            for (at, byte) in image.bytes_mut().iter_mut().enumerate() {
                *byte = (at * 7 % 251).to_le_bytes()[0];
            }
            let header = Header::new(DType::U8, shape);
            let text = describe::text(&header);
            for wide in [false, true] {
                let mut file = Vec::new();
                Planes::of(&header)
                    .write(&mut file, image.bytes(), text.as_deref(), wide)
                    .unwrap();
                assert_eq!(file[2], if wide { 43 } else { 42 });
                let back = crate::read_bytes(Format::Tiff, &file).unwrap();
                assert_eq!(back, image, "{dims:?} {wide}");
            }
        }
    }
}
