//! Mistakes on order, for testing the suite itself.

/// A mistake a backend could make. Each is caught by a case of the suite.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Flaw {
    /// Each probe tells another name.
    ProbeDrifts,
    /// A probe leaves a thread behind.
    ProbeLeavesThread,
    /// Any ordinal opens some device.
    OpensAnything,
    /// Every ordinal opens the first device.
    OpensFirst,
    /// Two openings count their memory together.
    TwinsShareCount,
    /// Memory is not counted.
    MemoryUncounted,
    /// Memory is counted and never given back.
    MemoryUnreturned,
    /// More memory is given than there is.
    Overcommits,
    /// Sizes are rounded up to whole words.
    SizeRounded,
    /// Errors name another device.
    ErrorsMisname,
    /// Kernels forget their name.
    KernelNameless,
    /// A queue made for uploads takes no kernels.
    HintsObeyed,
    /// Uploads start at whole words.
    UploadAligned,
    /// Uploads do not wait for earlier work.
    UploadOvertakes,
    /// Downloads do not wait for earlier work.
    DownloadOvertakes,
    /// Copies lack their last byte.
    CopyShort,
    /// Copies rewrite the whole destination buffer.
    CopyRewritesAll,
    /// Launches run in the wrong order.
    LaunchesReversed,
    /// Numbers arrive as zero.
    NumbersZeroed,
    /// Slices start where their buffer does.
    OffsetsIgnored,
    /// Grids lose their second and third dimension.
    GridFlattened,
    /// Buffers of queued work are not kept alive.
    NotKept,
    /// A dropped queue forgets what it was not told to start.
    DropDiscards,
    /// `record` starts nothing.
    RecordLazy,
    /// Queue waits do nothing.
    WaitIgnored,
    /// Waits for another backend's events do nothing.
    StrangerIgnored,
    /// Events are done when they are made.
    EventsEarly,
    /// Events are not done until someone waits for them.
    EventsAsleep,
    /// Waits do not end before the event.
    TimeoutDeaf,
    /// An event whose wait timed out stays that way.
    TimeoutFinal,
    /// Failed work counts as done.
    FailuresForgotten,
    /// The device clock runs backwards.
    ClockBackwards,
    /// The device clock counts in the wrong unit.
    ClockUnit,
    /// Events know their time before it comes.
    ClockEarly,
    /// Events never know their time.
    ClockSilent,
    /// The host sees buffers before queued work is done.
    HostUnsynced,
    /// The host gets a copy of the bytes instead of the bytes.
    HostSnapshot,
    /// The host sees memory it cannot see.
    DeviceLent,
    /// Queues take turns although the device says they overlap.
    QueuesSerial,
}

impl Flaw {
    /// Every flaw.
    pub const ALL: &'static [Self] = &[
        Self::ProbeDrifts,
        Self::ProbeLeavesThread,
        Self::OpensAnything,
        Self::OpensFirst,
        Self::TwinsShareCount,
        Self::MemoryUncounted,
        Self::MemoryUnreturned,
        Self::Overcommits,
        Self::SizeRounded,
        Self::ErrorsMisname,
        Self::KernelNameless,
        Self::HintsObeyed,
        Self::UploadAligned,
        Self::UploadOvertakes,
        Self::DownloadOvertakes,
        Self::CopyShort,
        Self::CopyRewritesAll,
        Self::LaunchesReversed,
        Self::NumbersZeroed,
        Self::OffsetsIgnored,
        Self::GridFlattened,
        Self::NotKept,
        Self::DropDiscards,
        Self::RecordLazy,
        Self::WaitIgnored,
        Self::StrangerIgnored,
        Self::EventsEarly,
        Self::EventsAsleep,
        Self::TimeoutDeaf,
        Self::TimeoutFinal,
        Self::FailuresForgotten,
        Self::ClockBackwards,
        Self::ClockUnit,
        Self::ClockEarly,
        Self::ClockSilent,
        Self::HostUnsynced,
        Self::HostSnapshot,
        Self::DeviceLent,
        Self::QueuesSerial,
    ];
}
