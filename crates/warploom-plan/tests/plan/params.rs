//! No parameter of an operation is dead: for each there are two values that compute something else.

use std::collections::BTreeSet;

use warploom_core::DType;
use warploom_kernels::ImageType;
use warploom_kernels::lower::lower;
use warploom_kernels::op::{Fallback, Given, OpCall, OpInfo, ParamInfo, ParamKind, ops};

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

/// What is computed with these parameters, in all detail.
fn computed(op: &OpInfo, given: &[String], images: &[ImageType]) -> Option<String> {
    let given = Given::parse(given).ok()?;
    let call = OpCall::new(op.name, &given, images).ok()?;
    Some(format!("{:?}", lower(&call)))
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

/// Do some two values of a parameter, all else alike, compute something else?
fn is_alive(op: &OpInfo, param: &ParamInfo, images: &[ImageType]) -> bool {
    others(op, param.name).into_iter().any(|others| {
        let outcomes = values(&param.kind).into_iter().filter_map(|value| {
            let own = vec![format!("{}={value}", param.name)];
            computed(op, &[others.clone(), own].concat(), images)
        });
        outcomes.collect::<BTreeSet<String>>().len() > 1
    })
}

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
                dead.push(format!("{} of {}", param.name, op.name));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:?} of {tried}");
    assert!(tried > 100, "{tried}");
}
