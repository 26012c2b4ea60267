/* Linear layers of 8-bit integers: each row of the input is rounded with a scale of its own, the integer sums are exact,
   and each sum is scaled in the same order as prepared_transformer.py does it: so both give the same bits.

   Compiled without contraction of a product and a sum to one operation, which would round once instead of twice.

   Weights are packed by pack_weights of native_kernels.py: panels of 64 outputs; in a panel, for each 4 inputs, the 4
   weights of each output side by side. */

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "lanes.h"

#define PANEL 64
#define SIDE_BY_SIDE 4

#if defined(__AVX512VNNI__)

/* An instruction multiplies unsigned by signed bytes, so weights are stored with 128 added, and each sum begins with
   minus 128 times the sum of the row. */
#define OFFSET 128
#define TILE_ROWS 6
#define TILE_WIDTH 64
typedef __m512i sums;
#define LOAD_WEIGHTS(p) _mm512_loadu_si512((const void *)(p))
#define IN_ALL_LANES(x) _mm512_set1_epi32(x)
#define ADD_PRODUCTS(total, weights, inputs) _mm512_dpbusd_epi32(total, weights, inputs)
#define STORE_SUMS(p, x) _mm512_storeu_si512((void *)(p), x)

#else

/* |w| (x sign(w)): the sum of two such products is at most 2 * 127 * 127, so 16 bits hold it exactly. */
#define OFFSET 0
#define TILE_ROWS 4
#define TILE_WIDTH 16
typedef __m256i sums;
#define LOAD_WEIGHTS(p) _mm256_loadu_si256((const __m256i *)(p))
#define IN_ALL_LANES(x) _mm256_set1_epi32(x)
#define ADD_PRODUCTS(total, weights, inputs)                                                                       \
    _mm256_add_epi32(total, _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_abs_epi8(weights),                       \
                                                                   _mm256_sign_epi8(inputs, weights)),             \
                                              _mm256_set1_epi16(1)))
#define STORE_SUMS(p, x) _mm256_storeu_si256((__m256i *)(p), x)

#endif

#define SUMS_WIDTH ((int)(sizeof(sums) / sizeof(int32_t)))
#define SUMS_PER_TILE (TILE_WIDTH / SUMS_WIDTH)

int32_t AT_LEVEL(tfm_weight_offset)(void) { return OFFSET; }

/* The sums of `ROWS` rows and of TILE_WIDTH outputs of a panel, less the offsets of the rows, to found[row * PANEL + output]. */
#define MULTIPLY_TILE(ROWS)                                                                                        \
    static void multiply_##ROWS(const int8_t *inputs, const int32_t *offsets, const uint8_t *weights, int64_t fours,\
                                int32_t *found) {                                                                  \
        sums totals[ROWS][SUMS_PER_TILE];                                                                          \
        UNROLL for (int row = 0; row < ROWS; row++)                                                                \
            UNROLL for (int part = 0; part < SUMS_PER_TILE; part++)                                                \
                totals[row][part] = IN_ALL_LANES(-offsets[row]);                                                   \
        for (int64_t four = 0; four < fours; four++) {                                                             \
            sums columns[SUMS_PER_TILE];                                                                           \
            UNROLL for (int part = 0; part < SUMS_PER_TILE; part++)                                                \
                columns[part] = LOAD_WEIGHTS(weights + four * PANEL * SIDE_BY_SIDE + part * sizeof(sums));         \
            /* The same place in the next panel, which comes from memory. A single row waits for nothing else. */  \
            for (int line = 0; ROWS > 1 && line < PANEL * SIDE_BY_SIDE; line += 64)                                \
                __builtin_prefetch(weights + (fours + four) * PANEL * SIDE_BY_SIDE + line, 0, 2);                  \
            UNROLL for (int row = 0; row < ROWS; row++) {                                                          \
                int32_t bytes;                                                                                     \
                memcpy(&bytes, inputs + (row * fours + four) * SIDE_BY_SIDE, sizeof bytes);                        \
                sums repeated = IN_ALL_LANES(bytes);                                                               \
                UNROLL for (int part = 0; part < SUMS_PER_TILE; part++)                                            \
                    totals[row][part] = ADD_PRODUCTS(totals[row][part], columns[part], repeated);                  \
            }                                                                                                      \
        }                                                                                                          \
        UNROLL for (int row = 0; row < ROWS; row++)                                                                \
            UNROLL for (int part = 0; part < SUMS_PER_TILE; part++)                                                \
                STORE_SUMS(found + row * PANEL + part * SUMS_WIDTH, totals[row][part]);                            \
    }

MULTIPLY_TILE(1)
MULTIPLY_TILE(2)
MULTIPLY_TILE(3)
MULTIPLY_TILE(4)
#if TILE_ROWS == 6
MULTIPLY_TILE(5)
MULTIPLY_TILE(6)
#endif

typedef void (*multiply_tile)(const int8_t *, const int32_t *, const uint8_t *, int64_t, int32_t *);

static const multiply_tile tiles[] = {0, multiply_1, multiply_2, multiply_3, multiply_4,
#if TILE_ROWS == 6
                                      multiply_5, multiply_6
#endif
};

/* The rows of an input block, rounded. */
typedef struct {
    int64_t width, padded; /* inputs of a row, and the same rounded up to a multiple of 4 */
    int8_t *rounded;       /* (rows, padded) */
    float *scales;         /* of each row */
    int32_t *offsets;      /* what the sums of each row have too much */
} quantised_rows;

typedef int8_t byte_lanes __attribute__((vector_size(16), aligned(1), may_alias));

/* Of 16 floats without their signs, the order is that of their bits; the bits of NaN are the largest. */
static inline integer_lanes larger_magnitudes(integer_lanes found, lanes x) {
    integer_lanes magnitudes = (integer_lanes)x & 0x7FFFFFFF;
#ifdef __AVX512F__
    return (integer_lanes)_mm512_max_epi32((__m512i)magnitudes, (__m512i)found);
#else
    integer_lanes is_larger = magnitudes > found;
    return (magnitudes & is_larger) | (found & ~is_larger);
#endif
}

static float largest_magnitude(const float *row, int64_t width) {
    integer_lanes bits = {0};
    int64_t column = 0;
    for (; column + LANES <= width; column += LANES)
        bits = larger_magnitudes(bits, load(row + column));
    if (column < width)
        bits = larger_magnitudes(bits, load_part(row + column, width - column));
    bits = larger_magnitudes(bits, (lanes)HALVES(bits));
    bits = larger_magnitudes(bits, (lanes)QUARTERS(bits));
    bits = larger_magnitudes(bits, (lanes)PAIRS(bits));
    bits = larger_magnitudes(bits, (lanes)NEIGHBOURS(bits));
    return ((lanes)bits)[0];
}

/* Adding 1.5 * 2^23 rounds to the nearest whole number, half to even; then its bits are those of that sum, plus the number. */
static inline integer_lanes nearest(lanes x) { return (integer_lanes)(x + 12582912.0f) - 0x4B400000; }

/* 2^-100: 127 divided by it is finite. */
#define SMALLEST 7.888609e-31f

/* Round one row. A row with an infinity or a NaN gets the scale NaN, so that all its results are NaN. */
static void quantise(const float *row, quantised_rows block, int64_t number) {
    int8_t *rounded = block.rounded + number * block.padded;
    float largest = largest_magnitude(row, block.width);
    memset(rounded + block.padded - SIDE_BY_SIDE, 0, SIDE_BY_SIDE);
    if (!(largest <= FLT_MAX)) {
        memset(rounded, 0, (size_t)block.padded);
        block.scales[number] = NAN, block.offsets[number] = 0;
        return;
    }
    largest = largest > SMALLEST ? largest : SMALLEST;
    block.scales[number] = largest / 127.0f;
    float factor = 127.0f / largest;
    integer_lanes totals = {0};
    int64_t column = 0;
    for (; column + LANES <= block.width; column += LANES) {
        integer_lanes whole = nearest(load(row + column) * factor);
        totals += whole;
        *(byte_lanes *)(rounded + column) = __builtin_convertvector(whole, byte_lanes);
    }
    if (column < block.width) {
        integer_lanes whole = nearest(load_part(row + column, block.width - column) * factor);
        totals += whole;
        byte_lanes bytes = __builtin_convertvector(whole, byte_lanes);
        memcpy(rounded + column, &bytes, (size_t)(block.width - column));
    }
    totals += HALVES(totals);
    totals += QUARTERS(totals);
    totals += PAIRS(totals);
    totals += NEIGHBOURS(totals);
    block.offsets[number] = OFFSET * totals[0];
}

/* What a layer makes of its sums. */
typedef struct {
    const uint8_t *weights; /* packed */
    const float *scales;    /* of each output, then zeros up to a multiple of PANEL */
    const float *bias;      /* the same */
    int64_t outputs;
    int32_t has_relu;
} layer;

/* (sum * scale of the row) * scale of the output + bias. */
static inline lanes finished(const int32_t *found, float scale, lanes factors, lanes bias, int has_relu) {
    integer_lanes whole = *(const integer_lanes *)found;
    lanes x = __builtin_convertvector(whole, lanes) * scale * factors + bias;
    if (has_relu) { /* NaN stays NaN */
        integer_lanes is_negative = x < 0.0f;
        x = (lanes)((integer_lanes)x & ~is_negative);
    }
    return x;
}

/* The results of a tile of rows for a panel, of which the layer has `count` outputs. */
static inline void finish(const int32_t *found, int64_t rows, const float *row_scales, const float *scales, const float *bias,
                          int64_t count, int has_relu, float *to, int64_t stride) {
    lanes factors[PANEL / LANES], offsets[PANEL / LANES];
    UNROLL for (int part = 0; part < PANEL / LANES; part++)
        factors[part] = load(scales + part * LANES), offsets[part] = load(bias + part * LANES);
    for (int64_t row = 0; row < rows; row++, found += PANEL, to += stride) {
        float scale = row_scales[row];
        UNROLL for (int part = 0; part < PANEL / LANES; part++) {
            lanes x = finished(found + part * LANES, scale, factors[part], offsets[part], has_relu);
            int64_t left = count - part * LANES;
            if (left >= LANES)
                store(to + part * LANES, x);
            else if (left > 0)
                store_part(to + part * LANES, left, x);
        }
    }
}

static void multiply_panel(quantised_rows block, int64_t rows, const layer *of, int64_t panel, float *results) {
    int32_t found[TILE_ROWS * PANEL];
    int64_t fours = block.padded / SIDE_BY_SIDE, outputs = of->outputs, place = panel * PANEL;
    const uint8_t *weights = of->weights + place * block.padded;
    const float *scales = of->scales + place, *bias = of->bias + place;
    int is_whole = place + PANEL <= outputs, has_relu = of->has_relu;
    int64_t num_tiles = (rows + TILE_ROWS - 1) / TILE_ROWS;
    for (int64_t tile = 0; tile < num_tiles; tile++) { /* of nearly equal sizes */
        int64_t first = tile * rows / num_tiles, count = (tile + 1) * rows / num_tiles - first;
        const int8_t *inputs = block.rounded + first * block.padded;
        for (int part = 0; part < PANEL; part += TILE_WIDTH)
            tiles[count](inputs, block.offsets + first, weights + part * SIDE_BY_SIDE, fours, found + part);
        const float *row_scales = block.scales + first;
        float *to = results + first * outputs + place;
        /* Constants let the compiler leave out the questions. */
        if (is_whole && has_relu)
            finish(found, count, row_scales, scales, bias, PANEL, 1, to, outputs);
        else if (is_whole)
            finish(found, count, row_scales, scales, bias, PANEL, 0, to, outputs);
        else
            finish(found, count, row_scales, scales, bias, outputs - place, has_relu, to, outputs);
    }
}

/* Rows whose bytes stay in the level 2 cache while all panels are read. */
#define BLOCK_BYTES (192 * 1024)

/* (rows, width) floats to (rows, outputs) floats; of these, the outputs of the panels from first_panel to end_panel.
   Returns 0, or 1 if there is no memory. */
int32_t AT_LEVEL(tfm_linear)(const float *inputs, int64_t rows, int64_t width, const uint8_t *weights, const float *scales,
                             const float *bias, int64_t outputs, int64_t first_panel, int64_t end_panel, int32_t has_relu,
                             float *results) {
    const layer of = {weights, scales, bias, outputs, has_relu};
    int64_t padded = (width + SIDE_BY_SIDE - 1) / SIDE_BY_SIDE * SIDE_BY_SIDE;
    int64_t most = BLOCK_BYTES / padded;
    most = most < TILE_ROWS ? TILE_ROWS : most > rows ? rows : most;
    void *memory = malloc((size_t)(most * (padded + (int64_t)(sizeof(float) + sizeof(int32_t)))) + SIDE_BY_SIDE);
    if (!memory)
        return 1;
    float *row_scales = memory;
    int32_t *offsets = (int32_t *)(row_scales + most);
    const quantised_rows block = {width, padded, (int8_t *)(offsets + most), row_scales, offsets};
    for (int64_t first = 0; first < rows; first += most) {
        int64_t count = rows - first < most ? rows - first : most;
        for (int64_t row = 0; row < count; row++)
            quantise(inputs + (first + row) * width, block, row);
        for (int64_t panel = first_panel; panel < end_panel; panel++)
            multiply_panel(block, count, &of, panel, results + first * outputs);
    }
    free(memory);
    return 0;
}

/* The packed weights of some outputs, in the order of their numbers; the rest of the last panel is zero. `fours` is the width of
   a layer, rounded up to a multiple of 4, divided by 4. */
void AT_LEVEL(tfm_choose_outputs)(const uint8_t *weights, int64_t fours, const int64_t *outputs, int64_t count, uint8_t *chosen) {
    int64_t step = PANEL * SIDE_BY_SIDE;
    for (int64_t place = 0; place < (count + PANEL - 1) / PANEL * PANEL; place++) {
        uint8_t *to = chosen + place / PANEL * fours * step + place % PANEL * SIDE_BY_SIDE;
        if (place >= count) {
            for (int64_t four = 0; four < fours; four++)
                memset(to + four * step, 0, SIDE_BY_SIDE);
            continue;
        }
        const uint8_t *from = weights + outputs[place] / PANEL * fours * step + outputs[place] % PANEL * SIDE_BY_SIDE;
        for (int64_t four = 0; four < fours; four++)
            memcpy(to + four * step, from + four * step, SIDE_BY_SIDE);
    }
}
