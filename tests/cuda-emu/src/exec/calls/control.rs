//! Time, frames, barriers, warps and calls through pointers.

use crate::engine::FaultKind;
use crate::exec::barrier::BARRIERS;
use crate::exec::checks::status;
use crate::exec::context::{FUEL, ThreadContext};
use crate::exec::wait::{BarrierWait, Reduce, Wait, WarpOp, WarpWait};
use crate::exec::worker::Stop;

/// Set in the answer of a call that gives a value, when compiled code has to return.
const STOP: u64 = 1 << 63;

fn answer(reply: Result<u64, Stop>) -> u64 {
    reply.unwrap_or(STOP)
}

/// Asked every so many loop iterations: whether to go on, and with how much fuel.
pub(crate) unsafe extern "C" fn refuel(context: *const ThreadContext, line: u32) -> u32 {
    // SAFETY: compiled code passes on the context it was called with, which outlives the call.
    let context = unsafe { &*context };
    let worker = context.worker();
    let spent = u64::try_from(FUEL - context.fuel.get()).unwrap_or(0);
    context.fuel.set(FUEL);
    if worker.grid.is_over() {
        return 1;
    }
    if let Err(kind) = worker.grid.spend(spent) {
        return status(Err(worker.fault(context, line, kind)));
    }
    if !worker.grid.code.needs_fibers {
        return 0;
    }
    status(worker.suspend(context, Wait::Paused).map(|_| ()))
}

/// `nanosleep`: lets others run.
pub(crate) unsafe extern "C" fn pause(context: *const ThreadContext, line: u32) -> u32 {
    // SAFETY: as in `refuel`, to which the pointer is passed on.
    unsafe { refuel(context, line) }
}

/// Makes room for the local variables of a function, filled with poison.
pub(crate) unsafe extern "C" fn enter(
    context: *const ThreadContext,
    start: u64,
    bytes: u32,
    line: u32,
) -> u32 {
    // SAFETY: as in `refuel`.
    let context = unsafe { &*context };
    let worker = context.worker();
    let end = start + u64::from(bytes);
    if end > context.local_size {
        let detail = format!(
            "{} bytes of local memory are not enough",
            context.local_size
        );
        let kind = FaultKind::StackOverflow { detail };
        return status(Err(worker.fault(context, line, kind)));
    }
    let place = usize::try_from(context.local_base - worker.local.base() + start);
    let place = place.expect("local memory lies in one arena");
    worker.local.poison(place, bytes as usize);
    context.local_top.set(end);
    0
}

/// The host stack of the thread is used up.
pub(crate) unsafe extern "C" fn overflow(context: *const ThreadContext, line: u32) -> u32 {
    // SAFETY: as in `refuel`.
    let context = unsafe { &*context };
    let detail = "calls are nested too deeply".to_owned();
    let kind = FaultKind::StackOverflow { detail };
    status(Err(context.worker().fault(context, line, kind)))
}

/// `trap` and `brkpt`.
pub(crate) unsafe extern "C" fn trap(context: *const ThreadContext, line: u32) -> u32 {
    // SAFETY: as in `refuel`.
    let context = unsafe { &*context };
    status(Err(context.worker().fault(context, line, FaultKind::Trap)))
}

/// The jump of `brx.idx` has no such target.
pub(crate) unsafe extern "C" fn bad_target(
    context: *const ThreadContext,
    index: u32,
    line: u32,
) -> u32 {
    // SAFETY: as in `refuel`.
    let context = unsafe { &*context };
    let kind = FaultKind::IllegalCall {
        address: u64::from(index),
        detail: "the list of branch targets is shorter".to_owned(),
    };
    status(Err(context.worker().fault(context, line, kind)))
}

/// How a barrier is used, packed into one argument.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BarrierUse {
    pub(crate) reduce: Reduce,
    pub(crate) aligned: bool,
    /// `bar.arrive`: does not wait.
    pub(crate) arrive: bool,
}

impl BarrierUse {
    pub(crate) fn code(self) -> u32 {
        u32::from(self.reduce as u8) | u32::from(self.aligned) << 4 | u32::from(self.arrive) << 5
    }
}

/// `bar` and `barrier`; the count is zero when none was given.
pub(crate) unsafe extern "C" fn barrier(
    context: *const ThreadContext,
    code: u32,
    id: u32,
    count: u32,
    value: u32,
    line: u32,
) -> u64 {
    // SAFETY: as in `refuel`.
    let context = unsafe { &*context };
    let worker = context.worker();
    let divergent = |detail: String| {
        let kind = FaultKind::BarrierDivergence { detail };
        answer(Err(worker.fault(context, line, kind)))
    };
    if id >= BARRIERS {
        return divergent(format!("there is no barrier {id}, only 0 to 15"));
    }
    let most = worker.grid.threads.next_multiple_of(32);
    if !count.is_multiple_of(32) || count as usize > most {
        return divergent(format!(
            "barrier {id} for {count} threads: a multiple of 32 up to {most} is possible"
        ));
    }
    if code >> 5 & 1 == 1 {
        let mut arrivals = worker.arrivals.borrow_mut();
        arrivals.add(id, context.number.get());
        return 0;
    }
    let wait = BarrierWait {
        id,
        count,
        reduce: Reduce::of(code & 15),
        value: value != 0,
        aligned: code >> 4 & 1 == 1,
        line,
    };
    answer(worker.suspend(context, Wait::Barrier(wait)))
}

/// An operation of several lanes. `old` says that it has no mask.
pub(crate) unsafe extern "C" fn warp(
    context: *const ThreadContext,
    op: u32,
    mask: u32,
    a: u64,
    b: u32,
    c: u32,
    line: u32,
) -> u64 {
    // SAFETY: as in `refuel`.
    let context = unsafe { &*context };
    let worker = context.worker();
    let is_old = op >> 8 & 1 == 1;
    let op = WarpOp::of(op & 0xff);
    if !is_old && mask >> context.lane.get() & 1 == 0 {
        let detail = format!(
            "lane {} executes `{}` for lanes {mask:#010x}, to which it does not belong",
            context.lane.get(),
            op.name()
        );
        let kind = FaultKind::InvalidWarpOperation { detail };
        return answer(Err(worker.fault(context, line, kind)));
    }
    let wait = WarpWait {
        op,
        mask: (!is_old).then_some(mask),
        a,
        b,
        c,
        line,
    };
    answer(worker.suspend(context, Wait::Warp(wait)))
}

/// The code of the function a pointer stands for, if it has the expected signature; else zero.
pub(crate) unsafe extern "C" fn function(
    context: *const ThreadContext,
    address: u64,
    prototype: u32,
    line: u32,
) -> u64 {
    // SAFETY: as in `refuel`.
    let context = unsafe { &*context };
    let worker = context.worker();
    let image = worker.grid.launch.kernel.image();
    match image.callee(address, prototype as usize) {
        Ok(code) => code as u64,
        Err(detail) => {
            let kind = FaultKind::IllegalCall { address, detail };
            worker.fault(context, line, kind);
            0
        }
    }
}

/// Clocks: nanoseconds since the launch, or since 1970.
pub(crate) unsafe extern "C" fn clock(context: *const ThreadContext, global: u32) -> u64 {
    // SAFETY: as in `refuel`.
    let context = unsafe { &*context };
    if global == 0 {
        return context.worker().grid.nanoseconds();
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}
