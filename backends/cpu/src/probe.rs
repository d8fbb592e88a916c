//! What the machine is: processor, memory, and how much of it this process may have.
//!
//! On Linux that is in text files; elsewhere they are missing, and what they would tell is unknown.
//! Reading them is one function; understanding them is a few pure ones.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

use warploom_core::memory::HOST;
use warploom_core::{Caps, DeviceId, DeviceInfo, Language, Limits};

use crate::backend::ID;

/// Slices start at multiples of this. No element has a stricter alignment than 8, and 16 is what
/// aligned 128-bit loads need; wider vectors load from any address at the same speed unless they
/// cross a cache line. More would only cost padding between the slices of a slab.
const SLICE_ALIGN: u32 = 16;

/// Host kernels do not look at work groups, so this is not a limit of anything; it is large enough
/// for every group another backend takes.
const GROUP: u32 = 1 << 16;

/// What a work group could share in cache: a core's second level, as it is almost everywhere.
const LOCAL: u32 = 256 << 10;

/// What was read about the machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Machine {
    /// The processor's name.
    pub(crate) processor: Option<String>,
    /// Memory this process may use at most.
    pub(crate) total: Option<u64>,
    /// Memory this process could still get.
    pub(crate) free: Option<u64>,
}

impl Machine {
    /// Reads the machine's files.
    pub(crate) fn now() -> Self {
        let read = |path: &Path| read_to_string(path).ok();
        Self::read(&read)
    }

    fn read(read: &dyn Fn(&Path) -> Option<String>) -> Self {
        let text = |path: &str| read(Path::new(path)).unwrap_or_default();
        let memory = text("/proc/meminfo");
        let mut total = meminfo(&memory, "MemTotal");
        let mut free = meminfo(&memory, "MemAvailable");
        for group in groups(&text("/proc/self/cgroup")) {
            let file = |name: &str| read(&group.folder.join(name));
            let Some(limit) = file(group.files.limit).as_deref().and_then(number) else {
                continue;
            };
            let used = file(group.files.used).as_deref().and_then(number);
            let cache = file("memory.stat").and_then(|text| stat(&text, group.files.cache));
            // Pages of files that nobody uses now count as used, but go when they are in the way.
            let used = used.unwrap_or(0).saturating_sub(cache.unwrap_or(0));
            total = total.map(|total| total.min(limit));
            free = free.map(|free| free.min(limit.saturating_sub(used)));
        }
        Self {
            processor: processor(&text("/proc/cpuinfo")),
            total,
            free,
        }
    }
}

/// The processor as a device with `threads` threads and at most `limit` bytes.
pub(crate) fn device_info(machine: &Machine, threads: usize, limit: Option<u64>) -> DeviceInfo {
    let plural = if threads == 1 { "" } else { "s" };
    let name = machine.processor.clone();
    let name = name.unwrap_or_else(|| format!("{threads} core{plural}"));
    let mut info = DeviceInfo::software(DeviceId::new(ID, 0), name, &[HOST]);
    info.driver = format!(
        "warploom-cpu {}, {threads} thread{plural}",
        env!("CARGO_PKG_VERSION")
    );
    let total = [machine.total, limit].into_iter().flatten().min();
    info.total_memory = total.unwrap_or(0);
    info.free_memory = machine.free.map(|free| free.min(limit.unwrap_or(free)));
    info.languages = vec![Language::Host];
    info.caps = Caps::F64
        | Caps::F16
        | Caps::I64
        | Caps::TIMESTAMPS
        | Caps::COPY_OVERLAP
        | Caps::STRICT_MATH
        | Caps::UNIFIED_MEMORY;
    // Copies have their queues' threads, but kernels share the pool: one thread runs one at a time.
    info.caps.set(Caps::CONCURRENT_QUEUES, threads > 1);
    let max_alloc = total.unwrap_or(u64::MAX);
    info.limits = Limits {
        max_alloc,
        max_binding: max_alloc,
        max_slices: 64,
        max_group_items: GROUP,
        max_group: [GROUP; 3],
        max_groups: [u32::MAX; 3],
        local_memory: LOCAL,
        slice_align: SLICE_ALIGN,
        compute_units: u32::try_from(threads).unwrap_or(u32::MAX),
    };
    info
}

/// The value of `key`, when each line is a key, a separator and a value.
fn value<'a>(text: &'a str, separator: char, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(separator)?;
        let value = value.trim();
        (name.trim() == key && !value.is_empty()).then_some(value)
    })
}

/// What `/proc/meminfo` says of `key`, in bytes.
fn meminfo(text: &str, key: &str) -> Option<u64> {
    let kib = value(text, ':', key)?.strip_suffix("kB")?;
    number(kib)?.checked_mul(1024)
}

/// The processor's name in `/proc/cpuinfo`, whose keys differ between architectures.
fn processor(text: &str) -> Option<String> {
    [
        "model name",
        "cpu model",
        "Model",
        "Hardware",
        "cpu",
        "uarch",
    ]
    .into_iter()
    .find_map(|key| value(text, ':', key))
    .map(|name| name.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A plain number; `max` is none.
fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// What a control group's `memory.stat` says of `key`, in bytes.
fn stat(text: &str, key: &str) -> Option<u64> {
    value(text, ' ', key).and_then(number)
}

/// A control group's folder, and how its files are called.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Group {
    folder: PathBuf,
    files: Files,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Files {
    limit: &'static str,
    used: &'static str,
    cache: &'static str,
}

const VERSION_1: Files = Files {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    cache: "total_inactive_file",
};

const VERSION_2: Files = Files {
    limit: "memory.max",
    used: "memory.current",
    cache: "inactive_file",
};

/// The control groups that `/proc/self/cgroup` names, each with all its parents: a limit counts
/// wherever it is set. Inside a container the innermost folders may not be visible, and the
/// container's own limit is at the root, which is among the parents.
fn groups(text: &str) -> Vec<Group> {
    let mut groups = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let (root, files) = match controllers {
            "" => ("/sys/fs/cgroup", VERSION_2),
            list if list.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", VERSION_1)
            }
            _ => continue,
        };
        for inner in Path::new(path.trim_start_matches('/')).ancestors() {
            let folder = Path::new(root).join(inner);
            groups.push(Group { folder, files });
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use warploom_core::DeviceKind;

    use super::*;

    const MEMINFO: &str =
        "MemTotal:       1000 kB\nMemFree:          10 kB\nMemAvailable:    600 kB\n";

    fn machine(files: &[(&str, &str)]) -> Machine {
        Machine::read(&|path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| (*text).to_owned())
        })
    }

    #[rstest::rstest]
    #[case("model name\t: AMD EPYC\nmodel name\t: other", Some("AMD EPYC"))]
    #[case(
        "model\t\t: 17\nmodel name\t: Intel(R)   Xeon(R) ",
        Some("Intel(R) Xeon(R)")
    )]
    #[case("processor\t: 0\nModel\t\t: Raspberry Pi 4", Some("Raspberry Pi 4"))]
    #[case("processor\t: 0\ncpu\t\t: POWER9", Some("POWER9"))]
    #[case("cpu family\t: 6\n", None)]
    #[case("model name\t:\n", None)]
    #[case("", None)]
    fn processors_have_names(#[case] text: &str, #[case] name: Option<&str>) {
        assert_eq!(processor(text).as_deref(), name);
    }

    #[rstest::rstest]
    #[case(MEMINFO, "MemTotal", Some(1000 * 1024))]
    #[case(MEMINFO, "MemAvailable", Some(600 * 1024))]
    #[case(MEMINFO, "Mem", None)]
    #[case("MemTotal: many kB", "MemTotal", None)]
    #[case("MemTotal: 99999999999999999999 kB", "MemTotal", None)]
    #[case("MemTotal: 18446744073709551615 kB", "MemTotal", None)]
    fn meminfo_is_in_kib(#[case] text: &str, #[case] key: &str, #[case] bytes: Option<u64>) {
        assert_eq!(meminfo(text, key), bytes);
    }

    #[rstest::rstest]
    #[case("max\n", None)]
    #[case("4096\n", Some(4096))]
    #[case("", None)]
    fn limits_are_numbers_or_max(#[case] text: &str, #[case] limit: Option<u64>) {
        assert_eq!(number(text), limit);
    }

    #[test]
    fn every_parent_group_counts() {
        let text = "4:cpu,memory:/a\n3:pids:/x\n0::/b/c:d\nnonsense\n";
        let found: Vec<(String, &str)> = groups(text)
            .into_iter()
            .map(|group| (group.folder.display().to_string(), group.files.limit))
            .collect();
        let expected = [
            ("/sys/fs/cgroup/memory/a", VERSION_1.limit),
            ("/sys/fs/cgroup/memory/", VERSION_1.limit),
            ("/sys/fs/cgroup/b/c:d", VERSION_2.limit),
            ("/sys/fs/cgroup/b", VERSION_2.limit),
            ("/sys/fs/cgroup/", VERSION_2.limit),
        ];
        assert_eq!(found, expected.map(|(at, file)| (at.to_owned(), file)));
    }

    #[test]
    fn a_group_with_less_than_the_machine_is_the_machine() {
        let files = [
            ("/proc/meminfo", MEMINFO),
            ("/proc/self/cgroup", "0::/job\n"),
            ("/sys/fs/cgroup/job/memory.max", "409600\n"),
            ("/sys/fs/cgroup/job/memory.current", "300000\n"),
            (
                "/sys/fs/cgroup/job/memory.stat",
                "anon 1\ninactive_file 100000\n",
            ),
        ];
        let machine = machine(&files);
        assert_eq!(machine.total, Some(409_600));
        assert_eq!(machine.free, Some(209_600));
    }

    #[test]
    fn a_group_with_more_than_the_machine_changes_nothing() {
        let files = [
            ("/proc/meminfo", MEMINFO),
            ("/proc/self/cgroup", "4:memory:/job\n"),
            (
                "/sys/fs/cgroup/memory/job/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            (
                "/sys/fs/cgroup/memory/job/memory.usage_in_bytes",
                "300000\n",
            ),
        ];
        let machine = machine(&files);
        assert_eq!(machine.total, Some(1000 * 1024));
        assert_eq!(machine.free, Some(600 * 1024));
    }

    #[test]
    fn without_files_nothing_is_known_and_the_device_works() {
        let machine = machine(&[]);
        assert_eq!(machine, Machine::default());
        let info = device_info(&machine, 4, None);
        assert_eq!((info.name.as_str(), info.total_memory), ("4 cores", 0));
        assert_eq!((info.free_memory, info.limits.max_alloc), (None, u64::MAX));
    }

    #[test]
    fn the_device_is_the_processor() {
        let processor = Some("AMD EPYC".into());
        let (total, free) = (Some(1000), Some(900));
        let machine = Machine {
            processor,
            total,
            free,
        };
        let info = device_info(&machine, 1, Some(950));
        assert_eq!(info.id.to_string(), "cpu:0");
        assert_eq!((info.kind, info.software), (DeviceKind::Cpu, true));
        assert!(info.driver.ends_with(", 1 thread"), "{}", info.driver);
        assert_eq!((info.total_memory, info.free_memory), (950, Some(900)));
        assert_eq!(info.limits.max_alloc, 950);
        assert_eq!(info.local_kind(), Some(HOST));
        assert_eq!(info.staging_kind(), Some(HOST));
        assert!(!info.caps.contains(Caps::CONCURRENT_QUEUES));
        let two = device_info(&machine, 2, None);
        assert!(
            two.caps
                .contains(Caps::CONCURRENT_QUEUES | Caps::STRICT_MATH)
        );
    }
}
