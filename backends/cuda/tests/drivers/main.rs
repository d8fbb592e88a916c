//! The backend under drivers that are missing, old, broken or strict.
//!
//! `libcuda.c` is compiled into one driver after the other, and this binary runs itself again with
//! each of them, as a child that plays one scene of [`scenes`]. A child can crash; that is a
//! finding like any other.

mod faults;
mod rig;
mod scenes;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::sync::{Mutex, PoisonError};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// The argument that makes this binary play a scene.
const PLAY: &str = "--play";

const DRIVER: &str = include_str!("libcuda.c");

type Test = fn(&Builder) -> Result<(), Failed>;
type MayNotRun = fn(&Builder) -> Result<Completion, Failed>;

fn main() -> ExitCode {
    let mut given = std::env::args().skip(1);
    if given.next().as_deref() == Some(PLAY) {
        let (scene, rest) = (given.next().unwrap_or_default(), given.collect::<Vec<_>>());
        scenes::play(&scene, &rest);
        return ExitCode::SUCCESS;
    }
    let arguments = Arguments::from_args();
    let builder: &'static Builder = Box::leak(Box::new(Builder::new()));
    let mut trials: Vec<Trial> = TESTS
        .iter()
        .map(|(name, test)| trial(name, builder, *test))
        .collect();
    for (scene, switches) in scenes::ON_STRICT_DRIVER {
        trials.push(trial(scene, builder, move |builder| {
            builder.run(switches, scene, &[]).map(drop)
        }));
    }
    for (name, test) in [
        ("no_driver_is_absent", no_driver_is_absent as MayNotRun),
        ("machine_code", machine_code),
    ] {
        trials.push(Trial::ignorable_test(name, move || match builder.ready() {
            Ok(()) => test(builder),
            Err(reason) => Ok(Completion::ignored_with(reason)),
        }));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    builder.clean();
    conclusion.exit_code()
}

fn trial(
    name: &str,
    builder: &'static Builder,
    test: impl FnOnce(&Builder) -> Result<(), Failed> + Send + 'static,
) -> Trial {
    Trial::ignorable_test(name, move || match builder.ready() {
        Ok(()) => test(builder).map(|()| Completion::Completed),
        Err(reason) => Ok(Completion::ignored_with(reason)),
    })
}

/// Compiles drivers and runs scenes on them.
struct Builder {
    folder: Option<tempfile::TempDir>,
    built: Mutex<HashMap<String, PathBuf>>,
}

impl Builder {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().ok(),
            built: Mutex::default(),
        }
    }

    /// Can drivers be made here?
    fn ready(&self) -> Result<(), &'static str> {
        if !cfg!(target_os = "linux") {
            return Err("skipped: drivers are swapped by LD_LIBRARY_PATH, which only Linux has");
        }
        if self.folder.is_none() {
            return Err("skipped: no temporary directory can be made");
        }
        let found = Command::new("cc").arg("--version").output();
        if !found.is_ok_and(|output| output.status.success()) {
            return Err("skipped: there is no C compiler called `cc`");
        }
        Ok(())
    }

    fn folder(&self) -> &Path {
        self.folder.as_ref().expect("`ready` was asked").path()
    }

    fn clean(&self) {
        if let Some(folder) = &self.folder {
            // It was never dropped: the trials share it.
            let _ = std::fs::remove_dir_all(folder.path());
        }
    }

    /// The folder of a driver compiled with these switches.
    fn driver(&self, switches: &[&str]) -> Result<PathBuf, Failed> {
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        let key = switches.join(" ");
        if let Some(folder) = built.get(&key) {
            return Ok(folder.clone());
        }
        let folder = self.folder().join(format!("driver-{}", built.len()));
        std::fs::create_dir(&folder)?;
        let source = folder.join("libcuda.c");
        std::fs::write(&source, DRIVER)?;
        // cudarc looks for the unversioned name first, so that this one is found before any other.
        let output = Command::new("cc")
            .args(["-std=gnu11", "-O1", "-Wall", "-Werror", "-shared", "-fPIC"])
            .args(switches)
            .arg("-o")
            .arg(folder.join("libcuda.so"))
            .arg(&source)
            .arg("-lpthread")
            .output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        built.insert(key, folder.clone());
        Ok(folder)
    }

    /// Plays a scene on the driver in `folder`.
    fn play(folder: &Path, scene: &str, rest: &[&str]) -> Result<Output, Failed> {
        let output = Command::new(std::env::current_exe()?)
            .args([PLAY, scene])
            .args(rest)
            .env("LD_LIBRARY_PATH", folder)
            .env_remove("RUST_BACKTRACE")
            .output()?;
        Ok(output)
    }

    /// Plays a scene and demands that it ends well.
    fn run(&self, switches: &[&str], scene: &str, rest: &[&str]) -> Result<String, Failed> {
        let output = Self::play(&self.driver(switches)?, scene, rest)?;
        finished(&output)
    }
}

/// The words of a child that ended well and without a panic: with `panic = "abort"` a caught panic
/// would be a crash.
fn finished(output: &Output) -> Result<String, Failed> {
    let words = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || words.contains("panicked") {
        return Err(format!("{}: {words}", output.status).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn same(found: &str, wanted: &str) -> Result<(), Failed> {
    if found.trim() == wanted.trim() {
        return Ok(());
    }
    Err(format!("found:\n{found}\nwanted:\n{wanted}").into())
}

const TESTS: &[(&str, Test)] = &[
    ("a_library_without_symbols_is_broken", |builder| {
        let found = builder.run(&["-DEMPTY"], "report", &[])?;
        same(
            &found,
            "broken: libcuda lacks cuInit; the driver is too old: update it",
        )
    }),
    ("each_missing_symbol_is_named", each_missing_symbol_is_named),
    ("a_driver_that_does_not_start_is_broken", |builder| {
        let found = builder.run(&["-DINIT=999"], "report", &[])?;
        same(
            &found,
            "broken: cuInit answered CUDA_ERROR_UNKNOWN (999): unknown error",
        )
    }),
    ("an_error_without_a_text_has_its_number", |builder| {
        let found = builder.run(&["-DINIT=999", "-DNO_TEXTS"], "report", &[])?;
        same(&found, "broken: cuInit answered CUDA error (999)")
    }),
    ("an_error_no_header_knows_has_its_number", |builder| {
        let found = builder.run(&["-DINIT=123456"], "report", &[])?;
        same(&found, "broken: cuInit answered CUDA_ERROR_OTHER (123456)")
    }),
    ("the_link_stub_is_recognised", |builder| {
        let found = builder.run(&["-DINIT=34", "-DNO_TEXTS"], "report", &[])?;
        same(
            &found,
            "broken: cuInit answered CUDA error (34); this is the toolkit's link stub, not the \
             driver; take it out of the library path",
        )
    }),
    ("no_device_is_an_empty_list", |builder| {
        let found = builder.run(&["-DDEVICES=0"], "report", &[])?;
        same(&found, "loaded with 0 devices")
    }),
    ("devices_are_described", devices_are_described),
    ("a_sick_device_does_not_hide_others", |builder| {
        let found = builder.run(&["-DNO_TOTAL"], "report", &[])?;
        let lines: Vec<&str> = found.lines().collect();
        let well = lines.len() == 3
            && lines[1].contains("cuda:0")
            && lines[1].contains("total 67108864 max_alloc 67108864")
            && lines[2].contains("cuda:1")
            && lines[2].contains("total 0 max_alloc 18446744073709551615");
        if well { Ok(()) } else { Err(found.into()) }
    }),
    ("an_old_driver_s_uuid_is_taken", |builder| {
        let found = builder.run(&["-DNO_UUID2"], "report", &[])?;
        if found.contains("uuid 10101010-1010-1010-1010-101010101010 slice false") {
            return Ok(());
        }
        Err(found.into())
    }),
    ("an_emulated_device_is_software", |builder| {
        let name = "-DNAME=\"Warploom emulated RTX\"";
        let found = builder.run(&[name, "-DDEVICES=1"], "report", &[])?;
        if found.contains("`Warploom emulated RTX 0` virtual software true") {
            return Ok(());
        }
        Err(found.into())
    }),
];

fn no_driver_is_absent(builder: &Builder) -> Result<Completion, Failed> {
    let output = Builder::play(&builder.folder().join("nothing-here"), "report", &[])?;
    let found = finished(&output)?;
    if !found.starts_with("absent") {
        let reason = "skipped: this machine has a driver in its system folders";
        return Ok(Completion::ignored_with(reason));
    }
    same(
        &found,
        "absent: libcuda.so.1 is not installed (no NVIDIA driver)",
    )?;
    Ok(Completion::Completed)
}

/// The names that `driver.rs` declares as required.
fn required_symbols() -> Vec<&'static str> {
    let source = include_str!("../../src/driver.rs");
    let (_, list) = source.split_once("\nentry_points! {").expect("the list");
    let (list, _) = list.split_once("optional {").expect("its end");
    list.lines()
        .filter_map(|line| line.trim().strip_prefix("fn "))
        .filter_map(|line| line.split_once('(').map(|(name, _)| name))
        .collect()
}

fn each_missing_symbol_is_named(builder: &Builder) -> Result<(), Failed> {
    let whole = std::fs::read(builder.driver(&[])?.join("libcuda.so"))?;
    let symbols = required_symbols();
    assert!(symbols.len() > 30, "{symbols:?}");
    for symbol in symbols {
        // Renamed in the table of names, a symbol is not found any more.
        let name = format!("\0{symbol}\0").into_bytes();
        let places: Vec<usize> = (0..whole.len())
            .filter(|at| whole[*at..].starts_with(&name))
            .collect();
        assert!(!places.is_empty(), "the test driver lacks {symbol}");
        let mut without = whole.clone();
        for at in places {
            without[at + 1] = b'_';
        }
        let folder = builder.folder().join(format!("without-{symbol}"));
        std::fs::create_dir(&folder)?;
        std::fs::write(folder.join("libcuda.so"), without)?;
        let found = finished(&Builder::play(&folder, "report", &[])?)?;
        let wanted = format!("broken: libcuda lacks {symbol}; the driver is too old: update it");
        same(&found, &wanted)?;
    }
    Ok(())
}

fn devices_are_described(builder: &Builder) -> Result<(), Failed> {
    let limits =
        "group [1024, 1024, 64] of 1024 groups [2147483647, 65535, 65535] local 49152 align 16";
    let wanted = format!(
        "loaded with 2 devices\n\
         cuda:0 `Strict test device 0` discrete software false `CUDA 12.4` \
         pci 10000:41:00.0 uuid 20202020-2020-2020-2020-202020202020 slice true luid none \
         total 67108864 max_alloc 67108864 free None memory cuda.device, cuda.pinned ptx true \
         caps F64 | F16 | I64 | TIMESTAMPS | CONCURRENT_QUEUES | COPY_OVERLAP | STRICT_MATH \
         units 46 {limits}\n\
         cuda:1 `Strict test device 1` integrated software false `CUDA 12.4` \
         pci 10000:42:01.0 uuid 21212121-2121-2121-2121-212121212121 slice true luid none \
         total 67108864 max_alloc 67108864 free None memory cuda.device, cuda.pinned ptx true \
         caps F64 | F16 | I64 | TIMESTAMPS | CONCURRENT_QUEUES | COPY_OVERLAP | STRICT_MATH | UNIFIED_MEMORY \
         units 47 {limits}"
    );
    same(&builder.run(&[], "report", &[])?, &wanted)
}

/// CUDA C on a driver that is older than NVRTC: its PTX is refused, its machine code is not.
#[expect(
    clippy::disallowed_methods,
    reason = "tests are told by their runner where the libraries are"
)]
fn machine_code(builder: &Builder) -> Result<Completion, Failed> {
    let Some(list) = std::env::var_os("WARPLOOM_TEST_NVRTC") else {
        let reason = "skipped: WARPLOOM_TEST_NVRTC does not say where an NVRTC library is";
        return Ok(Completion::ignored_with(reason));
    };
    for path in std::env::split_paths(&list) {
        let path = path.to_str().ok_or("the path of NVRTC is not text")?;
        builder.run(&["-DREFUSE_PTX"], "machine_code", &[path])?;
        builder.run(&[], "cuda_c", &[path])?;
    }
    Ok(Completion::Completed)
}
