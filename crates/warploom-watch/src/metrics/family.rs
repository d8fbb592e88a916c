//! Families of samples, as they are written.

use std::fmt::Write as _;

/// A text of families. Samples of one family stay together, as the format demands.
#[derive(Debug, Default)]
pub(super) struct Families {
    text: String,
}

/// What kind of number it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// It goes up and down.
    Gauge,
    /// It only grows.
    Counter,
}

/// Labels of one sample: names and values.
pub(super) type Labels<'l> = Vec<(&'static str, &'l str)>;

impl Families {
    /// Adds a family; one without samples is left out.
    pub(super) fn add<'l>(
        &mut self,
        name: &str,
        kind: Kind,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'l>, f64)>,
    ) {
        let mut samples = samples
            .into_iter()
            .filter(|(_, value)| value.is_finite())
            .peekable();
        if samples.peek().is_none() {
            return;
        }
        let kind = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
        };
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in samples {
            self.text.push_str(name);
            for (at, (label, text)) in labels.iter().enumerate() {
                let opening = if at == 0 { '{' } else { ',' };
                let _ = write!(self.text, "{opening}{label}=\"{}\"", escaped(text));
            }
            if !labels.is_empty() {
                self.text.push('}');
            }
            let _ = writeln!(self.text, " {value}");
        }
    }

    pub(super) fn text(self) -> String {
        self.text
    }
}

/// A label's value: backslashes, quotes and ends of lines are written with a backslash.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
