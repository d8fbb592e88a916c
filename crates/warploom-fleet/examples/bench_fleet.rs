//! What a fleet costs: how it scales over pretended devices that take a fixed time for each record, what a
//! record costs that takes no time, and how fast pixels travel. `cargo xtask bench fleet` runs it, and
//! `cargo xtask bench pools` races it against other people's pools.
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use warploom_fleet::{
    Assigned, Batch, Fleet, FleetBuilder, FleetDevice, Program, Record, Refusal, Schedule, Trouble,
    Work, worker,
};

/// How a pretended device behaves.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Pretence {
    /// Microseconds per record.
    service: u64,
    /// How many times slower each slot is.
    slow: Vec<u64>,
    /// Bytes of each answer.
    answer: usize,
}

/// A device that takes a fixed time for each record.
struct Pretended {
    service: Duration,
    answer: Vec<u8>,
}

impl Work for Pretended {
    fn init(assigned: &Assigned) -> Result<Self, Refusal> {
        let pretence: Pretence = postcard::from_bytes(&assigned.setup)
            .map_err(|error| Refusal::Failed(error.to_string()))?;
        let slow = pretence.slow.get(assigned.slot).copied().unwrap_or(1);
        Ok(Self {
            service: Duration::from_micros(pretence.service * slow),
            answer: vec![1; pretence.answer],
        })
    }

    fn process(&mut self, batch: &mut Batch<'_>) -> Result<(), Trouble> {
        // When the last record was done. Within a batch a device goes on where it was, however late its host is;
        // between two it has nothing to do, and that is what a fleet costs.
        let mut free = Instant::now();
        for place in 0..batch.len() {
            if !self.service.is_zero() {
                free += self.service;
                thread::sleep(free.saturating_duration_since(Instant::now()));
            }
            batch.done(place, &self.answer);
        }
        Ok(())
    }
}

type Outcome<T> = Result<T, Box<dyn Error>>;

fn fleet(devices: usize, pretence: &Pretence) -> Outcome<FleetBuilder> {
    let setup = postcard::to_stdvec(pretence)?;
    let mut fleet = Fleet::builder(Program::this().arg("be-worker")).setup(setup);
    for device in 0..devices {
        fleet = fleet.device(FleetDevice::new(format!("pretended-{device}")).model("pretended"));
    }
    Ok(fleet)
}

/// Seconds that a run takes, in a folder of its own.
fn seconds(fleet: FleetBuilder, records: usize) -> Outcome<f64> {
    let records: Vec<Record> = (0..records)
        .map(|at| Record::new(at.to_le_bytes()))
        .collect();
    let folder = tempfile::tempdir()?;
    seconds_of(fleet.folder(folder.path()), &records)
}

fn seconds_of(fleet: FleetBuilder, records: &[Record]) -> Outcome<f64> {
    let fleet = fleet.build()?;
    let begun = Instant::now();
    let report = fleet.run(records, |_| Ok(()))?;
    let took = begun.elapsed().as_secs_f64();
    if report.counts.ok != records.len() as u64 {
        return Err(format!("only {} records were done", report.counts.ok).into());
    }
    Ok(took)
}

/// The best of several rounds.
fn best(rounds: u32, mut round: impl FnMut() -> Outcome<f64>) -> Outcome<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        best = best.min(round()?);
    }
    Ok(best)
}

/// Records for each device of a scaling run: two seconds' worth, so that starting processes is a small part.
const EACH: usize = 400;
const SERVICE: u64 = 5000;

fn scaling() -> Outcome<()> {
    let pretence = Pretence {
        service: SERVICE,
        ..Pretence::default()
    };
    let ideal = EACH as f64 * SERVICE as f64 / 1e6;
    for devices in [1, 2, 4, 8, 16] {
        let took = best(2, || seconds(fleet(devices, &pretence)?, EACH * devices))?;
        println!("fleet_{devices}_devices_ratio {:.4}", took / ideal);
    }
    Ok(())
}

fn unequal() -> Outcome<()> {
    let pretence = Pretence {
        service: SERVICE / 4,
        slow: vec![4, 1],
        ..Pretence::default()
    };
    // The slow one does one record in the time of four of the other's.
    let records = 5 * EACH;
    let ideal = EACH as f64 * SERVICE as f64 / 1e6;
    for (name, schedule) in [("guided", Schedule::Guided), ("static", Schedule::Balanced)] {
        let took = best(2, || {
            seconds(fleet(2, &pretence)?.schedule(schedule), records)
        })?;
        println!("fleet_unequal_{name}_ratio {:.4}", took / ideal);
    }
    Ok(())
}

fn overhead() -> Outcome<()> {
    let records = 20_000;
    let nothing = Pretence::default();
    let took = best(3, || seconds(fleet(1, &nothing)?, records))?;
    println!("fleet_record_us {:.3}", took * 1e6 / records as f64);
    Ok(())
}

fn transport() -> Outcome<()> {
    let frame = 8 << 20;
    let pixels = Pretence {
        answer: frame,
        ..Pretence::default()
    };
    // The difference of a long and a short run: starting a process is not transport.
    let took = |frames: usize| {
        best(3, || {
            seconds(fleet(1, &pixels)?.keep(0).max_batch(8), frames)
        })
    };
    let (few, many) = (32, 288);
    let extra = took(many)? - took(few)?;
    let gigabytes = ((many - few) * frame) as f64 / 1e9;
    println!("fleet_gigabyte_ms {:.2}", extra * 1e3 / gigabytes);
    // The other way: records of pixels, which lie in memory all at once, so there are fewer of them. Without a
    // folder, which would be known again by the check sum of them all.
    let (few, many) = (8, 72);
    let records = vec![Record::new(vec![7; frame]); many];
    let took = |frames: usize| {
        let nothing = Pretence::default();
        best(3, || {
            seconds_of(fleet(1, &nothing)?.max_batch(2), &records[..frames])
        })
    };
    let extra = took(many)? - took(few)?;
    let gigabytes = ((many - few) * frame) as f64 / 1e9;
    println!(
        "fleet_gigabyte_to_workers_ms {:.2}",
        extra * 1e3 / gigabytes
    );
    Ok(())
}

/// A race against others: seconds for so many records of so many microseconds on so many devices.
fn race(mut arguments: impl Iterator<Item = String>) -> Outcome<()> {
    let mut next = || arguments.next().ok_or("race DEVICES RECORDS MICROSECONDS");
    let (devices, records) = (next()?.parse()?, next()?.parse()?);
    let pretence = Pretence {
        service: next()?.parse()?,
        ..Pretence::default()
    };
    println!("{}", seconds(fleet(devices, &pretence)?, records)?);
    Ok(())
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("be-worker") => Ok(worker::serve::<Pretended>(std::env::vars())?),
        Some("race") => race(arguments),
        _ => {
            overhead()?;
            transport()?;
            unequal()?;
            scaling()
        }
    }
}
