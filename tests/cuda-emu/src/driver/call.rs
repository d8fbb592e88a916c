//! What every call does before and after its own work.

use std::ffi::c_int;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::context::Context;
use super::current;
use super::device::Device;
use super::ffi::{CUdevice, Handle};
use super::health::Trouble;
use super::journal;
use super::machine::{self, Machine};
use super::status::{Result, Status};
use super::stream::Stream;
use crate::plan::{Failure, Log};

/// Which stream a null handle stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DefaultStream {
    Legacy,
    PerThread,
}

/// One call in progress.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    default: DefaultStream,
}

/// `CU_STREAM_LEGACY`.
const LEGACY: Handle = Handle(1);

/// `CU_STREAM_PER_THREAD`.
const PER_THREAD: Handle = Handle(2);

impl Call {
    /// Makes a call: fails it if it is planned to fail, answers a panic with an error, and writes it
    /// down if that is wanted.
    pub(crate) fn make(
        name: &'static str,
        default: DefaultStream,
        work: impl FnOnce(Self) -> Result,
    ) -> c_int {
        let call = Self { name, default };
        let made = AssertUnwindSafe(|| match planned_failure(name) {
            Some(status) => Err(status),
            None => work(call),
        });
        let status = match catch_unwind(made) {
            Ok(Ok(())) => Status::SUCCESS,
            Ok(Err(status)) => status,
            Err(_) => {
                journal::shout(format_args!(
                    "{name}: the emulator itself failed, see above"
                ));
                Status::UNKNOWN
            }
        };
        journal::tell(Log::Calls, format_args!("{name}: {status}"));
        status.code()
    }

    /// The machine, if this thread may use it now.
    pub(crate) fn machine(self) -> Result<&'static Machine> {
        let machine = Machine::get()?;
        if current::in_callback() {
            let text = format_args!("host functions must not call the driver");
            return Err(self.refuse(Status::NOT_PERMITTED, text));
        }
        Ok(machine)
    }

    /// A device, dead or alive.
    pub(crate) fn device(self, device: CUdevice) -> Result<&'static Arc<Device>> {
        let machine = self.machine()?;
        let device = usize::try_from(device).ok();
        device
            .and_then(|device| machine.devices.get(device))
            .ok_or(Status::INVALID_DEVICE)
    }

    /// The current context, even if a fault has ended its use.
    pub(crate) fn current(self) -> Result<Arc<Context>> {
        self.machine()?;
        let context = current::context().ok_or(Status::INVALID_CONTEXT)?;
        context.check_open()?;
        Ok(context)
    }

    /// The current context, ready for work.
    pub(crate) fn context(self) -> Result<Arc<Context>> {
        let context = self.current()?;
        context.check()?;
        Ok(context)
    }

    /// A stream, ready for work.
    pub(crate) fn stream(self, stream: Handle) -> Result<Arc<Stream>> {
        let stream = self.any_stream(stream)?;
        stream.context().check()?;
        Ok(stream)
    }

    /// A stream, even if its context is at fault.
    pub(crate) fn any_stream(self, stream: Handle) -> Result<Arc<Stream>> {
        let context = self.current()?;
        match (stream, self.default) {
            (LEGACY, _) | (Handle::NULL, DefaultStream::Legacy) => Ok(context.legacy()),
            (PER_THREAD, _) | (Handle::NULL, DefaultStream::PerThread) => {
                current::thread_stream(&context)
            }
            _ => self.machine()?.streams.get(stream),
        }
    }

    /// Says why something is refused.
    pub(crate) fn refuse(self, status: Status, why: fmt::Arguments<'_>) -> Status {
        journal::tell(Log::Faults, format_args!("{}: {status}: {why}", self.name));
        status
    }

    /// The same for reasons made elsewhere.
    pub(crate) fn refused(self, (status, why): (Status, String)) -> Status {
        self.refuse(status, format_args!("{why}"))
    }
}

/// A rule of the plan and how often its call was made.
#[derive(Debug)]
struct Armed {
    rule: &'static Failure,
    calls: AtomicU64,
}

/// The error the plan has for this call, if any.
fn planned_failure(name: &str) -> Option<Status> {
    static RULES: OnceLock<Vec<Armed>> = OnceLock::new();
    let rules = RULES.get_or_init(|| {
        let rules = machine::plan().map_or(&[][..], |plan| &plan.failures);
        let arm = |rule| Armed {
            rule,
            calls: AtomicU64::new(0),
        };
        rules.iter().map(arm).collect()
    });
    let mut planned = None;
    for armed in rules
        .iter()
        .filter(|armed| is_called(&armed.rule.function, name))
    {
        let call = armed.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let rule = armed.rule;
        if call == rule.nth || rule.onwards && call > rule.nth {
            planned.get_or_insert((rule.status, call));
        }
    }
    let (status, call) = planned?;
    journal::tell(
        Log::Faults,
        format_args!("{name}: {status}: call {call}, as planned"),
    );
    if status.is_sticky()
        && let Some(context) = current::context()
    {
        context.fail(&Trouble {
            status,
            text: format!("{name}, call {call}, as planned"),
        });
    }
    Some(status)
}

/// Whether `asked`, with or without suffixes, means the function `name`.
pub(crate) fn is_called(asked: &str, name: &str) -> bool {
    let rest = name.strip_prefix(asked);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("_v") || rest.starts_with("_pt"))
}

/// A function that is exported, by its name.
#[derive(Debug, Clone, Copy)]
pub struct Symbol {
    /// As the linker knows it.
    pub name: &'static str,
    /// Where it is.
    pub address: *const (),
}

// SAFETY: the address is that of a function, which every thread may know.
unsafe impl Sync for Symbol {}

// SAFETY: as above.
unsafe impl Send for Symbol {}

/// Defines driver calls: the C function, for some a twin that means the default stream of the thread
/// by a null handle, and their entries in the table of symbols.
macro_rules! calls {
    ($(
        $(#[$meta:meta])*
        fn $name:ident $args:tt $(also $twin:ident)? |$call:pat_param| $body:block
    )*) => {
        $(
            $crate::driver::call::call! {
                $(#[$meta])*
                Legacy $name $args |$call| $body
            }
            $($crate::driver::call::call! {
                /// The same, where a null stream is the default stream of the calling thread.
                PerThread $twin $args |$call| $body
            })?
        )*

        /// The functions of this file.
        pub(crate) static SYMBOLS: &[$crate::driver::call::Symbol] = &[
            $(
                $crate::driver::call::Symbol {
                    name: stringify!($name),
                    address: $name as *const (),
                },
                $($crate::driver::call::Symbol {
                    name: stringify!($twin),
                    address: $twin as *const (),
                },)?
            )*
        ];
    };
}

/// Defines one function.
macro_rules! call {
    (
        $(#[$meta:meta])*
        $default:ident $name:ident ($($arg:ident: $type:ty),* $(,)?) |$call:pat_param| $body:block
    ) => {
        $(#[$meta])*
        ///
        /// # Safety
        /// Every pointer is null or points to what the CUDA driver manual asks for.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> std::ffi::c_int {
            $crate::driver::call::Call::make(
                stringify!($name),
                $crate::driver::call::DefaultStream::$default,
                |$call| $body,
            )
        }
    };
}

pub(crate) use call;
pub(crate) use calls;

#[cfg(test)]
mod tests {
    use super::is_called;

    #[test]
    fn a_name_means_all_its_versions() {
        assert!(is_called("cuMemAlloc", "cuMemAlloc_v2"));
        assert!(is_called("cuMemAlloc_v2", "cuMemAlloc_v2"));
        assert!(is_called("cuLaunchKernel", "cuLaunchKernel_ptsz"));
        assert!(is_called("cuMemcpyHtoD", "cuMemcpyHtoD_v2_ptds"));
        assert!(!is_called("cuMemAlloc", "cuMemAllocHost_v2"));
        assert!(!is_called("cuLaunchKernel", "cuLaunchKernelEx"));
        assert!(!is_called("cuMemAlloc_v2", "cuMemAlloc"));
    }
}
