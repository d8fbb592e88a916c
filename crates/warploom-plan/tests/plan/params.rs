//! No parameter of an operation is dead: for each there are two values that give something else, in
//! what comes out or in its type.

use warploom_core::DType;
use warploom_kernels::ImageType;
use warploom_kernels::lower::lower;
use warploom_kernels::op::{Fallback, Given, OpCall, OpInfo, ParamInfo, ParamKind, find, ops};

use crate::judge::engine;

/// Values to try, as people write them.
fn values(kind: &ParamKind) -> Vec<String> {
    let texts: &[&str] = match kind {
        ParamKind::Number(_) => &["0.5", "1", "2", "3", "0.25", "10", "-1", "90", "0"],
        ParamKind::Integer(_) => &["1", "2", "3", "0", "5", "8", "4", "16"],
        ParamKind::PerAxis(_) => &["1", "2", "3", "0.5", "4", "0", "1,1"],
        ParamKind::Choice(words) => words,
        ParamKind::DType => &["f32", "u8", "u16", "i32"],
        ParamKind::Numbers(..) => &["0.1,0.9", "1,2", "0.5", "25,50", "1,2,3", "1,2,1", "2,1,0"],
        ParamKind::Matrix => &[
            "1,0,0,0,1,0",
            "0,1,0,1,0,0",
            "1,2,1;2,4,2;1,2,1",
            "1,0;0,1",
            "2,0;0,1",
            "1,0,0;0,1,0",
            "1,0,2;0,1,0",
            "1,0,0;0,1,0;0,0,1",
            "1,0,0,0,1,0,0,0,1",
        ],
        ParamKind::Flag => &["true", "false"],
    };
    texts.iter().map(ToString::to_string).collect()
}

/// Images an operation of so many might take.
fn images(count: usize) -> Vec<Vec<ImageType>> {
    let plane = |dtype| ImageType::plane(dtype, 24, 32);
    let stack = |dtype| ImageType::stack(dtype, 8, 24, 32);
    let mut sets: Vec<Vec<ImageType>> = Vec::new();
    for dtype in [DType::U16, DType::F32, DType::U8, DType::U32] {
        sets.push(vec![plane(dtype); count]);
        sets.push(vec![stack(dtype); count]);
    }
    if count == 2 {
        sets.push(vec![plane(DType::U32), plane(DType::U16)]);
        sets.push(vec![plane(DType::U16), ImageType::plane(DType::F32, 5, 5)]);
        sets.push(vec![
            stack(DType::F32),
            ImageType::stack(DType::F32, 3, 5, 5),
        ]);
    }
    sets
}

/// What is in images: one of them shows what another hides.
#[derive(Clone, Copy, Debug)]
enum Content {
    /// Bright squares on uneven ground.
    Squares,
    /// Few pixels that are set, some beyond what a byte holds.
    Specks,
    /// Anything.
    Noise,
}

/// Pixels of an image, no two of which are alike.
fn pixels(image: ImageType, content: Content, seed: u64) -> Vec<u8> {
    let [_, height, width] = image.dims;
    let mut state = seed;
    let mut bytes = Vec::new();
    for at in 0..image.pixels() {
        let (y, x) = (at / width % height, at % width);
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let value = match content {
            Content::Squares if y % 12 < 7 && x % 10 < 6 => 40 + (state >> 58),
            Content::Squares => state >> 61,
            Content::Specks if (state >> 40).is_multiple_of(32) => 1 + (state >> 55),
            Content::Specks => 0,
            Content::Noise => state >> 56,
        };
        let part = if value > 0 { (state >> 33) % 4 } else { 0 };
        let (whole, real) = (
            u32::try_from(value).unwrap(),
            value as f32 + part as f32 / 4.0,
        );
        match image.dtype {
            DType::U8 => bytes.push(u8::try_from(whole).unwrap_or(u8::MAX)),
            DType::U16 => bytes.extend(u16::try_from(whole).unwrap().to_le_bytes()),
            DType::U32 => bytes.extend(whole.to_le_bytes()),
            DType::F32 => bytes.extend(real.to_le_bytes()),
            other => panic!("{other}"),
        }
    }
    bytes
}

/// What comes out with these parameters: of which kind, and every byte.
fn computed(
    op: &OpInfo,
    given: &[String],
    images: &[ImageType],
    content: Content,
) -> Option<(String, Vec<Vec<u8>>)> {
    let given = Given::parse(given).ok()?;
    let call = OpCall::new(op.name, &given, images).ok()?;
    let inputs = (1..).zip(images);
    let inputs = inputs.map(|(seed, image)| pixels(*image, content, seed));
    let inputs: Vec<Vec<u8>> = inputs.collect();
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let results = engine(&lower(&call), &inputs);
    Some((call.output().to_string(), results))
}

/// Values of the parameters that have none by themselves, but for one.
fn others(op: &OpInfo, but: &str) -> Vec<Vec<String>> {
    let needed = op
        .params()
        .filter(|param| param.fallback == Fallback::Required && param.name != but);
    needed.fold(vec![Vec::new()], |sets, param: &ParamInfo| {
        let more = |set: &Vec<String>| {
            let values = values(&param.kind).into_iter();
            let written = values.map(|value| format!("{}={value}", param.name));
            let sets = written.map(|text| [set.clone(), vec![text]].concat());
            sets.collect::<Vec<_>>()
        };
        sets.iter().flat_map(more).collect()
    })
}

/// Do some two values of a parameter, all else alike, give something else?
fn is_alive(op: &OpInfo, param: &ParamInfo, images: &[ImageType]) -> bool {
    let all = [Content::Squares, Content::Specks, Content::Noise];
    let differs = |others: &Vec<String>, content: Content| {
        let outcomes = values(&param.kind).into_iter().filter_map(|value| {
            let own = vec![format!("{}={value}", param.name)];
            let given = [others.clone(), own].concat();
            computed(op, &given, images, content)
        });
        let mut outcomes = outcomes.peekable();
        let first = outcomes.peek().cloned();
        outcomes.any(|outcome| Some(outcome) != first)
    };
    let mut others = others(op, param.name).into_iter();
    others.any(|others| all.into_iter().any(|content| differs(&others, content)))
}

/// Parameters that are accepted so that all thresholds can be written alike, of methods that use no
/// histogram; their pages say so.
const ACCEPTED: [(&str, &str); 2] = [("threshold_li", "bins"), ("threshold_mean", "bins")];

#[test]
fn no_parameter_is_dead() {
    let mut tried = 0;
    let mut dead = Vec::new();
    for op in ops() {
        for param in op.params() {
            tried += 1;
            // Some operations do without their last image.
            let most = op.inputs.len();
            let counts = [most, most.saturating_sub(1).max(1)];
            let mut sets = counts.into_iter().flat_map(images);
            if !sets.any(|images| is_alive(op, param, &images)) {
                dead.push((op.name, param.name));
            }
        }
    }
    assert_eq!(dead, ACCEPTED, "of {tried}");
    assert!(tried > 100, "{tried}");
    for (op, name) in ACCEPTED {
        let param = find(op).unwrap().param(name).unwrap();
        assert!(param.doc.contains("changes nothing"), "{}", param.doc);
    }
}
