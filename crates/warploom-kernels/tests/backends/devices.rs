//! The devices of the process, and cases on all of them.

use warploom_core::{BackendEntry, CheckedDevice, GpuBackend, Math};
use warploom_kernels::program::{Loader, Program};

use super::case::Case;
use super::compare::{Rule, numbers, same};

/// Every backend but the CPU's, and how its results are compared.
const OTHERS: [(&BackendEntry, Rule); 2] = [
    (&warploom_cuda::ENTRY, Rule::Bits),
    (&warploom_wgpu::ENTRY, Rule::Ulps(1.0)),
];

fn is_required(name: &str) -> bool {
    let text = std::env::var("WARPLOOM_REQUIRE").unwrap_or_default();
    text.split(',').any(|word| word.trim() == name)
}

/// The backend; its absence is said, or is a failure where it is required.
fn load(name: &str, loaded: Result<Box<dyn GpuBackend>, String>) -> Option<Box<dyn GpuBackend>> {
    match loaded {
        Ok(backend) => Some(backend),
        Err(why) if is_required(name) => panic!("{name} is required: {why}"),
        Err(why) => {
            println!("skipped: {name}: {why}");
            None
        }
    }
}

/// One device of each sort, with how it is compared.
fn others() -> Vec<(CheckedDevice, Rule)> {
    let mut backends: Vec<(Box<dyn GpuBackend>, Rule)> = Vec::new();
    // Programs of the tests stay out of the user's cache.
    let opencl = warploom_opencl::OpenClBackend::load();
    let opencl = opencl.map(|it| Box::new(it.without_cache()) as Box<dyn GpuBackend>);
    let opencl = opencl.map_err(|error| error.to_string());
    backends.extend(load("opencl", opencl).map(|it| (it, Rule::Bits)));
    for (entry, rule) in OTHERS {
        let loaded = entry.load().map_err(|error| error.to_string());
        backends.extend(load(entry.id().as_str(), loaded).map(|it| (it, rule)));
    }
    let mut devices = Vec::new();
    for (backend, rule) in backends {
        let name = backend.id();
        let found = backend.probe().expect("devices are listed");
        let mut known: Vec<String> = Vec::new();
        for info in found {
            // What has the same name compiles the same code.
            if info.languages.is_empty() || known.contains(&info.name) {
                continue;
            }
            known.push(info.name.clone());
            let device = backend.open(info.id.ordinal).expect("the device opens");
            devices.push((CheckedDevice::new(device), rule));
        }
        if known.is_empty() {
            assert!(!is_required(name.as_str()), "{name} lists no device");
            println!("skipped: {name}: it lists no device that compiles");
        }
    }
    devices
}

/// The CPU, whose results are the right ones.
pub(crate) fn cpu() -> CheckedDevice {
    let backend = warploom_cpu::ENTRY.load().expect("there is always a CPU");
    CheckedDevice::new(backend.open(0).expect("it opens"))
}

/// The results of a case on a device.
fn results(loader: &Loader, case: &Case, host: bool) -> Result<Vec<Vec<u8>>, String> {
    let device = loader.device();
    let program = Program::new(&case.flow, device.info());
    let detours = program.detours();
    if !host && !detours.is_empty() {
        return Err(format!("the host would do {detours:?}"));
    }
    let inputs: Vec<&[u8]> = case.inputs.iter().map(Vec::as_slice).collect();
    let ready = loader.load(program).map_err(|error| error.to_string())?;
    ready
        .run(device, &inputs)
        .map_err(|error| error.to_string())
}

/// Runs every case everywhere, and fails with all that went wrong.
pub(crate) fn agree(cases: impl IntoIterator<Item = Case>) {
    let cases: Vec<Case> = cases.into_iter().collect();
    let reference = Loader::new(cpu(), Math::Strict);
    let mut complaints = Vec::new();
    let mut expected: Vec<Vec<Vec<f64>>> = Vec::new();
    for case in &cases {
        if let Some(known) = &case.expected {
            let known = vec![known.clone()];
            if let Err(why) = check(&reference, case, &known, Rule::Bits) {
                complaints.push(format!("cpu: {}: {why}", case.name));
            }
            expected.push(known);
            continue;
        }
        let bytes = results(&reference, case, true).expect("the CPU does everything");
        let outputs = case.flow.outputs().iter().zip(bytes);
        let outputs = outputs.map(|(id, bytes)| numbers(case.flow.kind(*id).dtype(), &bytes));
        expected.push(outputs.collect());
    }
    for (device, rule) in others() {
        let id = device.info().id;
        let loader = Loader::new(device, Math::Strict);
        let mut wrong = 0;
        for (case, expected) in cases.iter().zip(&expected) {
            let rule = match rule {
                Rule::Ulps(_) if case.strict => continue,
                Rule::Ulps(_) => Rule::Ulps(case.ulps),
                Rule::Bits => Rule::Bits,
            };
            if let Err(why) = check(&loader, case, expected, rule) {
                wrong += 1;
                complaints.push(format!("{id}: {}: {why}", case.name));
            }
        }
        println!(
            "{id} ({}): {} cases, {wrong} wrong, {} kernels",
            loader.device().info().name,
            cases.len(),
            loader.compiled()
        );
    }
    let shown: Vec<&str> = complaints.iter().take(12).map(String::as_str).collect();
    assert!(
        complaints.is_empty(),
        "{} wrong:\n{}",
        complaints.len(),
        shown.join("\n")
    );
}

fn check(loader: &Loader, case: &Case, expected: &[Vec<f64>], rule: Rule) -> Result<(), String> {
    let got = results(loader, case, case.host)?;
    let flow = &case.flow;
    for ((id, want), got) in flow.outputs().iter().zip(expected).zip(&got) {
        same(rule, flow.kind(*id).dtype(), want, got)?;
    }
    Ok(())
}
