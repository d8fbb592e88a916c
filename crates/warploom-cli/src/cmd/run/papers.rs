//! What is left of a run for people to look at: its trace and its report.
//!
//! Whether they can be written is asked before anything runs. If they cannot be written afterwards all the
//! same, that is a warning: what became of the records is the answer, and nobody has to do without it.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use warploom::watch::Recording;

use crate::args;
use crate::report::Problem;

/// Where a trace and a report go, if they were asked for.
#[derive(Debug)]
pub(super) struct Papers {
    trace: Option<Paper>,
    report: Option<Paper>,
}

impl Papers {
    /// Those that were asked for.
    ///
    /// # Errors
    /// When one of them cannot be written.
    pub(super) fn new(args: &args::Run) -> Result<Self, Problem> {
        let paper = |what, path: Option<&Path>| {
            let paper = path.map(|path| Paper::new(what, path));
            paper.transpose()
        };
        Ok(Self {
            trace: paper("the trace", args.trace.as_deref())?,
            report: paper("the report", args.report.as_deref())?,
        })
    }

    /// Writes them; what came in between.
    pub(super) fn write(&self, recording: &Recording) -> Vec<String> {
        let trace = self.trace.as_ref().map(|paper| {
            paper.write(|file| {
                let mut file = BufWriter::new(file);
                warploom::watch::trace(recording, &mut file)?;
                file.flush()
            })
        });
        let report = self.report.as_ref().map(|paper| {
            let page = warploom::watch::report(recording);
            paper.write(|file| file.write_all(page.as_bytes()))
        });
        let all = trace.into_iter().chain(report);
        all.filter_map(Result::err).collect()
    }
}

/// A file that is replaced as a whole: who reads it never sees half of one.
#[derive(Debug)]
struct Paper {
    what: &'static str,
    path: PathBuf,
}

impl Paper {
    fn new(what: &'static str, path: &Path) -> Result<Self, Problem> {
        let paper = Self {
            what,
            path: path.to_owned(),
        };
        let can = paper.place().and_then(|place| match place {
            Place::Stream => Ok(()),
            Place::File { draft, .. } => {
                File::create(&draft)?;
                fs::remove_file(&draft)
            }
        });
        can.map_err(|error| {
            Problem::usage(
                paper.sorry(&error),
                "name a file in a folder that is there and can be written",
            )
        })?;
        Ok(paper)
    }

    fn sorry(&self, error: &io::Error) -> String {
        let path = self.path.display();
        format!("cannot write {} to {path}: {error}", self.what)
    }

    /// Where it is written.
    fn place(&self) -> io::Result<Place> {
        let path = match fs::metadata(&self.path) {
            Ok(found) if found.is_dir() => return Err(ErrorKind::IsADirectory.into()),
            // A pipe or a device stays what it is, and is written to.
            Ok(found) if !found.is_file() => return Ok(Place::Stream),
            // A link stays a link: what it points at is replaced.
            Ok(_) => fs::canonicalize(&self.path)?,
            Err(error) if error.kind() == ErrorKind::NotFound => self.path.clone(),
            Err(error) => return Err(error),
        };
        let mut draft = path.clone().into_os_string();
        draft.push(format!(".{}.part", std::process::id()));
        Ok(Place::File {
            draft: draft.into(),
            path,
        })
    }

    fn write(&self, content: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), String> {
        let written = self.place().and_then(|place| match place {
            Place::Stream => {
                let mut file = fs::OpenOptions::new().write(true).open(&self.path)?;
                content(&mut file)
            }
            Place::File { draft, path } => {
                let written = File::create(&draft).and_then(|mut file| content(&mut file));
                let written = written.and_then(|()| fs::rename(&draft, &path));
                if written.is_err() {
                    // It may not be there at all; what is in the way is told of.
                    let _ = fs::remove_file(&draft);
                }
                written
            }
        });
        written.map_err(|error| self.sorry(&error))
    }
}

/// How a file is written.
enum Place {
    /// As it is.
    Stream,
    /// Beside it, and renamed.
    File { draft: PathBuf, path: PathBuf },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_stays_until_there_is_a_whole_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        fs::write(&path, "old").unwrap();
        let paper = Paper::new("the report", &path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        let failed = paper.write(|file| {
            file.write_all(b"half")?;
            Err(ErrorKind::StorageFull.into())
        });
        assert!(failed.unwrap_err().starts_with("cannot write the report"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        paper.write(|file| file.write_all(b"new")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_a_device_a_device() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let paper = Paper::new("the trace", &link).unwrap();
        paper.write(|file| file.write_all(b"new")).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        let paper = Paper::new("the trace", Path::new("/dev/null")).unwrap();
        paper.write(|file| file.write_all(b"gone")).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
