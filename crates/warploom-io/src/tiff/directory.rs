//! The skeleton of a TIFF file: directories of tags, one after another.

use std::collections::{BTreeMap, HashSet};

use crate::error::Fault;
use crate::region::index;
use crate::store::Store;

pub(super) const SUBFILE_TYPE: u16 = 254;
pub(super) const WIDTH: u16 = 256;
pub(super) const HEIGHT: u16 = 257;
pub(super) const BITS: u16 = 258;
pub(super) const COMPRESSION: u16 = 259;
pub(super) const PHOTOMETRIC: u16 = 262;
pub(super) const FILL_ORDER: u16 = 266;
pub(super) const DESCRIPTION: u16 = 270;
pub(super) const STRIP_OFFSETS: u16 = 273;
pub(super) const SAMPLES: u16 = 277;
pub(super) const ROWS_PER_STRIP: u16 = 278;
pub(super) const STRIP_BYTES: u16 = 279;
pub(super) const X_RESOLUTION: u16 = 282;
pub(super) const Y_RESOLUTION: u16 = 283;
pub(super) const PREDICTOR: u16 = 317;
pub(super) const TILE_WIDTH: u16 = 322;
pub(super) const TILE_HEIGHT: u16 = 323;
pub(super) const TILE_OFFSETS: u16 = 324;
pub(super) const TILE_BYTES: u16 = 325;
pub(super) const SAMPLE_FORMAT: u16 = 339;
/// SGI's tag for volumes that are one page.
pub(super) const IMAGE_DEPTH: u16 = 32_997;

/// No page of any program has more tags.
const MOST_TAGS: u64 = 4096;

/// What a description may have; a file of OME-XML for ten thousand planes is some megabytes.
const LONGEST_TEXT: u64 = 1 << 28;

/// How numbers are stored in this file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Encoding {
    pub(super) big_endian: bool,
    /// BigTIFF: places and counts have 64 bits.
    pub(super) wide: bool,
}

impl Encoding {
    fn number(self, bytes: &[u8]) -> u64 {
        let mut padded = [0_u8; 8];
        if self.big_endian {
            padded[8 - bytes.len()..].copy_from_slice(bytes);
            u64::from_be_bytes(padded)
        } else {
            padded[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(padded)
        }
    }
}

/// A list of numbers, or a text: where it is, not what it says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct List {
    kind: u16,
    pub(super) count: u64,
    at: u64,
}

impl List {
    /// Bytes of one element; 0 for types that are none of the format.
    fn width(self) -> u64 {
        match self.kind {
            1 | 2 | 6 | 7 => 1,
            3 | 8 => 2,
            4 | 9 | 11 | 13 => 4,
            5 | 10 | 12 | 16 | 17 | 18 => 8,
            _ => 0,
        }
    }

    fn bytes(self) -> u64 {
        self.width().saturating_mul(self.count)
    }

    fn is_unsigned(self) -> bool {
        matches!(self.kind, 1 | 3 | 4 | 7 | 13 | 16 | 18)
    }
}

/// One directory: the tags of a page.
#[derive(Clone, Debug, Default)]
pub(super) struct Directory {
    tags: BTreeMap<u16, List>,
}

/// Reads directories, and what they refer to.
#[derive(Debug)]
pub(super) struct Directories {
    pub(super) encoding: Encoding,
    next: u64,
    seen: HashSet<u64>,
    /// Bytes of directories and lists that may still be read. In no sensible file they overlap, so
    /// all together are at most the file; this keeps the time that a hostile one costs linear.
    left: u64,
}

impl Directories {
    /// Reads the beginning of a file.
    pub(super) fn open(store: &mut Store) -> Result<Self, Fault> {
        let length = store.length();
        let first = store.peek(0, 8, "its header")?;
        let big_endian = first.starts_with(b"MM");
        let narrow = Encoding {
            big_endian,
            wide: false,
        };
        let wide = narrow.number(&first[2..4]) == 43;
        let encoding = Encoding { big_endian, wide };
        let next = if wide {
            let header = store.peek(0, 16, "its header")?;
            if encoding.number(&header[4..6]) != 8 {
                return Err(Fault::damaged("its places have other than 64 bits"));
            }
            encoding.number(&header[8..16])
        } else {
            encoding.number(&first[4..8])
        };
        if next == 0 {
            return Err(Fault::damaged("it has no page"));
        }
        Ok(Self {
            encoding,
            next,
            seen: HashSet::new(),
            left: length,
        })
    }

    /// The next directory; `None` after the last.
    pub(super) fn next(&mut self, store: &mut Store) -> Result<Option<Directory>, Fault> {
        if self.next == 0 {
            return Ok(None);
        }
        let what = "a directory of tags";
        if !self.seen.insert(self.next) {
            return Err(Fault::damaged("its pages go round in a circle"));
        }
        let (count_width, entry, pointer) = if self.encoding.wide {
            (8, 20, 8)
        } else {
            (2, 12, 4)
        };
        let mut at = self.next;
        let count = self.encoding.number(store.peek(at, count_width, what)?);
        if count == 0 || count > MOST_TAGS {
            return Err(Fault::damaged(format!("a page has {count} tags")));
        }
        at += count_width as u64;
        let bytes = index(count) * entry + pointer;
        store.peek(at, bytes, what)?;
        self.spend(bytes as u64)?;
        let encoding = self.encoding;
        let table = store.peek(at, bytes, what)?;
        let mut directory = Directory::default();
        for (number, tag) in table[..bytes - pointer].chunks_exact(entry).enumerate() {
            let (id, kind) = (encoding.number(&tag[..2]), encoding.number(&tag[2..4]));
            let value = entry - pointer;
            let mut list = List {
                kind: u16::try_from(kind).unwrap_or(0),
                count: encoding.number(&tag[4..value]),
                at: at + (number * entry + value) as u64,
            };
            if list.bytes() > pointer as u64 {
                list.at = encoding.number(&tag[value..]);
            }
            // The first of two equal tags counts, as for libtiff.
            let id = u16::try_from(id).unwrap_or(0);
            directory.tags.entry(id).or_insert(list);
        }
        self.next = encoding.number(&table[bytes - pointer..]);
        Ok(Some(directory))
    }

    fn spend(&mut self, bytes: u64) -> Result<(), Fault> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(Fault::damaged("its tags claim more than the file holds")),
        }
    }

    /// A single number, or the first of a list.
    pub(super) fn number(
        &mut self,
        store: &mut Store,
        directory: &Directory,
        tag: u16,
    ) -> Result<Option<u64>, Fault> {
        let Some(list) = directory.tags.get(&tag) else {
            return Ok(None);
        };
        if !list.is_unsigned() || list.count == 0 {
            return Err(Fault::damaged(format!("its tag {tag} is no whole number")));
        }
        let width = index(list.width());
        let bytes = store.peek(list.at, width, "the value of a tag")?;
        Ok(Some(self.encoding.number(bytes)))
    }

    /// A fraction.
    pub(super) fn fraction(
        &mut self,
        store: &mut Store,
        directory: &Directory,
        tag: u16,
    ) -> Result<Option<f64>, Fault> {
        match directory.tags.get(&tag) {
            Some(list) if list.kind == 5 && list.count > 0 => {
                let bytes = store.peek(list.at, 8, "the value of a tag")?;
                let (above, below) = bytes.split_at(4);
                let value = self.encoding.number(above) as f64 / self.encoding.number(below) as f64;
                Ok((value.is_finite() && value > 0.0).then_some(value))
            }
            _ => Ok(None),
        }
    }

    /// A list of numbers, appended to `values`. All such lists together are at most the file.
    pub(super) fn numbers(
        &mut self,
        store: &mut Store,
        list: List,
        values: &mut Vec<u64>,
    ) -> Result<(), Fault> {
        self.spend(list.bytes())?;
        read_numbers(store, self.encoding, list, values)
    }

    /// A text, if there is one and it is one.
    pub(super) fn text(
        &mut self,
        store: &mut Store,
        directory: &Directory,
        tag: u16,
    ) -> Result<Option<String>, Fault> {
        let Some(list) = directory.tags.get(&tag).copied() else {
            return Ok(None);
        };
        // Some write UTF-8 and call it bytes.
        if !matches!(list.kind, 1 | 2 | 7) || list.count > LONGEST_TEXT {
            return Ok(None);
        }
        self.spend(list.count)?;
        let end = list.at.saturating_add(list.count);
        if end > store.length() {
            return Err(Fault::Short {
                what: "a description".into(),
                wanted: list.count,
                there: store.length().saturating_sub(list.at),
            });
        }
        let mut bytes = vec![0; index(list.count)];
        store.read_at(list.at, &mut bytes, "a description")?;
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }
}

impl Directory {
    /// The list of a tag.
    pub(super) fn list(&self, tag: u16) -> Option<List> {
        self.tags.get(&tag).copied()
    }
}

/// The numbers of a list, appended to `values`.
pub(super) fn read_numbers(
    store: &mut Store,
    encoding: Encoding,
    list: List,
    values: &mut Vec<u64>,
) -> Result<(), Fault> {
    if !list.is_unsigned() {
        return Err(Fault::damaged("a list of places is none of whole numbers"));
    }
    let width = list.width();
    let end = list.at.saturating_add(list.bytes());
    if end > store.length() {
        return Err(Fault::Short {
            what: "a list of places".into(),
            wanted: list.bytes(),
            there: store.length().saturating_sub(list.at),
        });
    }
    // In pieces, so that lists of millions do not become a window of megabytes.
    let per_piece = 1_u64 << 12;
    let mut done = 0;
    while done < list.count {
        let count = per_piece.min(list.count - done);
        let at = list.at + done * width;
        let bytes = store.peek(at, index(count * width), "a list of places")?;
        let numbers = bytes.chunks_exact(index(width));
        values.extend(numbers.map(|number| encoding.number(number)));
        done += count;
    }
    Ok(())
}
