//! Host kernels over any buffers the host can see.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use crate::buffer::{Buffer, Slice};
use crate::device::DeviceId;
use crate::error::{DeviceError, Result};
use crate::host::call::{HostArg, HostCall, HostFn, run_caught};
use crate::kernel::{Kernel, KernelCode, KernelSource, Param};
use crate::queue::{Arg, Grid};

/// A compiled host kernel: the function and its declaration.
#[derive(Debug)]
pub struct FnKernel {
    name: String,
    params: Vec<Param>,
    group: [u32; 3],
    device: DeviceId,
    run: HostFn,
}

impl FnKernel {
    /// Keeps a host kernel's function; any other language is `Unsupported`.
    pub fn load(device: DeviceId, source: &KernelSource<'_>) -> Result<Arc<dyn Kernel>> {
        let KernelCode::Host(run) = source.code() else {
            return Err(DeviceError::unsupported(
                device,
                source.language().to_string(),
            ));
        };
        Ok(Arc::new(Self {
            name: source.name().to_owned(),
            params: source.params().to_vec(),
            group: source.group(),
            device,
            run: run.clone(),
        }))
    }

    /// The function of a kernel made by [`load`](Self::load).
    pub fn of(kernel: &dyn Kernel) -> Result<&Self> {
        (kernel as &dyn Any).downcast_ref().ok_or_else(|| {
            let what = format!("kernel `{}` of another backend", kernel.name());
            DeviceError::unsupported(kernel.device(), what)
        })
    }

    /// The function itself.
    pub fn function(&self) -> &HostFn {
        &self.run
    }

    /// Runs a kernel now, over buffers that answer [`Buffer::with_host`].
    pub fn run(kernel: &Arc<dyn Kernel>, grid: Grid, args: &[Arg]) -> Result<()> {
        let kernel = Self::of(&**kernel)?;
        let mut buffers: Vec<&Arc<dyn Buffer>> = args
            .iter()
            .filter_map(slice_of)
            .map(Slice::buffer)
            .collect();
        // One order for all threads, so that two launches cannot hold each other's buffers.
        buffers.sort_by_key(|buffer| address(buffer));
        buffers.dedup_by_key(|buffer| address(buffer));
        let mut outcome = Ok(());
        lend(&buffers, Vec::new(), &mut |bytes| {
            let lent = buffers
                .iter()
                .map(|buffer| address(buffer))
                .zip(bytes)
                .collect();
            outcome = kernel.call(grid, args, lent);
        })?;
        outcome
    }

    fn call(&self, grid: Grid, args: &[Arg], lent: Vec<(usize, &mut [u8])>) -> Result<()> {
        let mut host: Vec<HostArg<'_>> = args
            .iter()
            .map(|arg| HostArg::Scalar(arg.clone()))
            .collect();
        for (buffer, mut rest) in lent {
            let parts = args.iter().enumerate().filter_map(|(index, arg)| {
                let slice = slice_of(arg).filter(|s| address(s.buffer()) == buffer)?;
                Some((index, slice.host_range()))
            });
            let mut at = 0;
            for (hull, members) in runs(parts.collect()) {
                let (_, tail) = std::mem::take(&mut rest).split_at_mut(hull.start - at);
                let (run, tail) = tail.split_at_mut(hull.len());
                (rest, at) = (tail, hull.end);
                if let [(index, _)] = members[..]
                    && self.params[index].is_written()
                {
                    host[index] = HostArg::Write(run);
                    continue;
                }
                let run: &[u8] = run;
                for (index, range) in members {
                    if self.params[index].is_written() {
                        // `CheckedQueue` refuses this; a bare queue must not hand out two views.
                        let what = format!("overlapping argument {index} of `{}`", self.name);
                        return Err(DeviceError::unsupported(self.device, what));
                    }
                    host[index] =
                        HostArg::Read(&run[range.start - hull.start..range.end - hull.start]);
                }
            }
        }
        run_caught(
            self.device,
            &self.name,
            &self.run,
            &mut HostCall::new(grid, host),
        )
    }
}

type Part = (usize, Range<usize>);

/// Argument ranges of one buffer, grouped into runs that share bytes.
fn runs(mut parts: Vec<Part>) -> Vec<(Range<usize>, Vec<Part>)> {
    parts.sort_by_key(|(_, range)| range.start);
    let mut runs: Vec<(Range<usize>, Vec<Part>)> = Vec::new();
    for (index, range) in parts {
        match runs.last_mut() {
            Some((hull, members)) if range.start < hull.end => {
                hull.end = hull.end.max(range.end);
                members.push((index, range));
            }
            _ => runs.push((range.clone(), vec![(index, range)])),
        }
    }
    runs
}

fn slice_of(arg: &Arg) -> Option<&Slice> {
    match arg {
        Arg::Slice(slice) => Some(slice),
        _ => None,
    }
}

fn address(buffer: &Arc<dyn Buffer>) -> usize {
    Arc::as_ptr(buffer).cast::<()>().addr()
}

/// Borrows all `buffers` at once, in order, and hands their bytes to `f`.
fn lend(
    buffers: &[&Arc<dyn Buffer>],
    lent: Vec<&mut [u8]>,
    f: &mut dyn FnMut(Vec<&mut [u8]>),
) -> Result<()> {
    let Some((first, rest)) = buffers.split_first() else {
        f(lent);
        return Ok(());
    };
    let mut lent = Some(lent);
    let mut outcome = Ok(());
    first.with_host(&mut |bytes| {
        if let Some(mut all) = lent.take() {
            all.push(bytes);
            outcome = lend(rest, all, f);
        }
    })?;
    outcome
}

impl Kernel for FnKernel {
    fn name(&self) -> &str {
        &self.name
    }
    fn params(&self) -> &[Param] {
        &self.params
    }
    fn group(&self) -> [u32; 3] {
        self.group
    }
    fn device(&self) -> DeviceId {
        self.device
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::BackendId;
    use crate::host::HostBuffer;
    use crate::memory::HOST;

    const DEVICE: DeviceId = DeviceId::new(BackendId::CPU, 0);

    fn buffer(values: &[f32]) -> Arc<dyn Buffer> {
        let buffer = HostBuffer::zeroed(DEVICE, HOST, values.len() as u64 * 4).unwrap();
        buffer
            .with_host(&mut |b| b.copy_from_slice(bytemuck::cast_slice(values)))
            .unwrap();
        Arc::new(buffer)
    }

    fn values(buffer: &Arc<dyn Buffer>) -> Vec<f32> {
        let mut out = Vec::new();
        buffer
            .with_host(&mut |b| out = bytemuck::cast_slice::<u8, f32>(b).to_vec())
            .unwrap();
        out
    }

    fn add() -> Arc<dyn Kernel> {
        let params = [
            Param::Read,
            Param::Read,
            Param::Write,
            Param::Scalar(crate::DType::F32),
        ];
        let source = KernelSource::host("add", &params, |call| {
            let (a, b, scale) = (
                call.read::<f32>(0),
                call.read::<f32>(1),
                call.scalar::<f32>(3),
            );
            for ((out, a), b) in call.write::<f32>(2).iter_mut().zip(a).zip(b) {
                *out = scale * (a + b);
            }
        });
        FnKernel::load(DEVICE, &source).unwrap()
    }

    fn part(buffer: &Arc<dyn Buffer>, range: Range<u64>) -> Arg {
        Slice::new(Arc::clone(buffer), range).unwrap().into()
    }

    #[test]
    fn readers_may_share_bytes_and_slices_may_share_a_buffer() {
        let all = buffer(&[1.0, 2.0, 3.0, 0.0, 0.0]);
        let args = [
            part(&all, 0..8),
            part(&all, 4..12),
            part(&all, 12..20),
            Arg::F32(2.0),
        ];
        FnKernel::run(&add(), Grid::groups([1; 3]), &args).unwrap();
        assert_eq!(values(&all), [1.0, 2.0, 3.0, 6.0, 10.0]);
    }

    #[test]
    fn a_written_overlap_is_refused_not_aliased() {
        let all = buffer(&[1.0, 2.0, 3.0]);
        let args = [
            part(&all, 0..8),
            part(&all, 0..8),
            part(&all, 4..12),
            Arg::F32(1.0),
        ];
        let error = FnKernel::run(&add(), Grid::groups([1; 3]), &args).unwrap_err();
        assert!(matches!(error, DeviceError::Unsupported { .. }), "{error}");
        assert_eq!(values(&all), [1.0, 2.0, 3.0]);
    }

    #[test]
    fn a_panicking_kernel_is_an_error_and_the_buffer_lives_on() {
        let all = buffer(&[1.0]);
        let source = KernelSource::host("bad", &[Param::Write], |_| panic!("on purpose"));
        let kernel = FnKernel::load(DEVICE, &source).unwrap();
        let error = FnKernel::run(&kernel, Grid::groups([1; 3]), &[part(&all, 0..4)]).unwrap_err();
        assert!(error.to_string().contains("on purpose"), "{error}");
        assert_eq!(values(&all), [1.0]);
    }

    #[test]
    fn a_wrong_accessor_says_so_in_few_words() {
        let all = buffer(&vec![0.0; 100_000]);
        let read = |call: &mut HostCall<'_>| {
            call.read::<f32>(0);
        };
        let twice = |call: &mut HostCall<'_>| {
            call.write::<f32>(0);
            call.write::<f32>(0);
        };
        for (run, says) in [
            (
                HostFn(Arc::new(read)),
                "not a slice that is only read: Some(400000 bytes to write)",
            ),
            (HostFn(Arc::new(twice)), "argument 0 was taken already"),
        ] {
            let source = KernelSource::host("bad", &[Param::Write], move |call| run.call(call));
            let kernel = FnKernel::load(DEVICE, &source).unwrap();
            let args = [part(&all, 0..400_000)];
            let error = FnKernel::run(&kernel, Grid::groups([1; 3]), &args).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
