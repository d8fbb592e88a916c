//! Writing: one array, in chunks of planes, compressed by zstd; OME's description around it where OME
//! has words for the axes.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use serde_json::{Value, json};
use warploom_core::MAX_RANK;

use super::codec::Pack;
use super::{meta, ngff};
use crate::error::Fault;
use crate::header::Header;
use crate::region::{Block, Region, cells, index, next_cell};

/// Chunks have at most this many pixels along y and x: a megapixel, which viewers load at once.
const SIDE: u64 = 1024;

/// The fastest level that is not a negative one.
const LEVEL: i32 = 1;

/// Writes an image into a folder that is there and empty; `sync` waits for the disk.
pub(crate) fn write(
    folder: &Path,
    header: &Header,
    bytes: &[u8],
    name: &str,
    sync: bool,
) -> Result<(), Fault> {
    let written = write_all(folder, header, bytes, name, sync).and_then(|()| {
        if sync && !cfg!(windows) {
            sync_folders(folder)?;
        }
        Ok(())
    });
    written.map_err(|error| Fault::write(&error))
}

/// Names are in folders, which are files to be synced as well.
fn sync_folders(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    File::open(folder)?.sync_all()
}

fn write_all(
    folder: &Path,
    header: &Header,
    bytes: &[u8],
    name: &str,
    sync: bool,
) -> io::Result<()> {
    let Some(ome) = ngff::describe(header, name) else {
        return write_array(folder, header, bytes, sync);
    };
    let group = json!({
        "zarr_format": 3,
        "node_type": "group",
        "attributes": {"ome": ome},
    });
    let array = folder.join("0");
    fs::create_dir(&array)?;
    write_array(&array, header, bytes, sync)?;
    write_json(folder, &group, sync)
}

fn write_json(folder: &Path, value: &Value, sync: bool) -> io::Result<()> {
    let text = serde_json::to_vec_pretty(value)?;
    write_file(&folder.join(meta::FILE), &text, sync)
}

fn write_file(path: &Path, bytes: &[u8], sync: bool) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(bytes)?;
    if sync {
        file.sync_all()?;
    }
    Ok(())
}

fn write_array(folder: &Path, header: &Header, bytes: &[u8], sync: bool) -> io::Result<()> {
    let shape = &header.shape;
    let rank = shape.rank();
    let element = index(header.dtype.bytes());
    let mut chunk = [1; MAX_RANK];
    for (side, extent) in chunk
        .iter_mut()
        .zip(shape.dims())
        .skip(rank.saturating_sub(2))
    {
        *side = (*extent).clamp(1, SIDE);
    }
    let chunk = &chunk[..rank];
    let kind = meta::type_name(header.dtype).ok_or(io::ErrorKind::Unsupported)?;
    let names: Vec<&str> = shape
        .axes()
        .iter()
        .map(|axis| ngff::letter(*axis))
        .collect();
    let endian = if cfg!(target_endian = "big") {
        "big"
    } else {
        "little"
    };
    let fill = if header.dtype.is_float() {
        json!(0.0)
    } else {
        json!(0)
    };
    let value = json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape.dims(),
        "data_type": kind,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill,
        "codecs": [
            {"name": "bytes", "configuration": {"endian": endian}},
            {"name": "zstd", "configuration": {"level": LEVEL, "checksum": false}},
        ],
        "dimension_names": names,
        "attributes": {},
    });
    let pack = Pack::Zstd {
        level: LEVEL,
        checksum: false,
    };
    let whole = Region::whole(shape);
    if whole.elements() > 0 {
        let (first, last) = cells(&whole, chunk);
        let mut cell = first;
        let mut pixels = vec![0; index(chunk.iter().product::<u64>()) * element];
        let mut folder_made = None;
        loop {
            let mut start = [0; MAX_RANK];
            for at in 0..rank {
                start[at] = cell[at] * chunk[at];
            }
            // Beyond the edge chunks are zeros.
            pixels.fill(0);
            if let Some(region) = Region::new(&start[..rank], chunk) {
                Block {
                    start: &[0; MAX_RANK][..rank],
                    extent: shape.dims(),
                    bytes,
                    element,
                }
                .place(&region, &mut pixels);
            }
            let mut path = folder.join("c");
            path.extend(cell[..rank].iter().map(u64::to_string));
            let parent = path.parent().map(Path::to_owned);
            if parent != folder_made {
                if let Some(parent) = &parent {
                    fs::create_dir_all(parent)?;
                }
                folder_made = parent;
            }
            write_file(&path, &pack.apply(&pixels)?, sync)?;
            if !next_cell(&mut cell[..rank], &first, &last) {
                break;
            }
        }
    }
    write_json(folder, &value, sync)
}
