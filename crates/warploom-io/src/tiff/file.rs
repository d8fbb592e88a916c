//! An open TIFF file: what it holds, and any part of it.

use warploom_core::MAX_RANK;

use super::codec::{self, Codecs};
use super::directory::{DESCRIPTION, Directories, Encoding, read_numbers};
use super::page::{Compression, Page, Predictor};
use super::series::{self, Entry, Planes, Series};
use crate::error::Fault;
use crate::header::Header;
use crate::region::{Block, Region, index, next_cell};
use crate::store::{Scratch, Store, make_room};

/// An open file.
#[derive(Debug)]
pub(crate) struct TiffFile {
    store: Store,
    encoding: Encoding,
    entries: Vec<Entry>,
    series: Vec<Series>,
    codecs: Codecs,
    /// Where the pieces of one page are: the page, places, sizes.
    listed: Option<usize>,
    offsets: Vec<u64>,
    sizes: Vec<u64>,
}

impl TiffFile {
    /// Reads everything but pixels, and checks that the pixels can be there.
    pub(crate) fn open(mut store: Store) -> Result<Self, Fault> {
        let mut directories = Directories::open(&mut store)?;
        let mut entries = Vec::new();
        let mut first = None;
        let (mut offsets, mut sizes) = (Vec::new(), Vec::new());
        while let Some(directory) = directories.next(&mut store)? {
            let page = Page::of(&mut store, &mut directories, &directory);
            entries.push(match page {
                Ok(Some(page)) => {
                    offsets.clear();
                    sizes.clear();
                    directories.numbers(&mut store, page.offsets, &mut offsets)?;
                    if let Some(list) = page.sizes {
                        directories.numbers(&mut store, list, &mut sizes)?;
                    }
                    complete(&page, &mut offsets, &mut sizes);
                    page.check(&offsets, &sizes, store.length())?;
                    Entry::Page(page)
                }
                Ok(None) => Entry::Copy,
                Err(fault @ Fault::Unread { .. }) => Entry::Unread(fault),
                Err(fault) => return Err(fault),
            });
            first.get_or_insert(directory);
        }
        let first = first.unwrap_or_default();
        let text = directories.text(&mut store, &first, DESCRIPTION)?;
        let series = series::find(
            &mut store,
            &mut directories,
            &first,
            text.as_deref(),
            &entries,
        )?;
        Ok(Self {
            store,
            encoding: directories.encoding,
            entries,
            series,
            codecs: Codecs::default(),
            listed: None,
            offsets,
            sizes,
        })
    }

    /// How many images there are.
    pub(crate) fn series(&self) -> usize {
        self.series.len()
    }

    /// What one of them is.
    pub(crate) fn header(&self, series: usize) -> Option<&Header> {
        self.series.get(series).map(|series| &series.header)
    }

    /// Reads a part of an image into `out`, which is as long as that part.
    pub(crate) fn read(
        &mut self,
        series: usize,
        region: &Region,
        out: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<(), Fault> {
        let shape = self.series[series].header.shape;
        let stack = shape.rank() - 2;
        let (start, extent) = (region.start(), region.extent());
        let window = Region::new(&start[stack..], &extent[stack..]);
        let Some(window) = window.filter(|window| window.elements() > 0) else {
            return Ok(());
        };
        let bytes = index(window.elements() * self.series[series].header.dtype.bytes());
        let mut plane = [0; MAX_RANK];
        let mut last = [0; MAX_RANK];
        for at in 0..stack {
            plane[at] = start[at];
            last[at] = start[at] + extent[at] - 1;
        }
        for out in out.chunks_exact_mut(bytes) {
            scratch.go_on()?;
            let number = (0..stack).fold(0, |sum, at| sum * shape.dims()[at] + plane[at]);
            self.read_plane(series, number, &window, out, scratch)?;
            next_cell(&mut plane[..stack], start, &last[..stack]);
        }
        Ok(())
    }

    fn read_plane(
        &mut self,
        series: usize,
        number: u64,
        window: &Region,
        out: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<(), Fault> {
        let (at, shift) = match &self.series[series].planes {
            Planes::Pages(pages) => (pages[index(number)], None),
            Planes::Behind { page, first, order } => {
                let number = order.as_ref().map_or(number, |order| order[index(number)]);
                (*page, Some((*first, number)))
            }
        };
        let Entry::Page(page) = &self.entries[at] else {
            return Err(Fault::damaged("a plane is no image"));
        };
        let page = *page;
        if let Some((first, number)) = shift {
            // Pages that are not there look like one strip.
            self.listed = None;
            self.offsets.clear();
            self.sizes.clear();
            let bytes = page.plane.stored_bytes();
            self.offsets.push(first + number * bytes);
            self.sizes.push(bytes);
            let page = Page {
                piece_height: page.plane.height,
                ..page
            };
            return self.read_strips(&page, window, out, scratch);
        }
        self.list(at, &page)?;
        let is_plain = page.compression == Compression::None
            && page.predictor == Predictor::None
            && !page.plane.packed;
        if is_plain && !page.is_tiled {
            self.read_strips(&page, window, out, scratch)
        } else {
            self.read_pieces(&page, window, out, scratch)
        }
    }

    /// Where the pieces of a page are.
    fn list(&mut self, at: usize, page: &Page) -> Result<(), Fault> {
        if self.listed == Some(at) {
            return Ok(());
        }
        self.listed = None;
        self.offsets.clear();
        self.sizes.clear();
        read_numbers(
            &mut self.store,
            self.encoding,
            page.offsets,
            &mut self.offsets,
        )?;
        if let Some(list) = page.sizes {
            read_numbers(&mut self.store, self.encoding, list, &mut self.sizes)?;
        }
        complete(page, &mut self.offsets, &mut self.sizes);
        self.listed = Some(at);
        Ok(())
    }

    /// Rows that lie in the file as they do in memory: strips that follow each other are read in
    /// one go, right to where they belong.
    fn read_strips(
        &mut self,
        page: &Page,
        window: &Region,
        out: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<(), Fault> {
        let element = page.plane.dtype.bytes();
        let row = page.plane.row_bytes(page.plane.width);
        let (top, left) = (window.start()[0], window.start()[1]);
        let (height, width) = (window.extent()[0], window.extent()[1]);
        let is_whole = width == page.plane.width;
        let mut y = top;
        let mut done = 0;
        while y < top + height {
            scratch.go_on()?;
            let strip = y / page.piece_height;
            let within = y % page.piece_height;
            let mut at = self.offsets[index(strip)] + within * row;
            let mut rows = (page.piece_height - within).min(top + height - y);
            // The strips that follow at once.
            let mut next = strip + 1;
            while y + rows < top + height
                && self.offsets.get(index(next)) == Some(&(at + rows * row))
            {
                rows += page.piece_height.min(top + height - y - rows);
                next += 1;
            }
            let bytes = index(rows * width * element);
            let to = &mut out[done..done + bytes];
            if is_whole {
                self.store.read_at(at, to, "rows of a page")?;
            } else {
                for to in to.chunks_exact_mut(index(width * element)) {
                    self.store
                        .read_at(at + left * element, to, "rows of a page")?;
                    at += row;
                }
            }
            if self.encoding.big_endian != cfg!(target_endian = "big") {
                codec::swap(to, index(element));
            }
            done += bytes;
            y += rows;
        }
        Ok(())
    }

    /// Pieces that have to be decoded, or put in their places.
    fn read_pieces(
        &mut self,
        page: &Page,
        window: &Region,
        out: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<(), Fault> {
        let size = [page.piece_height, page.piece_width];
        let (first, last) = crate::region::cells(window, &size);
        let mut cell = [first[0], first[1]];
        loop {
            scratch.go_on()?;
            let number = cell[0] * page.across() + cell[1];
            let at = index(number);
            make_room(&mut scratch.stored, self.sizes[at])?;
            self.store
                .read_at(self.offsets[at], &mut scratch.stored, "a part of a page")?;
            let bytes = page.piece_bytes(number);
            make_room(&mut scratch.decoded, bytes)?;
            codec::decode(
                &mut self.codecs,
                page,
                self.encoding.big_endian,
                &scratch.stored,
                &mut scratch.decoded,
                &mut scratch.spare,
            )?;
            let rows = bytes / page.plane.row_bytes(page.piece_width);
            let mut pixels = &scratch.decoded;
            if page.plane.packed {
                make_room(&mut scratch.spare, rows * page.piece_width)?;
                codec::unpack(
                    &scratch.decoded,
                    &mut scratch.spare,
                    index(page.piece_width),
                    page.low_bit_first,
                );
                pixels = &scratch.spare;
            }
            let block = Block {
                start: &[cell[0] * size[0], cell[1] * size[1]],
                extent: &[rows, page.piece_width],
                bytes: pixels,
                element: index(page.plane.dtype.bytes()),
            };
            block.place(window, out);
            if !next_cell(&mut cell, &first[..2], &last[..2]) {
                return Ok(());
            }
        }
    }
}

/// Makes both lists as long as there are pieces, and says what old programs left unsaid.
fn complete(page: &Page, offsets: &mut Vec<u64>, sizes: &mut Vec<u64>) {
    let pieces = index(page.pieces());
    offsets.truncate(pieces);
    sizes.truncate(pieces);
    if page.sizes.is_none() {
        sizes.push(page.plane.stored_bytes());
    }
}
