//! What a ledger survives: damage, deletion, disagreement, a lock that is never given back.
#![cfg(all(not(warploom_shuttle), unix))]

#[path = "audit/mod.rs"]
mod audit;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use audit::Line;
use rstest::rstest;
use tempfile::TempDir;
use warploom_core::{DeskDevice, Lease, LeaseCapacity, LeaseDesk, LeaseError, LeaseRequest};

const KEY: &str = "pci-0000-41-00.0";

fn desk_with(dir: &Path, slots: u32, bytes: u64) -> Result<LeaseDesk, LeaseError> {
    let gpu = DeskDevice::new("gpu0", KEY, LeaseCapacity { slots, bytes });
    LeaseDesk::shared(vec![gpu], dir)
}

fn desk(dir: &Path) -> LeaseDesk {
    desk_with(dir, 4, 1000).expect("a desk opens")
}

fn ledger(dir: &Path) -> PathBuf {
    dir.join(format!("{KEY}.ledger"))
}

/// The lines of the ledger, once nobody is writing it.
fn lines(dir: &Path) -> Vec<Line> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(lines) = audit::read(&ledger(dir)) {
            return lines;
        }
        assert!(Instant::now() < deadline, "the ledger stays damaged");
        thread::sleep(Duration::from_millis(1));
    }
}

/// A ledger with these lines.
fn compose(lines: &[Line]) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    for line in lines {
        let mut record = vec![0; 128];
        record[..8].copy_from_slice(&line.ticket.to_le_bytes());
        record[8..16].copy_from_slice(&line.owner.to_le_bytes());
        record[16..20].copy_from_slice(&line.pid.to_le_bytes());
        record[20] = line.holds.into();
        record[24..28].copy_from_slice(&line.slots.to_le_bytes());
        record[32..40].copy_from_slice(&line.bytes.to_le_bytes());
        record[64] = u8::try_from(line.label.len()).expect("a short label");
        record[65..65 + line.label.len()].copy_from_slice(line.label.as_bytes());
        bytes.extend(record);
    }
    bytes[..8].copy_from_slice(b"WLLEDGER");
    bytes[8..16].copy_from_slice(&[1, 0, 0, 0, 254, 255, 255, 255]);
    let next = lines.iter().map(|line| line.ticket + 1).max().unwrap_or(0);
    bytes[40..48].copy_from_slice(&next.to_le_bytes());
    bytes[48..52].copy_from_slice(&u32::try_from(lines.len()).expect("few").to_le_bytes());
    let sum = audit::checksum(&bytes[32..]);
    bytes[24..32].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Labels of holders and waiters, as `desk` sees them.
fn labels(desk: &LeaseDesk) -> (Vec<String>, Vec<String>) {
    let status = desk.status().expect("the desk answers").remove(0);
    let labels = |side: Vec<warploom_core::Holder>| side.into_iter().map(|h| h.label).collect();
    (labels(status.held), labels(status.waiting))
}

/// Two desks: one holds two leases and has a thread that waits for more, the other looks on.
struct Scene {
    dir: TempDir,
    onlooker: LeaseDesk,
    held: Vec<Lease>,
    waiter: Option<thread::JoinHandle<Result<Lease, LeaseError>>>,
}

impl Scene {
    fn set() -> Self {
        let dir = TempDir::new().expect("a temporary directory");
        let (holder, onlooker) = (desk(dir.path()), desk(dir.path()));
        let held = ["one", "two"].map(|label| {
            let request = LeaseRequest::new(1, 300).label(label);
            holder.lease(&request).expect("it is free")
        });
        let waiting = LeaseRequest::new(4, 0).label("three");
        let scene = Self {
            dir,
            held: held.into(),
            waiter: Some(thread::spawn(move || holder.lease(&waiting))),
            onlooker,
        };
        let deadline = Instant::now() + Duration::from_secs(20);
        while labels(&scene.onlooker).1.is_empty() {
            assert!(Instant::now() < deadline, "nobody waits");
            thread::sleep(Duration::from_millis(1));
        }
        scene
    }

    fn ledger(&self) -> PathBuf {
        ledger(self.dir.path())
    }

    /// Nothing was forgotten and nothing is given twice.
    fn assert_whole(&self, what: &str) {
        let expected = (vec!["one".into(), "two".into()], vec!["three".into()]);
        assert_eq!(labels(&self.onlooker), expected, "{what}");
        assert_eq!(lines(self.dir.path()).len(), 3, "{what}");
        let greedy = LeaseRequest::new(3, 0);
        assert!(
            self.onlooker
                .try_lease(&greedy)
                .expect("it works")
                .is_none()
        );
    }

    fn end(mut self) {
        self.held.clear();
        let waiter = self.waiter.take().expect("it waits");
        let lease = waiter.join().expect("no panic").expect("it is served");
        assert_eq!(lease.label(), "three");
        drop(lease);
        assert_eq!(labels(&self.onlooker), (vec![], vec![]));
    }
}

#[test]
fn a_ledger_cut_at_any_length_heals() {
    let scene = Scene::set();
    let whole = fs::read(scene.ledger()).unwrap();
    assert!(whole.len() >= 64 + 3 * 128);
    for length in 0..64 + 3 * 128 {
        fs::write(scene.ledger(), &whole[..length]).unwrap();
        scene.assert_whole(&format!("cut to {length} bytes"));
    }
    scene.end();
}

#[test]
fn a_ledger_with_any_byte_changed_heals() {
    let scene = Scene::set();
    for at in 0..64 + 3 * 128 {
        let mut bytes = fs::read(scene.ledger()).unwrap();
        bytes[at] ^= 0x5a;
        fs::write(scene.ledger(), bytes).unwrap();
        scene.assert_whole(&format!("byte {at} changed"));
    }
    scene.end();
}

#[rstest]
#[case(b"no ledger at all".to_vec())]
#[case(vec![0; 4096])]
#[case(vec![255; 100_000])]
#[case(b"WLLEDGER".to_vec())]
fn garbage_heals(#[case] garbage: Vec<u8>) {
    let scene = Scene::set();
    fs::write(scene.ledger(), garbage).unwrap();
    scene.assert_whole("garbage");
    scene.end();
}

#[test]
fn a_deleted_ledger_is_made_again() {
    let scene = Scene::set();
    fs::remove_file(scene.ledger()).unwrap();
    scene.assert_whole("deleted");
    // Replaced by another file, as an editor would.
    let other = scene.dir.path().join("other");
    fs::write(&other, "something else").unwrap();
    fs::rename(other, scene.ledger()).unwrap();
    scene.assert_whole("replaced");
    scene.end();
}

#[test]
fn a_deleted_directory_is_made_again_and_leases_come_back() {
    let scene = Scene::set();
    fs::remove_dir_all(scene.dir.path()).unwrap();
    // The holder's waiter looks at least every tenth of a second, and puts its lines back.
    let deadline = Instant::now() + Duration::from_secs(20);
    while audit::read(&scene.ledger()).is_none_or(|lines| lines.len() != 3) {
        assert!(Instant::now() < deadline, "the lines never came back");
        thread::sleep(Duration::from_millis(5));
    }
    scene.assert_whole("directory deleted");
    scene.end();
}

#[test]
fn a_lease_is_released_though_everything_is_gone() {
    let dir = TempDir::new().unwrap();
    let first = desk(dir.path());
    let lease = first.lease(&LeaseRequest::new(4, 0)).unwrap();
    fs::remove_dir_all(dir.path()).unwrap();
    drop(lease);
    let lease = first.lease(&LeaseRequest::new(4, 0).within(Duration::from_secs(5)));
    assert!(lease.is_ok(), "{lease:?}");
    fs::remove_dir_all(dir.path()).unwrap();
    drop(lease);
    fs::remove_dir_all(dir.path()).unwrap();
    drop(first);
    assert!(!dir.path().exists());
    // And where the directory cannot be made again, because a file is in its place.
    let first = desk(dir.path());
    let lease = first.lease(&LeaseRequest::new(4, 0)).unwrap();
    fs::remove_dir_all(dir.path()).unwrap();
    fs::write(dir.path(), "a file").unwrap();
    drop(lease);
    assert!(matches!(
        first.lease(&LeaseRequest::new(1, 0)),
        Err(LeaseError::Ledger { .. })
    ));
    drop(first);
    fs::remove_file(dir.path()).unwrap();
}

#[test]
fn a_damaged_share_of_a_living_desk_is_not_guessed_at() {
    let dir = TempDir::new().unwrap();
    let (holder, onlooker) = (desk(dir.path()), desk(dir.path()));
    let lease = holder.lease(&LeaseRequest::new(3, 0).label("mine"));
    let files = fs::read_dir(dir.path().join("desks")).unwrap();
    let files = files.map(|item| item.unwrap().path());
    let shares: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|ending| ending == "share"))
        .collect();
    assert_eq!(shares.len(), 1, "only who has lines has a share");
    fs::write(&shares[0], "garbage").unwrap();
    fs::write(ledger(dir.path()), "garbage").unwrap();
    let Err(LeaseError::Ledger { path, reason }) = onlooker.status() else {
        panic!("somebody guessed");
    };
    assert_eq!(path, shares[0]);
    let pid = std::process::id();
    assert_eq!(
        reason,
        format!("its header is torn, and its process {pid} is still alive")
    );
    // The owner knows what it holds, and heals both as soon as it looks.
    assert_eq!(labels(&holder).0, ["mine"]);
    assert_eq!(labels(&onlooker).0, ["mine"]);
    fs::write(ledger(dir.path()), "garbage").unwrap();
    assert_eq!(labels(&onlooker).0, ["mine"]);
    drop(lease);
}

#[test]
fn a_ledger_of_another_format_is_left_alone() {
    let dir = TempDir::new().unwrap();
    let mut bytes = compose(&[]);
    bytes[8..16].copy_from_slice(&[2, 0, 0, 0, 253, 255, 255, 255]);
    fs::write(ledger(dir.path()), &bytes).unwrap();
    let error = desk_with(dir.path(), 1, 1).unwrap_err();
    let path = ledger(dir.path());
    assert_eq!(
        error.to_string(),
        format!(
            "the lease ledger {} cannot be used: it is of format 2, and this program knows 1",
            path.display()
        )
    );
    assert_eq!(fs::read(path).unwrap(), bytes);
}

#[test]
fn a_link_in_place_of_a_ledger_is_not_followed() {
    let dir = TempDir::new().unwrap();
    let target = dir.path().join("precious");
    fs::write(&target, "precious").unwrap();
    std::os::unix::fs::symlink(&target, ledger(dir.path())).unwrap();
    let error = desk_with(dir.path(), 1, 1).unwrap_err();
    assert!(matches!(error, LeaseError::Ledger { .. }), "{error}");
    assert_eq!(fs::read(target).unwrap(), b"precious");
}

#[test]
fn a_directory_that_cannot_be_is_refused() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = desk_with(&file.join("ledgers"), 1, 1).unwrap_err();
    let LeaseError::Ledger { path, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(path, &file.join("ledgers"));
}

#[test]
fn desks_that_disagree_each_keep_to_their_own_number() {
    let dir = TempDir::new().unwrap();
    let wide = desk_with(dir.path(), 4, 1000).unwrap();
    let narrow = desk_with(dir.path(), 2, 500).unwrap();
    let one = LeaseRequest::new(1, 200);
    let first = narrow.lease(&one).unwrap();
    let second = wide.lease(&one).unwrap();
    assert!(narrow.try_lease(&one).unwrap().is_none());
    let third = wide.lease(&one).unwrap();
    let fourth = wide.lease(&one).unwrap();
    assert!(wide.try_lease(&one).unwrap().is_none());
    drop((first, second, third));
    assert!(narrow.try_lease(&one).unwrap().is_some());
    drop(fourth);
}

/// What a process leaves that was stopped in the wrong microsecond.
#[test]
fn a_lock_that_is_never_given_back_stops_nobody_for_ever() {
    let dir = TempDir::new().unwrap();
    let first = desk(dir.path());
    let lease = first.lease(&LeaseRequest::new(4, 0)).unwrap();
    let stuck = File::open(ledger(dir.path())).unwrap();
    stuck.lock().unwrap();

    let asked = Duration::from_millis(200);
    let start = Instant::now();
    let error = first
        .lease(&LeaseRequest::new(1, 0).within(asked))
        .unwrap_err();
    assert!(start.elapsed() >= asked);
    let LeaseError::LedgerBusy { path, waited } = &error else {
        panic!("{error}");
    };
    assert_eq!(path, &ledger(dir.path()));
    assert!(*waited >= asked);

    // A release returns all the same, and is done as soon as it can be.
    let start = Instant::now();
    drop(lease);
    assert!(start.elapsed() < Duration::from_secs(10));
    assert_eq!(lines(dir.path()).len(), 1);
    stuck.unlock().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !lines(dir.path()).is_empty() {
        assert!(Instant::now() < deadline, "it was never released");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_full_ledger_says_so() {
    let dir = TempDir::new().unwrap();
    let (first, second) = (desk_with(dir.path(), 10_000, 0).unwrap(), desk(dir.path()));
    let probe = second.lease(&LeaseRequest::new(1, 0)).unwrap();
    let line = lines(dir.path()).remove(0);
    let crowd: Vec<Line> = (0..4096)
        .map(|ticket| Line {
            ticket,
            ..line.clone()
        })
        .collect();
    fs::write(ledger(dir.path()), compose(&crowd)).unwrap();
    assert_eq!(first.status().unwrap()[0].held.len(), 4096);
    let error = first.lease(&LeaseRequest::new(1, 0)).unwrap_err();
    let LeaseError::Ledger { reason, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(
        reason,
        "4097 leases and waiters are too many; it takes 4096"
    );
    // What could not be written did not happen.
    assert_eq!(lines(dir.path()).len(), 4096);
    drop(probe);
}

#[test]
fn many_leases_fit() {
    let dir = TempDir::new().unwrap();
    let (first, second) = (desk_with(dir.path(), 300, 0).unwrap(), desk(dir.path()));
    let request = LeaseRequest::new(1, 0).label(&"long ".repeat(20));
    let leases: Vec<Lease> = (0..200).map(|_| first.lease(&request).unwrap()).collect();
    let seen = second.status().unwrap().remove(0);
    assert_eq!(seen.held.len(), 200);
    assert_eq!(seen.held[199].label, "long ".repeat(20)[..63]);
    drop(leases);
    assert_eq!(labels(&second), (vec![], vec![]));
}

#[test]
fn nothing_but_ledgers_stays_behind() {
    let dir = TempDir::new().unwrap();
    let (first, second) = (desk(dir.path()), desk(dir.path()));
    let lease = first.lease(&LeaseRequest::new(1, 0)).unwrap();
    drop(second.lease(&LeaseRequest::new(1, 0)).unwrap());
    drop((first, second));
    // The lease keeps its desk.
    assert_eq!(labels(&desk(dir.path())).0.len(), 1);
    drop(lease);
    assert_eq!(fs::read_dir(dir.path().join("desks")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    assert_eq!(lines(dir.path()), []);
}
