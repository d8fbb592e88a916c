//! Instructions that do the work of two, and two rows of pixels done in turns.

use super::program::{Bin, Ins, Un, Value};
use super::routine::Width;

/// The same instructions, with products and sums that take the sign of an operand themselves and, where the
/// machine has masks, choices that compare. Results that this leaves without use are nobody's.
pub(crate) fn merged(code: &[Ins], width: Width) -> Vec<Ins> {
    // How many instructions take each truth as something else than the condition of a choice, or at all.
    let (mut other, mut uses) = (vec![0_u32; code.len()], vec![0_u32; code.len()]);
    for ins in code {
        for value in ins.operands() {
            uses[value as usize] += 1;
        }
        let condition = match *ins {
            Ins::Select(cond, yes, no) if cond != yes && cond != no => Some(cond),
            _ => None,
        };
        for value in ins.operands().filter(|value| Some(*value) != condition) {
            other[value as usize] += 1;
        }
    }
    let negated = |value: Value| match code[value as usize] {
        Ins::Un(Un::NegF, of) => Some(of),
        _ => None,
    };
    // What is chosen by often is better known as a vector.
    let compared = |value: Value| match code[value as usize] {
        Ins::Bin(how, a, b)
            if how.compares() && other[value as usize] == 0 && uses[value as usize] <= 2 =>
        {
            Some((how, a, b))
        }
        Ins::Un(Un::IsNan, a) if other[value as usize] == 0 => Some((Bin::NeF, a, a)),
        _ => None,
    };
    let merge = |ins: &Ins| match *ins {
        Ins::Fma(a, b, c) => match (negated(a), negated(b), negated(c)) {
            (None, None, Some(c)) => Ins::Fms(a, b, c),
            (Some(of), None, None) => Ins::Fnma(of, b, c),
            (None, Some(of), None) => Ins::Fnma(a, of, c),
            _ => *ins,
        },
        Ins::Select(cond, yes, no) if width == Width::Bits512 => match compared(cond) {
            Some((how, a, b)) => Ins::SelectIf(how, [a, b], [yes, no]),
            None => *ins,
        },
        _ => *ins,
    };
    code.iter().map(merge).collect()
}

/// Every instruction twice, of one vector of pixels and of the next.
pub(crate) fn twins(code: &[Ins]) -> Vec<Ins> {
    let twin = |which: Value| {
        move |value: Value| match code[value as usize] {
            Ins::Number(_) => 2 * value,
            _ => 2 * value + which,
        }
    };
    let both = |ins: &Ins| [0, 1].map(|which| ins.with_operands(twin(which)));
    code.iter().flat_map(both).collect()
}
