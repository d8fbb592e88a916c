//! One block: who runs next, and who may go on.

use corosensei::{Coroutine, CoroutineResult, on_stack};

use super::barrier::{self, Mismatch};
use super::context::ThreadContext;
use super::order::Random;
use super::report;
use super::stacks::{self, Stacks};
use super::wait::Wait;
use super::warp::Meeting;
use super::worker::{Signal, Worker};
use crate::engine::FaultKind;

type Fiber = Coroutine<Signal, (), ()>;

/// Runs blocks until there are no more.
pub(super) fn run_all(worker: &Worker<'_>) {
    let grid = worker.grid;
    let count = if grid.code.needs_fibers {
        grid.threads
    } else {
        1
    };
    let contexts: Vec<_> = (0..count)
        .map(|place| ThreadContext::new(worker, place))
        .collect();
    let mut stacks = match Stacks::take(count) {
        Ok(stacks) => stacks,
        Err(error) => {
            let detail = format!("no memory for {count} stacks: {error}");
            worker.fault(&contexts[0], 0, FaultKind::StackOverflow { detail });
            return;
        }
    };
    while let Some((number, coordinates)) = grid.next_block() {
        if let Err(kind) = grid.spend(1) {
            contexts[0].begin(0, coordinates, 0);
            worker.fault(&contexts[0], 0, kind);
            return;
        }
        worker.begin_block();
        let mut random = Random::new(grid.launch.rules.seed, number);
        let processors = contexts[0].processors as usize;
        let processor = u32::try_from(random.below(processors)).unwrap_or(0);
        if grid.code.needs_fibers {
            for (thread, context) in contexts.iter().enumerate() {
                context.begin(thread, coordinates, processor);
            }
            Block::new(worker, &contexts, random).run(&mut stacks);
        } else {
            run_plainly(
                worker,
                &contexts[0],
                &mut stacks,
                |context, thread| {
                    context.begin(thread, coordinates, processor);
                },
                random,
            );
        }
    }
}

/// Threads that never wait for each other, one after the other.
fn run_plainly(
    worker: &Worker<'_>,
    context: &ThreadContext,
    stacks: &mut Stacks,
    begin: impl Fn(&ThreadContext, usize),
    mut random: Random,
) {
    let mut order: Vec<usize> = (0..worker.grid.threads).collect();
    random.shuffle(&mut order);
    let mut stack = stacks.pop();
    context.stack_limit.set(stacks::limit(&stack));
    on_stack(&mut stack, || {
        for thread in order {
            begin(context, thread);
            call(worker, context);
            if worker.grid.is_over() {
                break;
            }
        }
    });
    stacks.push(stack);
}

/// Runs the kernel for one thread.
fn call(worker: &Worker<'_>, context: &ThreadContext) {
    let code = worker.grid.code.function;
    // SAFETY: the function was compiled for this signature, and the image it belongs to is kept alive
    // by the kernel of the launch. It accesses what `context` points to, all of which the worker
    // owns and keeps in place, and device memory that `DeviceMemory::check` has vouched for.
    unsafe { code(context, context.params_base, 0) };
}

struct Block<'a> {
    worker: &'a Worker<'a>,
    contexts: &'a [ThreadContext],
    random: Random,
}

impl<'a> Block<'a> {
    fn new(worker: &'a Worker<'a>, contexts: &'a [ThreadContext], random: Random) -> Self {
        for thread in &worker.threads {
            thread.wait.set(Wait::Ready);
        }
        Self {
            worker,
            contexts,
            random,
        }
    }

    fn run(&mut self, stacks: &mut Stacks) {
        let mut fibers: Vec<Option<Fiber>> = self
            .contexts
            .iter()
            .map(|context| Some(self.fiber(context, stacks)))
            .collect();
        while self.turn(&mut fibers, stacks) {}
        // After a fault everybody else returns from where it waits.
        for place in 0..fibers.len() {
            while fibers[place].is_some() {
                self.resume(place, &mut fibers, stacks, Signal::Stop);
            }
        }
    }

    fn fiber(&self, context: &'a ThreadContext, stacks: &mut Stacks) -> Fiber {
        let stack = stacks.pop();
        context.stack_limit.set(stacks::limit(&stack));
        let worker = self.worker;
        let body = move |yielder: &corosensei::Yielder<Signal, ()>, signal| {
            if signal == Signal::Go {
                worker.threads[context.number.get()].yielder.set(yielder);
                call(worker, context);
            }
        };
        // SAFETY: what the closure borrows lives longer than the fiber: fibers are local to `run`,
        // which ends only when each of them has returned.
        unsafe { Fiber::with_stack_unchecked(stack, body) }
    }

    /// Lets every thread that can run do so once. False when the block has ended.
    fn turn(&mut self, fibers: &mut [Option<Fiber>], stacks: &mut Stacks) -> bool {
        let threads = &self.worker.threads;
        let mut ready: Vec<usize> = (0..threads.len())
            .filter(|place| matches!(threads[*place].wait.get(), Wait::Ready | Wait::Paused))
            .collect();
        let is_waiting_for_luck = ready
            .iter()
            .all(|place| threads[*place].wait.get() == Wait::Paused);
        self.random.shuffle(&mut ready);
        // Some wait for the next turn, so that warps get ahead of each other.
        let late = match ready.len() {
            0..=32 => 0,
            many => self.random.below(many / 4),
        };
        for place in ready.iter().skip(late) {
            self.resume(*place, fibers, stacks, Signal::Go);
            if self.worker.grid.is_over() {
                return false;
            }
        }
        let released = self.release_warps(Meeting::complete) | self.release_barriers();
        if self.worker.grid.is_over() {
            return false;
        }
        if released || late > 0 {
            return true;
        }
        let is_stuck = ready.is_empty() || is_waiting_for_luck;
        if is_stuck && self.release_warps(Meeting::by_chance) {
            return true;
        }
        let all_done = threads.iter().all(|thread| thread.wait.get() == Wait::Done);
        if all_done {
            return false;
        }
        let anyone = threads
            .iter()
            .any(|thread| matches!(thread.wait.get(), Wait::Ready | Wait::Paused));
        if !anyone && !self.has_meeting_by_chance() {
            self.report_deadlock();
            return false;
        }
        true
    }

    fn resume(
        &self,
        place: usize,
        fibers: &mut [Option<Fiber>],
        stacks: &mut Stacks,
        signal: Signal,
    ) {
        let thread = &self.worker.threads[place];
        thread.wait.set(Wait::Ready);
        let Some(fiber) = &mut fibers[place] else {
            return;
        };
        if let CoroutineResult::Return(()) = fiber.resume(signal) {
            thread.wait.set(Wait::Done);
            if let Some(fiber) = fibers[place].take() {
                stacks.push(fiber.into_stack());
            }
        }
    }

    fn waits(&self) -> Vec<Wait> {
        let threads = self.worker.threads.iter();
        threads.map(|thread| thread.wait.get()).collect()
    }

    /// Lets lanes go on that have met.
    fn release_warps(&self, meet: impl Fn(&[Wait]) -> Option<Meeting>) -> bool {
        let mut any = false;
        for (warp, waits) in self.waits().chunks_mut(32).enumerate() {
            while let Some(meeting) = meet(waits) {
                any = true;
                for lane in (0..32).filter(|lane| meeting.mask >> lane & 1 == 1) {
                    waits[lane] = Wait::Ready;
                    let thread = &self.worker.threads[warp * 32 + lane];
                    thread.reply.set(meeting.reply(lane));
                    thread.wait.set(Wait::Ready);
                }
            }
        }
        any
    }

    fn has_meeting_by_chance(&self) -> bool {
        let waits = self.waits();
        waits
            .chunks(32)
            .any(|waits| Meeting::by_chance(waits).is_some())
    }

    /// Opens barriers that everybody has reached.
    fn release_barriers(&self) -> bool {
        let waits = self.waits();
        let mut used = 0u32;
        for wait in &waits {
            if let Wait::Barrier(wait) = wait {
                used |= 1 << wait.id;
            }
        }
        let mut any = false;
        let mut arrivals = self.worker.arrivals.borrow_mut();
        let divergence_allowed = self.worker.grid.launch.rules.divergent_barriers;
        for id in (0..barrier::BARRIERS).filter(|id| used >> id & 1 == 1) {
            match barrier::open(id, &waits, &mut arrivals, divergence_allowed) {
                Ok(Some(opening)) => {
                    any = true;
                    for place in opening.threads {
                        let thread = &self.worker.threads[place];
                        thread.reply.set(opening.reply);
                        thread.wait.set(Wait::Ready);
                    }
                }
                Ok(None) => {}
                Err(Mismatch {
                    thread,
                    line,
                    detail,
                }) => {
                    let kind = FaultKind::BarrierDivergence { detail };
                    self.worker.fault(&self.contexts[thread], line, kind);
                    return any;
                }
            }
        }
        any
    }

    fn report_deadlock(&self) {
        let (place, line, kind) = report::deadlock(&self.waits());
        self.worker.fault(&self.contexts[place], line, kind);
    }
}
