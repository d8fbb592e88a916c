//! Steps of a file.

use toml::de::{DeTable, DeValue};

use super::field::{BRANCH_AXES, Field, ITEM, STEP, WORK};
use super::reader::{Findings, Node, key, place};
use crate::diagnostic::{Diagnostic, Problem};
use crate::pipeline::{Argument, At, OpUse, Step, Whereabouts, Work};

/// Reads one step, the `at`-th.
pub(super) fn read(findings: &mut Findings, at: usize, node: &Node<'_>) -> Option<Step> {
    let table = findings.table("step", node)?;
    let present: Vec<&str> = WORK
        .iter()
        .copied()
        .filter(|kind| table.contains_key(*kind))
        .collect();
    let label = match table
        .get("name")
        .or(table.get("op"))
        .map(toml::Spanned::get_ref)
    {
        Some(DeValue::String(name)) => format!("step `{name}`"),
        _ => format!("step {}", at + 1),
    };
    match present.as_slice() {
        [] => {
            let doc = "an operation of the catalogue (`warploom ops` lists them), or `chain`, or `branch`";
            findings.missing(&label, "op", doc, place(node));
            return None;
        }
        [_] => {}
        several => {
            let message = format!("{label} has {} at once", several.join(" and "));
            let finding = Diagnostic::error(Problem::Ambiguous, message).at(Some(place(node)));
            findings.add(finding.help("make them two steps"));
            return None;
        }
    }
    let work = match present[0] {
        "op" => Work::Chain(vec![one(findings, table, STEP)?]),
        "chain" => Work::Chain(chain(findings, "chain", &table["chain"])?),
        _ => branch(findings, &label, &table["branch"])?,
    };
    let named = table.get("name");
    let name = match named.and_then(|node| findings.text("name", node)) {
        Some(name) => name,
        None => At::from(match &work {
            Work::Chain(ops) if ops.len() == 1 => ops[0].op.value.clone(),
            _ => format!("step{}", at + 1),
        }),
    };
    let mut step = Step {
        name,
        inputs: Vec::new(),
        work,
        whereabouts: Whereabouts::default(),
        dtype: None,
    };
    let has_op = table.contains_key("op");
    for (name, node) in table {
        let field = name.get_ref().as_ref();
        match field {
            "name" | "op" | "chain" | "branch" => {}
            "input" => step.inputs = names(findings, &label, node),
            "dtype" => step.dtype = findings.dtype(node),
            "backend" | "memory" | "device" => {
                whereabouts(findings, &mut step.whereabouts, field, node);
            }
            // The operation's own, read with it.
            _ if has_op => {}
            "params" => {
                let message = format!("{label} has several operations, and `params` are of one");
                let finding = Diagnostic::error(Problem::UnknownField, message);
                let help =
                    "write them where the operation is: `{ op = \"...\", params = { ... } }`";
                findings.add(finding.at(key(name).place).help(help));
            }
            _ => {
                let fields = STEP.iter().map(|field| field.name);
                let fields = fields.filter(|field| *field != "params");
                findings.unknown(&label, &key(name), fields);
            }
        }
    }
    Some(step)
}

/// Reads a field that says where work runs, if it is one.
pub(super) fn whereabouts(
    findings: &mut Findings,
    whereabouts: &mut Whereabouts,
    field: &str,
    node: &Node<'_>,
) {
    let slot = match field {
        "backend" => &mut whereabouts.backend,
        "memory" => &mut whereabouts.memory,
        "device" => &mut whereabouts.device,
        _ => return,
    };
    *slot = findings.text(field, node);
}

fn names(findings: &mut Findings, label: &str, node: &Node<'_>) -> Vec<At<String>> {
    match node.get_ref() {
        DeValue::Array(items) if items.is_empty() => {
            let message = format!("{label} has an empty `input`");
            let finding = Diagnostic::error(Problem::MissingField, message);
            let help = "name what it reads, or leave `input` out for the step before it";
            findings.add(finding.at(Some(place(node))).help(help));
            Vec::new()
        }
        DeValue::Array(items) => {
            let items = items.iter();
            items
                .filter_map(|item| findings.text("input", item))
                .collect()
        }
        _ => findings.text("input", node).into_iter().collect(),
    }
}

/// The operation of a step or of an item of a chain, with its parameters: what is no field of it.
fn one(findings: &mut Findings, table: &DeTable<'_>, fields: &[Field]) -> Option<OpUse> {
    let mut used = OpUse::new(findings.text("op", &table["op"])?);
    for (name, node) in table {
        let field = name.get_ref().as_ref();
        let is_field = fields.iter().any(|known| known.name == field);
        if field == "params" {
            let params = findings.table(field, node);
            for (name, node) in params.into_iter().flatten() {
                argument(findings, &mut used, key(name), node);
            }
        } else if !is_field {
            argument(findings, &mut used, key(name), node);
        }
    }
    Some(used)
}

fn argument(findings: &mut Findings, used: &mut OpUse, name: At<String>, node: &Node<'_>) {
    let value = match node.get_ref() {
        DeValue::Table(table) => computed(findings, &name.value, table, node),
        _ => findings.given(&name.value, node).map(Argument::Given),
    };
    if let Some(value) = value {
        used.arguments.push((name, At::new(value, place(node))));
    }
}

/// `{ from = "limits", item = 1 }`.
fn computed(
    findings: &mut Findings,
    name: &str,
    table: &DeTable<'_>,
    node: &Node<'_>,
) -> Option<Argument> {
    const FIELDS: [&str; 2] = ["from", "item"];
    for name in table.keys() {
        if !FIELDS.contains(&name.get_ref().as_ref()) {
            findings.unknown("a computed parameter", &key(name), FIELDS.into_iter());
        }
    }
    let [from, item] = FIELDS.map(|field| {
        if let Some(value) = table.get(field) {
            findings.text(field, value)
        } else {
            let of = format!("the computed parameter `{name}`");
            let doc = "the step that computes it, and which of its numbers";
            findings.missing(&of, field, doc, place(node));
            None
        }
    });
    Some(Argument::Computed {
        from: from?,
        item: item?,
    })
}

/// An operation of a chain. What only steps have, such as `input`, is refused and no parameter.
fn item_of_chain(findings: &mut Findings, table: &DeTable<'_>) -> Option<OpUse> {
    let has = |fields: &[Field], name: &str| fields.iter().any(|known| known.name == name);
    for name in table.keys() {
        let field = name.get_ref().as_ref();
        if has(STEP, field) && !has(ITEM, field) {
            let fields = ITEM.iter().map(|field| field.name);
            findings.unknown("an operation of a chain", &key(name), fields);
        }
    }
    let mut used = one(findings, table, STEP)?;
    for (name, node) in table {
        whereabouts(
            findings,
            &mut used.whereabouts,
            name.get_ref().as_ref(),
            node,
        );
    }
    Some(used)
}

/// A list of operations: tables with `op`, or bare names.
fn chain(findings: &mut Findings, field: &str, node: &Node<'_>) -> Option<Vec<OpUse>> {
    let items = node.get_ref().as_array();
    if items.is_none() {
        findings.wrong_type(field, "a list of operations", node);
    }
    let mut ops = Vec::new();
    for item in items? {
        match item.get_ref() {
            DeValue::String(name) => {
                ops.push(OpUse::new(At::new(name.clone().into_owned(), place(item))));
            }
            DeValue::Table(table) if table.contains_key("op") => {
                ops.extend(item_of_chain(findings, table));
            }
            DeValue::Table(_) => {
                let doc = "an operation of the catalogue";
                findings.missing("this item of the chain", "op", doc, place(item));
            }
            _ => findings.wrong_type(field, "names of operations or tables with `op`", item),
        }
    }
    Some(ops)
}

fn branch(findings: &mut Findings, label: &str, node: &Node<'_>) -> Option<Work> {
    let table = findings.table("branch", node)?;
    let Some(by) = table.get("by") else {
        let doc = "the axis whose values have chains of their own, `channel`";
        findings.missing(&format!("the branch of {label}"), "by", doc, place(node));
        return None;
    };
    let axis = |word: &str| BRANCH_AXES.contains(&word).then(|| word.to_owned());
    let word = findings.word("branch.by", BRANCH_AXES, by, axis)?;
    let mut chains = Vec::new();
    for (name, node) in table {
        if name.get_ref() != "by" {
            chains.push((key(name), chain(findings, name.get_ref(), node)?));
        }
    }
    Some(Work::Branch {
        by: At::new(word, place(by)),
        chains,
    })
}
