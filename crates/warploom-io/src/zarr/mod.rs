//! Zarr version 3, and OME-NGFF 0.5 on top of it.
//!
//! The `zarrs` crate was not taken: it is 154 packages and doubles the time that building this crate
//! takes, for a reader that fits into a few files because the codecs are crates we have already.

mod blosc;
mod codec;
mod meta;
mod ngff;
mod write;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use warploom_core::{Axis, MAX_RANK, Shape};

use crate::error::Fault;
use crate::header::Header;
use crate::region::{Block, Region, cells, index, next_cell};
use crate::store::{Scratch, Store, make_room};
use codec::{Body, Shard};
use meta::Meta;

pub(crate) use write::write;

/// Is a folder something of Zarr's?
pub(crate) fn is_zarr(folder: &Path) -> bool {
    folder.join(meta::FILE).is_file()
}

/// What a folder is that has no `zarr.json`.
pub(crate) fn no_metadata(folder: &Path) -> Fault {
    let is_old = [".zarray", ".zgroup", ".zattrs"]
        .iter()
        .any(|name| folder.join(name).exists());
    if is_old {
        Fault::Unread {
            what: "Zarr of version 2".into(),
            instead: "convert it to version 3, as with `zarr migrate v3`".into(),
        }
    } else {
        Fault::damaged(format!("it has no {}", meta::FILE))
    }
}

/// Whether Zarr has a name for a type.
pub(crate) fn has_type(dtype: warploom_core::DType) -> bool {
    meta::type_name(dtype).is_some()
}

/// The images of a plate or well: what to call each, and where it is.
pub(crate) fn members(folder: &Path) -> Result<Option<Vec<(String, PathBuf)>>, Fault> {
    let Some(paths) = ngff::members(&meta::read(folder)?) else {
        return Ok(None);
    };
    let mut images = Vec::new();
    for path in paths {
        let member = folder.join(&path);
        match ngff::members(&meta::read(&member)?) {
            Some(fields) => images.extend(
                fields
                    .into_iter()
                    .map(|field| (format!("{path}/{field}"), member.join(field))),
            ),
            None => images.push((path, member)),
        }
    }
    Ok(Some(images))
}

/// An open array.
#[derive(Debug)]
pub(crate) struct ZarrImage {
    folder: PathBuf,
    meta: Meta,
    header: Header,
    more: Vec<u8>,
}

impl ZarrImage {
    /// Opens an array, or the array of a resolution of an image.
    pub(crate) fn open(folder: &Path, level: usize) -> Result<Self, Fault> {
        let value = meta::read(folder)?;
        match value.get("node_type").and_then(Value::as_str) {
            Some("array") if level == 0 => {
                let meta = Meta::parse(&value)?;
                let names = meta.names.iter();
                let axes = names
                    .map(|name| ngff::axis_named(name.as_deref()?))
                    .collect();
                let shape = shape(&meta, axes)?;
                Ok(Self::new(folder, meta, |dtype| Header::new(dtype, shape)))
            }
            Some("array") => Err(Fault::Unread {
                what: "one resolution".into(),
                instead: "choose level 0, or name the group that it is in".into(),
            }),
            Some("group") => {
                let level = ngff::level(&value, level)?;
                let folder = folder.join(&level.path);
                let meta = Meta::parse(&meta::read(&folder)?)?;
                let shape = shape(&meta, Some(level.axes))?;
                let is_named = shape.extent(Axis::C) == Some(level.channels.len() as u64);
                let channels = if is_named { level.channels } else { Vec::new() };
                Ok(Self::new(&folder, meta, |dtype| {
                    Header::new(dtype, shape)
                        .with_channels(channels)
                        .with_spacing(level.spacing)
                }))
            }
            _ => Err(Fault::damaged("it is neither an array nor a group")),
        }
    }

    fn new(folder: &Path, meta: Meta, header: impl FnOnce(warploom_core::DType) -> Header) -> Self {
        Self {
            folder: folder.to_owned(),
            header: header(meta.dtype),
            meta,
            more: Vec::new(),
        }
    }

    pub(crate) fn header(&self) -> Header {
        self.header.clone()
    }

    /// Reads a part.
    pub(crate) fn read(
        &mut self,
        region: &Region,
        out: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<(), Fault> {
        // Chunks that are not there are this.
        if self.meta.fill.iter().all(|byte| *byte == 0) {
            out.fill(0);
        } else {
            for element in out.chunks_exact_mut(self.meta.fill.len()) {
                element.copy_from_slice(&self.meta.fill);
            }
        }
        let rank = self.meta.shape.len();
        let (first, last) = cells(region, &self.meta.chunk);
        let mut cell = first;
        loop {
            scratch.go_on()?;
            let key = self.meta.key(&cell[..rank]);
            if let Some(mut store) = open(&self.folder.join(&key))? {
                let mut start = [0; MAX_RANK];
                for at in 0..rank {
                    start[at] = cell[at].saturating_mul(self.meta.chunk[at]);
                }
                self.read_chunk(&mut store, &start[..rank], region, out, scratch)
                    .map_err(|fault| fault.within(&key))?;
            }
            if !next_cell(&mut cell[..rank], &first, &last) {
                break;
            }
        }
        if self.meta.is_bool {
            for value in out {
                *value = u8::from(*value != 0);
            }
        }
        Ok(())
    }

    fn read_chunk(
        &mut self,
        store: &mut Store,
        start: &[u64],
        region: &Region,
        out: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<(), Fault> {
        let element = index(self.meta.dtype.bytes());
        if let Body::Shard(shard) = &self.meta.chain.body {
            let chunk = Chunk {
                start,
                extent: &self.meta.chunk,
                element,
            };
            return read_shard(shard, store, &chunk, region, out, scratch, &mut self.more);
        }
        make_room(&mut scratch.stored, store.length())?;
        store.read_at(0, &mut scratch.stored, "a chunk")?;
        let chain = &self.meta.chain;
        chain.decode(
            &self.meta.chunk,
            element,
            &mut scratch.stored,
            &mut scratch.decoded,
            &mut self.more,
        )?;
        Block {
            start,
            extent: &self.meta.chunk,
            bytes: &scratch.stored,
            element,
        }
        .place(region, out);
        Ok(())
    }
}

/// A box of the array that is one file.
struct Chunk<'c> {
    start: &'c [u64],
    extent: &'c [u64],
    element: usize,
}

/// The chunks of a shard that have something of the region.
fn read_shard(
    shard: &Shard,
    store: &mut Store,
    file: &Chunk<'_>,
    region: &Region,
    out: &mut [u8],
    scratch: &mut Scratch,
    more: &mut Vec<u8>,
) -> Result<(), Fault> {
    let rank = file.start.len();
    let damaged = |what: &str| Fault::damaged(format!("a shard {what}"));
    let Some(common) = region.common(file.start, file.extent) else {
        return Ok(());
    };
    let mut grid = [1; MAX_RANK];
    let sides = file.extent.iter().zip(&shard.chunk);
    for (count, (whole, chunk)) in grid.iter_mut().zip(sides) {
        if !whole.is_multiple_of(*chunk) {
            return Err(damaged("is no multiple of its chunks"));
        }
        *count = whole / chunk;
    }
    // The index has a place and a size for every chunk.
    let mut extent = [2; MAX_RANK + 1];
    extent[..rank].copy_from_slice(&grid[..rank]);
    let chunks = grid
        .iter()
        .try_fold(1_u64, |n, extent| n.checked_mul(*extent));
    let bytes = chunks.and_then(|chunks| shard.index_bytes(chunks));
    let bytes = bytes.filter(|bytes| *bytes <= store.length());
    let bytes = bytes.ok_or_else(|| damaged("is shorter than its index"))?;
    let at = if shard.index_first {
        0
    } else {
        store.length() - bytes
    };
    let mut places = vec![0; index(bytes)];
    store.read_at(at, &mut places, "the index of a shard")?;
    shard
        .index
        .decode(&extent[..=rank], 8, &mut places, &mut scratch.decoded, more)?;
    // Cells are counted within the shard.
    let mut inside = [0; MAX_RANK];
    let starts = common.start().iter().zip(file.start);
    for (inside, (start, of_file)) in inside.iter_mut().zip(starts) {
        *inside = start - of_file;
    }
    let Some(inside) = Region::new(&inside[..rank], common.extent()) else {
        return Ok(());
    };
    let (first, last) = cells(&inside, &shard.chunk);
    let mut cell = first;
    loop {
        scratch.go_on()?;
        let number = (0..rank).fold(0, |sum, at| sum * grid[at] + cell[at]);
        let entry = &places[index(number) * 16..][..16];
        let word = |at: usize| {
            let word: [u8; 8] = entry[at..at + 8].try_into().unwrap_or([0; 8]);
            u64::from_ne_bytes(word)
        };
        let (offset, size) = (word(0), word(8));
        if (offset, size) != (u64::MAX, u64::MAX) {
            if offset.saturating_add(size) > store.length() {
                return Err(damaged("is shorter than its index says"));
            }
            make_room(&mut scratch.stored, size)?;
            store.read_at(offset, &mut scratch.stored, "a chunk of a shard")?;
            shard.chain.decode(
                &shard.chunk,
                file.element,
                &mut scratch.stored,
                &mut scratch.decoded,
                more,
            )?;
            let mut start = [0; MAX_RANK];
            for at in 0..rank {
                start[at] = file.start[at] + cell[at] * shard.chunk[at];
            }
            Block {
                start: &start[..rank],
                extent: &shard.chunk,
                bytes: &scratch.stored,
                element: file.element,
            }
            .place(region, out);
        }
        if !next_cell(&mut cell[..rank], &first, &last) {
            return Ok(());
        }
    }
}

fn open(path: &Path) -> Result<Option<Store>, Fault> {
    let opened = File::open(path).and_then(|file| {
        let length = file.metadata()?.len();
        Ok(Store::file(file, length))
    });
    match opened {
        Ok(store) => Ok(Some(store)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Fault::open(&error)),
    }
}

/// The extent with these axes, or, where they make no sense, with the usual ones.
fn shape(meta: &Meta, axes: Option<Vec<Axis>>) -> Result<Shape, Fault> {
    let labelled = axes.and_then(|axes| Shape::with_axes(&axes, &meta.shape).ok());
    match labelled {
        Some(shape) => Ok(shape),
        None => Shape::new(&meta.shape).map_err(Fault::damaged),
    }
}
