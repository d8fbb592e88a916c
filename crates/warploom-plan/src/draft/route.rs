//! Values on their way: from records to devices, between faces, and back to the host.

use warploom_core::memory::HOST;
use warploom_core::{DType, Space};
use warploom_kernels::flow::ValueKind;

use super::{Drafting, in_pairs};
use crate::diagnostic::{Diagnostic, Problem};
use crate::plan::{CopyReason, PlanStep, Role, Written};
use crate::pool::Spot;
use crate::resolve::Ref;
use crate::world::speed;

impl Drafting<'_, '_> {
    /// Records are in host memory when work begins.
    pub(super) fn arrive(&mut self) {
        let host = self.host_spot();
        let graph = self.graph;
        for (at, (_, _, image)) in graph.inputs.iter().enumerate() {
            let of = Ref::Input(at);
            self.keep(of, ValueKind::Image(*image), host);
            self.stay(of, host, 0, 0);
        }
        for (at, (name, image)) in graph.constants.iter().enumerate() {
            self.keep(Ref::Constant(at), ValueKind::Image(*image), host);
            let shared = self.shared.entry(host).or_default();
            shared.constants.insert(name.clone(), image.bytes());
        }
    }

    fn copy(&mut self, of: Ref, from: Spot, to: Spot, why: CopyReason) {
        let kind = self.kinds[&of];
        let bytes = kind.bytes();
        // The device's side of the copy does it.
        let face = if from.1 == HOST { to.0 } else { from.0 };
        let info = self.info(face);
        let (speed, _) = speed(info, self.options);
        let rate = if to.1 == HOST { speed.down } else { speed.up };
        let id = info.id.to_string();
        let staging = info.staging_kind();
        let staging = staging.filter(|kind| kind.space() == Space::Pinned);
        let pairs = in_pairs(info);
        let name = self.graph.name(of).to_owned();
        self.copies.push((
            format!("copy of `{name}` from {} to {}", from.1, to.1),
            match why {
                CopyReason::Input => "records come from the host".to_owned(),
                CopyReason::Output => "results go to the host".to_owned(),
                CopyReason::Constant => "all records share it, so it is copied once".to_owned(),
                CopyReason::Route => format!("the next step works in {}", to.1),
            },
        ));
        if let Some(staging) = staging {
            let now = (self.now, self.now);
            self.lend((face, staging), name.clone(), Role::Staging, bytes, now);
        }
        let step = PlanStep::Copy {
            value: name,
            from: from.1.to_string(),
            to: to.1.to_string(),
            device: id,
            staging: staging.map(|kind| kind.to_string()),
            pairs: pairs && kind.dtype() == DType::F64,
            bytes,
            seconds: speed.launch + bytes as f64 / rate,
            why,
        };
        self.push(step, 1);
    }

    /// Makes sure that a value is at a spot, with copies as needed.
    pub(super) fn fetch(&mut self, of: Ref, to: Spot) {
        if let Ref::Constant(at) = of {
            let (name, image) = self.graph.constants[at].clone();
            let shared = self.shared.entry(to).or_default();
            let known = shared.constants.insert(name, image.bytes());
            if known.is_none() && to.1 != HOST {
                self.copy(of, self.host_spot(), to, CopyReason::Constant);
            }
            return;
        }
        if self.known.contains_key(&(of, to)) {
            return;
        }
        let mut from = self.home[&of];
        let given = matches!(of, Ref::Input(_));
        let reason = if given {
            CopyReason::Input
        } else {
            CopyReason::Route
        };
        if !given && self.no_host_copy {
            let name = self.graph.name(of);
            let message = format!(
                "`{name}` would be copied from {} to {} through the host, {} bytes",
                from.1,
                to.1,
                self.kinds[&of].bytes()
            );
            let place = match of {
                Ref::Op(at) => self.graph.ops[at].step.place(),
                _ => None,
            };
            let finding = Diagnostic::error(Problem::HostCopy, message);
            let finding = finding.step(name).at(place);
            let help = "put both steps on one backend, or remove `strict = \"no-host-copy\"`";
            self.refused.push(finding.help(help));
        }
        let host = self.host_spot();
        if from.1 != HOST && to.1 != HOST && !self.known.contains_key(&(of, host)) {
            self.travel(of, from, host, reason);
            from = host;
        } else if to.1 != HOST {
            from = if self.known.contains_key(&(of, host)) {
                host
            } else {
                from
            };
        }
        self.travel(of, from, to, reason);
    }

    /// A value is at both ends while it is copied.
    fn travel(&mut self, of: Ref, from: Spot, to: Spot, why: CopyReason) {
        let now = self.now;
        self.stay(of, from, now, now);
        self.copy(of, from, to, why);
        self.stay(of, to, now, now);
    }

    /// What is written goes to the host and stays until the end.
    pub(super) fn leave(&mut self) -> Vec<Written> {
        let host = self.host_spot();
        let mut written = Vec::new();
        let outputs: Vec<_> = self.graph.outputs.clone();
        for (of, _, _) in &outputs {
            let from = self.home[of];
            if from.1 != HOST && !self.known.contains_key(&(*of, host)) {
                self.travel(*of, from, host, CopyReason::Output);
            }
        }
        let end = self.now.saturating_sub(1);
        for (of, file, step) in &outputs {
            if !matches!(of, Ref::Constant(_)) {
                self.stay(*of, host, end, end);
            }
            written.push(Written {
                of: step.clone(),
                value: self.graph.name(*of).to_owned(),
                gives: self.graph.value(*of).to_string(),
                planes: 1,
                whole: self.graph.value(*of).to_string(),
                file: (!file.is_empty()).then(|| file.clone()),
            });
        }
        written
    }
}
