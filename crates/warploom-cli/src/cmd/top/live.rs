//! The terminal while it is drawn on: entered, watched, and given back on every way out.
//!
//! One thread looks at the machine and one draws, so that keys answer while a ledger is busy.

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, SystemTime};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use warploom::watch::Machine;

use super::screen;
use super::sight::Sight;
use super::state::{State, Wish};
use crate::report::Problem;

/// How soon a signal or news is noticed.
const GLANCE: Duration = Duration::from_millis(50);

/// How long whoever draws gets to end by itself.
const GRACE: Duration = Duration::from_millis(500);

/// The terminal, drawn on until this is dropped.
struct Stage {
    terminal: DefaultTerminal,
}

impl Stage {
    /// Takes the terminal. A panic gives it back before its message is printed.
    fn enter() -> io::Result<Self> {
        Ok(Self {
            terminal: ratatui::try_init()?,
        })
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Nobody is left to tell if this fails.
        let _ = ratatui::try_restore();
    }
}

/// Draws until somebody has seen enough.
pub(super) fn run(sight: Sight, every: Duration) -> Result<ExitCode, Problem> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    let handler = move || {
        flag.store(true, Ordering::SeqCst);
        end_in(GRACE);
    };
    ctrlc::set_handler(handler)
        .map_err(|error| Problem::failure(format!("interrupts cannot be watched: {error}")))?;
    let (news, heard) = channel();
    let (wishes, asked) = channel();
    let watcher = thread::spawn(move || watch(&sight, every, &news, &asked));
    let stage = Stage::enter().map_err(|error| {
        Problem::failure(format!(
            "the terminal cannot be drawn on: {error}; `--once` prints a table"
        ))
    })?;
    let end = perform(stage, &heard, &wishes, &interrupted);
    drop(wishes);
    drop(heard);
    // It ends with its wishes, at the latest after one more look.
    let watched = watcher.join();
    let end =
        end.map_err(|error| Problem::failure(format!("the terminal cannot be drawn on: {error}")))?;
    if watched.is_err() {
        return Err(Problem::failure("looking at the machine failed"));
    }
    Ok(end)
}

/// Ends the process, unless it has ended by then.
///
/// Whoever reads the keys may never come back: when a terminal goes away, its window closed, reading
/// from it answers nothing for ever, and the library that waits for keys tries again without rest.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing is half done here, and the thread that should return does not"
)]
fn end_in(grace: Duration) {
    thread::sleep(grace);
    let _ = ratatui::try_restore();
    std::process::exit(130);
}

/// Looks at the machine again and again, until nobody wishes anything any more.
fn watch(sight: &Sight, every: Duration, news: &Sender<News>, asked: &Receiver<()>) {
    loop {
        let look = sight.look().map_err(|problem| problem.to_string());
        if news.send(look).is_err() {
            return;
        }
        if !io::stdout().is_terminal() {
            end_in(GRACE);
        }
        match asked.recv_timeout(every) {
            Ok(()) => {
                if let Err(problem) = sight.rescan() {
                    let _ = news.send(Err(problem.to_string()));
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// The machine, or why it could not be looked at.
type News = Result<Machine, String>;

fn perform(
    mut stage: Stage,
    heard: &Receiver<News>,
    wishes: &Sender<()>,
    interrupted: &AtomicBool,
) -> io::Result<ExitCode> {
    let (mut machine, mut trouble, mut state) = (Machine::default(), None, State::default());
    // Nothing is drawn before something was seen: an empty screen would claim that nothing runs.
    let (mut known, mut fresh) = (false, false);
    loop {
        for news in heard.try_iter() {
            (known, fresh) = (true, true);
            match news {
                Ok(seen) => (machine, trouble) = (seen, None),
                // Only its first line has room, and what was seen last stays.
                Err(why) => trouble = why.lines().next().map(str::to_owned),
            }
        }
        if fresh {
            stage.terminal.draw(|frame| {
                screen::draw(
                    frame,
                    &machine,
                    &state,
                    trouble.as_deref(),
                    SystemTime::now(),
                );
            })?;
            fresh = false;
        }
        if interrupted.load(Ordering::SeqCst) {
            return Ok(ExitCode::from(130));
        }
        if !event::poll(GLANCE)? {
            continue;
        }
        fresh = known;
        if let Event::Key(key) = event::read()?
            && key.kind != KeyEventKind::Release
        {
            match state.press(key, &machine) {
                Wish::Quit => return Ok(ExitCode::SUCCESS),
                Wish::Interrupt => return Ok(ExitCode::from(130)),
                Wish::Rescan => drop(wishes.send(())),
                Wish::Nothing => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The one below starts this one in a terminal, and looks at what is left of it.
    #[test]
    #[should_panic(expected = "in the middle of a drawing")]
    fn panics() {
        if !io::stdin().is_terminal() {
            eprintln!("not in a terminal, so there is none to give back");
            panic!("in the middle of a drawing");
        }
        let mut stage = Stage::enter().expect("a terminal");
        let _ = stage
            .terminal
            .draw(|_| panic!("in the middle of a drawing"));
    }

    #[cfg(unix)]
    #[test]
    fn a_panic_gives_the_terminal_back() {
        let program = std::env::current_exe().unwrap();
        let line = format!(
            "'{}' --exact cmd::top::live::tests::panics --nocapture; stty -a",
            program.display()
        );
        let output = std::process::Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .env("TERM", "xterm-256color")
            .output()
            .expect("`script` makes a terminal");
        let seen = String::from_utf8_lossy(&output.stdout);
        let places = [
            "\u{1b}[?1049h",
            "\u{1b}[?1049l",
            "in the middle of a drawing",
            "1 passed",
            " icanon",
        ];
        let mut rest = &*seen;
        for place in places {
            let (_, after) = rest
                .split_once(place)
                .unwrap_or_else(|| panic!("{place:?} in {seen:?}"));
            rest = after;
        }
    }
}
