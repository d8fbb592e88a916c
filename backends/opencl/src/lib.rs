//! The Warploom backend for OpenCL devices.
