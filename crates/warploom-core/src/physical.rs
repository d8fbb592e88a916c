//! Which card is it? The identities drivers tell, and nothing else.
//!
//! Ordinals mean different things in each API and names are shared by twin cards, so neither is
//! ever used to decide that two devices are one.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A PCI address, printed as `0000:41:00.0`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PciAddress {
    /// PCI domain (segment).
    pub domain: u32,
    /// Bus number.
    pub bus: u8,
    /// Device number, 0 to 31.
    pub device: u8,
    /// Function number, 0 to 7.
    pub function: u8,
}

/// A device's 128-bit UUID as the driver gives it, printed in the usual five groups.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Uuid(pub [u8; 16]);

/// A Windows adapter LUID, printed as 16 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Luid(pub [u8; 8]);

/// Why a text is not a PCI address, UUID or LUID.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {what}, such as `{example}`")]
pub struct IdentityError {
    text: String,
    what: &'static str,
    example: &'static str,
}

/// Every identity one driver tells about one device; any may be missing.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize,
)]
pub struct PhysicalKey {
    /// Where the card sits.
    pub pci: Option<PciAddress>,
    /// What the card calls itself; for a MIG instance, the instance's own UUID.
    pub uuid: Option<Uuid>,
    /// How Windows calls the adapter until the next boot.
    pub luid: Option<Luid>,
    /// Is it a slice of the card at that address, with memory of its own (MIG)?
    #[serde(default)]
    pub slice: bool,
}

impl PhysicalKey {
    /// Does the driver tell nothing at all?
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Both keys in one, the first one's answers before the second's.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        // Of a slice and its card, the slice knows better what it is.
        let (first, second) = if other.slice && !self.slice {
            (other, self)
        } else {
            (self, other)
        };
        Self {
            pci: first.pci.or(second.pci),
            uuid: first.uuid.or(second.uuid),
            luid: first.luid.or(second.luid),
            slice: first.slice,
        }
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            domain,
            bus,
            device,
            function,
        } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

impl FromStr for PciAddress {
    type Err = IdentityError;
    /// Accepts `dddd:bb:dd.f`, `bb:dd.f` and NVIDIA's eight-digit domain.
    fn from_str(text: &str) -> Result<Self, IdentityError> {
        fn parse(text: &str) -> Option<PciAddress> {
            let (rest, function) = text.rsplit_once('.')?;
            let mut parts = rest.rsplit(':');
            let device = u8::from_str_radix(parts.next()?, 16).ok()?;
            let bus = u8::from_str_radix(parts.next()?, 16).ok()?;
            let domain = match parts.next() {
                Some(domain) => u32::from_str_radix(domain, 16).ok()?,
                None => 0,
            };
            let function = u8::from_str_radix(function, 16).ok()?;
            let fits = parts.next().is_none() && device < 32 && function < 8;
            fits.then_some(PciAddress {
                domain,
                bus,
                device,
                function,
            })
        }
        parse(text.trim()).ok_or_else(|| IdentityError {
            text: text.to_owned(),
            what: "PCI address",
            example: "0000:41:00.0",
        })
    }
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

fn read_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| *c != '-')
        .map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok()))
        .collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits
        .chunks_exact(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect();
    if digits.len() == 2 * N {
        bytes.try_into().ok()
    } else {
        None
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, group) in [0..4, 4..6, 6..8, 8..10, 10..16].into_iter().enumerate() {
            if at > 0 {
                f.write_str("-")?;
            }
            write_hex(f, &self.0[group])?;
        }
        Ok(())
    }
}

impl FromStr for Uuid {
    type Err = IdentityError;
    /// Accepts NVIDIA's `GPU-` and `MIG-` prefixes, with or without dashes.
    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let plain = text.trim();
        let plain = plain
            .strip_prefix("GPU-")
            .or(plain.strip_prefix("MIG-"))
            .unwrap_or(plain);
        read_hex(plain).map(Self).ok_or_else(|| IdentityError {
            text: text.to_owned(),
            what: "UUID",
            example: "4c2fd2f6-5d9b-1f0b-8a3e-0123456789ab",
        })
    }
}

impl fmt::Display for Luid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl FromStr for Luid {
    type Err = IdentityError;
    fn from_str(text: &str) -> Result<Self, IdentityError> {
        read_hex(text.trim())
            .map(Self)
            .ok_or_else(|| IdentityError {
                text: text.to_owned(),
                what: "LUID",
                example: "0123456789abcdef",
            })
    }
}

/// Identities travel as the text people know, so that a survey in JSON can be read and grepped.
macro_rules! as_text {
    ($($type:ty),*) => {$(
        impl Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<str>::deserialize(from)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}
as_text!(PciAddress, Uuid, Luid);

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("0000:41:00.0", "0000:41:00.0")]
    #[case("41:00.0", "0000:41:00.0")]
    #[case("00000001:C1:1F.7", "0001:c1:1f.7")]
    #[case("10000:e1:00.0", "10000:e1:00.0")]
    fn pci_addresses_parse(#[case] text: &str, #[case] printed: &str) {
        assert_eq!(text.parse::<PciAddress>().unwrap().to_string(), printed);
    }

    #[rstest::rstest]
    #[case("")]
    #[case("41:00")]
    #[case("0000:41:20.0")]
    #[case("0000:41:00.8")]
    #[case("0:0000:41:00.0")]
    #[case("zz:00.0")]
    fn bad_pci_addresses_are_refused(#[case] text: &str) {
        assert!(text.parse::<PciAddress>().is_err());
    }

    #[test]
    fn uuids_parse_with_prefixes() {
        let text = "4c2fd2f6-5d9b-1f0b-8a3e-0123456789ab";
        let uuid: Uuid = text.parse().unwrap();
        assert_eq!(uuid.to_string(), text);
        assert_eq!(format!("GPU-{text}").parse(), Ok(uuid));
        assert_eq!(format!("MIG-{text}").parse(), Ok(uuid));
        assert!("GPU-4c2f".parse::<Uuid>().is_err());
        assert!(
            "4c2fd2f6-5d9b-1f0b-8a3e-0123456789aé"
                .parse::<Uuid>()
                .is_err()
        );
    }

    #[test]
    fn a_key_survives_serde() {
        let key = PhysicalKey {
            pci: Some("0000:41:00.0".parse().unwrap()),
            uuid: Some(Uuid([7; 16])),
            luid: Some(Luid([1; 8])),
            slice: true,
        };
        let text = serde_json::to_string(&key).unwrap();
        assert_eq!(serde_json::from_str::<PhysicalKey>(&text).unwrap(), key);
    }
}
