//! Reads an image and writes it in the format that another name says:
//! `cargo run -p warploom-io --example convert -- in.tif out.npy`.
//!
//! Without names it takes jobs from its standard input, a line of JSON each, and answers each with a
//! line: what the image is, or what is wrong. `{"from": "a.zarr", "to": "b.npy", "level": 1, "series":
//! 0, "start": [0, 0], "extent": [5, 5]}`; with `"channels"` and `"spacing"` to be written along, and
//! with `"axes"` in place of those that the file has. `{"table": {"a": [1, 2]}, "to": "t.parquet"}`
//! writes a table.

use std::io::{BufRead as _, Write as _};
use std::process::ExitCode;

use serde_json::{Map, Value, json};
use warploom_core::{Axis, Coded as _, Shape};
use warploom_io::{
    Choice, Column, FileError, Header, Region, Source, Sync, Table, Values, write_image,
    write_table,
};

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut names = std::env::args_os().skip(1);
    match (names.next(), names.next(), names.next()) {
        (Some(from), Some(to), None) => {
            warploom_io::write(&to, &warploom_io::read(&from)?)?;
        }
        (None, None, None) => {
            for line in std::io::stdin().lock().lines() {
                let answer = match run(&serde_json::from_str(&line?)?) {
                    Ok(answer) => answer,
                    Err(error) => {
                        json!({"error": error.to_string(), "code": error.code().to_string(),
                               "help": error.help()})
                    }
                };
                writeln!(std::io::stdout(), "{answer}")?;
            }
        }
        _ => return Ok(ExitCode::from(2)),
    }
    Ok(ExitCode::SUCCESS)
}

fn run(job: &Value) -> Result<Value, FileError> {
    let to = job["to"].as_str().unwrap_or_default();
    if let Some(columns) = job["table"].as_object() {
        let columns = columns.iter().map(|(name, values)| Column {
            name: name.clone(),
            values: column(values),
        });
        let Some(table) = Table::new(columns.collect()) else {
            return Ok(json!({"error": "the columns differ in length"}));
        };
        write_table(to, &table)?;
        return Ok(json!({}));
    }
    let choice = Choice {
        series: number(&job["series"]),
        level: number(&job["level"]).unwrap_or(0),
    };
    let mut source = Source::open_choice(job["from"].as_str().unwrap_or_default(), choice)?;
    let mut header = source.header().clone();
    let answer = describe(&header, source.series());
    let whole = Region::whole(&header.shape);
    let region = match (list(&job["start"]), list(&job["extent"])) {
        (Some(start), Some(extent)) => Region::new(&start, &extent).unwrap_or(whole),
        _ => whole,
    };
    if let Ok(shape) = region.shape(&header.shape) {
        header.shape = shape;
    }
    let mut pixels = vec![0; usize::try_from(header.bytes()).unwrap_or(0)];
    source.read_into(&region, &mut pixels)?;
    if let Some(axes) = job["axes"].as_str() {
        let axes: Vec<Axis> = axes.chars().map(axis).collect();
        if let Ok(shape) = Shape::with_axes(&axes, header.shape.dims()) {
            header.shape = shape;
        }
    }
    if let Some(names) = job["channels"].as_array() {
        header.channels = names
            .iter()
            .filter_map(Value::as_str)
            .map(Into::into)
            .collect();
    }
    if let Some(spacing) = job["spacing"].as_array() {
        for (own, given) in header.spacing.iter_mut().zip(spacing) {
            *own = given.as_f64();
        }
    }
    if !to.is_empty() {
        write_image(to, &header, &pixels, Sync::No)?;
    }
    Ok(answer)
}

fn column(values: &Value) -> Values {
    let values = values.as_array().map(Vec::as_slice).unwrap_or_default();
    if values.iter().any(Value::is_string) {
        let texts = values.iter().map(|text| text.as_str().unwrap_or_default());
        return Values::Texts(texts.map(Into::into).collect());
    }
    match values.iter().map(Value::as_i64).collect() {
        Some(whole) => Values::Whole(whole),
        // What is no number in JSON is not one here, either.
        None => Values::Reals(
            values
                .iter()
                .map(|v| v.as_f64().unwrap_or(f64::NAN))
                .collect(),
        ),
    }
}

fn describe(header: &Header, series: usize) -> Value {
    let axes: Vec<String> = header
        .shape
        .axes()
        .iter()
        .map(|axis| format!("{axis:?}"))
        .collect();
    let mut answer = Map::new();
    answer.insert("dtype".into(), header.dtype.name().into());
    answer.insert("shape".into(), json!(header.shape.dims()));
    answer.insert("axes".into(), axes.concat().into());
    answer.insert("channels".into(), json!(header.channels));
    answer.insert("spacing".into(), json!(header.spacing));
    answer.insert("series".into(), json!(series));
    Value::Object(answer)
}

fn number(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|value| usize::try_from(value).ok())
}

fn list(value: &Value) -> Option<Vec<u64>> {
    value.as_array()?.iter().map(Value::as_u64).collect()
}

fn axis(letter: char) -> Axis {
    match letter {
        'T' => Axis::T,
        'C' => Axis::C,
        'Z' => Axis::Z,
        'Y' => Axis::Y,
        'X' => Axis::X,
        _ => Axis::N,
    }
}
