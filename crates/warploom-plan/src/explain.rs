//! A plan in words and as a picture.

use std::fmt::Write as _;

use warploom_core::Bytes;

use crate::plan::{CopyReason, ExecutionPlan, InPlace, Lodging, PlanStep, Pool, Role};

impl ExecutionPlan {
    /// A few lines: where it runs, what it needs, what it should take.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        let device = &self.device;
        let _ = writeln!(
            text,
            "{}: on {} ({}) through {}",
            self.pipeline,
            device.name,
            device.label,
            device.faces.join(", ")
        );
        for other in &self.others {
            let _ = writeln!(
                text,
                "  and on {} through {}",
                other.name,
                other.faces.join(", ")
            );
        }
        for source in &self.sources {
            let _ = write!(
                text,
                "  reads {}: {}, {}",
                source.name,
                source.image,
                Bytes(source.bytes)
            );
            let _ = match (&source.channel, &source.file) {
                (Some(channel), _) => writeln!(text, ", channel {channel}"),
                (_, Some(file)) => writeln!(text, ", from {file}, the same for all records"),
                _ => writeln!(text),
            };
        }
        for variant in &self.variants {
            if let Some(channel) = &variant.channel {
                let _ = writeln!(text, "channel {channel}:");
            }
            for (at, step) in variant.steps.iter().enumerate() {
                let _ = writeln!(text, "{:>4}  {}", at + 1, step_line(step));
                for op in step.ops() {
                    let _ = writeln!(text, "        {}", op_line(op));
                }
            }
            for output in &variant.outputs {
                let file = output.file.as_deref().unwrap_or("(returned)");
                let _ = writeln!(
                    text,
                    "  writes {}: {} to {file}",
                    output.value, output.whole
                );
            }
        }
        for pool in &self.memory.pools {
            let _ = writeln!(text, "  {}", pool_line(pool, self.memory.depth));
        }
        let estimate = &self.estimate;
        let sure = if estimate.measured {
            "measured"
        } else {
            "guessed: the device was not measured"
        };
        let _ = writeln!(
            text,
            "  about {} a record ({} units, {} when copies and work overlap, limited by {}; {sure})",
            seconds(estimate.seconds),
            estimate.units,
            seconds(estimate.paced),
            estimate.limit
        );
        for warning in &self.warnings {
            let _ = writeln!(text, "{warning}");
        }
        text
    }

    /// Every decision and why, and where every byte goes.
    pub fn explanation(&self) -> String {
        let mut text = self.summary();
        let _ = writeln!(text, "\nwhy");
        for reason in &self.reasons {
            let _ = writeln!(text, "  {}: {}", reason.about, reason.why);
        }
        self.kinds(&mut text);
        self.decisions(&mut text);
        for pool in &self.memory.pools {
            let _ = writeln!(
                text,
                "\n{} of {}{}, one record in flight, from step and pass to step and pass",
                pool.memory,
                pool.device,
                for_tiles(pool)
            );
            if let Some(peak) = &pool.fullest {
                let _ = writeln!(
                    text,
                    "  fullest at step {}: {} live in {} ({})",
                    peak.step,
                    Bytes(peak.bytes),
                    Bytes(pool.slot),
                    percent(pool.bound, pool.slot)
                );
            }
            let lists = pool.layout.iter().zip(&pool.live);
            for (variant, (list, live)) in self.variants.iter().zip(lists) {
                if let Some(channel) = &variant.channel {
                    let _ = writeln!(text, "  channel {channel}");
                }
                if !live.is_empty() {
                    let _ = writeln!(text, "  at most, step by step: {}", peaks(live));
                }
                for lodging in list {
                    let _ = writeln!(text, "{}", lodging_line(lodging));
                }
            }
            for lodging in &pool.constants {
                let (value, bytes) = (&lodging.value, Bytes(lodging.bytes).to_string());
                let _ = writeln!(
                    text,
                    "  {:>14}  {bytes:>10}  always          {value}",
                    "shared"
                );
            }
        }
        let _ = writeln!(text, "\nplan {} (version {})", self.hash, self.version);
        text
    }

    /// The kinds of memory each operation reads in and leaves its result in, and who said so.
    fn kinds(&self, text: &mut String) {
        let _ = writeln!(text, "\nmemory of operations");
        for variant in &self.variants {
            let of = channel_of(variant.channel.as_deref());
            for op in variant.steps.iter().flat_map(PlanStep::ops) {
                let mut reads = op.kinds.reads.clone();
                reads.dedup();
                let _ = writeln!(
                    text,
                    "  {}{of}: {} -> {} ({})",
                    op.name,
                    reads.join(", "),
                    op.kinds.gives,
                    op.kinds.by.word()
                );
            }
        }
    }

    /// What fusion decided in each step, and what it costs.
    fn decisions(&self, text: &mut String) {
        for variant in &self.variants {
            for (at, step) in variant.steps.iter().enumerate() {
                let (fused, detours, loaded) = match step {
                    PlanStep::Copy { .. } => continue,
                    PlanStep::Run {
                        fused,
                        detours,
                        loaded,
                        ..
                    }
                    | PlanStep::Tiled {
                        fused,
                        detours,
                        loaded,
                        ..
                    } => (fused, detours, loaded),
                };
                let of = channel_of(variant.channel.as_deref());
                let over = step.in_place();
                if fused.is_empty() && detours.is_empty() && *loaded == 0 && over.is_empty() {
                    continue;
                }
                let _ = writeln!(text, "\nstep {}{of}", at + 1);
                for InPlace { value, over } in over {
                    let _ = writeln!(text, "  works in place: {value} is written over {over}");
                }
                if *loaded > 0 {
                    let _ = writeln!(text, "  keeps {} of weights and tables", Bytes(*loaded));
                }
                for name in detours {
                    let _ = writeln!(
                        text,
                        "  {name} runs on the host, with copies there and back"
                    );
                }
                for note in fused {
                    let _ = writeln!(text, "  {note}");
                }
            }
        }
    }

    /// The plan as a graph for Graphviz.
    pub fn dot(&self) -> String {
        let mut text = String::from("digraph plan {\n  rankdir = LR;\n  node [shape = box];\n");
        for (number, variant) in self.variants.iter().enumerate() {
            let title = variant.channel.as_deref().map_or_else(
                || self.pipeline.clone(),
                |channel| format!("{} (channel {channel})", self.pipeline),
            );
            let _ = writeln!(
                text,
                "  subgraph cluster_{number} {{\n    label = {};",
                quoted(&title)
            );
            for source in &self.sources {
                let _ = writeln!(
                    text,
                    "    {} [shape = ellipse, label = {}];",
                    node(number, &source.name),
                    lines(&[&source.name, &source.image])
                );
            }
            for step in &variant.steps {
                let device = step.device();
                for op in step.ops() {
                    let _ = writeln!(
                        text,
                        "    {} [label = {}];",
                        node(number, &op.name),
                        lines(&[&op.name, &format!("{} on {device}", op.op), &op.gives])
                    );
                    for read in &op.reads {
                        let _ = writeln!(
                            text,
                            "    {} -> {};",
                            node(number, read),
                            node(number, &op.name)
                        );
                    }
                    for computed in &op.computed {
                        let _ = writeln!(
                            text,
                            "    {} -> {} [style = dashed, label = {}];",
                            node(number, &computed.from),
                            node(number, &op.name),
                            quoted(&computed.param)
                        );
                    }
                }
            }
            text.push_str("  }\n");
        }
        text.push_str("}\n");
        text
    }
}

/// Said after what is of one branch only.
fn channel_of(channel: Option<&str>) -> String {
    channel.map_or_else(String::new, |name| format!(" of channel {name}"))
}

fn node(variant: usize, name: &str) -> String {
    quoted(&format!("{variant}/{name}"))
}

fn quoted(text: &str) -> String {
    lines(&[text])
}

/// A text of several lines, as Graphviz reads it: what is in them stands for itself.
fn lines(lines: &[&str]) -> String {
    let escaped = |line: &&str| line.replace('\\', "\\\\").replace('"', "\\\"");
    let lines: Vec<String> = lines.iter().map(escaped).collect();
    format!("\"{}\"", lines.join("\\n"))
}

fn step_line(step: &PlanStep) -> String {
    match step {
        PlanStep::Copy {
            value,
            from,
            to,
            bytes,
            seconds: time,
            why,
            ..
        } => {
            let once = if *why == CopyReason::Constant {
                ", once"
            } else {
                ""
            };
            format!(
                "copy {value}: {from} -> {to}, {}, {}{once}",
                Bytes(*bytes),
                seconds(*time)
            )
        }
        PlanStep::Run {
            device,
            memory,
            ops,
            passes,
            scratch,
            seconds: time,
            ..
        } => format!(
            "run {} in {passes} {} on {device} in {memory}, {} of scratch, {}",
            count(ops.len(), "operation"),
            if *passes == 1 { "pass" } else { "passes" },
            Bytes(*scratch),
            seconds(*time)
        ),
        PlanStep::Tiled {
            device,
            memory,
            ops,
            tiles,
            copied,
            seconds: time,
            ..
        } => {
            let [z, y, x] = tiles.extents;
            format!(
                "run {} on {} tiles of {z}x{y}x{x} on {device} in {memory}, {} copied, {}",
                count(ops.len(), "operation"),
                tiles.count,
                Bytes(*copied),
                seconds(*time)
            )
        }
    }
}

fn op_line(op: &crate::plan::PlanOp) -> String {
    let mut text = format!("{} = {}({}", op.name, op.op, op.reads.join(", "));
    for (name, value) in &op.params {
        let _ = write!(text, ", {name}={value}");
    }
    for computed in &op.computed {
        let _ = write!(
            text,
            ", {}={}[{}]",
            computed.param, computed.from, computed.index
        );
    }
    let _ = write!(text, "): {}", op.gives);
    text
}

fn pool_line(pool: &Pool, depth: u32) -> String {
    let mut text = format!(
        "{} of {}{}: {} = {depth} x {}",
        pool.memory,
        pool.device,
        for_tiles(pool),
        Bytes(pool.total),
        Bytes(pool.slot)
    );
    if pool.shared > 0 {
        let _ = write!(text, " + {} shared", Bytes(pool.shared));
    }
    if pool.loaded > 0 {
        let _ = write!(text, " + {} of weights", Bytes(pool.loaded));
    }
    if let Some(budget) = pool.budget {
        let _ = write!(text, ", of {} that may be used", Bytes(budget));
    }
    text
}

/// Said of memory beside that of whole images.
fn for_tiles(pool: &Pool) -> &'static str {
    if pool.tiles { ", for tiles" } else { "" }
}

/// The most bytes that live at each step; steps in a row with the same number are told together.
fn peaks(live: &[u64]) -> String {
    let mut told: Vec<(usize, usize, u64)> = Vec::new();
    for (at, bytes) in live.iter().enumerate() {
        match told.last_mut() {
            Some((_, last, same)) if same == bytes => *last = at + 1,
            _ => told.push((at + 1, at + 1, *bytes)),
        }
    }
    let one = |(first, last, bytes): &(usize, usize, u64)| {
        if first == last {
            format!("{first}: {}", Bytes(*bytes))
        } else {
            format!("{first}-{last}: {}", Bytes(*bytes))
        }
    };
    told.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// One place in memory: where, how much, from when to when, what.
fn lodging_line(lodging: &Lodging) -> String {
    let moment = |step: u32, pass: u32| format!("{step}.{pass}");
    let what = match lodging.role {
        Role::Value => "",
        Role::Staging => " (staged)",
        Role::Tile => " (tile)",
        Role::Scratch => " (scratch)",
    };
    format!(
        "  {:>14}  {:>10}  {:>5} to {:<5}  {}{what}",
        lodging.offset,
        Bytes(lodging.bytes).to_string(),
        moment(lodging.first, lodging.first_pass),
        moment(lodging.last, lodging.last_pass),
        lodging.value
    )
}

fn count(number: usize, what: &str) -> String {
    if number == 1 {
        format!("1 {what}")
    } else {
        format!("{number} {what}s")
    }
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "nothing".to_owned();
    }
    format!("{:.0} % used", part as f64 / whole as f64 * 100.0)
}

/// A duration with three digits and a unit.
fn seconds(time: f64) -> String {
    match time {
        t if t >= 1.0 => format!("{t:.2} s"),
        t if t >= 1e-3 => format!("{:.2} ms", t * 1e3),
        t => format!("{:.1} us", t * 1e6),
    }
}
