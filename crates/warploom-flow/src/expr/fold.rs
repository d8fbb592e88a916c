//! Simpler expressions that mean the same, bit for bit.

use super::datum::{Datum, binary, cast, fused, unary};
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
                    unary(op, Datum::of(ty, bits)).map_or(New(node), |v| New(v.node()))
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
                    cast(to, Datum::of(ty, bits)).map_or(New(node), |v| New(v.node()))
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
                match [a, b, c].map(|id| self.value(id)) {
                    [Some(a), Some(b), Some(c)] => {
                        fused(a, b, c).map_or(New(node), |v| New(v.node()))
                    }
                    _ => New(node),
                }
            }
            _ => New(node),
        }
    }

    fn value(&self, id: Id) -> Option<Datum> {
        match self.node(id) {
            Node::Const(ty, bits) => Some(Datum::of(ty, bits)),
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
            (Bin::Add, Some(Datum::I32(d))) => {
                if d == 0 {
                    return Same(a);
                }
                if let Node::Bin(Bin::Add, x, c) = self.node(a)
                    && let Some(Datum::I32(c)) = self.value(c)
                {
                    return self.offset(x, c.wrapping_add(d));
                }
                New(node)
            }
            (Bin::Sub, Some(Datum::I32(c))) => self.offset(a, c.wrapping_neg()),
            _ if is_nothing(op, right) => Same(a),
            // Exact: the inverse of a power of two is one too.
            (Bin::Div, Some(Datum::F32(c))) if is_power_of_two(f64::from(c)) => {
                let inverse = self.add(Datum::F32(1.0 / c).node());
                self.fold_bin(Bin::Mul, a, inverse.id())
            }
            (Bin::Div, Some(Datum::F64(c))) if is_power_of_two(c) => {
                let inverse = self.add(Datum::F64(1.0 / c).node());
                self.fold_bin(Bin::Mul, a, inverse.id())
            }
            // What is on the right decides alone.
            (Bin::And, Some(Datum::Bool(false)))
            | (Bin::Or, Some(Datum::Bool(true)))
            | (Bin::Mul, Some(Datum::I32(0) | Datum::U32(0))) => Same(b),
            _ if a == b && matches!(op, Bin::Min | Bin::Max) => Same(a),
            _ => New(node),
        }
    }

    fn offset(&self, x: Id, by: i32) -> Folded {
        if by == 0 {
            return Same(x);
        }
        let by = self.add(Datum::I32(by).node());
        self.fold_bin(Bin::Add, x, by.id())
    }
}

/// Does the operation with this on its right leave every left side as it is?
fn is_nothing(op: Bin, right: Option<Datum>) -> bool {
    let Some(right) = right else {
        return false;
    };
    match op {
        Bin::Mul | Bin::Div => matches!(
            right,
            Datum::F32(1.0) | Datum::F64(1.0) | Datum::I32(1) | Datum::U32(1)
        ),
        // Adding zero is not nothing: minus zero plus zero is plus zero.
        Bin::Sub => match right {
            Datum::F32(v) => v == 0.0 && v.is_sign_positive(),
            Datum::F64(v) => v == 0.0 && v.is_sign_positive(),
            Datum::I32(v) => v == 0,
            Datum::U32(v) => v == 0,
            Datum::Bool(_) => false,
        },
        Bin::Add | Bin::Shl | Bin::Shr => matches!(right, Datum::I32(0) | Datum::U32(0)),
        Bin::And => matches!(right, Datum::Bool(true)),
        Bin::Or => matches!(right, Datum::Bool(false)),
        _ => false,
    }
}

/// A power of two whose inverse is a normal `f32` as well.
fn is_power_of_two(value: f64) -> bool {
    let bits = value.to_bits();
    let exponent = i64::try_from((bits >> 52) & 0x7ff).expect("eleven bits") - 1023;
    bits.trailing_zeros() >= 52 && (-100..=100).contains(&exponent)
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
