//! Finding devices. Run it with `cargo run -p warploom-examples --bin 01_detect`.
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use warploom::{Bytes, Options, registry};

fn main() -> anyhow::Result<()> {
    // The registry knows every backend that the features of `warploom` link in. `setup` loads
    // them, asks each for its devices, and unites the answers: one entry per card.
    let status = registry().setup(&Options::default())?;

    for device in &status.survey.devices {
        let memory = Bytes(device.total_memory);
        println!(
            "{}: {} ({}, {memory})",
            device.name, device.label, device.kind
        );
        // A card that CUDA, OpenCL and Vulkan all see has three faces.
        for face in &device.faces {
            println!("    {} through {}", face.id, face.driver);
        }
    }

    // What did not load is data too, with the reason.
    for backend in &status.survey.backends {
        if let Some(reason) = &backend.reason {
            println!("{} is {:?}: {reason}", backend.id, backend.state);
        }
    }
    Ok(())
}
