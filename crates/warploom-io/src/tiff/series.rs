//! The images that the pages of a file make up.

use warploom_core::{Axis, Shape};

use super::describe;
use super::directory::{Directories, Directory, X_RESOLUTION, Y_RESOLUTION};
use super::ome;
use super::page::{Compression, Page, Plane};
use crate::error::Fault;
use crate::header::Header;
use crate::region::index;
use crate::store::Store;

/// What a directory of the file is.
#[derive(Debug)]
pub(super) enum Entry {
    Page(Page),
    /// A smaller copy of another page.
    Copy,
    /// Something we do not read, which matters only if it is asked for.
    Unread(Fault),
}

/// One image.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) header: Header,
    pub(super) planes: Planes,
}

/// Where the planes of an image are, in the order of its axes.
#[derive(Debug)]
pub(super) enum Planes {
    /// Each on a page of its own.
    Pages(Vec<usize>),
    /// All behind the first page's pixels: which one each is.
    Behind {
        page: usize,
        first: u64,
        order: Option<Vec<u64>>,
    },
}

/// The images of a file. `first` is its first directory and `text` what that says of itself.
pub(super) fn find(
    store: &mut Store,
    directories: &mut Directories,
    first: &Directory,
    text: Option<&str>,
    entries: &[Entry],
) -> Result<Vec<Series>, Fault> {
    if let Some(text) = text.filter(|text| ome::is_ome(text)) {
        let images = ome::parse(text, entries.len())?;
        return images
            .into_iter()
            .map(|image| of_ome(image, entries))
            .collect();
    }
    let (pages, plane) = alike(entries)?;
    let count = pages.len() as u64;
    let extent = [plane.height, plane.width];
    let most = count.max(store.length() / plane.stored_bytes().max(1));
    let said = text.and_then(|text| describe::read(text, count, extent, most));
    let Some(said) = said else {
        if let Some(text) = text {
            check_count(text, count)?;
        }
        let dims = [count, plane.height, plane.width];
        let dims = if count == 1 { &dims[1..] } else { &dims[..] };
        let shape = Shape::new(dims).map_err(Fault::damaged)?;
        return Ok(vec![Series {
            header: Header::new(plane.dtype, shape),
            planes: Planes::Pages(pages),
        }]);
    };
    let mut header = Header::new(plane.dtype, said.shape);
    if let Some(unit) = said.unit {
        let mut length = |tag| directories.fraction(store, first, tag);
        let (y, x) = (length(Y_RESOLUTION)?, length(X_RESOLUTION)?);
        header.spacing = [said.z_spacing, y.map(|y| unit / y), x.map(|x| unit / x)];
    }
    let planes = if said.is_one_piece {
        behind(store, directories, entries, pages[0], &said)?
    } else {
        Planes::Pages(match said.order {
            Some(order) => order.iter().map(|at| pages[index(*at)]).collect(),
            None => pages,
        })
    };
    Ok(vec![Series { header, planes }])
}

/// The pages that form the image of a file without a description: all, and all alike.
fn alike(entries: &[Entry]) -> Result<(Vec<usize>, Plane), Fault> {
    let mut first: Option<Plane> = None;
    let mut pages = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let plane = match entry {
            Entry::Page(page) => page.plane,
            Entry::Copy => continue,
            Entry::Unread(fault) => return Err(fault.clone()),
        };
        let first = *first.get_or_insert(plane);
        if plane != first {
            return Err(Fault::Pages {
                page: at,
                this: plane.to_string(),
                first: first.to_string(),
            });
        }
        pages.push(at);
    }
    match first {
        Some(plane) => Ok((pages, plane)),
        None => Err(Fault::damaged(
            "it has small copies of images, but no image",
        )),
    }
}

/// A description of more planes than there are is a file that was cut, or written in a way of its
/// own: planes are not dropped in silence.
fn check_count(text: &str, pages: u64) -> Result<(), Fault> {
    let mut lines = text.lines();
    let said = text
        .starts_with("ImageJ=")
        .then(|| lines.find_map(|line| line.strip_prefix("images=")?.trim().parse::<u64>().ok()))
        .flatten();
    match said {
        Some(said) if said > pages => Err(Fault::Unread {
            what: format!("{said} planes by the word of ImageJ, but {pages} by that of the format"),
            instead: "save it as BigTIFF, or in pages of its own".into(),
        }),
        _ => Ok(()),
    }
}

/// The planes behind the first, if they are there.
fn behind(
    store: &mut Store,
    directories: &mut Directories,
    entries: &[Entry],
    at: usize,
    said: &describe::Said,
) -> Result<Planes, Fault> {
    let Some(Entry::Page(page)) = entries.get(at) else {
        return Err(Fault::damaged("its first page is no image"));
    };
    let mut offsets = Vec::new();
    directories.numbers(store, page.offsets, &mut offsets)?;
    let strip = page.plane.row_bytes(page.plane.width) * page.piece_height;
    let is_whole = offsets
        .windows(2)
        .all(|two| two[0].checked_add(strip) == Some(two[1]));
    let is_plain = page.compression == Compression::None && !page.is_tiled && !page.plane.packed;
    let first = offsets.first().copied().unwrap_or(0);
    let bytes = said.shape.bytes(page.plane.dtype);
    if !is_whole || !is_plain {
        return Err(Fault::Unread {
            what: format!(
                "one page for {} planes",
                said.shape.elements() / (page.plane.height * page.plane.width)
            ),
            instead: "save it as BigTIFF, or in pages of its own".into(),
        });
    }
    if first.saturating_add(bytes) > store.length() {
        return Err(Fault::Short {
            what: format!("{} {} from byte {first} on", said.shape, page.plane.dtype),
            wanted: bytes,
            there: store.length().saturating_sub(first),
        });
    }
    Ok(Planes::Behind {
        page: at,
        first,
        order: said.order.clone(),
    })
}

/// An image that OME-XML describes, if its pages are what is described.
fn of_ome(image: ome::OmeImage, entries: &[Entry]) -> Result<Series, Fault> {
    let mut dtype = None;
    for number in &image.pages {
        let plane = match &entries[*number] {
            Entry::Page(page) => page.plane,
            Entry::Unread(fault) => return Err(fault.clone()),
            Entry::Copy => {
                let what = format!("page {number} is a plane by its OME-XML, and by itself a copy");
                return Err(Fault::damaged(what));
            }
        };
        let is_alike = (plane.height, plane.width) == (image.height, image.width)
            && image.dtype.is_none_or(|said| said == plane.dtype)
            && dtype.is_none_or(|first| first == plane.dtype);
        if !is_alike {
            let said = image
                .dtype
                .map_or(String::new(), |dtype| format!(" {dtype}"));
            let what = format!(
                "its OME-XML says planes of {}x{}{said}, page {number} is {plane}",
                image.height, image.width
            );
            return Err(Fault::damaged(what));
        }
        dtype = Some(plane.dtype);
    }
    let Some(dtype) = dtype else {
        return Err(Fault::damaged(
            "its OME-XML describes an image without planes",
        ));
    };
    let stack = [Axis::T, Axis::C, Axis::Z].into_iter().zip(image.stack);
    let stack = stack.filter(|(_, extent)| *extent > 1);
    let (mut axes, mut dims): (Vec<_>, Vec<_>) = stack.unzip();
    axes.extend([Axis::Y, Axis::X]);
    dims.extend([image.height, image.width]);
    let shape = Shape::with_axes(&axes, &dims).map_err(Fault::damaged)?;
    let header = Header::new(dtype, shape)
        .with_channels(image.channels)
        .with_spacing(image.spacing);
    Ok(Series {
        header,
        planes: Planes::Pages(image.pages),
    })
}
