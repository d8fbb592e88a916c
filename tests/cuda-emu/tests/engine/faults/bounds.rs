//! Accesses that are off by one element, in kernels of many shapes: each of them is caught.

use warploom_cuda_emu::engine::{Access, FaultKind, Why};

use super::{line_of, module};
use crate::args;
use crate::rig::{Rig, Shape};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Home {
    Global,
    Generic,
    Shared,
    SharedGeneric,
    Local,
    LocalGeneric,
    Const,
    Variable,
}

#[derive(Clone, Copy, Debug)]
struct Element {
    ty: &'static str,
    lanes: u32,
    bytes: u32,
}

const ELEMENTS: [Element; 9] = [
    element("u8", 1, 1),
    element("u16", 1, 2),
    element("s32", 1, 4),
    element("u64", 1, 8),
    element("f32", 1, 4),
    element("f64", 1, 8),
    element("u32", 2, 8),
    element("f32", 4, 16),
    element("f64", 2, 16),
];

const fn element(ty: &'static str, lanes: u32, bytes: u32) -> Element {
    Element { ty, lanes, bytes }
}

/// Elements of the array.
const COUNT: u32 = 37;

impl Element {
    fn registers(self) -> String {
        let one = match self.ty {
            "u8" | "u16" => "%h",
            "u64" => "%rd",
            "f32" => "%f",
            "f64" => "%fd",
            _ => "%r",
        };
        let parts: Vec<String> = (10..10 + self.lanes).map(|n| format!("{one}{n}")).collect();
        match self.lanes {
            1 => parts[0].clone(),
            _ => format!("{{{}}}", parts.join(", ")),
        }
    }

    fn suffix(self) -> String {
        match self.lanes {
            1 => self.ty.to_owned(),
            lanes => format!("v{lanes}.{}", self.ty),
        }
    }
}

/// Accesses elements from `first` up to `limit`.
fn kernel(home: Home, element: Element, operation: &str) -> String {
    let bytes = COUNT * element.bytes;
    let (before, inside, base, space) = match home {
        Home::Global => ("", "", "ld.param.u64 %rd1, [array];", ".global"),
        Home::Generic => ("", "", "ld.param.u64 %rd1, [array];", ""),
        Home::Variable => (
            ".global .align 16 .b8 table[BYTES];",
            "",
            "mov.u64 %rd1, table;",
            ".global",
        ),
        Home::Const => (
            ".const .align 16 .b8 table[BYTES];",
            "",
            "mov.u64 %rd1, table;",
            ".const",
        ),
        Home::Shared => (
            "",
            ".shared .align 16 .b8 tile[BYTES];",
            "mov.u64 %rd1, tile;",
            ".shared",
        ),
        Home::SharedGeneric => (
            "",
            ".shared .align 16 .b8 tile[BYTES];",
            "cvta.shared.u64 %rd1, tile;",
            "",
        ),
        Home::Local => (
            "",
            ".local .align 16 .b8 scratch[BYTES];",
            "mov.u64 %rd1, scratch;",
            ".local",
        ),
        Home::LocalGeneric => (
            "",
            ".local .align 16 .b8 scratch[BYTES];",
            "cvta.local.u64 %rd1, scratch;",
            "",
        ),
    };
    let suffix = element.suffix();
    let registers = element.registers();
    let access = match operation {
        "ld" => format!("ld{space}.{suffix} {registers}, [%rd3];"),
        "st" => format!("st{space}.{suffix} [%rd3], {registers};"),
        _ => format!("{operation}.{suffix} [%rd3], {registers};").replace("SPACE", space),
    };
    // Shared memory has to be written before it is read.
    let fill = match home {
        Home::Shared | Home::SharedGeneric => format!(
            "mov.u32 %r5, 0;
FILL:
    mov.u32 %r6, tile;
    add.u32 %r6, %r6, %r5;
    st.shared.u8 [%r6], 0;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p1, %r5, {bytes};
    @%p1 bra FILL;"
        ),
        _ => String::new(),
    };
    let stride = element.bytes;
    let body = format!(
        "    {inside}
    {fill}
    {base}
    ld.param.s32 %r1, [first];
    ld.param.s32 %r2, [limit];
NEXT:
    setp.ge.s32 %p1, %r1, %r2;
    @%p1 bra END;
    mul.wide.s32 %rd2, %r1, {stride};
    add.s64 %rd3, %rd1, %rd2;
    {access}
    add.s32 %r1, %r1, 1;
    bra NEXT;
END:
    ret;"
    );
    let params = ".param .u64 array, .param .s32 first, .param .s32 limit";
    let text = module(before, params, &body);
    text.replace("BYTES", &bytes.to_string())
}

fn check(home: Home, element: Element, operation: &str) {
    let text = kernel(home, element, operation);
    let rig = Rig::new(&text);
    let array = rig.memory.reserve(u64::from(COUNT * element.bytes), 256);
    let run = |first: i32, limit: u32| {
        rig.launch("k", Shape::line(1, 1), args!(array, first, limit as i32))
    };
    assert_eq!(run(0, COUNT), Ok(()), "{text}");
    let wanted = match operation {
        "ld" => Access::Read,
        "st" => Access::Write,
        _ => Access::Atomic,
    };
    for (first, limit) in [(0, COUNT + 1), (-1, COUNT)] {
        let fault = run(first, limit).expect_err(&text);
        assert_eq!(fault.line, line_of(&text, "[%rd3]"));
        let FaultKind::IllegalAddress {
            bytes, access, why, ..
        } = fault.kind
        else {
            panic!("{fault}\n{text}");
        };
        assert_eq!((bytes, access), (element.bytes, wanted), "{text}");
        assert!(
            matches!(why, Why::OutOfBounds { .. } | Why::Unmapped),
            "{why}"
        );
    }
}

#[test]
fn loads_and_stores_off_by_one() {
    let homes = [
        Home::Global,
        Home::Generic,
        Home::Variable,
        Home::Const,
        Home::Shared,
        Home::SharedGeneric,
        Home::Local,
        Home::LocalGeneric,
    ];
    let mut kernels = 0;
    for home in homes {
        for element in ELEMENTS {
            check(home, element, "ld");
            kernels += 1;
            if home != Home::Const {
                check(home, element, "st");
                kernels += 1;
            }
        }
    }
    assert_eq!(kernels, 8 * 9 + 7 * 9);
}

#[test]
fn atomics_off_by_one() {
    let homes = [
        Home::Global,
        Home::Generic,
        Home::Variable,
        Home::Shared,
        Home::SharedGeneric,
    ];
    let operations = [
        ("redSPACE.add", element("u32", 1, 4)),
        ("redSPACE.add", element("u64", 1, 8)),
        ("redSPACE.add", element("f32", 1, 4)),
        ("redSPACE.add", element("f64", 1, 8)),
        ("redSPACE.min", element("s32", 1, 4)),
        ("redSPACE.max", element("u64", 1, 8)),
        ("redSPACE.and", element("b32", 1, 4)),
        ("redSPACE.inc", element("u32", 1, 4)),
        ("redSPACE.relaxed.gpu.or", element("b32", 1, 4)),
        ("redSPACE.xor", element("b32", 1, 4)),
        ("redSPACE.dec", element("u32", 1, 4)),
        ("redSPACE.release.cta.add", element("s32", 1, 4)),
        ("redSPACE.max", element("s32", 1, 4)),
    ];
    for home in homes {
        for (operation, element) in operations {
            check(home, element, operation);
        }
    }
    // With the loads and stores of the other test these are 200 kernels.
    assert_eq!(homes.len() * operations.len() + 135, 200);
}
