/* The k largest numbers of several rows; of equal numbers, the first one comes first. */

#include <math.h>

#include "lanes.h"

#define BLOCK 64 /* numbers that are searched only if the largest of them is among the best so far */

/* The best so far, largest first. */
typedef struct {
    int64_t k, count;
    float *values;
    int64_t *positions;
} best;

/* Numbers come in the order of their positions, so an equal number that came earlier stays before. */
static inline void offer(best *found, float value, int64_t position) {
    if (found->count == found->k && !(value > found->values[found->k - 1]))
        return;
    int64_t place = found->count < found->k ? found->count++ : found->k - 1;
    for (; place > 0 && value > found->values[place - 1]; place--) {
        found->values[place] = found->values[place - 1];
        found->positions[place] = found->positions[place - 1];
    }
    found->values[place] = value;
    found->positions[place] = position;
}

/* Whether a block may hold one of the k largest numbers. */
static inline int may_hold(const best *found, const float *numbers, float offset) {
    lanes most = load(numbers);
    for (int64_t first = LANES; first < BLOCK; first += LANES)
        most = larger(load(numbers + first), most);
    return found->count < found->k || largest_lane(most) + offset > found->values[found->k - 1];
}

static void search_row(best *found, const float *numbers, int64_t width, float offset, int64_t position) {
    int64_t first = 0;
    for (; first + BLOCK <= width; first += BLOCK)
        if (may_hold(found, numbers + first, offset))
            for (int64_t column = first; column < first + BLOCK; column++)
                offer(found, numbers[column] + offset, position + column);
    for (; first < width; first++)
        offer(found, numbers[first] + offset, position + first);
}

/* numbers: (sentences, rows, width); offsets: (sentences, rows), added to each number of a row, or null.
   values, positions: (sentences, k); positions count from the first number of the first row of the sentence. */
void AT_LEVEL(tfm_top_k)(const float *numbers, int64_t sentences, int64_t rows, int64_t width, const float *offsets,
                         int64_t k, float *values, int64_t *positions) {
    for (int64_t sentence = 0; sentence < sentences; sentence++) {
        best found = {k, 0, values + sentence * k, positions + sentence * k};
        for (int64_t row = 0; row < rows; row++, numbers += width)
            search_row(&found, numbers, width, offsets ? offsets[sentence * rows + row] : 0.0f, row * width);
    }
}
