//! Formulas on whole numbers: they wrap, also where C would let a compiler do anything.

use warploom_core::DType;
use warploom_kernels::expr::{Ex, Ty};
use warploom_kernels::flow::{Flow, Number, ValueKind};

use super::case::{Case, image};
use super::devices::agree;

const EDGES: [i32; 9] = [
    i32::MIN,
    i32::MIN + 1,
    -65_536,
    -1,
    0,
    1,
    7,
    i32::MAX - 1,
    i32::MAX,
];

/// A formula of two numbers.
type Formula = for<'g> fn(Ex<'g>, Ex<'g>) -> Ex<'g>;

/// Every pair of edges through a formula, in one type of whole number.
fn pairs(name: &str, unsigned: bool, formula: Formula) -> Case {
    let dtype = if unsigned { DType::U32 } else { DType::I32 };
    let side = EDGES.len() as u64;
    let kind = image(dtype, [1, side, side]);
    let mut flow = Flow::new();
    let inputs = [0, 1].map(|_| flow.input(ValueKind::Image(kind)));
    let output = flow.map(&inputs, inputs[0], dtype, &[], |graph, images, _| {
        let [a, b] = [0, 1].map(|at| graph.pixel(images[at]));
        formula(a, b)
    });
    flow.output(output);
    let (rows, columns): (Vec<i32>, Vec<i32>) =
        EDGES.iter().flat_map(|a| EDGES.map(|b| (*a, b))).unzip();
    let case = Case::new(format!("{name} of {dtype}"), flow);
    case.with_input(0, &rows).with_input(1, &columns)
}

#[test]
fn whole_numbers_wrap() {
    let formulas: [(&str, Formula); 10] = [
        ("sum", |a, b| a + b),
        ("difference", |a, b| a - b),
        ("product", |a, b| a * b),
        ("quotient", |a, b| a / b),
        ("remainder", |a, b| a % b),
        ("quotient by seven", |a, _| a / 7),
        ("opposite", |a, _| -a),
        // A compiler that takes overflow for impossible knows this one to be 1.
        ("next is larger", |a, _| (a + 1).gt(a).cast(a.ty())),
        ("twice is even", |a, b| (a * 2) / 2 + (b + b) % 2),
        ("difference of sums", |a, b| (a + b) - (b - a) * 3),
    ];
    let magnitude: Formula = |a, b| a.abs() - b.abs();
    let signed = formulas.into_iter().chain([("magnitude", magnitude)]);
    let signed = signed.map(|(name, formula)| pairs(name, false, formula));
    // Without constants, which are of the signed type.
    let unsigned: [(&str, Formula); 5] = [
        ("sum", |a, b| a + b),
        ("difference", |a, b| a - b),
        ("product", |a, b| a * b),
        ("quotient", |a, b| a / b),
        ("remainder", |a, b| a % b),
    ];
    let unsigned = unsigned.map(|(name, formula)| pairs(name, true, formula));
    agree(signed.chain(unsigned));
}

#[test]
fn sums_of_places_wrap() {
    let mut flow = Flow::new();
    let kind = image(DType::I32, [1, 3, 70]);
    let input = flow.input(ValueKind::Image(kind));
    let output = flow.map(&[input], input, DType::I32, &[], |graph, images, _| {
        let far = graph.coords()[2] * 1_000_003 * 997;
        let next = (far + i32::MAX).gt(far).cast(Ty::I32);
        far * far + graph.pixel(images[0]) + next
    });
    flow.output(output);
    agree([Case::new("places", flow)]);
}

/// Also on a device whose language has no such numbers.
#[test]
fn numbers_of_double_precision_are_taken() {
    let numbers = [4_000_000_000.25, 1.0 / 3.0, f64::INFINITY].map(Number::F64);
    let cases = [DType::U32, DType::F64].map(|dtype| {
        let mut flow = Flow::new();
        let input = flow.input(ValueKind::Image(image(dtype, [1, 3, 70])));
        let output = flow.map(&[input], input, DType::F32, &numbers, |graph, images, n| {
            let pixel = graph.pixel(images[0]).cast(Ty::F64);
            // What is left are digits that single precision does not have.
            ((pixel + n[0] - 4_000_000_000.0) * n[1]).min(n[2])
        });
        flow.output(output);
        Case::new(format!("numbers beside {dtype}"), flow)
    });
    agree(cases);
}
