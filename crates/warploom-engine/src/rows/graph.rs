//! What is computed row by row.

use std::sync::Arc;

use warploom_core::DType;

use warploom_flow::Boundary;

use super::super::lanes::Level;
use super::super::tape::{Read, Tape};
use super::super::taps::Taps;
use super::super::taps::sums::Sums;
use super::super::window::Fold;
use super::frame::Frame;
use super::map::{MOST, Map, Operand};
use warploom_flow::expr::{Dag, Datum};

/// The direction of a pass.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Axis {
    /// From row to row.
    Y,
    /// Along the row.
    X,
}

/// An image in a [`RowGraph`]: an input, or what a step makes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Value(pub(super) usize);

/// Where a value's rows are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    Input(usize),
    Ring,
    Output(usize),
}

#[derive(Clone, Debug)]
pub(super) struct ValueInfo {
    pub(super) dtype: DType,
    pub(super) place: Place,
    /// The step that makes it.
    pub(super) step: Option<usize>,
}

/// Weights in the type of the rows.
#[derive(Clone, Debug)]
pub(super) enum Weights {
    F32(Taps<f32>),
    F64(Taps<f64>),
}

#[derive(Clone, Debug)]
pub(super) enum Work {
    /// The same pixels, perhaps as another type.
    Copy,
    Taps {
        axis: Axis,
        weights: Weights,
        boundary: Boundary,
        sums: Option<Arc<Sums>>,
    },
    /// Sums down the columns and then along the rows of these, which are kept nowhere.
    Plane {
        weights: [Weights; 2],
        boundaries: [Boundary; 2],
        sums: Option<[Arc<Sums>; 2]>,
    },
    Window {
        axis: Axis,
        fold: Fold,
        radius: usize,
        boundary: Boundary,
    },
    Map(Box<Map>),
    /// A part of an input.
    Frame(Frame),
    /// The rows of a strip are shown to the collector of this number.
    Gather(usize),
}

impl Weights {
    fn reach(&self) -> (i64, i64) {
        let (before, after) = match self {
            Self::F32(taps) => (taps.before(), taps.after()),
            Self::F64(taps) => (taps.before(), taps.after()),
        };
        (before as i64, after as i64)
    }

    fn sums(&self, axis: Axis, level: Level) -> Option<Arc<Sums>> {
        match self {
            Self::F32(taps) => Sums::new(taps, axis, level),
            Self::F64(_) => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) work: Work,
    pub(super) from: Vec<usize>,
    pub(super) to: Vec<usize>,
    reach: (i64, i64, Boundary),
}

impl Step {
    /// Rows it reads above and below the one it makes, and what lies outside.
    pub(super) fn reach(&self) -> (i64, i64, Boundary) {
        self.reach
    }

    fn new(work: Work, from: Vec<usize>, to: Vec<usize>, values: &[ValueInfo]) -> Self {
        let ring = |value: usize| values[value].place == Place::Ring;
        let reach = Self::reach_of(&work, ring);
        Self {
            work,
            from,
            to,
            reach,
        }
    }

    fn reach_of(work: &Work, ring: impl Fn(usize) -> bool) -> (i64, i64, Boundary) {
        match work {
            Work::Map(map) => map.reach(ring),
            Work::Taps {
                axis: Axis::Y,
                weights,
                boundary,
                ..
            } => {
                let (before, after) = weights.reach();
                (before, after, *boundary)
            }
            Work::Plane {
                weights,
                boundaries,
                ..
            } => {
                let (before, after) = weights[0].reach();
                (before, after, boundaries[0])
            }
            Work::Window {
                axis: Axis::Y,
                radius,
                boundary,
                ..
            } => (*radius as i64, *radius as i64, *boundary),
            _ => (0, 0, Boundary::Clamp),
        }
    }

    pub(super) fn gathers(&self) -> bool {
        matches!(self.work, Work::Gather(_))
    }

    /// Does it want the rows of a strip, whoever else does?
    pub(super) fn is_end(&self, values: &[ValueInfo]) -> bool {
        let written = |&value: &usize| matches!(values[value].place, Place::Output(_));
        self.gathers() || self.to.iter().any(written)
    }

    /// Rows are best made in whole multiples of this many.
    pub(super) fn grain(&self) -> i64 {
        match &self.work {
            Work::Window {
                axis: Axis::Y,
                radius,
                ..
            } => 2 * *radius as i64 + 1,
            Work::Copy | Work::Map(_) | Work::Frame(_) | Work::Gather(_) => 1,
            // As many rows as the widest vector has lanes are turned at a time.
            _ => 16,
        }
    }
}

/// A description of images computed from images, each in one pass over memory.
///
/// Values are added in the order they depend on each other; [`RowGraph::finish`] makes it
/// something that runs.
#[derive(Clone, Debug, Default)]
pub struct RowGraph {
    pub(super) values: Vec<ValueInfo>,
    pub(super) steps: Vec<Step>,
    pub(super) inputs: usize,
    pub(super) lists: usize,
    pub(super) outputs: usize,
    pub(super) gathers: usize,
}

/// A list of numbers in a [`RowGraph`]: computed earlier, given when it runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct List(usize);

/// What an expression reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reads {
    /// An image.
    Image(Value),
    /// Numbers.
    List(List),
}

impl RowGraph {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn add(&mut self, dtype: DType, place: Place, step: Option<usize>) -> Value {
        self.values.push(ValueInfo { dtype, place, step });
        Value(self.values.len() - 1)
    }

    pub(super) fn step(&mut self, work: Work, from: &[Value], dtype: DType, place: Place) -> Value {
        let made = self.add(dtype, place, Some(self.steps.len()));
        let from = from.iter().map(|value| value.0).collect();
        let step = Step::new(work, from, vec![made.0], &self.values);
        self.steps.push(step);
        made
    }

    /// The next input.
    pub fn input(&mut self, dtype: DType) -> Value {
        self.inputs += 1;
        self.add(dtype, Place::Input(self.inputs - 1), None)
    }

    /// The next list of numbers.
    pub fn list(&mut self) -> List {
        self.lists += 1;
        List(self.lists - 1)
    }

    /// An expression of pixels at fixed offsets. `reads` are its inputs in order, of the element
    /// types it was made for; `numbers` its numbers.
    ///
    /// `None` when rows do not suffice for it: it reads at computed positions, or pixels of other
    /// planes of something that is not an input, or makes more than eight images.
    pub fn map(&mut self, dag: &Dag, reads: &[Reads], numbers: &[Datum]) -> Option<Vec<Value>> {
        let tape = Tape::new(dag)?;
        let operands: Vec<Operand> = reads
            .iter()
            .map(|read| match read {
                Reads::Image(value) => Operand::Value(value.0),
                Reads::List(list) => Operand::List(list.0),
            })
            .collect();
        let map = Map::new(tape, operands, numbers.to_vec());
        let planes = map.tape.reads().iter().all(|read| {
            let place = self.values[map.value(read.image)].place;
            read.offset[0] == 0 || matches!(place, Place::Input(_))
        });
        if !planes || map.tape.outputs().len() > MOST {
            return None;
        }
        let at = Some(self.steps.len());
        let dtypes = map.tape.outputs().to_vec();
        let made: Vec<Value> = dtypes
            .into_iter()
            .map(|dtype| self.add(dtype, Place::Ring, at))
            .collect();
        let mut from: Vec<usize> = map
            .tape
            .reads()
            .iter()
            .map(|read| map.value(read.image))
            .collect();
        from.sort_unstable();
        from.dedup();
        let to = made.iter().map(|value| value.0).collect();
        let step = Step::new(Work::Map(Box::new(map)), from, to, &self.values);
        self.steps.push(step);
        Some(made)
    }

    /// Is it one expression of pixels at the very place, which does not ask where that is?
    pub(super) fn is_local(&self) -> bool {
        let mut makers = self.steps.iter().filter(|step| !step.gathers());
        let maker = makers.next();
        makers.next().is_none()
            && maker.is_none_or(|step| match &step.work {
                Work::Map(map) => map.tape.is_local(),
                Work::Copy => true,
                _ => false,
            })
    }

    /// Is an input read by one expression only, and there at the very place it makes?
    pub(super) fn reads_own(&self, input: usize) -> bool {
        let mut values = self.values.iter();
        let value = values.position(|value| value.place == Place::Input(input));
        let Some(value) = value else {
            return false;
        };
        let mut readers = self.steps.iter().filter(|step| step.from.contains(&value));
        let (Some(step), None) = (readers.next(), readers.next()) else {
            return false;
        };
        let Work::Map(map) = &step.work else {
            return false;
        };
        let own = |read: &Read| map.value(read.image) != value || read.offset == [0; 3];
        map.tape.reads().iter().all(own)
    }

    /// Expressions write outputs themselves where nothing else reads any of their results: other
    /// steps may want rows beyond those of a strip.
    pub(super) fn shorten(&mut self) {
        let mut skipped = vec![false; self.steps.len()];
        for maker in 0..self.steps.len() {
            if !matches!(self.steps[maker].work, Work::Map(_)) {
                continue;
            }
            let writers: Vec<Option<usize>> = self.steps[maker]
                .to
                .iter()
                .map(|&value| self.writer(value))
                .collect();
            if writers.contains(&None) {
                continue;
            }
            for (at, writer) in writers.into_iter().flatten().enumerate() {
                let (from, to) = (self.steps[maker].to[at], self.steps[writer].to[0]);
                self.values[from].place = self.values[to].place;
                self.values[to].place = Place::Ring;
                skipped[writer] = true;
            }
        }
        self.leave_out(skipped);
    }

    /// Sums down columns that nothing reads but sums along rows become one step with these.
    pub(super) fn pair(&mut self) {
        let mut skipped = vec![false; self.steps.len()];
        for at in 0..self.steps.len() {
            let Work::Taps {
                axis: Axis::X,
                weights: along,
                boundary: beside,
                ..
            } = &self.steps[at].work
            else {
                continue;
            };
            let between = self.steps[at].from[0];
            let readers = self.steps.iter().filter(|it| it.from.contains(&between));
            let Some(maker) = self.values[between].step.filter(|_| readers.count() == 1) else {
                continue;
            };
            let Work::Taps {
                axis: Axis::Y,
                weights: down,
                boundary: below,
                ..
            } = &self.steps[maker].work
            else {
                continue;
            };
            let work = Work::Plane {
                weights: [down.clone(), along.clone()],
                boundaries: [*below, *beside],
                sums: None,
            };
            let (from, to) = (self.steps[maker].from.clone(), self.steps[at].to.clone());
            self.steps[at] = Step::new(work, from, to, &self.values);
            skipped[maker] = true;
        }
        self.leave_out(skipped);
    }

    /// Sums are machine code where that is better on this instruction set.
    pub(super) fn equip(&mut self, level: Level) {
        for step in &mut self.steps {
            match &mut step.work {
                Work::Taps {
                    axis,
                    weights,
                    sums,
                    ..
                } => *sums = weights.sums(*axis, level),
                Work::Plane {
                    weights: [down, along],
                    sums,
                    ..
                } => {
                    let both = down.sums(Axis::Y, level).zip(along.sums(Axis::X, level));
                    *sums = both.map(Into::into);
                }
                _ => {}
            }
        }
    }

    fn leave_out(&mut self, skipped: Vec<bool>) {
        let mut new = 0;
        let numbers: Vec<usize> = skipped
            .iter()
            .map(|&skipped| {
                new += usize::from(!skipped);
                new - usize::from(!skipped)
            })
            .collect();
        for value in &mut self.values {
            value.step = value
                .step
                .filter(|&step| !skipped[step])
                .map(|step| numbers[step]);
        }
        let mut skip = skipped.into_iter();
        self.steps.retain(|_| !skip.next().unwrap_or(false));
    }

    /// The step that does nothing but write a value to an output, when it is all that reads it.
    fn writer(&self, value: usize) -> Option<usize> {
        // Who gathers takes rows wherever they are.
        let reads = |step: &Step| !step.gathers() && step.from.contains(&value);
        let mut readers = (0..self.steps.len()).filter(|&at| reads(&self.steps[at]));
        let reader = readers.next().filter(|_| readers.next().is_none())?;
        let step = &self.steps[reader];
        let (from, to) = (&self.values[value], &self.values[step.to[0]]);
        let writes = matches!(step.work, Work::Copy)
            && matches!(to.place, Place::Output(_))
            && from.dtype == to.dtype;
        writes.then_some(reader)
    }

    /// An element type.
    pub fn dtype(&self, value: Value) -> DType {
        self.values[value.0].dtype
    }

    /// The value as another type: rounded to nearest even, saturated, NaN to 0.
    #[must_use]
    pub fn cast(&mut self, value: Value, dtype: DType) -> Value {
        if self.dtype(value) == dtype {
            return value;
        }
        self.step(Work::Copy, &[value], dtype, Place::Ring)
    }

    /// Rows of an input are brought into the cache once, with a pitch that suits it.
    fn near(&mut self, value: Value) -> Value {
        match self.values[value.0].place {
            Place::Ring => value,
            _ => self.step(Work::Copy, &[value], self.dtype(value), Place::Ring),
        }
    }

    /// A correlation along one axis with weights of the neighbours `-before ..`; in `f64` for an
    /// `f64` value, in `f32` for others.
    pub fn taps(
        &mut self,
        value: Value,
        axis: Axis,
        taps: &Taps<f64>,
        boundary: Boundary,
    ) -> Value {
        let real = real(self.dtype(value));
        let value = self.cast(value, real);
        let value = self.near(value);
        let weights = match real {
            DType::F64 => Weights::F64(taps.clone()),
            _ => Weights::F32(taps.rounded()),
        };
        let work = Work::Taps {
            axis,
            weights,
            boundary,
            sums: None,
        };
        self.step(work, &[value], real, Place::Ring)
    }

    /// The sum or an extreme of the `2 * radius + 1` pixels around each, along one axis. Sums are
    /// made in the value's type, which must then be `f32` or `f64`: others become `f32`.
    pub fn window(
        &mut self,
        value: Value,
        axis: Axis,
        fold: Fold,
        radius: usize,
        boundary: Boundary,
    ) -> Value {
        let dtype = match fold {
            Fold::Sum => real(self.dtype(value)),
            Fold::Min | Fold::Max => self.dtype(value),
        };
        let mut value = self.cast(value, dtype);
        // Extremes along x take each row to a line of their own.
        if axis != Axis::X || fold == Fold::Sum {
            value = self.near(value);
        }
        let work = Work::Window {
            axis,
            fold,
            radius,
            boundary,
        };
        self.step(work, &[value], dtype, Place::Ring)
    }

    /// The next to be gathered: every row of this value, once.
    pub(crate) fn gather(&mut self, value: Value) {
        let work = Work::Gather(self.gathers);
        self.gathers += 1;
        let step = Step::new(work, vec![value.0], Vec::new(), &self.values);
        self.steps.push(step);
    }

    /// The next output: this value, cast to `dtype`.
    pub fn output(&mut self, value: Value, dtype: DType) {
        self.outputs += 1;
        let place = Place::Output(self.outputs - 1);
        self.step(Work::Copy, &[value], dtype, place);
    }
}

/// What pixels of a type are computed in.
pub fn real(dtype: DType) -> DType {
    match dtype {
        DType::F64 => DType::F64,
        _ => DType::F32,
    }
}
