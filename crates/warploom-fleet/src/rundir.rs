//! The folder of a run.
//!
//! ```text
//! RUN/plan                what the run is of: written once, never changed
//! RUN/journal             what happened; written by the coordinator alone, which holds its lock
//! RUN/logs/slot-K.log     what the workers of slot K wrote; each worker is one writer, one at a time
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::FleetError;
use crate::journal::{Durability, History, Journal, Torn};
use crate::record::Record;

/// What a run is of. Two runs are the same when these are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Identity {
    /// The name or fingerprint of what is done to each record.
    pub plan: String,
    /// How many records there are.
    pub records: u64,
    /// The CRC-32 of all of them.
    pub digest: u32,
}

impl Identity {
    /// What a run of `plan` on these records is.
    pub fn of(plan: impl Into<String>, records: &[Record]) -> Self {
        let mut hasher = crc32fast::Hasher::new();
        for record in records {
            hasher.update(&(record.body.len() as u64).to_le_bytes());
            hasher.update(&record.body);
        }
        Self {
            plan: plan.into(),
            records: records.len() as u64,
            digest: hasher.finalize(),
        }
    }
}

/// A run that was opened by its coordinator.
#[derive(Debug)]
pub struct OpenRun {
    /// The folder.
    pub folder: PathBuf,
    /// To go on with.
    pub journal: Journal,
    /// Where it stands.
    pub history: History,
    /// What of the journal could not be read.
    pub torn: Option<Torn>,
}

/// Opens the run in `folder`, or begins it there.
///
/// # Errors
/// [`FleetError::OtherRun`] when another run is there, [`FleetError::Busy`] when another coordinator is
/// at it, [`FleetError::Folder`] and [`FleetError::Journal`] when files cannot be used.
pub fn open(
    folder: &Path,
    identity: &Identity,
    durability: Durability,
) -> Result<OpenRun, FleetError> {
    let failed = |error: io::Error| FleetError::Folder {
        path: folder.to_owned(),
        reason: error.to_string(),
    };
    fs::create_dir_all(folder.join("logs")).map_err(failed)?;
    // The lock of the journal comes first, so that two beginners do not write two plans.
    let path = folder.join("journal");
    let opened = Journal::open(&path, durability)?;
    match stored(folder)? {
        Some(found) if found == *identity => {}
        Some(found) => {
            return Err(FleetError::OtherRun {
                folder: folder.to_owned(),
                found,
                asked: identity.clone(),
            });
        }
        None => store(folder, identity).map_err(failed)?,
    }
    let records =
        usize::try_from(identity.records).map_err(|error| failed(io::Error::other(error)))?;
    let history = History::of(records, &opened.entries).map_err(|record| {
        let what = format!("it tells of record {record} in a run of {records} records");
        FleetError::journal(&path, what)
    })?;
    Ok(OpenRun {
        folder: folder.to_owned(),
        journal: opened.journal,
        history,
        torn: opened.torn,
    })
}

/// What the run in `folder` is of; `None` when none was begun there.
///
/// # Errors
/// [`FleetError::Folder`] when that cannot be read.
pub fn stored(folder: &Path) -> Result<Option<Identity>, FleetError> {
    let path = folder.join("plan");
    let failed = |reason: String| FleetError::Folder {
        path: path.clone(),
        reason,
    };
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error.to_string())),
    };
    let damaged = || failed("it is damaged".into());
    let (sum, payload) = bytes.split_first_chunk::<4>().ok_or_else(damaged)?;
    if crc32fast::hash(payload) != u32::from_le_bytes(*sum) {
        return Err(damaged());
    }
    postcard::from_bytes(payload)
        .map(Some)
        .map_err(|_| damaged())
}

/// Writes what the run is of, in one step.
fn store(folder: &Path, identity: &Identity) -> io::Result<()> {
    let payload = postcard::to_stdvec(identity).map_err(io::Error::other)?;
    let mut bytes = crc32fast::hash(&payload).to_le_bytes().to_vec();
    bytes.extend_from_slice(&payload);
    let draft = folder.join("plan.part");
    fs::write(&draft, &bytes)?;
    fs::File::open(&draft)?.sync_all()?;
    let path = folder.join("plan");
    fs::rename(&draft, &path)?;
    crate::journal::sync_folder(&path)
}

/// The file with what the workers of a slot wrote.
pub fn log(folder: &Path, slot: usize) -> PathBuf {
    folder.join("logs").join(format!("slot-{slot}.log"))
}
