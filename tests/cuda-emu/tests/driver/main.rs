//! The driver half, called as programs call it.
//!
//! A process has one emulated machine, made of its environment. So every scene plays in a process of
//! its own: this one, started again with the scene's variables.

#![expect(
    clippy::wildcard_imports,
    reason = "the rig is what all scenes are made of"
)]
#![expect(
    clippy::unwrap_used,
    reason = "all of this is tests, which the lint does not see without `#[test]`"
)]

mod bindings;
mod client;
mod context;
mod copy;
mod device;
mod event;
mod failure;
mod kernels;
mod launch;
mod memory;
mod module;
mod pool;
mod race;
mod rig;
mod start;
mod stream;

use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};

/// Asks for one scene instead of the tests.
const SCENE: &str = "--scene";

/// Something that happens on one machine.
#[derive(Debug, Clone, Copy)]
struct Scene {
    name: &'static str,
    variables: &'static [(&'static str, &'static str)],
    play: fn(),
    /// What must be said on standard error.
    says: &'static [&'static str],
    /// Whether the dynamic library is to be found in the place of NVIDIA's.
    library: bool,
}

impl Scene {
    const fn new(name: &'static str, play: fn()) -> Self {
        Self {
            name,
            variables: &[],
            play,
            says: &[],
            library: false,
        }
    }

    /// With variables set.
    const fn with(mut self, variables: &'static [(&'static str, &'static str)]) -> Self {
        self.variables = variables;
        self
    }

    const fn with_library(mut self) -> Self {
        self.library = true;
        self
    }

    const fn says(mut self, words: &'static [&'static str]) -> Self {
        self.says = words;
        self
    }
}

fn scenes() -> Vec<Scene> {
    let lists = [
        context::SCENES,
        copy::SCENES,
        client::SCENES,
        device::SCENES,
        event::SCENES,
        failure::SCENES,
        launch::SCENES,
        memory::SCENES,
        module::SCENES,
        pool::SCENES,
        race::SCENES,
        start::SCENES,
        stream::SCENES,
    ];
    lists.concat()
}

/// Plays a scene in another process: what it said, and whether it went well.
fn play(scene: &Scene, more: &[(&str, String)]) -> Result<(bool, String), Failed> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([SCENE, scene.name]);
    for name in rig::VARIABLES {
        command.env_remove(name);
    }
    command.envs(scene.variables.iter().copied());
    if scene.library {
        command.env("LD_LIBRARY_PATH", client::library_folder()?);
    }
    command.envs(more.iter().map(|(name, value)| (name, value)));
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((output.status.success(), said))
}

fn run(scene: &Scene) -> Result<(), Failed> {
    let (well, said) = play(scene, &[])?;
    if !well {
        return Err(said.into());
    }
    for words in scene.says {
        if !said.contains(words) {
            return Err(format!("`{words}` was not said, but:\n{said}").into());
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(SCENE) {
        let name = arguments.next();
        let found = scenes()
            .into_iter()
            .find(|scene| Some(scene.name) == name.as_deref());
        let scene = found.expect("a scene of this name");
        (scene.play)();
        return ExitCode::SUCCESS;
    }
    let shown = scenes()
        .into_iter()
        .filter(|scene| !race::is_extra(scene.name));
    let mut trials: Vec<Trial> = shown
        .map(|scene| Trial::test(scene.name, move || run(&scene)))
        .collect();
    trials.extend(race::trials());
    trials.extend(bindings::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
