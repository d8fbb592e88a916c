//! Types and state spaces, as instructions and declarations name them.

/// A fundamental type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Type {
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    U16x2,
    S16x2,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    F32,
    F64,
}

const NAMES: &[(&str, Type)] = &[
    ("pred", Type::Pred),
    ("b8", Type::B8),
    ("b16", Type::B16),
    ("b32", Type::B32),
    ("b64", Type::B64),
    ("b128", Type::B128),
    ("u8", Type::U8),
    ("u16", Type::U16),
    ("u32", Type::U32),
    ("u64", Type::U64),
    ("s8", Type::S8),
    ("s16", Type::S16),
    ("s32", Type::S32),
    ("s64", Type::S64),
    ("u16x2", Type::U16x2),
    ("s16x2", Type::S16x2),
    ("f16", Type::F16),
    ("f16x2", Type::F16x2),
    ("bf16", Type::Bf16),
    ("bf16x2", Type::Bf16x2),
    ("f32", Type::F32),
    ("f64", Type::F64),
];

impl Type {
    pub(crate) fn named(name: &str) -> Option<Self> {
        let (_, found) = NAMES.iter().find(|(known, _)| *known == name)?;
        Some(*found)
    }

    pub(crate) fn name(self) -> &'static str {
        let found = NAMES.iter().find(|(_, known)| *known == self);
        found.map_or("?", |(name, _)| *name)
    }

    /// Size in memory; a predicate has none and counts as one.
    pub(crate) fn bytes(self) -> u32 {
        match self {
            Self::Pred | Self::B8 | Self::U8 | Self::S8 => 1,
            Self::B16 | Self::U16 | Self::S16 | Self::F16 | Self::Bf16 => 2,
            Self::B32
            | Self::U32
            | Self::S32
            | Self::F32
            | Self::U16x2
            | Self::S16x2
            | Self::F16x2
            | Self::Bf16x2 => 4,
            Self::B64 | Self::U64 | Self::S64 | Self::F64 => 8,
            Self::B128 => 16,
        }
    }

    /// The type of each of two numbers that share 32 bits.
    pub(crate) fn half(self) -> Option<Self> {
        Some(match self {
            Self::U16x2 => Self::U16,
            Self::S16x2 => Self::S16,
            Self::F16x2 => Self::F16,
            Self::Bf16x2 => Self::Bf16,
            _ => return None,
        })
    }

    pub(crate) fn bits(self) -> u32 {
        self.bytes() * 8
    }

    pub(crate) fn is_signed(self) -> bool {
        matches!(self, Self::S8 | Self::S16 | Self::S32 | Self::S64)
    }

    pub(crate) fn is_unsigned(self) -> bool {
        matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::U64)
    }

    pub(crate) fn is_untyped(self) -> bool {
        matches!(
            self,
            Self::B8 | Self::B16 | Self::B32 | Self::B64 | Self::B128
        )
    }

    /// Signed, unsigned, or bits only.
    pub(crate) fn is_integer(self) -> bool {
        self.is_signed() || self.is_unsigned() || self.is_untyped()
    }

    pub(crate) fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }
}

/// Where a variable lives, or an instruction looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum StateSpace {
    Generic,
    Global,
    Shared,
    Local,
    Const,
    Param,
}

impl StateSpace {
    /// The sub-qualifiers name what is the same thing here: there are no clusters, so the shared
    /// memory of the cluster is that of the block.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "global" => Self::Global,
            "shared" | "shared::cta" => Self::Shared,
            "local" => Self::Local,
            "const" => Self::Const,
            "param" | "param::entry" | "param::func" => Self::Param,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for (name, known) in NAMES {
            assert_eq!(Type::named(name), Some(*known));
            assert_eq!(known.name(), *name);
        }
        assert_eq!(Type::named("e4m3x2"), None);
    }

    #[test]
    fn every_type_is_of_one_sort() {
        for (name, known) in NAMES {
            let sorts = [
                known.is_signed(),
                known.is_unsigned(),
                known.is_untyped(),
                known.is_float(),
                known.half().is_some() || *known == Type::Pred,
            ];
            let count = sorts.into_iter().filter(|sort| *sort).count();
            assert_eq!(count, 1, "{name}");
        }
    }
}
