//! Kernels in PTX, as NVRTC would write them, and how to launch them.

use std::ffi::{CStr, c_void};

use crate::rig::*;

/// Every kernel of the scenes.
pub(crate) const PTX: &CStr = c"
.version 8.0
.target sm_75
.address_size 64

.visible .global .align 4 .u32 counter = 5;
.visible .const .align 4 .u32 factor = 3;
.extern .shared .align 16 .b8 room[];

.visible .entry fill(.param .u64 fill_0, .param .u32 fill_1, .param .u32 fill_2)
{
	.reg .pred 	%p<2>;
	.reg .b32 	%r<8>;
	.reg .b64 	%rd<5>;
	ld.param.u64 	%rd1, [fill_0];
	ld.param.u32 	%r1, [fill_1];
	ld.param.u32 	%r2, [fill_2];
	mov.u32 	%r3, %ctaid.x;
	mov.u32 	%r4, %ntid.x;
	mov.u32 	%r5, %tid.x;
	mad.lo.s32 	%r6, %r3, %r4, %r5;
	setp.ge.u32 	%p1, %r6, %r1;
	@%p1 bra 	$L__done;
	cvta.to.global.u64 	%rd2, %rd1;
	mul.wide.u32 	%rd3, %r6, 4;
	add.s64 	%rd4, %rd2, %rd3;
	st.global.u32 	[%rd4], %r2;
$L__done:
	ret;
}

.visible .entry store(.param .u64 store_0)
{
	.reg .b32 	%r<2>;
	.reg .b64 	%rd<3>;
	ld.param.u64 	%rd1, [store_0];
	cvta.to.global.u64 	%rd2, %rd1;
	mov.u32 	%r1, 1;
	st.global.u32 	[%rd2], %r1;
	ret;
}

.visible .entry stop()
{
	trap;
	ret;
}

.visible .entry count()
{
	.reg .b32 	%r<3>;
	.reg .b64 	%rd<2>;
	mov.u64 	%rd1, counter;
	ld.const.u32 	%r1, [factor];
	atom.global.add.u32 	%r2, [%rd1], %r1;
	ret;
}

.visible .entry through(.param .u64 through_0)
{
	.reg .b32 	%r<5>;
	.reg .b64 	%rd<5>;
	ld.param.u64 	%rd1, [through_0];
	cvta.to.global.u64 	%rd2, %rd1;
	mov.u32 	%r1, %tid.x;
	shl.b32 	%r2, %r1, 2;
	mov.u32 	%r3, room;
	add.s32 	%r3, %r3, %r2;
	st.shared.u32 	[%r3], %r1;
	bar.sync 	0;
	ld.shared.u32 	%r4, [%r3];
	mul.wide.u32 	%rd3, %r1, 4;
	add.s64 	%rd4, %rd2, %rd3;
	st.global.u32 	[%rd4], %r4;
	ret;
}

.visible .entry pack(.param .u8 pack_0, .param .u64 pack_1, .param .align 4 .b8 pack_2[12], .param .u16 pack_3)
{
	.reg .b32 	%r<6>;
	.reg .b64 	%rd<3>;
	ld.param.u8 	%r1, [pack_0];
	ld.param.u64 	%rd1, [pack_1];
	ld.param.u32 	%r2, [pack_2+8];
	ld.param.u16 	%r3, [pack_3];
	cvta.to.global.u64 	%rd2, %rd1;
	st.global.u32 	[%rd2], %r1;
	st.global.u32 	[%rd2+4], %r2;
	st.global.u32 	[%rd2+8], %r3;
	ret;
}

.visible .entry narrow() .maxntid 64, 1, 1
{
	ret;
}
";

/// Loads a module.
pub(crate) fn load(text: &CStr) -> Handle {
    made!(cuModuleLoadData(In::new(text.as_ptr().cast())))
}

pub(crate) fn function(module: Handle, name: &CStr) -> Handle {
    made!(cuModuleGetFunction(module, Text::new(name)))
}

/// The kernel of a name in the current context.
pub(crate) fn kernel(name: &CStr) -> Handle {
    function(load(PTX), name)
}

/// Blocks and threads in one direction.
pub(crate) type Size = (u32, u32);

/// Launches a kernel; parameters are values of any type, by address.
pub(crate) fn launch(
    kernel: Handle,
    (blocks, threads): Size,
    shared: u32,
    stream: Handle,
    params: &[*const c_void],
) -> Status {
    let params: Vec<In<u8>> = params.iter().map(|param| In::new(param.cast())).collect();
    cu!(cuLaunchKernel(
        kernel,
        blocks,
        1,
        1,
        threads,
        1,
        1,
        shared,
        stream,
        In::new(params.as_ptr()),
        In::null(),
    ))
}

/// The address of a parameter.
pub(crate) fn param<T>(value: &T) -> *const c_void {
    std::ptr::from_ref(value).cast()
}

/// Launches `fill`.
pub(crate) fn fill(kernel: Handle, address: u64, count: u32, value: u32, stream: Handle) -> Status {
    let size = (count.div_ceil(32), 32);
    let params = [param(&address), param(&count), param(&value)];
    launch(kernel, size, 0, stream, &params)
}

/// Device memory as numbers.
pub(crate) fn numbers(address: u64, count: usize) -> Vec<u32> {
    let bytes = download(address, 4 * count);
    let words = bytes.chunks(4).map(|word| word.try_into().unwrap());
    words.map(u32::from_le_bytes).collect()
}
