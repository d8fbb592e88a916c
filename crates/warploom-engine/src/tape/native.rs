//! A tape as machine code.

use std::ops::Range;

use warploom_core::DType;
use warploom_flow::Boundary;
use warploom_flow::expr::{Bin, Dag, Datum, Id, Node, Ty, Un};
use warploom_native as native;
use warploom_native::{BinD, Element, Half, Ins, Kind, Routine, UnD, Value, Width};

use super::super::lanes::Level;
use super::bytes::Bytes;
use super::row::{RowIn, RowOut};
use super::{Read, compile};

/// Rows that are handed over without asking for memory.
const MOST: usize = 48;
/// Outputs likewise; no map has more.
const MOST_OUT: usize = super::super::rows::MOST;

/// A number of the routine that is the same for all pixels of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Number {
    /// A node that is the same for all pixels.
    Node(Id),
    /// These bits.
    Bits(u32),
    /// Where the row is, along z or y.
    Coord(u8),
}

/// A tape's expression as a routine.
#[derive(Debug)]
pub(super) struct Native {
    routine: Routine,
    numbers: Vec<Number>,
    /// Pixels in a lane.
    pixels: usize,
}

/// The vectors of an instruction set that routines are made for.
///
/// Compiled code takes all of AVX-512 that Ice Lake has; routines do with what Skylake has of it. So where the best for
/// compiled code is AVX2, routines can still be wider.
pub(crate) fn width(level: Level) -> Option<Width> {
    #[cfg(target_arch = "x86_64")]
    match level {
        Level::Avx512(_) => return Some(Width::Bits512),
        Level::Avx2(_) if Level::new().as_avx512().is_none() => return Width::best(),
        Level::Avx2(_) => return Some(Width::Bits256),
        _ => {}
    }
    let _ = level;
    None
}

impl Native {
    /// The routine of an expression; `None` when it divides whole numbers, or the machine cannot have
    /// one.
    pub(super) fn new(dag: &Dag, reads: &[Read], ahead: &[Read], level: Level) -> Option<Self> {
        let width = width(level)?;
        let room = MOST.checked_sub(reads.len() + dag.outputs().len())?;
        let mut maker = Maker::new(dag, reads);
        for (out, output) in (0..).zip(dag.outputs()) {
            let [value, high] = maker.value(output.id)?;
            if output.dtype == DType::F64 {
                for (half, value) in [(Half::Low, value), (Half::High, high)] {
                    maker.code.push(Ins::PutDoubles { out, half, value });
                }
                continue;
            }
            let element = element(output.dtype)?;
            maker.code.push(Ins::Put {
                out,
                element,
                value,
            });
        }
        // Nothing is lost without them.
        for (row, read) in (reads.len()..).zip(ahead.iter().take(room)) {
            let (row, element) = (u8::try_from(row).ok()?, element(dag.inputs()[read.image]));
            // Of smaller elements a line has several vectors.
            if let Some(element @ Element::Word) = element {
                maker.code.push(Ins::Soon { row, element });
            }
        }
        Some(Self {
            routine: Routine::new(&maker.code, width)?,
            numbers: maker.numbers,
            pixels: 1,
        })
    }

    /// The routine of an expression of bytes, four of them in a lane.
    pub(super) fn of_bytes(bytes: &Bytes, rows: usize, level: Level) -> Option<Self> {
        let (code, numbers) = bytes.routine(rows)?;
        let writes = code.iter().filter(|ins| matches!(ins, Ins::Put { .. }));
        if rows + writes.count() > MOST {
            return None;
        }
        Some(Self {
            routine: Routine::new(&code, width(level)?)?,
            numbers: numbers.into_iter().map(Number::Bits).collect(),
            pixels: 4,
        })
    }

    /// Pixels it computes at a time.
    fn vector(&self) -> usize {
        self.routine.lanes() * self.pixels
    }

    /// Does a row of this width have a vector in it?
    pub(super) fn fits(&self, width: usize) -> bool {
        width >= self.vector()
    }

    /// Words of memory it needs.
    pub(super) fn memory(&self) -> usize {
        self.routine.memory()
    }

    /// Spreads what is the same for all pixels.
    pub(super) fn prepare(&self, memory: &mut [f32], values: &[Option<Datum>]) {
        self.routine.start(memory);
        for (at, number) in (0..).zip(&self.numbers) {
            if let Number::Bits(bits) = number {
                self.routine.set_number(memory, at, *bits);
            } else if let Number::Node(id) = number {
                let value = values[*id as usize].expect("it is the same for all pixels");
                let bits = match value {
                    Datum::Bool(v) => {
                        if v {
                            u32::MAX
                        } else {
                            0
                        }
                    }
                    Datum::I32(v) => v.cast_unsigned(),
                    Datum::U32(v) => v,
                    Datum::F32(v) => v.to_bits(),
                    Datum::F64(v) => {
                        self.routine.set_wide_number(memory, at, v.to_bits());
                        continue;
                    }
                };
                self.routine.set_number(memory, at, bits);
            }
        }
    }

    /// Computes one row of every output.
    pub(super) fn row(
        &self,
        memory: &mut [f32],
        rows: &[RowIn<'_>],
        outs: &mut [RowOut<'_>],
        at: [i32; 2],
        width: usize,
        past: bool,
    ) {
        for (place, number) in (0..).zip(&self.numbers) {
            if let Number::Coord(axis) = number {
                let bits = at[usize::from(*axis)].cast_unsigned();
                self.routine.set_number(memory, place, bits);
            }
        }
        let lanes = self.vector();
        let whole = width / lanes * lanes;
        self.part(memory, rows, outs, 0..whole, past);
        if whole < width {
            // The last vector ends with the row. Some pixels are computed twice, to the same end.
            self.part(memory, rows, outs, width - lanes..width, false);
        }
    }

    fn part(
        &self,
        memory: &mut [f32],
        rows: &[RowIn<'_>],
        outs: &mut [RowOut<'_>],
        pixels: Range<usize>,
        past: bool,
    ) {
        let from = pixels.start;
        // Rows ahead come last, and not every routine takes them.
        let rows = &rows[..self.routine.rows()];
        let mut ins: [&[u8]; MOST] = [&[]; MOST];
        for (bytes, row) in ins.iter_mut().zip(rows) {
            *bytes = row.bytes_from(from);
        }
        let count_out = outs.len();
        let mut results: [&mut [u8]; MOST_OUT] = std::array::from_fn(|_| &mut [][..]);
        for (bytes, out) in results.iter_mut().zip(outs) {
            *bytes = out.bytes_from(from);
        }
        let outputs = &mut results[..count_out];
        let (ins, along) = (&ins[..rows.len()], from as i32);
        let count = pixels.len() / self.pixels;
        if past {
            self.routine.run_past(memory, ins, outputs, along, count);
        } else {
            self.routine.run(memory, ins, outputs, along, count);
        }
    }
}

fn element(dtype: DType) -> Option<Element> {
    Some(match dtype {
        DType::U8 => Element::U8,
        DType::U16 => Element::U16,
        DType::I16 => Element::I16,
        DType::I32 | DType::U32 | DType::F32 => Element::Word,
        _ => return None,
    })
}

struct Maker<'a> {
    dag: &'a Dag,
    reads: &'a [Read],
    nodes: Vec<Node>,
    uniform: Vec<bool>,
    /// About how many registers each takes.
    need: Vec<u32>,
    /// What each node is: the same value twice, or the halves of its pixels where it has 64 bits.
    values: Vec<Option<[Value; 2]>>,
    code: Vec<Ins>,
    numbers: Vec<Number>,
}

impl<'a> Maker<'a> {
    fn new(dag: &'a Dag, reads: &'a [Read]) -> Self {
        let nodes = compile::simplified(dag);
        let (mut uniform, mut need) = (Vec::new(), Vec::new());
        for node in &nodes {
            let varies = matches!(node, Node::Load { .. } | Node::Coord(_));
            let same = !varies && node.operands().all(|id| uniform[id as usize]);
            let mut needs: Vec<u32> = match node {
                Node::Load { .. } => Vec::new(),
                _ => node.operands().map(|id| need[id as usize]).collect(),
            };
            needs.sort_unstable_by(|a, b| b.cmp(a));
            let most = (0..).zip(needs).map(|(i, n)| n + i).max().unwrap_or(0);
            let size = if dag.ty(need.len() as Id) == Ty::F64 {
                2
            } else {
                1
            };
            need.push(if same { 0 } else { most.max(size) });
            uniform.push(same);
        }
        Self {
            dag,
            reads,
            values: vec![None; nodes.len()],
            nodes,
            uniform,
            need,
            code: Vec::new(),
            numbers: Vec::new(),
        }
    }

    fn push(&mut self, ins: Ins) -> Value {
        self.code.push(ins);
        (self.code.len() - 1) as Value
    }

    /// One instruction for each half.
    fn halves(&mut self, ins: impl Fn(usize, Half) -> Ins) -> [Value; 2] {
        [(0, Half::Low), (1, Half::High)].map(|(at, half)| self.push(ins(at, half)))
    }

    /// A truth of 32 bits of the halves of one of 64.
    fn truth(&mut self, [low, high]: [Value; 2]) -> [Value; 2] {
        let to = Kind::Truth;
        [self.push(Ins::Narrow { to, low, high }); 2]
    }

    fn number(&mut self, number: Number) -> Option<[Value; 2]> {
        let known = self.numbers.iter().position(|other| *other == number);
        let at = known.unwrap_or_else(|| {
            self.numbers.push(number);
            self.numbers.len() - 1
        });
        Some([self.push(Ins::Number(u16::try_from(at).ok()?)); 2])
    }

    /// Instructions for a node and all it needs, those first that need the most registers.
    fn value(&mut self, id: Id) -> Option<[Value; 2]> {
        let mut open = vec![(id, false)];
        while let Some((id, ready)) = open.pop() {
            let at = id as usize;
            if self.values[at].is_some() {
                continue;
            }
            let is_leaf =
                self.uniform[at] || matches!(self.nodes[at], Node::Load { .. } | Node::Coord(_));
            if ready || is_leaf {
                self.values[at] = Some(self.instruction(id)?);
                continue;
            }
            open.push((id, true));
            let mut operands: Vec<Id> = self.nodes[at].operands().collect();
            operands.sort_by_key(|&operand| self.need[operand as usize]);
            open.extend(operands.into_iter().map(|operand| (operand, false)));
        }
        self.values[id as usize]
    }

    /// What a node's operand is.
    fn of(&self, id: Id) -> [Value; 2] {
        self.values[id as usize].expect("operands come first")
    }

    fn row(&self, image: u32, at: [Id; 3], boundary: Boundary) -> Option<u8> {
        let read = Read {
            image: image as usize,
            offset: self.dag.offset(at)?,
            boundary,
        };
        let row = self.reads.iter().position(|other| *other == read)?;
        u8::try_from(row).ok()
    }

    fn instruction(&mut self, id: Id) -> Option<[Value; 2]> {
        if self.uniform[id as usize] {
            return self.number(Number::Node(id));
        }
        let node = self.nodes[id as usize];
        let takes_doubles = match node {
            Node::Load { .. } | Node::Coord(_) => false,
            _ => node.operands().any(|id| self.dag.ty(id) == Ty::F64),
        };
        if takes_doubles || self.dag.ty(id) == Ty::F64 {
            return self.in_doubles(node);
        }
        let of = |id: Id| self.of(id)[0];
        let ins = match node {
            Node::Load {
                image,
                at,
                boundary,
            } => {
                let row = self.row(image, at, boundary)?;
                let element = element(self.dag.inputs()[image as usize])?;
                Ins::Row { row, element }
            }
            Node::Coord(2) => Ins::Along,
            Node::Coord(axis) => return self.number(Number::Coord(axis)),
            Node::Un(Un::ToBits | Un::FromBits, a) => return Some(self.of(a)),
            Node::Un(Un::Abs, a) if self.dag.ty(a) == Ty::U32 => return Some(self.of(a)),
            Node::Un(op, a) => Ins::Un(unary(op, self.dag.ty(a))?, of(a)),
            Node::Bin(op, a, b) => Ins::Bin(binary(op, self.dag.ty(a))?, of(a), of(b)),
            Node::Fma(a, b, c) => Ins::Fma(of(a), of(b), of(c)),
            Node::Select(cond, a, b) => Ins::Select(of(cond), of(a), of(b)),
            Node::Cast(to, a) => match cast(self.dag.ty(a), to) {
                Some(op) => Ins::Un(op, of(a)),
                None => return Some(self.of(a)),
            },
            _ => return None,
        };
        Some([self.push(ins); 2])
    }

    /// A node that makes a number of 64 bits, or something of such numbers.
    fn in_doubles(&mut self, node: Node) -> Option<[Value; 2]> {
        Some(match node {
            Node::Load {
                image,
                at,
                boundary,
            } => {
                let row = self.row(image, at, boundary)?;
                self.halves(|_, half| Ins::Doubles { row, half })
            }
            Node::Un(op, a) => {
                let (a, op) = (self.of(a), unary_double(op)?);
                let halves = self.halves(|h, _| Ins::UnD(op, a[h]));
                if op == UnD::IsNan {
                    self.truth(halves)
                } else {
                    halves
                }
            }
            Node::Bin(op, a, b) => {
                let (a, b, op) = (self.of(a), self.of(b), binary_double(op)?);
                let halves = self.halves(|h, _| Ins::BinD(op, a[h], b[h]));
                match op {
                    BinD::Lt | BinD::Le | BinD::Eq | BinD::Ne => self.truth(halves),
                    _ => halves,
                }
            }
            Node::Fma(a, b, c) => {
                let [a, b, c] = [a, b, c].map(|id| self.of(id));
                self.halves(|h, _| Ins::FmaD(a[h], b[h], c[h]))
            }
            Node::Select(cond, a, b) => {
                let ([value, _], a, b) = (self.of(cond), self.of(a), self.of(b));
                let from = Kind::Truth;
                let cond = self.halves(|_, half| Ins::Widen { from, half, value });
                self.halves(|h, _| Ins::Select(cond[h], a[h], b[h]))
            }
            Node::Cast(Ty::F64, a) => {
                let (ty, [value, high]) = (self.dag.ty(a), self.of(a));
                let (from, value) = match ty {
                    Ty::F64 => return Some([value, high]),
                    Ty::F32 => (Kind::Float, value),
                    Ty::I32 => (Kind::Int, value),
                    Ty::U32 => (Kind::Unsigned, value),
                    Ty::Bool => {
                        let one = self.push(Ins::Un(native::Un::TruthToInt, value));
                        (Kind::Int, one)
                    }
                };
                self.halves(|_, half| Ins::Widen { from, half, value })
            }
            Node::Cast(to, a) => {
                let [low, high] = self.of(a);
                let to = match to {
                    Ty::F32 => Kind::Float,
                    Ty::I32 => Kind::Int,
                    Ty::U32 => Kind::Unsigned,
                    _ => return None,
                };
                [self.push(Ins::Narrow { to, low, high }); 2]
            }
            _ => return None,
        })
    }
}

fn unary_double(op: Un) -> Option<UnD> {
    Some(match op {
        Un::Neg => UnD::Neg,
        Un::Abs => UnD::Abs,
        Un::Sqrt => UnD::Sqrt,
        Un::Floor => UnD::Floor,
        Un::Ceil => UnD::Ceil,
        Un::Round => UnD::Round,
        Un::IsNan => UnD::IsNan,
        _ => return None,
    })
}

fn binary_double(op: Bin) -> Option<BinD> {
    Some(match op {
        Bin::Add => BinD::Add,
        Bin::Sub => BinD::Sub,
        Bin::Mul => BinD::Mul,
        Bin::Div => BinD::Div,
        Bin::Min => BinD::Min,
        Bin::Max => BinD::Max,
        Bin::Lt => BinD::Lt,
        Bin::Le => BinD::Le,
        Bin::Eq => BinD::Eq,
        Bin::Ne => BinD::Ne,
        _ => return None,
    })
}

fn unary(op: Un, ty: Ty) -> Option<native::Un> {
    Some(match (op, ty) {
        (Un::Neg, Ty::F32) => native::Un::NegF,
        (Un::Abs, Ty::F32) => native::Un::AbsF,
        (Un::Sqrt, Ty::F32) => native::Un::Sqrt,
        (Un::Floor, Ty::F32) => native::Un::Floor,
        (Un::Ceil, Ty::F32) => native::Un::Ceil,
        (Un::Round, Ty::F32) => native::Un::Round,
        (Un::IsNan, Ty::F32) => native::Un::IsNan,
        (Un::Neg, Ty::I32 | Ty::U32) => native::Un::NegI,
        (Un::Abs, Ty::I32) => native::Un::AbsI,
        (Un::Not, Ty::Bool | Ty::I32 | Ty::U32) => native::Un::Not,
        _ => return None,
    })
}

fn binary(op: Bin, ty: Ty) -> Option<native::Bin> {
    Some(match (op, ty) {
        (Bin::Add, Ty::F32) => native::Bin::AddF,
        (Bin::Sub, Ty::F32) => native::Bin::SubF,
        (Bin::Mul, Ty::F32) => native::Bin::MulF,
        (Bin::Div, Ty::F32) => native::Bin::DivF,
        (Bin::Min, Ty::F32) => native::Bin::MinF,
        (Bin::Max, Ty::F32) => native::Bin::MaxF,
        (Bin::Lt, Ty::F32) => native::Bin::LtF,
        (Bin::Le, Ty::F32) => native::Bin::LeF,
        (Bin::Eq, Ty::F32) => native::Bin::EqF,
        (Bin::Ne, Ty::F32) => native::Bin::NeF,
        (Bin::Add, Ty::I32 | Ty::U32) => native::Bin::AddI,
        (Bin::Sub, Ty::I32 | Ty::U32) => native::Bin::SubI,
        (Bin::Mul, Ty::I32 | Ty::U32) => native::Bin::MulI,
        (Bin::Min, Ty::I32) => native::Bin::MinI,
        (Bin::Max, Ty::I32) => native::Bin::MaxI,
        (Bin::Min, Ty::U32) => native::Bin::MinU,
        (Bin::Max, Ty::U32) => native::Bin::MaxU,
        (Bin::Lt, Ty::I32) => native::Bin::LtI,
        (Bin::Le, Ty::I32) => native::Bin::LeI,
        (Bin::Lt, Ty::U32) => native::Bin::LtU,
        (Bin::Le, Ty::U32) => native::Bin::LeU,
        (Bin::Eq, Ty::I32 | Ty::U32 | Ty::Bool) => native::Bin::EqI,
        (Bin::Ne, Ty::I32 | Ty::U32) => native::Bin::NeI,
        (Bin::Ne, Ty::Bool) | (Bin::Xor, Ty::I32 | Ty::U32 | Ty::Bool) => native::Bin::Xor,
        (Bin::And, Ty::I32 | Ty::U32 | Ty::Bool) => native::Bin::And,
        (Bin::Or, Ty::I32 | Ty::U32 | Ty::Bool) => native::Bin::Or,
        (Bin::Shl, Ty::I32 | Ty::U32) => native::Bin::Shl,
        (Bin::Shr, Ty::I32) => native::Bin::ShrI,
        (Bin::Shr, Ty::U32) => native::Bin::ShrU,
        _ => return None,
    })
}

/// The cast between two 32-bit types; `None` when the bits stay.
fn cast(from: Ty, to: Ty) -> Option<native::Un> {
    Some(match (from, to) {
        (Ty::I32, Ty::F32) => native::Un::IntToFloat,
        (Ty::U32, Ty::F32) => native::Un::UnsignedToFloat,
        (Ty::F32, Ty::I32) => native::Un::FloatToInt,
        (Ty::F32, Ty::U32) => native::Un::FloatToUnsigned,
        (Ty::Bool, Ty::I32 | Ty::U32) => native::Un::TruthToInt,
        (Ty::Bool, Ty::F32) => native::Un::TruthToFloat,
        _ => return None,
    })
}
