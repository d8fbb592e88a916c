// Structures by value, one of them indexed at run time.
struct Small { char a; short b; int c; };
struct Matrix { float m[3][4]; int rows; double scale; };
extern "C" __global__ void params(Small s, Matrix m, const float *v, double *out, unsigned char last) {
    int i = threadIdx.x;
    if (i >= m.rows) return;
    float sum = 0.0f;
#pragma unroll 1
    for (int k = 0; k < 4; k++) sum += m.m[i][k] * v[k];
    out[i] = sum * m.scale + s.a + s.b * s.c + last;
}
