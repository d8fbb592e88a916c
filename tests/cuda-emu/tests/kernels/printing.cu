extern "C" __device__ __noinline__ int twice(int x) { return 2 * x; }
extern "C" __global__ void printing(int n) {
    int i = threadIdx.x;
    if (i < n) printf("thread %d of %s: %5.2f %llu %c%%\n", i, "block", i * 0.5, 1ull << (i + 33), 'a' + i);
    if (twice(i) == 6) printf("plain\n");
}
