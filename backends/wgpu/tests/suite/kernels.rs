//! Compiling WGSL and passing arguments.

use warploom_core::memory::WGPU_DEVICE;
use warploom_core::{Arg, Caps, DType, DeviceError, Grid, KernelSource, Math, Param, Queue, Slice};

use crate::rig::{content, device, filled, part, queue};

#[test]
fn wrong_code_is_refused_with_the_compilers_words() {
    let Some(device) = device() else { return };
    let build = |code: &str| {
        let source = KernelSource::wgsl("k", code, &[Param::Write], [1, 1, 1]);
        match device.kernel(&source) {
            Err(DeviceError::Build { kernel, log, .. }) => {
                assert_eq!(kernel, "k");
                log
            }
            other => panic!("{other:?}"),
        }
    };
    let head = "@group(0) @binding(0) var<storage, read_write> a: array<u32>;\n";
    // Wrong grammar, found by the parser.
    let log = build(&format!(
        "{head}@compute @workgroup_size(1) fn k() {{ a[0] = ; }}"
    ));
    assert!(log.contains("2:45"), "{log}");
    // Wrong types, found by the validator.
    let log = build(&format!(
        "{head}@compute @workgroup_size(1) fn k() {{ a[0] = 1.5f; }}"
    ));
    assert!(log.contains("a[0] = 1.5f"), "{log}");
    // A name that is not there.
    let log = build(&format!(
        "{head}@compute @workgroup_size(1) fn other() {{ a[0] = 1u; }}"
    ));
    assert!(log.contains("no `@compute` function `k`"), "{log}");
}

#[test]
fn what_the_device_cannot_do_is_unsupported() {
    let Some(device) = device() else { return };
    let code = "@compute @workgroup_size(1) fn k() {}";
    let params = [Param::Scalar(DType::F64)];
    let error = device.kernel(&KernelSource::wgsl("k", code, &params, [1, 1, 1]));
    assert!(
        matches!(&error, Err(DeviceError::Unsupported { what, .. }) if what.contains("f64")),
        "{error:?}"
    );
}

#[test]
fn scalars_arrive_in_order_around_slices() {
    let Some(device) = device() else { return };
    let code = "
        struct P { a: u32, b: i32, c: f32, d: f32, e: u32 }
        @group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        @group(0) @binding(2) var<uniform> p: P;
        @compute @workgroup_size(1) fn mix() {
            y[0] = x[0] + f32(p.a);
            y[1] = x[1] + f32(p.b);
            y[2] = x[2] + p.c;
            y[3] = p.d;
            y[4] = f32(p.e);
        }";
    let scalar = Param::Scalar;
    let params = [
        scalar(DType::U32),
        Param::Read,
        scalar(DType::I32),
        scalar(DType::F32),
        Param::Write,
        scalar(DType::F32),
        scalar(DType::U32),
    ];
    let source = KernelSource::wgsl("mix", code, &params, [1, 1, 1]).with_math(Math::Fast);
    let kernel = device.kernel(&source).unwrap();
    let mut queue = queue(&device);
    let x = filled(
        &device,
        &mut queue,
        WGPU_DEVICE,
        bytemuck::cast_slice(&[0.5_f32, 1.5, 2.5]),
    );
    let y = device.alloc(WGPU_DEVICE, 20).unwrap();
    for round in 0..300_u16 {
        let add = f32::from(round);
        let args = [
            Arg::U32(u32::from(round)),
            Slice::whole(&x).into(),
            Arg::I32(-i32::from(round)),
            Arg::F32(add / 2.0),
            Slice::whole(&y).into(),
            Arg::F32(-0.25),
            Arg::U32(9),
        ];
        queue.launch(&kernel, Grid::groups([1; 3]), &args).unwrap();
        let got: Vec<f32> = bytemuck::pod_collect_to_vec(&content(&mut queue, &y));
        assert_eq!(got, [0.5 + add, 1.5 - add, 2.5 + add / 2.0, -0.25, 9.0]);
    }
}

#[test]
fn slices_of_one_buffer_meet_in_one_launch() {
    let Some(device) = device() else { return };
    let code = "
        @group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @group(0) @binding(1) var<storage, read_write> b: array<u32>;
        @group(0) @binding(2) var<storage, read_write> c: array<u32>;
        @compute @workgroup_size(1) fn sum(@builtin(global_invocation_id) i: vec3<u32>) {
            c[i.x] = a[i.x] + b[i.x] + arrayLength(&c);
        }";
    let params = [Param::Read, Param::Read, Param::Write];
    let kernel = device
        .kernel(&KernelSource::wgsl("sum", code, &params, [1, 1, 1]))
        .unwrap();
    let align = u64::from(device.info().limits.slice_align);
    let mut queue = queue(&device);
    let mut bytes = vec![0; usize::try_from(3 * align).unwrap()];
    bytes[0] = 5;
    bytes[usize::try_from(align).unwrap()] = 6;
    let buffer = filled(&device, &mut queue, WGPU_DEVICE, &bytes);
    // Six bytes are bound as two words.
    let args = [0, align, 2 * align].map(|start| part(&buffer, start, 6).into());
    queue.launch(&kernel, Grid::groups([1; 3]), &args).unwrap();
    let got = content(&mut queue, &buffer);
    assert_eq!(got[usize::try_from(2 * align).unwrap()], 5 + 6 + 2);
}

#[test]
fn a_slice_too_small_for_its_type_is_refused_and_the_list_goes_on() {
    let Some(device) = device() else { return };
    let code = "
        @group(0) @binding(0) var<storage, read_write> a: array<vec4<u32>>;
        @compute @workgroup_size(1) fn one() { a[0] = vec4<u32>(1u); }";
    let kernel = device
        .kernel(&KernelSource::wgsl("one", code, &[Param::Write], [1, 1, 1]))
        .unwrap();
    let mut queue = queue(&device);
    let buffer = filled(&device, &mut queue, WGPU_DEVICE, &[0; 16]);
    let launch = |queue: &mut dyn Queue, bytes| {
        let args = [part(&buffer, 0, bytes).into()];
        queue.launch(&kernel, Grid::groups([1; 3]), &args)
    };
    launch(&mut queue, 16).unwrap();
    let error = launch(&mut queue, 12).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("slice 0 of kernel `one` with 12 bytes"),
        "{error}"
    );
    assert_eq!(content(&mut queue, &buffer)[..5], [1, 0, 0, 0, 1]);
}

/// The wide and the narrow types, where the device says it has them.
#[test]
fn promised_types_really_work() {
    let Some(device) = device() else { return };
    let mut queue = queue(&device);
    let mut twice = |cap: Caps, head: &str, name: &str, before: &[u8], after: &[u8]| {
        if !device.info().caps.contains(cap) {
            println!("skipped: {} has no {name}", device.info().id);
            return;
        }
        let code = format!(
            "{head}
            @group(0) @binding(0) var<storage, read_write> a: array<{name}>;
            @compute @workgroup_size(1) fn twice() {{ a[0] = a[0] + a[0]; }}"
        );
        let source = KernelSource::wgsl("twice", &code, &[Param::ReadWrite], [1, 1, 1]);
        let kernel = device.kernel(&source).unwrap();
        let buffer = filled(&device, &mut queue, WGPU_DEVICE, before);
        let args = [Slice::whole(&buffer).into()];
        queue.launch(&kernel, Grid::groups([1; 3]), &args).unwrap();
        assert_eq!(content(&mut queue, &buffer), after, "{name}");
    };
    let double = |value: f64| value.to_le_bytes();
    twice(Caps::F64, "", "f64", &double(1.0 / 3.0), &double(2.0 / 3.0));
    let long = |value: i64| value.to_le_bytes();
    twice(
        Caps::I64,
        "",
        "i64",
        &long(-5_000_000_000),
        &long(-10_000_000_000),
    );
    // Two halves: 1.5 and 3.0 become 3.0 and 6.0.
    let (before, after) = ([0x00, 0x3e, 0x00, 0x42], [0x00, 0x42, 0x00, 0x46]);
    twice(Caps::F16, "enable f16;", "vec2<f16>", &before, &after);
}
