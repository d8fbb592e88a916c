//! Critical errors of cards, as NVIDIA's management library tells them; found at run time.
//!
//! A loader of our own: a handful of calls, results that are plain numbers, and no other version of the crates that
//! load and tell errors.

use std::ffi::{CString, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::fmt;
use std::ptr;
use std::sync::OnceLock;
use std::time::Duration;

use libloading::Library;

/// The names under which the library is looked for.
const NAMES: &[&str] = if cfg!(windows) {
    &["nvml.dll"]
} else {
    &["libnvidia-ml.so.1", "libnvidia-ml.so"]
};

/// Results that mean something here.
mod code {
    use std::ffi::c_int;

    pub(super) const SUCCESS: c_int = 0;
    pub(super) const TIMEOUT: c_int = 10;
    pub(super) const GPU_IS_LOST: c_int = 15;
}

/// Critical errors, of all events.
const CRITICAL: c_ulonglong = 8;

/// What the driver calls a card that has fallen off the bus.
const OFF_THE_BUS: u64 = 79;

/// One event, as the library lays it out.
#[repr(C)]
#[derive(Clone, Copy)]
struct EventData {
    device: *mut c_void,
    sort: c_ulonglong,
    data: c_ulonglong,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

/// The entry points that are used.
#[derive(Clone, Copy)]
struct Nvml {
    init: unsafe extern "C" fn() -> c_int,
    by_pci: unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int,
    create: unsafe extern "C" fn(*mut *mut c_void) -> c_int,
    register: unsafe extern "C" fn(*mut c_void, c_ulonglong, *mut c_void) -> c_int,
    wait: unsafe extern "C" fn(*mut c_void, *mut EventData, c_uint) -> c_int,
    free: unsafe extern "C" fn(*mut c_void) -> c_int,
}

impl Nvml {
    /// The library of this process, if there is one. It stays loaded.
    fn load() -> Option<&'static Self> {
        static NVML: OnceLock<Option<(Library, Nvml)>> = OnceLock::new();
        let loaded = NVML.get_or_init(|| {
            let library = NAMES.iter().find_map(|name| {
                // SAFETY: opening the library runs its constructors, which touch no state of ours.
                unsafe { Library::new(*name) }.ok()
            })?;
            let nvml = Self::resolve(&library)?;
            Some((library, nvml))
        });
        loaded.as_ref().map(|(_, nvml)| nvml)
    }

    fn resolve(library: &Library) -> Option<Self> {
        Some(Self {
            init: symbol(library, "nvmlInit_v2")?,
            by_pci: symbol(library, "nvmlDeviceGetHandleByPciBusId_v2")?,
            create: symbol(library, "nvmlEventSetCreate")?,
            register: symbol(library, "nvmlDeviceRegisterEvents")?,
            wait: symbol(library, "nvmlEventSetWait_v2")?,
            free: symbol(library, "nvmlEventSetFree")?,
        })
    }
}

/// The symbol as a function pointer of type `F`, if the library has it.
fn symbol<F: Copy>(library: &Library, name: &str) -> Option<F> {
    // SAFETY: `F` is a function pointer type (all callers are in `resolve`), as large as an address; its signature is
    // the one that the library documents for this name.
    let found = unsafe { library.get::<F>(name) };
    found.ok().map(|symbol| *symbol)
}

/// Critical errors of one card, by the numbers that its driver gives them (Xids).
///
/// Every call may hang with a card that does: whoever must not makes them on a thread of its own.
pub struct Xids {
    nvml: Nvml,
    set: *mut c_void,
    is_lost: bool,
}

// SAFETY: the library may be called from any thread, and nobody else has this set of events.
unsafe impl Send for Xids {}

impl Xids {
    /// Those of the card at a PCI address (`0000:41:00.0`). None where there is no such library, or it does not know
    /// the card or its errors.
    pub fn of(pci: &str) -> Option<Self> {
        Self::with(*Nvml::load()?, pci)
    }

    fn with(nvml: Nvml, pci: &str) -> Option<Self> {
        let pci = CString::new(pci).ok()?;
        // SAFETY: no condition; further calls are counted.
        ok(unsafe { (nvml.init)() })?;
        let mut card = ptr::null_mut();
        // SAFETY: a text that ends in NUL, and a place for the handle.
        ok(unsafe { (nvml.by_pci)(pci.as_ptr(), &raw mut card) })?;
        let mut set = ptr::null_mut();
        // SAFETY: a place for the handle.
        ok(unsafe { (nvml.create)(&raw mut set) })?;
        // From here on the set is freed, whatever happens.
        let own = Self {
            nvml,
            set,
            is_lost: false,
        };
        // SAFETY: both handles were given out above.
        ok(unsafe { (nvml.register)(card, CRITICAL, set) })?;
        Some(own)
    }

    /// The next error within this time. A card that is lost to the library is told as 79, which is what its driver
    /// calls one that has fallen off the bus, and nothing is heard of it after that.
    ///
    /// # Errors
    /// When the library fails otherwise, or the card is lost.
    pub fn wait(&mut self, within: Duration) -> Result<Option<u64>, XidError> {
        if self.is_lost {
            return Err(XidError(code::GPU_IS_LOST));
        }
        let mut event = EventData {
            device: ptr::null_mut(),
            sort: 0,
            data: 0,
            gpu_instance: 0,
            compute_instance: 0,
        };
        let millis = c_uint::try_from(within.as_millis()).unwrap_or(c_uint::MAX);
        // SAFETY: the set lives as long as this does, and there is a place for the event.
        let result = unsafe { (self.nvml.wait)(self.set, &raw mut event, millis) };
        match result {
            code::SUCCESS => Ok((event.sort & CRITICAL != 0).then_some(event.data)),
            code::TIMEOUT => Ok(None),
            code::GPU_IS_LOST => {
                self.is_lost = true;
                Ok(Some(OFF_THE_BUS))
            }
            other => Err(XidError(other)),
        }
    }
}

fn ok(result: c_int) -> Option<()> {
    (result == code::SUCCESS).then_some(())
}

impl Drop for Xids {
    fn drop(&mut self) {
        // SAFETY: it was created by this library and is used by nobody after this.
        unsafe { (self.nvml.free)(self.set) };
    }
}

impl fmt::Debug for Xids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Xids").finish_non_exhaustive()
    }
}

/// The management library failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("NVML has failed with {0} while it waited for events")]
pub struct XidError(c_int);

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

    use super::*;

    static FREED: AtomicU32 = AtomicU32::new(0);
    static WAITS: AtomicI32 = AtomicI32::new(0);

    extern "C" fn init() -> c_int {
        code::SUCCESS
    }

    unsafe extern "C" fn by_pci(pci: *const c_char, card: *mut *mut c_void) -> c_int {
        // SAFETY: the caller passes a text that ends in NUL.
        let pci = unsafe { CStr::from_ptr(pci) };
        if pci.to_bytes() != b"0000:41:00.0" {
            return 6;
        }
        // SAFETY: the caller passes a place for it.
        unsafe { card.write(ptr::without_provenance_mut(0x41)) };
        code::SUCCESS
    }

    unsafe extern "C" fn create(set: *mut *mut c_void) -> c_int {
        // SAFETY: the caller passes a place for it.
        unsafe { set.write(ptr::without_provenance_mut(0x5e)) };
        code::SUCCESS
    }

    extern "C" fn register(card: *mut c_void, sorts: c_ulonglong, set: *mut c_void) -> c_int {
        assert_eq!((card.addr(), sorts, set.addr()), (0x41, CRITICAL, 0x5e));
        code::SUCCESS
    }

    extern "C" fn refuses(_: *mut c_void, _: c_ulonglong, _: *mut c_void) -> c_int {
        3
    }

    /// An error, an event of another sort, nothing, a lost card.
    unsafe extern "C" fn wait(_: *mut c_void, event: *mut EventData, millis: c_uint) -> c_int {
        assert_eq!(millis, 250);
        let (sort, result) = match WAITS.fetch_add(1, Ordering::SeqCst) {
            0 => (CRITICAL, code::SUCCESS),
            1 => (1, code::SUCCESS),
            2 => (0, code::TIMEOUT),
            _ => (0, code::GPU_IS_LOST),
        };
        let told = EventData {
            device: ptr::null_mut(),
            sort,
            data: 31,
            gpu_instance: 0,
            compute_instance: 0,
        };
        // SAFETY: the caller passes a place for it.
        unsafe { event.write(told) };
        result
    }

    extern "C" fn free(set: *mut c_void) -> c_int {
        assert_eq!(set.addr(), 0x5e);
        FREED.fetch_add(1, Ordering::SeqCst);
        code::SUCCESS
    }

    #[test]
    fn errors_are_heard_by_their_number() {
        let nvml = Nvml {
            init,
            by_pci,
            create,
            register,
            wait,
            free,
        };
        assert!(Xids::with(nvml, "0000:42:00.0").is_none());
        let deaf = Nvml {
            register: refuses,
            ..nvml
        };
        assert!(Xids::with(deaf, "0000:41:00.0").is_none());
        assert_eq!(FREED.load(Ordering::SeqCst), 1);
        let mut xids = Xids::with(nvml, "0000:41:00.0").expect("a card");
        let mut next = || xids.wait(Duration::from_millis(250));
        assert_eq!(next(), Ok(Some(31)));
        assert_eq!(next(), Ok(None));
        assert_eq!(next(), Ok(None));
        assert_eq!(next(), Ok(Some(79)));
        assert_eq!(next(), Err(XidError(code::GPU_IS_LOST)));
        drop(xids);
        assert_eq!(FREED.load(Ordering::SeqCst), 2);
    }

    /// Where there is no such library, or no such card, nobody is told of anything.
    #[test]
    fn a_card_that_is_not_there_has_no_errors() {
        assert!(Xids::of("ffff:ff:1f.7").is_none());
    }
}
