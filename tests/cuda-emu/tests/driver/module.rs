//! Modules and libraries.

use std::ffi::CStr;

use crate::Scene;
use crate::kernels::*;
use crate::rig::*;

pub(crate) const SCENES: &[Scene] = &[
    Scene::new("functions_have_names", functions_have_names)
        .says(&["no kernel `full`; there are [\"fill\", \"store\""]),
    Scene::new("unloaded_functions_are_stale", unloaded_functions_are_stale),
    Scene::new("unloaded_too_early", unloaded_too_early)
        .with(&[("WARPLOOM_EMU_JITTER", "0")])
        .says(&["kernel `count` was to run when its module had been unloaded"]),
    Scene::new("bad_ptx_is_explained", bad_ptx_is_explained),
    Scene::new("what_is_no_ptx", what_is_no_ptx).says(&["the emulator takes PTX only"]),
    Scene::new("ptx_of_later_devices", ptx_of_later_devices),
    Scene::new("ptx_of_later_times", ptx_of_later_times)
        .with(&[("WARPLOOM_EMU_DRIVER", "12.0")])
        .says(&["the PTX is of version 8.4; CUDA 12.0 knows up to 8.0"]),
    Scene::new("variables", variables),
    Scene::new("libraries", libraries),
    Scene::new("modules_from_files", modules_from_files),
];

fn functions_have_names() {
    enter(0);
    let module = load(PTX);
    let fill = function(module, c"fill");
    assert_eq!(function(module, c"fill"), fill, "always the same");
    let mut none = Handle::NULL;
    let answer = cu!(cuModuleGetFunction(
        Out::new(&raw mut none),
        module,
        Text::new(c"full")
    ));
    assert_eq!(answer, Status::NOT_FOUND);
    let mut name = std::ptr::null();
    ok!(cuFuncGetName(Out::new(&raw mut name), fill));
    // SAFETY: the name ends in a zero byte and lives as long as the function.
    let name = unsafe { CStr::from_ptr(name) };
    assert_eq!(name, c"fill");
    assert_eq!(made!(cuFuncGetModule(fill)), module);
    let count: u32 = made!(cuModuleGetFunctionCount(module));
    assert_eq!(count, 7);
}

fn unloaded_functions_are_stale() {
    enter(0);
    let module = load(PTX);
    let count = function(module, c"count");
    assert_eq!(launch(count, (1, 1), 0, DEFAULT, &[]), Status::SUCCESS);
    ok!(cuCtxSynchronize());
    ok!(cuModuleUnload(module));
    assert_eq!(
        launch(count, (1, 1), 0, DEFAULT, &[]),
        Status::INVALID_HANDLE
    );
    assert_eq!(cu!(cuModuleUnload(module)), Status::INVALID_HANDLE);
}

fn unloaded_too_early() {
    enter(0);
    let module = load(PTX);
    let count = function(module, c"count");
    let stream = stream(NON_BLOCKING);
    let gate = Gate::close(stream);
    assert_eq!(launch(count, (1, 1), 0, stream, &[]), Status::SUCCESS);
    ok!(cuModuleUnload(module));
    gate.open();
    assert_eq!(cu!(cuStreamSynchronize(stream)), Status::LAUNCH_FAILED);
}

/// Loads with room for an error log; the log, and how long it says it is.
fn load_logged(text: &CStr, room: usize) -> (Status, String, usize) {
    let mut log = vec![0xff_u8; room];
    let options = [5_u32, 6, 0];
    let mut values = [log.as_mut_ptr().expose_provenance(), room, 64];
    let mut module = Handle::NULL;
    let status = cu!(cuModuleLoadDataEx(
        Out::new(&raw mut module),
        In::new(text.as_ptr().cast()),
        3,
        In::new(options.as_ptr()),
        values.as_mut_ptr(),
    ));
    let text = CStr::from_bytes_until_nul(&log).unwrap();
    (status, text.to_str().unwrap().to_owned(), values[1])
}

fn bad_ptx_is_explained() {
    enter(0);
    let bad = c".version 8.0\n.target sm_75\n.address_size 64\n\
                .visible .entry k()\n{\n\tmake.coffee.u32 \t1;\n\tret;\n}\n";
    let (status, log, length) = load_logged(bad, 1000);
    assert_eq!(status, Status::INVALID_PTX);
    assert!(log.contains("line 6") && log.contains("make"), "{log}");
    assert_eq!(length, log.len());
    let (_, cut, length) = load_logged(bad, 10);
    assert_eq!((cut.as_str(), length), (&log[..9], 9));
    let (status, log, length) = load_logged(PTX, 100);
    assert_eq!((status, log.as_str(), length), (Status::SUCCESS, "", 0));
    let mut module = Handle::NULL;
    let image = In::new(PTX.as_ptr().cast());
    let place = Out::new(&raw mut module);
    let (option, mut value) = (1000, 0);
    let unknown = cu!(cuModuleLoadDataEx(
        place,
        image,
        1,
        In::from(&option),
        &raw mut value
    ));
    assert_eq!(unknown, Status::INVALID_VALUE);
}

fn try_load(image: &[u8]) -> Status {
    let mut module = Handle::NULL;
    cu!(cuModuleLoadData(
        Out::new(&raw mut module),
        In::new(image.as_ptr())
    ))
}

fn what_is_no_ptx() {
    enter(0);
    assert_eq!(
        try_load(b"\x7fELF\x02\x01\x01\0"),
        Status::NO_BINARY_FOR_GPU
    );
    assert_eq!(try_load(b"\x50\xed\x55\xba\0"), Status::NO_BINARY_FOR_GPU);
    assert_eq!(try_load(b"\xff\xfe\xfd\0"), Status::INVALID_IMAGE);
    assert_eq!(try_load(b"\0"), Status::INVALID_PTX);
    let mut module = Handle::NULL;
    let none = cu!(cuModuleLoadData(Out::new(&raw mut module), In::null()));
    assert_eq!(none, Status::INVALID_VALUE);
}

fn empty(version: &str, target: &str) -> Vec<u8> {
    let kernel = ".visible .entry k()\n{\n\tret;\n}\n";
    format!(".version {version}\n.target {target}\n.address_size 64\n{kernel}\0").into_bytes()
}

fn ptx_of_later_devices() {
    enter(0);
    assert_eq!(try_load(&empty("8.0", "sm_80")), Status::SUCCESS);
    assert_eq!(try_load(&empty("8.0", "sm_90")), Status::INVALID_PTX);
}

fn ptx_of_later_times() {
    enter(0);
    assert_eq!(try_load(&empty("8.0", "sm_80")), Status::SUCCESS);
    assert_eq!(
        try_load(&empty("8.4", "sm_80")),
        Status::UNSUPPORTED_PTX_VERSION
    );
}

fn variable(module: Handle, name: &CStr) -> (u64, usize) {
    let (mut address, mut bytes) = (0, 0);
    ok!(cuModuleGetGlobal_v2(
        Out::new(&raw mut address),
        Out::new(&raw mut bytes),
        module,
        Text::new(name),
    ));
    (address, bytes)
}

fn variables() {
    let mut places = Vec::new();
    for device in 0..2 {
        enter(device);
        let module = load(PTX);
        let (counter, bytes) = variable(module, c"counter");
        assert_eq!((bytes, numbers(counter, 1)), (4, vec![5]));
        let (factor, _) = variable(module, c"factor");
        upload(factor, &10_u32.to_le_bytes());
        let count = function(module, c"count");
        assert_eq!(launch(count, (2, 3), 0, DEFAULT, &[]), Status::SUCCESS);
        assert_eq!(numbers(counter, 1), [5 + 6 * 10]);
        let mut place = 0;
        let missing = cu!(cuModuleGetGlobal_v2(
            Out::new(&raw mut place),
            Out::null(),
            module,
            Text::new(c"nothing"),
        ));
        assert_eq!(missing, Status::NOT_FOUND);
        assert_eq!(cu!(cuMemFree_v2(counter)), Status::INVALID_VALUE);
        places.push(counter);
    }
    assert_ne!(places[0], places[1]);
}

fn libraries() {
    let second = enter(1);
    let first = enter(0);
    let mut library = Handle::NULL;
    ok!(cuLibraryLoadData(
        Out::new(&raw mut library),
        In::new(PTX.as_ptr().cast()),
        In::null(),
        std::ptr::null_mut(),
        0,
        In::null(),
        std::ptr::null_mut(),
        0,
    ));
    let kernel: Handle = made!(cuLibraryGetKernel(library, Text::new(c"fill")));
    for context in [first, second] {
        ok!(cuCtxSetCurrent(context));
        let address = alloc(40);
        assert_eq!(fill(kernel, address, 10, 3, DEFAULT), Status::SUCCESS);
        assert_eq!(numbers(address, 10), [3; 10]);
        let module: Handle = made!(cuLibraryGetModule(library));
        let function: Handle = made!(cuKernelGetFunction(kernel));
        assert_eq!(made!(cuFuncGetModule(function)), module);
    }
    ok!(cuLibraryUnload(library));
    assert_eq!(fill(kernel, 0, 0, 0, DEFAULT), Status::INVALID_HANDLE);
}

fn modules_from_files() {
    enter(0);
    let file = std::env::temp_dir().join(format!("emu-{}.ptx", std::process::id()));
    std::fs::write(&file, PTX.to_bytes()).unwrap();
    let path = std::ffi::CString::new(file.to_str().unwrap()).unwrap();
    let module: Handle = made!(cuModuleLoad(Text::new(&path)));
    function(module, c"fill");
    std::fs::remove_file(&file).unwrap();
    let mut none = Handle::NULL;
    let gone = cu!(cuModuleLoad(Out::new(&raw mut none), Text::new(&path)));
    assert_eq!(gone, Status::FILE_NOT_FOUND);
}
