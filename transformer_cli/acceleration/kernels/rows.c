/* What is computed for each row of a matrix alone: layer normalisation, the log-softmax of logits, and a step of an SSRU. */

#include <math.h>

#include "lanes.h"

/* The sum over a row of x - shift, or of its square. */
static inline float sum_of(const float *row, int64_t width, float shift, int is_squared) {
    lanes sums = {0};
    int64_t whole = width / LANES * LANES;
    for (int64_t column = 0; column < whole; column += LANES) {
        lanes x = load(row + column) - shift;
        sums += x * (is_squared ? x : all_lanes(1.0f));
    }
    float sum = sum_of_lanes(sums);
    for (int64_t column = whole; column < width; column++) {
        float x = row[column] - shift;
        sum += is_squared ? x * x : x;
    }
    return sum;
}

/* gain (x - mean) / sqrt(variance + epsilon) + bias of each row, (rows, width). */
void AT_LEVEL(tfm_layer_norm)(const float *x, int64_t rows, int64_t width, const float *gain, const float *bias, float epsilon,
                              float *results) {
    for (int64_t row = 0; row < rows; row++, x += width, results += width) {
        float mean = sum_of(x, width, 0.0f, 0) / (float)width;
        float factor = 1.0f / sqrtf(sum_of(x, width, mean, 1) / (float)width + epsilon);
        int64_t column = 0;
        for (; column + LANES <= width; column += LANES)
            store(results + column, (load(x + column) - mean) * factor * load(gain + column) + load(bias + column));
        for (; column < width; column++)
            results[column] = (x[column] - mean) * factor * gain[column] + bias[column];
    }
}

/* The log-softmax of a row of logits is (logit - largest) - logarithm. */
typedef struct {
    float largest, logarithm;
} normalisation;

/* A function of its own, so that all who need it get the same bits. */
static __attribute__((noinline)) normalisation normalisation_of(const float *logits, int64_t width) {
    int64_t whole = width / LANES * LANES, left = width - whole;
    lanes most = all_lanes(logits[0]);
    for (int64_t first = 0; first < whole; first += LANES)
        most = larger(load(logits + first), most);
    float largest = largest_lane(most);
    for (int64_t column = whole; column < width; column++)
        largest = logits[column] > largest ? logits[column] : largest;
    lanes sums = {0};
    for (int64_t first = 0; first < whole; first += LANES)
        sums += exponential(load(logits + first) - largest);
    float sum = sum_of_lanes(sums);
    if (left) {
        lanes last = exponential(load_part(logits + whole, left) - largest);
        for (int64_t lane = 0; lane < left; lane++)
            sum += last[lane];
    }
    return (normalisation){largest, logf(sum)};
}

/* Replace each row of logits, (rows, width), by its log-softmax. */
void AT_LEVEL(tfm_log_softmax)(float *logits, int64_t rows, int64_t width) {
    for (int64_t row = 0; row < rows; row++, logits += width) {
        normalisation of = normalisation_of(logits, width);
        int64_t column = 0;
        for (; column + LANES <= width; column += LANES)
            store(logits + column, (load(logits + column) - of.largest) - of.logarithm);
        for (; column < width; column++)
            logits[column] = (logits[column] - of.largest) - of.logarithm;
    }
}

/* The largest and the logarithm of each row of logits, (rows, width), with which `tfm_best` finds log-probabilities. */
void AT_LEVEL(tfm_log_sums)(const float *logits, int64_t rows, int64_t width, float *largest, float *logarithms) {
    for (int64_t row = 0; row < rows; row++) {
        normalisation of = normalisation_of(logits + row * width, width);
        largest[row] = of.largest, logarithms[row] = of.logarithm;
    }
}

/* Whether one of the lanes is at least as large. */
static inline int reaches(lanes x, float least) {
#ifdef __AVX512F__
    return _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(least), _CMP_GE_OQ) != 0;
#else
    halves both = {.all = x};
    __m256 bound = _mm256_set1_ps(least);
    return _mm256_movemask_ps(_mm256_or_ps(_mm256_cmp_ps(both.half[0], bound, _CMP_GE_OQ),
                                           _mm256_cmp_ps(both.half[1], bound, _CMP_GE_OQ))) != 0;
#endif
}

/* The first place of a row with at least this log-probability; `width` if there is none. */
static int64_t first_place(const float *logits, int64_t width, normalisation of, float least) {
    int64_t column = 0;
    while (column + LANES <= width && !reaches((load(logits + column) - of.largest) - of.logarithm, least))
        column += LANES;
    while (column < width && !((logits[column] - of.largest) - of.logarithm >= least))
        column++;
    return column;
}

/* The place of the largest log-probability of a row, the first one of equals, as `tfm_top_k` finds it in the log-softmax; `value`
   becomes this log-probability.

   Logits may have become -infinity since `tfm_log_sums`. If all have, or if the row has a NaN, the value is -infinity or NaN. */
int64_t AT_LEVEL(tfm_best)(const float *logits, int64_t width, float largest, float logarithm, float *value) {
    normalisation of = {largest, logarithm};
    *value = 0.0f - logarithm;
    if (!(logarithm >= 0.0f)) /* NaN: the sum has at least e^0 */
        return 0;
    int64_t place = first_place(logits, width, of, *value);
    if (place < width)
        return place;
    float most = -INFINITY;
    for (int64_t column = 0; column < width; column++)
        most = logits[column] > most ? logits[column] : most;
    *value = (most - largest) - logarithm;
    return most > -INFINITY ? first_place(logits, width, of, *value) : 0;
}

/* 1 / (1 + e^-x). */
static inline lanes sigmoid(lanes x) {
    integer_lanes is_negative = x < 0.0f;
    lanes power = exponential((lanes)((integer_lanes)x | (integer_lanes)all_lanes(-0.0f))); /* e^-|x| */
    lanes one = all_lanes(1.0f);
    lanes above = (lanes)(((integer_lanes)power & is_negative) | ((integer_lanes)one & ~is_negative));
    return above / (one + power);
}

/* A step of an SSRU: the cell is forget * cell + (1 - forget) * candidate, and the result is its positive part.

   projected: (rows, 2 width), candidates and then gates; states: (rows, width), the cells, which are zero before the first step. */
void AT_LEVEL(tfm_recurrence)(const float *projected, int64_t rows, int64_t width, float *states, int32_t is_first,
                              float *results) {
    for (int64_t row = 0; row < rows; row++, projected += 2 * width, states += width, results += width)
        for (int64_t column = 0; column < width; column += LANES) {
            int64_t count = width - column < LANES ? width - column : LANES;
            lanes forget = sigmoid(load_part(projected + width + column, count));
            lanes cell = (1.0f - forget) * load_part(projected + column, count);
            if (!is_first)
                cell += forget * load_part(states + column, count);
            store_part(states + column, count, cell);
            integer_lanes is_below = cell < 0.0f; /* NaN stays NaN */
            store_part(results + column, count, (lanes)((integer_lanes)cell & ~is_below));
        }
}
