// 3x3 median; the window is an array with run-time indices, so it lives in local memory.
extern "C" __global__ void median(const float *src, float *dst, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float v[9];
#pragma unroll 1
    for (int k = 0; k < 9; k++) {
        int sx = min(max(x + k % 3 - 1, 0), width - 1);
        int sy = min(max(y + k / 3 - 1, 0), height - 1);
        v[k] = src[sy * width + sx];
    }
#pragma unroll 1
    for (int i = 0; i < 5; i++)
#pragma unroll 1
        for (int j = i + 1; j < 9; j++)
            if (v[j] < v[i]) {
                float t = v[i];
                v[i] = v[j];
                v[j] = t;
            }
    dst[y * width + x] = v[4];
}
