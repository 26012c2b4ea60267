/* Vectors of 16 floats, which the compiler maps to the registers of each CPU, and what the other files share. */

#ifndef TFM_LANES_H
#define TFM_LANES_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

/* Each C file is compiled once for each level of instructions; LEVEL is the end of the names of its functions. */
#define JOINED_(name, level) name##_##level
#define JOINED(name, level) JOINED_(name, level)
#define AT_LEVEL(name) JOINED(name, LEVEL)

#define LANES 16

/* Before a loop of a few rounds, whose numbers then stay in registers. */
#define UNROLL _Pragma("GCC unroll 16")

typedef float lanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t integer_lanes __attribute__((vector_size(64), aligned(4), may_alias));

typedef union {
    lanes all;
    __m256 half[2];
} halves;

static inline lanes load(const float *numbers) { return *(const lanes *)numbers; }

static inline void store(float *numbers, lanes x) { *(lanes *)numbers = x; }

/* Fewer than 16 numbers, then zeros. */
static inline lanes load_part(const float *numbers, int64_t count) {
    lanes x = {0};
    memcpy(&x, numbers, (size_t)count * sizeof(float));
    return x;
}

static inline void store_part(float *numbers, int64_t count, lanes x) {
    memcpy(numbers, &x, (size_t)count * sizeof(float));
}

static inline lanes all_lanes(float x) { return (lanes){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }

/* Of each lane the larger number; b if one is NaN. */
static inline lanes larger(lanes a, lanes b) {
#ifdef __AVX512F__
    return (lanes)_mm512_max_ps((__m512)a, (__m512)b);
#else
    halves x = {.all = a}, y = {.all = b};
    for (int half = 0; half < 2; half++)
        x.half[half] = _mm256_max_ps(x.half[half], y.half[half]);
    return x.all;
#endif
}

#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLED(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLED(a, b, ...) __builtin_shuffle(a, b, (integer_lanes){__VA_ARGS__})
#endif

/* The same number of lanes, with those of the other half, quarter and so on in their place. */
#define HALVES(x) SHUFFLED(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)
#define QUARTERS(x) SHUFFLED(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11)
#define PAIRS(x) SHUFFLED(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)
#define NEIGHBOURS(x) SHUFFLED(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14)

static inline float largest_lane(lanes x) {
    x = larger(x, HALVES(x));
    x = larger(x, QUARTERS(x));
    x = larger(x, PAIRS(x));
    return larger(x, NEIGHBOURS(x))[0];
}

static inline float sum_of_lanes(lanes x) {
    x = x + HALVES(x);
    x = x + QUARTERS(x);
    x = x + PAIRS(x);
    return (x + NEIGHBOURS(x))[0];
}

/* e^x for x <= 0, within 2 units of the last place; 0 below -87; NaN of NaN. The polynomial is that of a Taylor series of degree 7
   on [-ln 2 / 2, ln 2 / 2]. */
static inline lanes exponential(lanes x) {
    const float log2_of_e = 1.44269504f, high = 0.693359375f, low = -2.12194440e-4f;
    lanes scaled = x * log2_of_e;
    /* Adding 1.5 * 2^23 rounds to a whole number. */
    lanes shifted = scaled + 12582912.0f;
    lanes whole = shifted - 12582912.0f;
    lanes rest = x - whole * high;
    rest = rest - whole * low;
    lanes power = all_lanes(1.0f / 5040.0f);
    power = power * rest + 1.0f / 720.0f;
    power = power * rest + 1.0f / 120.0f;
    power = power * rest + 1.0f / 24.0f;
    power = power * rest + 1.0f / 6.0f;
    power = power * rest + 0.5f;
    power = power * rest + 1.0f;
    power = power * rest + 1.0f;
    integer_lanes exponent = (((integer_lanes)shifted - 0x4B400000) + 127) << 23;
    integer_lanes is_zero = x < -87.0f;
    return (lanes)((integer_lanes)(power * (lanes)exponent) & ~is_zero);
}

#endif
