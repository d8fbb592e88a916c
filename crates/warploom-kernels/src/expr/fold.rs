//! Simpler expressions that mean the same, bit for bit.

use super::graph::Graph;
use super::node::{Bin, Id, Node, Ty, Un};

/// What a node becomes.
pub(super) enum Folded {
    /// This node; perhaps the one it was.
    Node(Node),
    /// One that exists.
    Same(Id),
}

use Folded::{Node as New, Same};

/// A constant as a value.
#[derive(Clone, Copy)]
enum Value {
    Bool(bool),
    I32(i32),
    U32(u32),
    F32(f32),
    F64(f64),
}

impl Value {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "narrow types are kept in 64 bits"
    )]
    fn of(ty: Ty, bits: u64) -> Self {
        match ty {
            Ty::Bool => Self::Bool(bits != 0),
            Ty::I32 => Self::I32(bits as i32),
            Ty::U32 => Self::U32(bits as u32),
            Ty::F32 => Self::F32(f32::from_bits(bits as u32)),
            Ty::F64 => Self::F64(f64::from_bits(bits)),
        }
    }

    fn node(self) -> Node {
        match self {
            Self::Bool(v) => Node::Const(Ty::Bool, u64::from(v)),
            Self::I32(v) => Node::Const(Ty::I32, u64::from(v.cast_unsigned())),
            Self::U32(v) => Node::Const(Ty::U32, u64::from(v)),
            Self::F32(v) => Node::Const(Ty::F32, u64::from(v.to_bits())),
            Self::F64(v) => Node::Const(Ty::F64, v.to_bits()),
        }
    }
}

impl Graph {
    pub(super) fn fold(&self, node: Node, ty: Ty) -> Folded {
        match node {
            Node::Bin(op, a, b) => self.fold_bin(op, a, b),
            Node::Un(op, a) => match (op, self.node(a)) {
                (Un::Neg, Node::Un(Un::Neg, inner)) | (Un::Not, Node::Un(Un::Not, inner)) => {
                    Same(inner)
                }
                (Un::Abs, Node::Un(Un::Abs | Un::Neg, inner)) if self.ty(a).is_float() => {
                    New(Node::Un(Un::Abs, inner))
                }
                (_, Node::Const(ty, bits)) => {
                    unary(op, Value::of(ty, bits)).map_or(New(node), |v| New(v.node()))
                }
                _ => New(node),
            },
            Node::Cast(to, a) if self.ty(a) == to => Same(a),
            Node::Cast(to, a) => match self.node(a) {
                // What is wider needs no rounding on the way.
                Node::Cast(Ty::F64, inner) if to == Ty::F32 && self.ty(inner) == Ty::F32 => {
                    Same(inner)
                }
                Node::Const(ty, bits) => {
                    cast(to, Value::of(ty, bits)).map_or(New(node), |v| New(v.node()))
                }
                _ => New(node),
            },
            Node::Select(cond, a, b) => match self.node(cond) {
                Node::Const(_, bits) => Same(if bits == 0 { b } else { a }),
                _ if a == b => Same(a),
                _ => New(node),
            },
            Node::Fma(a, b, c) => {
                debug_assert!(ty.is_float(), "checked by the type rules");
                if let [
                    Some(Value::F32(a)),
                    Some(Value::F32(b)),
                    Some(Value::F32(c)),
                ] = [a, b, c].map(|id| self.value(id))
                {
                    return New(Value::F32(a.mul_add(b, c)).node());
                }
                New(node)
            }
            _ => New(node),
        }
    }

    fn value(&self, id: Id) -> Option<Value> {
        match self.node(id) {
            Node::Const(ty, bits) => Some(Value::of(ty, bits)),
            _ => None,
        }
    }

    fn fold_bin(&self, op: Bin, a: Id, b: Id) -> Folded {
        let (left, right) = (self.value(a), self.value(b));
        if let (Some(left), Some(right)) = (left, right)
            && let Some(value) = binary(op, left, right)
        {
            return New(value.node());
        }
        let commutes = matches!(
            op,
            Bin::Add | Bin::Mul | Bin::And | Bin::Or | Bin::Xor | Bin::Eq | Bin::Ne
        );
        // Constants to the right, otherwise older terms to the left: equal terms meet.
        let swap = match (left.is_some(), right.is_some()) {
            (true, false) => true,
            (false, true) => false,
            _ => a > b,
        };
        if commutes && swap {
            return self.fold_bin(op, b, a);
        }
        let node = Node::Bin(op, a, b);
        match (op, right) {
            // (x + c) + d, in whole numbers.
            (Bin::Add, Some(Value::I32(d))) => {
                if d == 0 {
                    return Same(a);
                }
                if let Node::Bin(Bin::Add, x, c) = self.node(a)
                    && let Some(Value::I32(c)) = self.value(c)
                {
                    return self.offset(x, c.wrapping_add(d));
                }
                New(node)
            }
            (Bin::Sub, Some(Value::I32(c))) => self.offset(a, c.wrapping_neg()),
            _ if is_nothing(op, right) => Same(a),
            // Exact: the inverse of a power of two is one too.
            (Bin::Div, Some(Value::F32(c))) if is_power_of_two(f64::from(c)) => {
                let inverse = self.add(Value::F32(1.0 / c).node());
                self.fold_bin(Bin::Mul, a, inverse.id())
            }
            (Bin::Div, Some(Value::F64(c))) if is_power_of_two(c) => {
                let inverse = self.add(Value::F64(1.0 / c).node());
                self.fold_bin(Bin::Mul, a, inverse.id())
            }
            // What is on the right decides alone.
            (Bin::And, Some(Value::Bool(false)))
            | (Bin::Or, Some(Value::Bool(true)))
            | (Bin::Mul, Some(Value::I32(0) | Value::U32(0))) => Same(b),
            _ if a == b && matches!(op, Bin::Min | Bin::Max) => Same(a),
            _ => New(node),
        }
    }

    fn offset(&self, x: Id, by: i32) -> Folded {
        if by == 0 {
            return Same(x);
        }
        let by = self.add(Value::I32(by).node());
        self.fold_bin(Bin::Add, x, by.id())
    }
}

/// Does the operation with this on its right leave every left side as it is?
fn is_nothing(op: Bin, right: Option<Value>) -> bool {
    let Some(right) = right else {
        return false;
    };
    match op {
        Bin::Mul | Bin::Div => matches!(
            right,
            Value::F32(1.0) | Value::F64(1.0) | Value::I32(1) | Value::U32(1)
        ),
        // Adding zero is not nothing: minus zero plus zero is plus zero.
        Bin::Sub => match right {
            Value::F32(v) => v == 0.0 && v.is_sign_positive(),
            Value::F64(v) => v == 0.0 && v.is_sign_positive(),
            Value::I32(v) => v == 0,
            Value::U32(v) => v == 0,
            Value::Bool(_) => false,
        },
        Bin::Add | Bin::Shl | Bin::Shr => matches!(right, Value::I32(0) | Value::U32(0)),
        Bin::And => matches!(right, Value::Bool(true)),
        Bin::Or => matches!(right, Value::Bool(false)),
        _ => false,
    }
}

/// A power of two whose inverse is a normal `f32` as well.
fn is_power_of_two(value: f64) -> bool {
    let bits = value.to_bits();
    let exponent = i64::try_from((bits >> 52) & 0x7ff).expect("eleven bits") - 1023;
    bits.trailing_zeros() >= 52 && (-100..=100).contains(&exponent)
}

fn unary(op: Un, value: Value) -> Option<Value> {
    Some(match (op, value) {
        (Un::Neg, Value::I32(v)) => Value::I32(v.wrapping_neg()),
        (Un::Neg, Value::U32(v)) => Value::U32(v.wrapping_neg()),
        (Un::Neg, Value::F32(v)) => Value::F32(-v),
        (Un::Neg, Value::F64(v)) => Value::F64(-v),
        (Un::Abs, Value::I32(v)) => Value::I32(v.wrapping_abs()),
        (Un::Abs, Value::U32(v)) => Value::U32(v),
        (Un::Abs, Value::F32(v)) => Value::F32(v.abs()),
        (Un::Abs, Value::F64(v)) => Value::F64(v.abs()),
        (Un::Not, Value::Bool(v)) => Value::Bool(!v),
        (Un::Not, Value::I32(v)) => Value::I32(!v),
        (Un::Not, Value::U32(v)) => Value::U32(!v),
        (Un::Sqrt, Value::F32(v)) => Value::F32(v.sqrt()),
        (Un::Sqrt, Value::F64(v)) => Value::F64(v.sqrt()),
        (Un::Floor, Value::F32(v)) => Value::F32(v.floor()),
        (Un::Floor, Value::F64(v)) => Value::F64(v.floor()),
        (Un::Ceil, Value::F32(v)) => Value::F32(v.ceil()),
        (Un::Ceil, Value::F64(v)) => Value::F64(v.ceil()),
        (Un::Round, Value::F32(v)) => Value::F32(v.round_ties_even()),
        (Un::Round, Value::F64(v)) => Value::F64(v.round_ties_even()),
        (Un::IsNan, Value::F32(v)) => Value::Bool(v.is_nan()),
        (Un::IsNan, Value::F64(v)) => Value::Bool(v.is_nan()),
        (Un::ToBits, Value::F32(v)) => Value::I32(v.to_bits().cast_signed()),
        (Un::FromBits, Value::I32(v)) => Value::F32(f32::from_bits(v.cast_unsigned())),
        _ => return None,
    })
}

fn float<T: PartialOrd + Copy>(
    op: Bin,
    a: T,
    b: T,
    wrap: fn(T) -> Value,
    math: [T; 4],
) -> Option<Value> {
    let [sum, difference, product, quotient] = math;
    Some(match op {
        Bin::Add => wrap(sum),
        Bin::Sub => wrap(difference),
        Bin::Mul => wrap(product),
        Bin::Div => wrap(quotient),
        Bin::Min => wrap(if b < a { b } else { a }),
        Bin::Max => wrap(if b > a { b } else { a }),
        Bin::Lt => Value::Bool(a < b),
        Bin::Le => Value::Bool(a <= b),
        Bin::Eq => Value::Bool(a == b),
        Bin::Ne => Value::Bool(a != b),
        _ => return None,
    })
}

macro_rules! whole {
    ($op:ident, $a:ident, $b:ident, $wrap:path, $count:expr) => {
        Some(match $op {
            Bin::Add => $wrap($a.wrapping_add($b)),
            Bin::Sub => $wrap($a.wrapping_sub($b)),
            Bin::Mul => $wrap($a.wrapping_mul($b)),
            Bin::Div if $b != 0 => $wrap($a.wrapping_div($b)),
            Bin::Rem if $b != 0 => $wrap($a.wrapping_rem($b)),
            Bin::Div | Bin::Rem => return None,
            Bin::Min => $wrap($a.min($b)),
            Bin::Max => $wrap($a.max($b)),
            Bin::Lt => Value::Bool($a < $b),
            Bin::Le => Value::Bool($a <= $b),
            Bin::Eq => Value::Bool($a == $b),
            Bin::Ne => Value::Bool($a != $b),
            Bin::And => $wrap($a & $b),
            Bin::Or => $wrap($a | $b),
            Bin::Xor => $wrap($a ^ $b),
            Bin::Shl => $wrap($a.wrapping_shl($count)),
            Bin::Shr => $wrap($a.wrapping_shr($count)),
        })
    };
}

fn binary(op: Bin, a: Value, b: Value) -> Option<Value> {
    match (a, b) {
        (Value::F32(a), Value::F32(b)) => float(op, a, b, Value::F32, [a + b, a - b, a * b, a / b]),
        (Value::F64(a), Value::F64(b)) => float(op, a, b, Value::F64, [a + b, a - b, a * b, a / b]),
        (Value::I32(a), Value::I32(b)) => whole!(op, a, b, Value::I32, b.cast_unsigned()),
        (Value::U32(a), Value::U32(b)) => whole!(op, a, b, Value::U32, b),
        (Value::Bool(a), Value::Bool(b)) => Some(Value::Bool(match op {
            Bin::And => a & b,
            Bin::Or => a | b,
            Bin::Xor | Bin::Ne => a ^ b,
            Bin::Eq => a == b,
            _ => return None,
        })),
        _ => None,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "in range by the node's contract"
)]
fn cast(to: Ty, value: Value) -> Option<Value> {
    let wide = match value {
        Value::Bool(v) => f64::from(u8::from(v)),
        Value::I32(v) if to == Ty::U32 => return Some(Value::U32(v.cast_unsigned())),
        Value::U32(v) if to == Ty::I32 => return Some(Value::I32(v.cast_signed())),
        Value::I32(v) => f64::from(v),
        Value::U32(v) => f64::from(v),
        Value::F32(v) => f64::from(v),
        Value::F64(v) => v,
    };
    match to {
        Ty::Bool => None,
        Ty::I32 => Some(Value::I32(wide as i32)),
        Ty::U32 => Some(Value::U32(wide as u32)),
        Ty::F32 => Some(Value::F32(wide as f32)),
        Ty::F64 => Some(Value::F64(wide)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_terms_are_one_node() {
        let graph = Graph::new();
        let (a, b) = (graph.param(Ty::F32), graph.param(Ty::F32));
        assert_eq!((a + b).id(), (b + a).id());
        assert_ne!(a.min(b).id(), b.min(a).id());
        assert_ne!((a + b).id(), (a - b).id());
    }

    #[test]
    fn constants_fold_and_identities_vanish() {
        let graph = Graph::new();
        let a = graph.param(Ty::F32);
        assert_eq!((a * 1.0).id(), a.id());
        assert_eq!((a / 4.0).id(), (a * 0.25).id());
        assert_ne!((a / 3.0).id(), (a * (1.0 / 3.0)).id());
        // Minus zero plus zero is plus zero: adding zero is not nothing.
        assert_ne!((a + 0.0).id(), a.id());
        assert_eq!((a - 0.0).id(), a.id());
        assert_ne!((a - -0.0).id(), a.id());
        let two = graph.float(1.0) + graph.float(1.0);
        assert_eq!(two.id(), graph.float(2.0).id());
        let [_, _, x] = graph.coords();
        assert_eq!((x + 3 - 1).id(), (x + 2).id());
        assert_eq!((x + 3 - 3).id(), x.id());
    }

    #[test]
    fn division_by_zero_is_left_to_the_device() {
        let graph = Graph::new();
        let zero = graph.int(0);
        assert!(matches!(
            graph.node((graph.int(1) / zero).id()),
            Node::Bin(Bin::Div, ..)
        ));
    }
}
