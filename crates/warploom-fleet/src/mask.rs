//! Which devices a process may use, by the variables that drivers read.
//!
//! A worker gets one device, and the variable of that device's driver alone says which; the variables of
//! other drivers are removed, because some of them count within what another one left. What this process
//! was itself allowed is kept to: a device is only given on when the inherited variables show it.

use crate::error::FleetError;

/// Whose variable chooses a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stack {
    /// NVIDIA: `CUDA_VISIBLE_DEVICES`.
    Cuda,
    /// AMD: `ROCR_VISIBLE_DEVICES`, the lowest of the layers that have one.
    Rocm,
    /// Intel: `ZE_AFFINITY_MASK`.
    LevelZero,
    /// Devices that no variable chooses, as those of Vulkan and OpenCL: the worker picks its own.
    InProcess,
}

impl Stack {
    fn variable(self) -> Option<&'static str> {
        match self {
            Self::Cuda => Some("CUDA_VISIBLE_DEVICES"),
            Self::Rocm => Some("ROCR_VISIBLE_DEVICES"),
            Self::LevelZero => Some("ZE_AFFINITY_MASK"),
            Self::InProcess => None,
        }
    }
}

/// Every variable that hides devices. That one is set says nothing about whose devices there are: Slurm
/// sets four of them at once.
const VARIABLES: &[&str] = &[
    "CUDA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "ZE_AFFINITY_MASK",
    "ONEAPI_DEVICE_SELECTOR",
];
/// Without it, CUDA counts devices by its own guess of their speed.
const ORDER: &str = "CUDA_DEVICE_ORDER";

/// A card as the driver lists it when nothing is hidden, in the order of PCI addresses.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Card {
    /// The driver's name for it: `GPU-…`.
    pub uuid: Option<String>,
    /// The driver's names for the slices it is cut into: `MIG-…`.
    pub slices: Vec<String>,
}

/// A card, or a slice of one, that may be used.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shown {
    /// Which card.
    pub card: usize,
    /// Which slice of it.
    pub slice: Option<usize>,
}

/// The variables as this process has them; the caller reads them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Inherited {
    values: Vec<(String, String)>,
}

impl Inherited {
    /// From all variables of a process.
    pub fn new<K: Into<String>, V: Into<String>>(all: impl IntoIterator<Item = (K, V)>) -> Self {
        let all = all
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()));
        let values = all.filter(|(name, _)| VARIABLES.contains(&name.as_str()));
        Self {
            values: values.collect(),
        }
    }

    fn value(&self, name: &str) -> Option<&str> {
        let mut values = self.values.iter();
        let (_, value) = values.find(|(known, _)| known == name)?;
        Some(value)
    }

    /// The cards that may be used, in the order in which the driver then counts them.
    pub fn shown(&self, stack: Stack, cards: &[Card]) -> Vec<Shown> {
        let all: Vec<Shown> = (0..cards.len())
            .map(|card| Shown { card, slice: None })
            .collect();
        let first = stack.variable().and_then(|name| self.value(name));
        let shown = first.map_or(all.clone(), |mask| choose(mask, &all, cards));
        if stack != Stack::Rocm {
            return shown;
        }
        // HIP counts in what ROCR has left, and takes the other vendor's variable for its own if it is
        // the only one.
        let second = self.value("HIP_VISIBLE_DEVICES");
        let second = second.or_else(|| {
            self.value("CUDA_VISIBLE_DEVICES")
                .filter(|_| first.is_none())
        });
        match second {
            Some(mask) => choose(mask, &shown, cards),
            None => shown,
        }
    }
}

/// What a list of numbers and names leaves of `from`: up to the first entry that means nothing, and
/// nothing at all when one card is named twice.
fn choose(mask: &str, from: &[Shown], cards: &[Card]) -> Vec<Shown> {
    let mut chosen = Vec::new();
    for entry in mask.split(',') {
        let Some(shown) = find(entry.trim(), from, cards) else {
            break;
        };
        if chosen.contains(&shown) {
            return Vec::new();
        }
        chosen.push(shown);
    }
    chosen
}

fn find(entry: &str, from: &[Shown], cards: &[Card]) -> Option<Shown> {
    if let Ok(number) = entry.parse::<usize>() {
        return from.get(number).copied();
    }
    // A tile of a card, as Intel writes it, is the card for our purposes.
    if let Some((card, tile)) = entry.split_once('.')
        && let (Ok(number), Ok(_)) = (card.parse::<usize>(), tile.parse::<usize>())
    {
        return from.get(number).copied();
    }
    if !entry.starts_with("GPU-") && !entry.starts_with("MIG-") {
        return None;
    }
    let begins = |name: &String| name.starts_with(entry);
    let mut found = from.iter().flat_map(|shown| {
        let card = cards.get(shown.card);
        let whole = card
            .and_then(|card| card.uuid.as_ref())
            .filter(|uuid| begins(uuid));
        let slices = card.map_or(&[][..], |card| &card.slices).iter().enumerate();
        let slices = slices.filter(|(_, name)| begins(name));
        let slices = slices.map(|(slice, _)| Shown {
            card: shown.card,
            slice: Some(slice),
        });
        whole.map(|_| *shown).into_iter().chain(slices)
    });
    // A beginning that fits two names means neither.
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// The variables of one worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mask {
    /// Each variable and its value; none is a variable that is removed.
    variables: Vec<(&'static str, Option<String>)>,
}

impl Mask {
    /// Changes nothing: for devices that the worker picks itself, which it then counts as this process does.
    pub fn inherit() -> Self {
        Self {
            variables: Vec::new(),
        }
    }

    /// Shows the device with this name of the driver's, and nothing else. A device that this process sees may
    /// be named so: what it was not given it does not see.
    pub fn named(stack: Stack, name: impl Into<String>) -> Self {
        let Some(variable) = stack.variable() else {
            return Self::inherit();
        };
        let name = name.into();
        let value = |known: &str| (known == variable).then(|| name.clone());
        let variables = VARIABLES.iter().map(|&known| (known, value(known)));
        let mut variables: Vec<_> = variables.collect();
        if stack == Stack::Cuda {
            variables.push((ORDER, Some("PCI_BUS_ID".into())));
        }
        Self { variables }
    }

    /// Shows one card, or one slice of it, and nothing else.
    ///
    /// # Errors
    /// [`FleetError::Mask`] when the inherited variables do not show it.
    pub fn only(
        stack: Stack,
        wanted: Shown,
        cards: &[Card],
        inherited: &Inherited,
    ) -> Result<Self, FleetError> {
        let Some(variable) = stack.variable() else {
            return Ok(Self::inherit());
        };
        let name = name(stack, wanted, cards);
        let refuse = |why: String| {
            let device = name.clone();
            Err(FleetError::Mask { device, why })
        };
        let shown = inherited.shown(stack, cards);
        // A slice of a card that is shown is shown; a card of which only a slice is shown is not.
        let whole = Shown {
            slice: None,
            ..wanted
        };
        if !shown.contains(&wanted) && !shown.contains(&whole) {
            return refuse(format!(
                "{variable} was inherited as `{}`, which does not show it",
                inherited.value(variable).unwrap_or_default()
            ));
        }
        let Some(card) = cards.get(wanted.card) else {
            return refuse("there is no such card".into());
        };
        if wanted.slice.is_none() && !card.slices.is_empty() {
            return refuse(format!(
                "it is cut into {} slices, of which a worker gets one",
                card.slices.len()
            ));
        }
        Ok(Self::named(stack, name))
    }

    /// Each variable and its value; none is a variable that is removed.
    pub fn variables(&self) -> &[(&'static str, Option<String>)] {
        &self.variables
    }
}

/// What the driver's variable calls a card: its own name where it has one, because numbers shift.
fn name(stack: Stack, wanted: Shown, cards: &[Card]) -> String {
    let card = cards.get(wanted.card);
    let slice = card
        .zip(wanted.slice)
        .and_then(|(card, slice)| card.slices.get(slice));
    let uuid = card.and_then(|card| card.uuid.as_ref());
    match (slice.or(uuid), stack) {
        (Some(name), Stack::Cuda | Stack::Rocm) => name.clone(),
        _ => wanted.card.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn cards() -> Vec<Card> {
        let card = |uuid: &str, slices: &[&str]| Card {
            uuid: Some(uuid.into()),
            slices: slices.iter().map(|&name| name.to_owned()).collect(),
        };
        vec![
            card("GPU-aa11", &[]),
            card("GPU-aa22", &[]),
            card("GPU-bb33", &["MIG-x1", "MIG-x2"]),
            card("GPU-cc44", &[]),
        ]
    }

    fn inherited(values: &[(&str, &str)]) -> Inherited {
        Inherited::new(values.iter().copied())
    }

    /// Test 8 of the acceptance list.
    #[rstest]
    #[case::unset(&[], "0 1 2 3")]
    #[case::empty(&[("CUDA_VISIBLE_DEVICES", "")], "")]
    #[case::index(&[("CUDA_VISIBLE_DEVICES", "2")], "2")]
    #[case::order(&[("CUDA_VISIBLE_DEVICES", "3, 1")], "3 1")]
    #[case::uuid(&[("CUDA_VISIBLE_DEVICES", "GPU-bb33")], "2")]
    #[case::prefix(&[("CUDA_VISIBLE_DEVICES", "GPU-cc,GPU-aa2")], "3 1")]
    #[case::ambiguous(&[("CUDA_VISIBLE_DEVICES", "GPU-cc,GPU-aa,0")], "3")]
    #[case::mig(&[("CUDA_VISIBLE_DEVICES", "MIG-x2")], "2/1")]
    #[case::duplicate(&[("CUDA_VISIBLE_DEVICES", "1,0,1")], "")]
    #[case::duplicate_in_disguise(&[("CUDA_VISIBLE_DEVICES", "1,GPU-aa22")], "")]
    #[case::bad_entry(&[("CUDA_VISIBLE_DEVICES", "1,x,0")], "1")]
    #[case::beyond(&[("CUDA_VISIBLE_DEVICES", "1,9,0")], "1")]
    #[case::none(&[("CUDA_VISIBLE_DEVICES", "-1")], "")]
    #[case::the_others_do_not_matter(
        &[("CUDA_VISIBLE_DEVICES", "1"), ("ROCR_VISIBLE_DEVICES", "0"), ("ZE_AFFINITY_MASK", "3")], "1"
    )]
    fn cuda_shows(#[case] values: &[(&str, &str)], #[case] expected: &str) {
        assert_eq!(
            text(&inherited(values).shown(Stack::Cuda, &cards())),
            expected
        );
    }

    #[rstest]
    #[case::unset(&[], "0 1 2 3")]
    #[case::lowest(&[("ROCR_VISIBLE_DEVICES", "2,GPU-aa11")], "2 0")]
    #[case::layered(&[("ROCR_VISIBLE_DEVICES", "2,3"), ("HIP_VISIBLE_DEVICES", "1")], "3")]
    #[case::the_trap(&[("ROCR_VISIBLE_DEVICES", "2"), ("HIP_VISIBLE_DEVICES", "2")], "")]
    #[case::slurm_sets_both(&[("ROCR_VISIBLE_DEVICES", "2"), ("CUDA_VISIBLE_DEVICES", "2")], "2")]
    #[case::cuda_alone(&[("CUDA_VISIBLE_DEVICES", "2")], "2")]
    fn rocm_shows(#[case] values: &[(&str, &str)], #[case] expected: &str) {
        assert_eq!(
            text(&inherited(values).shown(Stack::Rocm, &cards())),
            expected
        );
    }

    #[rstest]
    #[case("0", "0")]
    #[case("1,2.1", "1 2")]
    #[case("0.0,0.1", "")]
    fn level_zero_shows(#[case] mask: &str, #[case] expected: &str) {
        let values = inherited(&[("ZE_AFFINITY_MASK", mask)]);
        assert_eq!(text(&values.shown(Stack::LevelZero, &cards())), expected);
    }

    fn text(shown: &[Shown]) -> String {
        let each = shown.iter().map(|shown| match shown.slice {
            None => shown.card.to_string(),
            Some(slice) => format!("{}/{slice}", shown.card),
        });
        each.collect::<Vec<_>>().join(" ")
    }

    fn whole(card: usize) -> Shown {
        Shown { card, slice: None }
    }

    #[test]
    fn a_worker_sees_one_variable_of_one_vendor() {
        let slurm = inherited(&[
            ("CUDA_VISIBLE_DEVICES", "1"),
            ("ROCR_VISIBLE_DEVICES", "1"),
            ("GPU_DEVICE_ORDINAL", "1"),
            ("ZE_AFFINITY_MASK", "1"),
        ]);
        let mask = Mask::only(Stack::Cuda, whole(1), &cards(), &slurm).expect("shown");
        let set: Vec<_> = mask
            .variables()
            .iter()
            .filter(|(_, value)| value.is_some())
            .collect();
        assert_eq!(
            set,
            [
                &("CUDA_VISIBLE_DEVICES", Some("GPU-aa22".to_owned())),
                &("CUDA_DEVICE_ORDER", Some("PCI_BUS_ID".to_owned())),
            ]
        );
        let removed = mask.variables().iter().filter(|(_, value)| value.is_none());
        assert_eq!(removed.count(), VARIABLES.len() - 1);

        let mask = Mask::only(Stack::Rocm, whole(1), &cards(), &slurm).expect("shown");
        assert!(
            mask.variables()
                .contains(&("ROCR_VISIBLE_DEVICES", Some("GPU-aa22".into())))
        );
        assert!(mask.variables().contains(&("CUDA_VISIBLE_DEVICES", None)));
    }

    #[test]
    fn seven_breakages_an_allocation_is_never_left() {
        let given = inherited(&[("CUDA_VISIBLE_DEVICES", "2,3")]);
        let error = Mask::only(Stack::Cuda, whole(0), &cards(), &given).expect_err("not shown");
        assert_eq!(
            error.to_string(),
            "GPU-aa11 cannot be given to a worker: CUDA_VISIBLE_DEVICES was inherited as `2,3`, \
             which does not show it"
        );
        assert!(Mask::only(Stack::Cuda, whole(3), &cards(), &given).is_ok());
        // A card in slices is used by the slice.
        assert!(Mask::only(Stack::Cuda, whole(2), &cards(), &given).is_err());
        let slice = Shown {
            card: 2,
            slice: Some(0),
        };
        let mask = Mask::only(Stack::Cuda, slice, &cards(), &given).expect("shown");
        assert!(
            mask.variables()
                .contains(&("CUDA_VISIBLE_DEVICES", Some("MIG-x1".into())))
        );
        let slice_only = inherited(&[("CUDA_VISIBLE_DEVICES", "MIG-x2")]);
        assert!(Mask::only(Stack::Cuda, slice, &cards(), &slice_only).is_err());
    }
}
