// Double precision, with the divisions and square roots that are instructions of their own.
extern "C" __global__ void doubles(const double *a, const double *b, double *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = a[i], y = b[i];
    double *o = c + i * 10;
    o[0] = x + y;
    o[1] = x * y - 1.0;
    o[2] = x / y;
    o[3] = sqrt(fabs(x));
    o[4] = fmin(x, y);
    o[5] = fmax(x, y);
    o[6] = floor(x) + ceil(y) + trunc(x) + rint(y);
    o[7] = (double)(float)x;
    o[8] = (double)(long long)x;
    o[9] = __fma_rz(x, y, x) + __dadd_ru(x, y) - __dmul_rd(x, y);
}
