/* Plans a step, drawn alike by all members of the window: the access permissions, and the
 * operations in one global order. In this order, each actor's operations form its program, and each
 * awaited flag comes after the operation that sets it. */
#include "step.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 16, DEPTH = 3 };

static void *grown(void *list, size_t item_bytes, int count, int *room)
{
    if (count < *room)
        return list;
    *room = *room ? 2 * *room : 64;
    list = realloc(list, item_bytes * (size_t)*room);
    if (list == NULL)
        fail("no memory");
    return list;
}

int op_push(struct plan *plan, const struct op *op)
{
    plan->ops = grown(plan->ops, sizeof *plan->ops, plan->op_count, &plan->op_room);
    plan->ops[plan->op_count] = *op;
    plan->ops[plan->op_count].phase = plan->phase;
    extended_draw(plan, &plan->ops[plan->op_count]);
    return ++plan->op_count;
}

static int plain_push(struct plan *plan, enum op_kind kind, int actor, int target)
{
    return op_push(plan, &(struct op){.kind = kind, .actor = actor, .target = target, .area = -1});
}

void op_flush(struct plan *plan, int actor, int target)
{
    bool all = one_in(&plan->random, 5);
    plain_push(plan, all ? OP_FLUSH_ALL : OP_FLUSH, actor, target);
    for (int i = 0; i < plan->window->group->n; i++)
        if (all || i == target)
            plan->flushes[actor][i]++;
}

struct region *op_region(const struct plan *plan, const struct op *op)
{
    return &plan->window->regions[op->target][op->segment];
}

int actor_rank(const struct plan *plan, int actor)
{
    const struct group *group = plan->window->group;
    for (int i = 0; i < group->n; i++)
        if (group->world[i] == actor / THREADS_MOST)
            return i;
    return -1;
}

/* All ranks draw the contents, which are the data of puts. */
void buffer_make(struct buffer *buffer, const struct side *side, struct random *random, bool here)
{
    MPI_Aint low, high;
    random_type_bounds(side->type, side->count, &low, &high);
    *buffer = (struct buffer){.len_bytes = (size_t)(high - low) + 2 * GUARD_BYTES,
                              .at = GUARD_BYTES - low};
    buffer->alloc_mem = one_in(random, 6) && here;
    if (buffer->alloc_mem)
        MPI_Alloc_mem((MPI_Aint)buffer->len_bytes, MPI_INFO_NULL, &buffer->bytes);
    else
        buffer->bytes = malloc(buffer->len_bytes);
    buffer->wanted = malloc(buffer->len_bytes);
    if (buffer->bytes == NULL || buffer->wanted == NULL)
        fail("no memory");
    bytes_draw(buffer->bytes, buffer->len_bytes, random);
    memcpy(buffer->wanted, buffer->bytes, buffer->len_bytes);
}

void buffer_free(struct buffer *buffer)
{
    if (buffer->alloc_mem)
        MPI_Free_mem(buffer->bytes);
    else if (!buffer->inside)
        free(buffer->bytes);
    free(buffer->wanted);
    *buffer = (struct buffer){0};
}

void buffer_want(struct buffer *buffer, const struct side *side, const unsigned char *packed)
{
    random_type_scatter(side->type, side->count * side->type->size_bytes,
                        buffer->wanted + buffer->at, packed);
}

/* Types without bytes would match nothing. */
static void type_draw(struct random_type *type, const struct random_signature *signature,
                      struct random *random, int depth)
{
    random_type_make(type, signature, random, depth);
    while (type->size_bytes == 0) {
        random_type_free(type);
        random_type_make(type, signature, random, depth);
    }
}

/* The last one is of integers: operators can compute on arbitrary bytes only with these. */
static void pools_make(struct plan *plan)
{
    for (int i = 0; i < SIGNATURES; i++) {
        struct pool *pool = &plan->pools[i];
        const struct random_leaf *leaf = random_leaf_any(&plan->random);
        while (i == SIGNATURES - 1 && !type_is_integer(leaf->model))
            leaf = random_leaf_any(&plan->random);
        pool->signature = i == 0 ? random_signature_any(&plan->random) : random_signature_of(leaf);
        const struct test_type *model = pool->signature.leaves[0]->model;
        pool->accumulates = pool->signature.count == 1 && type_is_computed(model);
        for (int k = 0; k < VARIANTS; k++)
            type_draw(&pool->types[k], &pool->signature, &plan->random, k == 0 ? 0 : DEPTH);
    }
}

/* The owners' stores before the first epoch. */
static void stores_draw(struct plan *plan)
{
    struct random *random = &plan->random;
    for (int i = 0; i < plan->window->group->n; i++) {
        for (int k = 0; k < plan->window->segments; k++) {
            struct region *region = &plan->window->regions[i][k];
            if (region->size > 0) { /* else there are no bytes to compare or store */
                memset(region->claims, 0, region->size * sizeof *region->claims);
                memset(region->writers, 0, region->size * sizeof *region->writers);
            }
            if (region->size == 0 || one_in(random, 2))
                continue;
            size_t at = random_below(random, region->size);
            size_t most = region->size - at < 3000 ? region->size - at : 3000;
            size_t len_bytes = random_below(random, most + 1);
            bytes_draw(region->model + at, len_bytes, random);
            if (i == plan->window->group->me)
                store_note(plan, region, at, len_bytes);
        }
    }
}

void store_note(struct plan *plan, struct region *region, size_t offset, size_t len_bytes)
{
    plan->stores = grown(plan->stores, sizeof *plan->stores, plan->store_count, &plan->store_room);
    struct store *store = &plan->stores[plan->store_count++];
    *store = (struct store){region, offset, len_bytes, malloc(len_bytes + 1)};
    memcpy(store->bytes, region->model + offset, len_bytes);
}

/* A phase's claims end with it; areas stay. */
static void phase_begin(struct plan *plan)
{
    struct soak_window *window = plan->window;
    for (int i = 0; i < window->group->n; i++) {
        for (int k = 0; k < window->segments; k++) {
            struct region *region = &window->regions[i][k];
            for (size_t b = 0; b < region->size; b++)
                if (region->claims[b].kind != CLAIM_RESERVED)
                    region->claims[b] = (struct claim){0};
        }
        for (int o = 0; o < window->group->n; o++)
            plan->access[plan->phase][o][i] =
                plan->epoch != EPOCH_PSCW || one_in(&plan->random, window->group->n > 4 ? 4 : 2);
    }
}

static int target_draw(struct plan *plan, int actor)
{
    int n = plan->window->group->n, origin = actor_rank(plan, actor), targets[RANKS_MOST],
        count = 0;
    for (int i = 0; i < n; i++)
        if (plan->access[plan->phase][origin][i])
            targets[count++] = i;
    return count == 0 ? MPI_PROC_NULL : targets[below(&plan->random, count)];
}

/* Flushes, pauses and similar calls without a target of their own. */
static void between_draw(struct plan *plan, int actor, int target)
{
    static const enum op_kind passive[] = {OP_FLUSH, OP_FLUSH_ALL, OP_FLUSH_LOCAL,
                                           OP_FLUSH_LOCAL_ALL, OP_SYNC};
    int choice = below(&plan->random, 12);
    if (choice < 5 && epoch_is_passive(plan->epoch))
        plain_push(plan, passive[choice], actor, target);
    else if (choice == 5 && one_in(&plan->random, 6))
        plain_push(plan, OP_COMPUTE, actor, target);
    else if (choice == 6 && one_in(&plan->random, 4))
        plain_push(plan, OP_FORK, actor, target);
    else if (choice > 8 && plan->window->flavour == FLAVOUR_DYNAMIC)
        plain_push(plan, OP_ATTACH, actor, target);
    else
        plain_push(plan, OP_PAUSE, actor, target);
}

static void any_draw(struct plan *plan, int actor, int target, bool exclusive)
{
    int choice = below(&plan->random, 20);
    if (choice == 0)
        null_draw(plan, actor);
    if (target == MPI_PROC_NULL)
        return;
    if (choice < 8 && area_draw(plan, actor, target, exclusive))
        return;
    if (choice < 10)
        between_draw(plan, actor, target);
    else if (choice == 10 && epoch_is_passive(plan->epoch))
        store_draw(plan, actor, target);
    else
        raw_draw(plan, actor, target);
}

/* A host message from each rank to the next, which arrives during the phase's operations.  All
 * receives precede all sends without a wait in between (execute.c). No cycle of waits can form. */
static void messages_draw(struct plan *plan)
{
    const struct group *group = plan->window->group;
    size_t len_bytes = (size_t)below(&plan->random, one_in(&plan->random, 4) ? 100000 : 500);
    uint64_t contents = random_next(&plan->random);
    for (int i = 0; i < 2 * group->n; i++) {
        int sender = i % group->n, receiver = (sender + 1) % group->n;
        bool receives = i < group->n;
        struct op op = {
            .kind = receives ? OP_RECEIVE : OP_SEND, .area = -1, .len_bytes = len_bytes};
        op.actor = actor_of(plan, receives ? receiver : sender, plan->thread);
        op.target = receives ? sender : receiver;
        struct random random = {contents + (uint64_t)sender};
        op.from = (struct buffer){.bytes = calloc(len_bytes + 1, 1),
                                  .wanted = malloc(len_bytes + 1),
                                  .len_bytes = len_bytes};
        bytes_draw(op.from.wanted, len_bytes, &random);
        if (!receives)
            memcpy(op.from.bytes, op.from.wanted, len_bytes);
        op_push(plan, &op);
    }
}

static int actor_draw(struct plan *plan)
{
    int rank = below(&plan->random, plan->window->group->n);
    return actor_of(plan, rank, plan->thread + below(&plan->random, plan->threads));
}

/* Sometimes very many, limited by their total size. */
static void flat_draw(struct plan *plan)
{
    const struct group *group = plan->window->group;
    int actors = group->n * plan->threads;
    int operations = actors * between(&plan->random, 1, actors > 12 ? 4 : actors > 4 ? 8 : 16);
    if (one_in(&plan->random, 12))
        operations += 600;
    for (int i = 0; i < operations; i++) {
        int actor = actor_draw(plan);
        any_draw(plan, actor, target_draw(plan, actor), false);
    }
}

/* Locks of one or two targets, or of several in rising order, which excludes cycles of waits
 * (execute.c gives the order of locks in two windows).  The threads of a rank lock disjoint
 * targets: MPI permits one lock of a target per process. */
static void section_draw(struct plan *plan, int actor)
{
    int n = plan->window->group->n, targets[RANKS_MOST], count = 0;
    bool many = one_in(&plan->random, 3);
    int first = one_in(&plan->random, 2) ? plan->hot : below(&plan->random, n);
    struct op lock = {.kind = OP_LOCK, .actor = actor, .area = -1};
    for (int i = many ? 0 : first; i < n && count < (many ? n : 2); i++)
        if (i % plan->threads == actor % THREADS_MOST - plan->thread &&
            (count == 0 || one_in(&plan->random, many ? 2 : 4)))
            targets[count++] = i;
    bool exclusive[RANKS_MOST];
    for (int i = 0; i < count; i++) {
        exclusive[i] = one_in(&plan->random, 2);
        lock.target = targets[i];
        lock.lock = exclusive[i] ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED;
        op_push(plan, &lock);
    }
    if (count > 1 && actor_is_here(actor))
        count_one(count == 2 ? COUNT_LOCK_TWO : COUNT_LOCK_MANY);
    for (int i = 0; i < count; i++)
        if (one_in(&plan->random, 2))
            area_draw(plan, actor, targets[i], exclusive[i]);
    for (int left = count ? between(&plan->random, 0, 5) : 0; left > 0; left--) {
        int which = below(&plan->random, count);
        any_draw(plan, actor, targets[which], exclusive[which]);
    }
    while (count > 0) {
        int which = below(&plan->random, count);
        plain_push(plan, OP_UNLOCK, actor, targets[which]);
        plan->flushes[actor][targets[which]]++;
        targets[which] = targets[--count];
    }
}

/* No lock of this target can conflict with another. */
static bool has_no_conflict(const struct plan *plan, int target)
{
    int owner = -1;
    bool shared = true, single = true;
    for (int i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        if (op->kind != OP_LOCK || op->phase != plan->phase || op->target != target)
            continue;
        shared = shared && op->lock == MPI_LOCK_SHARED;
        single = single && (owner < 0 || owner == op->actor);
        owner = op->actor;
    }
    return shared || single;
}

static void sections_draw(struct plan *plan)
{
    const struct group *group = plan->window->group;
    int sections = group->n * plan->threads * between(&plan->random, 1, 3);
    for (int i = 0; i < sections; i++)
        section_draw(plan, actor_draw(plan));
    for (int target = 0; target < group->n; target++) {
        bool free_of_conflicts = has_no_conflict(plan, target);
        for (int i = 0; i < plan->op_count && free_of_conflicts; i++) {
            struct op *op = &plan->ops[i];
            if (op->kind == OP_LOCK && op->phase == plan->phase && op->target == target &&
                one_in(&plan->random, 2))
                op->assert = MPI_MODE_NOCHECK;
        }
    }
}

/* True assertions, now that the operations are known.  A fence precedes its phase; the last one
 * follows all phases. */
static void asserts_draw(struct plan *plan)
{
    struct random *random = &plan->random;
    bool nothing_before = one_in(random, 2), nothing_after = one_in(random, 2);
    for (int phase = 0; phase <= plan->phases; phase++) {
        bool checked = !one_in(random, 3);
        for (int i = 0; i < plan->window->group->n; i++) {
            int *assert = &plan->assert[phase][i];
            if ((phase == plan->phases || !plan->written[phase][i]) && one_in(random, 2))
                *assert |= MPI_MODE_NOPUT;
            if (phase > 0 && !plan->stored[phase - 1][i] && one_in(random, 2))
                *assert |= MPI_MODE_NOSTORE;
            if (plan->epoch == EPOCH_PSCW)
                *assert |= checked ? 0 : MPI_MODE_NOCHECK;
            else if (phase == 0 && nothing_before)
                *assert |= MPI_MODE_NOPRECEDE;
            else if (phase == plan->phases && nothing_after)
                *assert |= MPI_MODE_NOSUCCEED;
        }
        if (phase < plan->phases)
            plan->start_assert[phase] = checked ? 0 : MPI_MODE_NOCHECK;
    }
}

struct plan *plan_make(struct soak_window *window, enum epoch epoch, int phases,
                       enum company company, int track, uint64_t number)
{
    struct plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        fail("no memory");
    plan->window = window;
    plan->epoch = epoch;
    plan->phases = phases;
    plan->alone = company != COMPANY_MIXED;
    plan->thread = company == COMPANY_APART ? track : 0;
    plan->threads = company == COMPANY_APART ? 1 : soak.threads;
    plan->random = stream(8, number);
    plan->hot = below(&plan->random, window->group->n);
    pools_make(plan);
    stores_draw(plan);
    for (int i = between(&plan->random, 0, AREAS_MOST); i > 0; i--)
        area_make(plan);
    for (plan->phase = 0; plan->phase < phases; plan->phase++) {
        phase_begin(plan);
        if (plan->alone && one_in(&plan->random, 3))
            messages_draw(plan);
        if (epoch == EPOCH_LOCK)
            sections_draw(plan);
        else
            flat_draw(plan);
    }
    asserts_draw(plan);
    if (epoch == EPOCH_PSCW)
        orders_draw(plan);
    return plan;
}

void plan_free(struct plan *plan)
{
    for (int i = 0; i < plan->op_count; i++) {
        buffer_free(&plan->ops[i].from);
        buffer_free(&plan->ops[i].into);
        buffer_free(&plan->ops[i].compare);
    }
    for (int i = 0; i < SIGNATURES; i++)
        for (int k = 0; k < VARIANTS; k++)
            random_type_free(&plan->pools[i].types[k]);
    for (int i = 0; i < plan->area_count; i++)
        for (int k = 0; k < VARIANTS; k++)
            random_type_free(&plan->areas[i].variants[k]);
    for (int i = 0; i < plan->store_count; i++)
        free(plan->stores[i].bytes);
    free(plan->stores);
    free(plan->ops);
    free(plan);
}
