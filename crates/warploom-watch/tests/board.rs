//! Notices within one process: what is seen, while it changes and when it is damaged.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use warploom_watch::board::{Board, DeviceNotice, Notice, Phase};

fn board() -> (tempfile::TempDir, Board) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let board = Board::beside_leases(&dir.path().join("leases"));
    (dir, board)
}

fn files(folder: &Path) -> Vec<String> {
    let items = fs::read_dir(folder).expect("the board's folder");
    items
        .map(|item| {
            item.expect("an item")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect()
}

#[test]
fn a_notice_is_there_as_long_as_its_pin() {
    let (_dir, board) = board();
    assert!(
        board.notices().unwrap().is_empty(),
        "no folder is an empty board"
    );
    let mut notice = Notice::new("plate 7", "nuclei", 96);
    notice.phase = Phase::Running;
    notice.rate = Some(12.5);
    notice.devices.push(DeviceNotice {
        label: "gpu0".into(),
        memory: Some(1 << 30),
        ..DeviceNotice::default()
    });
    let mut pin = board.pin(&notice).unwrap();
    notice.ok = 3;
    pin.update(&notice).unwrap();
    let [seen] = &board.notices().unwrap()[..] else {
        panic!("one notice");
    };
    assert!(seen.updated >= notice.started);
    assert_eq!(
        *seen,
        Notice {
            updated: seen.updated,
            ..notice
        }
    );
    assert_eq!(seen.pid, std::process::id());
    assert_eq!(files(board.folder()).len(), 1);
    drop(pin);
    assert!(board.notices().unwrap().is_empty());
    assert_eq!(files(board.folder()), [""; 0]);
}

#[test]
fn those_who_came_first_are_shown_first() {
    let (_dir, board) = board();
    let pins: Vec<_> = [30, 10, 20]
        .map(|started| {
            let notice = Notice {
                started,
                ..Notice::new("t", started.to_string(), 1)
            };
            board.pin(&notice).unwrap()
        })
        .into();
    let order: Vec<String> = board
        .notices()
        .unwrap()
        .into_iter()
        .map(|n| n.pipeline)
        .collect();
    assert_eq!(order, ["10", "20", "30"]);
    assert_eq!(pins.len(), 3);
}

#[test]
fn whoever_reads_while_it_changes_sees_all_of_one_version() {
    let (_dir, board) = board();
    let versions = 500_u64;
    let mut notice = Notice::new("", "p", versions);
    let mut pin = board.pin(&notice).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let (mut last, mut looks) = (0, 0_u64);
                    while !stop.load(Ordering::Relaxed) {
                        let seen = board.notices().expect("readable");
                        let [seen] = &seen[..] else {
                            panic!("{} notices, after version {last}", seen.len());
                        };
                        // Every version is as long as its number says.
                        assert_eq!(seen.title.len() as u64, seen.ok % 300);
                        assert!(seen.ok >= last, "{} after {last}", seen.ok);
                        last = seen.ok;
                        looks += 1;
                    }
                    looks
                })
            })
            .collect();
        let mut failure = None;
        for version in 0..versions {
            notice.ok = version;
            notice.title = "x".repeat(usize::try_from(version % 300).unwrap());
            failure = failure.or(pin.update(&notice).err());
        }
        thread::sleep(Duration::from_millis(20));
        // Readers go on until they are told to stop, whatever happened here.
        stop.store(true, Ordering::Relaxed);
        assert!(failure.is_none(), "{failure:?}");
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
    });
    assert_eq!(files(board.folder()).len(), 1);
}

#[test]
fn what_nobody_holds_is_taken_down_and_what_is_no_notice_is_left_alone() {
    let (_dir, board) = board();
    let pin = board.pin(&Notice::new("t", "mine", 1)).unwrap();
    let put = |name: &str, text: &str| fs::write(board.folder().join(name), text).unwrap();
    let dead = serde_json::to_string(&Notice::new("t", "dead", 1)).unwrap();
    put("1-00000000000000aa.json", &dead);
    put("2-00000000000000bb.json", "{ torn");
    put("3-00000000000000cc.new", "");
    put("README", "hands off");
    fs::create_dir(board.folder().join("folder.json")).unwrap();
    let seen: Vec<String> = board
        .notices()
        .unwrap()
        .into_iter()
        .map(|n| n.pipeline)
        .collect();
    assert_eq!(seen, ["mine"]);
    let mut left = files(board.folder());
    left.retain(|name| !name.starts_with(&std::process::id().to_string()));
    left.sort();
    assert_eq!(left, ["README", "folder.json"]);
    drop(pin);
}

#[test]
fn a_living_process_whose_notice_makes_no_sense_is_neither_shown_nor_taken_down() {
    let (_dir, board) = board();
    let pin = board.pin(&Notice::new("t", "mine", 1)).unwrap();
    let path = board.folder().join("1-00000000000000aa.json");
    let file = fs::File::create(&path).unwrap();
    file.lock().unwrap();
    for text in ["", "{", "null", "{\"total\": -1}", "\u{0}"] {
        fs::write(&path, text).unwrap();
        assert_eq!(board.notices().unwrap().len(), 1, "{text}");
        assert!(path.exists());
    }
    // What a later version adds is no obstacle.
    fs::write(&path, "{\"pipeline\": \"later\", \"new\": {}}").unwrap();
    assert_eq!(board.notices().unwrap().len(), 2);
    drop(pin);
}

#[cfg(unix)]
#[test]
fn links_and_pipes_are_not_followed() {
    let (dir, board) = board();
    let pin = board.pin(&Notice::new("t", "mine", 1)).unwrap();
    let elsewhere = dir.path().join("elsewhere.json");
    fs::write(&elsewhere, "{}").unwrap();
    std::os::unix::fs::symlink(&elsewhere, board.folder().join("1-aa.json")).unwrap();
    let fifo = board.folder().join("2-bb.json");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.is_ok_and(|made| made.success()), "mkfifo makes a pipe");
    assert_eq!(board.notices().unwrap().len(), 1);
    assert!(elsewhere.exists());
    drop(pin);
}

#[test]
fn a_board_that_was_swept_away_is_made_again() {
    let (dir, board) = board();
    let mut notice = Notice::new("t", "p", 1);
    let mut pin = board.pin(&notice).unwrap();
    fs::remove_dir_all(dir.path().join("leases")).unwrap();
    assert!(board.notices().unwrap().is_empty());
    notice.ok = 1;
    pin.update(&notice).unwrap();
    assert_eq!(board.notices().unwrap()[0].ok, 1);
}

#[test]
fn a_folder_that_cannot_be_is_an_error_with_its_name_and_the_run_may_go_on() {
    use warploom_core::Coded as _;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let board = Board::in_folder(file.join("board"));
    let error = board.pin(&Notice::new("t", "p", 1)).unwrap_err();
    assert!(error.to_string().contains("cannot be written"), "{error}");
    assert_eq!(error.code().to_string(), "WL0131");
    assert!(error.help().is_some());
    let error = Board::in_folder(&file).notices().unwrap_err();
    assert!(error.to_string().contains("cannot be read"), "{error}");
}
