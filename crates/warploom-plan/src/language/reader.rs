//! Tables of a file, read field by field; what is wrong is noted and reading goes on.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};
use warploom_core::DType;
use warploom_kernels::op::GivenValue;

use super::field::Field;
use crate::diagnostic::{Diagnostic, Place, Problem};
use crate::pipeline::{At, DTypePolicy};
use warploom_core::nearest;

/// A value with its place.
pub(super) type Node<'i> = Spanned<DeValue<'i>>;

pub(super) fn place<T>(of: &Spanned<T>) -> Place {
    let span = of.span();
    Place {
        start: span.start,
        end: span.end,
    }
}

/// A key as a name.
pub(super) fn key(of: &Spanned<DeString<'_>>) -> At<String> {
    At::new(of.get_ref().clone().into_owned(), place(of))
}

/// The findings so far.
#[derive(Debug, Default)]
pub(super) struct Findings(pub(super) Vec<Diagnostic>);

impl Findings {
    pub(super) fn add(&mut self, finding: Diagnostic) {
        self.0.push(finding);
    }

    /// Notes that a field takes something else.
    pub(super) fn wrong_type(&mut self, field: &str, wants: &str, got: &Node<'_>) {
        let finding = Diagnostic::error(
            Problem::WrongType,
            format!("`{field}` takes {wants}, not {}", kind_of(got.get_ref())),
        );
        let help = match wants {
            "a text" => format!("write `{field} = \"...\"`"),
            "true or false" => format!("write `{field} = true` or leave it out"),
            "a table" => {
                format!("write `[{field}]` and its fields below, or `{field} = {{ ... }}`")
            }
            "a list" => format!("write `[[{field}]]` before each of them, or `{field} = [...]`"),
            _ => format!("write {wants}"),
        };
        self.add(finding.at(Some(place(got))).help(help));
    }

    pub(super) fn text(&mut self, field: &str, node: &Node<'_>) -> Option<At<String>> {
        match node.get_ref() {
            DeValue::String(text) => Some(At::new(text.clone().into_owned(), place(node))),
            // A channel is often a number, and means its text.
            DeValue::Integer(number) => Some(At::new(number.to_string(), place(node))),
            _ => {
                self.wrong_type(field, "a text", node);
                None
            }
        }
    }

    pub(super) fn flag(&mut self, field: &str, node: &Node<'_>) -> Option<bool> {
        let flag = node.get_ref().as_bool();
        if flag.is_none() {
            self.wrong_type(field, "true or false", node);
        }
        flag
    }

    pub(super) fn word<T>(
        &mut self,
        field: &str,
        words: &[&str],
        node: &Node<'_>,
        meaning: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(field, node)?;
        let found = meaning(&text.value);
        if found.is_none() {
            let mut finding = Diagnostic::error(
                Problem::UnknownWord,
                format!("`{field}` is `{}`; it takes {}", text.value, list(words)),
            );
            finding = match nearest(&text.value, words.iter().copied()) {
                Some(near) => finding.help(format!("did you mean `{near}`?")),
                None => finding.help(format!("write one of them, or leave `{field}` out")),
            };
            self.add(finding.at(text.place));
        }
        found
    }

    pub(super) fn dtype(&mut self, node: &Node<'_>) -> Option<DTypePolicy> {
        const WORDS: &[&str] = &[
            "operation",
            "input",
            "u8",
            "u16",
            "i16",
            "i32",
            "u32",
            "f32",
            "f64",
        ];
        self.word("dtype", WORDS, node, |word| match word {
            "operation" => Some(DTypePolicy::Operation),
            "input" => Some(DTypePolicy::Input),
            _ => {
                let dtype: DType = word.parse().ok()?;
                WORDS.contains(&word).then_some(DTypePolicy::Fixed(dtype))
            }
        })
    }

    pub(super) fn table<'a, 'i>(
        &mut self,
        field: &str,
        node: &'a Node<'i>,
    ) -> Option<&'a DeTable<'i>> {
        let table = node.get_ref().as_table();
        if table.is_none() {
            self.wrong_type(field, "a table", node);
        }
        table
    }

    pub(super) fn array<'a, 'i>(&mut self, field: &str, node: &'a Node<'i>) -> &'a [Node<'i>] {
        if let Some(array) = node.get_ref().as_array() {
            array
        } else {
            self.wrong_type(field, "a list", node);
            &[]
        }
    }

    /// A value for a parameter.
    pub(super) fn given(&mut self, name: &str, node: &Node<'_>) -> Option<GivenValue> {
        match node.get_ref() {
            DeValue::String(text) => Some(GivenValue::Text(text.clone().into_owned())),
            DeValue::Boolean(flag) => Some(GivenValue::Flag(*flag)),
            DeValue::Integer(number) => {
                let value = i64::from_str_radix(number.as_str(), number.radix());
                if value.is_err() {
                    self.wrong_type(name, "a whole number below 2^63", node);
                }
                value.ok().map(GivenValue::Integer)
            }
            DeValue::Float(number) => {
                if let Ok(value) = number.as_str().parse() {
                    Some(GivenValue::Number(value))
                } else {
                    self.wrong_type(name, "a number", node);
                    None
                }
            }
            DeValue::Array(items) => {
                let items = items.iter().map(|item| self.given(name, item));
                items.collect::<Option<_>>().map(GivenValue::List)
            }
            DeValue::Datetime(_) | DeValue::Table(_) => {
                self.wrong_type(name, "a number, a text, true or false, or a list", node);
                None
            }
        }
    }

    /// Refuses keys that are no fields; says which are lacking.
    pub(super) fn known(&mut self, of: &str, table: &DeTable<'_>, fields: &[Field]) {
        for name in table.keys() {
            if fields
                .iter()
                .any(|field| field.name == name.get_ref().as_ref())
            {
                continue;
            }
            self.unknown(of, &key(name), fields.iter().map(|field| field.name));
        }
    }

    pub(super) fn unknown<'f>(
        &mut self,
        of: &str,
        name: &At<String>,
        fields: impl Iterator<Item = &'f str> + Clone,
    ) {
        let message = format!("{of} has no field `{name}`");
        let finding = Diagnostic::error(Problem::UnknownField, message).at(name.place);
        let finding = match nearest(&name.value, fields.clone()) {
            Some(near) => finding.help(format!("did you mean `{near}`?")),
            None => finding.help(format!(
                "its fields: {}",
                fields.collect::<Vec<_>>().join(", ")
            )),
        };
        self.add(finding);
    }

    pub(super) fn missing(&mut self, of: &str, field: &str, doc: &str, at: Place) {
        let message = format!("{of} has no `{field}`");
        let finding = Diagnostic::error(Problem::MissingField, message).at(Some(at));
        self.add(finding.help(format!("add `{field}`: {doc}")));
    }
}

fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// `a, b or c`.
pub(super) fn list(words: &[&str]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [one] => format!("`{one}`"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(|word| format!("`{word}`")).collect();
            format!("{} or `{last}`", first.join(", "))
        }
    }
}
