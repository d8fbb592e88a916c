//! Small pictures of records.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::item::RecordNo;
use crate::base64;

/// The bytes of a PNG file. In JSON it is base64.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Picture(pub Vec<u8>);

impl std::fmt::Debug for Picture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Picture({} bytes)", self.0.len())
    }
}

impl Serialize for Picture {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&base64::encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Picture {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = base64::decode(&text);
        bytes
            .map(Self)
            .ok_or_else(|| D::Error::custom("a picture that is not base64"))
    }
}

/// A record before and after, small.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Thumbnail {
    /// Which record.
    pub record: RecordNo,
    /// What is shown: the output's name, the channel.
    pub label: String,
    /// What went in.
    #[serde(default)]
    pub before: Option<Picture>,
    /// What came out.
    #[serde(default)]
    pub after: Option<Picture>,
}
