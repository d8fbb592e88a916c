//! Element types of images.

use std::fmt;
use std::str::FromStr;

use half::{bf16, f16};
use serde::{Deserialize, Serialize};

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that is an element of an image. Sealed: backends must agree on the list.
pub trait Element: sealed::Sealed + bytemuck::Pod + fmt::Debug + PartialEq + Send + Sync {
    /// Its value in plans.
    const DTYPE: DType;
}

macro_rules! dtypes {
    ($($variant:ident $type:ty, $name:literal;)*) => {
        /// The type of an image's elements, as a value.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum DType {
            $(
                #[doc = concat!("`", $name, "`")]
                #[serde(rename = $name)]
                $variant,
            )*
        }

        impl DType {
            /// Every type.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Bytes of one element.
            pub const fn bytes(self) -> u64 {
                match self {
                    $(Self::$variant => size_of::<$type>() as u64,)*
                }
            }

            /// Its name as in Rust, which is also its name in pipeline files.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        $(
            impl sealed::Sealed for $type {}
            impl Element for $type {
                const DTYPE: DType = DType::$variant;
            }
        )*
    };
}

dtypes! {
    U8 u8, "u8";
    U16 u16, "u16";
    U32 u32, "u32";
    U64 u64, "u64";
    I8 i8, "i8";
    I16 i16, "i16";
    I32 i32, "i32";
    I64 i64, "i64";
    F16 f16, "f16";
    Bf16 bf16, "bf16";
    F32 f32, "f32";
    F64 f64, "f64";
}

impl DType {
    /// Is it a floating-point type?
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Why a text is not a [`DType`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an element type; known are {}", known())]
pub struct DTypeError {
    text: String,
}

fn known() -> String {
    DType::ALL
        .iter()
        .map(|d| d.name())
        .collect::<Vec<_>>()
        .join(", ")
}

impl FromStr for DType {
    type Err = DTypeError;
    /// Accepts Rust's names and NumPy's (`uint8`, `float32`, …).
    fn from_str(text: &str) -> Result<Self, DTypeError> {
        let numpy = [
            ("uint", "u"),
            ("int", "i"),
            ("bfloat", "bf"),
            ("float", "f"),
        ];
        let short = numpy
            .iter()
            .find_map(|(long, short)| text.strip_prefix(long).map(|bits| format!("{short}{bits}")));
        let name = short.as_deref().unwrap_or(text);
        let found = Self::ALL.iter().find(|d| d.name() == name);
        found.copied().ok_or_else(|| DTypeError {
            text: text.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_numpy_names_resolve() {
        for dtype in DType::ALL {
            assert_eq!(dtype.name().parse(), Ok(*dtype));
            let json = serde_json::to_string(dtype).unwrap();
            assert_eq!(json, format!("\"{dtype}\""));
        }
        assert_eq!("uint16".parse(), Ok(DType::U16));
        assert_eq!("float64".parse(), Ok(DType::F64));
        assert_eq!("bfloat16".parse(), Ok(DType::Bf16));
        assert!("float8".parse::<DType>().is_err());
    }
}
