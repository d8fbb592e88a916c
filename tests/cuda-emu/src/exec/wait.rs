//! What threads wait for.

/// Why a thread is not running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Wait {
    /// It can run.
    #[default]
    Ready,
    /// It can run, but has used up its turn: perhaps it spins until another thread has done something.
    Paused,
    Barrier(BarrierWait),
    Warp(WarpWait),
    Done,
}

/// `bar.sync` and `bar.red`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BarrierWait {
    pub(super) id: u32,
    /// Threads that take part; zero for all of the block.
    pub(super) count: u32,
    pub(super) reduce: Reduce,
    pub(super) value: bool,
    /// All threads of a warp have to execute the same instruction.
    pub(super) aligned: bool,
    pub(super) line: u32,
}

/// What a barrier computes from the predicates of its threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Reduce {
    None = 0,
    Popc = 1,
    And = 2,
    Or = 3,
}

impl Reduce {
    pub(super) fn of(number: u32) -> Self {
        match number {
            0 => Self::None,
            1 => Self::Popc,
            2 => Self::And,
            _ => Self::Or,
        }
    }
}

/// An instruction that several lanes of a warp execute together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WarpWait {
    pub(super) op: WarpOp,
    /// Lanes that take part; `None` for the old forms, where those take part that happen to be there.
    pub(super) mask: Option<u32>,
    pub(super) a: u64,
    pub(super) b: u32,
    pub(super) c: u32,
    pub(super) line: u32,
}

macro_rules! warp_ops {
    ($($name:ident $text:literal,)*) => {
        /// What lanes compute together.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum WarpOp {
            $($name,)*
        }

        impl WarpOp {
            const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The inverse of `self as u8`.
            pub(super) fn of(number: u32) -> Self {
                Self::ALL[number as usize]
            }

            pub(super) fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

warp_ops! {
    Sync "bar.warp.sync",
    ShflUp "shfl.up",
    ShflDown "shfl.down",
    ShflBfly "shfl.bfly",
    ShflIdx "shfl.idx",
    VoteAll "vote.all",
    VoteAny "vote.any",
    VoteUni "vote.uni",
    VoteBallot "vote.ballot",
    MatchAny "match.any",
    MatchAll "match.all",
    ReduxAdd "redux.add",
    ReduxMinU "redux.min.u32",
    ReduxMinS "redux.min.s32",
    ReduxMaxU "redux.max.u32",
    ReduxMaxS "redux.max.s32",
    ReduxAnd "redux.and",
    ReduxOr "redux.or",
    ReduxXor "redux.xor",
    Active "activemask",
    Elect "elect.sync",
}
