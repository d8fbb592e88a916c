//! Makes the PTX that the tests of the engine run, from the CUDA sources beside it.
//!
//! ```text
//! cargo run -p warploom-cuda-emu --example fixtures -- LIBNVRTC INCLUDE ARCHITECTURE SUFFIX
//! ```
//!
//! compiles every `tests/kernels/*.cu` with the given `libnvrtc`, headers and architecture, and writes
//! `tests/kernels/*.SUFFIX.ptx`. Tests need none of this: what it writes is checked in.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::process::ExitCode;

use libloading::{Library, Symbol};

type Program = *mut c_void;
type Failure = Box<dyn std::error::Error>;

/// The few entry points of NVRTC that are needed.
struct Compiler {
    library: Library,
}

impl Compiler {
    fn entry<T>(&self, name: &str) -> Result<Symbol<'_, T>, Failure> {
        // SAFETY: callers ask for the type that the NVRTC manual gives for the name.
        Ok(unsafe { self.library.get(name.as_bytes()) }?)
    }

    /// Calls a pair of functions that give the size of a text, and the text.
    fn text(&self, program: Program, size: &str, text: &str) -> Result<String, Failure> {
        type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
        type Text = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
        let mut length = 0;
        let size: Symbol<'_, Size> = self.entry(size)?;
        // SAFETY: the program is alive, and the length is written to a place for it.
        unsafe { size(program, &raw mut length) };
        let mut bytes = vec![0u8; length + 1];
        let text: Symbol<'_, Text> = self.entry(text)?;
        // SAFETY: the text has the length that was just given.
        unsafe { text(program, bytes.as_mut_ptr().cast()) };
        Ok(CStr::from_bytes_until_nul(&bytes)?.to_str()?.to_owned())
    }

    fn compile(&self, source: &str, options: &[CString]) -> Result<String, Failure> {
        type Names = *const *const c_char;
        type Create = unsafe extern "C" fn(
            *mut Program,
            *const c_char,
            *const c_char,
            c_int,
            Names,
            Names,
        ) -> c_int;
        type Compile = unsafe extern "C" fn(Program, c_int, Names) -> c_int;
        type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;
        let source = CString::new(source)?;
        let mut program = std::ptr::null_mut();
        let none: Names = std::ptr::null();
        let create: Symbol<'_, Create> = self.entry("nvrtcCreateProgram")?;
        // SAFETY: texts end in zeros, there are no headers, and the program has a place.
        let status = unsafe {
            create(
                &raw mut program,
                source.as_ptr(),
                c"kernel.cu".as_ptr(),
                0,
                none,
                none,
            )
        };
        if status != 0 {
            return Err(format!("nvrtcCreateProgram returned {status}").into());
        }
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let compile: Symbol<'_, Compile> = self.entry("nvrtcCompileProgram")?;
        let count = c_int::try_from(pointers.len())?;
        // SAFETY: as many options as are said, each of which ends in a zero.
        let status = unsafe { compile(program, count, pointers.as_ptr()) };
        let result = if status == 0 {
            self.text(program, "nvrtcGetPTXSize", "nvrtcGetPTX")
        } else {
            let log = self.text(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog")?;
            Err(log.into())
        };
        let destroy: Symbol<'_, Destroy> = self.entry("nvrtcDestroyProgram")?;
        // SAFETY: the program was created above and is not used afterwards.
        unsafe { destroy(&raw mut program) };
        result
    }
}

/// Leaves out comments and what a header declares in every module without using it.
fn tidy(ptx: &str) -> String {
    let is_kept = |line: &&str| {
        !line.trim_start().starts_with("//") && !line.contains("2nv6target") && !line.is_empty()
    };
    let mut text: String = ptx
        .lines()
        .map(str::trim_end)
        .filter(is_kept)
        .map(|line| line.to_owned() + "\n")
        .collect();
    text.insert_str(0, "// Made by NVRTC from the source of the same name.\n");
    text
}

fn run() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [library, include, architecture, suffix] = arguments.as_slice() else {
        return Err("expected: LIBNVRTC INCLUDE ARCHITECTURE SUFFIX".into());
    };
    // SAFETY: loading NVRTC runs its constructors, which touch no state of ours.
    let library = unsafe { Library::new(library) }?;
    let compiler = Compiler { library };
    let options = [
        CString::new(format!("--gpu-architecture={architecture}"))?,
        CString::new(format!("--include-path={include}"))?,
        CString::new("--std=c++17")?,
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels");
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "cu") {
            continue;
        }
        let source = std::fs::read_to_string(&path)?;
        let ptx = compiler
            .compile(&source, &options)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        std::fs::write(path.with_extension(format!("{suffix}.ptx")), tidy(&ptx))?;
    }
    Ok(())
}

#[expect(clippy::print_stderr, reason = "a tool for people")]
fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
