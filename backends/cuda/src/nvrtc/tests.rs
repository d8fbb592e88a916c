use super::*;

/// Libraries to test with: a path list from the test runner. NVIDIA's licence lets us download
/// them but not ship them, so without the list the tests that need one say so and stop.
#[expect(
    clippy::disallowed_methods,
    reason = "tests are told by their runner where the libraries are"
)]
fn libraries() -> Vec<&'static Nvrtc> {
    let Some(list) = std::env::var_os("WARPLOOM_TEST_NVRTC") else {
        eprintln!("skipped: WARPLOOM_TEST_NVRTC does not say where an NVRTC library is");
        return Vec::new();
    };
    std::env::split_paths(&list)
        .map(|path| Nvrtc::open(&path).unwrap())
        .collect()
}

const GOOD: &str = r#"
float scale(float x) { return x * 3.0f + 1.0f; }
extern "C" __global__ void good(const float* in, float* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = scale(in[i]) / sqrtf(in[i]);
}"#;

fn text(code: Vec<u8>) -> String {
    String::from_utf8(code).unwrap()
}

#[test]
fn it_tells_its_version_and_architectures() {
    for nvrtc in libraries() {
        assert!(nvrtc.version().0 >= 11, "{:?}", nvrtc.version());
        let known = nvrtc.architectures();
        assert!(known.contains(&75) && known.contains(&90), "{known:?}");
        assert!(known.is_sorted());
    }
}

#[test]
fn cuda_c_becomes_ptx_for_every_architecture() {
    for nvrtc in libraries() {
        for arch in nvrtc.architectures() {
            let target = nvrtc.ptx_target(*arch).unwrap();
            assert_eq!(target, Target::Ptx(*arch));
            let ptx = text(nvrtc.compile(GOOD, "good", target, Math::Strict).unwrap());
            assert!(ptx.contains(&format!(".target sm_{arch}")), "{ptx}");
            assert!(ptx.contains(".entry good"), "{ptx}");
        }
    }
}

#[test]
fn strict_math_is_not_contracted_and_fast_math_is() {
    for nvrtc in libraries() {
        let compile = |math| text(nvrtc.compile(GOOD, "good", Target::Ptx(75), math).unwrap());
        let strict = compile(Math::Strict);
        assert!(!strict.contains("fma.rn.f32"), "{strict}");
        for exact in ["mul.rn.f32", "add.rn.f32", "div.rn.f32", "sqrt.rn.f32"] {
            assert!(strict.contains(exact), "{exact} in {strict}");
        }
        let fast = compile(Math::Fast);
        assert!(fast.contains("fma.rn.ftz.f32"), "{fast}");
        assert!(!fast.contains("sqrt.rn.f32"), "{fast}");
    }
}

#[test]
fn machine_code_is_an_elf_file() {
    for nvrtc in libraries() {
        let target = nvrtc.cubin_target(86).unwrap();
        assert_eq!(target, Target::Cubin(86));
        let cubin = nvrtc.compile(GOOD, "good", target, Math::Strict).unwrap();
        assert!(cubin.starts_with(b"\x7fELF"));
    }
}

#[test]
fn an_error_in_the_source_comes_with_the_compiler_s_words() {
    for nvrtc in libraries() {
        let source = "extern \"C\" __global__ void bad() { nonsense(1); }";
        let error = nvrtc
            .compile(source, "bad", Target::Ptx(75), Math::Strict)
            .unwrap_err();
        assert!(matches!(error, NvrtcError::Source { .. }), "{error:?}");
        let log = error.to_string();
        assert!(
            log.contains("bad.cu(1)") && log.contains("nonsense"),
            "{log}"
        );
    }
}

#[test]
fn an_unknown_architecture_is_a_failed_call() {
    for nvrtc in libraries() {
        let error = nvrtc
            .compile(GOOD, "good", Target::Ptx(11), Math::Strict)
            .unwrap_err();
        assert!(
            matches!(&error, NvrtcError::Failed { call, .. } if *call == "nvrtcCompileProgram"),
            "{error:?}"
        );
    }
}

#[test]
fn many_threads_may_compile_at_once() {
    for nvrtc in libraries() {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    nvrtc
                        .compile(GOOD, "good", Target::Ptx(75), Math::Strict)
                        .unwrap()
                });
            }
        });
    }
}

#[test]
fn a_library_is_loaded_once() {
    let (first, second) = (libraries(), libraries());
    for (first, second) in first.iter().zip(&second) {
        assert!(std::ptr::eq(*first, *second));
    }
}

#[test]
fn a_missing_library_says_what_was_looked_for() {
    let error = Nvrtc::open(Path::new("no-such-nvrtc.so")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "NVRTC is not installed (looked for no-such-nvrtc.so)"
    );
}

#[rstest::rstest]
#[case(&[], 120, Some(120))]
#[case(&[50, 75, 80, 90], 50, Some(50))]
#[case(&[50, 75, 80, 90], 86, Some(80))]
#[case(&[50, 75, 80, 90], 120, Some(90))]
#[case(&[75, 80], 52, None)]
fn the_newest_common_architecture_is_taken(
    #[case] known: &[u32],
    #[case] device: u32,
    #[case] want: Option<u32>,
) {
    assert_eq!(newest_for(known, device), want);
}

#[test]
fn a_device_too_old_for_nvrtc_is_told_what_to_install() {
    let error = NvrtcError::TooOld {
        version: (13, 4),
        oldest: 75,
        device: 52,
    };
    assert_eq!(
        error.to_string(),
        "NVRTC 13.4 compiles for compute capability 7.5 and newer, but the device has 5.2: \
         install an older NVRTC"
    );
}
