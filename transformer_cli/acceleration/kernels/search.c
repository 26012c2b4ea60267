/* A whole greedy search of a model in 8 bits: sources go through the encoder, then the decoder writes token after token.

   It calls the functions of the other files as prepared_transformer.py and search/single_path.py do it for each operation, so both
   find the same bits. A small model spends most of its time between two operations if Python calls them one by one.

   Compiled without contraction of a product and a sum, as linear.c. */

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "lanes.h"

int32_t AT_LEVEL(tfm_linear)(const float *inputs, int64_t rows, int64_t width, const uint8_t *weights, const float *scales,
                             const float *bias, int64_t outputs, int64_t first_panel, int64_t end_panel, int32_t has_relu,
                             float *results);
int32_t AT_LEVEL(tfm_attend)(const float *queries, int64_t query_stride, int64_t rows, int64_t groups, int64_t group_size,
                             int64_t width, const float *keys, int64_t key_stride, const float *values,
                             int64_t value_stride, const int32_t *lists, int64_t list_stride,
                             const int32_t *list_of_row, const int32_t *counts, float *results);
void AT_LEVEL(tfm_layer_norm)(const float *x, int64_t rows, int64_t width, const float *gain, const float *bias, float epsilon,
                              float *results);
void AT_LEVEL(tfm_log_softmax)(float *logits, int64_t rows, int64_t width);
void AT_LEVEL(tfm_recurrence)(const float *projected, int64_t rows, int64_t width, float *states, int32_t is_first,
                              float *results);
void AT_LEVEL(tfm_top_k)(const float *numbers, int64_t sentences, int64_t rows, int64_t width, const float *offsets,
                         int64_t k, float *values, int64_t *positions);

#define PANEL 64                /* as in linear.c */
#define TOKENS_TOGETHER 256     /* of the encoder: their numbers stay in the level 2 cache */
#define FIRST_ROOM 32           /* steps for which the keys and values of targets have room; full ones double */
#define STEPS_BETWEEN_QUESTIONS 4
#define BETWEEN_CHARACTERS 0    /* as in token_ids.py */

enum { DONE = 0, NO_MEMORY = 1, STOPPED = 2 };
enum { PRE = 0, POST = 1, RESIDUAL_OF_NORMED = 2 };

/* The following structures are those of native_search.py, field by field. */

typedef struct {
    const uint8_t *weights; /* packed; null: there is no such layer */
    const float *scales, *bias;
    int64_t width, outputs;
    int32_t has_relu;
} linear;

typedef struct {
    const float *gain, *bias; /* null: the identity */
    float epsilon;
} norm;

typedef struct {
    linear own;        /* queries, keys and values; of an SSRU candidates and gates */
    linear own_output; /* none of an SSRU */
    linear source_queries, source_keys_values, source_output; /* of the decoder */
    linear up, down;
    norm own_norm, source_norm, feed_forward_norm;
    int32_t is_recurrent;
} layer;

typedef struct {
    int64_t width, hidden, heads, groups, head_width;
    int64_t placement;
    float embedding_factor;
    const float *source_table, *target_table;
    norm encoder_norm, decoder_norm;
    int64_t encoder_layers, decoder_layers;
    const layer *encoder, *decoder;
} transformer;

typedef struct {
    int64_t sentences;
    const int64_t *source_ids, *source_lengths;       /* the ids of one source after the other */
    const float *source_positions, *target_positions; /* one row for each position; null: nothing is added */
    const int64_t *max_lengths, *min_lengths;         /* of the translations, [EOS] included */
    int64_t first_id, end_id, num_banned;
    const int64_t *banned;
    linear output;            /* to all tokens, or to those of a shortlist: then all ids but source_ids are places in it */
    const int64_t *listed;    /* the ids of these places; null: all tokens */
    const uint8_t *is_hidden; /* (sentences, outputs); null: nothing is hidden */
    const int64_t *next_states; /* of `BytePieces`, (states, outputs); null: all tokens are whole characters */
    const uint8_t *is_allowed;  /* (states, limits, outputs) */
    int64_t num_limits;
    const uint8_t *is_unwanted; /* (sentences): those that end without a translation, filled by `ask`; null: none */
    int32_t (*ask)(void);       /* 0: go on; else the search stops; null: nobody is asked */
    int64_t longest;
    int64_t *ids;     /* (sentences, longest) */
    int64_t *lengths; /* of the translations; 0: none is possible */
    float *totals;    /* their log-probabilities */
} search;

/* What the rows of a pass need: of the encoder one for each token, of the decoder one for each open sentence. */
typedef struct {
    float *x, *normed, *found; /* (rows, width) */
    float *projected;          /* (rows, (heads + 2 groups) head_width) or (rows, 2 width) */
    float *gathered;           /* (rows, heads head_width) or (rows, width) */
    float *hidden;             /* (rows, hidden) */
} workspace;

/* Positions that rows read. */
typedef struct {
    int32_t *positions; /* (lists, stride) */
    int64_t stride;
    int32_t *counts;    /* of each list */
    int32_t *of_rows;   /* the list of each row */
} lists;

/* The keys and values of the targets of one layer, (steps, sentences, 2 groups head_width), or the cells of an SSRU, (rows, width). */
typedef struct {
    float *numbers;
    int64_t steps;
} target_memory;

static int32_t multiply(const linear *of, const float *x, int64_t rows, float *results) {
    return AT_LEVEL(tfm_linear)(x, rows, of->width, of->weights, of->scales, of->bias, of->outputs, 0,
                                (of->outputs + PANEL - 1) / PANEL, of->has_relu, results);
}

static void normalise(const norm *of, const float *x, int64_t rows, int64_t width, float *results) {
    if (of->gain)
        AT_LEVEL(tfm_layer_norm)(x, rows, width, of->gain, of->bias, of->epsilon, results);
    else if (x != results)
        memcpy(results, x, (size_t)(rows * width) * sizeof(float));
}

static void add(const float *a, const float *b, int64_t count, float *sum) {
    for (int64_t number = 0; number < count; number++)
        sum[number] = a[number] + b[number];
}

/* What a sub-layer reads. */
static const float *input_of(const transformer *of, const norm *before, const workspace *at, int64_t rows) {
    if (of->placement != PRE)
        return at->x;
    normalise(before, at->x, rows, of->width, at->normed);
    return at->normed;
}

/* The residual connection around a sub-layer, whose result is in at->found. */
static void add_residual(const transformer *of, const norm *after, const workspace *at, int64_t rows) {
    const float *added = at->found;
    if (of->placement == RESIDUAL_OF_NORMED) {
        normalise(after, at->found, rows, of->width, at->normed);
        added = at->normed;
    }
    float *sum = of->placement == POST ? at->found : at->x;
    add(added, at->x, rows * of->width, sum);
    if (of->placement == POST)
        normalise(after, sum, rows, of->width, at->x);
}

static int32_t feed_forward(const transformer *of, const layer *here, const workspace *at, int64_t rows) {
    const float *x = input_of(of, &here->feed_forward_norm, at, rows);
    if (multiply(&here->up, x, rows, at->hidden) || multiply(&here->down, at->hidden, rows, at->found))
        return NO_MEMORY;
    add_residual(of, &here->feed_forward_norm, at, rows);
    return DONE;
}

/* Attention of rows to keys and values that lie in one buffer, first the keys of a position, then its values. */
static int32_t attend(const transformer *of, const float *queries, int64_t query_stride, int64_t rows, const float *keys,
                      int64_t stride, const lists *read, float *results) {
    return AT_LEVEL(tfm_attend)(queries, query_stride, rows, of->groups, of->heads / of->groups, of->head_width, keys, stride,
                                keys + of->groups * of->head_width, stride, read->positions, read->stride, read->of_rows,
                                read->counts, results);
}

static int32_t encoder_layer(const transformer *of, const layer *here, const workspace *at, int64_t rows, const lists *read) {
    const float *x = input_of(of, &here->own_norm, at, rows);
    int64_t stride = here->own.outputs, queries = of->heads * of->head_width;
    if (multiply(&here->own, x, rows, at->projected) ||
        attend(of, at->projected, stride, rows, at->projected + queries, stride, read, at->gathered) ||
        multiply(&here->own_output, at->gathered, rows, at->found))
        return NO_MEMORY;
    add_residual(of, &here->own_norm, at, rows);
    return feed_forward(of, here, at, rows);
}

/* The embedding of a token at a position. */
static void embed(const transformer *of, const float *table, int64_t id, const float *positions, int64_t position, float *x) {
    const float *row = table + id * of->width, *added = positions ? positions + position * of->width : 0;
    for (int64_t column = 0; column < of->width; column++) {
        float scaled = row[column] * of->embedding_factor;
        x[column] = added ? scaled + added[column] : scaled;
    }
}

/* The outputs of the encoder for all sources, one row for each token. */
static int32_t encode(const transformer *of, const search *what, const workspace *at, lists *read, float *encoded) {
    for (int64_t first = 0, end, start = 0; first < what->sentences; first = end) {
        int64_t rows = 0, longest = 0;
        for (end = first; end < what->sentences && (end == first || rows + what->source_lengths[end] <= TOKENS_TOGETHER); end++) {
            rows += what->source_lengths[end];
            longest = what->source_lengths[end] > longest ? what->source_lengths[end] : longest;
        }
        read->stride = longest;
        for (int64_t sentence = first, row = 0; sentence < end; sentence++) {
            int64_t length = what->source_lengths[sentence], list = sentence - first;
            read->counts[list] = (int32_t)length;
            for (int64_t token = 0; token < length; token++, row++) {
                read->positions[list * longest + token] = (int32_t)row;
                read->of_rows[row] = (int32_t)list;
                embed(of, of->source_table, what->source_ids[start + row], what->source_positions, token, at->x + row * of->width);
            }
        }
        for (int64_t number = 0; number < of->encoder_layers; number++)
            if (encoder_layer(of, of->encoder + number, at, rows, read))
                return NO_MEMORY;
        normalise(&of->encoder_norm, at->x, rows, of->width, encoded + start * of->width);
        start += rows;
    }
    return DONE;
}

/* What a search knows of its sentences; a row belongs to a sentence that is open. */
typedef struct {
    int64_t rows, step;
    int32_t *sentences;     /* of each row; also the lists of the sources */
    int64_t *newest;        /* the last token of each row */
    int64_t *states;        /* of each row, see `BytePieces` */
    lists sources, targets; /* lists of sentences */
    float **memories;       /* of each layer: keys and values of all sources */
    target_memory *written; /* of each layer */
} progress;

/* Attention of the newest position to its target so far, or a step of an SSRU; the result is in at->found. */
static int32_t read_target(const transformer *of, const layer *here, const workspace *at, const float *x, const search *what,
                           const progress *now, target_memory *written) {
    int64_t rows = now->rows;
    if (multiply(&here->own, x, rows, at->projected))
        return NO_MEMORY;
    if (here->is_recurrent) {
        AT_LEVEL(tfm_recurrence)(at->projected, rows, of->width, written->numbers, now->step == 0, at->found);
        return DONE;
    }
    int64_t queries = of->heads * of->head_width, size = 2 * of->groups * of->head_width;
    if (now->step == written->steps) {
        int64_t steps = written->steps ? 2 * written->steps : FIRST_ROOM;
        float *larger = realloc(written->numbers, (size_t)(steps * what->sentences * size) * sizeof(float));
        if (!larger)
            return NO_MEMORY;
        written->numbers = larger, written->steps = steps;
    }
    for (int64_t row = 0; row < rows; row++)
        memcpy(written->numbers + (now->step * what->sentences + now->sentences[row]) * size,
               at->projected + row * here->own.outputs + queries, (size_t)size * sizeof(float));
    return attend(of, at->projected, here->own.outputs, rows, written->numbers, size, &now->targets, at->gathered) ||
           multiply(&here->own_output, at->gathered, rows, at->found);
}

static int32_t decoder_layer(const transformer *of, int64_t number, const workspace *at, const search *what, const progress *now) {
    const layer *here = of->decoder + number;
    int64_t rows = now->rows, stride = here->source_keys_values.outputs;
    const float *x = input_of(of, &here->own_norm, at, rows);
    if (read_target(of, here, at, x, what, now, now->written + number))
        return NO_MEMORY;
    add_residual(of, &here->own_norm, at, rows);
    x = input_of(of, &here->source_norm, at, rows);
    if (multiply(&here->source_queries, x, rows, at->projected) ||
        attend(of, at->projected, here->source_queries.outputs, rows, now->memories[number], stride, &now->sources, at->gathered) ||
        multiply(&here->source_output, at->gathered, rows, at->found))
        return NO_MEMORY;
    add_residual(of, &here->source_norm, at, rows);
    return feed_forward(of, here, at, rows);
}

/* Log-probabilities of all tokens behind each row. */
static int32_t score(const transformer *of, const workspace *at, const search *what, const progress *now, float *scores) {
    int64_t rows = now->rows, outputs = what->output.outputs;
    for (int64_t row = 0; row < rows; row++) {
        int64_t id = what->listed ? what->listed[now->newest[row]] : now->newest[row];
        embed(of, of->target_table, id, what->target_positions, now->step, at->x + row * of->width);
        now->targets.positions[now->sentences[row] * now->targets.stride + now->step] =
            (int32_t)(now->step * what->sentences + now->sentences[row]);
        now->targets.counts[now->sentences[row]] = (int32_t)now->step + 1;
    }
    for (int64_t number = 0; number < of->decoder_layers; number++)
        if (decoder_layer(of, number, at, what, now))
            return NO_MEMORY;
    normalise(&of->decoder_norm, at->x, rows, of->width, at->x);
    if (multiply(&what->output, at->x, rows, scores))
        return NO_MEMORY;
    for (int64_t row = 0; what->is_hidden && row < rows; row++) {
        const uint8_t *is_hidden = what->is_hidden + now->sentences[row] * outputs;
        for (int64_t output = 0; output < outputs; output++)
            if (is_hidden[output])
                scores[row * outputs + output] = -FLT_MAX / 2;
    }
    AT_LEVEL(tfm_log_softmax)(scores, rows, outputs);
    return DONE;
}

/* Ban what `WholeCharacters` bans. */
static void ban_broken_characters(const search *what, const progress *now, int64_t row, float *scores) {
    int64_t outputs = what->output.outputs, state = what->next_states[now->states[row] * outputs + now->newest[row]];
    state = now->states[row] = state < 0 ? 0 : state;
    int64_t limit = what->max_lengths[now->sentences[row]] - now->step - 1, last = what->num_limits - 1;
    limit = limit < 0 ? 0 : limit > last ? last : limit;
    const uint8_t *is_allowed = what->is_allowed + (state * what->num_limits + limit) * outputs;
    for (int64_t output = 0; output < outputs; output++)
        scores[output] = is_allowed[output] ? scores[output] : -INFINITY;
}

static void ban(const search *what, const progress *now, float *scores) {
    for (int64_t row = 0; row < now->rows; row++, scores += what->output.outputs) {
        for (int64_t number = 0; number < what->num_banned; number++)
            scores[what->banned[number]] = -INFINITY;
        if (what->next_states)
            ban_broken_characters(what, now, row, scores);
        if (what->min_lengths[now->sentences[row]] > now->step + 1)
            scores[what->end_id] = -INFINITY;
        if (what->is_unwanted && what->is_unwanted[now->sentences[row]])
            for (int64_t output = 0; output < what->output.outputs; output++)
                scores[output] = -INFINITY;
    }
}

/* Append the best token to each row; rows that end are dropped. */
static void append(const transformer *of, const search *what, progress *now, const float *scores) {
    int64_t kept = 0;
    for (int64_t row = 0; row < now->rows; row++) {
        float best;
        int64_t token, sentence = now->sentences[row];
        AT_LEVEL(tfm_top_k)(scores + row * what->output.outputs, 1, 1, what->output.outputs, 0, 1, &best, &token);
        what->totals[sentence] += best;
        what->ids[sentence * what->longest + now->step] = token;
        what->lengths[sentence] = now->step + 1;
        if (!(best > -INFINITY) || what->max_lengths[sentence] <= now->step + 1 || token == what->end_id)
            continue;
        for (int64_t number = 0; kept != row && number < of->decoder_layers; number++)
            if (of->decoder[number].is_recurrent)
                memcpy(now->written[number].numbers + kept * of->width, now->written[number].numbers + row * of->width,
                       (size_t)of->width * sizeof(float));
        now->sentences[kept] = now->sentences[row];
        now->states[kept] = now->states[row];
        now->newest[kept++] = token;
    }
    now->rows = kept;
}

static int32_t decode(const transformer *of, const search *what, const workspace *at, progress *now, float *scores) {
    for (; now->rows; now->step++) {
        if (what->ask && now->step % STEPS_BETWEEN_QUESTIONS == 0 && what->ask())
            return STOPPED;
        if (score(of, at, what, now, scores))
            return NO_MEMORY;
        ban(what, now, scores);
        append(of, what, now, scores);
    }
    return DONE;
}

/* Takes parts of one piece of memory. */
typedef struct {
    char *start;
    size_t size;
} memory;

static void *take(memory *from, int64_t count, size_t size) {
    void *part = from->start ? from->start + from->size : 0;
    from->size += ((size_t)count * size + 63) / 64 * 64;
    return part;
}

/* The parts of all that a search needs but for keys and values; without memory, only its size is computed. */
static void divide(memory *from, const transformer *of, const search *what, int64_t tokens, int64_t longest_source, workspace *at,
                   lists *encoded_lists, progress *now, float **encoded, float **scores) {
    int64_t rows = longest_source > TOKENS_TOGETHER ? longest_source : TOKENS_TOGETHER, sentences = what->sentences;
    rows = tokens < rows ? tokens : rows;
    rows = sentences > rows ? sentences : rows;
    int64_t heads = of->heads * of->head_width, projected = heads + 2 * of->groups * of->head_width;
    projected = 2 * of->width > projected ? 2 * of->width : projected;
    at->x = take(from, rows * of->width, sizeof(float));
    at->normed = take(from, rows * of->width, sizeof(float));
    at->found = take(from, rows * of->width, sizeof(float));
    at->projected = take(from, rows * projected, sizeof(float));
    at->gathered = take(from, rows * heads, sizeof(float));
    at->hidden = take(from, rows * of->hidden, sizeof(float));
    int64_t most_listed = sentences * longest_source;
    *encoded_lists = (lists){take(from, most_listed, sizeof(int32_t)), 0, take(from, sentences, sizeof(int32_t)),
                             take(from, rows, sizeof(int32_t))};
    *encoded = take(from, tokens * of->width, sizeof(float));
    *scores = take(from, sentences * what->output.outputs, sizeof(float));
    now->sentences = take(from, sentences, sizeof(int32_t));
    now->newest = take(from, sentences, sizeof(int64_t));
    now->states = take(from, sentences, sizeof(int64_t));
    now->sources = (lists){take(from, most_listed, sizeof(int32_t)), longest_source, take(from, sentences, sizeof(int32_t)),
                           now->sentences};
    now->targets = (lists){take(from, sentences * what->longest, sizeof(int32_t)), what->longest,
                           take(from, sentences, sizeof(int32_t)), now->sentences};
    now->memories = take(from, of->decoder_layers, sizeof(float *));
    now->written = take(from, of->decoder_layers, sizeof(target_memory));
    for (int64_t number = 0; number < of->decoder_layers; number++) {
        float *keys = take(from, tokens * 2 * of->groups * of->head_width, sizeof(float)), *cells = 0;
        if (of->decoder[number].is_recurrent)
            cells = take(from, sentences * of->width, sizeof(float));
        if (from->start)
            now->memories[number] = keys, now->written[number] = (target_memory){cells, 0};
    }
}

/* Nothing is written yet, and each sentence has a row, if its translation may have a token. */
static void begin(const search *what, progress *now) {
    now->rows = now->step = 0;
    for (int64_t sentence = 0, token = 0; sentence < what->sentences; sentence++) {
        int64_t length = what->source_lengths[sentence];
        now->sources.counts[sentence] = (int32_t)length;
        for (int64_t number = 0; number < length; number++, token++)
            now->sources.positions[sentence * now->sources.stride + number] = (int32_t)token;
        int is_open = what->max_lengths[sentence] > 0;
        what->lengths[sentence] = 0, what->totals[sentence] = is_open ? 0.0f : -INFINITY;
        now->sentences[now->rows] = (int32_t)sentence;
        now->newest[now->rows] = what->first_id;
        now->states[now->rows] = BETWEEN_CHARACTERS;
        now->rows += is_open;
    }
}

/* Translate sources, each of which has a token at least. Returns DONE, NO_MEMORY or STOPPED. */
int32_t AT_LEVEL(tfm_search)(const transformer *of, const search *what) {
    int64_t tokens = 0, longest = 0;
    for (int64_t sentence = 0; sentence < what->sentences; sentence++) {
        int64_t length = what->source_lengths[sentence];
        tokens += length, longest = length > longest ? length : longest;
    }
    workspace at;
    lists encoded_lists;
    progress now;
    float *encoded, *scores;
    memory from = {0, 0};
    divide(&from, of, what, tokens, longest, &at, &encoded_lists, &now, &encoded, &scores);
    from.start = aligned_alloc(64, from.size + 64), from.size = 0;
    if (!from.start)
        return NO_MEMORY;
    divide(&from, of, what, tokens, longest, &at, &encoded_lists, &now, &encoded, &scores);
    begin(what, &now);
    int32_t code = encode(of, what, &at, &encoded_lists, encoded);
    for (int64_t number = 0; !code && number < of->decoder_layers; number++)
        code = multiply(&of->decoder[number].source_keys_values, encoded, tokens, now.memories[number]);
    if (!code)
        code = decode(of, what, &at, &now, scores);
    for (int64_t number = 0; number < of->decoder_layers; number++)
        if (!of->decoder[number].is_recurrent)
            free(now.written[number].numbers);
    free(from.start);
    return code;
}
