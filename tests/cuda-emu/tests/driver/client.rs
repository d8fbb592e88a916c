//! cudarc, unmodified, on the dynamic library.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cudarc::driver::sys::{CUevent_flags, CUresult};
use cudarc::driver::{CudaContext, CudaModule, LaunchConfig, PushKernelArg, result};
use cudarc::nvrtc::Ptx;

use crate::Scene;
use crate::kernels::PTX;

pub(crate) const SCENES: &[Scene] = &[
    Scene::new("cudarc_finds_devices", finds_devices).with_library(),
    Scene::new("cudarc_computes", computes).with_library(),
    Scene::new("cudarc_copies_between_devices", copies_between_devices).with_library(),
    Scene::new("cudarc_hears_of_faults", hears_of_faults)
        .with_library()
        .says(&["CUDA_ERROR_ILLEGAL_ADDRESS: kernel `fill`"]),
    Scene::new("cudarc_runs_out_of_memory", runs_out_of_memory)
        .with_library()
        .with(&[("WARPLOOM_EMU_DEVICES", "memory=32MiB")]),
];

/// A folder in which the emulator has the driver's name. It has another among the outputs: see
/// `Cargo.toml`.
pub(crate) fn library_folder() -> std::io::Result<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("emulated-driver");
    std::fs::create_dir_all(&folder)?;
    let program = std::env::current_exe()?;
    let library = program.with_file_name("libwarploom_cuda_emu.so");
    for name in ["libcuda.so", "libcuda.so.1"] {
        // Several tests do this at once; renaming makes it one step.
        let link = folder.join(format!("{name}.{}", std::process::id()));
        let link = link.with_extension(format!("{:?}", std::thread::current().id()));
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(&library, &link)?;
        std::fs::rename(&link, folder.join(name))?;
    }
    Ok(folder)
}

fn module(context: &Arc<CudaContext>) -> Arc<CudaModule> {
    let text = PTX.to_str().unwrap();
    context.load_module(Ptx::from_src(text)).expect("a module")
}

fn finds_devices() {
    assert_eq!(CudaContext::device_count(), Ok(2));
    let contexts = [0, 1].map(|ordinal| CudaContext::new(ordinal).expect("a context"));
    for context in &contexts {
        assert_eq!(context.name().unwrap(), "Warploom emulated GPU");
        assert_eq!(context.compute_capability(), Ok((8, 0)));
        assert!(context.has_async_alloc());
        let (free, total) = context.mem_get_info().unwrap();
        assert!(free < total && total == 2 << 30);
    }
    let uuids = contexts.map(|context| context.uuid().unwrap().bytes);
    assert_ne!(uuids[0], uuids[1]);
}

fn computes() {
    let context = CudaContext::new(0).expect("a context");
    let module = module(&context);
    let fill = module.load_function("fill").expect("a kernel");
    let (first, second) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let timed = Some(CUevent_flags::CU_EVENT_DEFAULT);
    let start = first.record_event(timed).unwrap();
    let mut numbers = first.alloc_zeros::<u32>(1000).unwrap();
    let (count, value) = (900_u32, 42_u32);
    let mut launch = first.launch_builder(&fill);
    launch.arg(&mut numbers).arg(&count).arg(&value);
    // SAFETY: the kernel takes a buffer, its length, and a number.
    unsafe { launch.launch(LaunchConfig::for_num_elems(1000)) }.expect("a launch");
    let end = first.record_event(timed).unwrap();
    second.wait(&end).unwrap();
    let found = second.clone_dtoh(&numbers).unwrap();
    assert_eq!(found[..900], [42; 900]);
    assert_eq!(found[900..], [0; 100]);
    assert!(start.elapsed_ms(&end).unwrap() >= 0.0);
    let mut counter = module.get_global("counter", &first).expect("a variable");
    first
        .memcpy_htod(&7_u32.to_le_bytes(), &mut counter)
        .unwrap();
    assert_eq!(first.clone_dtoh(&counter).unwrap(), 7_u32.to_le_bytes());
    context.synchronize().unwrap();
}

fn copies_between_devices() {
    let here = CudaContext::new(0).expect("a context");
    let there = CudaContext::new(1).expect("a context");
    let stream = here.new_stream().unwrap();
    let source = stream.clone_htod(&[1_u8, 2, 3]).unwrap();
    let other = there.new_stream().unwrap();
    let mut target = other.alloc_zeros::<u8>(3).unwrap();
    other.memcpy_dtod(&source, &mut target).unwrap();
    assert_eq!(other.clone_dtoh(&target).unwrap(), [1, 2, 3]);
}

fn hears_of_faults() {
    let context = CudaContext::new(1).expect("a context");
    let fill = module(&context).load_function("fill").expect("a kernel");
    let stream = context.new_stream().unwrap();
    let mut numbers = stream.alloc_zeros::<u32>(100).unwrap();
    let (count, value) = (101_u32, 1_u32);
    let mut launch = stream.launch_builder(&fill);
    launch.arg(&mut numbers).arg(&count).arg(&value);
    // SAFETY: none: it writes one number too many, which the emulator must notice before it does.
    unsafe { launch.launch(LaunchConfig::for_num_elems(101)) }.expect("a launch");
    let error = stream.synchronize().expect_err("a fault");
    assert_eq!(error.0, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    let error = stream.alloc_zeros::<u8>(1).expect_err("it stays");
    assert_eq!(error.0, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
}

fn runs_out_of_memory() {
    let context = CudaContext::new(0).expect("a context");
    context.bind_to_thread().unwrap();
    // SAFETY: nothing is done with the memory.
    let error = unsafe { result::malloc_sync(40 << 20) }.expect_err("too much");
    assert_eq!(error.0, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    let stream = context.new_stream().unwrap();
    let error = stream.alloc_zeros::<u8>(40 << 20).expect_err("too much");
    assert_eq!(error.0, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    stream.alloc_zeros::<u8>(16 << 20).expect("enough");
}
