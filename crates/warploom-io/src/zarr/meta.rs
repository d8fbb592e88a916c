//! What `zarr.json` says of an array.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use serde_json::Value;
use warploom_core::{DType, MAX_RANK};

use super::codec::{Chain, extents, named};
use crate::error::Fault;

/// The file that says what a folder is.
pub(super) const FILE: &str = "zarr.json";

/// Consolidated metadata of a large plate is some megabytes.
const LONGEST: u64 = 1 << 26;

/// An array: everything but its chunks.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Meta {
    pub(super) shape: Vec<u64>,
    pub(super) chunk: Vec<u64>,
    pub(super) dtype: DType,
    pub(super) is_bool: bool,
    /// One element, as this machine has it.
    pub(super) fill: Vec<u8>,
    pub(super) chain: Chain,
    pub(super) names: Vec<Option<String>>,
    keys: Keys,
}

/// How chunks are named.
#[derive(Clone, PartialEq, Debug)]
struct Keys {
    prefix: &'static str,
    separator: &'static str,
}

/// Reads the description of a folder.
pub(super) fn read(folder: &Path) -> Result<Value, Fault> {
    let mut text = Vec::new();
    let file = match fs::File::open(folder.join(FILE)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(super::no_metadata(folder));
        }
        Err(error) => return Err(Fault::open(&error)),
    };
    file.take(LONGEST)
        .read_to_end(&mut text)
        .map_err(|error| Fault::open(&error))?;
    let value: Value = serde_json::from_slice(&text)
        .map_err(|error| Fault::damaged(format!("its {FILE} is no JSON: {error}")))?;
    match value.get("zarr_format").and_then(Value::as_u64) {
        Some(3) => Ok(value),
        Some(other) => Err(Fault::Unread {
            what: format!("Zarr of version {other}"),
            instead: "write it as version 3, as with `zarr.save(path, a, zarr_format=3)`".into(),
        }),
        None => Err(Fault::damaged(format!("its {FILE} says no zarr_format"))),
    }
}

impl Meta {
    /// What a description says, if it is one of an array that we read.
    pub(super) fn parse(value: &Value) -> Result<Self, Fault> {
        let none = &Value::Null;
        let part = |name| value.get(name).unwrap_or(none);
        let shape = extents(part("shape"), "shape")?;
        if shape.is_empty() || shape.len() > MAX_RANK {
            return Err(Fault::Unread {
                what: format!("an array of {} axes", shape.len()),
                instead: format!("images have 1 to {MAX_RANK} axes; save a part of it"),
            });
        }
        let (grid, set) = named(part("chunk_grid"))?;
        if grid != "regular" {
            return Err(unread(format!("chunks in a grid `{grid}`")));
        }
        let chunk = extents(set.get("chunk_shape").unwrap_or(none), "chunk_shape")?;
        if chunk.len() != shape.len() || chunk.contains(&0) {
            return Err(Fault::damaged(
                "its chunks have another rank or no elements",
            ));
        }
        if part("storage_transformers")
            .as_array()
            .is_some_and(|list| !list.is_empty())
        {
            return Err(unread("storage that is transformed".into()));
        }
        let (dtype, is_bool) = dtype(part("data_type"))?;
        let chain = Chain::parse(part("codecs"), shape.len())?;
        let names = part("dimension_names").as_array().map_or_else(
            || vec![None; shape.len()],
            |names| {
                let names = names.iter().map(|name| name.as_str().map(str::to_owned));
                names.collect()
            },
        );
        Ok(Self {
            fill: fill(part("fill_value"), dtype)?,
            keys: Keys::parse(part("chunk_key_encoding"))?,
            shape,
            chunk,
            dtype,
            is_bool,
            chain,
            names,
        })
    }

    /// The name of a chunk's file below the array's folder.
    pub(super) fn key(&self, cell: &[u64]) -> String {
        let parts: Vec<String> = cell.iter().map(u64::to_string).collect();
        format!("{}{}", self.keys.prefix, parts.join(self.keys.separator))
    }
}

impl Keys {
    fn parse(value: &Value) -> Result<Self, Fault> {
        let (name, set) = match value {
            Value::Null => ("default", &Value::Null),
            value => named(value)?,
        };
        let separator = set.get("separator").and_then(Value::as_str);
        Ok(match (name, separator) {
            ("default", None | Some("/")) => Self {
                prefix: "c/",
                separator: "/",
            },
            ("default", Some(".")) => Self {
                prefix: "c.",
                separator: ".",
            },
            ("v2", None | Some(".")) => Self {
                prefix: "",
                separator: ".",
            },
            ("v2", Some("/")) => Self {
                prefix: "",
                separator: "/",
            },
            _ => return Err(unread(format!("chunks named in the way `{name}`"))),
        })
    }
}

fn unread(what: String) -> Fault {
    Fault::Unread {
        what,
        instead: "write it with zarr-python's defaults".into(),
    }
}

fn dtype(value: &Value) -> Result<(DType, bool), Fault> {
    let (name, _) = named(value)?;
    Ok(match name {
        "bool" => (DType::U8, true),
        "uint8" => (DType::U8, false),
        "uint16" => (DType::U16, false),
        "uint32" => (DType::U32, false),
        "uint64" => (DType::U64, false),
        "int8" => (DType::I8, false),
        "int16" => (DType::I16, false),
        "int32" => (DType::I32, false),
        "int64" => (DType::I64, false),
        "float16" => (DType::F16, false),
        "float32" => (DType::F32, false),
        "float64" => (DType::F64, false),
        other => {
            return Err(Fault::Unread {
                what: format!("elements of type `{other}`"),
                instead: "save it as whole numbers of 8 to 64 bits, or floats of 16 to 64".into(),
            });
        }
    })
}

/// The name that Zarr has for a type.
pub(super) fn type_name(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::U8 => "uint8",
        DType::U16 => "uint16",
        DType::U32 => "uint32",
        DType::U64 => "uint64",
        DType::I8 => "int8",
        DType::I16 => "int16",
        DType::I32 => "int32",
        DType::I64 => "int64",
        DType::F16 => "float16",
        DType::F32 => "float32",
        DType::F64 => "float64",
        _ => return None,
    })
}

/// The element that chunks which are not there consist of.
fn fill(value: &Value, dtype: DType) -> Result<Vec<u8>, Fault> {
    let bad = || Fault::damaged(format!("its fill_value {value} is no {dtype}"));
    if let Some(bits) = value.as_str().and_then(|text| text.strip_prefix("0x")) {
        let bits = u64::from_str_radix(bits, 16).map_err(|_| bad())?;
        return low_bytes(bits, dtype).ok_or_else(bad);
    }
    let real = match value {
        Value::Null => Some(0.0),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        other => other.as_f64(),
    };
    Ok(match dtype {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "as the array's own elements are"
        )]
        DType::F32 => (real.ok_or_else(bad)? as f32).to_ne_bytes().to_vec(),
        DType::F64 => real.ok_or_else(bad)?.to_ne_bytes().to_vec(),
        DType::F16 => half(real.ok_or_else(bad)?).to_ne_bytes().to_vec(),
        _ => {
            let whole = match value {
                Value::Null => 0,
                Value::Bool(truth) => i128::from(*truth),
                other => other
                    .as_u64()
                    .map(i128::from)
                    .or_else(|| other.as_i64().map(i128::from))
                    .ok_or_else(bad)?,
            };
            let bits = 8 * u32::try_from(dtype.bytes()).unwrap_or(8);
            let is_signed = matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
            let (least, most) = if is_signed {
                (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1)
            } else {
                (0, (1_i128 << bits) - 1)
            };
            if whole < least || whole > most {
                return Err(bad());
            }
            let bytes = whole.to_le_bytes();
            let bits = u64::from_le_bytes(bytes[..8].try_into().map_err(|_| bad())?);
            let mask = u64::MAX >> (64 - bits_of(dtype));
            low_bytes(bits & mask, dtype).ok_or_else(bad)?
        }
    })
}

fn bits_of(dtype: DType) -> u64 {
    8 * dtype.bytes()
}

/// The lowest bytes of a number, as this machine has them; `None` where more are set.
fn low_bytes(bits: u64, dtype: DType) -> Option<Vec<u8>> {
    let width = usize::try_from(dtype.bytes()).ok()?;
    if width < 8 && bits >> (8 * width) != 0 {
        return None;
    }
    let bytes = if cfg!(target_endian = "big") {
        bits.to_be_bytes()[8 - width..].to_vec()
    } else {
        bits.to_le_bytes()[..width].to_vec()
    };
    Some(bytes)
}

/// The bits of a number of 16 bits; rounded towards zero, which fill values never need.
fn half(value: f64) -> u16 {
    if value.is_nan() {
        return 0x7e00;
    }
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let size = value.abs();
    if size >= 65_536.0 {
        return sign | 0x7c00;
    }
    let bits = size.to_bits();
    let exponent = (bits >> 52).cast_signed() - 1023;
    if exponent < -24 {
        return sign;
    }
    let fraction = bits & ((1 << 52) - 1) | 1 << 52;
    let (shift, base) = if exponent < -14 {
        (42 + u64::try_from(-14 - exponent).unwrap_or(0), 0)
    } else {
        (42, u64::try_from(exponent + 14).unwrap_or(0) << 10)
    };
    let value = base + (fraction >> shift);
    sign | u16::try_from(value).unwrap_or(0x7c00)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fill_values_are_elements() {
        let fill = |value, dtype| fill(&value, dtype);
        assert_eq!(fill(json!(7), DType::U16).unwrap(), 7_u16.to_ne_bytes());
        assert_eq!(fill(json!(-2), DType::I16).unwrap(), (-2_i16).to_ne_bytes());
        assert_eq!(
            fill(json!(u64::MAX), DType::U64).unwrap(),
            u64::MAX.to_ne_bytes()
        );
        assert_eq!(fill(json!(true), DType::U8).unwrap(), [1]);
        assert_eq!(fill(json!(0.5), DType::F32).unwrap(), 0.5_f32.to_ne_bytes());
        assert_eq!(
            fill(json!("-Infinity"), DType::F64).unwrap(),
            f64::NEG_INFINITY.to_ne_bytes()
        );
        assert_eq!(
            fill(json!("0x7fc00001"), DType::F32).unwrap(),
            0x7fc0_0001_u32.to_ne_bytes()
        );
        assert!(fill(json!(256), DType::U8).is_err());
        assert!(fill(json!(-1), DType::U64).is_err());
        assert!(fill(json!("0x100"), DType::U8).is_err());
        assert!(fill(json!([1]), DType::F32).is_err());
    }

    #[test]
    fn halves_are_those_of_the_crate() {
        for value in [
            0.0, 1.0, -2.5, 0.1, 65_504.0, 1e9, -1e-7, 6e-8, 5.9e-8, 1e-12, 0.000_06,
        ] {
            let wanted = half::f16::from_f64(value);
            let got = half::f16::from_bits(half(value));
            let off = got.to_f64() - wanted.to_f64();
            assert!(
                got == wanted || off.abs() <= wanted.to_f64().abs() / 1024.0 + 6e-8,
                "{value}: {got} {wanted}"
            );
        }
        assert!(half::f16::from_bits(half(f64::NAN)).is_nan());
    }
}
