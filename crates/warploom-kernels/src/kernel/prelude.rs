//! What stands in front of kernels in OpenCL C: functions that compilers for processors are slow at, and hints
//! for them.

/// Rounding to whole numbers for OpenCL C: compilers for processors call a function for every
/// number instead of turning `rint` (and `floor` of doubles) into vector code. Above 2^23, or 2^52,
/// every number is whole; below, adding that leaves no room for a fraction. Fast mathematics would
/// leave the sum out, because it comes to nothing.
pub(super) const ROUND: &str = "\
#ifdef __FAST_RELAXED_MATH__
#define wl_round(v) rint(v)
#else
static inline float wl_round(float v) {
  const float a = fabs(v);
  const float whole = (a + 8388608.0f) - 8388608.0f;
  return a < 8388608.0f ? as_float((as_int(v) & (-2147483647 - 1)) | as_int(whole)) : v;
}
#endif
";
pub(super) const ROUND_WIDE: &str = "\
#ifdef __FAST_RELAXED_MATH__
#define wl_round_wide(v) rint(v)
#define wl_floor_wide(v) floor(v)
#else
static inline double wl_round_wide(double v) {
  const double a = fabs(v);
  const double whole = (a + 4503599627370496.0) - 4503599627370496.0;
  const long sign = as_long(v) & (-9223372036854775807L - 1L);
  return a < 4503599627370496.0 ? as_double(sign | as_long(whole)) : v;
}
static inline double wl_floor_wide(double v) {
  const double whole = wl_round_wide(v);
  return whole > v ? whole - 1.0 : whole;
}
#endif
";

/// A hint for loops over pixels side by side. Compilers use half of what the vectors of AVX-512 hold, for the
/// sake of programs that use them now and then; kernels use nothing else. Two vectors at once have twice as
/// much to do while one waits: measured, 5 to 45 % for neighbourhoods and nothing where memory is the limit.
pub(super) const LANES: &str = "\
#if defined(__clang__) && defined(__AVX512F__)
#define WL_LANES _Pragma(\"clang loop vectorize_width(32)\")
#else
#define WL_LANES
#endif
";
/// Processors count elements in 64 bits. Their compilers widen every part of an element's number where it is
/// used, and to prove that this changes nothing took a third of all the time that they needed for a kernel.
const NUMBER: &str = "\
#if defined(__x86_64__) || defined(__aarch64__)
#define WL_AT long
#else
#define WL_AT int
#endif
";
/// A hint that processors take. Its argument is a pointer to any memory, which OpenCL C 1.2 has no name for.
const SOON: &str = "\
#if defined(__clang__) && defined(__x86_64__)
#define WL_SOON(element, written) __builtin_prefetch((const void*)(size_t)&(element), written, 3)
#else
#define WL_SOON(element, written)
#endif
";
/// A hint for loops over a few vectors.
const STRAIGHTEN: &str = "\
#if defined(__clang__)
#define WL_STRAIGHT _Pragma(\"unroll\")
#else
#define WL_STRAIGHT
#endif
";

/// Those hints that a kernel's text uses.
pub(super) fn hints(body: &str) -> String {
    let hints = [
        ("WL_AT", NUMBER),
        ("WL_SOON(", SOON),
        ("WL_STRAIGHT ", STRAIGHTEN),
    ];
    let used = hints.iter().filter(|(name, _)| body.contains(name));
    used.map(|(_, hint)| *hint).collect()
}
