//! Where leases are asked for.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::book::{Book, Label};
use super::error::LeaseError;
use super::local::LocalRoom;
use super::patience::{Grant, Patience, Refusal};
use super::request::{Ask, DeskDevice, LeaseRequest, check_devices};
use super::shared::SharedRoom;
use super::status::DeviceLeases;

/// Gives out leases on a set of devices, in the order they were asked for.
///
/// Clones are the same desk. A desk that is dropped while leases are out goes on until the last
/// of them is dropped.
///
/// ```
/// use warploom_core::{LeaseCapacity, DeskDevice, LeaseDesk, LeaseError, LeaseRequest};
///
/// let capacity = LeaseCapacity { slots: 2, bytes: 8 << 30 };
/// let desk = LeaseDesk::local(vec![DeskDevice::new("gpu0", "pci-0000-41-00.0", capacity)])?;
/// let lease = desk.lease(&LeaseRequest::new(1, 3 << 30).label("denoise"))?;
/// assert_eq!(lease.device(), "gpu0");
/// assert!(desk.try_lease(&LeaseRequest::new(1, 6 << 30))?.is_none());
/// drop(lease);
/// assert!(desk.try_lease(&LeaseRequest::new(1, 6 << 30))?.is_some());
/// # Ok::<(), LeaseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct LeaseDesk(Arc<Desk>);

#[derive(Debug)]
struct Desk {
    devices: Vec<DeskDevice>,
    room: Room,
}

/// Where the books are.
#[derive(Debug)]
enum Room {
    Local(LocalRoom),
    Shared(SharedRoom),
}

impl LeaseDesk {
    /// A desk for the threads of this process.
    ///
    /// # Errors
    /// [`LeaseError::Device`] when two devices cannot be told apart.
    pub fn local(devices: Vec<DeskDevice>) -> Result<Self, LeaseError> {
        check_devices(&devices)?;
        let capacities = devices.iter().map(|device| device.capacity).collect();
        let room = Room::Local(LocalRoom::new(capacities));
        Ok(Self(Arc::new(Desk { devices, room })))
    }

    /// A desk that agrees with every other one on this machine that was given the same directory;
    /// [`default_ledger_dir`](super::default_ledger_dir) is the one everybody shares.
    ///
    /// # Errors
    /// [`LeaseError::Device`] when two devices cannot be told apart, [`LeaseError::Ledger`] when
    /// the directory cannot be used.
    pub fn shared(devices: Vec<DeskDevice>, ledger_dir: &Path) -> Result<Self, LeaseError> {
        check_devices(&devices)?;
        let room = Room::Shared(SharedRoom::open(&devices, ledger_dir)?);
        Ok(Self(Arc::new(Desk { devices, room })))
    }

    /// The devices it leases out.
    pub fn devices(&self) -> &[DeskDevice] {
        &self.0.devices
    }

    /// Waits for a lease, in the order of arrival at each device.
    pub fn lease(&self, request: &LeaseRequest) -> Result<Lease, LeaseError> {
        let ask = request.check(&self.0.devices)?;
        let patience = Patience::of(request, true);
        let grant = self.acquire(&ask, &patience);
        grant
            .map(|grant| self.hold(&ask, grant))
            .map_err(|refusal| self.explain(&ask, request, refusal))
    }

    /// Takes a lease if that needs no waiting: nobody queues there and it fits.
    pub fn try_lease(&self, request: &LeaseRequest) -> Result<Option<Lease>, LeaseError> {
        let ask = request.check(&self.0.devices)?;
        let patience = Patience::of(request, false);
        match self.acquire(&ask, &patience) {
            Ok(grant) => Ok(Some(self.hold(&ask, grant))),
            Err(Refusal::Occupied) => Ok(None),
            Err(refusal) => Err(self.explain(&ask, request, refusal)),
        }
    }

    /// Who holds and who waits, device by device; on a shared desk, of the whole machine.
    pub fn status(&self) -> Result<Vec<DeviceLeases>, LeaseError> {
        let devices = self.0.devices.iter().enumerate();
        devices
            .map(|(place, device)| {
                let book = self.0.room.book(place)?;
                Ok(DeviceLeases::of(&device.name, device.capacity, &book))
            })
            .collect()
    }

    fn acquire(&self, ask: &Ask, patience: &Patience<'_>) -> Result<Grant, Refusal> {
        match &self.0.room {
            Room::Local(room) => room.acquire(ask, patience),
            Room::Shared(room) => room.acquire(ask, patience),
        }
    }

    fn hold(&self, ask: &Ask, grant: Grant) -> Lease {
        Lease {
            desk: Arc::clone(&self.0),
            grant,
            slots: ask.slots,
            bytes: ask.bytes,
            label: ask.label,
        }
    }

    /// Puts names to a refusal.
    fn explain(&self, ask: &Ask, request: &LeaseRequest, refusal: Refusal) -> LeaseError {
        let names = ask.places.iter().map(|&at| &self.0.devices[at].name);
        let devices: Vec<String> = names.cloned().collect();
        let crowd = match refusal {
            Refusal::Failed(error) => return error,
            Refusal::Cancelled => return LeaseError::Cancelled { devices },
            Refusal::Expired(crowd) => crowd,
            Refusal::Occupied => super::patience::Crowd::default(),
        };
        LeaseError::Deadline {
            within: request.deadline().unwrap_or_default(),
            slots: ask.slots,
            bytes: ask.bytes,
            devices,
            ahead: crowd.ahead.unwrap_or(0),
            holders: crowd.holders,
        }
    }
}

impl Room {
    fn book(&self, place: usize) -> Result<Book, LeaseError> {
        match self {
            Self::Local(room) => Ok(room.book(place)),
            Self::Shared(room) => room.book(place),
        }
    }
}

/// The right to use slots and bytes of one device, until it is dropped.
///
/// It is a right, not memory: allocating is the holder's business, and so is staying within it.
#[must_use = "dropping a lease releases it at once"]
pub struct Lease {
    desk: Arc<Desk>,
    grant: Grant,
    slots: u32,
    bytes: u64,
    label: Label,
}

impl Lease {
    /// The name of the device.
    pub fn device(&self) -> &str {
        &self.desk.devices[self.grant.place].name
    }

    /// How many slots.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// How many bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What it is for.
    pub fn label(&self) -> &str {
        self.label.as_str()
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("device", &self.device())
            .field("slots", &self.slots)
            .field("bytes", &self.bytes)
            .field("label", &self.label)
            .finish_non_exhaustive()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        match &self.desk.room {
            Room::Local(room) => room.release(self.grant),
            Room::Shared(room) => room.release(self.grant),
        }
    }
}
