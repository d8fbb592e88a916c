//! Reading records: what they are, their pixels, and whether they are the ones of last time.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use warploom_core::{Axis, Shape};
use xxhash_rust::xxh3::Xxh3;

use super::record::{Member, Record};
use crate::error::{Fault, FileError};
use crate::header::Header;
use crate::region::{Region, index};
use crate::source::{Choice, Source};
use crate::store::Scratch;

/// Reads records one after another, keeping what the next one can use: the last file, and room.
///
/// The last file stays open, and fingerprints are remembered: a file that is replaced meanwhile is the old
/// one to this reader, and the new one to another.
#[derive(Debug, Default)]
pub struct RecordReader {
    source: Option<(PathBuf, Choice, Source)>,
    scratch: Scratch,
    prints: HashMap<PathBuf, u128>,
}

impl RecordReader {
    /// A reader that has nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A reader that ends between two pieces once this is set.
    pub fn with_stop(stop: Arc<AtomicBool>) -> Self {
        let mut reader = Self::default();
        reader.scratch.stop = stop;
        reader
    }

    /// What a record is. Only its first file is looked at; the others have to be like it when it is
    /// read.
    pub fn header(&mut self, record: &Record) -> Result<Header, FileError> {
        let Some(first) = record.members.first() else {
            return Err(Fault::damaged("a record without files").of(record.path()));
        };
        let header = self.member_header(first)?;
        joined(record, &header).map_err(|fault| fault.of(&first.path))
    }

    /// Reads a record into `out`, which has exactly its bytes.
    pub fn read_into(&mut self, record: &Record, out: &mut [u8]) -> Result<(), FileError> {
        let wanted = self.header(record)?.bytes();
        let given = out.len() as u64;
        if given != wanted {
            return Err(Fault::Buffer { wanted, given }.of(record.path()));
        }
        if out.is_empty() {
            return Ok(());
        }
        let bytes = out.len() / record.members.len();
        let mut first: Option<Header> = None;
        for (member, out) in record.members.iter().zip(out.chunks_exact_mut(bytes)) {
            let header = self.member_header(member)?;
            let alike = first.get_or_insert_with(|| header.clone());
            if (alike.dtype, alike.shape) != (header.dtype, header.shape) {
                return Err(Fault::differs(&header, alike).of(&member.path));
            }
            self.read_member(member, out)?;
        }
        Ok(())
    }

    /// Reads a record that has to be of this type and extent, as everything was prepared for.
    pub fn read_expected(
        &mut self,
        record: &Record,
        expected: &Header,
        out: &mut [u8],
    ) -> Result<(), FileError> {
        let header = self.header(record)?;
        if (header.dtype, header.shape) != (expected.dtype, expected.shape) {
            return Err(Fault::differs(&header, expected).of(record.path()));
        }
        self.read_into(record, out)
    }

    /// A number that stays the same as long as the contents of a record's files do, and changes with
    /// them, for all that chance can do.
    pub fn fingerprint(&mut self, record: &Record) -> Result<u128, FileError> {
        let mut sum = Xxh3::new();
        for member in &record.members {
            let known = self.prints.get(&member.path).copied();
            let print = match known {
                Some(print) => Ok(print),
                None => print(&member.path).map_err(|fault| fault.of(&member.path)),
            }?;
            self.prints.insert(member.path.clone(), print);
            sum.update(&print.to_le_bytes());
            let choice = (member.choice.series, member.choice.level, &member.picks);
            sum.update(format!("{choice:?}").as_bytes());
        }
        sum.update(format!("{:?}", record.gathered).as_bytes());
        Ok(sum.digest128())
    }

    /// The images of a file that holds several, or of a plate, each as a record; otherwise the record
    /// itself.
    pub fn images(&mut self, record: &Record) -> Result<Vec<Record>, FileError> {
        let [member] = &record.members[..] else {
            return Ok(vec![record.clone()]);
        };
        if crate::zarr::is_zarr(&member.path) {
            let images = crate::zarr::members(&member.path);
            let images = images.map_err(|fault| fault.of(&member.path))?;
            let Some(images) = images else {
                return Ok(vec![record.clone()]);
            };
            let records = images.into_iter().map(|(name, path)| {
                let names: Vec<String> = name.split('/').map(super::name::safe).collect();
                record.part(&names.join("_"), |member| member.path.clone_from(&path))
            });
            return Ok(records.collect());
        }
        if member.choice.series.is_some() {
            return Ok(vec![record.clone()]);
        }
        // Any of the images will do to count them.
        let choice = Choice {
            series: Some(0),
            ..member.choice
        };
        let count = self.open(&member.path, choice)?.series();
        if count == 1 {
            return Ok(vec![record.clone()]);
        }
        let records = (0..count).map(|number| {
            record.part(
                &format!("s{}", padded(number as u64, count as u64)),
                |member| {
                    member.choice.series = Some(number);
                },
            )
        });
        Ok(records.collect())
    }

    /// Every index along these axes as a record of its own, as far as the record has them: times of a
    /// series, positions, channels. Nothing but the header is read, and records are made as they are
    /// asked for.
    pub fn split(
        &mut self,
        record: &Record,
        axes: &[Axis],
    ) -> Result<impl ExactSizeIterator<Item = Record> + use<>, FileError> {
        let header = match record.members.first() {
            Some(member) => self.member_header(member)?,
            None => return Err(Fault::damaged("a record without files").of(record.path())),
        };
        let found: Vec<(Axis, u64)> = header
            .shape
            .axes()
            .iter()
            .zip(header.shape.dims())
            .filter(|(axis, _)| axes.contains(axis))
            .map(|(axis, extent)| (*axis, *extent))
            .collect();
        let count: u64 = found.iter().map(|(_, extent)| extent).product();
        let record = record.clone();
        Ok((0..index(count)).map(move |number| {
            let mut rest = number as u64;
            let mut picks = Vec::new();
            for (axis, extent) in found.iter().rev() {
                picks.push((*axis, rest % extent, *extent));
                rest /= extent;
            }
            picks.reverse();
            if picks.is_empty() {
                return record.clone();
            }
            let names: Vec<String> = picks
                .iter()
                .map(|(axis, at, extent)| {
                    let letter = format!("{axis:?}").to_lowercase();
                    format!("{letter}{}", padded(*at, *extent))
                })
                .collect();
            record.part(&names.join("_"), |member| {
                member
                    .picks
                    .extend(picks.iter().map(|(axis, at, _)| (*axis, *at)));
            })
        }))
    }

    fn open(&mut self, path: &Path, choice: Choice) -> Result<&mut Source, FileError> {
        let is_open = self
            .source
            .as_ref()
            .is_some_and(|(open, chosen, _)| open == path && *chosen == choice);
        if !is_open {
            self.source = None;
            let source = Source::open_choice(path, choice)?;
            self.source = Some((path.to_owned(), choice, source));
        }
        match &mut self.source {
            Some((_, _, source)) => Ok(source),
            None => Err(Fault::Folder.of(path)),
        }
    }

    /// What is left of a file once its picks are picked.
    fn member_header(&mut self, member: &Member) -> Result<Header, FileError> {
        let source = self.open(&member.path, member.choice)?;
        let mut header = source.header().clone();
        if member.picks.is_empty() {
            return Ok(header);
        }
        let kept = header.shape.axes().iter().zip(header.shape.dims());
        let kept = kept.filter(|(axis, _)| !member.picks.iter().any(|(pick, _)| pick == *axis));
        let (axes, dims): (Vec<Axis>, Vec<u64>) = kept.unzip();
        if !axes.contains(&Axis::C) {
            header.channels.clear();
        }
        header.shape = Shape::with_axes(&axes, &dims)
            .map_err(|error| Fault::damaged(error).of(&member.path))?;
        Ok(header)
    }

    fn read_member(&mut self, member: &Member, out: &mut [u8]) -> Result<(), FileError> {
        // The room goes along from file to file.
        let mut scratch = std::mem::take(&mut self.scratch);
        let read = self.open(&member.path, member.choice).and_then(|source| {
            let shape = source.header().shape;
            let mut region = Region::whole(&shape);
            for (axis, at) in &member.picks {
                region = region.along(&shape, *axis, *at, 1);
            }
            source.share(&mut scratch);
            let read = source.read_into(&region, out);
            source.share(&mut scratch);
            read
        });
        self.scratch = scratch;
        read
    }
}

/// A number with as many digits as the largest has, so that names sort.
fn padded(number: u64, count: u64) -> String {
    let width = count.saturating_sub(1).to_string().len();
    format!("{number:0width$}")
}

/// What a record is whose files are like this one.
fn joined(record: &Record, member: &Header) -> Result<Header, Fault> {
    if record.gathered.is_empty() {
        return Ok(member.clone());
    }
    let (mut axes, mut dims): (Vec<Axis>, Vec<u64>) = record.gathered.iter().copied().unzip();
    for (axis, extent) in member.shape.axes().iter().zip(member.shape.dims()) {
        match (axes.contains(axis), extent) {
            (false, _) => {
                axes.push(*axis);
                dims.push(*extent);
            }
            // An axis of one is none.
            (true, 1) => {}
            (true, _) => {
                return Err(Fault::Unread {
                    what: format!("{extent} planes along {axis:?}, along which files are gathered"),
                    instead: "keep the field apart, or save a plane in each file".into(),
                });
            }
        }
    }
    let shape = Shape::with_axes(&axes, &dims).map_err(Fault::damaged)?;
    let channels = if record.channels.is_empty() {
        member.channels.clone()
    } else {
        record.channels.clone()
    };
    Ok(Header::new(member.dtype, shape)
        .with_channels(channels)
        .with_spacing(member.spacing))
}

/// The contents of a file, or of all files below a folder with their names.
fn print(path: &Path) -> Result<u128, Fault> {
    let mut sum = Xxh3::new();
    let mut room = vec![0; 1 << 18];
    if path.is_dir() {
        let mut files = Vec::new();
        list(path, &mut files)?;
        files.sort();
        for file in files {
            let name = file
                .strip_prefix(path)
                .unwrap_or(&file)
                .to_string_lossy()
                .into_owned();
            sum.update(name.as_bytes());
            sum.update(&[0]);
            let length = add(&mut sum, &file, &mut room)?;
            sum.update(&length.to_le_bytes());
        }
    } else {
        add(&mut sum, path, &mut room)?;
    }
    Ok(sum.digest128())
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Fault> {
    for entry in fs::read_dir(folder).map_err(|error| Fault::open(&error))? {
        let path = entry.map_err(|error| Fault::open(&error))?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

fn add(sum: &mut Xxh3, path: &Path, room: &mut [u8]) -> Result<u64, Fault> {
    let mut file = File::open(path).map_err(|error| Fault::open(&error))?;
    let mut length = 0;
    loop {
        match file.read(room) {
            Ok(0) => return Ok(length),
            Ok(count) => {
                sum.update(&room[..count]);
                length += count as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Fault::open(&error)),
        }
    }
}
