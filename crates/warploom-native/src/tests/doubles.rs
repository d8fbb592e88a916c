//! Numbers of 64 bits.

use super::super::{Bin, BinD, Element, Half, Ins, Kind, Routine, Un, UnD, Value};
use super::{bytes, put, row, widths, words};
use proptest::prelude::*;

const UNARY: [UnD; 6] = [
    UnD::Neg,
    UnD::Abs,
    UnD::Sqrt,
    UnD::Floor,
    UnD::Ceil,
    UnD::Round,
];

const BINARY: [BinD; 6] = [
    BinD::Add,
    BinD::Sub,
    BinD::Mul,
    BinD::Div,
    BinD::Min,
    BinD::Max,
];

const TESTS: [BinD; 4] = [BinD::Lt, BinD::Le, BinD::Eq, BinD::Ne];

fn unary(op: UnD, a: f64) -> f64 {
    match op {
        UnD::Neg => -a,
        UnD::Abs => a.abs(),
        UnD::Sqrt => a.sqrt(),
        UnD::Floor => a.floor(),
        UnD::Ceil => a.ceil(),
        UnD::Round => a.round_ties_even(),
        UnD::IsNan => unreachable!("it gives no number"),
    }
}

fn binary(op: BinD, a: f64, b: f64) -> f64 {
    match op {
        BinD::Add => a + b,
        BinD::Sub => a - b,
        BinD::Mul => a * b,
        BinD::Div => a / b,
        BinD::Min => {
            if b < a {
                b
            } else {
                a
            }
        }
        BinD::Max => {
            if b > a {
                b
            } else {
                a
            }
        }
        _ => unreachable!("it gives no number"),
    }
}

fn test(op: BinD, a: f64, b: f64) -> bool {
    match op {
        BinD::Lt => a < b,
        BinD::Le => a <= b,
        BinD::Eq => a == b,
        _ => a != b,
    }
}

/// A program in the making, with what every value is at every pixel.
struct Program {
    code: Vec<Ins>,
    wide: Vec<([Value; 2], Vec<f64>)>,
    narrow: Vec<(Value, Vec<u32>)>,
}

/// Numbers that every program has.
const NUMBERS: [f64; 4] = [0.0, 4_294_967_295.0, -2_147_483_648.0, 2_147_483_647.0];

impl Program {
    fn push(&mut self, ins: Ins) -> Value {
        self.code.push(ins);
        (self.code.len() - 1) as Value
    }

    /// One instruction for each half.
    fn halves(&mut self, ins: impl Fn(usize, Half) -> Ins) -> [Value; 2] {
        [(0, Half::Low), (1, Half::High)].map(|(at, half)| self.push(ins(at, half)))
    }

    fn new(doubles: &[Vec<f64>], floats: &[Vec<u32>]) -> Self {
        let mut program = Self {
            code: Vec::new(),
            wide: Vec::new(),
            narrow: Vec::new(),
        };
        for (row, data) in (0..).zip(doubles) {
            let values = program.halves(|_, half| Ins::Doubles { row, half });
            program.wide.push((values, data.clone()));
        }
        for (at, data) in (doubles.len() as u8..).zip(floats) {
            let value = program.push(row(at));
            program.narrow.push((value, data.clone()));
        }
        for (number, value) in (0..).zip(NUMBERS) {
            let made = program.push(Ins::Number(number));
            let data = vec![value; doubles[0].len()];
            program.wide.push(([made, made], data));
        }
        program
    }

    /// `a` kept between two numbers, as casts to whole numbers demand.
    fn within(&mut self, a: usize, low: usize, high: usize) -> [Value; 2] {
        let [of, least, most] = [a, low, high].map(|at| self.wide[at].0);
        let up = self.halves(|h, _| Ins::BinD(BinD::Max, least[h], of[h]));
        self.halves(|h, _| Ins::BinD(BinD::Min, up[h], most[h]))
    }

    fn step(&mut self, pick: u64, numbers: usize) {
        let [a, b, c] = [8, 24, 40].map(|shift| (pick >> shift) as usize % self.wide.len());
        let [x, y, z] = [a, b, c].map(|at| self.wide[at].clone());
        let ops = (pick >> 56) as usize;
        let each = |make: &dyn Fn(f64, f64, f64) -> f64| -> Vec<f64> {
            (0..x.1.len())
                .map(|i| make(x.1[i], y.1[i], z.1[i]))
                .collect()
        };
        let (values, data) = match pick % 8 {
            0 => {
                let op = UNARY[ops % UNARY.len()];
                let values = self.halves(|h, _| Ins::UnD(op, x.0[h]));
                (values, each(&|a, _, _| unary(op, a)))
            }
            1 | 2 => {
                let op = BINARY[ops % BINARY.len()];
                let values = self.halves(|h, _| Ins::BinD(op, x.0[h], y.0[h]));
                (values, each(&|a, b, _| binary(op, a, b)))
            }
            3 => {
                let values = self.halves(|h, _| Ins::FmaD(x.0[h], y.0[h], z.0[h]));
                (values, each(&|a, b, c| a.mul_add(b, c)))
            }
            4 => {
                // Through a truth of 32 bits and back.
                let op = TESTS[ops % TESTS.len()];
                let truth = self.halves(|h, _| Ins::BinD(op, x.0[h], y.0[h]));
                let to = Kind::Truth;
                let [low, high] = truth;
                let value = self.push(Ins::Narrow { to, low, high });
                let data = x.1.iter().zip(&y.1);
                let data = data.map(|(a, b)| if test(op, *a, *b) { u32::MAX } else { 0 });
                self.narrow.push((value, data.collect()));
                let from = Kind::Truth;
                let wide = self.halves(|_, half| Ins::Widen { from, half, value });
                let values = self.halves(|h, _| Ins::Select(wide[h], z.0[h], x.0[h]));
                let chosen = each(&|a, b, c| if test(op, a, b) { c } else { a });
                (values, chosen)
            }
            5 => {
                let at = b % self.narrow.len();
                let (value, data) = self.narrow[at].clone();
                let (from, data): (_, Vec<f64>) = match ops % 3 {
                    0 => {
                        let real = data.iter().map(|bits| f32::from_bits(*bits).into());
                        (Kind::Float, real.collect())
                    }
                    1 => {
                        let whole = data.iter().map(|bits| bits.cast_signed().into());
                        (Kind::Int, whole.collect())
                    }
                    _ => (Kind::Unsigned, data.into_iter().map(f64::from).collect()),
                };
                let values = self.halves(|_, half| Ins::Widen { from, half, value });
                (values, data)
            }
            6 => {
                let [low, high] = x.0;
                let to = Kind::Float;
                let value = self.push(Ins::Narrow { to, low, high });
                let data = x.1.iter().map(|v| (*v as f32).to_bits()).collect();
                self.narrow.push((value, data));
                return;
            }
            _ => {
                let (to, least) = if ops.is_multiple_of(2) {
                    (Kind::Int, 2)
                } else {
                    (Kind::Unsigned, 0)
                };
                let most = if to == Kind::Int { 3 } else { 1 };
                let [low, high] = self.within(a, numbers + least, numbers + most);
                let value = self.push(Ins::Narrow { to, low, high });
                let whole = |v: &f64| {
                    if to == Kind::Int {
                        // The least comes of what is not a number, which loses against it.
                        if v.is_nan() {
                            i32::MIN.cast_unsigned()
                        } else {
                            (*v as i32).cast_unsigned()
                        }
                    } else {
                        *v as u32
                    }
                };
                self.narrow.push((value, x.1.iter().map(whole).collect()));
                return;
            }
        };
        // Which of several NaNs is the result, no two machines agree on.
        if data.iter().all(|v| !v.is_nan()) {
            self.wide.push((values, data));
        }
    }
}

fn number() -> impl Strategy<Value = f64> {
    let odd = vec![
        0.0,
        -0.0,
        0.5,
        -1.5,
        2.5,
        1e300,
        -1e-310,
        2_147_483_647.5,
        4_294_967_295.9,
        -2_147_483_648.0,
        f64::INFINITY,
    ];
    prop_oneof![
        any::<u64>()
            .prop_map(f64::from_bits)
            .prop_filter("a number", |v| !v.is_nan()),
        (-400_i32..400).prop_map(|v| f64::from(v) / 8.0),
        prop::sample::select(odd),
    ]
}

fn run(routine: &Routine, rows: &[Vec<u8>], sizes: &[usize], count: usize) -> Vec<Vec<u8>> {
    let mut memory = vec![f32::NAN; routine.memory()];
    routine.start(&mut memory);
    for (number, value) in (0..).zip(NUMBERS).take(usize::from(routine.numbers())) {
        routine.set_wide_number(&mut memory, number, value.to_bits());
    }
    let mut results: Vec<Vec<u8>> = sizes.iter().map(|size| vec![0xaa; count * size]).collect();
    let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
    let mut outs: Vec<&mut [u8]> = results.iter_mut().map(Vec::as_mut_slice).collect();
    routine.run(&mut memory, &rows, &mut outs, 0, count);
    super::past(routine, &mut memory, &rows, &results, 0, count);
    results
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_value_of_a_random_program_is_right(
        picks in prop::collection::vec(any::<u64>(), 1..60),
        data in prop::collection::vec(number(), 32 * 3),
        narrow in prop::collection::vec(super::bits(), 32 * 2),
    ) {
        let doubles: Vec<Vec<f64>> = data.chunks(32).map(<[f64]>::to_vec).collect();
        let floats: Vec<Vec<u32>> = narrow.chunks(32).map(<[u32]>::to_vec).collect();
        let mut program = Program::new(&doubles, &floats);
        let numbers = doubles.len();
        for &pick in &picks {
            program.step(pick, numbers);
        }
        // The last of each, and one of each from anywhere.
        let anywhere = picks[0] as usize;
        let wide = [program.wide.len() - 1, anywhere % program.wide.len()];
        let narrow = [program.narrow.len() - 1, anywhere % program.narrow.len()];
        for (out, at) in (0..).zip(wide) {
            let values = program.wide[at].0;
            program.halves(|h, half| Ins::PutDoubles { out, half, value: values[h] });
        }
        for (out, at) in (2..).zip(narrow) {
            let value = program.narrow[at].0;
            program.push(put(out, value));
        }
        let rows: Vec<Vec<u8>> = doubles
            .iter()
            .map(|row| row.iter().flat_map(|v| v.to_ne_bytes()).collect())
            .chain(floats.iter().map(|row| bytes(row)))
            .collect();
        for width in widths() {
            let routine = Routine::new(&program.code, width).expect("code can be made here");
            let outs = run(&routine, &rows, &[8, 8, 4, 4], 32);
            for (out, at) in outs.iter().zip(wide) {
                let found: Vec<u64> = out.chunks(8).map(|v| u64::from_ne_bytes(v.try_into().unwrap())).collect();
                let wanted: Vec<u64> = program.wide[at].1.iter().map(|v| v.to_bits()).collect();
                prop_assert_eq!(found, wanted, "{:?} {}", width, at);
            }
            for (out, at) in outs[2..].iter().zip(narrow) {
                prop_assert_eq!(&words(out), &program.narrow[at].1, "{:?} {}", width, at);
            }
        }
    }
}

#[test]
fn what_is_no_number_is_found_and_compared() {
    let data = [f64::NAN, 1.0, -0.0, 0.0, f64::INFINITY, -1.0, 2.0, f64::NAN];
    let doubles: Vec<u8> = data
        .iter()
        .cycle()
        .take(16)
        .flat_map(|v| v.to_ne_bytes())
        .collect();
    let other: Vec<u8> = data
        .iter()
        .cycle()
        .skip(1)
        .take(16)
        .flat_map(|v| v.to_ne_bytes())
        .collect();
    let both = |row: u8| [Half::Low, Half::High].map(|half| Ins::Doubles { row, half });
    let to = Kind::Truth;
    for width in widths() {
        let mut code: Vec<Ins> = both(0).into_iter().chain(both(1)).collect();
        code.extend([Ins::UnD(UnD::IsNan, 0), Ins::UnD(UnD::IsNan, 1)]);
        code.extend([
            Ins::Narrow {
                to,
                low: 4,
                high: 5,
            },
            put(0, 6),
        ]);
        for (out, op) in (1..).zip(TESTS) {
            let first = code.len() as Value;
            code.extend([Ins::BinD(op, 0, 2), Ins::BinD(op, 1, 3)]);
            code.push(Ins::Narrow {
                to,
                low: first,
                high: first + 1,
            });
            // Of both kinds, as the rest of a program has it.
            code.push(Ins::Un(Un::TruthToInt, first + 2));
            code.push(Ins::Bin(Bin::AddI, first + 3, first + 3));
            code.push(put(out, first + 4));
        }
        let routine = Routine::new(&code, width).unwrap();
        let outs = run(&routine, &[doubles.clone(), other.clone()], &[4; 5], 16);
        for i in 0..16 {
            let (a, b) = (data[i % 8], data[(i + 1) % 8]);
            assert_eq!(words(&outs[0])[i] == u32::MAX, a.is_nan());
            for (out, op) in outs[1..].iter().zip(TESTS) {
                assert_eq!(
                    words(out)[i],
                    2 * u32::from(test(op, a, b)),
                    "{op:?} {a} {b}"
                );
            }
        }
    }
}

#[test]
fn whole_rows_of_doubles_are_refused() {
    let element = Element::Double;
    for width in widths() {
        let code = [Ins::Row { row: 0, element }, put(0, 0)];
        assert!(Routine::new(&code, width).is_none());
        let code = [
            row(0),
            Ins::Put {
                out: 0,
                element,
                value: 0,
            },
        ];
        assert!(Routine::new(&code, width).is_none());
    }
}
