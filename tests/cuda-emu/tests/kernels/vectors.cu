extern "C" __global__ void vectors(const float4 *a, float4 *b, const uchar4 *p, uchar4 *q, const double2 *d, short2 *s, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 v = a[i];
    v.x += v.w;
    v.y *= 2.0f;
    b[i] = v;
    uchar4 u = p[i];
    q[i] = make_uchar4(u.w, u.z, u.y, (unsigned char)min(255, u.x + 100));
    s[i] = make_short2((short)d[i].x, (short)__double2int_rn(d[i].y));
}
