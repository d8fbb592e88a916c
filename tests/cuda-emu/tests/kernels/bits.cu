extern "C" __global__ void bits(const unsigned *a, const unsigned *b, unsigned *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i], y = b[i];
    unsigned *o = c + i * 14;
    o[0] = __popc(x) + __clz(y) * 100 + __ffs(x) * 10000;
    o[1] = __brev(x);
    o[2] = __byte_perm(x, y, 0x6240);
    o[3] = __funnelshift_l(x, y, 7);
    o[4] = __funnelshift_rc(x, y, y);
    o[5] = __umulhi(x, y);
    o[6] = __mulhi((int)x, (int)y);
    o[7] = __usad(x, y, 5u);
    o[8] = __mul24(x, y);
    o[9] = (x >> 5 & 0x3ff) | (y & 7) << 20;
    o[10] = (x & y) ^ (~x | y);
    o[11] = (unsigned)((int)x >> (y & 63));
#if __CUDA_ARCH__ >= 610
    asm("dp4a.s32.s32 %0, %1, %2, 9;" : "=r"(o[12]) : "r"(x), "r"(y));
#endif
    o[13] = y ? x / y + x % y * 3 + (unsigned)((int)x / (int)(y | 1)) : 0;
}
