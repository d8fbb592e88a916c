//! Leases on the devices that are really there.
