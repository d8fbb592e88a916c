//! Leases on emulated cards, through the registry.

use std::num::NonZeroU32;
use std::time::Duration;

use rstest::{Context, rstest};
use warploom_core::{
    CapacityPolicy, LeaseCapacity, LeaseError, LeaseRequest, LeaseScope, MemoryNeed, Options,
    Registry, RegistryError, memory,
};

use crate::rig::work;
use crate::scene::Scene;

const GIB: u64 = 1 << 30;

/// Two cards of different sizes, each a ledger of its own.
const CARDS: &str = "name=small,memory=1GiB;name=large,memory=3GiB";

/// What one pipeline needs here: 3 fit the small card and 9 the large one.
const NEED: MemoryNeed = MemoryNeed {
    footprint: 200 << 20,
    context: 100 << 20,
    percent: 90,
};

/// A registry with only CUDA.
fn registry(leases: LeaseScope) -> Registry {
    let registry = Registry::from_entries([warploom_cuda::ENTRY]);
    let mut options = Options::default();
    options.capacity = CapacityPolicy::Memory(NEED);
    options.cpu_threads = NonZeroU32::new(64);
    options.leases = leases;
    options.probe_deadline = Duration::from_mins(1);
    registry.initialize(&options).expect("devices");
    registry
}

fn refused(answer: Result<warploom_core::Lease, RegistryError>) -> LeaseError {
    match answer {
        Err(RegistryError::Lease(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[rstest]
fn each_card_has_its_own_slots_and_bytes(#[context] test: Context) {
    let play = || {
        let registry = registry(LeaseScope::Process);
        let desk = registry.desk().expect("a desk");
        let found: Vec<_> = desk
            .devices()
            .iter()
            .map(|device| (device.name.as_str(), device.key.as_str(), device.capacity))
            .collect();
        let capacity = |slots, total: u64| LeaseCapacity {
            slots,
            bytes: total * 90 / 100,
        };
        let wanted = [
            ("soft0", "cuda-0", capacity(3, GIB)),
            ("soft1", "cuda-1", capacity(9, 3 * GIB)),
        ];
        assert_eq!(found, wanted);
        let status = registry.status().expect("initialised");
        for device in &status.survey.devices {
            assert_eq!(device.faces.len(), 1);
            assert!(
                device.label.starts_with(warploom_cuda::EMULATED),
                "{device:?}"
            );
        }
    };
    Scene::new(&test, "capacity")
        .devices(CARDS)
        .play(play)
        .says_nothing();
}

#[rstest]
#[case::too_many_bytes("cuda:0", 1, GIB, true)]
#[case::too_many_bytes_for_the_large("cuda:1", 1, 3 * GIB, true)]
#[case::too_many_bytes_anywhere("", 1, 4 * GIB, true)]
#[case::too_many_slots("cuda:0", 4, 0, false)]
#[case::too_many_slots_for_the_large("cuda:1", 10, 0, false)]
fn what_a_card_never_has_is_refused_at_once(
    #[context] test: Context,
    #[case] card: &str,
    #[case] slots: u32,
    #[case] bytes: u64,
    #[case] by_bytes: bool,
) {
    let play = || {
        let registry = registry(LeaseScope::Process);
        let request = LeaseRequest::new(slots, bytes);
        let request = request.on((!card.is_empty()).then_some(card));
        // Without a deadline: it would wait for ever if it were not refused before.
        let error = refused(registry.lease(&request));
        let right = match &error {
            LeaseError::TooManyBytes { asked, .. } => by_bytes && *asked == bytes,
            LeaseError::TooManySlots { asked, .. } => !by_bytes && *asked == slots,
            _ => false,
        };
        assert!(right, "{error}");
    };
    Scene::new(&test, "too much")
        .devices(CARDS)
        .play(play)
        .says_nothing();
}

#[rstest]
fn a_full_card_makes_the_next_one_wait_and_the_other_card_does_not(#[context] test: Context) {
    let play = || {
        let folder = tempfile::tempdir().expect("a folder");
        // Two registries are two programs: they agree through the ledger.
        let scope = LeaseScope::Folder(folder.path().join("ledger"));
        let (first, second) = (registry(scope.clone()), registry(scope));
        let now = Duration::ZERO;
        let most = GIB * 90 / 100;
        let request = |bytes| LeaseRequest::new(1, bytes).on(["cuda:0"]).within(now);
        let held = first
            .lease(&request(most - (1 << 20)).label("the first"))
            .expect("room");
        assert_eq!((held.device(), held.slots()), ("soft0", 1));
        // A mebibyte is left, and two slots.
        let little = second.lease(&request(1 << 20)).expect("room for little");
        let error = refused(second.lease(&request(1)));
        let LeaseError::Deadline { devices, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!(devices, &["soft0"]);
        assert!(
            error.to_string().contains("the first"),
            "who holds it: {error}"
        );
        let last = second.lease(&request(0)).expect("the third slot");
        let error = refused(second.lease(&request(0)));
        assert!(matches!(error, LeaseError::Deadline { .. }), "{error}");
        // Who takes any card gets the other one.
        let other = second.lease(&LeaseRequest::new(1, most).within(now));
        let other = other.expect("the other card is free");
        assert_eq!(other.device(), "soft1");
        // What is given back is there for others.
        drop((held, little, last));
        let again = second.lease(&request(most)).expect("all of it");
        assert_eq!(again.bytes(), most);
    };
    Scene::new(&test, "full")
        .devices(CARDS)
        .play(play)
        .says_nothing();
}

#[rstest]
fn a_lease_of_bytes_can_be_allocated(#[context] test: Context) {
    let play = || {
        let registry = registry(LeaseScope::Process);
        let lease = registry
            .lease(&LeaseRequest::new(1, GIB / 2))
            .expect("room");
        let status = registry.status().expect("initialised");
        let card = status.survey.find(lease.device()).expect("it is listed");
        let device = registry.open(card.faces[0].id).expect("it opens");
        let buffer = device.alloc(memory::CUDA_DEVICE, lease.bytes());
        let buffer = buffer.expect("what was leased is there");
        work(&device).expect("and the device works");
        drop((buffer, lease));
    };
    Scene::new(&test, "allocated")
        .devices(CARDS)
        .play(play)
        .says_nothing();
}

#[rstest]
fn a_lease_outlives_the_card_and_is_given_back(#[context] test: Context) {
    let play = || {
        let registry = registry(LeaseScope::Process);
        let all = LeaseRequest::new(3, 1 << 20)
            .on(["cuda:0"])
            .within(Duration::ZERO);
        let lease = registry.lease(&all).expect("room");
        let id = "cuda:0".parse().expect("a device");
        let device = registry.open(id).expect("it opens");
        let lost = work(&device).expect_err("it dies");
        assert_eq!(crate::rig::kind(&lost), crate::rig::Kind::Lost, "{lost}");
        drop((lease, device));
        // Leases are agreements between programs, so they go on; opening says what is wrong.
        drop(registry.lease(&all).expect("it was given back"));
        let error = registry.open(id).expect_err("it stays lost");
        assert!(matches!(error, RegistryError::Device(_)), "{error}");
        let other = registry.open("cuda:1".parse().expect("a device"));
        work(&other.expect("it opens")).expect("another device");
    };
    Scene::new(&test, "lost")
        .devices(CARDS)
        .lose("0@2")
        .play(play)
        .says_only_what_was_planned();
}
