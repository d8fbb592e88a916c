//! NumPy's `.npy`: a header in Python's notation, then the elements.

mod header;

use std::io::{self, Read, Write};

use warploom_core::{DType, Shape};

use crate::error::Fault;
use crate::image::Image;
use header::Header;

/// Reads an array. What follows it is left alone, as NumPy does: several arrays may share a file.
pub(crate) fn read(file: &mut impl Read, length: u64) -> Result<Image, Fault> {
    let header = Header::read(file)?;
    let shape = Shape::new(&header.dims).map_err(|_| unread_shape(&header.dims))?;
    let dtype = header.element.dtype;
    let (wanted, there) = (shape.bytes(dtype), length.saturating_sub(header.bytes));
    // Before room is made, so that a header cannot ask for more than the file has.
    if wanted > there {
        let what = format!("{shape} {dtype}");
        return Err(Fault::Short {
            what,
            wanted,
            there,
        });
    }
    let mut image = Image::zeroed(dtype, shape)?;
    file.read_exact(image.bytes_mut())
        .map_err(|error| Fault::open(&error))?;
    if header.element.is_swapped() {
        swap(image.bytes_mut(), dtype);
    }
    if header.element.is_bool {
        // NumPy takes anything but 0 for true, and calculates with 1.
        for value in image.bytes_mut() {
            *value = u8::from(*value != 0);
        }
    }
    if header.fortran && shape.rank() > 1 {
        image = to_c_order(&image)?;
    }
    Ok(image)
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

/// Turns the bytes of each element around.
fn swap(bytes: &mut [u8], dtype: DType) {
    fn each<const N: usize>(bytes: &mut [u8]) {
        let (elements, _) = bytes.as_chunks_mut::<N>();
        for element in elements {
            element.reverse();
        }
    }
    match dtype.bytes() {
        2 => each::<2>(bytes),
        4 => each::<4>(bytes),
        8 => each::<8>(bytes),
        _ => {}
    }
}

/// The elements of an array whose first axis varies fastest, put into C order.
fn to_c_order(stored: &Image) -> Result<Image, Fault> {
    let mut image = Image::zeroed(stored.dtype(), *stored.shape())?;
    let (from, to) = (stored.bytes(), image.bytes_mut());
    match stored.dtype().bytes() {
        1 => gather::<1>(from, to, stored.shape()),
        2 => gather::<2>(from, to, stored.shape()),
        4 => gather::<4>(from, to, stored.shape()),
        _ => gather::<8>(from, to, stored.shape()),
    }
    Ok(image)
}

fn gather<const N: usize>(from: &[u8], to: &mut [u8], shape: &Shape) {
    let (from, _) = from.as_chunks::<N>();
    let (to, _) = to.as_chunks_mut::<N>();
    // Extents fit: the image is in memory.
    let dims: Vec<usize> = shape
        .dims()
        .iter()
        .map(|extent| usize::try_from(*extent).unwrap_or(usize::MAX))
        .collect();
    let mut strides = vec![1; dims.len()];
    for at in 1..dims.len() {
        strides[at] = strides[at - 1] * dims[at - 1];
    }
    let mut index = vec![0; dims.len()];
    let mut source = 0;
    for element in to {
        *element = from[source];
        // The next index in C order, and with it the place in the other.
        for at in (0..dims.len()).rev() {
            index[at] += 1;
            source += strides[at];
            if index[at] < dims[at] {
                break;
            }
            source -= strides[at] * dims[at];
            index[at] = 0;
        }
    }
}

/// Writes an image.
pub(crate) fn write(file: &mut impl Write, image: &Image) -> Result<(), Fault> {
    let header = header::text(image.dtype(), image.shape().dims());
    let bytes = image.bytes();
    let elements = |file: &mut dyn Write| -> io::Result<()> {
        if cfg!(target_endian = "little") {
            return file.write_all(bytes);
        }
        let mut turned = bytes.to_vec();
        swap(&mut turned, image.dtype());
        file.write_all(&turned)
    };
    file.write_all(&header)
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
