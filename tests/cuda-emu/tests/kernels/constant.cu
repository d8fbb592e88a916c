// A filter in constant memory, a table with an initial value, and a pointer to a variable.
__constant__ float taps[5];
__constant__ short table[4] = {1, -2, 300, -400};
__device__ int counter = 40;
__device__ int *where = &counter;
__device__ unsigned char bytes[3] = {7, 8, 9};
extern "C" __global__ void constant(const float *src, float *dst, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
#pragma unroll 1
    for (int k = 0; k < 5; k++) sum += taps[k] * src[min(max(i + k - 2, 0), n - 1)];
    dst[i] = sum + table[i & 3];
    if (i == 0) atomicAdd(where, 1 + bytes[1]);
}
