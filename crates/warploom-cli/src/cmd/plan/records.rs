//! What records look like: described on the command line, or as the first of those that are there says.
//! No pixel is read.

use warploom::DType;
use warploom::io::records::{Layout, RecordReader};
use warploom::plan::Sources;
use warploom::run::kind;

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
    Ok(kind(&header, first.id())?)
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
