// Functions that are not inlined: arguments and results of several sizes, recursion, pointers.
struct Pair { int lo; float hi; double big; };
__device__ __noinline__ Pair make(int a, float b, Pair p) { p.lo += a; p.hi *= b; p.big += p.lo; return p; }
__device__ __noinline__ unsigned char narrow(unsigned char x, short y) { return x + y; }
__device__ __noinline__ unsigned fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__device__ __noinline__ void fill(int *p, int n, int v) { for (int i = 0; i < n; i++) p[i] = v + i; }
typedef int (*Op)(int, int);
__device__ __noinline__ int plus(int a, int b) { return a + b; }
__device__ __noinline__ int minus(int a, int b) { return a - b; }
__device__ __noinline__ int times(int a, int b) { return a * b; }
__device__ Op ops[3] = {plus, minus, times};
extern "C" __global__ void calls(double *out, int which) {
    int i = threadIdx.x;
    Pair p = {i, 0.5f, 2.0};
    p = make(3, 4.0f, p);
    int scratch[8];
    fill(scratch, 8, i);
    int s = 0;
#pragma unroll 1
    for (int k = 0; k < 8; k++) s += scratch[(k + which) & 7];
    double *o = out + i * 5;
    o[0] = p.lo + p.hi + p.big;
    o[1] = narrow(250 + i, 7);
    o[2] = fib(i);
    o[3] = s;
    o[4] = ops[(i + which) % 3](i, 10);
}
