extern "C" __global__ void atomics(unsigned *u, int *s, unsigned long long *w, float *f, double *d, int n) {
    __shared__ unsigned sh[4];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < 4) sh[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (i < n) {
        atomicAdd(&u[0], i);
        atomicSub(&u[1], 3);
        atomicMin(&u[2], 1000 - i);
        atomicMax(&u[3], i);
        atomicInc(&u[4], 9);
        atomicDec(&u[5], 9);
        atomicAnd(&u[6], ~(1u << (i & 31)));
        atomicOr(&u[7], 1u << (i & 31));
        atomicXor(&u[8], i);
        atomicMin(&s[0], 5 - i);
        atomicMax(&s[1], i - 5);
        atomicAdd(&w[0], 1ull << 33);
        atomicMax(&w[1], (unsigned long long)i << 40);
        atomicAdd(f, 0.5f);
#if __CUDA_ARCH__ >= 600
        atomicAdd(d, 0.25);
#endif
        unsigned old = u[9], seen;
        do {
            seen = old;
            old = atomicCAS(&u[9], seen, seen + 2);
        } while (old != seen);
        atomicAdd(&sh[i & 3], 10u);
        atomicExch(&sh[3], 77u);
    }
    __syncthreads();
    if (threadIdx.x < 3) atomicAdd(&u[10 + threadIdx.x], sh[threadIdx.x]);
    __threadfence();
}
