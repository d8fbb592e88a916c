//! Sizes such as `512MiB`.

/// Reads a number of bytes: plain, or with `KiB`, `MiB` or `GiB`.
///
/// # Errors
/// When it is no such number, is zero, or has more than 62 bits.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let unit = units.iter().find(|(unit, _)| text.ends_with(unit));
    let (digits, shift) = unit.map_or((text, 0), |(unit, shift)| {
        (text[..text.len() - unit.len()].trim_end(), *shift)
    });
    let bytes = digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift));
    bytes
        .filter(|bytes| (1..1 << 62).contains(bytes))
        .ok_or_else(|| {
            format!("`{text}` is no size; expected bytes, or a number with KiB, MiB or GiB")
        })
}
