//! Random programs, compiled and interpreted: both must leave the same registers and memory.

mod interpreter;
mod program;
mod rules;
mod text;

use std::time::Duration;

use warploom_cuda_emu::engine::{Launch, Module, Options, Rules, launch};

use self::interpreter::Machine;
use self::program::{Program, STATE_BYTES};
use crate::rig::{Memory, Noise};

/// Programs in one module: what a module costs is shared.
const BATCH: u64 = 20;
/// Inputs for each program.
const INPUTS: u64 = 4;

/// All registers, then the scratch memory of each space.
fn input(seed: u64) -> Vec<u8> {
    let mut noise = Noise::new(seed ^ 0xf00d);
    let mut bytes = Vec::new();
    while bytes.len() < STATE_BYTES {
        // Small numbers, signs and plain noise meet more corners than noise alone.
        let word = match noise.below(6) {
            0 => noise.below(4),
            1 => noise.below(64).wrapping_neg(),
            2 => u64::from((noise.below(2000) as f32 - 1000.0).to_bits()) << 32,
            3 => (noise.below(2000) as f64 / 16.0).to_bits(),
            4 => 1 << noise.below(64),
            _ => noise.next(),
        };
        bytes.extend(word.to_le_bytes());
    }
    bytes
}

/// Compiles and runs programs `first..first + BATCH`, and compares.
fn check_batch(first: u64) {
    let programs: Vec<Program> = (first..first + BATCH).map(Program::random).collect();
    let text = text::module(&programs);
    let options = Options {
        quick: first / BATCH % 4 == 3,
        baseline: first / BATCH % 3 == 2,
    };
    let module = match Module::load(&text, &options) {
        Ok(module) => module,
        Err(error) => panic!("{error}\n{text}"),
    };
    let memory = Memory::new();
    let to = memory.zeros::<u8>(STATE_BYTES);
    for (seed, program) in (first..).zip(&programs) {
        let kernel = module.kernel(&program.name).expect("it was just compiled");
        for number in 0..INPUTS {
            let before = input(seed * INPUTS + number);
            let mut params = to.to_le_bytes().to_vec();
            params.resize(32, 0);
            params.extend(&before);
            let ran = launch(&Launch {
                kernel: &kernel,
                grid: [1; 3],
                block: [1; 3],
                dynamic_shared: 0,
                params: &params,
                globals: &[],
                memory: &memory,
                print: &|_| {},
                cancel: None,
                rules: Rules {
                    time: Some(Duration::from_secs(20)),
                    ..Rules::default()
                },
            });
            if let Err(fault) = ran {
                panic!("seed {seed}: {fault}\n{}", text::kernel(program));
            }
            let after: Vec<u8> = memory.read(to, STATE_BYTES);
            let mut machine = Machine::new(&before);
            machine.run(&program.body);
            if let Some(difference) = machine.difference(&after) {
                let text = text::kernel(program);
                panic!("seed {seed}, input {number}: {difference}\n{text}");
            }
        }
    }
}

fn check(batches: std::ops::Range<u64>) {
    for batch in batches {
        check_batch(batch * BATCH);
    }
}

// Several tests, so that they share the cores.

#[test]
fn programs_of_the_first_quarter() {
    check(0..40);
}

#[test]
fn programs_of_the_second_quarter() {
    check(40..80);
}

#[test]
fn programs_of_the_third_quarter() {
    check(80..120);
}

#[test]
fn programs_of_the_fourth_quarter() {
    check(120..160);
}
