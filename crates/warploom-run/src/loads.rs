//! How busy cards are, as the ledger of leases tells.

use std::collections::BTreeMap;

use warploom_core::Registry;

/// The pipelines on each card, by its name: those that hold a lease on it and those that wait for
/// one, of all processes that share the ledger. It is what [`warploom_plan::Options::loads`] takes,
/// so that the next pipeline goes to the card with the smallest share of its capacity taken.
///
/// Where there is one card or none, nothing is looked up; where the ledger cannot be read, nothing is
/// known, which is as if all cards were idle.
pub fn loads(registry: &Registry) -> BTreeMap<String, u32> {
    let Ok(status) = registry.status() else {
        return BTreeMap::new();
    };
    if status.gpus().count() < 2 {
        return BTreeMap::new();
    }
    let leases = registry.desk().map(|desk| desk.status());
    let leases = match leases {
        Ok(Ok(leases)) => leases,
        Ok(Err(error)) => {
            tracing::debug!(%error, "nobody knows how busy cards are");
            return BTreeMap::new();
        }
        Err(error) => {
            tracing::debug!(%error, "nobody knows how busy cards are");
            return BTreeMap::new();
        }
    };
    let busy = leases.into_iter().map(|device| {
        let all = device.held.iter().chain(&device.waiting);
        let slots = all.fold(0_u32, |sum, holder| sum.saturating_add(holder.slots));
        (device.name, slots)
    });
    busy.filter(|(_, slots)| *slots > 0).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use warploom_core::{LeaseRequest, LeaseScope, Options};
    use warploom_testkit::{FakeBackend, FakeDevice};

    use super::*;

    #[test]
    fn a_card_is_as_busy_as_the_leases_on_it() {
        let card = |pci: &str| FakeDevice::new("Card").memory(8 << 30).pci(pci);
        let fakes = FakeBackend::new("fake")
            .device(card("0000:41:00.0"))
            .device(card("0000:42:00.0"));
        let mut registry = Registry::empty();
        registry.add(Arc::new(fakes));
        let mut options = Options::default();
        options.leases = LeaseScope::Process;
        registry.initialize(&options).unwrap();
        assert_eq!(loads(&registry), BTreeMap::new());
        let request = LeaseRequest::new(1, 1 << 20).on(["gpu1"]);
        let lease = registry.lease(&request).unwrap();
        assert_eq!(loads(&registry), BTreeMap::from([("gpu1".to_owned(), 1)]));
        drop(lease);
        assert_eq!(loads(&registry), BTreeMap::new());
    }
}
