// One thread waits for another of its block without a barrier.
extern "C" __global__ void spin(int *out) {
    __shared__ volatile int flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 40) {
        out[1] = 5;
        __threadfence_block();
        flag = 1;
    }
    if (threadIdx.x == 3) {
        while (flag == 0) {}
        out[0] = out[1] + 1;
    }
}
