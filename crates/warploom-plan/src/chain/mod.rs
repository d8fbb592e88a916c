//! Pipelines whose types are checked when the program is compiled.
//!
//! A [`Chain`] builds the same [`Pipeline`] as [`Pipeline::step`] does, and every step has a type: what
//! it takes and what it gives, element type and memory included. A step that does not fit what is
//! before it is a compile error that says both. What types cannot say, such as extents, is
//! checked by [`Chain::compile`], with everything else.
//!
//! ```
//! use warploom_core::DType;
//! use warploom_plan::chain::{Chain, op};
//! use warploom_plan::{Options, Sources};
//!
//! let chain = Chain::<u16>::new("nuclei");
//! let image = chain.tap();
//! let cells = chain
//!     .then("soft", op::gaussian().with("sigma", 2.0))
//!     .then("mask", op::threshold_otsu())
//!     .then("labels", op::label_box())
//!     .then("cells", op::label_statistics(&image));
//! let plan = cells.compile(&Sources::plane(DType::U16, 512, 512), None, &Options::default());
//! assert_eq!(plan.expect("it compiles").variants[0].outputs[0].value, "cells");
//! ```
//!
//! ```compile_fail
//! # use warploom_plan::chain::{Chain, op};
//! // Numbers are no image: "a step that takes `Array<_, _>` cannot follow one that gives ..."
//! Chain::<u16>::new("wrong").then("sums", op::totals()).then("soft", op::gaussian::<u16, _>());
//! ```

pub mod op;
mod value;

use std::marker::PhantomData;

use warploom_core::memory::Host;
use warploom_core::{DType, Element, MemoryType, Status};

pub use op::Op;
pub use value::{Array, Expected, Flowing, FlowsInto, Numbers, Pixel, RealWith, Table, Whole};

use crate::compile::compile_expecting;
use crate::diagnostic::{Diagnostic, Problem};
use crate::options::Options;
use crate::pipeline::{self, Pipeline};
use crate::plan::ExecutionPlan;
use crate::resolve::IMAGE;
use crate::sources::Sources;

/// Work whose types are known: what it takes, and what it gives.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no step of a chain",
    note = "steps are made by the functions of `warploom_plan::chain::op`, or implement `chain::Step`"
)]
pub trait Step {
    /// What it takes.
    type In: Flowing;
    /// What it gives.
    type Out: Flowing;

    /// As a step of a pipeline, under this name, that reads `from` before whatever else it reads.
    fn step(self, name: &str, from: &str) -> pipeline::Step;
}

/// A value of a chain that has a name, to be read again later.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tap<V> {
    name: String,
    value: PhantomData<fn() -> V>,
}

impl<V> Tap<V> {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            value: PhantomData,
        }
    }

    /// What the pipeline calls it.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// A pipeline for records of `T`, so far giving `Out`.
#[derive(Clone, PartialEq, Debug)]
pub struct Chain<T, Out = Array<T, Host>> {
    pipeline: Pipeline,
    /// What the next step reads.
    current: String,
    expected: Vec<(String, Expected)>,
    types: PhantomData<fn(T) -> Out>,
}

impl<T: Pixel> Chain<T> {
    /// Nothing yet: the record itself.
    pub fn new(name: &str) -> Self {
        Self {
            pipeline: Pipeline::new(name),
            current: IMAGE.to_owned(),
            expected: Vec::new(),
            types: PhantomData,
        }
    }
}

impl<T: Pixel, Out: Flowing> Chain<T, Out> {
    /// With one more step, which must take what is there.
    #[must_use]
    pub fn then<S>(mut self, name: &str, step: S) -> Chain<T, S::Out>
    where
        S: Step,
        Out: FlowsInto<S::In>,
    {
        let step = step.step(name, &self.current);
        let memory = <S::In as Flowing>::MEMORY.name();
        self.pipeline = self.pipeline.step(step.memory(memory));
        self.expected.push((name.to_owned(), S::Out::EXPECTED));
        self.at(name)
    }

    /// The same with another value to go on from.
    fn at<V>(self, name: &str) -> Chain<T, V> {
        Chain {
            pipeline: self.pipeline,
            current: name.to_owned(),
            expected: self.expected,
            types: PhantomData,
        }
    }

    /// What is there, to be read again later.
    pub fn tap(&self) -> Tap<Out> {
        Tap::new(&self.current)
    }

    /// The record itself, in the memory where it is read.
    pub fn record<M: MemoryType>(&self) -> Tap<Array<T, M>> {
        Tap::new(IMAGE)
    }

    /// The same steps; the next one reads this.
    #[must_use]
    pub fn back_to<V: Flowing>(self, tap: &Tap<V>) -> Chain<T, V> {
        self.at(&tap.name)
    }

    /// An image that all records share, from a file beside the pipeline.
    #[must_use]
    pub fn constant<U: Element, M: MemoryType>(
        mut self,
        name: &str,
        path: &str,
    ) -> (Self, Tap<Array<U, M>>) {
        self.pipeline = self.pipeline.constant(name, path);
        (self, Tap::new(name))
    }

    /// With what is there written to a file.
    #[must_use]
    pub fn write(mut self, file: &str) -> Self {
        self.pipeline = self.pipeline.output(&self.current, file);
        self
    }

    /// The pipeline, to set what types have no word for, or to write it down.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// Compiles it; see [`compile`](crate::compile()).
    ///
    /// # Errors
    /// Everything that is wrong, at once: that the records are of another element type, and that a
    /// step gives something else than its type says, too.
    pub fn compile(
        &self,
        sources: &Sources,
        status: Option<&Status>,
        options: &Options,
    ) -> Result<ExecutionPlan, Vec<Diagnostic>> {
        let dtype: DType = sources.record.dtype;
        if dtype != T::DTYPE {
            let message = format!(
                "the chain `{}` is for records of {}, and these are of {dtype}",
                self.pipeline.name,
                T::DTYPE
            );
            let finding = Diagnostic::error(Problem::RecordMismatch, message);
            let help = format!("`Chain::<{dtype}>::new`, or a cast before");
            return Err(vec![finding.help(help)]);
        }
        let mut pipeline = self.pipeline.clone();
        if pipeline.outputs.is_empty() && !pipeline.steps.is_empty() {
            pipeline = pipeline.output(&self.current, "");
        }
        compile_expecting(&pipeline, sources, status, options, &self.expected)
    }
}

impl<T: Pixel, U: Element, M: MemoryType> Chain<T, Array<U, M>> {
    /// The image in other memory: the plan copies it there.
    #[must_use]
    pub fn to<N: MemoryType>(self) -> Chain<T, Array<U, N>> {
        let name = self.current.clone();
        self.at(&name)
    }
}
