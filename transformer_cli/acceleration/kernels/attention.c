/* Attention of single query positions to keys and values that lie anywhere in a buffer.

   Each row has a list of the positions that it reads. So hypotheses that share a beginning share its keys and values, and nothing
   is copied when hypotheses are repeated or dropped. A result depends on the numbers of its own row only: sums are in
   the order of the list. */

#include <float.h>
#include <stdlib.h>

#include "lanes.h"

/* Sums of neighbours: those of a, then those of b. */
static inline lanes pair_sums(lanes a, lanes b) {
    return SHUFFLED(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30) +
           SHUFFLED(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
}

/* The numbers of a key, times those of the query; the sum of the lanes is their product. */
static inline lanes products(const float *query, const float *key, int64_t width) {
    lanes found = {0};
    int64_t column = 0;
    for (; column + LANES <= width; column += LANES)
        found += load(query + column) * load(key + column);
    if (column < width)
        found += load_part(query + column, width - column) * load_part(key + column, width - column);
    return found;
}

/* What the rows read. */
typedef struct {
    const float *keys, *values;
    int64_t key_stride, value_stride; /* from a position to the next, in floats */
    int64_t width;                    /* of a head */
} memory;

/* Ask for the numbers of a head that is read next, while another one is computed: lists lead to any place. */
static inline void prefetch(const float *numbers, int64_t stride, const int32_t *positions, int64_t count, int64_t width) {
    for (int64_t number = 0; number < count; number++)
        for (int64_t column = 0; column < width; column += LANES)
            __builtin_prefetch(numbers + positions[number] * stride + column, 0, 2);
}

/* The scores of one query for up to 16 positions; -FLT_MAX for the others. */
static inline lanes scores_of(const float *query, const memory *of, int64_t head, const int32_t *positions, int64_t count,
                              int64_t width) {
    lanes sums[LANES];
    UNROLL for (int64_t number = 0; number < LANES; number++) {
        int64_t position = positions[number < count ? number : count - 1];
        sums[number] = products(query, of->keys + position * of->key_stride + head, width);
    }
    UNROLL for (int left = LANES / 2; left > 0; left /= 2)
        UNROLL for (int number = 0; number < left; number++)
            sums[number] = pair_sums(sums[2 * number], sums[2 * number + 1]);
    const integer_lanes numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    integer_lanes is_listed = numbers < (int32_t)count;
    return (lanes)(((integer_lanes)sums[0] & is_listed) | ((integer_lanes)all_lanes(-FLT_MAX) & ~is_listed));
}

static inline void score_all(const float *query, const memory *of, int64_t head, const int32_t *positions, int64_t count,
                             int64_t width, float *scores) {
    for (int64_t first = 0; first < count; first += LANES)
        store(scores + first, scores_of(query, of, head, positions + first, count - first < LANES ? count - first : LANES, width));
}

/* Replace scores by e^(score - largest); returns their sum. */
static float exponentials(float *scores, int64_t padded) {
    lanes most = load(scores), sum = {0};
    for (int64_t first = LANES; first < padded; first += LANES)
        most = larger(most, load(scores + first));
    lanes largest = all_lanes(largest_lane(most));
    for (int64_t first = 0; first < padded; first += LANES) {
        lanes found = exponential(load(scores + first) - largest);
        store(scores + first, found);
        sum += found;
    }
    return sum_of_lanes(sum);
}

/* The mean of values, with these weights. */
static void gather(const float *weights, float sum, const memory *of, int64_t head, const int32_t *positions,
                   int64_t count, float *result) {
    float factor = 1.0f / sum;
    int64_t column = 0;
    for (; column + 4 * LANES <= of->width; column += 4 * LANES) {
        lanes found[4] = {{0}, {0}, {0}, {0}};
        for (int64_t number = 0; number < count; number++) {
            const float *value = of->values + positions[number] * of->value_stride + head + column;
            for (int part = 0; part < 4; part++)
                found[part] += weights[number] * load(value + part * LANES);
        }
        for (int part = 0; part < 4; part++)
            store(result + column + part * LANES, found[part] * factor);
    }
    for (; column + LANES <= of->width; column += LANES) {
        lanes found = {0};
        for (int64_t number = 0; number < count; number++)
            found += weights[number] * load(of->values + positions[number] * of->value_stride + head + column);
        store(result + column, found * factor);
    }
    if (column < of->width) {
        int64_t left = of->width - column < LANES ? of->width - column : LANES;
        lanes found = {0};
        for (int64_t number = 0; number < count; number++)
            found += weights[number] * load_part(of->values + positions[number] * of->value_stride + head + column, left);
        store_part(result + column, left, found * factor);
    }
}

/* Attention of `rows` queries.

   queries, results: (rows, groups * group_size, width); the heads of a group read the same keys and values.
   keys, values: of each position, (groups, width). Strides are floats from one row, or position, to the next.
   lists: (lists, list_stride) positions; list_of_row: for each row, its list; counts: of each list.
   Returns 0, or 1 if there is no memory. */
int32_t AT_LEVEL(tfm_attend)(const float *queries, int64_t query_stride, int64_t rows, int64_t groups, int64_t group_size,
                             int64_t width, const float *keys, int64_t key_stride, const float *values,
                             int64_t value_stride, const int32_t *lists, int64_t list_stride,
                             const int32_t *list_of_row, const int32_t *counts, float *results) {
    float *scores = malloc((size_t)(list_stride + LANES) * sizeof(float));
    if (!scores)
        return 1;
    const memory of = {keys, values, key_stride, value_stride, width};
    int64_t heads = groups * group_size;
    for (int64_t row = 0; row < rows; row++) {
        int32_t list = list_of_row[row], next_list = list_of_row[row + 1 < rows ? row + 1 : row];
        int is_new = row == 0 || list != list_of_row[row - 1]; /* else its keys and values were just read */
        int64_t count = counts[list], padded = (count + LANES - 1) / LANES * LANES;
        const int32_t *positions = lists + list * list_stride, *next_positions = lists + next_list * list_stride;
        for (int64_t head = 0; head < heads; head++) {
            int64_t start = head / group_size * width, next = (head + 1) / group_size * width, coming = is_new ? count : 0;
            const int32_t *coming_positions = positions;
            if (head + 1 == heads)
                next = 0, coming_positions = next_positions, coming = next_list != list ? counts[next_list] : 0;
            float *result = results + (row * heads + head) * width, sum = 1.0f;
            prefetch(keys + next, key_stride, coming_positions, coming, width);
            const float *query = queries + row * query_stride + head * width;
            if (width == 64) /* known to the compiler, it needs no loop */
                score_all(query, &of, start, positions, count, 64, scores);
            else if (width == 32)
                score_all(query, &of, start, positions, count, 32, scores);
            else if (width == 16)
                score_all(query, &of, start, positions, count, 16, scores);
            else
                score_all(query, &of, start, positions, count, width, scores);
            if (count > 0)
                sum = exponentials(scores, padded);
            prefetch(values + next, value_stride, coming_positions, coming, width);
            gather(scores, sum, &of, start, positions, count, result);
        }
    }
    free(scores);
    return 0;
}
