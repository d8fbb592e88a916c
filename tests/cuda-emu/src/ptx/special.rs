//! Registers that the machine sets.

/// One of three directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Axis {
    X,
    Y,
    Z,
}

impl Axis {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "x" => Self::X,
            "y" => Self::Y,
            "z" => Self::Z,
            _ => return None,
        })
    }

    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

/// A predefined, read-only register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Special {
    Tid(Axis),
    Ntid(Axis),
    Ctaid(Axis),
    Nctaid(Axis),
    Laneid,
    Warpid,
    Nwarpid,
    Smid,
    Nsmid,
    Gridid,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    Clock,
    ClockHi,
    Clock64,
    Globaltimer,
    GlobaltimerLo,
    GlobaltimerHi,
    WarpSize,
    TotalSmem,
    DynamicSmem,
}

impl Special {
    /// `%name`, or `%name.axis` for those that have axes.
    pub(super) fn named(name: &str, axis: Option<Axis>) -> Option<Self> {
        if let Some(axis) = axis {
            return Some(match name {
                "%tid" => Self::Tid(axis),
                "%ntid" => Self::Ntid(axis),
                "%ctaid" => Self::Ctaid(axis),
                "%nctaid" => Self::Nctaid(axis),
                _ => return None,
            });
        }
        Some(match name {
            "%laneid" => Self::Laneid,
            "%warpid" => Self::Warpid,
            "%nwarpid" => Self::Nwarpid,
            "%smid" => Self::Smid,
            "%nsmid" => Self::Nsmid,
            "%gridid" => Self::Gridid,
            "%lanemask_eq" => Self::LanemaskEq,
            "%lanemask_le" => Self::LanemaskLe,
            "%lanemask_lt" => Self::LanemaskLt,
            "%lanemask_ge" => Self::LanemaskGe,
            "%lanemask_gt" => Self::LanemaskGt,
            "%clock" => Self::Clock,
            "%clock_hi" => Self::ClockHi,
            "%clock64" => Self::Clock64,
            "%globaltimer" => Self::Globaltimer,
            "%globaltimer_lo" => Self::GlobaltimerLo,
            "%globaltimer_hi" => Self::GlobaltimerHi,
            "WARP_SZ" => Self::WarpSize,
            "%total_smem_size" => Self::TotalSmem,
            "%dynamic_smem_size" => Self::DynamicSmem,
            _ => return None,
        })
    }

    /// Width of the value.
    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::Gridid | Self::Clock64 | Self::Globaltimer => 64,
            _ => 32,
        }
    }
}
