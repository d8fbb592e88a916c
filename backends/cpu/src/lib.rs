//! The embedded Warploom backend: host kernels on the processor's own threads.
