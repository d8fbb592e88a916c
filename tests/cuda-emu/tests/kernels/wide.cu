// 64-bit integers: products, quotients, shifts, carries.
extern "C" __global__ void wide(const long long *a, const long long *b, long long *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long x = a[i], y = b[i];
    unsigned long long ux = x, uy = y;
    long long *o = c + i * 10;
    o[0] = x * y + 3;
    o[1] = y ? x / y : 0;
    o[2] = y ? x % y : 0;
    o[3] = uy ? ux / uy : 0;
    o[4] = __mul64hi(x, y);
    o[5] = __umul64hi(ux, uy);
    o[6] = (x << (y & 63)) ^ (x >> (y & 31));
    o[7] = __popcll(x) + __clzll(y) + __ffsll(x);
    o[8] = __brevll(x) ^ min(x, y) ^ max(ux, uy);
    o[9] = (long long)(ux * uy >> 32) + llabs(y);
}
