//! The Warploom backend for Vulkan, Metal and DX12 devices through wgpu.
