//! What a WGSL kernel declares, against what its caller says it declares.
//!
//! A mismatch would otherwise come to light at the first launch, when wgpu throws away the whole
//! command list it was part of.

use warploom_core::{DType, Param};
use wgpu::naga::front::wgsl;
use wgpu::naga::valid::Capabilities;
use wgpu::naga::{AddressSpace, Module, ShaderStage, StorageAccess};

/// What a launch must bind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Interface {
    /// The fewest bytes each slice's type needs; 0 when the code does not use it.
    pub(crate) slices: Vec<u64>,
    pub(crate) scalars: usize,
}

impl Interface {
    /// Reads the code; the text says why it cannot be run as declared.
    pub(crate) fn read(
        code: &str,
        name: &str,
        params: &[Param],
        group: [u32; 3],
    ) -> Result<Self, String> {
        // Whether the device has what the code uses is wgpu's to say, when it compiles.
        let mut options = wgsl::Options::new();
        options.capabilities = Capabilities::all();
        let module = wgsl::Frontend::new_with_options(options).parse(code);
        let module = module.map_err(|error| error.emit_to_string_with_path(code, name))?;
        let mut entries = module.entry_points.iter();
        let entry = entries.find(|e| e.name == name && e.stage == ShaderStage::Compute);
        let entry = entry.ok_or_else(|| format!("there is no `@compute` function `{name}`"))?;
        if entry.workgroup_size_overrides.is_none() && entry.workgroup_size != group {
            let written = entry.workgroup_size;
            return Err(format!(
                "the code has `@workgroup_size` {written:?}, but {group:?} was declared"
            ));
        }
        let slices = params.iter().filter(|param| param.is_slice()).count();
        let mut interface = Self {
            slices: vec![0; slices],
            scalars: params.len() - slices,
        };
        interface.check(&module)?;
        Ok(interface)
    }

    fn check(&mut self, module: &Module) -> Result<(), String> {
        for (_, global) in module.global_variables.iter() {
            let Some(place) = global.binding else {
                continue;
            };
            let name = global.name.as_deref().unwrap_or("a variable");
            let (group, binding) = (place.group, place.binding);
            let index = binding as usize;
            let bytes = module.types[global.ty].inner.try_size(module.to_ctx());
            let bytes = u64::from(bytes.ok_or_else(|| format!("`{name}` is too large"))?);
            let read_write = AddressSpace::Storage {
                access: StorageAccess::LOAD | StorageAccess::STORE,
            };
            let at = format!("`{name}` at group {group}, binding {binding}");
            if group == 0 && index < self.slices.len() {
                if global.space != read_write {
                    return Err(format!("{at} must be `var<storage, read_write>`"));
                }
                self.slices[index] = bytes;
            } else if group == 0 && index == self.slices.len() && self.scalars > 0 {
                if global.space != AddressSpace::Uniform {
                    return Err(format!(
                        "{at} must be `var<uniform>`, as it holds the scalars"
                    ));
                }
                if bytes > uniform_bytes(self.scalars) {
                    return Err(format!(
                        "{at} has {bytes} bytes, but the {} scalars have four each",
                        self.scalars
                    ));
                }
            } else {
                return Err(format!(
                    "{at} has no parameter: there are {} slices and {} scalars",
                    self.slices.len(),
                    self.scalars
                ));
            }
        }
        Ok(())
    }
}

/// What a uniform with this many scalars binds; uniforms come in steps of 16 bytes.
pub(crate) fn uniform_bytes(scalars: usize) -> u64 {
    (4 * scalars as u64).next_multiple_of(16)
}

/// The first scalar that WGSL has no four bytes for.
pub(crate) fn unfit_scalar(params: &[Param]) -> Option<DType> {
    let mut scalars = params.iter().filter_map(|param| param.scalar());
    scalars.find(|dtype| !matches!(dtype, DType::U32 | DType::I32 | DType::F32))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "
        struct P { n: u32, scale: f32 }
        @group(0) @binding(0) var<storage, read_write> a: array<vec4<f32>>;
        @group(0) @binding(1) var<storage, read_write> b: array<u32>;
        @group(0) @binding(2) var<uniform> p: P;
        @compute @workgroup_size(64) fn scale() { b[0] = p.n + u32(a[0].x); }";
    const PARAMS: [Param; 4] = [
        Param::Read,
        Param::Scalar(DType::U32),
        Param::Write,
        Param::Scalar(DType::F32),
    ];

    #[test]
    fn sizes_are_read_from_the_code() {
        let interface = Interface::read(CODE, "scale", &PARAMS, [64, 1, 1]).unwrap();
        assert_eq!(interface.slices, [16, 4]);
        assert_eq!(interface.scalars, 2);
    }

    #[test]
    fn mismatches_are_named() {
        let read = |code: &str, name, params: &[Param], group| {
            Interface::read(code, name, params, group).unwrap_err()
        };
        let text = read(CODE, "scaled", &PARAMS, [64, 1, 1]);
        assert_eq!(text, "there is no `@compute` function `scaled`");
        let text = read(CODE, "scale", &PARAMS, [32, 1, 1]);
        assert!(
            text.contains("[64, 1, 1]") && text.contains("[32, 1, 1]"),
            "{text}"
        );
        let text = read(CODE, "scale", &PARAMS[..1], [64, 1, 1]);
        assert!(
            text.contains("`b` at group 0, binding 1 has no parameter"),
            "{text}"
        );
        let text = read(
            &CODE.replace("read_write> a", "read> a"),
            "scale",
            &PARAMS,
            [64, 1, 1],
        );
        assert!(text.contains("`a` at group 0, binding 0 must be"), "{text}");
        let text = read(
            &CODE.replace("group(0) @binding(2)", "group(1) @binding(2)"),
            "scale",
            &PARAMS,
            [64, 1, 1],
        );
        assert!(text.contains("group 1"), "{text}");
        let text = read("fn scale( {", "scale", &PARAMS, [64, 1, 1]);
        assert!(
            text.contains("expected") && text.contains("scale:1"),
            "{text}"
        );
    }

    #[test]
    fn doubles_are_no_scalars() {
        assert_eq!(unfit_scalar(&PARAMS), None);
        assert_eq!(unfit_scalar(&[Param::Scalar(DType::F64)]), Some(DType::F64));
    }
}
