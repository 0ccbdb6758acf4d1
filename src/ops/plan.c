/* Makes, keeps and runs plans.  Kept ones hang in a list at a node that only grows until the node is freed: a plan is complete
 * before the exchange that appends it publishes it (release), and whoever finds it (acquire) only reads, so that threads need
 * no lock; two that make one plan at once both keep theirs.  copy.c calls. */
#include "ops/plan.h"

#include "transport/shared/runs.h"
#include "transport/shared/steps.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    CHUNK_ITEMS_LEAST = 4,
    CHUNK_BYTES = 32768, /* of memory that are gone over for each pass: they stay in the first cache */
    SHORT_WORDS = 8,     /* longer pieces move by themselves */
};

/* What is done for all items of a chunk. */
enum form { FORM_ROW, FORM_RUNS, FORM_LIST, FORM_PIECES };

struct pass {
    enum form form;
    uint64_t count; /* of what is listed; of runs: their bytes */
    int64_t to_bytes;
    int64_t from_bytes;
    union {
        oriel_row_loop *row;
        oriel_list_loop *list;
    } loop;
    struct oriel_step_at at[ORIEL_ROW_STEPS]; /* of a row */
    const int32_t *offsets;                   /* of a list; of pieces: of both sides, and the length */
};

struct oriel_plan {
    struct oriel_memo memo; /* first: the node's list knows it by this */
    struct oriel_plan_key key;
    uint64_t counted, items; /* when it was made; others are in the same proportion */
    int64_t to_step, from_step;
    uint64_t chunk;
    unsigned count;
    struct pass passes[]; /* the offsets lie behind them */
};

/* ---- run ---- */

static void run_pass(const struct pass *pass, char *to, int64_t to_step, const char *from, int64_t from_step, uint64_t items)
{
    to += pass->to_bytes;
    from += pass->from_bytes;
    if (pass->form == FORM_ROW) {
        pass->loop.row(to, to_step, from, from_step, pass->at, items);
    } else if (pass->form == FORM_RUNS) {
        oriel_copy_runs(to, to_step, from, from_step, pass->count, items);
    } else {
        for (; items > 0; items--, to += to_step, from += from_step) {
            const int32_t *piece = pass->offsets;
            if (pass->form == FORM_LIST)
                pass->loop.list(to, from, pass->offsets, pass->count);
            else
                for (uint64_t i = 0; i < pass->count; i++, piece += 3)
                    oriel_move_any(to + piece[0], from + piece[1], (uint32_t)piece[2]);
        }
    }
}

void oriel_plan_run(const struct oriel_plan *plan, char *to, const char *from, uint64_t items)
{
    if (plan->count == 1) {
        run_pass(&plan->passes[0], to, plan->to_step, from, plan->from_step, items);
        return;
    }
    for (uint64_t now; items > 0; items -= now) {
        now = items < plan->chunk ? items : plan->chunk;
        for (unsigned i = 0; i < plan->count; i++)
            run_pass(&plan->passes[i], to, plan->to_step, from, plan->from_step, now);
        if (now < items) {
            to += (int64_t)now * plan->to_step;
            from += (int64_t)now * plan->from_step;
        }
    }
}

/* ---- make ---- */

struct draft_step {
    enum oriel_step kind;
    unsigned bytes; /* of a word; words may have several lengths in rows of single ones */
    struct oriel_step_at at;
};

/* One item taken apart: short pieces as steps, the others as they are. */
struct draft {
    unsigned word_bytes; /* 1: words of several lengths */
    bool far;            /* offsets that lists have no room for */
    unsigned pieces;
    unsigned steps;
    unsigned of_kind[ORIEL_STEP_KINDS];
    struct oriel_pair_piece *piece;
    struct draft_step *step;
};

static bool is_short(const struct oriel_pair_piece *piece, unsigned word_bytes)
{
    return word_bytes == 1 ? piece->len_bytes < 16
                           : piece->len_bytes % word_bytes == 0 && piece->len_bytes <= SHORT_WORDS * word_bytes;
}

static void add_step(struct draft *draft, enum oriel_step kind, unsigned bytes, struct oriel_step_at at)
{
    draft->step[draft->steps++] = (struct draft_step){kind, bytes, at};
    draft->of_kind[kind]++;
}

static void add_single(struct draft *draft, unsigned bytes, int64_t to_bytes, int64_t from_bytes)
{
    add_step(draft, ORIEL_STEP_SINGLE, bytes, (struct oriel_step_at){{to_bytes, to_bytes}, {from_bytes, from_bytes}});
}

/* Less than 16 bytes: a word, and up to the end another one, which overlap where no word has the rest's length. */
static void add_odd(struct draft *draft, const struct oriel_pair_piece *piece)
{
    const unsigned len_bytes = (unsigned)piece->len_bytes;
    const unsigned head = len_bytes >= 8 ? 8 : len_bytes >= 4 ? 4 : len_bytes >= 2 ? 2 : 1;
    const unsigned rest = len_bytes - head;
    const unsigned tail = rest > 4 ? 8 : rest > 2 ? 4 : rest;
    add_single(draft, head, piece->to_bytes, piece->from_bytes);
    if (rest > 0)
        add_single(draft, tail, piece->to_bytes + len_bytes - tail, piece->from_bytes + len_bytes - tail);
}

/* Two words that follow each other in the type map make one step where they are side by side, on one side at least. */
static void add_words(struct draft *draft, const struct oriel_pair_piece *piece, struct oriel_pair_piece *last)
{
    const int64_t word_bytes = draft->word_bytes;
    for (int64_t done = 0; done < (int64_t)piece->len_bytes; done += word_bytes) {
        const struct oriel_pair_piece word = {piece->to_bytes + done, piece->from_bytes + done, 1};
        const bool here = word.to_bytes == last->to_bytes + word_bytes;
        const bool there = word.from_bytes == last->from_bytes + word_bytes;
        const struct oriel_step_at at = {{last->to_bytes, here ? last->to_bytes : word.to_bytes},
                                         {last->from_bytes, there ? last->from_bytes : word.from_bytes}};
        if (last->len_bytes == 0) {
            *last = word;
        } else if (here || there) {
            add_step(draft, here && there ? ORIEL_STEP_BOTH : here ? ORIEL_STEP_GATHER : ORIEL_STEP_SCATTER,
                     draft->word_bytes, at);
            last->len_bytes = 0;
        } else {
            add_single(draft, draft->word_bytes, last->to_bytes, last->from_bytes);
            *last = word;
        }
    }
}

/* Words of 8 bytes, or 4, where all short pieces are made of them. */
static void choose_words(struct draft *draft)
{
    bool fours = false, odd = false;
    for (unsigned i = 0; i < draft->pieces; i++) {
        fours = fours || (draft->piece[i].len_bytes % 8 != 0 && is_short(&draft->piece[i], 4));
        odd = odd || (draft->piece[i].len_bytes % 4 != 0 && is_short(&draft->piece[i], 1));
    }
    draft->word_bytes = odd && draft->pieces <= ORIEL_PLAN_ROWS ? 1 : fours ? 4 : 8;
}

/* Lists have offsets of 32 bits, so that they take little of the first cache. */
static bool is_near(const struct oriel_pair_piece *piece)
{
    const int64_t most = INT32_MAX - 64, low = INT32_MIN;
    return piece->to_bytes >= low && piece->to_bytes <= most && piece->from_bytes >= low && piece->from_bytes <= most &&
           piece->len_bytes <= INT32_MAX;
}

static bool draft_make(struct draft *draft, const struct oriel_part *to, const struct oriel_part *from)
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
    unsigned kept = 0;
    for (unsigned i = 0; i < draft->pieces; i++) {
        draft->far = draft->far || !is_near(&draft->piece[i]);
        if (!is_short(&draft->piece[i], draft->word_bytes))
            draft->piece[kept++] = draft->piece[i];
        else if (draft->word_bytes == 1)
            add_odd(draft, &draft->piece[i]);
        else
            add_words(draft, &draft->piece[i], &last);
    }
    if (last.len_bytes > 0)
        add_single(draft, draft->word_bytes, last.to_bytes, last.from_bytes);
    draft->pieces = kept;
    return true;
}

static struct oriel_step_at relative(const struct oriel_step_at *at, const struct oriel_step_at *first)
{
    return (struct oriel_step_at){{at->to[0] - first->to[0], at->to[1] - first->to[0]},
                                  {at->from[0] - first->from[0], at->from[1] - first->from[0]}};
}

static void add_row(struct oriel_plan *plan, const struct draft *draft, const struct draft_step *step, unsigned count)
{
    struct pass *pass = &plan->passes[plan->count++];
    enum oriel_step kinds[ORIEL_ROW_STEPS] = {ORIEL_STEP_NONE, ORIEL_STEP_NONE, ORIEL_STEP_NONE};
    unsigned bytes[ORIEL_ROW_STEPS] = {0, 0, 0};
    *pass = (struct pass){.form = FORM_ROW, .to_bytes = step->at.to[0], .from_bytes = step->at.from[0]};
    for (unsigned i = 0; i < count; i++) {
        kinds[i] = step[i].kind;
        bytes[i] = step[i].bytes;
        pass->at[i] = relative(&step[i].at, &step->at);
    }
    pass->loop.row = draft->word_bytes == 1 ? oriel_words_loop_of(bytes) : oriel_row_loop_of(draft->word_bytes, kinds);
}

/* Rows as long as each other: what lies in one cache line is stored in a row. */
static void add_rows(struct oriel_plan *plan, const struct draft *draft)
{
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

/* A list for each kind of step, and one of the other pieces. */
static void add_lists(struct oriel_plan *plan, const struct draft *draft, int32_t *offsets)
{
    for (unsigned i = 0; i < ORIEL_STEP_KINDS; i++) {
        const enum oriel_step kind = (enum oriel_step)i;
        if (draft->of_kind[kind] == 0)
            continue;
        plan->passes[plan->count++] = (struct pass){.form = FORM_LIST,
                                                    .count = draft->of_kind[kind],
                                                    .loop.list = oriel_list_loop_of(draft->word_bytes, kind),
                                                    .offsets = offsets};
        for (unsigned k = 0; k < draft->steps; k++)
            if (draft->step[k].kind == kind)
                offsets = add_offsets(offsets, kind, &draft->step[k].at);
    }
    if (draft->pieces > 0)
        plan->passes[plan->count++] = (struct pass){.form = FORM_PIECES, .count = draft->pieces, .offsets = offsets};
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

static struct oriel_plan *plan_of(const struct draft *draft, const struct oriel_part *to, const struct oriel_part *from)
{
    const bool rows = draft->word_bytes == 1 || draft->steps / 2 + draft->pieces <= ORIEL_PLAN_ROWS;
    const size_t passes = rows ? draft->steps + draft->pieces : ORIEL_STEP_KINDS + 1;
    const size_t offsets = rows ? 0 : 3 * ((size_t)draft->steps + draft->pieces);
    const size_t bytes = sizeof(struct oriel_plan) + passes * sizeof(struct pass) + offsets * sizeof(int32_t);
    struct oriel_plan *plan = !rows && draft->far ? NULL : malloc(bytes);
    if (plan == NULL)
        return NULL;
    *plan = (struct oriel_plan){.to_step = to->stride_bytes, .from_step = from->stride_bytes};
    if (rows)
        add_rows(plan, draft);
    else
        add_lists(plan, draft, (int32_t *)&plan->passes[passes]);
    plan->chunk = CHUNK_ITEMS_LEAST + CHUNK_BYTES / (magnitude(to->stride_bytes) + magnitude(from->stride_bytes) + 1);
    return plan;
}

struct oriel_plan *oriel_plan_make(const struct oriel_part *to, const struct oriel_part *from)
{
    struct draft draft;
    struct oriel_plan *plan = draft_make(&draft, to, from) ? plan_of(&draft, to, from) : NULL;
    free(draft.step);
    free(draft.piece);
    return plan;
}

void oriel_plan_free(struct oriel_plan *plan)
{
    free(plan);
}

/* ---- keep ---- */

static bool is_for(const struct oriel_plan *plan, const struct oriel_plan_key *key)
{
    return plan->key.to_number == key->to_number && plan->key.from_number == key->from_number &&
           plan->key.to_stride_bytes == key->to_stride_bytes && plan->key.from_stride_bytes == key->from_stride_bytes;
}

const struct oriel_plan *oriel_plan_find(const struct oriel_node *node, const struct oriel_plan_key *key, uint64_t counted,
                                         uint64_t *items)
{
    const struct oriel_memo *memo = atomic_load_explicit(&node->memos, memory_order_acquire);
    for (; memo != NULL; memo = memo->next) {
        const struct oriel_plan *plan = (const struct oriel_plan *)memo;
        if (!is_for(plan, key))
            continue;
        *items = counted == plan->counted ? plan->items : counted / (plan->counted / plan->items);
        return plan;
    }
    return NULL;
}

static bool has_room(const struct oriel_node *node, const struct oriel_memo *memo)
{
    unsigned kept = 0;
    for (; memo != NULL; memo = memo->next)
        kept++;
    return node->number != 0 && kept < ORIEL_PLANS_KEPT;
}

/* What a node remembers is no part of its value, which is constant. */
static struct oriel_node *keeper_of(const struct oriel_node *node)
{
    return (struct oriel_node *)(uintptr_t)node;
}

bool oriel_plan_pays(const struct oriel_node *node)
{
    return has_room(node, atomic_load_explicit(&node->memos, memory_order_acquire)) &&
           atomic_exchange_explicit(&keeper_of(node)->walked, true, memory_order_relaxed);
}

bool oriel_plan_keep(const struct oriel_node *node, const struct oriel_plan_key *key, uint64_t counted, uint64_t items,
                     struct oriel_plan *plan)
{
    struct oriel_memo *first = atomic_load_explicit(&node->memos, memory_order_acquire);
    plan->key = *key;
    plan->counted = counted;
    plan->items = items;
    do {
        if (!has_room(node, first))
            return false;
        plan->memo.next = first;
    } while (!atomic_compare_exchange_weak_explicit(&keeper_of(node)->memos, &first, &plan->memo, memory_order_release,
                                                    memory_order_acquire));
    return true;
}
