//! NVIDIA's run-time compiler, found at run time.
//!
//! A loader of our own, because cudarc's panics without the library, knows only the file names of
//! its own version, and offers neither machine code nor the fast-math switch.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use libloading::Library;
use warploom_core::{CodeKey, Math};

/// The names under which the library is looked for, newest first after the unversioned one.
/// Wheels and run-time packages have only the versioned names.
const NAMES: &[&str] = if cfg!(windows) {
    &[
        "nvrtc64_130_0.dll",
        "nvrtc64_120_0.dll",
        "nvrtc64_112_0.dll",
    ]
} else if cfg!(target_os = "macos") {
    &["libnvrtc.dylib"]
} else {
    &[
        "libnvrtc.so",
        "libnvrtc.so.13",
        "libnvrtc.so.12",
        "libnvrtc.so.11.2",
    ]
};

/// NVRTC's number for "the source has errors"; all others are about the call.
const COMPILATION: c_int = 6;

/// Why NVRTC is not there, or what it said.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NvrtcError {
    /// No library of any of these names.
    #[error("NVRTC is not installed (looked for {})", .names.join(", "))]
    Absent {
        /// What was looked for.
        names: Vec<String>,
    },
    /// The library is too old, or not NVRTC.
    #[error("{file} lacks {symbol}")]
    Lacks {
        /// The library.
        file: String,
        /// What it lacks.
        symbol: &'static str,
    },
    /// The device is older than anything this NVRTC compiles for.
    #[error(
        "NVRTC {}.{} compiles for compute capability {}.{} and newer, but the device has {}.{}: install an older NVRTC",
        .version.0, .version.1, .oldest / 10, .oldest % 10, .device / 10, .device % 10
    )]
    TooOld {
        /// NVRTC's version.
        version: (u32, u32),
        /// The oldest capability it compiles for, 75 for 7.5.
        oldest: u32,
        /// The device's.
        device: u32,
    },
    /// The source has errors.
    #[error("{log}")]
    Source {
        /// The compiler's words.
        log: String,
    },
    /// A call failed for another reason.
    #[error("{call} failed: {message}")]
    Failed {
        /// The call.
        call: &'static str,
        /// NVRTC's number and text.
        message: String,
    },
}

/// What to compile to, for which compute capability (75 is 7.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Target {
    /// PTX, which runs on this capability and all newer ones.
    Ptx(u32),
    /// Machine code, which runs on this capability and newer ones of the same generation.
    Cubin(u32),
}

type Program = *mut c_void;
type Call<A> = unsafe extern "C" fn(Program, A) -> c_int;

/// A loaded NVRTC. It stays loaded: its compiler leaves threads and exit handlers behind.
pub struct Nvrtc {
    version: (u32, u32),
    architectures: Vec<u32>,
    error_string: unsafe extern "C" fn(c_int) -> *const c_char,
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int,
    destroy: unsafe extern "C" fn(*mut Program) -> c_int,
    log: Output,
    ptx: Output,
    cubin: Option<Output>,
}

/// A pair of calls that give a size and then that many bytes.
#[derive(Clone, Copy)]
struct Output {
    name: &'static str,
    size: Call<*mut usize>,
    read: Call<*mut c_char>,
}

impl fmt::Debug for Nvrtc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nvrtc")
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// Libraries this process has loaded, by the name they were asked for.
static LOADED: Mutex<Vec<(PathBuf, &'static Nvrtc)>> = Mutex::new(Vec::new());

impl Nvrtc {
    /// The first library of the usual names that is there.
    ///
    /// # Errors
    /// When none is there, or what is there is not usable.
    pub fn find() -> Result<&'static Self, NvrtcError> {
        let mut unusable = None;
        for name in NAMES {
            match Self::open(Path::new(name)) {
                Err(NvrtcError::Absent { .. }) => {}
                Err(error) => unusable = unusable.or(Some(error)),
                found => return found,
            }
        }
        Err(unusable.unwrap_or_else(|| NvrtcError::Absent {
            names: NAMES.iter().map(ToString::to_string).collect(),
        }))
    }

    /// The library in this file; loaded once per process.
    ///
    /// # Errors
    /// When it is not there or lacks something.
    pub fn open(path: &Path) -> Result<&'static Self, NvrtcError> {
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, nvrtc)) = loaded.iter().find(|(known, _)| known == path) {
            return Ok(nvrtc);
        }
        // SAFETY: loading NVRTC runs its constructors, which touch no state of ours.
        let library = unsafe { Library::new(path) }.map_err(|_| NvrtcError::Absent {
            names: vec![path.display().to_string()],
        })?;
        let nvrtc = Self::resolve(&library, path)?;
        // Never unloaded, so that the pointers taken from it stay valid.
        std::mem::forget(library);
        let nvrtc: &'static Self = Box::leak(Box::new(nvrtc));
        loaded.push((path.to_owned(), nvrtc));
        tracing::debug!(path = %path.display(), version = ?nvrtc.version, "NVRTC loaded");
        Ok(nvrtc)
    }

    fn resolve(library: &Library, path: &Path) -> Result<Self, NvrtcError> {
        let file = path.display().to_string();
        let lacks = |symbol| NvrtcError::Lacks {
            file: file.clone(),
            symbol,
        };
        /// A function by its name, with the signature in NVRTC's header.
        macro_rules! need {
            ($name:literal) => {
                symbol(library, $name).ok_or_else(|| lacks($name))?
            };
        }
        let cubin = symbol(library, "nvrtcGetCUBINSize").zip(symbol(library, "nvrtcGetCUBIN"));
        let mut nvrtc = Self {
            version: version(need!("nvrtcVersion")),
            architectures: Vec::new(),
            error_string: need!("nvrtcGetErrorString"),
            create: need!("nvrtcCreateProgram"),
            compile: need!("nvrtcCompileProgram"),
            destroy: need!("nvrtcDestroyProgram"),
            log: Output {
                name: "nvrtcGetProgramLog",
                size: need!("nvrtcGetProgramLogSize"),
                read: need!("nvrtcGetProgramLog"),
            },
            ptx: Output {
                name: "nvrtcGetPTX",
                size: need!("nvrtcGetPTXSize"),
                read: need!("nvrtcGetPTX"),
            },
            cubin: cubin.map(|(size, read)| Output {
                name: "nvrtcGetCUBIN",
                size,
                read,
            }),
        };
        let count = symbol(library, "nvrtcGetNumSupportedArchs");
        if let Some((count, list)) = count.zip(symbol(library, "nvrtcGetSupportedArchs")) {
            nvrtc.architectures = architectures(count, list);
        }
        Ok(nvrtc)
    }

    /// Major and minor version.
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// The compute capabilities it compiles for, ascending; empty when it does not tell.
    pub fn architectures(&self) -> &[u32] {
        &self.architectures
    }

    /// PTX for a device of this capability: the newest that NVRTC and the device both know.
    ///
    /// # Errors
    /// When the device is older than all that NVRTC knows.
    pub fn ptx_target(&self, device: u32) -> Result<Target, NvrtcError> {
        let newest = newest_for(&self.architectures, device);
        newest.map(Target::Ptx).ok_or(NvrtcError::TooOld {
            version: self.version,
            oldest: self.architectures.first().copied().unwrap_or_default(),
            device,
        })
    }

    /// Machine code for a device of this capability, if there can be some: it must be of the
    /// device's own generation.
    pub fn cubin_target(&self, device: u32) -> Option<Target> {
        self.cubin?;
        newest_for(&self.architectures, device)
            .filter(|newest| newest / 10 == device / 10)
            .map(Target::Cubin)
    }

    /// Compiles CUDA C.
    ///
    /// # Errors
    /// [`NvrtcError::Source`] with the compiler's log when the source has errors.
    pub fn compile(
        &self,
        source: &str,
        name: &str,
        target: Target,
        math: Math,
    ) -> Result<Vec<u8>, NvrtcError> {
        let invalid = |what| NvrtcError::Source {
            log: format!("the {what} has a NUL character"),
        };
        let text = CString::new(source).map_err(|_| invalid("source"))?;
        let file = CString::new(format!("{name}.cu")).map_err(|_| invalid("name"))?;
        let (output, architecture) = match target {
            Target::Ptx(capability) => (self.ptx, format!("compute_{capability}")),
            Target::Cubin(capability) => {
                let lacks = || NvrtcError::Lacks {
                    file: format!("NVRTC {}.{}", self.version.0, self.version.1),
                    symbol: "nvrtcGetCUBIN",
                };
                (self.cubin.ok_or_else(lacks)?, format!("sm_{capability}"))
            }
        };
        let architecture = CString::new(format!("--gpu-architecture={architecture}"))
            .map_err(|_| invalid("architecture"))?;
        let mut options = vec![architecture.as_ptr()];
        options.extend(switches(math).iter().map(|switch| switch.as_ptr()));

        let program = Open::new(self, &text, &file)?;
        let count = c_int::try_from(options.len()).unwrap_or(c_int::MAX);
        // SAFETY: the program is alive; `options` are that many NUL-terminated texts.
        let code = unsafe { (self.compile)(program.program, count, options.as_ptr()) };
        if code == COMPILATION {
            let log = program.read(self.log).unwrap_or_default();
            // It ends an error message, and those have no full stop.
            let log = String::from_utf8_lossy(&log);
            let log = log.trim().trim_end_matches('.').to_owned();
            return Err(NvrtcError::Source { log });
        }
        self.check("nvrtcCompileProgram", code)?;
        program.read(output)
    }

    /// Everything that decides what [`compile`](Self::compile) makes.
    pub(crate) fn key(&self, source: &str, name: &str, target: Target, math: Math) -> CodeKey {
        let (major, minor) = self.version;
        let compiler = format!("NVRTC {major}.{minor} {target:?}");
        let mut parts = vec![compiler.as_bytes(), name.as_bytes(), source.as_bytes()];
        parts.extend(switches(math).iter().map(|switch| switch.to_bytes()));
        CodeKey::new(&parts)
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<(), NvrtcError> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: any number may be asked for.
        let text = unsafe { (self.error_string)(code) };
        let words = if text.is_null() {
            "no text".into()
        } else {
            // SAFETY: not null, so a NUL-terminated text in NVRTC's data, which stays loaded.
            unsafe { CStr::from_ptr(text) }.to_string_lossy()
        };
        Err(NvrtcError::Failed {
            call,
            message: format!("{words} ({code})"),
        })
    }
}

/// How CUDA C is compiled. Helper functions need no `__device__`. Strict is what the other strict
/// backends compute: no contraction, correctly rounded division and root, denormals kept.
fn switches(math: Math) -> &'static [&'static CStr] {
    match math {
        Math::Strict => &[
            c"-default-device",
            c"--fmad=false",
            c"--prec-div=true",
            c"--prec-sqrt=true",
            c"--ftz=false",
        ],
        Math::Fast => &[c"-default-device", c"--use_fast_math"],
    }
}

/// The newest of `known` that a device of capability `device` runs. An empty list knows all.
fn newest_for(known: &[u32], device: u32) -> Option<u32> {
    if known.is_empty() {
        return Some(device);
    }
    known.iter().copied().filter(|known| *known <= device).max()
}

/// A program, destroyed when dropped.
struct Open<'a> {
    nvrtc: &'a Nvrtc,
    program: Program,
}

impl<'a> Open<'a> {
    fn new(nvrtc: &'a Nvrtc, source: &CStr, file: &CStr) -> Result<Self, NvrtcError> {
        let mut program = std::ptr::null_mut();
        let none = std::ptr::null();
        // SAFETY: the texts are NUL-terminated and copied by the call; there are no headers, for
        // which the manual takes 0 and null.
        let code = unsafe {
            (nvrtc.create)(
                &raw mut program,
                source.as_ptr(),
                file.as_ptr(),
                0,
                none,
                none,
            )
        };
        nvrtc.check("nvrtcCreateProgram", code)?;
        Ok(Self { nvrtc, program })
    }

    /// One of the program's outputs.
    fn read(&self, output: Output) -> Result<Vec<u8>, NvrtcError> {
        let mut bytes = 0_usize;
        // SAFETY: the program is alive, and the place for the answer is writable.
        let code = unsafe { (output.size)(self.program, &raw mut bytes) };
        self.nvrtc.check(output.name, code)?;
        let mut content = vec![0_u8; bytes];
        // SAFETY: the program is alive, and `content` has the size that was told.
        let code = unsafe { (output.read)(self.program, content.as_mut_ptr().cast()) };
        self.nvrtc.check(output.name, code)?;
        // Texts end in a NUL, which is part of the size; machine code does not.
        if output.name != "nvrtcGetCUBIN" && content.last() == Some(&0) {
            content.pop();
        }
        Ok(content)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        // SAFETY: created once and destroyed once. There is nothing to do about a failure.
        unsafe { (self.nvrtc.destroy)(&raw mut self.program) };
    }
}

/// The symbol as a function pointer of type `F`, if the library has it.
fn symbol<F: Copy>(library: &Library, name: &str) -> Option<F> {
    // SAFETY: `F` is a function pointer type with the signature NVRTC's header has for this name.
    let found = unsafe { library.get::<F>(name) };
    found.ok().map(|symbol| *symbol)
}

fn version(ask: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int) -> (u32, u32) {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both places are writable.
    let code = unsafe { ask(&raw mut major, &raw mut minor) };
    let number = |part| u32::try_from(part).unwrap_or(0);
    if code == 0 {
        (number(major), number(minor))
    } else {
        (0, 0)
    }
}

/// The compute capabilities a library knows, ascending; none when it does not tell.
fn architectures(
    count: unsafe extern "C" fn(*mut c_int) -> c_int,
    list: unsafe extern "C" fn(*mut c_int) -> c_int,
) -> Vec<u32> {
    let mut len: c_int = 0;
    // SAFETY: the place for the answer is writable.
    let code = unsafe { count(&raw mut len) };
    let Some(len) = usize::try_from(len).ok().filter(|_| code == 0) else {
        return Vec::new();
    };
    let mut numbers = vec![0; len];
    // SAFETY: there is room for as many as were counted.
    let code = unsafe { list(numbers.as_mut_ptr()) };
    if code != 0 {
        return Vec::new();
    }
    let mut known: Vec<u32> = numbers
        .into_iter()
        .filter_map(|n| n.try_into().ok())
        .collect();
    known.sort_unstable();
    known
}

/// Which NVRTC a backend uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct NvrtcChoice(Option<PathBuf>);

impl NvrtcChoice {
    pub(crate) fn file(path: impl Into<PathBuf>) -> Self {
        Self(Some(path.into()))
    }

    /// Loads it, or says why not.
    pub(crate) fn get(&self) -> Result<&'static Nvrtc, NvrtcError> {
        match &self.0 {
            Some(path) => Nvrtc::open(path),
            None => Nvrtc::find(),
        }
    }
}

#[cfg(test)]
mod tests;
