//! A CUDA driver for machines without one.
