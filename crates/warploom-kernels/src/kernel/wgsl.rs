//! WGSL: whole words only, so that small elements are packed, and no `f64`, so that it is a pair.

use std::fmt::Write as _;

use warploom_core::DType;

use super::def::{Access, Atomic, BufferDecl, KernelDef, Place, Space, Work};
use super::walk::{Dialect, Walk};
use super::wide;
use crate::expr::{Bin, Ty, Un};

struct Wgsl<'a> {
    def: &'a KernelDef,
}

/// The kernel's text.
pub(super) fn text(def: &KernelDef) -> String {
    let wgsl = Wgsl { def };
    let head = wgsl.head();
    format!("{head}{}}}\n", Walk::new(def, wgsl).body())
}

fn register(ty: Ty) -> &'static str {
    match ty {
        Ty::Bool => "bool",
        Ty::I32 => "i32",
        Ty::U32 => "u32",
        Ty::F32 => "f32",
        Ty::F64 => "vec2<f32>",
    }
}

/// Bits of an element that shares a word with others.
fn packed(dtype: DType) -> Option<u32> {
    match dtype {
        DType::U8 => Some(8),
        DType::U16 | DType::I16 => Some(16),
        _ => None,
    }
}

/// Neighbours in a word are written by different items, so the word is changed in one step.
fn is_atomic(buffer: &BufferDecl) -> bool {
    buffer.atomic || (packed(buffer.dtype).is_some() && buffer.access != Access::Read)
}

impl Wgsl<'_> {
    fn head(&self) -> String {
        let (def, mut text) = (self.def, String::new());
        for (at, buffer) in def.buffers.iter().enumerate() {
            let word = match buffer.dtype {
                DType::F32 => "f32",
                DType::F64 => "vec2<f32>",
                DType::I32 => "i32",
                _ => "u32",
            };
            let word = if is_atomic(buffer) {
                format!("atomic<{word}>")
            } else {
                word.to_owned()
            };
            let _ = writeln!(
                text,
                "@group(0) @binding({at}) var<storage, read_write> b{at}: array<{word}>;"
            );
        }
        if !def.scalars.is_empty() {
            let fields = def.scalars.iter().enumerate();
            let fields: Vec<String> = fields
                .map(|(at, scalar)| format!("p{at}: {}", register(scalar.ty)))
                .collect();
            let _ = writeln!(text, "struct Numbers {{ {} }}", fields.join(", "));
            let _ = writeln!(
                text,
                "@group(0) @binding({}) var<uniform> n: Numbers;",
                def.buffers.len()
            );
        }
        for (at, array) in def.arrays.iter().enumerate() {
            let element = if array.atomic {
                format!("atomic<{}>", register(array.ty))
            } else {
                register(array.ty).to_owned()
            };
            let space = match array.space {
                Space::Shared => "workgroup",
                Space::Private => "private",
            };
            let _ = writeln!(
                text,
                "var<{space}> a{at}: array<{element}, {}>;",
                array.length
            );
        }
        text += "fn wl_float(bits: u32) -> f32 { return bitcast<f32>(bits); }\n";
        if def.is_wide() {
            text += wide::PRELUDE;
        }
        for (at, buffer) in def.buffers.iter().enumerate() {
            text += &small_access(at, buffer);
        }
        let [x, y, z] = def.group;
        let _ = writeln!(
            text,
            "@compute @workgroup_size({x}, {y}, {z})\nfn {}(@builtin(global_invocation_id) wl_global: vec3<u32>, \
             @builtin(local_invocation_id) wl_local: vec3<u32>, @builtin(workgroup_id) wl_group: vec3<u32>, \
             @builtin(num_workgroups) wl_groups: vec3<u32>) {{",
            def.name
        );
        if def.is_wide() {
            text += wide::START;
        }
        text
    }
}

/// Functions that reach one small element of a word.
fn small_access(at: usize, buffer: &BufferDecl) -> String {
    let Some(bits) = packed(buffer.dtype) else {
        return String::new();
    };
    let (shift, mask) = if bits == 8 { (2, 255) } else { (1, 65535) };
    let word = if is_atomic(buffer) {
        format!("atomicLoad(&b{at}[u32(i) >> {shift}u])")
    } else {
        format!("b{at}[u32(i) >> {shift}u]")
    };
    let place = format!("(u32(i) & {}u) * {bits}u", (1 << shift) - 1);
    let element = format!("i32(({word} >> ({place})) & {mask}u)");
    let element = if buffer.dtype == DType::I16 {
        format!("(({element} << 16u) >> 16u)")
    } else {
        element
    };
    let mut text = format!("fn ld{at}(i: i32) -> i32 {{ return {element}; }}\n");
    if buffer.access != Access::Read {
        let _ = writeln!(
            text,
            "fn st{at}(i: i32, v: i32) {{\n  let s = {place};\n  \
             atomicAnd(&b{at}[u32(i) >> {shift}u], ~({mask}u << s));\n  \
             atomicOr(&b{at}[u32(i) >> {shift}u], (u32(v) & {mask}u) << s);\n}}"
        );
    }
    text
}

impl Wgsl<'_> {
    fn is_atomic(&self, place: Place) -> bool {
        match place {
            Place::Buffer(number) => is_atomic(&self.def.buffers[number as usize]),
            Place::Array(number) => self.def.arrays[number as usize].atomic,
        }
    }

    fn packed(&self, place: Place) -> bool {
        match place {
            Place::Buffer(number) => packed(self.def.buffers[number as usize].dtype).is_some(),
            Place::Array(_) => false,
        }
    }

    fn element(place: Place, index: &str) -> String {
        match place {
            Place::Buffer(number) => format!("b{number}[{index}]"),
            Place::Array(number) => format!("a{number}[{index}]"),
        }
    }
}

impl Dialect for Wgsl<'_> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "narrow types are kept in 64 bits"
    )]
    fn constant(&self, ty: Ty, bits: u64) -> String {
        match ty {
            Ty::Bool => (bits != 0).to_string(),
            Ty::I32 => format!("i32({})", bits as i32),
            Ty::U32 => format!("{bits}u"),
            Ty::F32 => {
                let value = f32::from_bits(bits as u32);
                if value == 0.0 && value.is_sign_positive() {
                    "0f".into()
                } else if value.is_normal() {
                    format!("f32({value:e})")
                } else {
                    // A call is not folded, and folding refuses what is not finite.
                    format!("wl_float({bits}u)")
                }
            }
            Ty::F64 => wide::constant(f64::from_bits(bits)),
        }
    }

    fn param(&self, index: u32) -> String {
        format!("n.p{index}")
    }

    fn un(&self, op: Un, ty: Ty, a: &str) -> String {
        if ty == Ty::F64 {
            return wide::un(op, a);
        }
        match op {
            Un::Neg if ty == Ty::U32 => format!("(0u - {a})"),
            Un::Neg => format!("(-{a})"),
            Un::Abs => format!("abs({a})"),
            Un::Not if ty == Ty::Bool => format!("(!{a})"),
            Un::Not => format!("(~{a})"),
            Un::Sqrt => format!("sqrt({a})"),
            Un::Floor => format!("floor({a})"),
            Un::Ceil => format!("ceil({a})"),
            Un::Round => format!("round({a})"),
            Un::IsNan => format!("((bitcast<u32>({a}) & 0x7fffffffu) > 0x7f800000u)"),
            Un::ToBits => format!("bitcast<i32>({a})"),
            Un::FromBits => format!("bitcast<f32>({a})"),
        }
    }

    fn bin(&self, op: Bin, ty: Ty, a: &str, b: &str) -> String {
        match (op, ty) {
            (Bin::Div, Ty::I32 | Ty::U32) => {
                let zero = self.constant(ty, 0);
                let quotient = self.bounded(op, ty, a, b);
                format!("select({quotient}, {zero}, {b} == {zero})")
            }
            // Whole numbers wrap, and a remainder by zero is zero.
            _ => self.bounded(op, ty, a, b),
        }
    }

    fn bounded(&self, op: Bin, ty: Ty, a: &str, b: &str) -> String {
        if ty == Ty::F64 {
            return wide::bin(op, a, b);
        }
        let sign = match op {
            Bin::Min => return format!("select({a}, {b}, {b} < {a})"),
            Bin::Max => return format!("select({a}, {b}, {b} > {a})"),
            // As `!=` it would not hold for NaN: SPIR-V has an ordered one, and naga takes it.
            Bin::Ne if ty.is_float() => return format!("(!({a} == {b}))"),
            Bin::Shl => return format!("({a} << u32({b}))"),
            Bin::Shr => return format!("({a} >> u32({b}))"),
            Bin::Xor if ty == Ty::Bool => "!=",
            Bin::Add => "+",
            Bin::Sub => "-",
            Bin::Mul => "*",
            Bin::Div => "/",
            Bin::Rem => "%",
            Bin::Lt => "<",
            Bin::Le => "<=",
            Bin::Eq => "==",
            Bin::Ne => "!=",
            Bin::And => "&",
            Bin::Or => "|",
            Bin::Xor => "^",
        };
        format!("({a} {sign} {b})")
    }

    fn fma(&self, ty: Ty, a: &str, b: &str, c: &str) -> String {
        if ty == Ty::F64 {
            return wide::bin(Bin::Add, &wide::bin(Bin::Mul, a, b), c);
        }
        format!("fma({a}, {b}, {c})")
    }

    fn select(&self, cond: &str, a: &str, b: &str) -> String {
        format!("select({b}, {a}, {cond})")
    }

    fn cast(&self, from: Ty, to: Ty, a: &str) -> String {
        match (from, to) {
            (Ty::F64, _) | (_, Ty::F64) => wide::cast(from, to, a),
            (Ty::I32, Ty::U32) => format!("bitcast<u32>({a})"),
            (Ty::U32, Ty::I32) => format!("bitcast<i32>({a})"),
            (_, to) => format!("{}({a})", register(to)),
        }
    }

    fn work(&self, work: Work) -> String {
        let axis = |axis: u8| ['x', 'y', 'z'][usize::from(axis)];
        match work {
            Work::Global(at) => format!("i32(wl_global.{})", axis(at)),
            Work::Local(at) => format!("i32(wl_local.{})", axis(at)),
            Work::Group(at) => format!("i32(wl_group.{})", axis(at)),
            Work::Groups(at) => format!("i32(wl_groups.{})", axis(at)),
        }
    }

    fn let_(&self, _: Ty, name: &str, value: &str) -> String {
        format!("let {name} = {value};")
    }

    fn var(&self, ty: Ty, name: &str, value: &str) -> String {
        format!("var {name}: {} = {value};", register(ty))
    }

    fn load(&self, place: Place, index: &str) -> String {
        match place {
            Place::Buffer(number) if self.packed(place) => format!("ld{number}({index})"),
            _ if self.is_atomic(place) => format!("atomicLoad(&{})", Self::element(place, index)),
            _ => Self::element(place, index),
        }
    }

    fn store(&self, place: Place, index: &str, value: &str) -> String {
        match place {
            Place::Buffer(number) if self.packed(place) => format!("st{number}({index}, {value});"),
            _ if self.is_atomic(place) => {
                format!("atomicStore(&{}, {value});", Self::element(place, index))
            }
            _ => format!("{} = {value};", Self::element(place, index)),
        }
    }

    fn atomic(&self, op: Atomic, place: Place, index: &str, value: &str, old: &str) -> String {
        let at = format!("&{}", Self::element(place, index));
        let name = match op {
            Atomic::CompareExchange(_) => {
                return format!("atomicCompareExchangeWeak({at}, {old}, {value}).old_value");
            }
            Atomic::Add => "atomicAdd",
            Atomic::Min => "atomicMin",
            Atomic::Max => "atomicMax",
            Atomic::Or => "atomicOr",
            Atomic::Exchange => "atomicExchange",
        };
        format!("{name}({at}, {value})")
    }

    fn for_(&self, name: &str, from: &str, to: &str, step: &str) -> String {
        format!("for (var {name}: i32 = {from}; {name} < {to}; {name} += {step}) {{")
    }

    fn endless(&self) -> &'static str {
        "loop {"
    }

    fn barrier(&self) -> &'static str {
        "workgroupBarrier(); storageBarrier();"
    }
}
