//! What records look like: described on the command line, or as the first of those that are there says.
//! No pixel is read.

use std::path::Path;

use warploom::io::records::{Layout, RecordReader};
use warploom::io::{Header, Source};
use warploom::kernels::ImageType;
use warploom::plan::{Pipeline, Sources};
use warploom::{Axis, DType};

use crate::report::{Problem, remark};

/// The types of the first record of a file, a folder or a pattern. Of a series of times each is a
/// record, and of a file with several images each image.
pub(super) fn found(input: &str) -> Result<Sources, Problem> {
    let found = Layout::new(input)?.find()?;
    let incomplete = found.incomplete.len();
    if let (Some(record), Some(first)) = (found.incomplete.first(), found.records.first()) {
        remark(format_args!(
            "warning: {incomplete} of {} records are not whole, such as `{}`, which {}; `{}` decides",
            incomplete + found.records.len(),
            record.id,
            record.words(),
            first.id()
        ));
    }
    let Some(first) = found.records.first().cloned() else {
        // None is whole, which this tells.
        found.whole()?;
        return Err(Problem::usage(
            format_args!("there is no record in {input}"),
            "name a file, a folder or a pattern of images",
        ));
    };
    let mut reader = RecordReader::new();
    let first = reader.images(&first)?.into_iter().next().unwrap_or(first);
    let header = reader.header(&first)?;
    let image = image_type(&header, first.id())?;
    let channels = channels(&header);
    Ok(Sources::new(image).channels(channels.iter().map(String::as_str)))
}

/// One channel at one time, as operations take it.
fn image_type(header: &Header, name: &str) -> Result<ImageType, Problem> {
    let extent = |axis| header.shape.extent(axis);
    let others = header.shape.axes().iter().zip(header.shape.dims());
    let others = others.filter(|(axis, extent)| **axis == Axis::N && **extent != 1);
    match (extent(Axis::Z), extent(Axis::Y), extent(Axis::X)) {
        (Some(z), Some(y), Some(x)) if others.clone().count() == 0 => {
            Ok(ImageType::stack(header.dtype, z, y, x))
        }
        (None, Some(y), Some(x)) if others.clone().count() == 0 => {
            Ok(ImageType::plane(header.dtype, y, x))
        }
        _ => Err(Problem::usage(
            format_args!(
                "{name} has the extents {}, and planes and stacks are what pipelines take",
                header.shape
            ),
            "give images with the axes y and x, and z, channels or times",
        )),
    }
}

/// What channels are called: by their names, or by numbers from 1; none where there is no such axis.
fn channels(header: &Header) -> Vec<String> {
    let Some(count) = header.shape.extent(Axis::C) else {
        return Vec::new();
    };
    if header.channels.len() as u64 == count {
        return header.channels.clone();
    }
    (1..=count).map(|number| number.to_string()).collect()
}

/// The types of the pipeline's constants, from their files beside it.
pub(super) fn with_constants(
    mut sources: Sources,
    pipeline: &Pipeline,
    path: &Path,
) -> Result<Sources, Problem> {
    let folder = path.parent().unwrap_or(Path::new("."));
    for constant in &pipeline.constants {
        let file = folder.join(&constant.path.value);
        let source = Source::open(&file)?;
        let image = image_type(source.header(), &constant.path.value)?;
        sources = sources.constant(&constant.name.value, image);
    }
    Ok(sources)
}

/// `64x2048x2048:u16`, with `:1,2` for channels.
pub(super) fn described(text: &str) -> Result<Sources, Problem> {
    let wrong = || {
        Problem::usage(
            format!("`{text}` describes no record"),
            "write extents, type and, if any, channels: `2048x2048:u16`, `40x1024x1024:u16:1,2`",
        )
    };
    let mut parts = text.split(':');
    let extents: Option<Vec<u64>> = parts
        .next()
        .map(|part| part.split('x').map(|n| n.parse().ok()).collect())
        .ok_or_else(wrong)?;
    let dtype: DType = parts
        .next()
        .and_then(|part| part.parse().ok())
        .ok_or_else(wrong)?;
    let mut sources = match extents.ok_or_else(wrong)?.as_slice() {
        [y, x] => Sources::plane(dtype, *y, *x),
        [z, y, x] => Sources::stack(dtype, *z, *y, *x),
        _ => return Err(wrong()),
    };
    if let Some(channels) = parts.next() {
        sources = sources.channels(channels.split(','));
    }
    if parts.next().is_some() {
        return Err(wrong());
    }
    Ok(sources)
}
