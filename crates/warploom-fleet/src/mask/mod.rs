//! Which devices a process may use, by the variables that drivers read.
//!
//! A worker gets one device, and the variable of that device's driver alone says which; the variables of
//! other drivers are removed, because some of them count within what another one left. What this process
//! was itself allowed is kept to: a device is only given on when the inherited variables show it.
//!
//! Two ways lead to a worker's variables. A device that one of our backends sees is in the allocation,
//! because its driver has obeyed the inherited variables already: [`FleetDevice::of`](crate::FleetDevice::of)
//! names it. Work that opens devices by other means lists the cards itself, and [`Inherited::devices`] makes
//! of them what the inherited variables leave.
//!
//! Devices that a worker picks itself, those of OpenCL, of Vulkan and the processor, keep every variable as it
//! was inherited ([`Mask::inherit`]): the worker then sees what this process sees. To remove a variable for
//! them would show devices that somebody else was given.

mod inherited;
#[cfg(test)]
mod tests;

pub use inherited::{Card, Inherited, Shown};

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

    /// How a device without a name of its own is called.
    fn prefix(self) -> &'static str {
        match self {
            Self::Cuda => "cuda",
            Self::Rocm => "rocm",
            Self::LevelZero => "level-zero",
            Self::InProcess => "device",
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
/// Whether Intel's variable counts cards or tiles.
const HIERARCHY: &str = "ZE_FLAT_DEVICE_HIERARCHY";

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
    /// [`FleetError::Mask`] when the inherited variables do not show it, or say nothing that can be relied on.
    pub fn only(
        stack: Stack,
        wanted: Shown,
        cards: &[Card],
        inherited: &Inherited,
    ) -> Result<Self, FleetError> {
        let Some(variable) = stack.variable() else {
            return Ok(Self::inherit());
        };
        let name = inherited.name(stack, wanted, cards);
        let refuse = |why: String| {
            let device = name.clone();
            Err(FleetError::Mask { device, why })
        };
        let shown = inherited.shown(stack, cards)?;
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
        let is_cut = stack != Stack::LevelZero && !card.slices.is_empty();
        if wanted.slice.is_none() && is_cut {
            return refuse(format!(
                "it is cut into {} slices, of which a worker gets one",
                card.slices.len()
            ));
        }
        let mut mask = Self::named(stack, name);
        if stack == Stack::LevelZero {
            // The name means what it means under the same way of counting only.
            let hierarchy = inherited.value(HIERARCHY).map(str::to_owned);
            mask.variables.push((HIERARCHY, hierarchy));
        }
        Ok(mask)
    }

    /// Each variable and its value; none is a variable that is removed.
    pub fn variables(&self) -> &[(&'static str, Option<String>)] {
        &self.variables
    }
}
