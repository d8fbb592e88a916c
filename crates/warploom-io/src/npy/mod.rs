//! NumPy's `.npy`: a header in Python's notation, then the elements.

mod header;

use std::io::{self, Read, Write};

use warploom_core::{DType, Shape};

use crate::error::Fault;
use crate::region::{Region, index, next_cell};
use crate::store::{Scratch, Store, make_room};
use crate::tiff::swap;
use header::Header;

/// An open file. What follows the array is left alone, as NumPy does: several may share a file.
#[derive(Debug)]
pub(crate) struct NpyFile {
    store: Store,
    header: crate::header::Header,
    stored: Header,
}

impl NpyFile {
    /// Reads what the file says of itself.
    pub(crate) fn open(mut store: Store) -> Result<Self, Fault> {
        let length = store.length();
        let stored = Header::read(&mut Beginning {
            store: &mut store,
            at: 0,
        })?;
        let shape = Shape::new(&stored.dims).map_err(|_| unread_shape(&stored.dims))?;
        let dtype = stored.element.dtype;
        let (wanted, there) = (shape.bytes(dtype), length.saturating_sub(stored.bytes));
        // Before room is made, so that a header cannot ask for more than the file has.
        if wanted > there {
            let what = format!("{shape} {dtype}");
            return Err(Fault::Short {
                what,
                wanted,
                there,
            });
        }
        Ok(Self {
            store,
            header: crate::header::Header::new(dtype, shape),
            stored,
        })
    }

    pub(crate) fn header(&self) -> crate::header::Header {
        self.header.clone()
    }

    /// Reads a part.
    pub(crate) fn read(
        &mut self,
        region: &Region,
        out: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<(), Fault> {
        if self.stored.fortran && self.header.shape.rank() > 1 {
            self.read_fortran(region, out, scratch)?;
        } else {
            self.read_runs(region, out, scratch)?;
        }
        if self.stored.element.is_swapped() {
            swap(out, index(self.header.dtype.bytes()));
        }
        if self.stored.element.is_bool {
            // NumPy takes anything but 0 for true, and calculates with 1.
            for value in out {
                *value = u8::from(*value != 0);
            }
        }
        Ok(())
    }

    /// Elements that follow each other in the part do so in the file, as far as axes are whole.
    fn read_runs(
        &mut self,
        region: &Region,
        out: &mut [u8],
        scratch: &Scratch,
    ) -> Result<(), Fault> {
        let shape = self.header.shape;
        let strides = shape.strides();
        let rank = shape.rank();
        let (start, extent) = (region.start(), region.extent());
        let mut outer = rank - 1;
        while outer > 0 && extent[outer] == shape.dims()[outer] {
            outer -= 1;
        }
        // Along `outer` and all after it, the part is one piece of the file.
        let run: u64 = extent[outer..].iter().product::<u64>() * self.header.dtype.bytes();
        let last: Vec<u64> = (0..outer).map(|at| start[at] + extent[at] - 1).collect();
        let mut cell = start[..outer].to_vec();
        for out in out.chunks_exact_mut(index(run)) {
            let place: u64 = (0..rank)
                .map(|at| strides[at] * if at < outer { cell[at] } else { start[at] })
                .sum();
            let mut at = self.stored.bytes + place * self.header.dtype.bytes();
            for out in out.chunks_mut(PIECE) {
                scratch.go_on()?;
                self.store.read_at(at, out, "the array")?;
                at += out.len() as u64;
            }
            next_cell(&mut cell, start, &last);
        }
        Ok(())
    }

    /// The first axis varies fastest: slabs of the two fastest axes are read and turned.
    fn read_fortran(
        &mut self,
        region: &Region,
        out: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<(), Fault> {
        let dims = self.header.shape.dims().to_vec();
        let element = self.header.dtype.bytes();
        let rank = dims.len();
        let (start, extent) = (region.start(), region.extent());
        let stored: Vec<u64> = (0..rank)
            .map(|at| dims[..at].iter().product::<u64>())
            .collect();
        let mut own = vec![1; rank];
        for at in (1..rank).rev() {
            own[at - 1] = own[at] * extent[at];
        }
        // From the first element of the slab that is wanted to the last.
        let slab = (extent[0] - 1) + (extent[1] - 1) * dims[0] + 1;
        make_room(&mut scratch.decoded, slab * element)?;
        let last: Vec<u64> = (2..rank).map(|at| start[at] + extent[at] - 1).collect();
        let mut cell = start[2..].to_vec();
        loop {
            scratch.go_on()?;
            let outer: u64 = (2..rank).map(|at| cell[at - 2] * stored[at]).sum();
            let first = start[0] + start[1] * dims[0] + outer;
            let at = self.stored.bytes + first * element;
            self.store.read_at(at, &mut scratch.decoded, "the array")?;
            let base: u64 = (2..rank)
                .map(|at| (cell[at - 2] - start[at]) * own[at])
                .sum();
            for b in 0..extent[1] {
                for a in 0..extent[0] {
                    let from = index((a + b * dims[0]) * element);
                    let to = index((base + a * own[0] + b * own[1]) * element);
                    let width = index(element);
                    out[to..to + width].copy_from_slice(&scratch.decoded[from..from + width]);
                }
            }
            if !next_cell(&mut cell, &start[2..], &last) {
                return Ok(());
            }
        }
    }
}

/// So much is read at once; between pieces it can be ended.
const PIECE: usize = 1 << 24;

/// The beginning of a file, read piece by piece.
struct Beginning<'s> {
    store: &'s mut Store,
    at: u64,
}

impl Read for Beginning<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let there = index(self.store.length().saturating_sub(self.at)).min(out.len());
        let bytes = self.store.peek(self.at, there, "its header");
        out[..there].copy_from_slice(bytes.map_err(io::Error::other)?);
        self.at += there as u64;
        Ok(there)
    }
}

fn unread_shape(dims: &[u64]) -> Fault {
    let (what, instead) = match dims.len() {
        0 => (
            "a single number, no image".to_owned(),
            "give it axes, as with `a.reshape(1, 1)`",
        ),
        rank if rank > warploom_core::MAX_RANK => (
            format!("an array of {rank} axes"),
            "images have 2 or 3 axes; save a part of it",
        ),
        _ => (
            format!("an array of shape {dims:?}, which is more than 64 bits can count"),
            "save it again; no file can hold it",
        ),
    };
    Fault::Unread {
        what,
        instead: instead.into(),
    }
}

/// Writes an image.
pub(crate) fn write(
    file: &mut impl Write,
    header: &crate::header::Header,
    bytes: &[u8],
) -> Result<(), Fault> {
    let text = header::text(header.dtype, header.shape.dims());
    let elements = |file: &mut dyn Write| -> io::Result<()> {
        if cfg!(target_endian = "little") {
            return file.write_all(bytes);
        }
        let mut turned = bytes.to_vec();
        swap(&mut turned, index(header.dtype.bytes()));
        file.write_all(&turned)
    };
    file.write_all(&text)
        .and_then(|()| elements(file))
        .map_err(|error| Fault::write(&error))
}

/// Writes a 1-D array of f64.
pub(crate) fn write_vector(file: &mut impl Write, values: &[f64]) -> Result<(), Fault> {
    let header = header::text(DType::F64, &[values.len() as u64]);
    let values: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    file.write_all(&header)
        .and_then(|()| file.write_all(&values))
        .map_err(|error| Fault::write(&error))
}
