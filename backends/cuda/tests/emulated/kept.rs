//! Compiled kernels on disk.

use std::fs;
use std::path::{Path, PathBuf};

use rstest::{Context, rstest};
use warploom_core::{
    Arg, CheckedDevice, GpuBackend, Grid, KernelCode, KernelSource, Math, Param, Queue, memory,
};
use warploom_cuda::CudaBackend;

use crate::rig::{alloc, queue};
use crate::scene::Scene;

const CODE: &str = "extern \"C\" __global__ void five(unsigned int* out) { out[0] = 5u; }";

/// The kernel from this directory; does it compute? `false` without NVRTC.
#[expect(clippy::print_stdout, reason = "a test says what it skips")]
fn works(dir: &Path, math: Math) -> bool {
    let backend = CudaBackend::load().expect("the emulator loads");
    let device = backend.with_cache_dir(dir).open(0).expect("it opens");
    let device = CheckedDevice::new(device);
    if device.info().languages.len() < 2 {
        println!("skipped: there is no NVRTC");
        return false;
    }
    let params = [Param::Write];
    // SAFETY: it writes one word, and there is one.
    let source =
        unsafe { KernelSource::vouch("five", KernelCode::CudaC(CODE), &params, [1, 1, 1]) };
    let kernel = device.kernel(&source.with_math(math)).expect("it builds");
    let slice = alloc(&device, memory::CUDA_DEVICE, 4).expect("room for one word");
    let mut queue = queue(&device);
    let args = [Arg::Slice(slice.clone())];
    queue
        .launch(&kernel, Grid::groups([1; 3]), &args)
        .expect("it starts");
    let mut bytes = [0; 4];
    queue.download(&slice, &mut bytes).expect("it ends");
    assert_eq!(u32::from_ne_bytes(bytes), 5);
    true
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("it is there");
    let paths = entries.map(|entry| entry.expect("it is listed").path());
    paths.collect()
}

#[rstest]
fn a_kernel_is_compiled_once_per_directory(#[context] test: Context) {
    let play = || {
        let dir = tempfile::tempdir().expect("a directory");
        if !works(dir.path(), Math::Strict) {
            return;
        }
        let first = files(dir.path());
        assert_eq!(first.len(), 1, "one kernel, one file");
        let written = |path: &PathBuf| fs::metadata(path).and_then(|it| it.modified()).ok();
        let before = written(&first[0]);
        works(dir.path(), Math::Strict);
        assert_eq!(files(dir.path()), first);
        assert_eq!(written(&first[0]), before, "a hit writes nothing");
        works(dir.path(), Math::Fast);
        assert_eq!(files(dir.path()).len(), 2, "other math is another kernel");
    };
    Scene::new(&test, "once").play(play);
}

#[rstest]
fn a_damaged_file_is_compiled_anew(#[context] test: Context) {
    let play = || {
        let dir = tempfile::tempdir().expect("a directory");
        if !works(dir.path(), Math::Strict) {
            return;
        }
        let file = files(dir.path()).remove(0);
        let whole = fs::read(&file).expect("it is read");
        let mut flipped = whole.clone();
        flipped[whole.len() - 9] ^= 1;
        for damaged in [&whole[..0], &whole[..whole.len() / 2], &flipped] {
            fs::write(&file, damaged).expect("it is written");
            works(dir.path(), Math::Strict);
            assert_eq!(fs::read(&file).expect("it is read"), whole);
        }
        let nowhere = file.join("below a file");
        works(&nowhere, Math::Strict);
    };
    Scene::new(&test, "damaged").play(play);
}
