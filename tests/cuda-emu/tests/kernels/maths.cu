extern "C" __global__ void maths(const float *a, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i];
    float *o = c + i * 14;
    o[0] = expf(x);
    o[1] = logf(fabsf(x));
    o[2] = sinf(x);
    o[3] = cosf(x);
    o[4] = powf(fabsf(x), 1.7f);
    o[5] = tanhf(x);
    o[6] = atan2f(x, 2.0f);
    o[7] = rsqrtf(fabsf(x));
    o[8] = cbrtf(x);
    o[9] = fmodf(x, 0.7f);
    o[10] = roundf(x) + floorf(x) + rintf(x);
    o[11] = 1.0f / x;
    o[12] = erff(x);
    o[13] = hypotf(x, 3.0f);
}
extern "C" __global__ void mathd(const double *a, double *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = a[i];
    double *o = c + i * 4;
    o[0] = exp(x);
    o[1] = log(fabs(x));
    o[2] = sin(x);
    o[3] = pow(fabs(x), 1.7);
}
