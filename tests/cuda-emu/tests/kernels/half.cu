#include <cuda_fp16.h>
#include <cuda_bf16.h>
// Every arithmetic operation on halves, one after the other.
extern "C" __global__ void half1(const __half *a, const __half *b, __half *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half x = a[i], y = b[i];
    __half *o = c + i * 12;
    o[0] = __hadd(x, y);
    o[1] = __hsub(x, y);
    o[2] = __hmul(x, y);
    o[3] = __hfma(x, y, x);
    o[4] = __hneg(x);
    o[5] = __habs(y);
    o[6] = __hdiv(x, y);
    o[7] = __hlt(x, y) ? x : y;
    o[8] = __float2half_rn(__half2float(x) * 1.5f);
    o[9] = __int2half_rn(__half2int_rz(x));
    o[10] = hsqrt(y);
    o[11] = __hadd_sat(x, y);
}
extern "C" __global__ void half2x(const __half2 *a, const __half2 *b, __half2 *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half2 x = a[i], y = b[i];
    __half2 *o = c + i * 4;
    o[0] = __hadd2(x, y);
    o[1] = __hmul2(x, y);
    o[2] = __hfma2(x, y, y);
    o[3] = __halves2half2(__high2half(x), __low2half(y));
}
extern "C" __global__ void bhalf(const __nv_bfloat16 *a, const float *b, __nv_bfloat16 *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = __bfloat162float(a[i]);
    c[i] = __float2bfloat16(x * b[i]);
}
