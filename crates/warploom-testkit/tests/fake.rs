//! What the fake is told, it does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rstest::rstest;
use warploom_core::{
    Buffer, CheckedDevice, CheckedQueue, DeviceError, GpuBackend, Grid, Kernel, KernelSource,
    Param, Queue, QueueDesc, Slice,
};
use warploom_testkit::fake::{Call, Probe};
use warploom_testkit::{FakeBackend, FakeDevice};

/// A device with a queue, a buffer and a kernel that adds one to every byte.
struct Kit {
    fakes: FakeBackend,
    device: CheckedDevice,
    queue: CheckedQueue,
    slice: Slice,
    kernel: Arc<dyn Kernel>,
}

fn kit(device: FakeDevice) -> Result<Kit, DeviceError> {
    let fakes = FakeBackend::new("fake").device(device);
    let device = CheckedDevice::new(fakes.open(0)?);
    let queue = device.queue(&QueueDesc::default())?;
    let buffer = device.alloc(device.info().memory[0], 16)?;
    let source = KernelSource::host("bump", &[Param::ReadWrite], |call| {
        for byte in call.write::<u8>(0) {
            *byte += 1;
        }
    });
    Ok(Kit {
        kernel: device.kernel(&source)?,
        slice: Slice::whole(&buffer),
        fakes,
        device,
        queue,
    })
}

impl Kit {
    fn bump(&mut self) -> Result<(), DeviceError> {
        let args = [self.slice.clone().into()];
        self.queue.launch(&self.kernel, Grid::groups([1; 3]), &args)
    }

    fn call(&mut self, call: Call) -> Result<(), DeviceError> {
        let other = Slice::whole(&self.pinned()?);
        match call {
            Call::Open => self.fakes.open(0).map(|_| ()),
            Call::Alloc => self.device.alloc(self.slice.buffer().kind(), 1).map(|_| ()),
            Call::Queue => self.device.queue(&QueueDesc::default()).map(|_| ()),
            Call::Kernel => {
                let source = KernelSource::host("nothing", &[], |_| ());
                self.device.kernel(&source).map(|_| ())
            }
            Call::Upload => self.queue.upload(&[1; 16], &self.slice),
            Call::Download => self.queue.download(&self.slice, &mut [0; 16]),
            Call::Copy => self.queue.copy(&self.slice, &other),
            Call::Launch => self.bump(),
            Call::Record => self.queue.record().map(|_| ()),
            Call::Wait => {
                let event = self.queue.record()?;
                self.queue.wait(&event)
            }
            Call::EventWait => self.queue.record()?.wait(None),
            Call::WithHost => other.buffer().with_host(&mut |_| ()),
            other => panic!("no such call: {other:?}"),
        }
    }

    fn pinned(&self) -> Result<Arc<dyn Buffer>, DeviceError> {
        // From an opening of its own, so that it is not counted here.
        let kind = self.device.info().memory[1];
        self.device.bare().alloc(kind, 16)
    }
}

#[rstest]
fn the_nth_call_fails_and_only_that(
    #[values(
        Call::Open,
        Call::Queue,
        Call::Kernel,
        Call::Upload,
        Call::Download,
        Call::Copy,
        Call::Launch,
        Call::Record,
        Call::Wait,
        Call::EventWait,
        Call::WithHost
    )]
    call: Call,
    #[values(false, true)] at_once: bool,
) {
    // The kit itself opens, makes a queue and compiles once.
    let before = u64::from(matches!(call, Call::Open | Call::Queue | Call::Kernel));
    let device = FakeDevice::new("x").fail(call, before + 2, |id| {
        DeviceError::driver(id, "scripted", "on purpose")
    });
    let mut kit = kit(if at_once { device.at_once() } else { device }).unwrap();
    assert_eq!(kit.call(call), Ok(()));
    let error = kit.call(call).unwrap_err();
    assert!(error.to_string().contains("on purpose"), "{error}");
    assert_eq!(kit.call(call), Ok(()));
    assert_eq!(kit.fakes.calls(0, call), before + 3);
}

#[rstest]
fn work_that_fails_later_fails_its_event(
    #[values(Call::Upload, Call::Copy, Call::Launch)] call: Call,
) {
    let mut kit = kit(FakeDevice::new("x").fail_later(call, 1, |id| {
        DeviceError::driver(id, "scripted", "on purpose")
    }))
    .unwrap();
    let fine = kit.queue.record().unwrap();
    assert_eq!(kit.call(call), Ok(()));
    let failed = kit.queue.record().unwrap();
    assert!(failed.wait(None).is_err());
    assert!(failed.is_done().is_err());
    assert_eq!(fine.wait(None), Ok(()));
    // What follows in the same queue is lost with it; another queue is not.
    assert!(kit.queue.download(&kit.slice, &mut [0; 16]).is_err());
    kit.queue = kit.device.queue(&QueueDesc::default()).unwrap();
    assert_eq!(kit.queue.download(&kit.slice, &mut [0; 16]), Ok(()));
}

#[test]
fn a_device_is_lost_after_so_many_launches_and_stays_lost() {
    let mut kit = kit(FakeDevice::new("x").lose_after(2)).unwrap();
    assert_eq!(kit.bump(), Ok(()));
    assert_eq!(kit.bump(), Ok(()));
    let before = kit.queue.record().unwrap();
    assert_eq!(before.wait(None), Ok(()));
    for _ in 0..2 {
        assert!(matches!(kit.bump(), Err(DeviceError::Lost { .. })));
    }
    let lost = |outcome| matches!(outcome, Err(DeviceError::Lost { .. }));
    assert!(lost(kit.queue.record().map(|_| ())));
    assert!(lost(kit.device.memory().map(|_| ())));
    assert!(lost(kit.fakes.open(0).map(|_| ())));
}

#[test]
fn a_device_is_lost_when_told() {
    let mut kit = kit(FakeDevice::new("x")).unwrap();
    assert_eq!(kit.bump(), Ok(()));
    kit.fakes.lose(0);
    assert!(matches!(kit.bump(), Err(DeviceError::Lost { .. })));
}

#[test]
fn memory_is_counted_to_the_byte_over_all_openings() {
    let fakes = FakeBackend::new("fake").device(FakeDevice::new("x").memory(1000));
    let (a, b) = (fakes.open(0).unwrap(), fakes.open(0).unwrap());
    let kind = a.info().memory[0];
    let held = a.alloc(kind, 600).unwrap();
    let refused = b.alloc(kind, 401).unwrap_err();
    let text = refused.to_string();
    assert!(
        matches!(
            refused,
            DeviceError::OutOfMemory {
                asked: 401,
                free: Some(400),
                ..
            }
        ),
        "{text}"
    );
    let rest = b.alloc(kind, 400).unwrap();
    assert_eq!(
        (a.memory().unwrap().ours, b.memory().unwrap().ours),
        (600, 400)
    );
    assert_eq!((fakes.used(0), a.memory().unwrap().free), (1000, Some(0)));
    drop((held, rest));
    assert_eq!(fakes.used(0), 0);
}

#[test]
fn a_card_of_gigabytes_costs_nothing_until_touched() {
    let fakes = FakeBackend::new("fake").device(FakeDevice::new("x").memory(1 << 40));
    let device = fakes.open(0).unwrap();
    let held = device.alloc(device.info().memory[0], 1 << 40).unwrap();
    assert_eq!(held.bytes(), 1 << 40);
}

#[test]
fn fresh_memory_is_rubbish_and_unrecorded_work_does_not_start() {
    let mut kit = kit(FakeDevice::new("x")).unwrap();
    let mut other = kit.device.queue(&QueueDesc::default()).unwrap();
    kit.queue.upload(&[7; 16], &kit.slice).unwrap();
    std::thread::sleep(Duration::from_millis(30));
    let mut seen = [0; 16];
    other.download(&kit.slice, &mut seen).unwrap();
    assert_eq!(seen, [0xcd; 16]);
    drop(kit.queue.record().unwrap());
    kit.queue.download(&kit.slice, &mut seen).unwrap();
    assert_eq!(seen, [7; 16]);
}

#[test]
fn at_once_means_at_once() {
    let mut kit = kit(FakeDevice::new("x").at_once()).unwrap();
    let mut other = kit.device.queue(&QueueDesc::default()).unwrap();
    kit.queue.upload(&[7; 16], &kit.slice).unwrap();
    kit.bump().unwrap();
    let mut seen = [0; 16];
    other.download(&kit.slice, &mut seen).unwrap();
    assert_eq!(seen, [8; 16]);
    assert_eq!(kit.queue.record().unwrap().is_done(), Ok(true));
}

#[test]
fn probes_follow_their_script_and_are_counted() {
    let error = DeviceError::probe(FakeBackend::new("fake").id(), "list", "not yet");
    let late = Duration::from_millis(30);
    let fakes = FakeBackend::new("fake")
        .device(FakeDevice::new("x").uuid([7; 16]).software(true))
        .on_probe([
            Probe::Error(error.clone()),
            Probe::Late(late),
            Probe::Answer,
        ]);
    assert_eq!(fakes.probe(), Err(error));
    let begun = Instant::now();
    let infos = fakes.probe().unwrap();
    assert!(begun.elapsed() >= late);
    assert_eq!((infos.len(), infos[0].software), (1, true));
    assert_eq!(infos[0].id.to_string(), "fake:0");
    assert_eq!(fakes.probe().unwrap(), infos);
    // The script is over; a clone asks the same script and counts together.
    assert_eq!(fakes.clone().probe().unwrap(), infos);
    assert_eq!(fakes.probes(), 4);
}

#[test]
fn strangers_are_errors_not_panics() {
    let mut kit = kit(FakeDevice::new("x")).unwrap();
    let device = kit.device.bare();
    let source = KernelSource::wgsl("w", "", &[], [1; 3]);
    assert!(matches!(
        device.kernel(&source),
        Err(DeviceError::Unsupported { .. })
    ));
    let foreign: Arc<dyn Buffer> = Arc::new(
        warploom_core::host::HostBuffer::zeroed(device.info().id, device.info().memory[0], 16)
            .unwrap(),
    );
    let refused = kit.queue.upload(&[0; 16], &Slice::whole(&foreign));
    assert!(matches!(refused, Err(DeviceError::Unsupported { .. })));
}
