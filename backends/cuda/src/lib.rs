//! The Warploom backend for NVIDIA devices through the CUDA driver.
