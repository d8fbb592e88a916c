// A tile with a border of one pixel in shared memory, clamped at the edges of the image.
extern "C" __global__ void conv2d(const float *__restrict__ src, float *__restrict__ dst,
                                  const float *__restrict__ w, int width, int height) {
    __shared__ float tile[10][10];
    int lx = threadIdx.x, ly = threadIdx.y;
    int x0 = blockIdx.x * 8, y0 = blockIdx.y * 8;
#pragma unroll 1
    for (int y = ly; y < 10; y += 8)
#pragma unroll 1
        for (int x = lx; x < 10; x += 8) {
            int sx = min(max(x0 + x - 1, 0), width - 1);
            int sy = min(max(y0 + y - 1, 0), height - 1);
            tile[y][x] = src[sy * width + sx];
        }
    __syncthreads();
    if (x0 + lx >= width || y0 + ly >= height) return;
    float sum = 0.0f;
#pragma unroll 1
    for (int j = 0; j < 3; j++)
        for (int i = 0; i < 3; i++) sum += w[j * 3 + i] * tile[ly + j][lx + i];
    dst[(y0 + ly) * width + x0 + lx] = sum;
}
