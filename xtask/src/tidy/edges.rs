//! Who may depend on whom, among the crates of this workspace.

use super::Finding;
use super::sources::Sources;
use crate::project::Package;

/// What one package may depend on.
#[derive(Debug)]
struct Allowed {
    package: &'static str,
    /// In the crate itself.
    normal: &'static [&'static str],
    /// In its tests, besides.
    dev: &'static [&'static str],
}

const CORE: &str = "warploom-core";
const KIT: &str = "warploom-testkit";

/// Everything a backend may use of ours: it must be possible to write one elsewhere.
const BACKEND: Allowed = Allowed {
    package: "a backend",
    normal: &[CORE],
    dev: &[KIT],
};

/// The arrows of the architecture. `backends/*` are added to the facade's by folder.
const TABLE: &[Allowed] = &[
    Allowed {
        package: "xtask",
        normal: &[],
        dev: &[],
    },
    Allowed {
        package: CORE,
        normal: &[],
        dev: &[],
    },
    Allowed {
        package: KIT,
        normal: &[CORE],
        dev: &[],
    },
    Allowed {
        package: "warploom-flow",
        normal: &[CORE],
        dev: &[],
    },
    Allowed {
        package: "warploom-native",
        normal: &[],
        dev: &[],
    },
    Allowed {
        package: "warploom-engine",
        normal: &[CORE, "warploom-flow", "warploom-native"],
        dev: &[],
    },
    Allowed {
        package: "warploom-kernels",
        normal: &[CORE, "warploom-flow", "warploom-engine"],
        // Its tests compare every kernel on every backend.
        dev: &[
            KIT,
            "warploom-cpu",
            "warploom-cuda",
            "warploom-opencl",
            "warploom-wgpu",
        ],
    },
    Allowed {
        package: "warploom-plan",
        normal: &[CORE, "warploom-kernels"],
        dev: &[KIT],
    },
    Allowed {
        package: "warploom-sched",
        normal: &[CORE, "warploom-plan"],
        dev: &[KIT],
    },
    Allowed {
        package: "warploom-io",
        normal: &[CORE],
        dev: &[KIT],
    },
    Allowed {
        package: "warploom-run",
        normal: &[
            CORE,
            "warploom-kernels",
            "warploom-plan",
            "warploom-sched",
            "warploom-io",
            "warploom-watch",
            "warploom-fleet",
        ],
        dev: &[KIT, "warploom-cpu"],
    },
    Allowed {
        package: "warploom-stream",
        normal: &[CORE, "warploom-kernels", "warploom-sched", "warploom-io"],
        dev: &[KIT],
    },
    Allowed {
        package: "warploom-watch",
        normal: &[CORE],
        dev: &[KIT],
    },
    Allowed {
        package: "warploom-fleet",
        normal: &[
            CORE,
            "warploom-plan",
            "warploom-sched",
            "warploom-io",
            "warploom-run",
        ],
        dev: &[KIT],
    },
    Allowed {
        package: "warploom",
        normal: &[
            CORE,
            "warploom-kernels",
            "warploom-plan",
            "warploom-run",
            "warploom-sched",
            "warploom-stream",
            "warploom-io",
            "warploom-fleet",
            "warploom-watch",
        ],
        dev: &[KIT],
    },
    Allowed {
        package: "warploom-cli",
        normal: &["warploom"],
        dev: &[KIT],
    },
    Allowed {
        package: "warploom-examples",
        normal: &["warploom"],
        dev: &[],
    },
    Allowed {
        package: "warploom-tests",
        normal: &["warploom", "warploom-cli", KIT],
        dev: &["custom-backend"],
    },
    Allowed {
        package: "custom-backend",
        ..BACKEND
    },
    Allowed {
        package: "warploom-cuda-emu",
        normal: &[],
        dev: &[],
    },
];

pub(super) fn check(sources: &Sources) -> Vec<Finding> {
    let ours: Vec<&Package> = sources.packages.iter().collect();
    let mut findings = Vec::new();
    for package in &ours {
        let manifest = format!("{}/Cargo.toml", package.dir);
        let Some(allowed) = allowed(package) else {
            let what = format!("package `{}` is not in the table of edges", package.name);
            let help = "say what it may depend on, in xtask/src/tidy/edges.rs";
            findings.push(Finding::new(manifest, what, help));
            continue;
        };
        for dependency in &package.dependencies {
            let Some(on) = ours.iter().find(|other| other.name == dependency.name) else {
                continue;
            };
            let name = on.name.as_str();
            let by_folder = package.name == "warploom" && is_backend(on);
            let in_tests = dependency.dev && allowed.dev.contains(&name);
            if allowed.normal.contains(&name) || by_folder || in_tests {
                continue;
            }
            let sort = if dependency.dev { "tests of " } else { "" };
            let what = format!("{sort}`{}` may not depend on `{name}`", package.name);
            findings.push(Finding::new(manifest.clone(), what, help(allowed)));
        }
    }
    findings
}

fn allowed(package: &Package) -> Option<&'static Allowed> {
    if is_backend(package) {
        return Some(&BACKEND);
    }
    TABLE.iter().find(|allowed| allowed.package == package.name)
}

fn is_backend(package: &Package) -> bool {
    package.dir.starts_with("backends/")
}

fn help(allowed: &Allowed) -> String {
    let list = |names: &[&str]| match names {
        [] => "nothing of ours".to_owned(),
        names => names.join(", "),
    };
    let normal = list(allowed.normal);
    match allowed.dev {
        [] => format!("{} may use: {normal}", allowed.package),
        dev => format!(
            "{} may use: {normal}; its tests also: {}",
            allowed.package,
            list(dev)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::Dependency;

    fn package(name: &str, dir: &str, normal: &[&str], dev: &[&str]) -> Package {
        let list = |names: &[&str], dev| {
            let names = names.iter().map(|name| Dependency {
                name: (*name).to_owned(),
                dev,
            });
            names.collect::<Vec<_>>()
        };
        Package {
            name: name.into(),
            dir: dir.into(),
            dependencies: [list(normal, false), list(dev, true)].concat(),
            ..Package::default()
        }
    }

    fn found(packages: Vec<Package>) -> Vec<String> {
        let sources = Sources {
            packages,
            files: Vec::new(),
        };
        check(&sources)
            .into_iter()
            .map(|finding| finding.what)
            .collect()
    }

    fn workspace() -> Vec<Package> {
        vec![
            package(CORE, "crates/warploom-core", &["serde"], &["rstest"]),
            package(KIT, "crates/warploom-testkit", &[CORE], &[]),
            package("warploom-cuda", "backends/cuda", &[CORE, "cudarc"], &[KIT]),
            package("warploom", "crates/warploom", &[CORE, "warploom-cuda"], &[]),
            package("warploom-cli", "crates/warploom-cli", &["warploom"], &[]),
        ]
    }

    #[test]
    fn the_arrows_as_drawn_are_fine() {
        assert_eq!(found(workspace()), Vec::<String>::new());
    }

    #[test]
    fn a_backend_uses_the_core_alone() {
        let mut packages = workspace();
        packages.push(package(
            "warploom-wgpu",
            "backends/wgpu",
            &[CORE, "warploom-cuda", KIT],
            &[],
        ));
        assert_eq!(
            found(packages),
            [
                "`warploom-wgpu` may not depend on `warploom-cuda`",
                "`warploom-wgpu` may not depend on `warploom-testkit`",
            ]
        );
    }

    #[test]
    fn only_the_facade_names_backends() {
        let mut packages = workspace();
        packages[4] = package(
            "warploom-cli",
            "crates/warploom-cli",
            &["warploom-cuda"],
            &[],
        );
        packages[0] = package(CORE, "crates/warploom-core", &[], &[KIT]);
        assert_eq!(
            found(packages),
            [
                "tests of `warploom-core` may not depend on `warploom-testkit`",
                "`warploom-cli` may not depend on `warploom-cuda`",
            ]
        );
    }

    #[test]
    fn a_new_package_has_to_be_placed() {
        let packages = vec![package("warploom-new", "crates/warploom-new", &[], &[])];
        assert_eq!(
            found(packages),
            ["package `warploom-new` is not in the table of edges"]
        );
    }
}
