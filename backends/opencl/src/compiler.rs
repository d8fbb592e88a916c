//! From source to a built program, by the shortest way: memory, disk, compiler.

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use warploom_core::{CodeCache, CodeKey, DeviceError, KernelCode, KernelSource, Math, Result};

use crate::cl;
use crate::device::Opened;
use crate::error::Driven;
use crate::kernel::build_error;
use crate::vocabulary;

/// Compiles for one opened device.
#[derive(Debug)]
pub(crate) struct Compiler {
    fingerprint: String,
    rounds_correctly: bool,
    /// Does the driver read declarations of all of OpenCL C in front of each program?
    reads_header: bool,
    cache: Option<CodeCache>,
    /// Programs some kernel still uses.
    built: Mutex<HashMap<CodeKey, Weak<cl::Program>>>,
}

impl Compiler {
    pub(crate) fn new(
        fingerprint: String,
        rounds_correctly: bool,
        reads_header: bool,
        cache: Option<CodeCache>,
    ) -> Self {
        Self {
            fingerprint,
            rounds_correctly,
            reads_header,
            cache,
            built: Mutex::default(),
        }
    }

    /// The built program of `source`.
    ///
    /// Nothing is locked while compiling: two threads that want the same program at the same time
    /// both build it, which is rare and harmless; two that want different ones do not wait.
    pub(crate) fn program(
        &self,
        opened: &Opened,
        source: &KernelSource<'_>,
    ) -> Result<Arc<cl::Program>> {
        let KernelCode::OpenClC(code) = source.code() else {
            let what = source.language().to_string();
            return Err(DeviceError::unsupported(opened.id, what));
        };
        let (text, options) = (text(code, source.math()), self.options(source.math()));
        let key = CodeKey::new(&[
            self.fingerprint.as_bytes(),
            options.to_bytes(),
            text.as_bytes(),
        ]);
        if let Some(program) = self.built().get(&key).and_then(Weak::upgrade) {
            return Ok(program);
        }
        let program = Arc::new(match self.load(opened, &key, options) {
            Some(program) => program,
            None => self.compile(opened, source, &text, options, &key)?,
        });
        let mut built = self.built();
        built.retain(|_, program| program.strong_count() > 0);
        built.insert(key, Arc::downgrade(&program));
        Ok(program)
    }

    fn options(&self, math: Math) -> &'static CStr {
        match math {
            Math::Strict if self.rounds_correctly => {
                c"-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"
            }
            Math::Strict => c"-cl-std=CL1.2",
            Math::Fast => c"-cl-std=CL1.2 -cl-fast-relaxed-math",
        }
    }

    fn load(&self, opened: &Opened, key: &CodeKey, options: &CStr) -> Option<cl::Program> {
        let binary = self.cache.as_ref()?.load(key)?;
        let build = || -> Driven<cl::Program> {
            let program = cl::Program::from_binary(&opened.context, opened.device, &binary)?;
            program.build(opened.device, options)?;
            Ok(program)
        };
        // A driver may refuse what it wrote itself: an update that kept its version number.
        let refused = |failure: &crate::error::Failure| {
            tracing::debug!(device = %opened.id, call = failure.call, %failure, "binary refused");
        };
        build().inspect_err(refused).ok()
    }

    fn compile(
        &self,
        opened: &Opened,
        source: &KernelSource<'_>,
        text: &str,
        options: &CStr,
        key: &CodeKey,
    ) -> Result<cl::Program> {
        let start = Instant::now();
        if let Some(program) = self.compile_shortly(opened, source, text, options) {
            self.keep(opened, source, &program, key, start);
            return Ok(program);
        }
        let program = cl::Program::from_source(&opened.context, text)
            .map_err(|failure| failure.on(opened.id))?;
        if let Err(failure) = program.build(opened.device, options) {
            let error = failure.on(opened.id);
            if matches!(error, DeviceError::Lost { .. }) {
                return Err(error);
            }
            let log = match program.log(opened.device) {
                log if log.is_empty() => failure.to_string(),
                log => log,
            };
            return Err(build_error(opened.id, source, log));
        }
        self.keep(opened, source, &program, key, start);
        Ok(program)
    }

    /// The program without declarations of all of OpenCL C, where reading them takes longer than the rest;
    /// nothing where it needs others than there are in [`vocabulary`], or has mistakes.
    fn compile_shortly(
        &self,
        opened: &Opened,
        source: &KernelSource<'_>,
        text: &str,
        options: &CStr,
    ) -> Option<cl::Program> {
        if !self.reads_header {
            return None;
        }
        let build = || -> Driven<cl::Program> {
            let text = vocabulary::declared(text);
            let program = cl::Program::from_source(&opened.context, &text)?;
            program.build(opened.device, &vocabulary::options(options))?;
            Ok(program)
        };
        let refused = |failure: &crate::error::Failure| {
            tracing::debug!(
                device = %opened.id, kernel = source.name(), %failure, "the whole header is needed"
            );
        };
        build().inspect_err(refused).ok()
    }

    /// Puts what was compiled on disk, where somebody wants it there.
    fn keep(
        &self,
        opened: &Opened,
        source: &KernelSource<'_>,
        program: &cl::Program,
        key: &CodeKey,
        start: Instant,
    ) {
        tracing::debug!(
            device = %opened.id, kernel = source.name(), took = ?start.elapsed(), "compiled"
        );
        if let Some(cache) = &self.cache {
            match program.binary() {
                Ok(binary) if !binary.is_empty() => cache.store(key, &binary),
                Ok(_) => {}
                Err(failure) => tracing::debug!(%failure, "the driver keeps its binary"),
            }
        }
    }

    fn built(&self) -> MutexGuard<'_, HashMap<CodeKey, Weak<cl::Program>>> {
        self.built.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The text the driver gets. Its lines keep the numbers they have in the source, so that the
/// compiler's messages point at the right place.
fn text(code: &str, math: Math) -> String {
    match math {
        Math::Strict => format!("#pragma OPENCL FP_CONTRACT OFF\n#line 1\n{code}"),
        Math::Fast => code.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case(
        Math::Strict,
        true,
        "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"
    )]
    #[case(Math::Strict, false, "-cl-std=CL1.2")]
    #[case(Math::Fast, true, "-cl-std=CL1.2 -cl-fast-relaxed-math")]
    fn options_follow_the_math_and_the_device(
        #[case] math: Math,
        #[case] rounds_correctly: bool,
        #[case] options: &str,
    ) {
        let compiler = Compiler::new(String::new(), rounds_correctly, false, None);
        assert_eq!(compiler.options(math).to_str(), Ok(options));
    }

    #[test]
    fn strict_code_forbids_contraction_and_keeps_its_lines() {
        let strict = text("first\nsecond", Math::Strict);
        assert!(strict.starts_with("#pragma OPENCL FP_CONTRACT OFF\n"));
        assert!(strict.ends_with("\n#line 1\nfirst\nsecond"));
        assert_eq!(text("first", Math::Fast), "first");
    }
}
