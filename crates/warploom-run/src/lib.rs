//! Runs a compiled pipeline over the records of a folder or plate.
//!
//! A [`Job`] is a pipeline, an [`Input`] and a folder for results. Running it compiles the pipeline
//! for the devices that are there, leases one, and lets the scheduler overlap reading, copies, work
//! and writing. What is wrong with one record is that record's [`Outcome`]; the others go on. Results
//! appear under their names when they are complete, and a list of what is done lets a later run leave
//! it out.
//!
//! ```no_run
//! use warploom_core::{Options, Registry};
//! use warploom_plan::Pipeline;
//! use warploom_run::{Input, Job, Settings};
//!
//! let registry = Registry::linked();
//! registry.setup(&Options::default())?;
//! let pipeline = Pipeline::from_toml(&std::fs::read_to_string("nuclei.toml")?)
//!     .map_err(warploom_run::RunFailure::Refused)?;
//! let job = Job::new(pipeline, ".", Input::find("plate/{well}_{site}.tif")?, "results");
//! let summary = job.run(&registry, &Settings::default())?;
//! println!("{} ok, {} failed", summary.tally.ok, summary.tally.failed);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod agenda;
mod attempt;
#[cfg(all(feature = "fleet", target_os = "linux"))]
mod ceilings;
#[cfg(all(feature = "fleet", target_os = "linux"))]
mod chronicle;
pub mod content;
mod course;
#[cfg(all(feature = "fleet", target_os = "linux"))]
mod crew_status;
mod errand;
mod error;
mod folder;
#[cfg(all(feature = "fleet", target_os = "linux"))]
mod gathering;
mod input;
mod job;
mod journal;
mod loads;
mod lookout;
#[cfg(all(feature = "fleet", target_os = "linux"))]
pub mod many;
mod outcome;
mod readers;
mod reading;
mod recipe;
mod recorder;
mod recording;
mod rooms;
mod script;
mod settings;
mod settler;
mod stages;
#[cfg(all(feature = "fleet", target_os = "linux"))]
mod station;
pub mod status;
mod successor;
mod tasks;
#[cfg(all(feature = "fleet", target_os = "linux"))]
mod tidings;
mod unit;
mod writing;

pub use course::Listener;
pub use error::{RecordFault, RunFailure};
pub use input::{Input, kind, with_constants};
pub use job::{Hire, Job, Preview};
pub use journal::FOLDER;
pub use loads::loads;
pub use outcome::{DeviceNews, Done, Failure, News, Outcome, Summary};
pub use settings::Settings;
pub use warploom_watch::recording::Tally;
