//! What was typed and what the environment says, made into what it means. A flag wins over its
//! variable, a variable over the default.

use std::path::PathBuf;
use std::time::Duration;

use warploom::{
    BackendId, Bytes, CapacityPolicy, LeaseScope, MemoryNeed, Options, default_ledger_dir,
};

use crate::args;
use crate::report::Problem;

/// The variables this program listens to.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    pub(crate) cpu_only: bool,
    pub(crate) backends: Option<Vec<String>>,
    pub(crate) log: Option<String>,
    /// Where this user's programs keep what they can find out again.
    pub(crate) cache: Option<PathBuf>,
    /// Where processes agree on leases, if not where all of this machine do.
    leases: Option<PathBuf>,
}

impl Environment {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the place where the environment is read"
    )]
    pub(crate) fn read() -> Result<Self, Problem> {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Problem> {
        let cpu_only = match lookup("WARPLOOM_CPU_ONLY") {
            None => false,
            Some(text) => switch("WARPLOOM_CPU_ONLY", &text)?,
        };
        let leases = lookup("WARPLOOM_LEASES").filter(|text| !text.is_empty());
        let leases = leases.map(PathBuf::from);
        if let Some(path) = leases.as_ref().filter(|path| !path.is_absolute()) {
            return Err(Problem::usage(
                format!(
                    "WARPLOOM_LEASES is `{}`, which is no absolute path",
                    path.display()
                ),
                "write the whole path of a folder: processes that look for it in other places would not \
                 know of each other",
            ));
        }
        let backends = lookup("WARPLOOM_BACKENDS").filter(|text| !text.trim().is_empty());
        Ok(Self {
            cpu_only,
            backends: backends.map(|text| text.split(',').map(|b| b.trim().to_owned()).collect()),
            log: lookup("WARPLOOM_LOG").filter(|text| !text.is_empty()),
            cache: cache(lookup),
            leases,
        })
    }

    /// The directory in which processes agree on leases.
    pub(crate) fn leases(&self) -> PathBuf {
        self.leases.clone().unwrap_or_else(default_ledger_dir)
    }

    fn lease_scope(&self) -> LeaseScope {
        let folder = self.leases.clone();
        folder.map_or(LeaseScope::Machine, LeaseScope::Folder)
    }
}

/// All variables that are texts, for whoever passes them on.
pub(crate) fn everything() -> Vec<(String, String)> {
    let all = std::env::vars_os();
    let texts =
        all.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    texts.collect()
}

/// As the systems' own rules say; a path that is not absolute counts as none.
fn cache(lookup: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let path = |name: &str| {
        let path = lookup(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let below_home = if cfg!(target_os = "macos") {
        "Library/Caches"
    } else {
        ".cache"
    };
    let home = || path("HOME").map(|home| home.join(below_home));
    path("XDG_CACHE_HOME")
        .or_else(|| path("LOCALAPPDATA").filter(|_| cfg!(windows)))
        .or_else(home)
}

fn switch(name: &'static str, text: &str) -> Result<bool, Problem> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "" | "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(Problem::usage(
            format!("{name} is `{text}`, which is neither yes nor no"),
            "write 1 or true to switch it on, 0 or false to switch it off",
        )),
    }
}

/// Registry options for `detect`.
pub(crate) fn options(args: &args::Detect, environment: &Environment) -> Result<Options, Problem> {
    let mut options = Options::default();
    // A list on the command line is the more precise wish.
    options.cpu_only = args.cpu_only || (environment.cpu_only && args.backends.is_none());
    let named = args.backends.as_ref().or(environment.backends.as_ref());
    options.backends = named
        .map(|names| names.iter().map(|name| backend(name)).collect())
        .transpose()?;
    options.capacity = capacity(args)?;
    options.probe_deadline = Duration::from_millis(args.deadline);
    options.leases = environment.lease_scope();
    Ok(options)
}

/// Registry options for verbs that say nothing about backends.
pub(crate) fn backends(environment: &Environment) -> Result<Options, Problem> {
    let mut options = Options::default();
    options.cpu_only = environment.cpu_only;
    options.leases = environment.lease_scope();
    let named = environment.backends.as_ref();
    options.backends = named
        .map(|names| names.iter().map(|name| backend(name)).collect())
        .transpose()?;
    Ok(options)
}

fn backend(name: &str) -> Result<BackendId, Problem> {
    name.trim().parse().map_err(|error| {
        Problem::usage(
            error,
            "write names separated by commas, such as `cpu,opencl`",
        )
    })
}

fn capacity(args: &args::Detect) -> Result<CapacityPolicy, Problem> {
    let mut need = MemoryNeed::default();
    if let Some(text) = &args.footprint {
        if args.capacity == args::CapacityName::Threads {
            return Err(Problem::usage(
                "--footprint has no meaning with --capacity threads",
                "leave one of them out",
            ));
        }
        let bytes: Bytes = text.parse().map_err(|error| {
            Problem::usage(error, "--footprint is the device memory of one pipeline")
        })?;
        need.footprint = bytes.0.max(1);
    }
    Ok(match args.capacity {
        args::CapacityName::Memory => CapacityPolicy::Memory(need),
        args::CapacityName::Threads => CapacityPolicy::Threads,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(name: &'static str, value: &'static str) -> Result<Environment, Problem> {
        Environment::from_lookup(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[rstest::rstest]
    #[case("1", true)]
    #[case("true", true)]
    #[case("TRUE", true)]
    #[case("yes", true)]
    #[case("0", false)]
    #[case("false", false)]
    #[case("", false)]
    fn c29_the_cpu_only_variable_takes_the_usual_words(
        #[case] text: &'static str,
        #[case] on: bool,
    ) {
        assert_eq!(environment("WARPLOOM_CPU_ONLY", text).unwrap().cpu_only, on);
    }

    #[test]
    fn a_switch_that_is_neither_is_refused() {
        let problem = environment("WARPLOOM_CPU_ONLY", "maybe").unwrap_err();
        assert!(problem.to_string().contains("WARPLOOM_CPU_ONLY is `maybe`"));
    }

    #[test]
    fn leases_are_where_everybody_looks_or_where_the_variable_says() {
        let machine = environment("HOME", "/h").unwrap();
        assert_eq!(machine.leases(), default_ledger_dir());
        assert_eq!(machine.lease_scope(), LeaseScope::Machine);
        let path = if cfg!(windows) { "C:\\l" } else { "/l" };
        let own = environment("WARPLOOM_LEASES", path).unwrap();
        assert_eq!(own.leases(), PathBuf::from(path));
        assert_eq!(own.lease_scope(), LeaseScope::Folder(path.into()));
        assert_eq!(backends(&own).unwrap().leases, own.lease_scope());
        let problem = environment("WARPLOOM_LEASES", "here").unwrap_err();
        let told = problem.to_string();
        assert!(told.contains("WARPLOOM_LEASES is `here`, which is no absolute path"));
    }

    #[test]
    fn a_cache_is_where_the_system_says() {
        let read = |name, value| environment(name, value).unwrap().cache;
        if cfg!(unix) {
            assert_eq!(read("XDG_CACHE_HOME", "/c"), Some(PathBuf::from("/c")));
            assert!(read("HOME", "/h").unwrap().starts_with("/h"));
        }
        assert_eq!(read("XDG_CACHE_HOME", "here"), None);
        assert_eq!(read("WARPLOOM_LOG", "info"), None);
    }

    #[test]
    fn backends_are_split_and_trimmed() {
        let read = environment("WARPLOOM_BACKENDS", "cpu, opencl").unwrap();
        assert_eq!(read.backends, Some(vec!["cpu".into(), "opencl".into()]));
        assert_eq!(
            environment("WARPLOOM_BACKENDS", " ").unwrap().backends,
            None
        );
    }
}
