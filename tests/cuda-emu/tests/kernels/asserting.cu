// NVRTC knows `assert` without a header.
extern "C" __global__ void asserting(const int *a) { assert(a[threadIdx.x] != 3); }
