//! What there is to work on: records, and what all of them look like.

use std::path::Path;

use warploom_core::Axis;
use warploom_io::records::{Incomplete, Layout, Record, RecordReader};
use warploom_io::{FileError, Header, Source};
use warploom_kernels::ImageType;
use warploom_plan::{Pipeline, Sources};

use crate::error::RunFailure;
use crate::lookout::{Signs, patiently};
use crate::settings::Settings;

/// How many records are looked at to find out what records look like.
const LOOKS: usize = 7;

/// The records of an input, and what they look like.
#[derive(Clone, Debug)]
pub struct Input {
    /// The records, in order.
    pub records: Vec<Record>,
    /// Those that lack files, or have some twice: they cannot be worked on.
    pub incomplete: Vec<Incomplete>,
    /// What a record looks like: as most of those that were looked at do.
    pub header: Header,
}

impl Input {
    /// Finds the records of a file, a folder, a glob or a pattern such as `{well}_{channel}.tif`.
    /// Series of times are taken apart: each time is a record.
    ///
    /// # Errors
    /// When there are none, or none can be read.
    pub fn find(input: &str) -> Result<Self, RunFailure> {
        Self::of(&Layout::new(input)?)
    }

    /// The same, given up when a file says nothing for as long as settings allow, or when the run is called
    /// off meanwhile.
    ///
    /// # Errors
    /// As [`find`](Self::find), and when it was given up.
    pub fn find_in_time(input: &str, settings: &Settings) -> Result<Self, RunFailure> {
        let layout = Layout::new(input)?;
        patiently(settings.patience, &settings.cancel, move |signs| {
            Self::looked_at(&layout, signs)
        })?
    }

    /// The same with a layout that was said more precisely.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn of(layout: &Layout) -> Result<Self, RunFailure> {
        Self::looked_at(layout, &Signs::NONE)
    }

    fn looked_at(layout: &Layout, signs: &Signs<'_>) -> Result<Self, RunFailure> {
        let found = layout.find()?;
        let mut reader = RecordReader::new();
        let mut records = Vec::new();
        for record in found.records {
            signs.at(record.path());
            // One that cannot be opened stays, so that it is told of as failed.
            match reader.images(&record) {
                Ok(images) => records.extend(images),
                Err(_) => records.push(record),
            }
        }
        let header = usual(&mut reader, &records, signs)?;
        let (records, header) = each_time(records, header)?;
        Ok(Self {
            records,
            incomplete: found.incomplete,
            header,
        })
    }

    /// The types that a pipeline is compiled for: those of records, and of its constants, whose files
    /// are below `folder`. No pixel is read.
    ///
    /// # Errors
    /// When a constant's file cannot be read, or records have axes that no pipeline takes.
    pub fn sources(&self, pipeline: &Pipeline, folder: &Path) -> Result<Sources, RunFailure> {
        let name = self.records.first().map_or("?", Record::id);
        sources(&self.header, name, pipeline, folder)
    }
}

/// The types of records like this, and of a pipeline's constants.
pub(crate) fn sources(
    header: &Header,
    name: &str,
    pipeline: &Pipeline,
    folder: &Path,
) -> Result<Sources, RunFailure> {
    with_constants(kind(header, name)?, pipeline, folder)
}

/// What a record is that has this header: one channel at one time, and what channels are called.
///
/// # Errors
/// When it has axes that no pipeline takes.
pub fn kind(header: &Header, name: &str) -> Result<Sources, RunFailure> {
    let channels = channels(header);
    let sources = Sources::new(image_type(header, name)?);
    Ok(sources.channels(channels.iter().map(String::as_str)))
}

/// The same with the types of a pipeline's constants, by their files below `folder`; no pixel is read.
///
/// # Errors
/// When a file cannot be read, or is no image that pipelines take.
pub fn with_constants(
    mut sources: Sources,
    pipeline: &Pipeline,
    folder: &Path,
) -> Result<Sources, RunFailure> {
    for constant in &pipeline.constants {
        let path = folder.join(&constant.path.value);
        let header = Source::open(&path)?.header().clone();
        let image = image_type(&header, &constant.path.value)?;
        sources = sources.constant(&constant.name.value, image);
    }
    Ok(sources)
}

/// What most of the records look like that are looked at; the first, where none are most.
fn usual(
    reader: &mut RecordReader,
    records: &[Record],
    signs: &Signs<'_>,
) -> Result<Header, RunFailure> {
    let mut seen: Vec<(Header, usize)> = Vec::new();
    let mut wrong: Option<FileError> = None;
    let step = records.len().div_ceil(LOOKS).max(1);
    let chosen = records.iter().step_by(step);
    // Only if none of those can be read, all are tried.
    for (at, record) in chosen.chain(records).enumerate() {
        if at >= LOOKS.min(records.len()) && !seen.is_empty() {
            break;
        }
        signs.at(record.path());
        match reader.header(record) {
            Err(error) => wrong = wrong.or(Some(error)),
            Ok(header) => {
                let alike = |(known, _): &&mut (Header, usize)| {
                    (known.dtype, known.shape) == (header.dtype, header.shape)
                };
                match seen.iter_mut().find(alike) {
                    Some((_, count)) => *count += 1,
                    None => seen.push((header, 1)),
                }
            }
        }
    }
    let most = seen.iter().map(|(_, count)| *count).max();
    let usual = seen.into_iter().find(|(_, count)| Some(*count) == most);
    match (usual, wrong) {
        (Some((header, _)), _) => Ok(header),
        (None, Some(error)) => Err(error.into()),
        (None, None) => Err(RunFailure::Records(
            warploom_io::records::RecordError::Nothing {
                pattern: String::new(),
                seen: 0,
            },
        )),
    }
}

/// Series of times as a record for each.
fn each_time(records: Vec<Record>, header: Header) -> Result<(Vec<Record>, Header), RunFailure> {
    let Some(times) = header.shape.extent(Axis::T) else {
        return Ok((records, header));
    };
    let digits = times.saturating_sub(1).to_string().len();
    let part = |record: &Record, time: u64| {
        let part = record.at(&[(Axis::T, time)]);
        if times > 1 {
            part.called(&format!("t{time:0digits$}"))
        } else {
            part
        }
    };
    let records = records
        .iter()
        .flat_map(|record| (0..times).map(move |time| part(record, time)));
    let records: Vec<Record> = records.collect();
    let kept = header.shape.axes().iter().zip(header.shape.dims());
    let kept = kept.filter(|(axis, _)| **axis != Axis::T);
    let (axes, dims): (Vec<Axis>, Vec<u64>) = kept.unzip();
    let name = records.first().map_or("?", Record::id);
    let shape =
        warploom_core::Shape::with_axes(&axes, &dims).map_err(|_| axes_of(&header, name))?;
    let header = Header::new(header.dtype, shape)
        .with_channels(header.channels.clone())
        .with_spacing(header.spacing);
    Ok((records, header))
}

fn axes_of(header: &Header, name: &str) -> RunFailure {
    RunFailure::Axes {
        record: name.to_owned(),
        shape: header.shape.to_string(),
    }
}

/// One channel of an image, as operations take it.
fn image_type(header: &Header, name: &str) -> Result<ImageType, RunFailure> {
    let mut extents = [None; 3];
    for (axis, extent) in header.shape.axes().iter().zip(header.shape.dims()) {
        match axis {
            Axis::Z => extents[0] = Some(*extent),
            Axis::Y => extents[1] = Some(*extent),
            Axis::X => extents[2] = Some(*extent),
            // Of times and channels each is worked on by itself.
            Axis::C | Axis::T => {}
            _ if *extent == 1 => {}
            Axis::N => return Err(axes_of(header, name)),
        }
    }
    match extents {
        [Some(z), Some(y), Some(x)] => Ok(ImageType::stack(header.dtype, z, y, x)),
        [None, Some(y), Some(x)] => Ok(ImageType::plane(header.dtype, y, x)),
        _ => Err(axes_of(header, name)),
    }
}

/// What the channels are called: by their names, or numbered from 1; none where there is no such axis.
fn channels(header: &Header) -> Vec<String> {
    let Some(count) = header.shape.extent(Axis::C) else {
        return Vec::new();
    };
    if header.channels.len() as u64 == count {
        return header.channels.clone();
    }
    (1..=count).map(|number| number.to_string()).collect()
}
