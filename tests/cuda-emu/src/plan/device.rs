//! Devices: what they are called, and what they have.

use std::fmt;

use super::size::parse_size;

/// How many devices there are when nothing is said.
pub(super) const USUAL_COUNT: usize = 2;

/// How every name begins, so that nobody takes such a device for a real one.
const PREFIX: &str = "Warploom emulated";

/// The name when none is given.
const USUAL_NAME: &str = "Warploom emulated GPU";

/// Memory when nothing is said.
const USUAL_MEMORY: u64 = 2 << 30;

/// Compute capability when nothing is said: all of NVRTC 12.0 to 13.x make code for it.
const USUAL_CAPABILITY: (u32, u32) = (8, 0);

/// A PCI domain that no machine numbers its cards in, so that a device of ours is never taken for
/// another API's view of a real card.
const DOMAIN: u32 = 0xe0e0;

/// Most devices of a machine.
const MOST: usize = 64;

/// One device.
///
/// `WARPLOOM_EMU_DEVICES` holds specifications separated by semicolons, each made of fields
/// separated by commas; what is left out has its usual value:
///
/// ```text
/// name=RTX 6000,memory=48GiB,cc=8.9,pci=0000:41:00.0,uuid=GPU-01234567-89ab-cdef-0123-456789abcdef
/// ```
///
/// `mig=MIG-…` makes it an instance of a divided card: `uuid` then is the card's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceSpec {
    /// Starts with `Warploom emulated`, whatever was asked for.
    pub name: String,
    /// Bytes.
    pub memory: u64,
    /// Compute capability, major and minor.
    pub capability: (u32, u32),
    /// Where it seems to be plugged in.
    pub pci: PciAddress,
    /// Of the card.
    pub uuid: Uuid,
    /// Of the instance, when the card is divided.
    pub mig: Option<Uuid>,
}

/// Domain, bus and device; the function is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PciAddress {
    /// Which host bridge.
    pub domain: u32,
    /// Which bus.
    pub bus: u8,
    /// Which slot.
    pub device: u8,
}

impl PciAddress {
    /// Reads `dddd:bb:dd.0`, `dddd:bb:dd` or `bb:dd.0`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_suffix(".0").unwrap_or(text);
        let mut parts = text.rsplit(':');
        let device = u8::from_str_radix(parts.next()?, 16).ok()?;
        let bus = u8::from_str_radix(parts.next()?, 16).ok()?;
        let domain = match parts.next() {
            Some(domain) => u32::from_str_radix(domain, 16).ok()?,
            None => 0,
        };
        let fits = parts.next().is_none() && device < 32 && domain <= 0xffff;
        fits.then_some(Self {
            domain,
            bus,
            device,
        })
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:04X}:{:02X}:{:02X}.0",
            self.domain, self.bus, self.device
        )
    }
}

/// Sixteen bytes that tell one card from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// Reads 32 hexadecimal digits with or without dashes.
    pub fn parse(text: &str) -> Option<Self> {
        let digits: Vec<u32> = text
            .chars()
            .filter(|c| *c != '-')
            .map(|c| c.to_digit(16))
            .collect::<Option<_>>()?;
        let mut bytes = [0; 16];
        if digits.len() != 2 * bytes.len() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            *byte = u8::try_from(pair[0] << 4 | pair[1]).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            let dash = if matches!(i, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

/// `count` devices as they are when nothing is said.
pub(super) fn usual(count: usize) -> Vec<DeviceSpec> {
    (0..count).map(usual_at).collect()
}

fn usual_at(index: usize) -> DeviceSpec {
    let number = u8::try_from(index).expect("a machine has at most 64 devices");
    let mut uuid = *b"Warploom-emu\0\0\0\0";
    uuid[15] = number;
    DeviceSpec {
        name: USUAL_NAME.to_owned(),
        memory: USUAL_MEMORY,
        capability: USUAL_CAPABILITY,
        pci: PciAddress {
            domain: DOMAIN,
            bus: number + 1,
            device: 0,
        },
        uuid: Uuid(uuid),
        mig: None,
    }
}

/// Reads a count or a list.
pub(super) fn parse_list(text: &str) -> Result<Vec<DeviceSpec>, String> {
    if let Ok(count) = text.parse::<usize>() {
        return if count <= MOST {
            Ok(usual(count))
        } else {
            Err(format!("at most {MOST} devices"))
        };
    }
    // A list may end in a semicolon.
    let text = text.strip_suffix(';').unwrap_or(text);
    let texts: Vec<&str> = text.split(';').collect();
    if texts.len() > MOST {
        return Err(format!("at most {MOST} devices"));
    }
    let mut devices = Vec::new();
    for (index, text) in texts.into_iter().enumerate() {
        let device = parse_one(index, text).map_err(|why| format!("device {index}: {why}"))?;
        devices.push(device);
    }
    check_distinct(&devices)?;
    Ok(devices)
}

fn parse_one(index: usize, text: &str) -> Result<DeviceSpec, String> {
    let mut device = usual_at(index);
    for field in text
        .split(',')
        .map(str::trim)
        .filter(|field| !field.is_empty())
    {
        let (key, value) = field
            .split_once('=')
            .ok_or_else(|| format!("`{field}` is no field; expected `key=value`"))?;
        set(&mut device, key.trim(), value.trim())?;
    }
    Ok(device)
}

fn set(device: &mut DeviceSpec, key: &str, value: &str) -> Result<(), String> {
    match key {
        "name" => device.name = honest_name(value)?,
        "memory" => device.memory = parse_size(value)?,
        "cc" => device.capability = parse_capability(value)?,
        "pci" => {
            device.pci = PciAddress::parse(value)
                .ok_or_else(|| format!("`{value}` is no PCI address such as `0000:41:00.0`"))?;
        }
        "uuid" => device.uuid = parse_uuid("GPU-", value)?,
        "mig" => device.mig = Some(parse_uuid("MIG-", value)?),
        _ => {
            return Err(format!(
                "no field is called `{key}`; there are name, memory, cc, pci, uuid and mig"
            ));
        }
    }
    Ok(())
}

/// The name, made to say what it names.
fn honest_name(asked: &str) -> Result<String, String> {
    if asked.len() > 200 || asked.contains('\0') {
        return Err("a name has at most 200 bytes, none of them zero".to_owned());
    }
    Ok(if asked.starts_with(PREFIX) {
        asked.to_owned()
    } else {
        format!("{PREFIX} {asked}")
    })
}

fn parse_capability(text: &str) -> Result<(u32, u32), String> {
    let parsed = text
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    parsed
        .filter(|(major, minor)| (3..100).contains(major) && *minor < 10)
        .ok_or_else(|| format!("`{text}` is no compute capability such as `8.0`"))
}

fn parse_uuid(prefix: &str, text: &str) -> Result<Uuid, String> {
    let digits = text.strip_prefix(prefix).unwrap_or(text);
    Uuid::parse(digits).ok_or_else(|| {
        format!("`{text}` is no UUID: expected `{prefix}` and 32 hexadecimal digits")
    })
}

/// Only instances of one divided card share its addresses.
fn check_distinct(devices: &[DeviceSpec]) -> Result<(), String> {
    for (i, a) in devices.iter().enumerate() {
        for (j, b) in devices.iter().enumerate().skip(i + 1) {
            let instances = a.mig.is_some() && b.mig.is_some() && a.mig != b.mig;
            if (a.uuid == b.uuid || a.pci == b.pci) && !instances {
                return Err(format!(
                    "devices {i} and {j} have the same uuid or PCI address; \
                     only instances with different `mig` may"
                ));
            }
        }
    }
    Ok(())
}
