//! The suite's kernels: one definition per language, and the one place that vouches for them.

use std::sync::Arc;

use warploom_core::{
    Arg, DeviceInfo, Grid, HostCall, Kernel, KernelCode, KernelSource, Language, Param, Queue,
    Result,
};

use crate::case::{Stop, Verdict};

/// A kernel in every language the suite speaks.
///
/// The last parameter of each is the number of elements of its shortest slice. No program indexes
/// a slice at or past it, and only [`Loaded::args`] provides it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) params: &'static [Param],
    /// Items of a work group. The host functions count groups of this size too.
    pub(crate) group: [u32; 3],
    /// Bytes of an element of its slices.
    pub(crate) element: u64,
    pub(crate) opencl: &'static str,
    pub(crate) cuda: &'static str,
    /// Missing where the language cannot say it.
    pub(crate) wgsl: Option<&'static str>,
    pub(crate) host: fn(&mut HostCall<'_>),
}

impl Program {
    /// The program in `language`, if it exists there.
    pub(crate) fn source(&self, language: Language) -> Option<KernelSource<'static>> {
        match language {
            Language::OpenClC => Some(self.vouched(KernelCode::OpenClC(self.opencl))),
            Language::CudaC => Some(self.vouched(KernelCode::CudaC(self.cuda))),
            Language::Wgsl => {
                let code = self.wgsl?;
                Some(KernelSource::wgsl(self.name, code, self.params, self.group))
            }
            Language::Host => Some(KernelSource::host(self.name, self.params, self.host)),
            _ => None,
        }
    }

    /// The program in the language this device likes best.
    pub(crate) fn pick(&self, info: &DeviceInfo) -> Verdict<KernelSource<'static>> {
        let sources: Vec<_> = info
            .languages
            .iter()
            .filter_map(|language| self.source(*language))
            .collect();
        info.pick(&sources).cloned().ok_or_else(|| {
            let takes: Vec<String> = info.languages.iter().map(ToString::to_string).collect();
            let (name, takes) = (self.name, takes.join(", "));
            Stop::skip(format!("the suite has no `{name}` in {takes}"))
        })
    }

    #[expect(
        unsafe_code,
        reason = "C-like kernels enter only on someone's word, and these are ours"
    )]
    fn vouched(&self, code: KernelCode<'static>) -> KernelSource<'static> {
        // SAFETY: The code is one of the constant texts in `programs/`, with its own parameters.
        // Each guards every access with its last argument, a `Count`, which no slice of a launch
        // falls short of; so it touches only the slices it is given. It writes only those its
        // `params` declare written. Every loop counts up to a 32-bit argument or a constant; so it
        // ends.
        unsafe { KernelSource::vouch(self.name, code, self.params, self.group) }
    }
}

/// The text of one of the suite's kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct KernelText {
    /// Its name, which is that of its entry point.
    pub name: &'static str,
    /// The code, as a device gets it.
    pub code: &'static str,
}

/// Every kernel the suite has a device run, in `language`, for those who look at kernels without a
/// device: compilers, linters, tables of register counts. Texts that are wrong on purpose are left
/// out, and so are kernels that `language` cannot express; host code and PTX are in no text.
pub fn kernel_texts(language: Language) -> Vec<KernelText> {
    let text = |program: &&'static Program| {
        let code = match language {
            Language::OpenClC => program.opencl,
            Language::CudaC => program.cuda,
            Language::Wgsl => program.wgsl?,
            _ => return None,
        };
        let name = program.name;
        Some(KernelText { name, code })
    };
    crate::programs::ALL.iter().filter_map(text).collect()
}

/// A program compiled for a device.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) program: &'static Program,
    pub(crate) kernel: Arc<dyn Kernel>,
}

impl Loaded {
    /// `args` and the number of elements of the shortest slice among them.
    pub(crate) fn args(&self, args: &[Arg]) -> Vec<Arg> {
        let lengths = args.iter().filter_map(|arg| match arg {
            Arg::Slice(slice) => Some(slice.len() / self.program.element),
            _ => None,
        });
        let count = u32::try_from(lengths.min().unwrap_or(0)).unwrap_or(u32::MAX);
        let mut args = args.to_vec();
        args.push(Arg::U32(count));
        args
    }

    /// The grid that covers `items`.
    pub(crate) fn grid(&self, items: [u64; 3]) -> Grid {
        Grid::cover(items, self.program.group)
    }

    /// Launches over `items`; the element count is added to `args`.
    pub(crate) fn launch(
        &self,
        queue: &mut dyn Queue,
        items: [u64; 3],
        args: &[Arg],
    ) -> Result<()> {
        queue.launch(&self.kernel, self.grid(items), &self.args(args))
    }

    /// Launches over a line of `items`.
    pub(crate) fn line(&self, queue: &mut dyn Queue, items: u64, args: &[Arg]) -> Result<()> {
        self.launch(queue, [items, 1, 1], args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_has_its_entry_point() {
        for (language, mark) in [
            (Language::CudaC, "KERNEL void "),
            (Language::OpenClC, "KERNEL void "),
            (Language::Wgsl, "fn "),
        ] {
            let texts = kernel_texts(language);
            assert!(texts.len() >= 9, "{language}: {}", texts.len());
            for KernelText { name, code } in texts {
                let entry = format!("{mark}{name}(");
                assert!(code.contains(&entry), "{language}: {name}");
            }
        }
        assert_eq!(kernel_texts(Language::Host), []);
    }

    #[test]
    fn no_two_texts_share_a_name() {
        let mut names: Vec<&str> = kernel_texts(Language::CudaC)
            .iter()
            .map(|text| text.name)
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
