/* Losses of training: each row of logits is replaced by the gradient of its loss with respect to them. */

#include <math.h>

#include "lanes.h"

typedef uint32_t unsigned_lanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint16_t narrow_lanes __attribute__((vector_size(32), aligned(2), may_alias));

/* A matrix, (rows, width), of float32 or bfloat16. */
typedef struct {
    void *numbers;
    int64_t width;
    int32_t is_bfloat16;
} matrix;

/* The probabilities that the model shall learn; see SmoothedLabels in loss.py. */
typedef struct {
    int64_t pad_id;
    float truth_weight, symbol_weight, pad_weight;
} smoothed_labels;

/* What a loss needs to know of a row of scores. */
typedef struct {
    float log_sum;     /* of the exponentials */
    float true_score;  /* the score of the true symbol */
    float label_score; /* the mean of the scores, weighted with the labels */
} row_sums;

static inline lanes widened(narrow_lanes x) {
    return (lanes)(__builtin_convertvector(x, unsigned_lanes) << 16);
}

/* To the nearest number, to the even one of two that are equally near; NaN stays NaN. */
static inline narrow_lanes narrowed(lanes x) {
    unsigned_lanes bits = (unsigned_lanes)x;
    unsigned_lanes rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
    unsigned_lanes is_nan = (unsigned_lanes)(x != x);
    return __builtin_convertvector((rounded & ~is_nan) | (0x7FC0 & is_nan), narrow_lanes);
}

/* Columns of a row from `first` on: 16 of them, or `count` and then zeros. */
static inline lanes read(const matrix *from, int64_t row, int64_t first, int64_t count) {
    int64_t start = row * from->width + first;
    if (!from->is_bfloat16) {
        const float *numbers = (const float *)from->numbers + start;
        return count < LANES ? load_part(numbers, count) : load(numbers);
    }
    const uint16_t *numbers = (const uint16_t *)from->numbers + start;
    if (count >= LANES)
        return widened(*(const narrow_lanes *)numbers);
    narrow_lanes part = {0};
    memcpy(&part, numbers, (size_t)count * sizeof(uint16_t));
    return widened(part);
}

static inline void write(const matrix *to, int64_t row, int64_t first, int64_t count, lanes x) {
    int64_t start = row * to->width + first;
    int64_t written = count < LANES ? count : LANES;
    if (to->is_bfloat16) {
        narrow_lanes narrow = narrowed(x);
        memcpy((uint16_t *)to->numbers + start, &narrow, (size_t)written * sizeof(uint16_t));
    } else {
        memcpy((float *)to->numbers + start, &x, (size_t)written * sizeof(float));
    }
}

/* The width of a row in the workspace. */
static inline int64_t whole_lanes(int64_t width) { return (width + LANES - 1) / LANES * LANES; }

/* Put logits plus bias into `scores`, and their exponentials, divided by that of the largest score, into `powers`.
   The lanes after the last column get the score -inf and the power 0. `powers` may be `scores`. */
static row_sums read_scores(const matrix *logits, int64_t row, const float *bias, int64_t truth,
                            const smoothed_labels *labels, float *scores, float *powers, float *sum_of_powers) {
    lanes most = all_lanes(-INFINITY), sum = {0};
    for (int64_t first = 0; first < logits->width; first += LANES) {
        int64_t count = logits->width - first;
        lanes x = read(logits, row, first, count);
        if (bias)
            x += count < LANES ? load_part(bias + first, count) : load(bias + first);
        sum += x;
        store(scores + first, x);
        if (count < LANES) {
            for (int64_t lane = count; lane < LANES; lane++)
                scores[first + lane] = -INFINITY;
            x = load(scores + first);
        }
        most = larger(x, most);
    }
    row_sums found = {.true_score = scores[truth]};
    found.label_score = labels->truth_weight * found.true_score + labels->symbol_weight * sum_of_lanes(sum);
    if (labels->pad_weight != 0.0f)
        found.label_score += labels->pad_weight * scores[labels->pad_id];
    float largest = largest_lane(most);
    lanes powers_of_lanes = {0};
    for (int64_t first = 0; first < logits->width; first += LANES) {
        lanes power = exponential(load(scores + first) - largest);
        powers_of_lanes += power;
        store(powers + first, power);
    }
    *sum_of_powers = sum_of_lanes(powers_of_lanes);
    found.log_sum = logf(*sum_of_powers) + largest;
    return found;
}

/* Replace a row of logits by the gradient minus the labels; add the same to the gradients of the bias. */
static void write_gradient(const matrix *logits, int64_t row, int64_t truth, const smoothed_labels *labels, float *gradient,
                           float *bias_gradient) {
    gradient[truth] -= labels->truth_weight;
    if (labels->pad_weight != 0.0f)
        gradient[labels->pad_id] -= labels->pad_weight;
    for (int64_t first = 0; first < logits->width; first += LANES) {
        int64_t count = logits->width - first;
        lanes x = load(gradient + first) - labels->symbol_weight;
        write(logits, row, first, count, x);
        if (!bias_gradient)
            continue;
        if (count < LANES)
            store_part(bias_gradient + first, count, load_part(bias_gradient + first, count) + x);
        else
            store(bias_gradient + first, load(bias_gradient + first) + x);
    }
}

/* The cross-entropy with smoothed labels of each row.
   bias, bias_gradient: (width,), or both null; to bias_gradient, the sum of the gradients is added.
   ids: (rows,), the true symbols. workspace: (width rounded up to 16,).
   objectives, likelihoods: (rows,), the loss and the negative log-likelihood. */
void AT_LEVEL(tfm_loss)(void *logits, int32_t is_bfloat16, int64_t rows, int64_t width, const float *bias,
                        float *bias_gradient, const int64_t *ids, int64_t pad_id, float truth_weight,
                        float symbol_weight, float pad_weight, float *workspace, float *objectives, float *likelihoods) {
    matrix all = {logits, width, is_bfloat16};
    smoothed_labels labels = {pad_id, truth_weight, symbol_weight, pad_weight};
    for (int64_t row = 0; row < rows; row++) {
        float sum;
        row_sums found = read_scores(&all, row, bias, ids[row], &labels, workspace, workspace, &sum);
        objectives[row] = found.log_sum - found.label_score;
        likelihoods[row] = found.log_sum - found.true_score;
        float factor = 1.0f / sum;
        for (int64_t first = 0; first < width; first += LANES)
            store(workspace + first, load(workspace + first) * factor);
        write_gradient(&all, row, ids[row], &labels, workspace, bias_gradient);
    }
}

/* The objective of R-Drop of each pair of rows: both cross-entropies, and `factor` times KL(P || Q) + KL(Q || P).
   first, second: the logits of the two predictions. likelihoods: the mean of both negative log-likelihoods.
   workspace: (4, width rounded up to 16). All else is as in tfm_loss. Source: Liang et al. 2021, section 2.1. */
void AT_LEVEL(tfm_twin_loss)(void *first_logits, void *second_logits, int32_t is_bfloat16, int64_t rows, int64_t width,
                             const float *bias, float *bias_gradient, const int64_t *ids, int64_t pad_id,
                             float truth_weight, float symbol_weight, float pad_weight, float factor, float *workspace,
                             float *objectives, float *likelihoods) {
    matrix all_first = {first_logits, width, is_bfloat16}, all_second = {second_logits, width, is_bfloat16};
    smoothed_labels labels = {pad_id, truth_weight, symbol_weight, pad_weight};
    int64_t whole = whole_lanes(width);
    float *scores_p = workspace, *scores_q = workspace + whole, *p = workspace + 2 * whole, *q = workspace + 3 * whole;
    for (int64_t row = 0; row < rows; row++) {
        float sum_p, sum_q;
        row_sums p_sums = read_scores(&all_first, row, bias, ids[row], &labels, scores_p, p, &sum_p);
        row_sums q_sums = read_scores(&all_second, row, bias, ids[row], &labels, scores_q, q, &sum_q);
        float share_p = 1.0f / sum_p, share_q = 1.0f / sum_q, log_ratio = p_sums.log_sum - q_sums.log_sum;
        for (int64_t column = width; column < whole; column++)
            scores_p[column] = scores_q[column] = 0.0f; /* -inf minus -inf is not a number */
        lanes from_p = {0}, from_q = {0};
        for (int64_t first = 0; first < width; first += LANES) {
            lanes difference = load(scores_p + first) - load(scores_q + first) - log_ratio; /* log P - log Q */
            lanes p_lanes = load(p + first) * share_p, q_lanes = load(q + first) * share_q;
            from_p += p_lanes * difference;
            from_q += q_lanes * difference;
            store(scores_p + first, difference);
            store(p + first, p_lanes);
            store(q + first, q_lanes);
        }
        float divergence_p = sum_of_lanes(from_p), divergence_q = sum_of_lanes(from_q); /* KL(P || Q), -KL(Q || P) */
        objectives[row] = p_sums.log_sum + q_sums.log_sum - p_sums.label_score - q_sums.label_score +
                          factor * (divergence_p - divergence_q);
        likelihoods[row] = 0.5f * (p_sums.log_sum + q_sums.log_sum - p_sums.true_score - q_sums.true_score);
        for (int64_t first = 0; first < width; first += LANES) {
            lanes difference = load(scores_p + first), p_lanes = load(p + first), q_lanes = load(q + first);
            lanes between = (p_lanes - q_lanes) * factor;
            store(p + first, p_lanes * ((difference - divergence_p) * factor + 1.0f) + between);
            store(q + first, q_lanes * ((divergence_q - difference) * factor + 1.0f) - between);
        }
        write_gradient(&all_first, row, ids[row], &labels, p, bias_gradient);
        write_gradient(&all_second, row, ids[row], &labels, q, bias_gradient);
    }
}
