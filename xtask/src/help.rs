//! What `--help` says.

use crate::flags::Topic;

/// The text for `--help`.
pub(crate) fn text(topic: Topic) -> String {
    match topic {
        Topic::All => include_str!("help/all.txt").to_owned(),
        Topic::Setup => include_str!("help/setup.txt").to_owned(),
        Topic::Detect => include_str!("help/detect.txt").to_owned(),
        Topic::Bench => include_str!("help/bench.txt").to_owned(),
        Topic::Demo => include_str!("help/demo.txt").to_owned(),
        Topic::CudaCheck => include_str!("help/cuda-check.txt").to_owned(),
        Topic::Emu => include_str!("help/emu.txt").to_owned(),
        Topic::Oracle => include_str!("help/oracle.txt").to_owned(),
        Topic::Arm => include_str!("help/arm.txt").to_owned(),
        Topic::Tidy => include_str!("help/tidy.txt").to_owned(),
        Topic::Test => {
            let mut text = include_str!("help/test.txt").to_owned();
            for (name, about) in crate::test::stage_table() {
                text.push_str(&format!("  {name:<15} {about}\n"));
            }
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::COMMANDS;

    #[test]
    fn every_command_has_help_that_names_it() {
        for (name, topic) in COMMANDS {
            assert!(text(*topic).contains(&format!("cargo xtask {name}")));
            assert!(text(Topic::All).contains(name));
        }
    }
}
