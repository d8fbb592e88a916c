//! What this process was allowed, by the variables it was started with.

use super::{HIERARCHY, Mask, ORDER, Stack, VARIABLES};
use crate::crew::FleetDevice;
use crate::error::FleetError;

/// A card as the driver lists it when nothing is hidden, in the order in which the driver counts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Card {
    /// The driver's name for it: `GPU-…`.
    pub uuid: Option<String>,
    /// The driver's names for the slices it is cut into: `MIG-…`. Of Intel's cards, their tiles, if there is
    /// more than one: those have numbers, and any name will do.
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
        let known = |name: &str| VARIABLES.contains(&name) || [ORDER, HIERARCHY].contains(&name);
        let values = all.filter(|(name, _)| known(name));
        Self {
            values: values.collect(),
        }
    }

    pub(super) fn value(&self, name: &str) -> Option<&str> {
        let mut values = self.values.iter();
        let (_, value) = values.find(|(known, _)| known == name)?;
        Some(value)
    }

    /// The devices of a driver that may be used, one for each card or slice, each with the variables that
    /// show it to its workers and nothing else.
    ///
    /// # Errors
    /// [`FleetError::Mask`] when the variables say nothing that can be relied on.
    ///
    /// ```
    /// use warploom_fleet::mask::{Card, Inherited, Stack};
    ///
    /// // What the driver's own tool lists, whatever the variables say.
    /// let cards = ["GPU-5f2a", "GPU-77c0", "GPU-e013"].map(|uuid| Card {
    ///     uuid: Some(uuid.into()),
    ///     ..Card::default()
    /// });
    /// let inherited = Inherited::new([("CUDA_VISIBLE_DEVICES", "2,GPU-5f")]);
    /// let devices = inherited.devices(Stack::Cuda, &cards)?;
    /// assert_eq!(devices.iter().map(|device| device.id()).collect::<Vec<_>>(), ["GPU-e013", "GPU-5f2a"]);
    /// # Ok::<(), warploom_fleet::FleetError>(())
    /// ```
    pub fn devices(&self, stack: Stack, cards: &[Card]) -> Result<Vec<FleetDevice>, FleetError> {
        let shown = self.shown(stack, cards)?;
        let each = shown.into_iter().flat_map(|shown| {
            let slices = cards.get(shown.card).map_or(0, |card| card.slices.len());
            // A worker gets a slice; of Intel's tiles the driver makes one device.
            let is_cut = slices > 0 && matches!(stack, Stack::Cuda | Stack::Rocm);
            if shown.slice.is_some() || !is_cut {
                return vec![shown];
            }
            let card = shown.card;
            let slice = |slice| Shown {
                card,
                slice: Some(slice),
            };
            (0..slices).map(slice).collect()
        });
        let device = |wanted: Shown| {
            let name = self.name(stack, wanted, cards);
            let own = name.starts_with(|first: char| first.is_ascii_alphabetic());
            let id = if own {
                name
            } else {
                format!("{}:{name}", stack.prefix())
            };
            let mask = Mask::only(stack, wanted, cards, self)?;
            let device = FleetDevice::new(id).mask(mask);
            Ok(match (stack, u32::try_from(wanted.card)) {
                (Stack::InProcess, Ok(ordinal)) => device.ordinal(ordinal),
                _ => device,
            })
        };
        each.map(device).collect()
    }

    /// The cards that may be used, in the order in which the driver then counts them.
    ///
    /// # Errors
    /// [`FleetError::Mask`] when the variables say nothing that can be relied on.
    pub fn shown(&self, stack: Stack, cards: &[Card]) -> Result<Vec<Shown>, FleetError> {
        if stack == Stack::LevelZero {
            return self.level_zero(cards);
        }
        let all: Vec<Shown> = (0..cards.len())
            .map(|card| Shown { card, slice: None })
            .collect();
        let first = stack.variable().and_then(|name| self.value(name));
        let shown = first.map_or(all.clone(), |mask| choose(mask, &all, cards));
        if stack != Stack::Rocm {
            return Ok(shown);
        }
        // HIP counts in what ROCR has left, and takes the other vendor's variable for its own if it is
        // the only one. The variable of AMD's OpenCL is kept to where nothing else says what was given.
        let second = self.value("HIP_VISIBLE_DEVICES");
        let other = self.value("CUDA_VISIBLE_DEVICES");
        let other = other.or_else(|| self.value("GPU_DEVICE_ORDINAL"));
        let second = second.or_else(|| other.filter(|_| first.is_none()));
        Ok(match second {
            Some(mask) => choose(mask, &shown, cards),
            None => shown,
        })
    }

    /// Intel's rules: the driver keeps its own order, whatever the order of the list, and counts cards or
    /// tiles. What cannot be told is refused: a worker must not be shown what somebody else was given.
    fn level_zero(&self, cards: &[Card]) -> Result<Vec<Shown>, FleetError> {
        let places = self.places(cards)?;
        let shown = match self.value("ZE_AFFINITY_MASK") {
            None => places,
            Some(mask) => {
                let mut wanted = Vec::new();
                for entry in mask.split(',') {
                    let found = tile(entry.trim(), &places, cards);
                    wanted.push(found.ok_or_else(|| {
                        let why = format!(
                            "ZE_AFFINITY_MASK was inherited as `{mask}`, of which `{entry}` means \
                             nothing with the {} devices there are",
                            places.len()
                        );
                        unknown(why)
                    })?);
                }
                in_order(cards, &wanted)
            }
        };
        let Some(selector) = self.value("ONEAPI_DEVICE_SELECTOR") else {
            return Ok(shown);
        };
        let numbers = selector.strip_prefix("level_zero:");
        match numbers.or_else(|| selector.strip_prefix("*:")) {
            Some("*" | "gpu") => Ok(shown),
            Some(list) => {
                let numbers = list.split(',').map(|entry| entry.trim().parse().ok());
                let found = numbers.map(|number: Option<usize>| shown.get(number?).copied());
                let found: Option<Vec<Shown>> = found.collect();
                found.ok_or_else(|| unknown(selected(selector)))
            }
            None => Err(unknown(selected(selector))),
        }
    }

    /// What Intel's variable counts, when it is not set.
    fn places(&self, cards: &[Card]) -> Result<Vec<Shown>, FleetError> {
        let tiles: usize = cards.iter().map(|card| card.slices.len()).sum();
        let flat = match self.value(HIERARCHY) {
            Some("FLAT" | "COMBINED") => true,
            Some("COMPOSITE") => false,
            _ if tiles == 0 => false,
            _ => {
                return Err(unknown(format!(
                    "cards have {tiles} tiles, and {HIERARCHY} does not say whether ZE_AFFINITY_MASK \
                     counts cards or tiles: set it to COMPOSITE or FLAT, as the driver does"
                )));
            }
        };
        let places = cards.iter().enumerate().flat_map(|(card, facts)| {
            let tiles = if flat { facts.slices.len() } else { 0 };
            let whole = (tiles == 0).then_some(Shown { card, slice: None });
            let tiles = (0..tiles).map(move |tile| Shown {
                card,
                slice: Some(tile),
            });
            whole.into_iter().chain(tiles)
        });
        Ok(places.collect())
    }

    /// What the driver's variable calls a card: its own name where it has one, because numbers shift.
    pub(super) fn name(&self, stack: Stack, wanted: Shown, cards: &[Card]) -> String {
        let number = wanted.card.to_string();
        if stack == Stack::LevelZero {
            let flat = matches!(self.value(HIERARCHY), Some("FLAT" | "COMBINED"));
            let places = self.places(cards).unwrap_or_default();
            let place = places.iter().position(|place| *place == wanted);
            return match (place.filter(|_| flat), wanted.slice) {
                (Some(place), _) => place.to_string(),
                (None, Some(tile)) => format!("{number}.{tile}"),
                (None, None) => number,
            };
        }
        let card = cards.get(wanted.card);
        let slice = card
            .zip(wanted.slice)
            .and_then(|(card, slice)| card.slices.get(slice));
        let uuid = card.and_then(|card| card.uuid.as_ref());
        let named = slice.or(uuid).filter(|_| stack != Stack::InProcess);
        named.cloned().unwrap_or(number)
    }
}

fn unknown(why: String) -> FleetError {
    FleetError::Mask {
        device: "a device of Level Zero".into(),
        why,
    }
}

fn selected(selector: &str) -> String {
    format!(
        "ONEAPI_DEVICE_SELECTOR was inherited as `{selector}`, and what that leaves is not known here: say \
         it with ZE_AFFINITY_MASK"
    )
}

/// A card or a tile, as Intel writes it.
fn tile(entry: &str, places: &[Shown], cards: &[Card]) -> Option<Shown> {
    let Some((card, tile)) = entry.split_once('.') else {
        return places.get(entry.parse::<usize>().ok()?).copied();
    };
    let (card, tile) = (card.parse::<usize>().ok()?, tile.parse::<usize>().ok()?);
    // Where tiles are counted they have no number after a dot.
    let whole = Shown { card, slice: None };
    if !places.contains(&whole) {
        return None;
    }
    match cards.get(card)?.slices.len() {
        0 if tile == 0 => Some(whole),
        tiles if tile < tiles => Some(Shown {
            card,
            slice: Some(tile),
        }),
        _ => None,
    }
}

/// What was wanted, as the driver has it: cards in their order, and a card of which all is wanted as a whole.
fn in_order(cards: &[Card], wanted: &[Shown]) -> Vec<Shown> {
    let each = cards.iter().enumerate().flat_map(|(card, facts)| {
        let whole = Shown { card, slice: None };
        let tiles = (0..facts.slices.len()).map(|tile| Shown {
            card,
            slice: Some(tile),
        });
        let tiles: Vec<Shown> = tiles.filter(|tile| wanted.contains(tile)).collect();
        if wanted.contains(&whole) {
            vec![whole]
        } else {
            tiles
        }
    });
    each.collect()
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
    if !entry.starts_with("GPU-") && !entry.starts_with("MIG-") {
        return None;
    }
    // Their digits are hexadecimal, which tools write in either case.
    let begins = |name: &String| {
        let beginning = name.get(..entry.len());
        beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(entry))
    };
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
