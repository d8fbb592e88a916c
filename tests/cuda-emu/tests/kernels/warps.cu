extern "C" __global__ void warps(const int *a, unsigned *c) {
    int i = threadIdx.x;
    int x = a[i];
    unsigned *o = c + i * 10;
    o[0] = __ballot_sync(~0u, x & 1);
    o[1] = __all_sync(~0u, x < 1000) + 2 * __any_sync(~0u, x == 7);
    o[2] = __shfl_sync(~0u, x, 5, 8);
    o[3] = __shfl_up_sync(~0u, x, 3);
    o[4] = __shfl_xor_sync(~0u, x, 9, 16);
#if __CUDA_ARCH__ >= 700
    o[5] = __match_any_sync(~0u, x & 3);
    int all;
    o[6] = __match_all_sync(~0u, x & 3, &all) + all;
#endif
#if __CUDA_ARCH__ >= 800
    o[7] = __reduce_add_sync(~0u, x);
    o[8] = __reduce_max_sync(~0u, x) ^ __reduce_xor_sync(~0u, (unsigned)x);
#endif
    unsigned long long w = __shfl_down_sync(~0u, (unsigned long long)x << 20, 2);
    o[9] = (unsigned)(w >> 20);
    __syncwarp();
    if (x & 1) c[320 + i] = __activemask();
    c[352 + i] = __syncthreads_count(x & 1) + 100 * __syncthreads_and(x >= 0) + 1000 * __syncthreads_or(x < 0);
}
