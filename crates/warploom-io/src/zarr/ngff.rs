//! OME-NGFF 0.5: what the arrays of a group mean.

use std::path::{Component, Path};

use serde_json::{Map, Value, json};
use warploom_core::{Axis, Shape};

use crate::error::Fault;
use crate::header::Header;
use crate::tiff::micrometres;

/// One resolution of an image.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Level {
    /// Where the array is, below the group.
    pub(super) path: String,
    pub(super) axes: Vec<Axis>,
    pub(super) spacing: [Option<f64>; 3],
    pub(super) channels: Vec<String>,
}

/// What OME has to say in a group.
pub(super) fn ome(group: &Value) -> Option<&Value> {
    group.get("attributes")?.get("ome")
}

/// A resolution of the image in a group.
pub(super) fn level(group: &Value, number: usize) -> Result<Level, Fault> {
    let damaged = |what: &str| Fault::damaged(format!("its OME metadata has {what}"));
    let ome = ome(group);
    let image = ome
        .and_then(|ome| ome.get("multiscales"))
        .and_then(|scales| scales.get(0));
    let Some(image) = image else {
        return Err(no_image(group));
    };
    let axes = image.get("axes").and_then(Value::as_array);
    let axes = axes.ok_or_else(|| damaged("no axes"))?;
    let labels: Option<Vec<Axis>> = axes.iter().map(axis).collect();
    let labels = labels.ok_or_else(|| damaged("axes without names"))?;
    let levels = image.get("datasets").and_then(Value::as_array);
    let levels = levels.ok_or_else(|| damaged("no datasets"))?;
    let Some(chosen) = levels.get(number) else {
        return Err(Fault::Unread {
            what: format!("{} resolutions", levels.len()),
            instead: format!("there is no level {number}; they count from 0"),
        });
    };
    let path = chosen.get("path").and_then(Value::as_str);
    let path = path.ok_or_else(|| damaged("a dataset without a path"))?;
    // A path that leaves the folder is nobody's image.
    if !is_below(path) {
        return Err(damaged("a dataset whose path leaves the folder"));
    }
    let scales = [scale(image, axes.len()), scale(chosen, axes.len())];
    let length = |wanted: Axis| {
        let at = labels.iter().position(|label| *label == wanted)?;
        let unit = axes[at].get("unit").and_then(Value::as_str)?;
        let value: f64 = scales.iter().flatten().map(|scale| scale[at]).product();
        let value = value * micrometres(unit)?;
        (value.is_finite() && value > 0.0).then_some(value)
    };
    let channels = ome
        .and_then(|ome| ome.get("omero")?.get("channels")?.as_array())
        .map(|channels| {
            let name = |channel: &Value| channel.get("label")?.as_str().map(str::to_owned);
            let names = channels
                .iter()
                .map(|channel| name(channel).unwrap_or_default());
            names.collect::<Vec<_>>()
        });
    Ok(Level {
        path: path.to_owned(),
        spacing: [length(Axis::Z), length(Axis::Y), length(Axis::X)],
        axes: labels,
        channels: channels.unwrap_or_default(),
    })
}

/// Does a path stay below the folder it starts in?
pub(super) fn is_below(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    !path.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
}

fn no_image(group: &Value) -> Fault {
    let what = match ome(group) {
        Some(ome) if ome.get("plate").is_some() => "a plate of images",
        Some(ome) if ome.get("well").is_some() => "a well of images",
        _ => "a group of arrays, of which none is said to be the image",
    };
    Fault::Unread {
        what: what.into(),
        instead: "name one image in it, as in `plate.zarr/B/3/0`, or one array".into(),
    }
}

fn axis(value: &Value) -> Option<Axis> {
    let name = value.get("name")?.as_str()?;
    let kind = value.get("type").and_then(Value::as_str);
    Some(match (name.to_ascii_lowercase().as_str(), kind) {
        ("x", _) => Axis::X,
        ("y", _) => Axis::Y,
        ("z", _) => Axis::Z,
        ("c", _) | (_, Some("channel")) => Axis::C,
        ("t", _) | (_, Some("time")) => Axis::T,
        _ => Axis::N,
    })
}

/// The axis that a name of Zarr's own means.
pub(super) fn axis_named(name: &str) -> Option<Axis> {
    Some(match name.to_ascii_lowercase().as_str() {
        "x" => Axis::X,
        "y" => Axis::Y,
        "z" => Axis::Z,
        "c" | "channel" => Axis::C,
        "t" | "time" => Axis::T,
        "n" => Axis::N,
        _ => return None,
    })
}

fn scale(value: &Value, rank: usize) -> Option<Vec<f64>> {
    let changes = value.get("coordinateTransformations")?.as_array()?;
    let scale = changes.iter().find_map(|change| change.get("scale"))?;
    let scale: Option<Vec<f64>> = scale.as_array()?.iter().map(Value::as_f64).collect();
    scale.filter(|scale| scale.len() == rank)
}

/// The images of a plate, or of a well, below the group: paths in the order in which they are said.
pub(super) fn members(group: &Value) -> Option<Vec<String>> {
    let ome = ome(group)?;
    let list = match (ome.get("plate"), ome.get("well")) {
        (Some(plate), _) => plate.get("wells")?,
        (None, Some(well)) => well.get("images")?,
        _ => return None,
    };
    let path = |member: &Value| {
        let path = member.get("path")?.as_str()?;
        is_below(path).then(|| path.to_owned())
    };
    list.as_array()?.iter().map(path).collect()
}

/// What OME says of an image with one resolution, `0`; `None` for axes that it has no words for.
pub(super) fn describe(header: &Header, name: &str) -> Option<Value> {
    let shape: &Shape = &header.shape;
    let order = [Axis::T, Axis::C, Axis::Z, Axis::Y, Axis::X];
    let places: Option<Vec<usize>> = shape
        .axes()
        .iter()
        .map(|axis| order.iter().position(|known| known == axis))
        .collect();
    if !places?.is_sorted() || shape.rank() < 2 || !shape.axes().ends_with(&[Axis::Y, Axis::X]) {
        return None;
    }
    let spacing = |axis: Axis| match axis {
        Axis::Z => header.spacing[0],
        Axis::Y => header.spacing[1],
        Axis::X => header.spacing[2],
        _ => None,
    };
    let axes: Vec<Value> = shape
        .axes()
        .iter()
        .map(|axis| {
            let mut entry = Map::new();
            let kind = match axis {
                Axis::T => "time",
                Axis::C => "channel",
                _ => "space",
            };
            entry.insert("name".into(), letter(*axis).into());
            entry.insert("type".into(), kind.into());
            if spacing(*axis).is_some() {
                entry.insert("unit".into(), "micrometer".into());
            }
            Value::Object(entry)
        })
        .collect();
    let scale = shape
        .axes()
        .iter()
        .map(|axis| spacing(*axis).unwrap_or(1.0));
    let mut ome = json!({
        "version": "0.5",
        "multiscales": [{
            "name": name,
            "axes": axes,
            "datasets": [{
                "path": "0",
                "coordinateTransformations": [
                    {"type": "scale", "scale": scale.collect::<Vec<f64>>()},
                ],
            }],
        }],
    });
    let channels = shape.extent(Axis::C).unwrap_or(0);
    if channels > 0 && header.channels.len() as u64 == channels {
        let list: Vec<Value> = header.channels.iter().map(|name| channel(name)).collect();
        ome["omero"] = json!({ "channels": list });
    }
    Some(ome)
}

/// A channel as viewers want it: colours and limits are theirs to find.
fn channel(name: &str) -> Value {
    json!({
        "label": name,
        "color": "FFFFFF",
        "window": {"min": 0.0, "max": 65535.0, "start": 0.0, "end": 65535.0},
    })
}

pub(super) fn letter(axis: Axis) -> &'static str {
    match axis {
        Axis::N => "n",
        Axis::T => "t",
        Axis::C => "c",
        Axis::Z => "z",
        Axis::Y => "y",
        Axis::X => "x",
    }
}
