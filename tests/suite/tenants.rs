//! Two plans that share a device as tenants, on every device that is here: each one's bytes, its share, its
//! budget, and memory as it was planned.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use warploom::sched::{
    Budget, DeviceTurn, Options as Wishes, Payloads, Plan, Resource, ResourceId, RunError,
    RunOptions, Stage, StageGraph, StageId, Tenant, Tenants, Threads, plan,
};
use warploom::{
    BackendId, CheckedDevice, Grid, Kernel, Options, Queue as _, QueueClass, QueueDesc, Registry,
    Slice, Space,
};

use crate::kernels;

/// Long enough to work on that the device is busy, and not the host.
const ELEMENTS: u32 = 1 << 19;
const BYTES: u64 = ELEMENTS as u64 * 4;
const SEEN: u64 = 4096;

/// How often each image is worked out: so often that a tenant always has work at hand, because what comes after it
/// takes less. And by kernels, which keep all of a device busy: where it copies for two tenants at the same time
/// neither has anything to wait for.
fn times(device: &CheckedDevice) -> usize {
    match device.info().id.backend {
        BackendId::CPU => 1,
        _ => 8,
    }
}

/// Makes an image of roots, takes the beginning of it to the host, looks at it there.
struct Filler {
    plan: Plan,
    stages: [StageId; 3],
    image: ResourceId,
    output: ResourceId,
}

fn filler() -> Filler {
    let mut graph = StageGraph::new();
    let image = graph.resource(Resource::new("image", Space::Device, BYTES));
    let output = graph.resource(Resource::new("output", Space::Pinned, SEEN));
    let fill = graph.stage(Stage::device("fill", QueueClass::Compute).writes(image));
    let down = Stage::device("down", QueueClass::Download);
    let down = graph.stage(down.reads(image).writes(output));
    let see = graph.stage(Stage::host("see").reads(output));
    Filler {
        plan: plan(&graph, &Wishes::default().with_depth(3)).unwrap(),
        stages: [fill, down, see],
        image,
        output,
    }
}

/// Memory of the device, full of the square of a number.
fn full_of(device: &CheckedDevice, root: u8) -> Slice {
    let kind = device.info().local_kind().unwrap();
    let slice = Slice::whole(&device.alloc(kind, BYTES).unwrap());
    let mut queue = device.queue(&QueueDesc::named("fill")).unwrap();
    let square = f32::from(root).powi(2);
    let bytes = square.to_ne_bytes().repeat(ELEMENTS as usize);
    queue.upload(&bytes, &slice).unwrap();
    queue.record().unwrap().wait(None).unwrap();
    slice
}

fn kernel(device: &CheckedDevice) -> Arc<dyn Kernel> {
    let mut sources = kernels::sources().into_iter();
    let kernel = sources.find_map(|source| device.kernel(&source).ok());
    kernel.expect("one of four languages")
}

/// Payloads that fill images with one of two roots in turn, and count those that were seen to be right.
fn payloads(
    device: &CheckedDevice,
    own: &Filler,
    sources: [(u8, Slice); 2],
    right: &Arc<AtomicU64>,
) -> Payloads {
    let [fill, down, see] = own.stages;
    let (image, output) = (own.image, own.output);
    let roots = [sources[0].0, sources[1].0];
    let (kernel, times) = (kernel(device), times(device));
    let sources = sources.map(|(_, slice)| slice);
    let of = |generation: u64| usize::from(!generation.is_multiple_of(2));
    let right = Arc::clone(right);
    Payloads::new()
        .device(fill, move |turn: &mut DeviceTurn<'_>| {
            let source = &sources[of(turn.batch().generation)];
            let to = turn.write(image)?;
            let args = [
                source.clone().into(),
                to.slice().clone().into(),
                0.0_f32.into(),
                ELEMENTS.into(),
            ];
            let grid = Grid::groups([ELEMENTS / kernels::GROUP[0], 1, 1]);
            for _ in 0..times {
                turn.queue().launch(&kernel, grid, &args)?;
            }
            Ok(())
        })
        .device(down, move |turn: &mut DeviceTurn<'_>| {
            let (from, to) = (turn.read(image)?, turn.write(output)?);
            turn.copy(&from, &to)
        })
        .host(see, move |turn| {
            let root = f32::from(roots[of(turn.batch().generation)]);
            turn.read(output, |seen| {
                let mut seen = seen
                    .chunks_exact(4)
                    .map(|own| f32::from_ne_bytes(own.try_into().unwrap()));
                let is_right = seen.all(|own| (own - root).abs() < 1e-5);
                right.fetch_add(u64::from(is_right), Ordering::SeqCst);
            })
        })
}

/// The part of the device's time that the first of two tenants gets while both are busy.
fn share(device: &CheckedDevice, weights: [u32; 2]) -> f64 {
    const GENERATIONS: u64 = 60;
    let own = filler();
    let sources: Vec<(u8, Slice)> = (1..=4).map(|byte| (byte, full_of(device, byte))).collect();
    let right = [Arc::default(), Arc::default()];
    let mut tenants = Tenants::new(device, Threads::new());
    let [first, second] = [0, 1].map(|at: usize| {
        let sources = [sources[2 * at].clone(), sources[2 * at + 1].clone()];
        let payloads = payloads(device, &own, sources, &right[at]);
        let tenant = Tenant::new(["first", "second"][at]).with_weight(weights[at]);
        let options = RunOptions::of(GENERATIONS, 1);
        tenants.join(&tenant, &own.plan, payloads, options).unwrap()
    });
    let is_busy = |tenants: &Tenants<Threads>| {
        let mut both = [first, second].into_iter();
        both.all(|tenant| tenants.outcome(tenant).is_none())
    };
    while is_busy(&tenants) && tenants.turn() {}
    let [ours, theirs] = [first, second].map(|tenant| {
        let served = tenants.served(tenant, QueueClass::Compute);
        served.as_secs_f64()
    });
    tenants.run();
    for (tenant, right) in [first, second].into_iter().zip(&right) {
        let summary = tenants.outcome(tenant).unwrap().unwrap();
        assert_eq!(summary.generations, GENERATIONS);
        assert_eq!(
            right.load(Ordering::SeqCst),
            GENERATIONS,
            "bytes of its own"
        );
    }
    ours / (ours + theirs)
}

/// What a plan says is what is allocated, to the byte; what is too much is refused before anything is.
fn budgets(device: &CheckedDevice) {
    let own = filler();
    let needed = own.plan.memory();
    let source = full_of(device, 1);
    let ours = || device.memory().unwrap().ours;
    let before = ours();
    let both = Budget {
        device: Some(2 * needed.device),
        host: None,
    };
    let mut tenants = Tenants::new(device, Threads::new()).within(both);
    let right = Arc::default();
    let mut join = |limit: Option<u64>| {
        let sources = [(1, source.clone()), (1, source.clone())];
        let budget = Budget {
            device: limit,
            host: None,
        };
        let tenant = Tenant::new("one").with_budget(budget);
        let payloads = payloads(device, &own, sources, &right);
        tenants.join(&tenant, &own.plan, payloads, RunOptions::of(3, 1))
    };
    let refused = join(Some(needed.device - 1)).unwrap_err();
    assert!(matches!(refused, RunError::Budget { .. }), "{refused}");
    assert_eq!(ours(), before, "nothing was allocated for it");
    for joined in 1..=2 {
        join(Some(needed.device)).unwrap();
        assert_eq!(ours() - before, joined * needed.total());
    }
    let refused = join(None).unwrap_err();
    assert!(matches!(refused, RunError::Budget { .. }), "{refused}");
    assert_eq!(ours() - before, 2 * needed.total());
    tenants.run();
    assert_eq!(right.load(Ordering::SeqCst), 6);
    assert_eq!(ours() - before, 2 * needed.total(), "none later");
    drop(tenants);
    assert_eq!(ours(), before, "all of it is given back");
}

#[test]
fn tenants_have_their_bytes_and_budgets_on_every_device() {
    // Devices of its own: others in this process, who share theirs, allocate meanwhile.
    let own = Registry::linked();
    let status = own.initialize(&Options::default()).unwrap();
    let cards = status.survey.devices.iter();
    let mut seen = Vec::new();
    for face in cards.flat_map(|card| &card.faces) {
        let device = own.open(face.id).unwrap();
        budgets(&device);
        // Everybody's bytes are looked at there. Whether weights tell is asked below, of devices that are known to
        // do one thing after another; what others give is shown.
        let share = share(&device, [3, 1]);
        eprintln!("{}: {share:.3} of 0.75", face.id);
        seen.push(face.id.to_string());
    }
    assert!(seen.iter().any(|id| id == "cpu:0"), "{seen:?}");
}

/// Devices on which one tenant's work waits for another's: the processor, and the first of OpenCL that works beside
/// the program. PoCL's `basic` works while it is told to, so that everything is over before anybody else is asked.
fn in_turn(own: &Registry) -> Vec<CheckedDevice> {
    let status = own.initialize(&Options::default()).unwrap();
    let cards = status.survey.devices.iter();
    let faces: Vec<_> = cards.flat_map(|card| &card.faces).collect();
    let is_beside = |name: &str| !name.starts_with("basic");
    let of = |backend: &str| {
        let mut faces = faces.iter();
        faces.find(|face| face.id.backend.as_str() == backend && is_beside(&face.name))
    };
    let found = ["cpu", "opencl"].into_iter().filter_map(of);
    found.map(|face| own.open(face.id).unwrap()).collect()
}

/// How near to three quarters it is shows in the simulation, where nothing else runs. Here somebody else may be
/// on the machine, so it is the middle of a few tries.
#[test]
fn weights_of_tenants_tell() {
    let devices = in_turn(&Registry::linked());
    if devices.len() < 2 {
        eprintln!("not asked of OpenCL: no device of it is here that works beside the program");
    }
    assert!(!devices.is_empty());
    for device in devices {
        let middle = |weights| {
            let mut shares = [0; 5].map(|_| share(&device, weights));
            shares.sort_by(f64::total_cmp);
            shares[2]
        };
        let (heavy, light) = (middle([3, 1]), middle([1, 3]));
        let id = device.info().id;
        eprintln!("{id}: {heavy:.3} of 0.75, {light:.3} of 0.25");
        assert!(heavy > 0.6 && light < 0.4, "{id}: {heavy} {light}");
    }
}
