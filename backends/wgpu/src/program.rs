//! A compiled shader and the shape of its arguments.

use std::num::NonZero;

use wgpu::{BindGroupLayoutEntry, BindingType, BufferBindingType, ShaderStages};

use crate::error::scoped;
use crate::groups::Binding;
use crate::interface::{Interface, uniform_bytes};
use crate::mapping::serial;

#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) id: u64,
    pub(crate) pipeline: wgpu::ComputePipeline,
    pub(crate) interface: Interface,
    layout: wgpu::BindGroupLayout,
}

impl Program {
    /// Compiles function `name` of `code`. Runtime checks stay on: they are what makes WGSL safe.
    pub(crate) fn build(
        device: &wgpu::Device,
        name: &str,
        code: &str,
        interface: Interface,
    ) -> Result<Self, wgpu::Error> {
        let storage = BufferBindingType::Storage { read_only: false };
        let slices = interface
            .slices
            .iter()
            .map(|bytes| (storage, false, *bytes));
        let uniform = (interface.scalars > 0).then(|| {
            let bytes = uniform_bytes(interface.scalars);
            (BufferBindingType::Uniform, true, bytes)
        });
        let entries: Vec<_> = (0..)
            .zip(slices.chain(uniform))
            .map(
                |(binding, (ty, has_dynamic_offset, bytes))| BindGroupLayoutEntry {
                    binding,
                    visibility: ShaderStages::COMPUTE,
                    ty: BindingType::Buffer {
                        ty,
                        has_dynamic_offset,
                        min_binding_size: NonZero::new(bytes),
                    },
                    count: None,
                },
            )
            .collect();
        scoped(device, || {
            let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
                label: Some(name),
                source: wgpu::ShaderSource::Wgsl(code.into()),
            });
            let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
                label: Some(name),
                entries: &entries,
            });
            let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: Some(name),
                bind_group_layouts: &[Some(&layout)],
                immediate_size: 0,
            });
            let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(name),
                layout: Some(&pipeline_layout),
                module: &module,
                entry_point: Some(name),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                cache: None,
            });
            Self {
                id: serial(),
                pipeline,
                interface,
                layout,
            }
        })
    }

    /// Binds slices, and the feed from which scalars are read at an offset given at launch.
    pub(crate) fn bind(
        &self,
        device: &wgpu::Device,
        bindings: &[Binding<'_>],
        feed: Option<&wgpu::Buffer>,
    ) -> Result<wgpu::BindGroup, wgpu::Error> {
        let slices = bindings.iter().map(|b| (b.buffer, b.start, b.len));
        let feed = feed.map(|feed| (feed, 0, uniform_bytes(self.interface.scalars)));
        let entries: Vec<_> = (0..)
            .zip(slices.chain(feed))
            .map(|(binding, (buffer, offset, bytes))| wgpu::BindGroupEntry {
                binding,
                resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer,
                    offset,
                    size: NonZero::new(bytes),
                }),
            })
            .collect();
        scoped(device, || {
            device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &self.layout,
                entries: &entries,
            })
        })
    }
}
