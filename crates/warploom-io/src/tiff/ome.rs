//! OME-XML: what the planes of an OME-TIFF are, and which page is which.

use roxmltree::{Document, Node, ParsingOptions};
use warploom_core::{Axis, DType};

use crate::error::Fault;

/// One image of an OME-TIFF.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct OmeImage {
    pub(super) dtype: Option<DType>,
    pub(super) height: u64,
    pub(super) width: u64,
    /// Extents of time, channel and depth.
    pub(super) stack: [u64; 3],
    pub(super) channels: Vec<String>,
    pub(super) spacing: [Option<f64>; 3],
    /// The directory of each plane, in the order of time, channel and depth, the last fastest.
    pub(super) pages: Vec<usize>,
}

/// Is a description OME-XML?
pub(super) fn is_ome(text: &str) -> bool {
    let start = text.trim_start_matches('\u{feff}').trim_start();
    start.starts_with('<') && text.trim_end().ends_with("OME>")
}

/// The images of a file with so many directories. Images that are wholly in other files are left
/// out; one that is so in part is refused.
pub(super) fn parse(text: &str, directories: usize) -> Result<Vec<OmeImage>, Fault> {
    let options = ParsingOptions {
        allow_dtd: false,
        // An element has four characters at least.
        nodes_limit: u32::try_from(text.len() / 4 + 16).unwrap_or(u32::MAX),
        ..ParsingOptions::default()
    };
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let document = Document::parse_with_options(text, options)
        .map_err(|error| Fault::damaged(format!("its OME-XML makes no sense: {error}")))?;
    let root = document.root_element();
    if let Some(other) = child(root, "BinaryOnly") {
        let name = other.attribute("MetadataFile").unwrap_or("another file");
        return Err(Fault::Unread {
            what: format!("pixels whose description is in `{name}`"),
            instead: "save it as one OME-TIFF, with a description of its own".into(),
        });
    }
    let own = own_uuid(root);
    let mut images = Vec::new();
    let mut elsewhere = None;
    for image in children(root, "Image") {
        let Some(pixels) = child(image, "Pixels") else {
            continue;
        };
        match planes(pixels, own, directories)? {
            Planes::Here(pages) => images.push(describe(pixels, pages)?),
            Planes::Elsewhere(name) => elsewhere = Some(name),
        }
    }
    match (images.is_empty(), elsewhere) {
        (true, Some(name)) => Err(foreign(&name)),
        (true, None) => Err(Fault::damaged("its OME-XML describes no image")),
        _ => Ok(images),
    }
}

/// What this file is called in its own description. Where it does not say, and speaks of one file only,
/// that is this one.
fn own_uuid<'d>(root: Node<'d, 'd>) -> Option<&'d str> {
    if let Some(own) = root.attribute("UUID") {
        return Some(own.trim());
    }
    let mut named = root
        .descendants()
        .filter(|node| node.tag_name().name() == "UUID")
        .filter_map(|node| node.text().map(str::trim));
    let first = named.next()?;
    named.all(|uuid| uuid == first).then_some(first)
}

fn children<'d, 'i>(
    node: Node<'d, 'i>,
    name: &'static str,
) -> impl Iterator<Item = Node<'d, 'i>> + use<'d, 'i> {
    node.children()
        .filter(move |child| child.tag_name().name() == name)
}

fn child<'d, 'i>(node: Node<'d, 'i>, name: &'static str) -> Option<Node<'d, 'i>> {
    children(node, name).next()
}

fn number(node: Node<'_, '_>, name: &str) -> Result<Option<u64>, Fault> {
    node.attribute(name)
        .map(|text| text.trim().parse())
        .transpose()
        .map_err(|_| Fault::damaged(format!("its OME-XML has a {name} that is no number")))
}

fn size(pixels: Node<'_, '_>, name: &str) -> Result<u64, Fault> {
    match number(pixels, name)? {
        Some(size) if size > 0 => Ok(size),
        _ => Err(Fault::damaged(format!("its OME-XML has no {name}"))),
    }
}

/// Where the planes of an image are.
enum Planes {
    Here(Vec<usize>),
    /// In a file of this name.
    Elsewhere(String),
}

/// The order of an image's planes in the file.
struct Order {
    /// Extents of time, channel, depth.
    extents: [u64; 3],
    /// Which of those varies fastest, which then.
    axes: [usize; 3],
}

impl Order {
    fn of(pixels: Node<'_, '_>) -> Result<Self, Fault> {
        let extents = [
            size(pixels, "SizeT")?,
            size(pixels, "SizeC")?,
            size(pixels, "SizeZ")?,
        ];
        let text = pixels.attribute("DimensionOrder").unwrap_or("XYZCT");
        let axes: Option<Vec<usize>> = text
            .strip_prefix("XY")
            .unwrap_or_default()
            .chars()
            .map(|letter| "TCZ".find(letter))
            .collect();
        match axes.unwrap_or_default()[..] {
            [a, b, c] if a != b && b != c && a != c => Ok(Self {
                extents,
                axes: [a, b, c],
            }),
            _ => Err(Fault::damaged(format!(
                "its OME-XML has an unknown DimensionOrder `{text}`"
            ))),
        }
    }

    /// How many planes, if a file of so many directories can have as many.
    fn count(&self, directories: usize) -> Result<usize, Fault> {
        let count = self
            .extents
            .iter()
            .try_fold(1_u64, |count, extent| count.checked_mul(*extent));
        match count.and_then(|count| usize::try_from(count).ok()) {
            Some(count) if count <= directories => Ok(count),
            _ => {
                let [t, c, z] = self.extents;
                Err(Fault::Unread {
                    what: format!(
                        "fewer planes than it describes: {t} times, {c} channels and {z} depths, \
                         in {directories} pages"
                    ),
                    instead: "save it again with all planes in this file".into(),
                })
            }
        }
    }

    /// Where a plane is among all, in the order of time, channel and depth.
    fn place(&self, plane: [u64; 3]) -> Option<usize> {
        let [t, c, z] = plane;
        let [times, channels, depths] = self.extents;
        if t >= times || c >= channels || z >= depths {
            return None;
        }
        usize::try_from((t * channels + c) * depths + z).ok()
    }

    /// The plane after this one in the file.
    fn after(&self, plane: &mut [u64; 3]) {
        for axis in self.axes {
            plane[axis] += 1;
            if plane[axis] < self.extents[axis] {
                return;
            }
            plane[axis] = 0;
        }
    }
}

fn planes(pixels: Node<'_, '_>, own: Option<&str>, directories: usize) -> Result<Planes, Fault> {
    let order = Order::of(pixels)?;
    let (mut here, mut elsewhere) = (Vec::new(), None);
    let mut is_described = false;
    for part in children(pixels, "TiffData") {
        is_described = true;
        let is_ours = match child(part, "UUID") {
            None => true,
            Some(uuid) => own.is_some() && uuid.text().map(str::trim) == own,
        };
        if is_ours {
            here.push(part);
        } else {
            let name = child(part, "UUID").and_then(|uuid| uuid.attribute("FileName"));
            elsewhere = Some(name.unwrap_or("another file").to_owned());
        }
    }
    if let Some(name) = elsewhere {
        if here.is_empty() {
            return Ok(Planes::Elsewhere(name));
        }
        return Err(foreign(&name));
    }
    let count = order.count(directories)?;
    let mut pages = vec![None; count];
    if !is_described {
        return Ok(Planes::Here((0..count).collect()));
    }
    for part in here {
        let page = number(part, "IFD")?;
        let mut plane = [
            number(part, "FirstT")?.unwrap_or(0),
            number(part, "FirstC")?.unwrap_or(0),
            number(part, "FirstZ")?.unwrap_or(0),
        ];
        // As Bio-Formats and tifffile read it: without a count, a page that is named is one plane,
        // and otherwise all pages are meant.
        let planes = match (number(part, "PlaneCount")?, page) {
            (Some(planes), _) => planes,
            (None, Some(_)) => 1,
            (None, None) => count as u64,
        };
        let first = page.unwrap_or(0);
        for at in 0..planes.min(count as u64) {
            let Some(place) = order.place(plane) else {
                let what = format!("its OME-XML has a plane {plane:?} beyond its extent");
                return Err(Fault::damaged(what));
            };
            let page = first.checked_add(at).and_then(|p| usize::try_from(p).ok());
            let page = page.filter(|page| *page < directories);
            if page.is_none() {
                return Err(missing(&order, &[place], 1));
            }
            pages[place] = page;
            order.after(&mut plane);
        }
    }
    let lost: Vec<usize> = (0..count).filter(|at| pages[*at].is_none()).collect();
    if !lost.is_empty() {
        return Err(missing(&order, &lost, lost.len()));
    }
    Ok(Planes::Here(pages.into_iter().flatten().collect()))
}

fn missing(order: &Order, places: &[usize], count: usize) -> Fault {
    let [_, channels, depths] = order.extents;
    let some: Vec<String> = places
        .iter()
        .take(4)
        .map(|place| {
            let place = *place as u64;
            let (t, c, z) = (
                place / depths / channels,
                place / depths % channels,
                place % depths,
            );
            format!("time {t} channel {c} depth {z}")
        })
        .collect();
    let more = if count > some.len() { ", …" } else { "" };
    Fault::Unread {
        what: format!(
            "no page for {count} of the planes it describes: {}{more}",
            some.join(", ")
        ),
        instead: "save it again with all planes in this file".into(),
    }
}

fn foreign(name: &str) -> Fault {
    Fault::Unread {
        what: format!("a description of planes that are in `{name}`"),
        instead: "save each image as one OME-TIFF of its own; parts of one image in several files \
                  are not read"
            .into(),
    }
}

fn describe(pixels: Node<'_, '_>, pages: Vec<usize>) -> Result<OmeImage, Fault> {
    let dtype = pixels.attribute("Type").and_then(|name| {
        Some(match name {
            "int8" => DType::I8,
            "int16" => DType::I16,
            "int32" => DType::I32,
            "uint8" | "bit" => DType::U8,
            "uint16" => DType::U16,
            "uint32" => DType::U32,
            "float" => DType::F32,
            "double" => DType::F64,
            _ => return None,
        })
    });
    let stack = Order::of(pixels)?.extents;
    let mut channels: Vec<String> = children(pixels, "Channel")
        .map(|channel| channel.attribute("Name").unwrap_or_default().to_owned())
        .collect();
    if channels.len() as u64 != stack[1] || channels.iter().all(String::is_empty) {
        channels.clear();
    }
    let length = |axis: &str| {
        let value: f64 = pixels
            .attribute(format!("PhysicalSize{axis}").as_str())?
            .trim()
            .parse()
            .ok()?;
        let unit = pixels.attribute(format!("PhysicalSize{axis}Unit").as_str());
        let value = value * micrometres(unit.unwrap_or("µm"))?;
        (value.is_finite() && value > 0.0).then_some(value)
    };
    Ok(OmeImage {
        dtype,
        height: size(pixels, "SizeY")?,
        width: size(pixels, "SizeX")?,
        stack,
        channels,
        spacing: [length("Z"), length("Y"), length("X")],
        pages,
    })
}

/// A unit of length.
pub(crate) fn micrometres(unit: &str) -> Option<f64> {
    Some(match unit {
        "µm" | "μm" | "um" | "micron" | "microns" | "micrometer" | "micrometre" | "\\u00B5m" => {
            1.0
        }
        "nm" | "nanometer" => 1e-3,
        "Å" | "angstrom" => 1e-4,
        "mm" | "millimeter" => 1e3,
        "cm" | "centimeter" => 1e4,
        "m" | "meter" => 1e6,
        "inch" | "in" => 25_400.0,
        _ => return None,
    })
}

/// What can be written as OME-TIFF.
pub(super) fn type_name(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::U8 => "uint8",
        DType::U16 => "uint16",
        DType::U32 => "uint32",
        DType::I8 => "int8",
        DType::I16 => "int16",
        DType::I32 => "int32",
        DType::F32 => "float",
        DType::F64 => "double",
        _ => return None,
    })
}

/// The description of an image whose planes are in the order of its axes, one a page.
pub(super) fn text(header: &crate::Header, name: &str) -> Option<String> {
    use std::fmt::Write as _;

    let kind = type_name(header.dtype)?;
    let shape = &header.shape;
    let size = |axis| shape.extent(axis).unwrap_or(1);
    let order: String = order(shape.axes())?;
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><OME \
         xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"http://www.openmicroscopy.org/Schemas/OME/2016-06 \
         http://www.openmicroscopy.org/Schemas/OME/2016-06/ome.xsd\" Creator=\"Warploom\">\
         <Image ID=\"Image:0\" Name=\"{}\"><Pixels ID=\"Pixels:0\" DimensionOrder=\"{order}\" \
         Type=\"{kind}\" SizeX=\"{}\" SizeY=\"{}\" SizeZ=\"{}\" SizeC=\"{}\" SizeT=\"{}\"",
        escaped(name),
        size(Axis::X),
        size(Axis::Y),
        size(Axis::Z),
        size(Axis::C),
        size(Axis::T)
    );
    for (axis, length) in ["Z", "Y", "X"].iter().zip(header.spacing) {
        if let Some(length) = length {
            // Writing to a text cannot fail.
            let _ = write!(
                text,
                " PhysicalSize{axis}=\"{length}\" PhysicalSize{axis}Unit=\"µm\""
            );
        }
    }
    text.push('>');
    for channel in 0..size(Axis::C) {
        let _ = write!(
            text,
            "<Channel ID=\"Channel:0:{channel}\" SamplesPerPixel=\"1\""
        );
        let name = usize::try_from(channel)
            .ok()
            .and_then(|at| header.channels.get(at));
        if let Some(name) = name {
            let _ = write!(text, " Name=\"{}\"", escaped(name));
        }
        text.push_str("/>");
    }
    let planes = shape.elements() / (size(Axis::X) * size(Axis::Y)).max(1);
    let _ = write!(
        text,
        "<TiffData IFD=\"0\" PlaneCount=\"{planes}\"/></Pixels></Image></OME>"
    );
    Some(text)
}

/// The order of planes as OME says it, fastest first; `None` for axes that it does not know.
pub(super) fn order(axes: &[Axis]) -> Option<String> {
    let (stack, plane) = axes.split_at(axes.len().checked_sub(2)?);
    if plane != [Axis::Y, Axis::X] {
        return None;
    }
    let mut order = String::from("XY");
    for axis in stack.iter().rev() {
        order.push(match axis {
            Axis::T => 'T',
            Axis::C => 'C',
            Axis::Z => 'Z',
            _ => return None,
        });
    }
    for letter in ['Z', 'C', 'T'] {
        if !order.contains(letter) {
            order.push(letter);
        }
    }
    Some(order)
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML has no way to say the others.
            letter if letter < ' ' => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}
