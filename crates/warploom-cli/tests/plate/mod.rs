//! A folder with a pipeline and images in it, for tests that run the command.
#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod kills;
pub(crate) mod processes;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

pub(crate) const PIPELINE: &str = r#"
name = "spots"
[[step]]
name = "soft"
op = "gaussian"
sigma = 1.5
[[step]]
name = "mask"
op = "threshold_otsu"
[[step]]
name = "spots"
op = "label_box"
[[step]]
name = "measured"
op = "label_statistics"
input = ["spots", "image"]
[[output]]
of = "spots"
write = "{record}/spots.tif"
[[output]]
of = "measured"
write = "{record}/measured.csv"
"#;

/// A pipeline that works on every plane by itself, and writes each to a file of its own.
pub(crate) const PLANES: &str = r#"
name = "top"
foreach = "plane"
[[step]]
name = "top"
op = "maximum_box"
radius = 1
[[output]]
of = "top"
write = "{record}-{channel}.npy"
"#;

/// Files by their paths, and what is in them.
pub(crate) type Files = BTreeMap<PathBuf, Vec<u8>>;

/// A folder with a pipeline and images in it.
pub(crate) struct Bench {
    pub(crate) folder: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new(images: u32) -> Self {
        let bench = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::write(bench.path("spots.toml"), PIPELINE).unwrap();
        fs::create_dir(bench.path("images")).unwrap();
        for number in 0..images {
            bench.image(number, number);
        }
        bench
    }

    /// Fourteen records of two channels each, whose files are looked at before a run only here and there.
    pub(crate) fn of_channels() -> Self {
        let bench = Self::new(0);
        fs::write(bench.path("spots.toml"), PLANES).unwrap();
        for site in 0..14 {
            for channel in ["a", "b"] {
                let path = bench.channel(site, channel);
                npy(&path, "<u2", "64, 48", &[7_u16; 64 * 48]);
            }
        }
        bench
    }

    pub(crate) fn channel(&self, site: u32, channel: &str) -> PathBuf {
        self.path(&format!("images/{site:02}_{channel}.npy"))
    }

    /// A run over images of several channels.
    pub(crate) fn command_of_channels(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
        command
            .env("WARPLOOM_CPU_ONLY", "1")
            .env("WARPLOOM_LEASES", self.path("leases"))
            .current_dir(self.folder.path())
            .args(["run", "spots.toml", "-i", "images/{site}_{channel}.npy"])
            .args(args);
        command
    }

    /// Puts a pipe that nobody writes to in place of a file: whoever opens it hangs.
    pub(crate) fn hangs(path: &Path) {
        fs::remove_file(path).unwrap();
        let made = Command::new("mkfifo").arg(path).status();
        assert!(made.unwrap().success());
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn input(&self, number: u32) -> PathBuf {
        self.path(&format!("images/s{number:03}.npy"))
    }

    /// Spots on a dark ground, others for every seed.
    pub(crate) fn image(&self, number: u32, seed: u32) {
        let mut state = u64::from(seed) * 2 + 1;
        let mut pixels = Vec::new();
        for at in 0..64 * 48_u16 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(99);
            let noise = u16::try_from(state >> 60).unwrap();
            let (y, x) = (u32::from(at / 48), u32::from(at % 48));
            let is_spot = ((y + seed) % 16 < 6) && ((x + 3 * seed) % 12 < 5);
            pixels.push(noise + if is_spot { 400 } else { 100 });
        }
        npy(&self.input(number), "<u2", "64, 48", &pixels);
    }

    /// A run that shares devices with no other test: whoever waits for another's may get no part of the work.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
        command
            .env_remove("WARPLOOM_BACKENDS")
            .env_remove("WARPLOOM_LOG")
            .env("WARPLOOM_CPU_ONLY", "1")
            .env("WARPLOOM_LEASES", self.path("leases"))
            .current_dir(self.folder.path())
            .args(["run", "spots.toml", "-i", "images"])
            .args(args);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> (i32, String, String) {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(args).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (status.code().unwrap(), text(stdout), text(stderr))
    }

    /// Runs with `--json`; the exit code and the answer.
    pub(crate) fn told(&self, args: &[&str]) -> (i32, Value) {
        let (code, stdout, stderr) = self.run(&[args, &["--json", "-q"]].concat());
        let answer = serde_json::from_str(&stdout);
        (code, answer.unwrap_or_else(|_| panic!("{stderr}")))
    }

    pub(crate) fn start(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    /// Every file of the results that has its name, and so has the folder it is in; our own list apart.
    pub(crate) fn results(&self, output: &str) -> Files {
        let root = self.path(output);
        let mut found = BTreeMap::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            let Ok(entries) = fs::read_dir(&folder) else {
                continue;
            };
            for entry in entries {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                if name.starts_with('.') {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let bytes = fs::read(&path).unwrap();
                    found.insert(path.strip_prefix(&root).unwrap().to_owned(), bytes);
                }
            }
        }
        found
    }
}

pub(crate) fn npy<T: Copy + Into<f64>>(path: &Path, dtype: &str, shape: &str, pixels: &[T]) {
    let mut header =
        format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({shape}), }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.bytes());
    for pixel in pixels {
        let value: f64 = (*pixel).into();
        if dtype == "<u2" {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "they were numbers of 16 bits"
            )]
            bytes.extend((value as u16).to_le_bytes());
        } else {
            bytes.extend(value.to_le_bytes());
        }
    }
    fs::write(path, bytes).unwrap();
}
