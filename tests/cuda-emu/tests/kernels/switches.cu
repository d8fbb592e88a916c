extern "C" __global__ void switches(const int *a, int *b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = a[i], r;
    switch (x) {
    case 0: r = b[i] + 7; break;
    case 1: r = b[i] * 3; break;
    case 2: r = b[i] / 5; break;
    case 3: r = b[i] ^ 0x55; break;
    case 4: r = b[i] << 2; break;
    case 5: r = -b[i]; break;
    case 6: r = b[i] % 11; break;
    case 7: r = b[i] * b[i]; break;
    case 8: r = b[i] | 64; break;
    default: r = -1;
    }
    b[i] = r;
}
