//! What earlier runs on the same results found out about records that are still to be done.
//!
//! Each run has a folder and a journal of its own. Whoever resumes reads them all, or a record that takes its
//! worker or the whole run down with it would be new each time.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use warploom_fleet::Rules;
use warploom_fleet::journal::{History, Suspects, look};

use crate::folder::{ABOUT, About, runs};
use crate::settings::Settings;

/// What is known of these records, if the run is to go by it: from all earlier runs that computed the same,
/// the oldest first. What cannot be read is left out.
pub(super) fn read(output: &Path, recipe: &str, open: &[&str], settings: &Settings) -> History {
    let mut past = History::new(open.len());
    if !settings.resume {
        return past;
    }
    let places = open.iter().enumerate().map(|(at, name)| (*name, at));
    let places: HashMap<&str, usize> = places.collect();
    for run in runs(output).into_iter().rev() {
        if let Some((about, history)) = of(&run) {
            past.ceilings.extend(history.ceilings.clone());
            if about.recipe == recipe {
                add(&mut past, &places, &about, &history);
            }
        }
    }
    past
}

/// What one run found out; nothing where it had no workers, or cannot be read.
fn of(run: &Path) -> Option<(About, History)> {
    let about = fs::read(run.join(ABOUT)).ok()?;
    let about: About = serde_json::from_slice(&about).ok()?;
    let journal = run.join("journal");
    if !journal.exists() {
        return None;
    }
    let history = match look(&journal) {
        Ok(seen) => History::of(about.open.len(), &seen.entries).ok(),
        Err(error) => {
            tracing::warn!(%error, "an earlier run cannot be read");
            None
        }
    };
    Some((about, history?))
}

/// Adds what a later run found out.
fn add(past: &mut History, places: &HashMap<&str, usize>, about: &About, history: &History) {
    let place = |number: usize| places.get(about.open.get(number)?.as_str()).copied();
    let mut news: BTreeSet<u64> = BTreeSet::new();
    for (number, outcome) in history.outcomes.iter().enumerate() {
        let Some(at) = place(number) else {
            continue;
        };
        if outcome.is_some() {
            // It came to an end: whoever does it again begins anew.
            (past.attempts[at], past.alone[at], past.interrupted[at]) = (0, 0, 0);
            news.insert(at as u64);
        } else {
            past.attempts[at] += history.attempts[number];
            past.alone[at] += history.alone[number];
            past.interrupted[at] += history.interrupted[number];
        }
    }
    let mut groups = Vec::new();
    for group in &history.suspects {
        let numbers = group.records.iter();
        let numbers = numbers.filter_map(|number| place(usize::try_from(*number).ok()?));
        let records: Vec<u64> = numbers.map(|at| at as u64).collect();
        if !records.is_empty() {
            news.extend(&records);
            let cause = group.cause.clone();
            groups.push(Suspects { records, cause });
        }
    }
    for group in &mut past.suspects {
        group.records.retain(|record| !news.contains(record));
    }
    past.suspects.retain(|group| !group.records.is_empty());
    past.suspects.extend(groups);
}

/// What people should know of it.
pub(super) fn told(past: &History, names: &[&str]) -> Vec<String> {
    let limit = Rules::default().interruptions;
    let often = past.interrupted.iter().zip(names);
    let often = often.filter(|(times, _)| **times >= limit);
    let words = often.map(|(times, name)| {
        format!("{name} was under way {times} times when a run died, and is done last, by itself")
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::FOLDER;
    use warploom_fleet::journal::{Cause, Durability, Event, Journal};
    use warploom_fleet::{Answer, Reason};

    fn run(output: &Path, number: u64, recipe: &str, open: &[&str], events: Vec<Event>) {
        let folder = output.join(FOLDER).join(format!("run-{number}-1"));
        fs::create_dir_all(&folder).unwrap();
        let about = About {
            recipe: recipe.into(),
            open: open.iter().map(|name| (*name).to_owned()).collect(),
            ..About::default()
        };
        fs::write(folder.join(ABOUT), serde_json::to_vec(&about).unwrap()).unwrap();
        let opened = Journal::open(&folder.join("journal"), Durability::Never).unwrap();
        let mut journal = opened.journal;
        for event in events {
            journal.push(event).unwrap();
        }
        journal.finish().unwrap();
    }

    fn attempt(batch: u64, records: &[u64]) -> Event {
        let records = records.iter().copied().collect();
        let slot = 0;
        Event::Attempt {
            batch,
            slot,
            records,
        }
    }

    fn charged(batch: u64, records: &[u64]) -> Event {
        Event::Charged {
            batch,
            cause: Cause::Crashed {
                how: "it ended by signal 9".into(),
            },
            records: records.iter().copied().collect(),
        }
    }

    #[test]
    fn runs_before_are_added_up_by_the_names_of_records() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path();
        let ceiling = Event::Ceiling {
            plan: "p".into(),
            model: "m".into(),
            batch: 4,
        };
        let ok = Event::Ok {
            record: 0,
            attempts: 1,
            result: Answer::Kept(Vec::new()),
        };
        let first = vec![
            attempt(0, &[0]),
            ok,
            attempt(1, &[1, 2]),
            charged(1, &[1, 2]),
            ceiling,
        ];
        run(output, 100, "p", &["a", "b", "c"], first);
        // Killed while `c` was under way, after it had killed its worker alone.
        let second = vec![attempt(0, &[1]), charged(0, &[1]), attempt(1, &[1])];
        run(output, 200, "p", &["b", "c"], second);
        run(output, 300, "other", &["b", "c"], vec![attempt(0, &[0, 1])]);
        let mut settings = Settings::default();
        let none = read(output, "p", &["b", "c"], &settings);
        assert_eq!(none, History::new(2));
        settings.resume = true;
        let past = read(output, "p", &["c", "new", "b"], &settings);
        assert_eq!(past.attempts, [3, 0, 1]);
        assert_eq!(past.alone, [1, 0, 0]);
        assert_eq!(past.interrupted, [1, 0, 0]);
        let groups = past.suspects.iter().map(|group| &group.records[..]);
        assert_eq!(groups.collect::<Vec<_>>(), [&[2][..], &[0]]);
        assert_eq!(past.ceilings[&("p".into(), "m".into())], 4);
        assert_eq!(told(&past, &["c", "new", "b"]), [""; 0]);
        // Failed for good, it begins anew.
        let failed = Event::Failed {
            record: 0,
            attempts: 4,
            reason: Reason::Unanswered,
        };
        let third = vec![attempt(0, &[0]), charged(0, &[0]), failed];
        run(output, 400, "p", &["c"], third);
        let past = read(output, "p", &["c"], &settings);
        assert_eq!((past.attempts[0], past.alone[0]), (0, 0));
        assert!(past.suspects.is_empty());
    }

    #[test]
    fn a_record_that_dies_with_the_run_is_told_and_damage_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        for number in 1..=3 {
            run(
                folder.path(),
                number,
                "p",
                &["a", "b"],
                vec![attempt(0, &[1])],
            );
        }
        let broken = folder.path().join(FOLDER).join("run-4-1");
        fs::create_dir_all(&broken).unwrap();
        fs::write(broken.join(ABOUT), "{}").unwrap();
        fs::write(broken.join("journal"), "no journal at all").unwrap();
        let settings = Settings {
            resume: true,
            ..Settings::default()
        };
        let past = read(folder.path(), "p", &["a", "b"], &settings);
        assert_eq!(
            told(&past, &["a", "b"]),
            ["b was under way 3 times when a run died, and is done last, by itself"]
        );
    }
}
