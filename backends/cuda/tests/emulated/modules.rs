//! Code that does not load.

use rstest::{Context, rstest};
use warploom_core::{CheckedDevice, DeviceError, GpuBackend, KernelCode, KernelSource, Param};
use warploom_cuda::CudaBackend;

use crate::rig::{Kind, PTX, kind, load, open, work};
use crate::scene::Scene;

fn build(device: &CheckedDevice, name: &str, code: KernelCode<'_>) -> DeviceError {
    // SAFETY: none of these is launched, because none loads.
    let source = unsafe { KernelSource::vouch(name, code, &[Param::Write], [32, 1, 1]) };
    device.kernel(&source).expect_err("it does not load")
}

/// The compiler's words about a kernel that does not load.
fn log(error: &DeviceError, name: &str) -> String {
    match error {
        DeviceError::Build { kernel, log, .. } if kernel == name => log.clone(),
        _ => panic!("{error}"),
    }
}

#[rstest]
#[case::no_code("fill", "this is no PTX", "CUDA_ERROR_INVALID_PTX (218)", "line 1")]
#[case::no_such_instruction(
    "odd",
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry odd(.param .u64 p) {\n  frobnicate.u32 1;\n}\n",
    "CUDA_ERROR_INVALID_PTX (218)",
    "line 5"
)]
#[case::newer_card(
    "fill",
    ".version 9.0\n.target sm_120\n.address_size 64\n.visible .entry fill(.param .u64 p) { ret; }\n",
    "CUDA_ERROR_INVALID_PTX (218)",
    "sm_120"
)]
fn bad_code_is_refused_with_the_compiler_s_words(
    #[context] test: Context,
    #[case] name: &str,
    #[case] code: &str,
    #[case] number: &str,
    #[case] words: &str,
) {
    let play = || {
        let device = open(0);
        let error = build(&device, name, KernelCode::Ptx(code));
        let log = log(&error, name);
        assert!(log.starts_with(number), "{log}");
        assert!(log.contains(words), "{log}");
        assert!(
            log.lines().count() > 1,
            "there are words behind the number: {log}"
        );
        work(&device).expect("the device works on");
    };
    Scene::new(&test, "refused").play(play);
}

#[rstest]
fn a_kernel_of_another_name_is_not_found(#[context] test: Context) {
    let play = || {
        let device = open(0);
        let error = build(&device, "absent", KernelCode::Ptx(PTX));
        let log = log(&error, "absent");
        assert!(log.contains("no kernel of this name"), "{log}");
        work(&device).expect("the device works on");
    };
    Scene::new(&test, "absent").play(play);
}

#[rstest]
fn a_driver_that_is_older_than_the_code_says_so(#[context] test: Context) {
    let play = || {
        let device = open(0);
        let newer = PTX.replace(".version 7.0", ".version 8.8");
        let error = build(&device, "fill", KernelCode::Ptx(&newer));
        let text = log(&error, "fill");
        let began = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)";
        assert!(text.starts_with(began), "{text}");
        work(&device).expect("older code loads");
        // CUDA C is then tried as machine code, which is refused too, and the error says that.
        let backend = CudaBackend::load().expect("the emulator loads");
        let backend = backend.without_cache();
        let device = CheckedDevice::new(backend.open(0).expect("it opens"));
        if device.info().languages.len() == 2 {
            let code = "extern \"C\" __global__ void one(float* out) { out[0] = 1; }";
            let error = build(&device, "one", KernelCode::CudaC(code));
            let text = log(&error, "one");
            assert!(text.contains("this is machine code"), "{text}");
        }
    };
    Scene::new(&test, "older")
        .with("WARPLOOM_EMU_DRIVER", "11.4")
        .play(play);
}

#[rstest]
#[case::image("INVALID_IMAGE", Kind::Build)]
#[case::no_binary("NO_BINARY_FOR_GPU", Kind::Build)]
#[case::ptx("INVALID_PTX", Kind::Build)]
#[case::no_compiler("JIT_COMPILER_NOT_FOUND", Kind::Build)]
#[case::version("UNSUPPORTED_PTX_VERSION", Kind::Build)]
#[case::disabled("JIT_COMPILATION_DISABLED", Kind::Build)]
#[case::source("INVALID_SOURCE", Kind::Build)]
#[case::memory("OUT_OF_MEMORY", Kind::OutOfMemory)]
#[case::support("NOT_SUPPORTED", Kind::Unsupported)]
#[case::fault("ILLEGAL_ADDRESS", Kind::Lost)]
#[case::unknown("UNKNOWN", Kind::Driver)]
fn loading_fails_on_order(#[context] test: Context, #[case] error: &str, #[case] wanted: Kind) {
    let play = || {
        let device = open(0);
        load(&device, "fill").expect("the first loads");
        let answer = load(&device, "fill").expect_err("it was ordered");
        assert_eq!(kind(&answer), wanted, "{answer}");
        let text = answer.to_string();
        assert!(text.contains("cuda:0"), "{text}");
        match wanted {
            Kind::Build => assert!(text.contains("kernel `fill`") && text.contains(error)),
            Kind::OutOfMemory => {}
            _ => assert!(text.contains("cuModuleLoadDataEx") && text.contains(error)),
        }
        match wanted {
            Kind::Lost => assert_eq!(load(&device, "fill").err(), Some(answer)),
            _ => work(&device).expect("the device works on"),
        }
        work(&open(1)).expect("another device");
    };
    Scene::new(&test, "second load")
        .fail(format!("cuModuleLoadDataEx#2={error}"))
        .play(play)
        .says("call 2, as planned")
        .says_only_what_was_planned();
}
