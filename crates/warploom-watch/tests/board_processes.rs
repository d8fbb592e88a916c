//! Notices of processes that die in every way.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use warploom_watch::board::{Board, Notice};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [role, folder, pipeline] = &words[..]
        && role == "play"
    {
        return play(Path::new(folder), pipeline);
    }
    let trials = vec![
        Trial::test("board_processes_are_seen_while_they_live", seen_while_alive),
        Trial::test("board_processes_killed_at_any_moment_leave_nothing", killed),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// What a started process does: it pins, says so, and updates until its input ends.
fn play(folder: &Path, pipeline: &str) -> ExitCode {
    let board = Board::in_folder(folder);
    let mut notice = Notice::new("played", pipeline, 1_000_000);
    let Ok(mut pin) = board.pin(&notice) else {
        return ExitCode::FAILURE;
    };
    let _ = writeln!(std::io::stdout(), "pinned");
    let ended = std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
    });
    while !ended.is_finished() {
        notice.ok += 1;
        if pin.update(&notice).is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

struct Player {
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Player {
    fn start(folder: &Path, pipeline: &str) -> Result<Self, Failed> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["play".as_ref(), folder.as_os_str(), pipeline.as_ref()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().ok_or("stdout is piped")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let player = Self { child, stdin };
        if line == "pinned\n" {
            Ok(player)
        } else {
            Err(format!("it said {line:?}").into())
        }
    }

    /// Ends it as a program ends.
    fn end(mut self) -> Result<(), Failed> {
        drop(self.stdin.take());
        let status = self.child.wait()?;
        if status.success() {
            Ok(())
        } else {
            Err(status.to_string().into())
        }
    }

    /// Ends it as nothing can be prepared for.
    fn kill(mut self) -> Result<(), Failed> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pipelines(board: &Board) -> Result<Vec<String>, Failed> {
    Ok(board
        .notices()?
        .into_iter()
        .map(|notice| notice.pipeline)
        .collect())
}

fn seen_while_alive() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let board = Board::in_folder(dir.path().join("board"));
    let first = Player::start(board.folder(), "first")?;
    let second = Player::start(board.folder(), "second")?;
    // Hundreds of updates go by meanwhile; none of the two may be missing for a moment.
    let (until, mut looks) = (Instant::now() + Duration::from_millis(300), 0);
    while Instant::now() < until {
        let mut seen = pipelines(&board)?;
        seen.sort();
        assert_eq!(seen, ["first", "second"], "after {looks} looks");
        looks += 1;
    }
    assert!(looks > 10, "{looks} looks");
    first.end()?;
    assert_eq!(pipelines(&board)?, ["second"]);
    second.kill()?;
    assert_eq!(pipelines(&board)?, [""; 0]);
    Ok(())
}

fn killed() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let board = Board::in_folder(dir.path().join("board"));
    for round in 0..25_u64 {
        let player = Player::start(board.folder(), "victim")?;
        std::thread::sleep(Duration::from_micros(round * 137 % 2_000));
        player.kill()?;
        assert_eq!(pipelines(&board)?, [""; 0], "round {round}");
        // A draft that was just locked or renamed is gone, too.
        let left: Vec<_> = std::fs::read_dir(board.folder())?.collect();
        assert!(left.is_empty(), "round {round}: {left:?}");
    }
    Ok(())
}
