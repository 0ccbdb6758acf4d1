/* All kinds of update at once on the same elements, by all ranks and by several threads of each.
 * They cover every predefined type, every operator, single elements and whole arrays, strided and
 * reversed target layouts, fetches and swaps. Each origin keeps the product of its own updates in a
 * model. The combined models must equal the target's contents: no update is lost or applied twice.
 * Operands are chosen to give exact results in every order. A plain MPI program, run by the test
 * rows. */
#include "types.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    ELEMENTS = 1100,
    BACKWARD = 90,
    AREAS_MOST = 14,
    THREADS = 2,
    KINDS_HERE = KIND_ALLOCATE | KIND_SHARED | KIND_HEAP
};

/* One type under test: an area of elements for each of its operators, one after the other. */
struct phase {
    const struct test_type *type;
    const struct window *window;
    int target;
    MPI_Aint disp;
    int areas;
    const struct test_op *ops[AREAS_MOST];
    size_t area_bytes;
    MPI_Datatype strided;  /* every second element */
    MPI_Datatype backward; /* every seventh of the last elements, in reverse order */
    unsigned char *initial;
};

/* One origin's updates to the elements. */
struct origin {
    const struct phase *phase;
    struct random random;
    int rounds;
    unsigned char *model; /* all areas: its own updates applied to the operators' identities */
    /* by element: hashes of the values that MPI_REPLACE wrote, minus hashes of those it replaced */
    uint64_t *balance;
    unsigned char *operands, *results;
    pthread_t thread;
};

/* The elements of one update. */
struct shape {
    int count;
    int first, step;
    int items;
    MPI_Datatype type;
};

static bool is_one_of(MPI_Op op, MPI_Op a, MPI_Op b, MPI_Op c)
{
    return op == a || op == b || op == c;
}

static bool is_integer(const struct test_type *type)
{
    return type->group == GROUP_SIGNED || type->group == GROUP_UNSIGNED ||
           type->group == GROUP_BYTE;
}

/* Products keep their lowest bit or change the sign; bit sets and logical values fill up slowly. */
static void operand_make(const struct test_type *type, MPI_Op op, unsigned char *element,
                         struct random *random)
{
    type_fill(type, element, random, 0x77);
    if (op == MPI_PROD && is_integer(type))
        element[0] |= 1;
    else if (op == MPI_PROD)
        type_set(type, element, -1);
    else if (is_one_of(op, MPI_LAND, MPI_LOR, MPI_LXOR))
        type_set(type, element,
                 (int)random_below(random, op == MPI_LXOR ? 2 : 40) == 0 ? op != MPI_LAND
                                                                         : op == MPI_LAND);
    for (size_t i = 0; i < type->extent_bytes; i++) {
        if (op == MPI_BAND)
            element[i] |=
                (unsigned char)(random_next(random) | random_next(random) | random_next(random));
        else if (op == MPI_BOR)
            element[i] &=
                (unsigned char)(random_next(random) & random_next(random) & random_next(random));
        else if (op == MPI_REPLACE && !type_is_padding(type, i))
            element[i] = (unsigned char)(random_next(random) >> 9);
    }
}

static uint64_t element_hash(const struct test_type *type, const unsigned char *element)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < type->extent_bytes; i++)
        hash = (hash ^ (type_is_padding(type, i) ? 0 : element[i])) * 1099511628211u;
    return hash * hash | 1;
}

/* The operator's identity. If repeating an operand changes nothing, the element's initial value. */
static void identity_make(const struct test_type *type, MPI_Op op, unsigned char *element,
                          const unsigned char *initial)
{
    if (is_one_of(op, MPI_SUM, MPI_BXOR, MPI_LXOR))
        type_set(type, element, 0);
    else if (op == MPI_PROD)
        type_set(type, element, 1);
    else
        memcpy(element, initial, type->extent_bytes);
}

static MPI_Aint element_disp(const struct phase *phase, int area, int element)
{
    return phase->disp + (MPI_Aint)area * (MPI_Aint)phase->area_bytes +
           (MPI_Aint)element * (MPI_Aint)phase->type->extent_bytes;
}

static void shape_choose(struct shape *shape, const struct phase *phase, struct random *random)
{
    int choice = (int)random_below(random, 6);
    *shape = (struct shape){.step = 1, .type = phase->type->type};
    if (choice < 2) { /* a single element, often the same for all ranks */
        shape->count = 1;
        shape->first = choice ? (int)random_below(random, ELEMENTS) : 0;
    } else if (choice == 2) {
        shape->count = ELEMENTS;
    } else if (choice == 3) {
        shape->first = (int)random_below(random, ELEMENTS - 1);
        shape->count = 1 + (int)random_below(random, (uint64_t)(ELEMENTS - shape->first));
    } else if (choice == 4) {
        *shape = (struct shape){ELEMENTS / 2, 0, 2, 1, phase->strided};
    } else {
        *shape = (struct shape){BACKWARD, ELEMENTS - 1, -7, 1, phase->backward};
    }
    if (shape->items == 0)
        shape->items = shape->count;
}

/* Updates by the accumulate calls, with or without the old elements. */
static void shape_update(struct origin *origin, int area, const struct shape *shape,
                         bool with_result)
{
    const struct phase *phase = origin->phase;
    MPI_Win win = phase->window->win;
    MPI_Datatype type = phase->type->type;
    MPI_Op op = phase->ops[area]->op;
    MPI_Aint disp = element_disp(phase, area, shape->step < 0 ? 0 : shape->first);
    unsigned char *from = origin->operands, *to = origin->results;
    if (!with_result)
        MPI_Accumulate(from, shape->count, type, phase->target, disp, shape->items, shape->type, op,
                       win);
    else if (shape->count == 1 && random_below(&origin->random, 2))
        MPI_Fetch_and_op(from, to, type, phase->target, disp, op, win);
    else
        MPI_Get_accumulate(from, shape->count, type, to, shape->count, type, phase->target, disp,
                           shape->items, shape->type, op, win);
    MPI_Win_flush(phase->target, win);
}

/* The operator in a loop of compare-and-swap. results receives the element that was replaced,
 * operands its replacement. */
static void swap_update(struct origin *origin, int area, int element)
{
    const struct phase *phase = origin->phase;
    const struct test_type *type = phase->type;
    MPI_Win win = phase->window->win;
    MPI_Aint disp = element_disp(phase, area, element);
    unsigned char old[TYPE_MAX_BYTES], next[TYPE_MAX_BYTES];
    MPI_Fetch_and_op(NULL, origin->results, type->type, phase->target, disp, MPI_NO_OP, win);
    do {
        MPI_Win_flush(phase->target, win);
        memcpy(old, origin->results, type->extent_bytes);
        memcpy(next, old, type->extent_bytes);
        type_apply(type, phase->ops[area]->op, next, origin->operands);
        MPI_Compare_and_swap(next, old, origin->results, type->type, phase->target, disp, win);
        MPI_Win_flush(phase->target, win);
    } while (memcmp(old, origin->results, type->extent_bytes) != 0);
}

static void model_update(struct origin *origin, int area, const struct shape *shape)
{
    const struct phase *phase = origin->phase;
    size_t extent = phase->type->extent_bytes;
    for (int i = 0; i < shape->count; i++) {
        int element = shape->first + i * shape->step;
        const unsigned char *operand = origin->operands + (size_t)i * extent;
        if (phase->ops[area]->op == MPI_REPLACE)
            origin->balance[element] +=
                element_hash(phase->type, operand) -
                element_hash(phase->type, origin->results + (size_t)i * extent);
        else
            type_apply(phase->type, phase->ops[area]->op,
                       origin->model + (size_t)area * phase->area_bytes + (size_t)element * extent,
                       operand);
    }
}

static void *origin_run(void *argument)
{
    struct origin *origin = argument;
    const struct phase *phase = origin->phase;
    for (int step = 0; step < origin->rounds * phase->areas && !harness_failed(); step++) {
        int area = step % phase->areas;
        MPI_Op op = phase->ops[area]->op;
        struct shape shape;
        shape_choose(&shape, phase, &origin->random);
        for (int i = 0; i < shape.count; i++)
            operand_make(phase->type, op, origin->operands + (size_t)i * phase->type->extent_bytes,
                         &origin->random);
        if (shape.count == 1 && type_allows_swap(phase->type) &&
            random_below(&origin->random, 3) == 0)
            swap_update(origin, area, shape.first);
        else
            shape_update(origin, area, &shape,
                         op == MPI_REPLACE || random_below(&origin->random, 2));
        model_update(origin, area, &shape);
    }
    return NULL;
}

static void phase_start(struct phase *phase)
{
    const struct test_type *type = phase->type;
    struct random random = random_start(12345); /* the same seed for all */
    MPI_Aint displs[BACKWARD], extent = (MPI_Aint)type->extent_bytes;
    for (size_t j = 0; j < test_op_count; j++)
        if (type_allows(type, test_ops[j].op))
            phase->ops[phase->areas++] = &test_ops[j];
    phase->area_bytes = ELEMENTS * type->extent_bytes;
    phase->initial = malloc((size_t)phase->areas * phase->area_bytes);
    for (int area = 0; area < phase->areas; area++)
        for (int i = 0; i < ELEMENTS; i++)
            operand_make(type, phase->ops[area]->op,
                         phase->initial + (size_t)area * phase->area_bytes +
                             (size_t)i * type->extent_bytes,
                         &random);
    if (world_rank == phase->target)
        memcpy(phase->window->base + phase->disp, phase->initial,
               (size_t)phase->areas * phase->area_bytes);
    MPI_Type_create_hvector(ELEMENTS / 2, 1, 2 * extent, type->type, &phase->strided);
    for (int i = 0; i < BACKWARD; i++)
        displs[i] = (ELEMENTS - 1 - 7 * i) * extent;
    MPI_Type_create_hindexed_block(BACKWARD, 1, displs, type->type, &phase->backward);
    MPI_Type_commit(&phase->strided);
    MPI_Type_commit(&phase->backward);
    MPI_Win_sync(phase->window->win);
    barrier(MPI_COMM_WORLD);
}

static void origin_start(struct origin *origin, const struct phase *phase, int rounds, int number)
{
    size_t extent = phase->type->extent_bytes;
    uint64_t stream = (uint64_t)(world_rank * THREADS + number);
    *origin = (struct origin){.phase = phase, .rounds = rounds, .random = random_start(stream)};
    origin->model = malloc((size_t)phase->areas * phase->area_bytes);
    origin->balance = calloc(ELEMENTS, sizeof *origin->balance);
    origin->operands = malloc(phase->area_bytes);
    origin->results = malloc(phase->area_bytes);
    for (int area = 0; area < phase->areas; area++)
        for (int i = 0; i < ELEMENTS; i++) {
            size_t at = (size_t)area * phase->area_bytes + (size_t)i * extent;
            identity_make(phase->type, phase->ops[area]->op, origin->model + at,
                          phase->initial + at);
        }
}

static void origin_stop(struct origin *origin)
{
    free(origin->model);
    free(origin->balance);
    free(origin->operands);
    free(origin->results);
}

/* Gathers to the target; returns NULL at the others. Ranks take turns and sleep: they outnumber
 * cores. */
static unsigned char *gather(const struct phase *phase, const void *mine, size_t len_bytes)
{
    unsigned char *all =
        world_rank == phase->target ? malloc(len_bytes * (size_t)world_size) : NULL;
    MPI_Request request;
    int done = 0;
    MPI_Igather(mine, (int)len_bytes, MPI_BYTE, all, (int)len_bytes, MPI_BYTE, phase->target,
                MPI_COMM_WORLD, &request);
    for (MPI_Test(&request, &done, MPI_STATUS_IGNORE); !done;
         MPI_Test(&request, &done, MPI_STATUS_IGNORE))
        sleep_us(20);
    return all;
}

/* At the target: adds every rank's updates to the expected elements. */
static void wanted_add(const struct origin *origin, unsigned char *wanted, uint64_t *balance)
{
    const struct phase *phase = origin->phase;
    size_t extent = phase->type->extent_bytes, len_bytes = (size_t)phase->areas * phase->area_bytes;
    unsigned char *models = gather(phase, origin->model, len_bytes);
    unsigned char *balances = gather(phase, origin->balance, ELEMENTS * sizeof *balance);
    for (int rank = 0; models != NULL && rank < world_size; rank++) {
        uint64_t part[ELEMENTS];
        memcpy(part, balances + (size_t)rank * sizeof part, sizeof part);
        for (int i = 0; i < ELEMENTS; i++)
            balance[i] += part[i];
        for (size_t at = 0; at < len_bytes; at += extent)
            if (phase->ops[at / phase->area_bytes]->op != MPI_REPLACE)
                type_apply(phase->type, phase->ops[at / phase->area_bytes]->op, wanted + at,
                           models + (size_t)rank * len_bytes + at);
    }
    free(models);
    free(balances);
}

static void phase_check(const struct phase *phase, const unsigned char *wanted,
                        const uint64_t *balance)
{
    size_t extent = phase->type->extent_bytes, len_bytes = (size_t)phase->areas * phase->area_bytes;
    unsigned char *now = malloc(len_bytes);
    MPI_Get(now, (int)len_bytes, MPI_BYTE, phase->target, phase->disp, (int)len_bytes, MPI_BYTE,
            phase->window->win);
    MPI_Win_flush(phase->target, phase->window->win);
    for (size_t at = 0; at < len_bytes; at += extent) {
        const struct test_op *op = phase->ops[at / phase->area_bytes];
        int element = (int)(at % phase->area_bytes / extent);
        bool right = op->op == MPI_REPLACE ? element_hash(phase->type, now + at) -
                                                     element_hash(phase->type, wanted + at) ==
                                                 balance[element]
                                           : type_equal(phase->type, now + at, wanted + at);
        if (!CHECK(right, "%s on %s: element %d is wrong", op->name, phase->type->name, element))
            break;
    }
    free(now);
}

static void phase_run(const struct test_type *type, const struct window *window, int target,
                      MPI_Aint disp, int threads, int rounds)
{
    struct phase phase = {.type = type, .window = window, .target = target, .disp = disp};
    struct origin origins[THREADS];
    uint64_t balance[ELEMENTS] = {0};
    phase_start(&phase);
    for (int i = 0; i < threads; i++)
        origin_start(&origins[i], &phase, rounds, i);
    for (int i = 1; i < threads; i++)
        pthread_create(&origins[i].thread, NULL, origin_run, &origins[i]);
    origin_run(&origins[0]);
    for (int i = 1; i < threads; i++)
        pthread_join(origins[i].thread, NULL);
    MPI_Win_flush_all(window->win);
    barrier(MPI_COMM_WORLD);
    MPI_Win_sync(window->win);
    for (int i = 0; i < threads; i++)
        wanted_add(&origins[i], phase.initial, balance);
    if (world_rank == target)
        phase_check(&phase, phase.initial, balance);
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < threads; i++)
        origin_stop(&origins[i]);
    MPI_Type_free(&phase.strided);
    MPI_Type_free(&phase.backward);
    free(phase.initial);
}

static void for_every_type(enum window_kind kind, MPI_Aint shift, int threads, int rounds)
{
    struct window window = window_make(kind, ELEMENTS * 8 * AREAS_MOST + 64, 1, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    for (size_t i = 0; i < test_type_count; i++)
        if (type_exists(&test_types[i]))
            phase_run(&test_types[i], &window, (int)i % world_size, shift, threads, rounds);
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static void mixed_updates_of_every_type_lose_nothing(enum window_kind kind)
{
    for_every_type(kind, 0, 1, scaled_rounds(24));
}
static void misaligned_elements_lose_nothing(enum window_kind kind)
{
    for_every_type(kind, 3, 1, scaled_rounds(16));
}

static void threads_of_all_ranks_lose_nothing(enum window_kind kind)
{
    if (harness_thread_level() == MPI_THREAD_MULTIPLE)
        for_every_type(kind, 0, THREADS, scaled_rounds(12));
    else
        harness_skip("the host does not support MPI_THREAD_MULTIPLE");
}

/* Updates that are split into several, with fetches on the same elements in between. */
static void long_updates_and_fetches_lose_nothing(enum window_kind kind)
{
    enum { LONG = 150000, ROUNDS = 4, FETCHES = 300 };
    struct window window =
        window_make(kind, LONG * (MPI_Aint)sizeof(int64_t), sizeof(int64_t), MPI_COMM_WORLD);
    int64_t *ones = malloc(LONG * sizeof *ones), one = 1, before;
    int64_t sum = 0, updates = (int64_t)ROUNDS * (LONG + FETCHES) * world_size;
    for (int i = 0; i < LONG; i++)
        ones[i] = 1;
    MPI_Win_lock_all(0, window.win);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Accumulate(ones, LONG, MPI_INT64_T, 0, 0, LONG, MPI_INT64_T, MPI_SUM, window.win);
        for (int i = 0; i < FETCHES; i++)
            MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, i * 499, MPI_SUM, window.win);
    }
    MPI_Win_flush_all(window.win);
    barrier(MPI_COMM_WORLD);
    MPI_Win_sync(window.win);
    for (int i = 0; world_rank == 0 && i < LONG; i++)
        sum += ((int64_t *)window.base)[i];
    if (world_rank == 0)
        CHECK_EQUAL(sum, updates);
    MPI_Win_unlock_all(window.win);
    free(ones);
    window_free(&window);
}

static const struct test_case cases[] = {
    CASE(mixed_updates_of_every_type_lose_nothing, KINDS_HERE, 1),
    CASE(misaligned_elements_lose_nothing, KINDS_HERE, 1),
    CASE(threads_of_all_ranks_lose_nothing, KINDS_HERE, 1),
    CASE(long_updates_and_fetches_lose_nothing, KINDS_HERE, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases));
}
