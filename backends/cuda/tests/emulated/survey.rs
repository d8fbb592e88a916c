//! Emulated cards with the identities of real ones, beside other backends' views of them.

use std::sync::Arc;
use std::time::Duration;

use rstest::{Context, rstest};
use warploom_core::{
    BackendEntry, BackendId, Device, DeviceInfo, DeviceKind, GpuBackend, MemoryKind, Options,
    PhysicalDevice, Registry, Result, Survey, Uuid,
};
use warploom_cuda::CudaBackend;
use warploom_testkit::{FakeBackend, FakeDevice};

use crate::scene::Scene;

/// Two cards as a lab has them.
const CARDS: &str = "name=A6000,memory=1GiB,pci=0000:41:00.0,uuid=GPU-41414141-4141-4141-4141-414141414141;\
                     name=A6000,memory=1GiB,pci=0000:c1:00.0,uuid=GPU-c1c1c1c1-c1c1-c1c1-c1c1-c1c1c1c1c1c1";

/// One card in two parts, with memory of their own.
const PARTS: &str = "memory=1GiB,pci=0000:41:00.0,uuid=GPU-41414141-4141-4141-4141-414141414141,mig=MIG-0a0a0a0a-0a0a-0a0a-0a0a-0a0a0a0a0a0a;\
                     memory=1GiB,pci=0000:41:00.0,uuid=GPU-41414141-4141-4141-4141-414141414141,mig=MIG-0b0b0b0b-0b0b-0b0b-0b0b-0b0b0b0b0b0b";

/// The CUDA backend as it would be if its emulated cards were real. Software never merges with
/// anything, and what is to be seen here is how cards merge.
#[derive(Debug)]
struct Real(CudaBackend);

impl GpuBackend for Real {
    fn id(&self) -> BackendId {
        self.0.id()
    }

    fn memory_kinds(&self) -> &'static [MemoryKind] {
        self.0.memory_kinds()
    }

    fn probe(&self) -> Result<Vec<DeviceInfo>> {
        let mut found = self.0.probe()?;
        for info in &mut found {
            assert!(info.software, "the backend itself says what they are");
            (info.kind, info.software) = (DeviceKind::Discrete, false);
        }
        Ok(found)
    }

    fn open(&self, ordinal: u32) -> Result<Arc<dyn Device>> {
        self.0.open(ordinal)
    }
}

const REAL: BackendEntry = BackendEntry::new(warploom_cuda::ID, || {
    Ok(Box::new(Real(CudaBackend::load()?)))
});

/// What a registry with these backends finds.
fn survey(cuda: BackendEntry, others: impl IntoIterator<Item = FakeBackend>) -> Survey {
    let mut registry = Registry::from_entries([cuda]);
    for backend in others {
        registry.add(Arc::new(backend));
    }
    let mut options = Options::default();
    options.probe_deadline = Duration::from_mins(1);
    let status = registry.initialize(&options).expect("devices");
    status.survey.clone()
}

/// The faces of each card.
fn faces(survey: &Survey) -> Vec<Vec<String>> {
    let ids = survey.devices.iter().map(|device| {
        device
            .faces
            .iter()
            .map(|face| face.id.to_string())
            .collect()
    });
    ids.collect()
}

/// The other APIs' views of [`CARDS`]: OpenCL tells addresses and lists them the other way round,
/// Vulkan tells UUIDs.
fn views() -> [FakeBackend; 2] {
    let opencl = FakeBackend::new("opencl")
        .device(FakeDevice::new("A6000").pci("0000:c1:00.0"))
        .device(FakeDevice::new("A6000").pci("0000:41:00.0"));
    let vulkan = FakeBackend::new("wgpu")
        .device(FakeDevice::new("A6000").uuid([0x41; 16]))
        .device(FakeDevice::new("A6000").uuid([0xc1; 16]));
    [opencl, vulkan]
}

#[rstest]
fn the_backend_tells_addresses_and_uuids(#[context] test: Context) {
    let play = || {
        let found = CudaBackend::load()
            .expect("it loads")
            .probe()
            .expect("a list");
        let keys: Vec<_> = found.iter().map(|info| info.key).collect();
        let told: Vec<_> = keys
            .iter()
            .map(|key| (key.pci.map(|pci| pci.to_string()), key.uuid, key.slice))
            .collect();
        let card = |pci: &str, uuid| (Some(pci.to_owned()), Some(Uuid([uuid; 16])), false);
        assert_eq!(
            told,
            [card("0000:41:00.0", 0x41), card("0000:c1:00.0", 0xc1)]
        );
    };
    Scene::new(&test, "keys")
        .devices(CARDS)
        .play(play)
        .says_nothing();
}

#[rstest]
fn three_views_of_a_card_are_one_card(#[context] test: Context) {
    let play = || {
        let survey = survey(REAL, views());
        let wanted = [
            ["cuda:0", "opencl:1", "wgpu:0"],
            ["cuda:1", "opencl:0", "wgpu:1"],
        ];
        assert_eq!(faces(&survey), wanted);
        assert_eq!(survey.notes, [""; 0]);
        let names: Vec<&str> = survey.devices.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["gpu0", "gpu1"]);
        for (device, pci) in survey.devices.iter().zip(["41", "c1"]) {
            assert_eq!(device.ledger_key(), format!("pci-0000-{pci}-00.0"));
            assert!(device.key.uuid.is_some() && !device.key.slice);
            let cuda = device.face(warploom_cuda::ID).expect("a face");
            assert_eq!(survey.find(&cuda.id.to_string()), Some(device));
        }
    };
    Scene::new(&test, "merged")
        .devices(CARDS)
        .play(play)
        .says_nothing();
}

#[rstest]
fn an_emulated_card_never_merges_with_a_real_one(#[context] test: Context) {
    let play = || {
        // The same identities, but told as what they are.
        let survey = survey(warploom_cuda::ENTRY, views());
        let wanted: [&[&str]; 6] = [
            &["opencl:1"],
            &["opencl:0"],
            &["wgpu:0"],
            &["wgpu:1"],
            &["cuda:0"],
            &["cuda:1"],
        ];
        assert_eq!(faces(&survey), wanted);
        let usable = survey.usable();
        assert!(usable.iter().all(|device| !device.software), "{usable:?}");
        assert_eq!(survey.devices[4].name, "soft0");
        assert_ne!(
            survey.devices[4].ledger_key(),
            survey.devices[0].ledger_key()
        );
    };
    Scene::new(&test, "apart")
        .devices(CARDS)
        .play(play)
        .says_nothing();
}

#[rstest]
fn parts_of_a_card_stay_apart(#[context] test: Context) {
    let play = || {
        // Their card as Vulkan sees it, and one of them as an OpenCL that tells only UUIDs sees it.
        let vulkan = FakeDevice::new("card").pci("0000:41:00.0").uuid([0x41; 16]);
        let opencl = FakeDevice::new("part").uuid([0x0b; 16]);
        let others = [
            FakeBackend::new("opencl").device(opencl),
            FakeBackend::new("wgpu").device(vulkan),
        ];
        let survey = survey(REAL, others);
        let wanted: [&[&str]; 3] = [&["cuda:0"], &["cuda:1", "opencl:0"], &["wgpu:0"]];
        assert_eq!(faces(&survey), wanted);
        let parts: Vec<_> = survey.devices.iter().filter(|d| d.key.slice).collect();
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].key.uuid, Some(Uuid([0x0a; 16])));
        assert_eq!(parts[1].key.uuid, Some(Uuid([0x0b; 16])));
        // Memory of their own is leased on its own.
        let keys: Vec<String> = survey
            .devices
            .iter()
            .map(PhysicalDevice::ledger_key)
            .collect();
        assert_ne!(keys[0], keys[1]);
        assert!(keys[0].contains("0a0a0a0a"), "{keys:?}");
        let note = &survey.notes[0];
        assert!(
            note.contains("cuda:0, cuda:1") && note.contains("0000:41:00.0"),
            "{note}"
        );
    };
    Scene::new(&test, "parts")
        .devices(PARTS)
        .play(play)
        .says_nothing();
}

#[rstest]
#[case::by_number("1", &["c1"])]
#[case::turned_round("1,0", &["c1", "41"])]
#[case::by_uuid("GPU-c1c1c1c1", &["c1"])]
#[case::none("", &[])]
fn hidden_cards_are_not_found_and_the_rest_keep_their_identity(
    #[context] test: Context,
    #[case] visible: &str,
    #[case] wanted: &[&str],
) {
    let play = || {
        let backend = CudaBackend::load().expect("it loads");
        let found = backend.probe().expect("a list");
        let pci = found.iter().filter_map(|info| info.key.pci);
        let found: Vec<String> = pci.map(|pci| format!("{:02x}", pci.bus)).collect();
        assert_eq!(found, wanted);
    };
    Scene::new(&test, "hidden")
        .devices(CARDS)
        .with("CUDA_VISIBLE_DEVICES", visible)
        .play(play)
        .says_nothing();
}
