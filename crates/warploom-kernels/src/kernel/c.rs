//! OpenCL C and CUDA C: one language but for the names of things.

use std::fmt::Write as _;

use warploom_core::DType;

use super::def::{Access, ArrayDecl, Atomic, KernelDef, Place, Space, Target, Work};
use super::prelude::{self, LANES, ROUND, ROUND_WIDE};
use super::walk::{Dialect, Walk};
use crate::expr::{Bin, Node, Ty, Un};

/// More turns than these stay a loop: long texts take long to compile.
const STRAIGHT: u32 = 16;
/// Loops of so many turns, or several times as many, are over pixels side by side.
const RUN: u32 = 64;

struct C<'a> {
    def: &'a KernelDef,
    cuda: bool,
}

/// The kernel's text.
pub(super) fn text(def: &KernelDef, target: Target) -> String {
    let c = C {
        def,
        cuda: target == Target::Cuda,
    };
    let head = c.head();
    let body = Walk::new(def, c).body();
    let hints = prelude::hints(&body);
    format!("{hints}{head}{body}}}\n")
}

fn element(dtype: DType) -> &'static str {
    match dtype {
        DType::U8 => "unsigned char",
        DType::U16 => "unsigned short",
        DType::I16 => "short",
        DType::U32 => "unsigned int",
        DType::F32 => "float",
        DType::F64 => "double",
        _ => "int",
    }
}

fn register(ty: Ty) -> &'static str {
    match ty {
        Ty::Bool | Ty::I32 => "int",
        Ty::U32 => "unsigned int",
        Ty::F32 => "float",
        Ty::F64 => "double",
    }
}

/// OpenCL's vector of sixteen elements of an array.
fn sixteen(array: &ArrayDecl) -> &'static str {
    match (array.narrow, array.ty) {
        (Some(DType::U8), _) => "uchar16",
        (Some(DType::U16), _) => "ushort16",
        (Some(DType::I16), _) => "short16",
        (_, Ty::Bool | Ty::I32) => "int16",
        (_, Ty::U32) => "uint16",
        (_, Ty::F32) => "float16",
        (_, Ty::F64) => "double16",
    }
}

/// A hint for a loop over so many vectors of an array. Without a loop a compiler need not keep a small one in memory.
fn straight(turns: u32) -> &'static str {
    if turns <= STRAIGHT {
        "WL_STRAIGHT "
    } else {
        ""
    }
}

/// Signed overflow is undefined in C and wraps in ours, as unsigned numbers do in C.
fn wrapping(sign: &str, a: &str, b: &str) -> String {
    format!("((int)((unsigned int){a} {sign} (unsigned int){b}))")
}

impl C<'_> {
    fn head(&self) -> String {
        let (def, mut text) = (self.def, String::new());
        if !self.cuda {
            if def.is_wide() {
                text += "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
            }
            text += "#pragma OPENCL FP_CONTRACT OFF\n";
            text += LANES;
            if self.has(Un::Round, Ty::F32) {
                text += ROUND;
            }
            if self.has(Un::Round, Ty::F64) || self.has(Un::Floor, Ty::F64) {
                text += ROUND_WIDE;
            }
        }
        let [x, y, z] = def.group;
        let buffers = def.buffers.iter().enumerate().map(|(at, buffer)| {
            let space = if self.cuda { "" } else { "__global " };
            let constant = match buffer.access {
                Access::Read if !buffer.atomic => "const ",
                _ => "",
            };
            let restrict = if self.cuda {
                "__restrict__"
            } else {
                "restrict"
            };
            format!(
                "{space}{constant}{}* {restrict} b{at}",
                element(buffer.dtype)
            )
        });
        let scalars = def.scalars.iter().enumerate();
        let scalars = scalars.map(|(at, scalar)| format!("{} p{at}", register(scalar.ty)));
        let params: Vec<String> = buffers.chain(scalars).collect();
        let start = if self.cuda {
            format!(
                "extern \"C\" __global__ void __launch_bounds__({})",
                x * y * z
            )
        } else {
            format!("__kernel __attribute__((reqd_work_group_size({x}, {y}, {z}))) void")
        };
        let _ = writeln!(text, "{start} {}({}) {{", def.name, params.join(", "));
        for (at, array) in def.arrays.iter().enumerate() {
            let space = match (array.space, self.cuda) {
                (Space::Private, _) => "",
                (Space::Shared, true) => "__shared__ ",
                (Space::Shared, false) => "__local ",
            };
            let aligned = match (array.dealt, self.cuda) {
                (true, false) => " __attribute__((aligned(128)))",
                _ => "",
            };
            let _ = writeln!(
                text,
                "  {space}{} a{at}[{}]{aligned};",
                array.narrow.map_or(register(array.ty), element),
                array.length
            );
        }
        text
    }

    /// Does the kernel do this to numbers of this type?
    fn has(&self, op: Un, ty: Ty) -> bool {
        let mut nodes = self.def.nodes.iter();
        nodes.any(|(node, of)| matches!(node, Node::Un(un, _) if *un == op) && *of == ty)
    }

    /// A function's name for a type: CUDA marks single precision.
    fn function(&self, name: &str, ty: Ty) -> String {
        let single = self.cuda && ty == Ty::F32;
        format!("{name}{}", if single { "f" } else { "" })
    }

    fn axis(axis: u8) -> char {
        ['x', 'y', 'z'][usize::from(axis)]
    }

    fn place(place: Place) -> String {
        match place {
            Place::Buffer(number) => format!("b{number}"),
            Place::Array(number) => format!("a{number}"),
        }
    }
}

impl Dialect for C<'_> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "narrow types are kept in 64 bits"
    )]
    fn constant(&self, ty: Ty, bits: u64) -> String {
        match ty {
            Ty::Bool => bits.to_string(),
            Ty::I32 => match bits as i32 {
                i32::MIN => "(-2147483647 - 1)".into(),
                value if value < 0 => format!("({value})"),
                value => value.to_string(),
            },
            Ty::U32 => format!("{bits}u"),
            Ty::F32 => {
                let value = f32::from_bits(bits as u32);
                let cast = if self.cuda {
                    "__int_as_float"
                } else {
                    "as_float"
                };
                if value.is_finite() {
                    format!("({value:e}f)")
                } else {
                    format!("{cast}(0x{bits:x})")
                }
            }
            Ty::F64 => {
                let value = f64::from_bits(bits);
                let cast = if self.cuda {
                    "__longlong_as_double"
                } else {
                    "as_double"
                };
                if value.is_finite() {
                    format!("({value:e})")
                } else {
                    format!("{cast}(0x{bits:x}L)")
                }
            }
        }
    }

    fn param(&self, index: u32) -> String {
        format!("p{index}")
    }

    fn un(&self, op: Un, ty: Ty, a: &str) -> String {
        match op {
            Un::Neg if ty == Ty::I32 => wrapping("-", "0", a),
            Un::Neg => format!("(-{a})"),
            Un::Abs if ty.is_float() => format!("{}({a})", self.function("fabs", ty)),
            Un::Abs if ty == Ty::U32 => a.to_owned(),
            Un::Abs => format!("({a} < 0 ? {} : {a})", wrapping("-", "0", a)),
            Un::Not if ty == Ty::Bool => format!("(!{a})"),
            Un::Not => format!("(~{a})"),
            Un::Sqrt => format!("{}({a})", self.function("sqrt", ty)),
            Un::Floor if !self.cuda && ty == Ty::F64 => format!("wl_floor_wide({a})"),
            Un::Floor => format!("{}({a})", self.function("floor", ty)),
            Un::Ceil => format!("{}({a})", self.function("ceil", ty)),
            Un::Round if !self.cuda && ty == Ty::F64 => format!("wl_round_wide({a})"),
            Un::Round if !self.cuda => format!("wl_round({a})"),
            Un::Round => format!("{}({a})", self.function("rint", ty)),
            Un::IsNan => format!("({a} != {a})"),
            Un::ToBits if self.cuda => format!("__float_as_int({a})"),
            Un::ToBits => format!("as_int({a})"),
            Un::FromBits if self.cuda => format!("__int_as_float({a})"),
            Un::FromBits => format!("as_float({a})"),
        }
    }

    fn bin(&self, op: Bin, ty: Ty, a: &str, b: &str) -> String {
        match (op, ty) {
            (Bin::Add, Ty::I32) => wrapping("+", a, b),
            (Bin::Sub, Ty::I32) => wrapping("-", a, b),
            (Bin::Mul, Ty::I32) => wrapping("*", a, b),
            // Processors end a program that divides by zero, or whose quotient is too large.
            (Bin::Div, Ty::I32) => {
                let negative = wrapping("-", "0", a);
                format!("({b} == 0 ? 0 : {b} == -1 ? {negative} : {a} / {b})")
            }
            (Bin::Rem, Ty::I32) => format!("(({b} == 0 | {b} == -1) ? 0 : {a} % {b})"),
            (Bin::Div, Ty::U32) => format!("({b} == 0u ? 0u : {a} / {b})"),
            (Bin::Rem, Ty::U32) => format!("({b} == 0u ? 0u : {a} % {b})"),
            _ => self.bounded(op, ty, a, b),
        }
    }

    fn bounded(&self, op: Bin, ty: Ty, a: &str, b: &str) -> String {
        let sign = match op {
            Bin::Min => return format!("({b} < {a} ? {b} : {a})"),
            Bin::Max => return format!("({b} > {a} ? {b} : {a})"),
            Bin::Shl if ty == Ty::I32 => return wrapping("<<", a, b),
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
            Bin::Shl => "<<",
            Bin::Shr => ">>",
        };
        format!("({a} {sign} {b})")
    }

    fn number(&self, a: &str) -> String {
        let wide = if self.cuda { "" } else { "(WL_AT)" };
        format!("{wide}{a}")
    }

    fn let_number(&self, name: &str, value: &str) -> String {
        let ty = if self.cuda { "int" } else { "WL_AT" };
        format!("const {ty} {name} = {value};")
    }

    fn fma(&self, ty: Ty, a: &str, b: &str, c: &str) -> String {
        format!("{}({a}, {b}, {c})", self.function("fma", ty))
    }

    fn select(&self, cond: &str, a: &str, b: &str) -> String {
        format!("({cond} ? {a} : {b})")
    }

    fn cast(&self, _: Ty, to: Ty, a: &str) -> String {
        match to {
            Ty::Bool => format!("({a} != 0)"),
            to => format!("(({}){a})", register(to)),
        }
    }

    fn work(&self, work: Work) -> String {
        match (work, self.cuda) {
            (Work::Global(axis), true) => {
                let axis = Self::axis(axis);
                format!("(int)(blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis})")
            }
            (Work::Local(axis), true) => format!("(int)threadIdx.{}", Self::axis(axis)),
            (Work::Group(axis), true) => format!("(int)blockIdx.{}", Self::axis(axis)),
            (Work::Groups(axis), true) => format!("(int)gridDim.{}", Self::axis(axis)),
            (Work::Global(axis), false) => format!("(int)get_global_id({axis})"),
            (Work::Local(axis), false) => format!("(int)get_local_id({axis})"),
            (Work::Group(axis), false) => format!("(int)get_group_id({axis})"),
            (Work::Groups(axis), false) => format!("(int)get_num_groups({axis})"),
        }
    }

    fn let_(&self, ty: Ty, name: &str, value: &str) -> String {
        format!("const {} {name} = {value};", register(ty))
    }

    fn var(&self, ty: Ty, name: &str, value: &str) -> String {
        format!("{} {name} = {value};", register(ty))
    }

    fn load(&self, place: Place, index: &str) -> String {
        let place = Self::place(place);
        format!("{place}[{index}]")
    }

    fn store(&self, place: Place, index: &str, value: &str) -> String {
        let cast = match place {
            Place::Buffer(number) => {
                format!("({})", element(self.def.buffers[number as usize].dtype))
            }
            Place::Array(number) => self.def.arrays[number as usize]
                .narrow
                .map_or_else(String::new, |dtype| format!("({})", element(dtype))),
        };
        format!("{}[{index}] = {cast}{value};", Self::place(place))
    }

    fn copy(&self, from: Place, first: &str, count: u32, to: Place, at: u32) -> Vec<String> {
        let (Place::Buffer(buffer), Place::Array(number), false) = (from, to, self.cuda) else {
            return self.copied(from, first, count, to, at);
        };
        let dtype = self.def.buffers[buffer as usize].dtype;
        let (vector, name) = (sixteen(&self.def.arrays[number as usize]), element(dtype));
        let (from, to, turns) = (Self::place(from), Self::place(to), count / 16);
        let (hint, first_vector) = (straight(turns), at / 16);
        vec![
            "{".into(),
            // Vectors lie anywhere in a buffer.
            format!("  typedef {vector} __attribute__((aligned(sizeof({name})))) any;"),
            format!("  {hint}for (int copy = 0; copy < {turns}; copy += 1) {{"),
            format!(
                "    const {vector} next = *(__global const any*)({from} + ({first} + copy * 16));"
            ),
            format!("    (({vector}*){to})[copy + {first_vector}] = next;"),
            "  }".into(),
            "}".into(),
        ]
    }

    fn deal(&self, from: Place, to: Place, length: u32) -> Vec<String> {
        let (Place::Array(number), false) = (from, self.cuda) else {
            return self.dealt(from, to, length);
        };
        let array = &self.def.arrays[number as usize];
        let vector = sixteen(array);
        let (from, to, half) = (Self::place(from), Self::place(to), length / 32);
        let hint = straight(half);
        vec![
            format!("{hint}for (int deal = 0; deal < {half}; deal += 1) {{"),
            format!("  const {vector} low = ((const {vector}*){from})[deal * 2];"),
            format!("  const {vector} high = ((const {vector}*){from})[deal * 2 + 1];"),
            format!("  (({vector}*){to})[deal] = ({vector})(low.even, high.even);"),
            format!("  (({vector}*){to})[deal + {half}] = ({vector})(low.odd, high.odd);"),
            "}".into(),
        ]
    }

    fn soon(&self, place: Place, index: &str, access: Access) -> Option<String> {
        let written = u8::from(access != Access::Read);
        let place = Self::place(place);
        (!self.cuda).then(|| format!("WL_SOON({place}[{index}], {written});"))
    }

    fn riffle(&self, from: Place, to: Place, length: u32) -> Vec<String> {
        let (Place::Array(number), false) = (from, self.cuda) else {
            return self.riffled(from, to, length);
        };
        let array = &self.def.arrays[number as usize];
        let vector = sixteen(array);
        let (from, to, half) = (Self::place(from), Self::place(to), length / 32);
        vec![
            format!("for (int deal = 0; deal < {half}; deal += 1) {{"),
            format!("  const {vector} low = ((const {vector}*){from})[deal];"),
            format!("  const {vector} high = ((const {vector}*){from})[deal + {half}];"),
            format!("  {vector} both;"),
            "  both.even = low.lo; both.odd = high.lo;".into(),
            format!("  (({vector}*){to})[deal * 2] = both;"),
            "  both.even = low.hi; both.odd = high.hi;".into(),
            format!("  (({vector}*){to})[deal * 2 + 1] = both;"),
            "}".into(),
        ]
    }

    fn atomic(&self, op: Atomic, place: Place, index: &str, value: &str, old: &str) -> String {
        let at = format!("&{}[{index}]", Self::place(place));
        let (cuda, opencl) = match op {
            Atomic::Add => ("atomicAdd", "atomic_add"),
            Atomic::Min => ("atomicMin", "atomic_min"),
            Atomic::Max => ("atomicMax", "atomic_max"),
            Atomic::Or => ("atomicOr", "atomic_or"),
            Atomic::Exchange => ("atomicExch", "atomic_xchg"),
            Atomic::CompareExchange(_) => ("atomicCAS", "atomic_cmpxchg"),
        };
        let name = if self.cuda { cuda } else { opencl };
        match op {
            Atomic::CompareExchange(_) => format!("{name}({at}, {old}, {value})"),
            _ => format!("{name}({at}, {value})"),
        }
    }

    fn for_(&self, name: &str, from: &str, to: &str, step: &str) -> String {
        let turns: Option<u32> = to.parse().ok().filter(|_| (from, step) == ("0", "1"));
        let is_side_by_side = turns.is_some_and(|turns| turns > 0 && turns.is_multiple_of(RUN));
        let hint = if is_side_by_side && !self.cuda {
            "WL_LANES "
        } else {
            ""
        };
        format!("{hint}for (int {name} = {from}; {name} < {to}; {name} += {step}) {{")
    }

    fn endless(&self) -> &'static str {
        "for (;;) {"
    }

    fn barrier(&self) -> &'static str {
        if self.cuda {
            "__syncthreads();"
        } else {
            "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"
        }
    }
}

#[cfg(test)]
mod tests {
    use warploom_core::DType;

    use crate::expr::Ty;
    use crate::kernel::{Access, Builder, Target, Work};

    #[test]
    fn numbers_of_elements_are_wide_for_processors_and_only_they() {
        let k = Builder::new();
        let src = k.buffer("src", DType::I32, Access::Read);
        let dst = k.buffer("dst", DType::I32, Access::Write);
        let pitch = k.scalar("pitch", Ty::I32);
        let x = k.let_(k.work(Work::Global(0)));
        let value = k.load(src, x + pitch * 2);
        k.store(dst, x, value + pitch);
        let def = k.finish("moved", [1, 1, 1]);
        let text = def.text(Target::OpenCl);
        let number = "b0[((WL_AT)v1 + ((WL_AT)p0 * 2))]";
        assert!(text.contains(number), "{text}");
        assert!(text.contains("#define WL_AT long"), "{text}");
        // Pixels are computed as ever: they wrap.
        assert!(
            text.contains("((unsigned int)p0 + (unsigned int)v2)"),
            "{text}"
        );
        let text = def.text(Target::Cuda);
        assert!(text.contains("b0[(v1 + (p0 * 2))]"), "{text}");
        assert!(!text.contains("WL_AT"), "{text}");
    }
}
