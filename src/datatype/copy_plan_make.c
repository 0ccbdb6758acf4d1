/* Makes plans: decomposes one item of both sides into pieces and short pieces into steps. The steps
 * form rows or, if there are many, lists. Each word is moved once, and no byte outside the pieces
 * is written. The two words of a piece of odd length may overlap. */
#include "datatype/copy_plan.h"

#include "datatype/copy_plan_pass.h"

#include <stdlib.h>

enum {
    CHUNK_ITEMS_LEAST = 4,
    CHUNK_BYTES = 32768, /* of memory that each pass covers, so it stays in the L1 cache */
    SHORT_WORDS = 8,     /* longer pieces are moved individually */
};

struct draft_step {
    enum oriel_step kind;
    unsigned bytes; /* size of a word; in rows of single words it may vary */
    struct oriel_step_at at;
};

/* One decomposed item: short pieces as steps, the others unchanged. */
struct draft {
    unsigned word_bytes;       /* 1 if words have several lengths */
    bool exceeds_list_offsets; /* offsets are too large for lists */
    unsigned pieces;
    unsigned steps;
    unsigned of_kind[ORIEL_STEP_KINDS];
    struct oriel_pair_piece *piece;
    struct draft_step *step;
};

static bool is_short(const struct oriel_pair_piece *piece, unsigned word_bytes)
{
    return word_bytes == 1
               ? piece->len_bytes < 16
               : piece->len_bytes % word_bytes == 0 && piece->len_bytes <= SHORT_WORDS * word_bytes;
}

static void add_step(struct draft *draft, enum oriel_step kind, unsigned bytes,
                     struct oriel_step_at at)
{
    draft->step[draft->steps++] = (struct draft_step){kind, bytes, at};
    draft->of_kind[kind]++;
}

static void add_single(struct draft *draft, unsigned bytes, int64_t to_bytes, int64_t from_bytes)
{
    add_step(draft, ORIEL_STEP_SINGLE, bytes,
             (struct oriel_step_at){{to_bytes, to_bytes}, {from_bytes, from_bytes}});
}

/* A piece of less than 16 bytes: one word, which may have 3 bytes, and another one up to the end.
 * They overlap if no word has the length of the rest. */
static void add_odd(struct draft *draft, const struct oriel_pair_piece *piece)
{
    const unsigned len_bytes = (unsigned)piece->len_bytes;
    const unsigned head = len_bytes >= 8 ? 8 : len_bytes >= 4 ? 4 : len_bytes;
    const unsigned rest = len_bytes - head;
    const unsigned tail = rest > 4 ? 8 : rest > 2 ? 4 : rest;
    add_single(draft, head, piece->to_bytes, piece->from_bytes);
    if (rest > 0)
        add_single(draft, tail, piece->to_bytes + len_bytes - tail,
                   piece->from_bytes + len_bytes - tail);
}

/* Two words that are consecutive in the type map make one step if they are adjacent on at least one
 * side. */
static void add_words(struct draft *draft, const struct oriel_pair_piece *piece,
                      struct oriel_pair_piece *last)
{
    const int64_t word_bytes = draft->word_bytes;
    for (int64_t done = 0; done < (int64_t)piece->len_bytes; done += word_bytes) {
        const struct oriel_pair_piece word = {piece->to_bytes + done, piece->from_bytes + done, 1};
        const bool adjacent_to = word.to_bytes == last->to_bytes + word_bytes;
        const bool adjacent_from = word.from_bytes == last->from_bytes + word_bytes;
        const struct oriel_step_at at = {
            {last->to_bytes, adjacent_to ? last->to_bytes : word.to_bytes},
            {last->from_bytes, adjacent_from ? last->from_bytes : word.from_bytes}};
        if (last->len_bytes == 0) {
            *last = word;
        } else if (adjacent_to || adjacent_from) {
            add_step(draft,
                     adjacent_to && adjacent_from ? ORIEL_STEP_BOTH
                     : adjacent_to                ? ORIEL_STEP_GATHER
                                                  : ORIEL_STEP_SCATTER,
                     draft->word_bytes, at);
            last->len_bytes = 0;
        } else {
            add_single(draft, draft->word_bytes, last->to_bytes, last->from_bytes);
            *last = word;
        }
    }
}

/* Chooses words of 8 bytes, or of 4, such that all short pieces consist of them. If some have odd
 * lengths and the pieces are few, words have several lengths. */
static void choose_words(struct draft *draft)
{
    bool fours = false, odd = false;
    for (unsigned i = 0; i < draft->pieces; i++) {
        fours = fours || (draft->piece[i].len_bytes % 8 != 0 && is_short(&draft->piece[i], 4));
        odd = odd || (draft->piece[i].len_bytes % 4 != 0 && is_short(&draft->piece[i], 1));
    }
    draft->word_bytes = odd && draft->pieces <= ORIEL_PLAN_ROWS ? 1 : fours ? 4 : 8;
}

/* Lists have 32-bit offsets, so they use little of the L1 cache. */
static bool fits_list_offsets(const struct oriel_pair_piece *piece)
{
    const int64_t most = INT32_MAX - 64, low = INT32_MIN;
    return piece->to_bytes >= low && piece->to_bytes <= most && piece->from_bytes >= low &&
           piece->from_bytes <= most && piece->len_bytes <= INT32_MAX;
}

static bool draft_make(struct draft *draft, const struct oriel_part *to,
                       const struct oriel_part *from)
{
    const struct oriel_part first_to = oriel_part_one(to, 0);
    const struct oriel_part first_from = oriel_part_one(from, 0);
    const unsigned most = (unsigned)(to->node->runs + from->node->runs);
    struct oriel_pair_piece last = {0, 0, 0};
    *draft = (struct draft){.piece = malloc(most * sizeof *draft->piece)};
    if (draft->piece != NULL)
        draft->pieces = oriel_pair_pieces(&first_to, &first_from, draft->piece, most);
    choose_words(draft);
    draft->step = malloc((draft->pieces + 1) * SHORT_WORDS * sizeof *draft->step);
    if (draft->pieces == 0 || draft->step == NULL)
        return false;
    unsigned remaining = 0;
    for (unsigned i = 0; i < draft->pieces; i++) {
        draft->exceeds_list_offsets =
            draft->exceeds_list_offsets || !fits_list_offsets(&draft->piece[i]);
        if (!is_short(&draft->piece[i], draft->word_bytes))
            draft->piece[remaining++] = draft->piece[i];
        else if (draft->word_bytes == 1)
            add_odd(draft, &draft->piece[i]);
        else
            add_words(draft, &draft->piece[i], &last);
    }
    if (last.len_bytes > 0)
        add_single(draft, draft->word_bytes, last.to_bytes, last.from_bytes);
    draft->pieces = remaining;
    return true;
}

static struct oriel_step_at offsets_relative(const struct oriel_step_at *at,
                                             const struct oriel_step_at *first)
{
    return (struct oriel_step_at){{at->to[0] - first->to[0], at->to[1] - first->to[0]},
                                  {at->from[0] - first->from[0], at->from[1] - first->from[0]}};
}

static void add_row(struct oriel_plan *plan, const struct draft *draft,
                    const struct draft_step *step, unsigned count)
{
    struct pass *pass = &plan->passes[plan->count++];
    enum oriel_step kinds[ORIEL_ROW_STEPS] = {ORIEL_STEP_NONE, ORIEL_STEP_NONE, ORIEL_STEP_NONE};
    unsigned bytes[ORIEL_ROW_STEPS] = {0, 0, 0};
    *pass =
        (struct pass){.form = FORM_ROW, .to_bytes = step->at.to[0], .from_bytes = step->at.from[0]};
    for (unsigned i = 0; i < count; i++) {
        kinds[i] = step[i].kind;
        bytes[i] = step[i].bytes;
        pass->at[i] = offsets_relative(&step[i].at, &step->at);
    }
    pass->loop.row = draft->word_bytes == 1 ? oriel_words_loop_of(bytes)
                                            : oriel_row_loop_of(draft->word_bytes, kinds);
}

/* True if steps i and i + 1 gather four 4-byte words, every second one of the source. The word size
 * needs no test: 8-byte words at these distances are adjacent and need no gather. */
static bool gathers_every_second(const struct draft *draft, unsigned i)
{
    const struct draft_step *step = &draft->step[i];
    return i + 1 < draft->steps && step[0].kind == ORIEL_STEP_GATHER &&
           step[1].kind == ORIEL_STEP_GATHER && step[1].at.to[0] == step[0].at.to[0] + 8 &&
           step[0].at.from[1] == step[0].at.from[0] + 8 &&
           step[1].at.from[0] == step[0].at.from[0] + 16 &&
           step[1].at.from[1] == step[0].at.from[0] + 24;
}

/* Makes separate rows of such steps; the other steps stay. */
static void add_every_second_rows(struct oriel_plan *plan, struct draft *draft)
{
    unsigned left = 0;
    for (unsigned i = 0; i < draft->steps; i++) {
        if (gathers_every_second(draft, i)) {
            plan->passes[plan->count++] = (struct pass){.form = FORM_ROW,
                                                        .to_bytes = draft->step[i].at.to[0],
                                                        .from_bytes = draft->step[i].at.from[0],
                                                        .loop.row = oriel_row_every_second};
            i++;
        } else {
            draft->step[left++] = draft->step[i];
        }
    }
    draft->steps = left;
}

/* Makes rows of equal length, so one row stores the whole of a cache line. */
static void add_rows(struct oriel_plan *plan, struct draft *draft)
{
    add_every_second_rows(plan, draft);
    const unsigned rows = (draft->steps + ORIEL_ROW_STEPS - 1) / ORIEL_ROW_STEPS;
    unsigned done = 0;
    for (unsigned i = 0; i < rows; i++) {
        const unsigned count = (draft->steps - done + rows - i - 1) / (rows - i);
        add_row(plan, draft, &draft->step[done], count);
        done += count;
    }
    for (unsigned i = 0; i < draft->pieces; i++)
        plan->passes[plan->count++] = (struct pass){.form = FORM_RUNS,
                                                    .count = draft->piece[i].len_bytes,
                                                    .to_bytes = draft->piece[i].to_bytes,
                                                    .from_bytes = draft->piece[i].from_bytes};
}

/* True if the gather or scatter steps have equal strides on the side where their words are not
 * adjacent. pass receives the strides and the first offset. */
static bool is_even(struct pass *pass, const struct draft *draft, enum oriel_step kind)
{
    int64_t first = 0, last = 0, stride_bytes = 0, second_bytes = 0;
    uint64_t steps_seen = 0;
    if (kind != ORIEL_STEP_GATHER && kind != ORIEL_STEP_SCATTER)
        return false;
    for (unsigned i = 0; i < draft->steps; i++) {
        const int64_t *at =
            kind == ORIEL_STEP_GATHER ? draft->step[i].at.from : draft->step[i].at.to;
        if (draft->step[i].kind != kind)
            continue;
        if (steps_seen == 0) {
            first = at[0];
            second_bytes = at[1] - at[0];
        } else if (steps_seen == 1) {
            stride_bytes = at[0] - last;
        }
        if (at[1] - at[0] != second_bytes || (steps_seen > 0 && at[0] - last != stride_bytes))
            return false;
        last = at[0];
        steps_seen++;
    }
    pass->even.stride_bytes = stride_bytes;
    pass->even.second_bytes = second_bytes;
    pass->from_bytes = kind == ORIEL_STEP_GATHER ? first : 0;
    pass->to_bytes = kind == ORIEL_STEP_SCATTER ? first : 0;
    return true;
}

static int32_t *add_offsets(int32_t *offsets, enum oriel_step kind, const struct oriel_step_at *at)
{
    *offsets++ = (int32_t)at->to[0];
    if (kind == ORIEL_STEP_SCATTER)
        *offsets++ = (int32_t)at->to[1];
    *offsets++ = (int32_t)at->from[0];
    if (kind == ORIEL_STEP_GATHER)
        *offsets++ = (int32_t)at->from[1];
    return offsets;
}

/* One list for each kind of step, and one for the other pieces. */
static void add_lists(struct oriel_plan *plan, const struct draft *draft, int32_t *offsets)
{
    for (unsigned i = 0; i < ORIEL_STEP_KINDS; i++) {
        const enum oriel_step kind = (enum oriel_step)i;
        if (draft->of_kind[kind] == 0)
            continue;
        struct pass *pass = &plan->passes[plan->count++];
        *pass = (struct pass){.form = FORM_LIST,
                              .count = draft->of_kind[kind],
                              .loop.list = oriel_list_loop_of(draft->word_bytes, kind),
                              .offsets = offsets};
        if (is_even(pass, draft, kind)) {
            pass->form = FORM_EVEN;
            pass->loop.even = oriel_even_loop_of(draft->word_bytes, kind);
        }
        for (unsigned k = 0; k < draft->steps; k++) {
            const struct oriel_step_at *at = &draft->step[k].at;
            if (draft->step[k].kind != kind)
                continue;
            if (pass->form == FORM_EVEN)
                *offsets++ = (int32_t)(kind == ORIEL_STEP_GATHER ? at->to[0] : at->from[0]);
            else
                offsets = add_offsets(offsets, kind, at);
        }
    }
    if (draft->pieces > 0)
        plan->passes[plan->count++] =
            (struct pass){.form = FORM_PIECES, .count = draft->pieces, .offsets = offsets};
    for (unsigned i = 0; i < draft->pieces; i++) {
        *offsets++ = (int32_t)draft->piece[i].to_bytes;
        *offsets++ = (int32_t)draft->piece[i].from_bytes;
        *offsets++ = (int32_t)draft->piece[i].len_bytes;
    }
}

static uint64_t magnitude(int64_t number)
{
    return number < 0 ? -(uint64_t)number : (uint64_t)number;
}

static struct oriel_plan *plan_from_draft(struct draft *draft, const struct oriel_part *to,
                                          const struct oriel_part *from)
{
    const bool rows = draft->word_bytes == 1 || draft->steps / 2 + draft->pieces <= ORIEL_PLAN_ROWS;
    const size_t passes = rows ? draft->steps + draft->pieces : ORIEL_STEP_KINDS + 1;
    const size_t offsets = rows ? 0 : 3 * ((size_t)draft->steps + draft->pieces);
    const size_t bytes =
        sizeof(struct oriel_plan) + passes * sizeof(struct pass) + offsets * sizeof(int32_t);
    struct oriel_plan *plan = !rows && draft->exceeds_list_offsets ? NULL : malloc(bytes);
    if (plan == NULL)
        return NULL;
    *plan = (struct oriel_plan){.to_step = to->stride_bytes, .from_step = from->stride_bytes};
    if (rows)
        add_rows(plan, draft);
    else
        add_lists(plan, draft, (int32_t *)&plan->passes[passes]);
    plan->chunk = CHUNK_ITEMS_LEAST +
                  CHUNK_BYTES / (magnitude(to->stride_bytes) + magnitude(from->stride_bytes) + 1);
    return plan;
}

struct oriel_plan *oriel_plan_make(const struct oriel_part *to, const struct oriel_part *from)
{
    struct draft draft;
    struct oriel_plan *plan =
        draft_make(&draft, to, from) ? plan_from_draft(&draft, to, from) : NULL;
    free(draft.step);
    free(draft.piece);
    return plan;
}
