//! What queues are told in 24 configurations: a gate for whoever changes how plans are made or run.

mod graphs;
mod world;

use std::fmt::Write as _;

use graphs::{ENCODER, Encoder};
use rstest::rstest;
use warploom_sched::{Command, How, Options, Plan, RunOptions, plan};
use world::{Script, device, paced, run_on};

/// One line for each command, queue by queue: what is told to different queues at the same time is
/// in no order.
fn text(plan: &Plan, log: &[Command]) -> String {
    let graph = plan.graph();
    let name = |stage: usize| &*graph.stages()[stage].name;
    let mut text = String::new();
    let queues = (0..plan.queues().len()).map(Some);
    for queue in std::iter::once(None).chain(queues) {
        let title = queue.map_or("host", |at| &plan.queues()[at].name);
        let _ = writeln!(text, "{title}:");
        let mut own: Vec<&Command> = log.iter().filter(|c| c.queue == queue).collect();
        if queue.is_none() {
            // Stages of the host have a thread each.
            own.sort_by_key(|command| command.stage);
        }
        for command in own {
            let _ = write!(
                text,
                "  {}({}) of {}",
                name(command.stage.index()),
                command.generation,
                command.records
            );
            for (resource, how, slot) in &command.slots {
                let verb = match how {
                    How::Read | How::Look => "reads",
                    How::Write => "writes",
                    How::Update => "updates",
                    _ => "reads the last of",
                };
                let resource = &graph.resources()[resource.index()].name;
                let _ = write!(text, ", {verb} {resource}[{slot}]");
            }
            for (stage, generation) in &command.waits {
                let _ = write!(text, ", after {}({generation})", name(stage.index()));
            }
            text.push('\n');
        }
    }
    text
}

#[rstest]
fn queues_are_told_what_they_always_were(
    #[values(1, 2, 3)] depth: u32,
    #[values(false, true)] codec: bool,
    #[values(false, true)] pyramid: bool,
    #[values(false, true)] is_partial: bool,
) {
    let encoder = Encoder {
        codec,
        pyramid,
        ..ENCODER
    };
    let plan = plan(&encoder.graph(), &Options::default().with_depth(depth)).unwrap();
    let records = if is_partial { 18 } else { 20 };
    let options = RunOptions::of(records, 4).with_log();
    let sim = paced(device(), &plan, 1).finish();
    let ran = run_on(sim, &plan, &Script::default(), options);
    let stages = plan.graph().stages().len();
    assert_eq!(ran.result.unwrap().log.len(), 5 * stages);
    let name = format!(
        "depth_{depth}{}{}{}",
        if codec { "_codec" } else { "" },
        if pyramid { "_pyramid" } else { "" },
        if is_partial { "_partial" } else { "" },
    );
    insta::assert_snapshot!(name, text(&plan, &ran.summary.log));
}
