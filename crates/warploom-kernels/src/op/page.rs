//! What people read about operations: the list, one operation's page, and both as data.

use serde::Serialize;
use warploom_core::DType;

use super::catalogue::ops;
use super::info::{
    Backends, Bound, Family, Gives, InputInfo, OpInfo, PIXELS, Ranks, Role, ScalarRule, Tolerance,
};
use super::param::{Fallback, ParamInfo, ParamKind};

/// The list or a page as data. Scripts depend on it, so it has a version of its own.
#[derive(Clone, Debug, Serialize)]
pub struct Pages {
    /// Grows when a field changes its meaning or goes away.
    pub schema: u32,
    /// The operations.
    pub ops: Vec<Page>,
}

/// Everything about one operation.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Page {
    /// What people call it.
    pub name: &'static str,
    /// Where it is listed.
    pub family: Family,
    /// What it is for.
    pub summary: &'static str,
    /// What it computes.
    pub formula: &'static str,
    /// What else one must know.
    pub notes: &'static [&'static str],
    /// The call whose numbers it gives.
    pub reference: &'static str,
    /// Its images.
    pub inputs: Vec<InputPage>,
    /// Its parameters.
    pub params: Vec<ParamPage>,
    /// Planes, stacks or both.
    pub ranks: Ranks,
    /// What it gives, in words.
    pub gives: String,
    /// What becomes of NaN.
    pub nan: &'static str,
    /// Does it take `boundary`?
    pub boundary: bool,
    /// Least traffic, per element type of the image.
    pub traffic: Vec<TrafficPage>,
    /// How far numbers may be off.
    pub tolerance: Tolerance,
    /// Where it runs: `all` or `cpu-only`.
    pub backends: &'static str,
    /// Why only there.
    pub why: Option<&'static str>,
}

/// One input.
#[derive(Clone, Debug, Serialize)]
pub struct InputPage {
    /// Its name.
    pub name: &'static str,
    /// What it is used as.
    pub role: Role,
    /// May it be left out?
    pub optional: bool,
    /// Its element types.
    pub types: &'static [DType],
    /// What it is.
    pub doc: &'static str,
}

/// One parameter.
#[derive(Clone, Debug, Serialize)]
pub struct ParamPage {
    /// Its name.
    pub name: &'static str,
    /// What it takes: `number`, `integer`, `per-axis`, `choice`, `type`, `numbers`, `matrix`,
    /// `flag`.
    pub kind: &'static str,
    /// The same in words, with its limits.
    pub takes: String,
    /// The words a choice is made of.
    pub choices: Option<&'static [&'static str]>,
    /// Must it be given?
    pub required: bool,
    /// What holds when it is not.
    pub default: Option<&'static str>,
    /// What it means.
    pub doc: &'static str,
}

/// Bytes per pixel.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TrafficPage {
    /// For images of this type.
    #[serde(rename = "type")]
    pub dtype: DType,
    /// Read per pixel of the input.
    pub read: u64,
    /// Written per pixel of the result.
    pub written: u64,
}

impl Pages {
    /// Every operation.
    pub fn all() -> Self {
        Self::of(ops())
    }

    /// These.
    pub fn of(ops: impl IntoIterator<Item = &'static OpInfo>) -> Self {
        Self {
            schema: 1,
            ops: ops.into_iter().map(Page::of).collect(),
        }
    }
}

impl Page {
    /// Everything about one operation.
    pub fn of(op: &'static OpInfo) -> Self {
        let (backends, why) = match op.backends {
            Backends::All => ("all", None),
            Backends::CpuOnly { why } => ("cpu-only", Some(why)),
        };
        let traffic = PIXELS.iter().map(|dtype| {
            let (read, written) = op.bytes_per_pixel(*dtype);
            TrafficPage {
                dtype: *dtype,
                read,
                written,
            }
        });
        Self {
            name: op.name,
            family: op.family,
            summary: op.summary,
            formula: op.formula,
            notes: op.notes,
            reference: op.reference,
            inputs: op.inputs.iter().map(InputPage::of).collect(),
            params: op.params().map(ParamPage::of).collect(),
            ranks: op.ranks,
            gives: gives_text(op),
            nan: op.nan,
            boundary: op.param("boundary").is_some(),
            traffic: traffic.collect(),
            tolerance: op.tolerance,
            backends,
            why,
        }
    }
}

impl InputPage {
    fn of(input: &'static InputInfo) -> Self {
        Self {
            name: input.name,
            role: input.role,
            optional: input.optional,
            types: input.takes(),
            doc: input.doc,
        }
    }
}

impl ParamPage {
    fn of(param: &'static ParamInfo) -> Self {
        let (kind, choices) = match param.kind {
            ParamKind::Number(_) => ("number", None),
            ParamKind::Integer(_) => ("integer", None),
            ParamKind::PerAxis(_) => ("per-axis", None),
            ParamKind::Choice(words) => ("choice", Some(words)),
            ParamKind::DType => ("type", None),
            ParamKind::Numbers(..) => ("numbers", None),
            ParamKind::Matrix => ("matrix", None),
            ParamKind::Flag => ("flag", None),
        };
        Self {
            name: param.name,
            kind,
            takes: param.kind.to_string(),
            choices,
            required: param.fallback == Fallback::Required,
            default: match param.fallback {
                Fallback::Text(text) => Some(text),
                Fallback::Required | Fallback::Absent => None,
            },
            doc: param.doc,
        }
    }
}

fn gives_text(op: &OpInfo) -> String {
    match op.gives {
        Gives::Image { dtype, shape } => format!("image of {}, {}", dtype.text(), shape.text()),
        Gives::Scalars(ScalarRule::Named(names)) => format!("numbers: {}", names.join(", ")),
        Gives::Scalars(ScalarRule::Count(name)) => format!("`{name}` numbers"),
        Gives::Scalars(ScalarRule::Each(name)) => format!("one number per `{name}`"),
        Gives::Scalars(ScalarRule::Shift) => "numbers: dz (stacks only), dy, dx".into(),
        Gives::Table(_) => "table, a row per label".into(),
    }
}

/// `sigma=.. [boundary=clamp]`: what must be given, and what may be.
fn signature(op: &OpInfo) -> String {
    let word = |param: &ParamInfo| match param.fallback {
        Fallback::Required => format!("{}=..", param.name),
        Fallback::Absent => format!("[{}=..]", param.name),
        Fallback::Text(text) => format!("[{}={text}]", param.name),
    };
    let words: Vec<String> = op.params().map(word).collect();
    words.join(" ")
}

/// All operations, a line each.
pub fn list_text() -> String {
    let widest = ops().map(|op| op.name.len()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for family in Family::ALL {
        lines.push(family.name().to_owned());
        for op in ops().filter(|op| op.family == *family) {
            let cpu = match op.backends {
                Backends::All => "",
                Backends::CpuOnly { .. } => " (cpu-only)",
            };
            lines.push(format!("  {:widest$}  {}{cpu}", op.name, op.summary));
        }
    }
    let count = ops().count();
    lines.push(String::new());
    lines.push(format!(
        "{count} operations; `warploom ops NAME` tells all about one"
    ));
    lines.join("\n") + "\n"
}

/// One operation's page.
pub fn page_text(op: &'static OpInfo) -> String {
    let page = Page::of(op);
    let mut command = vec![format!("  warploom apply {}", op.name), signature(op)];
    command.extend(page.inputs.iter().map(usage));
    command.push("-o OUT".into());
    command.retain(|word| !word.is_empty());
    let mut text = format!(
        "{}: {}\n\n{}\n\n",
        page.name,
        page.summary,
        command.join(" ")
    );
    entry(&mut text, "formula", page.formula);
    entry(&mut text, "reference", page.reference);
    for note in page.notes {
        entry(&mut text, "note", note);
    }
    for input in &page.inputs {
        entry(&mut text, "input", &input_text(input));
    }
    let ranks = match page.ranks {
        Ranks::Any => "planes (y,x) and stacks (z,y,x)",
        Ranks::Stack => "stacks (z,y,x)",
    };
    entry(&mut text, "shapes", ranks);
    for param in &page.params {
        entry(&mut text, "parameter", &param_text(param));
    }
    entry(&mut text, "gives", &page.gives);
    entry(&mut text, "NaN", page.nan);
    entry(&mut text, "traffic", &traffic_text(op, &page.traffic));
    entry(
        &mut text,
        "accuracy",
        &accuracy_text(page.tolerance, &page.inputs),
    );
    let backends = match page.why {
        None => "all: cpu, opencl, cuda, wgpu".to_owned(),
        Some(why) => format!("cpu-only: {why}"),
    };
    entry(&mut text, "backends", &backends);
    text
}

fn input_text(input: &InputPage) -> String {
    let types: Vec<&str> = input.types.iter().map(|dtype| dtype.name()).collect();
    let optional = if input.optional { "; optional" } else { "" };
    let InputPage { name, doc, .. } = input;
    format!("{name}: {doc}; {}{optional}", types.join(" "))
}

fn param_text(param: &ParamPage) -> String {
    let default = match (param.required, param.default) {
        (true, _) => "required".to_owned(),
        (false, Some(default)) => format!("default {default}"),
        (false, None) => "optional".to_owned(),
    };
    let ParamPage {
        name, doc, takes, ..
    } = param;
    format!("{name}: {doc}; {takes}; {default}")
}

fn usage(input: &InputPage) -> String {
    let name = input.name.to_uppercase();
    if input.optional {
        format!("[-i {name}]")
    } else {
        format!("-i {name}")
    }
}

fn traffic_text(op: &OpInfo, traffic: &[TrafficPage]) -> String {
    let images = op.inputs.iter().any(|input| input.role == Role::Image);
    let cells: Vec<String> = traffic
        .iter()
        .map(|row| format!("{} {}+{}", row.dtype, row.read, row.written))
        .collect();
    match traffic {
        [first, ..] if !images => format!(
            "{}+{} bytes read and written per pixel at least",
            first.read, first.written
        ),
        _ => format!(
            "bytes read and written per pixel at least: {}",
            cells.join(", ")
        ),
    }
}

fn accuracy_text(tolerance: Tolerance, inputs: &[InputPage]) -> String {
    let mut text = format!(
        "cpu against the reference {}; opencl and cuda against cpu {}; wgpu against cpu {}; \
         with --fast {} while nothing is NaN or infinite",
        tolerance.reference, tolerance.strict, tolerance.wgpu, tolerance.fast
    );
    if matches!(tolerance.reference, Bound::Ulp(_)) {
        text += "; an ulp is that of the largest magnitude in image and result";
    }
    if inputs.iter().any(|input| input.types.contains(&DType::F64)) {
        text += "; wgpu keeps 46 bits of f64, in pairs of f32";
    }
    text
}

/// A name in the margin and a text beside it, broken between words.
fn entry(text: &mut String, name: &str, body: &str) {
    const MARGIN: usize = 12;
    const WIDTH: usize = 100;
    let mut line = format!("{name:MARGIN$}");
    let mut empty = true;
    for word in body.split(' ') {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(MARGIN);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    text.push_str(line.trim_end());
    text.push('\n');
}
