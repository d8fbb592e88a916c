//! Scenes: pieces of tests that play on an emulated machine of their own.
//!
//! The test that has a scene is started again in a child, by its full name and with the machine's
//! variables; there, and only there, the scene is played. So a scene sees the values of its test's
//! table, and may crash or hang without taking the others with it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rstest::Context;
use warploom_core::GpuBackend;
use warploom_cuda::{CudaBackend, EMULATED};

/// Names the scene a child is to play.
const SCENE: &str = "WARPLOOM_EMULATED_SCENE";

/// Every variable that makes a machine; scenes begin without them.
const VARIABLES: &[&str] = &[
    "CUDA_VISIBLE_DEVICES",
    "WARPLOOM_EMU_DEVICES",
    "WARPLOOM_EMU_DRIVER",
    "WARPLOOM_EMU_FAIL",
    "WARPLOOM_EMU_JITTER",
    "WARPLOOM_EMU_LOG",
    "WARPLOOM_EMU_LOSE",
    "WARPLOOM_EMU_PINNED",
    "WARPLOOM_EMU_SEED",
    "WARPLOOM_EMU_WORKERS",
];

/// A scene takes well under a second; the rest is for a machine that is busy.
const DEADLINE: Duration = Duration::from_mins(2);

/// How the emulator begins what it tells.
const EMULATOR: &str = "warploom-emu: ";

/// A scene of a test, to be played.
#[must_use]
pub(crate) struct Scene<'a> {
    test: &'a Context,
    name: String,
    variables: BTreeMap<&'static str, String>,
}

/// What became of a scene, as far as this process knows.
pub(crate) enum Ended {
    /// This is the process in which it was played, or there is no machine to play it on. The
    /// checks on what was told are another process's.
    Untold,
    /// A child played it well and told this.
    Told { name: String, lines: Vec<String> },
}

impl<'a> Scene<'a> {
    /// A scene of this test; one test's scenes have different names.
    pub(crate) fn new(test: &'a Context, name: impl Into<String>) -> Self {
        Self {
            test,
            name: name.into(),
            variables: BTreeMap::new(),
        }
    }

    /// On a machine with this variable.
    pub(crate) fn with(mut self, variable: &'static str, value: impl Into<String>) -> Self {
        assert!(VARIABLES.contains(&variable), "{variable} is never removed");
        self.variables.insert(variable, value.into());
        self
    }

    /// Calls that fail.
    pub(crate) fn fail(self, rules: impl Into<String>) -> Self {
        self.with("WARPLOOM_EMU_FAIL", rules)
    }

    /// Devices that die.
    pub(crate) fn lose(self, rules: impl Into<String>) -> Self {
        self.with("WARPLOOM_EMU_LOSE", rules)
    }

    /// The devices there are.
    pub(crate) fn devices(self, list: impl Into<String>) -> Self {
        self.with("WARPLOOM_EMU_DEVICES", list)
    }

    /// Plays it, here in the child or by starting one, and demands that it ends well.
    pub(crate) fn play(self, play: impl FnOnce()) -> Ended {
        if let Some(asked) = variable(SCENE) {
            if asked == self.name {
                play();
                say(&format!("played: {asked}"));
            }
            return Ended::Untold;
        }
        if let Err(why) = emulator() {
            let required = variable("WARPLOOM_REQUIRE").unwrap_or_default();
            let required = required.split(',').any(|name| name.trim() == "cuda");
            assert!(!required, "emulated CUDA is required, but {why}");
            say_once(&format!("skipped: {why}"));
            return Ended::Untold;
        }
        self.start()
    }

    fn start(self) -> Ended {
        let test = full_name(self.test);
        let folder = tempfile::tempdir().expect("a folder for the output");
        let output = folder.path().join("output");
        // A file, because a pipe that nobody empties while the child is waited for would stop it.
        let file = File::create(&output).expect("a file for the output");
        let second = file.try_clone().expect("a second handle of it");
        let mut command = Command::new(std::env::current_exe().expect("this binary"));
        command.args(["--exact", &test, "--nocapture"]);
        for name in VARIABLES {
            command.env_remove(name);
        }
        // A failure is told with what the child said; where it came from is told by its words.
        command.env_remove("RUST_BACKTRACE");
        command.envs(&self.variables).env(SCENE, &self.name);
        let child = command.stdout(file).stderr(second).spawn();
        let ended = wait(child.expect("this binary starts"));
        let told = read(&output);
        let scene = format!("{test}, scene `{}`", self.name);
        let Some(status) = ended else {
            panic!("{scene} did not end within {DEADLINE:?}:\n{told}");
        };
        let played = told.contains(&format!("played: {}", self.name));
        let panicked = told.contains("panicked at") || told.contains("the emulator itself failed");
        assert!(
            status.success() && played && !panicked,
            "{scene} ended with {status}:\n{told}"
        );
        let lines = told.lines().filter_map(|line| line.strip_prefix(EMULATOR));
        Ended::Told {
            lines: lines.map(str::to_owned).collect(),
            name: scene,
        }
    }
}

impl Ended {
    /// The emulator told something with these words.
    pub(crate) fn says(self, words: &str) -> Self {
        if let Self::Told { name, lines } = &self {
            let found = lines.iter().any(|line| line.contains(words));
            assert!(found, "{name}: `{words}` was not said, but {lines:#?}");
        }
        self
    }

    /// The emulator told of nothing but the failures that were ordered: the backend used nothing
    /// that was freed, freed nothing twice, and so on.
    pub(crate) fn says_only_what_was_planned(self) {
        if let Self::Told { name, lines } = self {
            let odd = lines.iter().find(|line| !line.ends_with(", as planned"));
            assert_eq!(odd, None, "{name}: {lines:#?}");
        }
    }

    /// The emulator told of nothing at all.
    pub(crate) fn says_nothing(self) {
        if let Self::Told { name, lines } = self {
            assert!(lines.is_empty(), "{name}: {lines:#?}");
        }
    }
}

/// Is the driver of this process the emulator? If not, why not.
fn emulator() -> Result<(), &'static str> {
    static FOUND: OnceLock<Result<(), String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let backend = CudaBackend::load().map_err(|error| error.to_string())?;
        let devices = backend.probe().map_err(|error| error.to_string())?;
        match devices.iter().find(|info| !info.name.starts_with(EMULATED)) {
            Some(real) => Err(format!(
                "{} is {}, which is no emulated device",
                real.id, real.name
            )),
            None if devices.is_empty() => Err("the driver lists no device".into()),
            None => Ok(()),
        }
    });
    found.as_ref().copied().map_err(String::as_str)
}

/// The name of the running test, as the harness lists it.
fn full_name(test: &Context) -> String {
    static LIST: OnceLock<Vec<String>> = OnceLock::new();
    let list = LIST.get_or_init(|| {
        let this = std::env::current_exe().expect("this binary");
        let listed = Command::new(this).arg("--list").output();
        let listed = listed.expect("this binary lists its tests").stdout;
        let listed = String::from_utf8(listed).expect("names are text");
        let names = listed
            .lines()
            .filter_map(|line| line.strip_suffix(": test"));
        names.map(str::to_owned).collect()
    });
    let (_, module) = test.module.split_once("::").expect("tests are in modules");
    let is_it = |name: &&String| match test.case {
        // Cases are numbered from 1, filled up with zeros, and may have a description.
        Some(case) => {
            let rest = name
                .strip_prefix(module)
                .and_then(|rest| rest.strip_prefix("::case_"));
            let number = rest.map(|rest| rest.split('_').next().unwrap_or(rest));
            number.and_then(|number| number.parse().ok()) == Some(case + 1)
        }
        None => **name == format!("{module}::{}", test.name),
    };
    let found = list.iter().find(is_it);
    let what = (test.module, test.name, test.case);
    found
        .unwrap_or_else(|| panic!("{what:?} is not in {list:#?}"))
        .clone()
}

/// Waits for a child; `None` when it had to be ended.
fn wait(mut child: Child) -> Option<ExitStatus> {
    let begun = Instant::now();
    while begun.elapsed() < DEADLINE {
        if let Some(status) = child.try_wait().expect("our child") {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("our child");
    child.wait().expect("our child");
    None
}

fn read(file: &Path) -> String {
    let bytes = std::fs::read(file).expect("the file was made");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Past the harness, which would swallow it: a skip that nobody sees is a pass.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn say_once(text: &str) {
    static SAID: OnceLock<()> = OnceLock::new();
    SAID.get_or_init(|| say(text));
}

#[expect(
    clippy::disallowed_methods,
    reason = "a child is told by its environment what to play, as the emulator is"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
