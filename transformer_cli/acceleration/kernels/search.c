/* A whole search of a model in 8 bits, greedy or with a beam: sources go through the encoder, then the decoder writes token after
   token.

   It calls the functions of the other files as prepared_transformer.py, search/single_path.py and search/beam.py do it for each
   operation, so both find the same bits. A small model spends most of its time between two operations if Python calls them one
   by one.

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
void AT_LEVEL(tfm_choose_outputs)(const uint8_t *weights, int64_t fours, const int64_t *outputs, int64_t count, uint8_t *chosen);
void AT_LEVEL(tfm_layer_norm)(const float *x, int64_t rows, int64_t width, const float *gain, const float *bias, float epsilon,
                              float *results);
void AT_LEVEL(tfm_log_softmax)(float *logits, int64_t rows, int64_t width);
void AT_LEVEL(tfm_log_sums)(const float *logits, int64_t rows, int64_t width, float *largest, float *logarithms);
int64_t AT_LEVEL(tfm_best)(const float *logits, int64_t width, float largest, float logarithm, float *value);
void AT_LEVEL(tfm_recurrence)(const float *projected, int64_t rows, int64_t width, float *states, int32_t is_first,
                              float *results);
void AT_LEVEL(tfm_top_k)(const float *numbers, int64_t sentences, int64_t rows, int64_t width, const float *offsets,
                         int64_t k, float *values, int64_t *positions);

#define PANEL 64                /* as in linear.c */
#define TOKENS_TOGETHER 256     /* of the encoder: their numbers stay in the level 2 cache */
#define FIRST_ROOM 32           /* steps of one hypothesis per sentence for which keys and values have room; a full room doubles */
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
    linear output;                      /* to all tokens */
    const int64_t *starts;              /* of a `Shortlist`, as its other numbers; null: there is none */
    const int64_t *translations, *always;
    int64_t num_always, most_of_token;
    int32_t copies;
    const int64_t *next_states; /* of `BytePieces`, (states, tokens); null: all tokens are whole characters */
    const uint8_t *is_allowed;  /* (states, limits, tokens) */
    int64_t num_limits;
    const uint8_t *is_unwanted; /* (sentences): those that end without a translation, filled by `ask`; null: none */
    int32_t (*ask)(void);       /* 0: go on; else the search stops; null: nobody is asked */
    int64_t beam, num_best;     /* hypotheses of a step, 1: the search is greedy; translations of a sentence, at most `beam` */
    int64_t ngram;              /* no n-gram of this size comes twice; 0: each may */
    int64_t longest;
    const float *penalties; /* divisors of log-probabilities, for lengths from 0 to `longest` */
    int64_t *ids;           /* (sentences, num_best, longest) */
    int64_t *lengths;       /* (sentences, num_best), of the translations, best first; 0: there are fewer */
    float *scores;          /* (sentences, num_best): log-probability / penalty */
} search;

/* What the rows of a pass need: of the encoder one for each token, of the decoder one for each open hypothesis. */
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
    int32_t *row_lists; /* the list of each row */
} lists;

/* The keys and values of all hypotheses at all steps in one layer, (room, 2 groups head_width), in the order of their computation; or
   the cells of an SSRU, (rows, width), and where those of the next step are gathered. */
typedef struct {
    float *numbers, *next;
    int64_t room;
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
                                keys + of->groups * of->head_width, stride, read->positions, read->stride, read->row_lists,
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
                read->row_lists[row] = (int32_t)list;
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

/* The open hypotheses of a step: rows, one after the other those of a sentence, in the order of their slots in the beam. */
typedef struct {
    int64_t count;
    int32_t *sentences; /* of each row; also the lists of the sources */
    int32_t *slots;
    int32_t *parents;   /* the rows of the step before which they continue */
    int64_t *newest;    /* the last token of each row */
    int64_t *states;    /* of each row, see `BytePieces` */
    float *totals;      /* log-probabilities */
} hypotheses;

/* A token of the beam, and the slot of the step before to which it was appended. */
typedef struct {
    int32_t token, parent;
} link;

/* A finished hypothesis, by its last token. */
typedef struct {
    float score;
    int32_t step, slot;
} finished;

/* What a search knows of its sentences. */
typedef struct {
    int64_t step, written_positions;
    hypotheses open, next;
    lists sources;           /* of sentences */
    lists targets;           /* of rows */
    int32_t *next_positions; /* where the lists of the targets of the next step are gathered */
    float **memories;        /* of each layer: keys and values of all sources */
    target_memory *written;  /* of each layer */
    link *links;             /* (longest, sentences, beam) */
    finished *best;          /* (sentences, beam), best first */
    int64_t *num_finished;   /* of each sentence */
    float *values;           /* (beam), of the continuations of one sentence, and their positions */
    int64_t *places;
    int64_t *history;        /* (longest), the tokens of one row */
    float *largest;          /* of each row, see `tfm_log_sums`; only greedy search */
    float *logarithms;
} progress;

/* Attention of the newest position to its target so far, or a step of an SSRU; the result is in at->found. */
static int32_t read_target(const transformer *of, const layer *here, const workspace *at, const float *x, const search *what,
                           const progress *now, target_memory *written) {
    int64_t rows = now->open.count;
    if (multiply(&here->own, x, rows, at->projected))
        return NO_MEMORY;
    if (here->is_recurrent) {
        AT_LEVEL(tfm_recurrence)(at->projected, rows, of->width, written->numbers, now->step == 0, at->found);
        return DONE;
    }
    int64_t queries = of->heads * of->head_width, size = 2 * of->groups * of->head_width;
    int64_t first = now->written_positions, room = written->room ? written->room : FIRST_ROOM * what->sentences;
    while (room < first + rows)
        room *= 2;
    if (room > written->room) {
        float *larger = realloc(written->numbers, (size_t)(room * size) * sizeof(float));
        if (!larger)
            return NO_MEMORY;
        written->numbers = larger, written->room = room;
    }
    for (int64_t row = 0; row < rows; row++)
        memcpy(written->numbers + (first + row) * size, at->projected + row * here->own.outputs + queries,
               (size_t)size * sizeof(float));
    return attend(of, at->projected, here->own.outputs, rows, written->numbers, size, &now->targets, at->gathered) ||
           multiply(&here->own_output, at->gathered, rows, at->found);
}

static int32_t decoder_layer(const transformer *of, int64_t number, const workspace *at, const search *what, const progress *now) {
    const layer *here = of->decoder + number;
    const lists sources = {now->sources.positions, now->sources.stride, now->sources.counts, now->open.sentences};
    int64_t rows = now->open.count, stride = here->source_keys_values.outputs;
    const float *x = input_of(of, &here->own_norm, at, rows);
    if (read_target(of, here, at, x, what, now, now->written + number))
        return NO_MEMORY;
    add_residual(of, &here->own_norm, at, rows);
    x = input_of(of, &here->source_norm, at, rows);
    if (multiply(&here->source_queries, x, rows, at->projected) ||
        attend(of, at->projected, here->source_queries.outputs, rows, now->memories[number], stride, &sources, at->gathered) ||
        multiply(&here->source_output, at->gathered, rows, at->found))
        return NO_MEMORY;
    add_residual(of, &here->source_norm, at, rows);
    return feed_forward(of, here, at, rows);
}

/* The layer of the tokens among which the sentences choose together. Elsewhere, a token is its place among them. */
typedef struct {
    linear layer;
    int64_t *listed;    /* the ids of these tokens, sorted; null: all tokens */
    int32_t *places;    /* of each id among them; -1: it is not there */
    uint8_t *is_hidden; /* (sentences, listed tokens): those of other sentences */
    uint8_t *marks;     /* (sentences, tokens): those of each sentence */
    uint8_t *weights;   /* of `layer`, as the next two */
    float *scales, *bias;
} output;

static int64_t id_at(const output *out, int64_t place) { return out->listed ? out->listed[place] : place; }

static int64_t place_of(const output *out, int64_t id) { return out->listed ? out->places[id] : id; }

static void mark_tokens(const search *what, const int64_t *source_ids, int64_t length, uint8_t *marks) {
    memset(marks, 0, (size_t)what->output.outputs);
    for (int64_t number = 0; number < what->num_always; number++)
        marks[what->always[number]] = 1;
    marks[what->first_id] = marks[what->end_id] = 1;
    for (int64_t number = 0; number < length; number++) {
        int64_t id = source_ids[number], first = what->starts[id], end = what->starts[id + 1];
        end = end - first > what->most_of_token ? first + what->most_of_token : end;
        for (int64_t place = first; place < end; place++)
            marks[what->translations[place]] = 1;
        if (what->copies)
            marks[id] = 1;
    }
}

/* Choose the outputs of a shortlist, as `Shortlist.restriction` does. */
static void restrict_outputs(const search *what, output *out) {
    out->layer = what->output;
    if (!what->starts)
        return;
    int64_t tokens = what->output.outputs, count = 0;
    const int64_t *source_ids = what->source_ids;
    for (int64_t sentence = 0; sentence < what->sentences; source_ids += what->source_lengths[sentence++])
        mark_tokens(what, source_ids, what->source_lengths[sentence], out->marks + sentence * tokens);
    memcpy(out->is_hidden, out->marks, (size_t)tokens); /* for now, the tokens of any sentence */
    for (int64_t sentence = 1; sentence < what->sentences; sentence++)
        for (int64_t id = 0; id < tokens; id++)
            out->is_hidden[id] |= out->marks[sentence * tokens + id];
    for (int64_t id = 0; id < tokens; id++) {
        out->places[id] = out->is_hidden[id] ? (int32_t)count : -1;
        if (out->is_hidden[id])
            out->listed[count++] = id;
    }
    for (int64_t sentence = 0; sentence < what->sentences; sentence++)
        for (int64_t place = 0; place < count; place++)
            out->is_hidden[sentence * count + place] = !out->marks[sentence * tokens + out->listed[place]];
    for (int64_t place = 0; place < (count + PANEL - 1) / PANEL * PANEL; place++) {
        out->scales[place] = place < count ? what->output.scales[out->listed[place]] : 0.0f;
        out->bias[place] = place < count ? what->output.bias[out->listed[place]] : 0.0f;
    }
    AT_LEVEL(tfm_choose_outputs)(what->output.weights, (what->output.width + 3) / 4, out->listed, count, out->weights);
    out->layer.weights = out->weights, out->layer.scales = out->scales, out->layer.bias = out->bias;
    out->layer.outputs = count;
}

/* Log-probabilities of all tokens behind each row; in greedy search their logits, as most log-probabilities are never read. */
static int32_t score(const transformer *of, const workspace *at, const search *what, const output *out, progress *now,
                     float *scores) {
    int64_t rows = now->open.count, outputs = out->layer.outputs;
    for (int64_t row = 0; row < rows; row++) {
        int64_t id = id_at(out, now->open.newest[row]);
        embed(of, of->target_table, id, what->target_positions, now->step, at->x + row * of->width);
        now->targets.positions[row * now->targets.stride + now->step] = (int32_t)(now->written_positions + row);
        now->targets.counts[row] = (int32_t)now->step + 1;
    }
    for (int64_t number = 0; number < of->decoder_layers; number++)
        if (decoder_layer(of, number, at, what, now))
            return NO_MEMORY;
    now->written_positions += rows;
    normalise(&of->decoder_norm, at->x, rows, of->width, at->x);
    if (multiply(&out->layer, at->x, rows, scores))
        return NO_MEMORY;
    for (int64_t row = 0; out->listed && row < rows; row++) {
        const uint8_t *is_hidden = out->is_hidden + now->open.sentences[row] * outputs;
        float *row_scores = scores + row * outputs;
        for (int64_t place = 0; place < outputs; place++)
            row_scores[place] = is_hidden[place] ? -FLT_MAX / 2 : row_scores[place];
    }
    if (what->beam == 1)
        AT_LEVEL(tfm_log_sums)(scores, rows, outputs, now->largest, now->logarithms);
    else
        AT_LEVEL(tfm_log_softmax)(scores, rows, outputs);
    return DONE;
}

/* Follow the bytes of the newest token of a row. */
static void move_state(const search *what, const output *out, const progress *now, int64_t row) {
    const hypotheses *open = &now->open;
    int64_t state = what->next_states[open->states[row] * what->output.outputs + id_at(out, open->newest[row])];
    open->states[row] = state < 0 ? 0 : state;
}

/* Which tokens `WholeCharacters` allows behind a row. */
static const uint8_t *allowed_behind(const search *what, const progress *now, int64_t row) {
    int64_t limit = what->max_lengths[now->open.sentences[row]] - now->step - 1, last = what->num_limits - 1;
    limit = limit < 0 ? 0 : limit > last ? last : limit;
    return what->is_allowed + (now->open.states[row] * what->num_limits + limit) * what->output.outputs;
}

static void ban_broken_characters(const search *what, const output *out, const progress *now, int64_t row, float *scores) {
    const uint8_t *is_allowed = allowed_behind(what, now, row);
    int64_t tokens = what->output.outputs;
    if (out->listed)
        for (int64_t place = 0; place < out->layer.outputs; place++)
            scores[place] = is_allowed[out->listed[place]] ? scores[place] : -INFINITY;
    else
        for (int64_t token = 0; token < tokens; token++)
            scores[token] = is_allowed[token] ? scores[token] : -INFINITY;
}

/* The tokens of a hypothesis up to a step and a slot of it. */
static void follow_links(const search *what, const progress *now, int64_t sentence, int64_t step, int64_t slot, int64_t *ids) {
    for (; step >= 0; step--) {
        const link *here = now->links + (step * what->sentences + sentence) * what->beam + slot;
        ids[step] = here->token, slot = here->parent;
    }
}

/* Ban what `NoRepeatedNgrams` bans: the ends of those n-grams whose other tokens are the newest ones. */
static void ban_repeated_ngrams(const search *what, const progress *now, int64_t row, float *scores) {
    int64_t before = what->ngram - 1, length = now->step;
    if (length <= before)
        return;
    follow_links(what, now, now->open.sentences[row], length - 1, now->open.slots[row], now->history);
    const int64_t *newest = now->history + length - before;
    for (int64_t start = 0; start + before < length; start++)
        if (!memcmp(now->history + start, newest, (size_t)before * sizeof(int64_t)))
            scores[now->history[start + before]] = -INFINITY;
}

static void ban(const search *what, const output *out, const progress *now, float *scores) {
    for (int64_t row = 0; row < now->open.count; row++, scores += out->layer.outputs) {
        int64_t sentence = now->open.sentences[row];
        for (int64_t number = 0; number < what->num_banned; number++) {
            int64_t place = place_of(out, what->banned[number]);
            if (place >= 0)
                scores[place] = -INFINITY;
        }
        if (what->ngram)
            ban_repeated_ngrams(what, now, row, scores);
        if (what->next_states)
            move_state(what, out, now, row);
        if (what->next_states && what->beam > 1)
            ban_broken_characters(what, out, now, row, scores);
        if (what->min_lengths[sentence] > now->step + 1)
            scores[place_of(out, what->end_id)] = -INFINITY;
        if (what->is_unwanted && what->is_unwanted[sentence])
            for (int64_t place = 0; place < out->layer.outputs; place++)
                scores[place] = -INFINITY;
    }
}

/* Remember a finished hypothesis if it is one of the best of its sentence; of equals, the first one comes first. */
static void finish(const search *what, progress *now, int64_t sentence, int64_t slot, float score) {
    finished *best = now->best + sentence * what->beam;
    int64_t known = now->num_finished[sentence], place = known;
    while (place > 0 && score > best[place - 1].score)
        place--;
    if (place == what->beam)
        return;
    known = known < what->beam ? known + 1 : known;
    memmove(best + place + 1, best + place, (size_t)(known - place - 1) * sizeof(finished));
    best[place] = (finished){score, (int32_t)now->step, (int32_t)slot};
    now->num_finished[sentence] = known;
}

/* Append a token to a row; the hypothesis is open, or finished here. */
static void append(const search *what, const output *out, progress *now, int64_t row, int64_t slot, int64_t token, float total) {
    int64_t sentence = now->open.sentences[row];
    now->links[(now->step * what->sentences + sentence) * what->beam + slot] = (link){(int32_t)token, now->open.slots[row]};
    if (what->max_lengths[sentence] <= now->step + 1 || id_at(out, token) == what->end_id) {
        finish(what, now, sentence, slot, total / what->penalties[now->step + 1]);
        return;
    }
    hypotheses *next = &now->next;
    int64_t place = next->count++;
    next->sentences[place] = (int32_t)sentence, next->slots[place] = (int32_t)slot, next->parents[place] = (int32_t)row;
    next->newest[place] = token, next->states[place] = now->open.states[row], next->totals[place] = total;
}

/* The best token behind a row. Bytes are looked at last: the best token rarely breaks a character. */
static int64_t best_token(const search *what, const output *out, const progress *now, int64_t row, float *scores, float *value) {
    int64_t outputs = out->layer.outputs;
    float largest = now->largest[row], logarithm = now->logarithms[row];
    int64_t token = AT_LEVEL(tfm_best)(scores, outputs, largest, logarithm, value);
    if (!what->next_states || allowed_behind(what, now, row)[id_at(out, token)])
        return token;
    ban_broken_characters(what, out, now, row, scores);
    return AT_LEVEL(tfm_best)(scores, outputs, largest, logarithm, value);
}

/* Greedy search: append the best token to each row, if one is possible. */
static void extend_rows(const search *what, const output *out, progress *now, float *scores) {
    for (int64_t row = 0; row < now->open.count; row++) {
        float best;
        int64_t token = best_token(what, out, now, row, scores + row * out->layer.outputs, &best);
        float total = now->open.totals[row] + best;
        if (total > -INFINITY)
            append(what, out, now, row, 0, token, total);
    }
}

/* The number of the best continuations of a sentence, `count` of them, that are in the beam: together with the finished
   hypotheses they are the best ones. */
static int64_t num_in_beam(const search *what, const progress *now, int64_t sentence, int64_t count) {
    const finished *best = now->best + sentence * what->beam;
    int64_t kept = 0, rivals = 0;
    for (; kept < count; kept++) {
        float score = now->values[kept] / what->penalties[now->step + 1];
        while (rivals < now->num_finished[sentence] && best[rivals].score >= score)
            rivals++;
        if (!(score > -INFINITY) || kept + rivals >= what->beam)
            break;
    }
    return kept;
}

/* Beam search: replace the rows of each sentence by their best continuations. The search of a sentence ends if no open hypothesis
   can become one of its best: more tokens never raise a log-probability, and the penalty is largest at the largest length. */
static void extend_beams(const search *what, const output *out, progress *now, const float *scores) {
    int64_t outputs = out->layer.outputs;
    for (int64_t row = 0, end; row < now->open.count; row = end) {
        int64_t sentence = now->open.sentences[row], first = now->next.count;
        for (end = row; end < now->open.count && now->open.sentences[end] == sentence;)
            end++;
        int64_t candidates = (end - row) * outputs, count = candidates < what->beam ? candidates : what->beam;
        AT_LEVEL(tfm_top_k)(scores + row * outputs, 1, end - row, outputs, now->open.totals + row, count, now->values, now->places);
        count = num_in_beam(what, now, sentence, count);
        for (int64_t slot = 0; slot < count; slot++)
            append(what, out, now, row + now->places[slot] / outputs, slot, now->places[slot] % outputs, now->values[slot]);
        if (first == now->next.count || now->num_finished[sentence] < what->num_best)
            continue;
        float possible = now->next.totals[first] / what->penalties[what->max_lengths[sentence]]; /* the first one has the best total */
        if (!(possible > now->best[sentence * what->beam + what->num_best - 1].score))
            now->next.count = first;
    }
}

/* The next hypotheses become the open ones; what was computed for their parents moves with them. */
static void move_on(const transformer *of, progress *now) {
    hypotheses *next = &now->next;
    int is_moved = 0, has_lists = 0;
    for (int64_t row = 0; row < next->count; row++)
        is_moved |= next->parents[row] != row;
    for (int64_t number = 0; is_moved && number < of->decoder_layers; number++) {
        target_memory *written = now->written + number;
        if (!of->decoder[number].is_recurrent) {
            has_lists = 1;
            continue;
        }
        for (int64_t row = 0; row < next->count; row++)
            memcpy(written->next + row * of->width, written->numbers + next->parents[row] * of->width,
                   (size_t)of->width * sizeof(float));
        float *cells = written->numbers;
        written->numbers = written->next, written->next = cells;
    }
    if (has_lists) {
        int64_t stride = now->targets.stride;
        for (int64_t row = 0; row < next->count; row++)
            memcpy(now->next_positions + row * stride, now->targets.positions + next->parents[row] * stride,
                   (size_t)(now->step + 1) * sizeof(int32_t));
        int32_t *positions = now->targets.positions;
        now->targets.positions = now->next_positions, now->next_positions = positions;
    }
    hypotheses before = now->open;
    now->open = now->next, now->next = before;
    now->next.count = 0;
}

static int32_t decode(const transformer *of, const search *what, const output *out, const workspace *at, progress *now,
                      float *scores) {
    for (; now->open.count; now->step++) {
        if (what->ask && now->step % STEPS_BETWEEN_QUESTIONS == 0 && what->ask())
            return STOPPED;
        if (score(of, at, what, out, now, scores))
            return NO_MEMORY;
        ban(what, out, now, scores);
        if (what->beam == 1)
            extend_rows(what, out, now, scores);
        else
            extend_beams(what, out, now, scores);
        move_on(of, now);
    }
    return DONE;
}

/* Write down the best translations of each sentence. */
static void give_results(const search *what, const output *out, const progress *now) {
    for (int64_t sentence = 0, place = 0; sentence < what->sentences; sentence++)
        for (int64_t number = 0; number < what->num_best; number++, place++) {
            const finished *one = now->best + sentence * what->beam + number;
            int is_there = number < now->num_finished[sentence];
            what->lengths[place] = is_there ? one->step + 1 : 0;
            what->scores[place] = is_there ? one->score : -INFINITY;
            if (!is_there)
                continue;
            int64_t *ids = what->ids + place * what->longest;
            follow_links(what, now, sentence, one->step, one->slot, ids);
            for (int64_t step = 0; step <= one->step; step++)
                ids[step] = id_at(out, ids[step]);
        }
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

static void take_hypotheses(memory *from, int64_t rows, hypotheses *taken) {
    *taken = (hypotheses){0};
    taken->sentences = take(from, rows, sizeof(int32_t));
    taken->slots = take(from, rows, sizeof(int32_t));
    taken->parents = take(from, rows, sizeof(int32_t));
    taken->newest = take(from, rows, sizeof(int64_t));
    taken->states = take(from, rows, sizeof(int64_t));
    taken->totals = take(from, rows, sizeof(float));
}

/* The parts of all that a search needs but for keys and values; without memory, only its size is computed. */
static void divide(memory *from, const transformer *of, const search *what, int64_t tokens, int64_t longest_source, workspace *at,
                   lists *encoded_lists, output *out, progress *now, float **encoded, float **scores) {
    int64_t rows = longest_source > TOKENS_TOGETHER ? longest_source : TOKENS_TOGETHER, sentences = what->sentences;
    int64_t most = sentences * what->beam; /* hypotheses */
    rows = tokens < rows ? tokens : rows;
    rows = most > rows ? most : rows;
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
    *scores = take(from, most * what->output.outputs, sizeof(float));
    take_hypotheses(from, most, &now->open);
    take_hypotheses(from, most, &now->next);
    now->sources = (lists){take(from, most_listed, sizeof(int32_t)), longest_source, take(from, sentences, sizeof(int32_t)), 0};
    now->targets = (lists){take(from, most * what->longest, sizeof(int32_t)), what->longest, take(from, most, sizeof(int32_t)),
                           take(from, most, sizeof(int32_t))};
    now->next_positions = take(from, most * what->longest, sizeof(int32_t));
    now->links = take(from, what->longest * most, sizeof(link));
    now->best = take(from, most, sizeof(finished));
    now->num_finished = take(from, sentences, sizeof(int64_t));
    now->values = take(from, what->beam, sizeof(float));
    now->places = take(from, what->beam, sizeof(int64_t));
    now->history = take(from, what->longest, sizeof(int64_t));
    now->largest = take(from, most, sizeof(float));
    now->logarithms = take(from, most, sizeof(float));
    if (what->starts) {
        int64_t tokens = what->output.outputs, padded = (tokens + PANEL - 1) / PANEL * PANEL;
        out->listed = take(from, tokens, sizeof(int64_t));
        out->places = take(from, tokens, sizeof(int32_t));
        out->is_hidden = take(from, sentences * tokens, 1);
        out->marks = take(from, sentences * tokens, 1);
        out->weights = take(from, padded * ((what->output.width + 3) / 4 * 4), 1);
        out->scales = take(from, padded, sizeof(float));
        out->bias = take(from, padded, sizeof(float));
    }
    now->memories = take(from, of->decoder_layers, sizeof(float *));
    now->written = take(from, of->decoder_layers, sizeof(target_memory));
    for (int64_t number = 0; number < of->decoder_layers; number++) {
        float *keys = take(from, tokens * 2 * of->groups * of->head_width, sizeof(float)), *cells = 0, *next = 0;
        if (of->decoder[number].is_recurrent)
            cells = take(from, most * of->width, sizeof(float)), next = take(from, most * of->width, sizeof(float));
        if (from->start)
            now->memories[number] = keys, now->written[number] = (target_memory){cells, next, 0};
    }
}

/* Nothing is written yet, and each sentence has a row, if its translation may have a token. */
static void begin(const search *what, const output *out, progress *now) {
    now->step = now->written_positions = 0;
    hypotheses *open = &now->open;
    for (int64_t sentence = 0, token = 0; sentence < what->sentences; sentence++) {
        int64_t length = what->source_lengths[sentence];
        now->sources.counts[sentence] = (int32_t)length;
        for (int64_t number = 0; number < length; number++, token++)
            now->sources.positions[sentence * now->sources.stride + number] = (int32_t)token;
        now->num_finished[sentence] = 0;
        if (what->max_lengths[sentence] < 1)
            continue;
        int64_t row = open->count++;
        open->sentences[row] = (int32_t)sentence, open->slots[row] = 0;
        open->newest[row] = place_of(out, what->first_id), open->states[row] = BETWEEN_CHARACTERS, open->totals[row] = 0.0f;
    }
    for (int64_t row = 0; row < what->sentences * what->beam; row++)
        now->targets.row_lists[row] = (int32_t)row;
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
    output out = {0};
    progress now;
    float *encoded, *scores;
    memory from = {0, 0};
    divide(&from, of, what, tokens, longest, &at, &encoded_lists, &out, &now, &encoded, &scores);
    from.start = aligned_alloc(64, from.size + 64), from.size = 0;
    if (!from.start)
        return NO_MEMORY;
    divide(&from, of, what, tokens, longest, &at, &encoded_lists, &out, &now, &encoded, &scores);
    restrict_outputs(what, &out);
    begin(what, &out, &now);
    int32_t code = encode(of, what, &at, &encoded_lists, encoded);
    for (int64_t number = 0; !code && number < of->decoder_layers; number++)
        code = multiply(&of->decoder[number].source_keys_values, encoded, tokens, now.memories[number]);
    if (!code)
        code = decode(of, what, &out, &at, &now, scores);
    if (!code)
        give_results(what, &out, &now);
    for (int64_t number = 0; number < of->decoder_layers; number++)
        if (!of->decoder[number].is_recurrent)
            free(now.written[number].numbers);
    free(from.start);
    return code;
}
