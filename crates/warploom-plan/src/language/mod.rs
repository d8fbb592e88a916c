//! Pipeline files: TOML in, a [`Pipeline`] with places out.

pub mod field;
mod reader;
mod schema;
mod step;

use toml::de::DeTable;

pub use schema::schema;

use crate::diagnostic::{Diagnostic, Place, Problem, shortened};
use crate::pipeline::{Constant, Foreach, Input, Math, Output, Pipeline, Policy};
use field::{INPUT, OUTPUT, PIPELINE, STRICT};
use reader::{Findings, Node, key, place};

/// The longest file that is read, in bytes.
pub const MAX_BYTES: usize = 4 << 20;

/// Reads a pipeline file.
///
/// # Errors
/// Everything that is wrong with it as a text, at once.
pub fn read(text: &str) -> Result<Pipeline, Vec<Diagnostic>> {
    if text.len() > MAX_BYTES {
        let message = format!(
            "the file has {} bytes; a pipeline has at most {MAX_BYTES}",
            text.len()
        );
        let finding = Diagnostic::error(Problem::TooLarge, message);
        let help = "make several pipelines of it, each reading what the one before it wrote";
        return Err(vec![finding.help(help)]);
    }
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        // What follows a slip of syntax is mostly its consequence.
        return Err(errors.iter().take(8).map(syntax).collect());
    }
    let mut findings = Findings::default();
    let pipeline = pipeline(&mut findings, root.get_ref(), text.len());
    if findings.0.is_empty() {
        Ok(pipeline)
    } else {
        findings.0.sort_by_key(|finding| finding.place);
        Err(shortened(findings.0))
    }
}

fn syntax(error: &toml::de::Error) -> Diagnostic {
    let at = error.span().map(|span| Place {
        start: span.start,
        end: span.end,
    });
    let message = error.message().replace('\n', ", ");
    let finding = Diagnostic::error(Problem::Syntax, format!("this is no TOML: {message}"));
    let help = "look for a quote or a bracket that is missing, here or in the lines above";
    finding.at(at).help(help)
}

fn pipeline(findings: &mut Findings, root: &DeTable<'_>, end: usize) -> Pipeline {
    findings.known("a pipeline", root, PIPELINE);
    let mut pipeline = Pipeline::new("pipeline");
    for (name, node) in root {
        let field = name.get_ref().as_ref();
        match field {
            "name" => {
                if let Some(text) = findings.text(field, node) {
                    pipeline.name = text;
                }
            }
            "foreach" => {
                let word = findings.word(field, Foreach::WORDS, node, Foreach::from_word);
                pipeline.foreach = word.unwrap_or_default();
            }
            "strict" => {
                let word = |word: &str| STRICT.contains(&word).then_some(true);
                pipeline.no_host_copy = findings.word(field, STRICT, node, word).is_some();
            }
            "spread_steps" => {
                pipeline.spread_steps = findings.flag(field, node).unwrap_or_default();
            }
            "math" => {
                let word = findings.word(field, Math::WORDS, node, Math::from_word);
                pipeline.math = word.unwrap_or_default();
            }
            "dtype" => pipeline.dtype = findings.dtype(node).unwrap_or_default(),
            "placement" => {
                pipeline.placement = findings.word(field, Policy::WORDS, node, Policy::from_word);
            }
            "inputs" => pipeline.inputs = inputs(findings, node),
            "constants" => pipeline.constants = constants(findings, node),
            "step" => {
                let steps = findings.array(field, node).iter();
                pipeline.steps = steps
                    .enumerate()
                    .filter_map(|(at, step)| step::read(findings, at, step))
                    .collect();
            }
            "output" => {
                let outputs = findings.array(field, node).iter();
                pipeline.outputs = outputs
                    .filter_map(|output| self::output(findings, output))
                    .collect();
            }
            _ => step::whereabouts(findings, &mut pipeline.whereabouts, field, node),
        }
    }
    if !root.contains_key("step") {
        let at = Place { start: 0, end };
        findings.missing(
            "this pipeline",
            "[[step]]",
            "what to do with the images",
            at,
        );
    }
    pipeline
}

fn inputs(findings: &mut Findings, node: &Node<'_>) -> Vec<Input> {
    let Some(table) = findings.table("inputs", node) else {
        return Vec::new();
    };
    let mut inputs = Vec::new();
    for (name, node) in table {
        let Some(fields) = findings.table(name.get_ref(), node) else {
            continue;
        };
        findings.known("an input", fields, INPUT);
        let channel = fields.get("channel");
        inputs.push(Input {
            name: key(name),
            channel: channel.and_then(|node| findings.text("channel", node)),
        });
    }
    inputs
}

fn constants(findings: &mut Findings, node: &Node<'_>) -> Vec<Constant> {
    let Some(table) = findings.table("constants", node) else {
        return Vec::new();
    };
    let mut constants = Vec::new();
    for (name, node) in table {
        if let Some(path) = findings.text(name.get_ref(), node) {
            constants.push(Constant {
                name: key(name),
                path,
            });
        }
    }
    constants
}

fn output(findings: &mut Findings, node: &Node<'_>) -> Option<Output> {
    let table = findings.table("output", node)?;
    findings.known("an output", table, OUTPUT);
    let mut text = |field: &field::Field| {
        if let Some(value) = table.get(field.name) {
            findings.text(field.name, value)
        } else {
            findings.missing("this output", field.name, field.doc, place(node));
            None
        }
    };
    let (of, write) = (text(&OUTPUT[0]), text(&OUTPUT[1]));
    Some(Output {
        of: of?,
        write: write?,
    })
}
