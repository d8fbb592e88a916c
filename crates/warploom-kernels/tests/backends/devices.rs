//! Cases on all devices of the process.

use warploom_kernels::program::{Loader, Program};

use super::case::Case;
use super::compare::{Rule, numbers, same};
use super::rig::Rig;

/// The results of a case on a device.
fn results(loader: &Loader, case: &Case, host: bool) -> Result<Vec<Vec<u8>>, String> {
    let device = loader.device();
    let program = Program::new(&case.flow, device.info());
    let detours = program.detours();
    if !host && !detours.is_empty() {
        return Err(format!("the host would do {detours:?}"));
    }
    let inputs: Vec<&[u8]> = case.inputs.iter().map(Vec::as_slice).collect();
    let ready = loader.load(program).map_err(|error| error.to_string())?;
    ready
        .run(device, &inputs)
        .map_err(|error| error.to_string())
}

/// What is right: by definition where that was computed, otherwise what the CPU says.
fn expected(cpu: &Loader, case: &Case) -> Result<Vec<Vec<f64>>, String> {
    if let Some(known) = &case.expected {
        let known = vec![known.clone()];
        return check(cpu, case, &known, Rule::Numbers).map(|()| known);
    }
    let bytes = results(cpu, case, true)?;
    let outputs = case.flow.outputs().iter().zip(bytes);
    let outputs = outputs.map(|(id, bytes)| numbers(case.flow.kind(*id).dtype(), &bytes));
    Ok(outputs.collect())
}

/// Runs every case everywhere, and fails with all that went wrong.
pub(crate) fn agree(cases: impl IntoIterator<Item = Case>) {
    let cases: Vec<Case> = cases.into_iter().collect();
    let rig = Rig::take();
    let mut complaints = Vec::new();
    let mut right: Vec<(&Case, Vec<Vec<f64>>)> = Vec::new();
    for case in &cases {
        match expected(&rig.cpu, case) {
            Ok(numbers) => right.push((case, numbers)),
            Err(why) => complaints.push(format!("cpu: {}: {why}", case.name)),
        }
    }
    for other in &rig.others {
        let (id, before) = (other.loader.device().info().id, other.loader.compiled());
        let some = other.share(right.len());
        let (mut wrong, mut left_out) = (0, 0);
        for at in &some {
            let (case, expected) = &right[*at];
            let rule = match other.rule {
                Rule::Ulps(_) if case.strict => {
                    left_out += 1;
                    continue;
                }
                Rule::Ulps(_) => Rule::Ulps(case.ulps),
                rule => rule.of(&case.flow),
            };
            if let Err(why) = check(&other.loader, case, expected, rule) {
                wrong += 1;
                complaints.push(format!("{id}: {}: {why}", case.name));
            }
        }
        let twin = match &other.twin {
            Some(twin) => format!(", few because it compiles as {twin} does"),
            None if left_out > 0 => ", the others only where the same bits are promised".into(),
            None => String::new(),
        };
        println!(
            "{id} ({}): {} of {} cases{twin}, {wrong} wrong, {} new kernels",
            other.loader.device().info().name,
            some.len() - left_out,
            cases.len(),
            other.loader.compiled() - before
        );
    }
    let shown: Vec<&str> = complaints.iter().take(12).map(String::as_str).collect();
    assert!(
        complaints.is_empty(),
        "{} wrong:\n{}",
        complaints.len(),
        shown.join("\n")
    );
}

fn check(loader: &Loader, case: &Case, expected: &[Vec<f64>], rule: Rule) -> Result<(), String> {
    let got = results(loader, case, case.host)?;
    let flow = &case.flow;
    for ((id, want), got) in flow.outputs().iter().zip(expected).zip(&got) {
        same(rule, flow.kind(*id).dtype(), want, got)?;
    }
    Ok(())
}
