/* Put and get with derived datatypes of every constructor on both sides, against the host's pack
 * and unpack. Every byte of the target's slot and of the origin's buffer is compared after every
 * operation. A plain MPI program, run by the test rows. */
#include "derived.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS_THREE = KIND_ALLOCATE | KIND_SHARED | KIND_HEAP, THREADS = 2 };

static int right_of(int rank)
{
    return (rank + 1) % world_size;
}

/* Updates the slot's model and the field to the host's result. */
static void put_and_check(struct slot *slot, const struct sides *sides, struct random *random)
{
    unsigned char field[FIELD_BYTES], expected[FIELD_BYTES], packed[PACKED_MOST_BYTES];
    bytes_fill(field, sizeof field, random);
    memcpy(expected, field, sizeof field);
    side_pack(&sides->origin, sides->len_bytes, field, packed);
    side_unpack(&sides->target, sides->len_bytes, slot->model, packed);
    MPI_Put(field + sides->origin.offset, sides->origin.count, sides->origin.type.type,
            slot->target, slot_disp(slot, &sides->target), sides->target.count,
            sides->target.type.type, slot->win);
    MPI_Win_flush(slot->target, slot->win);
    slot_check(slot, sides, "put");
    fields_check(field, expected, sides, "the origin of a put");
}

static void get_and_check(struct slot *slot, const struct sides *sides, struct random *random)
{
    unsigned char field[FIELD_BYTES], wanted[FIELD_BYTES], packed[PACKED_MOST_BYTES];
    bytes_fill(field, sizeof field, random);
    memcpy(wanted, field, sizeof field);
    side_pack(&sides->target, sides->len_bytes, slot->model, packed);
    side_unpack(&sides->origin, sides->len_bytes, wanted, packed);
    MPI_Get(field + sides->origin.offset, sides->origin.count, sides->origin.type.type,
            slot->target, slot_disp(slot, &sides->target), sides->target.count,
            sides->target.type.type, slot->win);
    MPI_Win_flush(slot->target, slot->win);
    fields_check(field, wanted, sides, "get");
}

static void random_round(struct slot *slot, struct sides *sides, struct random *random)
{
    bool put = random_below(random, 2);
    struct random_signature signature = random_signature_any(random);
    sides_make(sides, &signature, !put, random_next(random));
    for (uint64_t left = 1 + random_below(random, 4); left > 0;
         left--) /* a repeated call uses a separate path */
        if (put)
            put_and_check(slot, sides, random);
        else
            get_and_check(slot, sides, random);
    sides_free(sides);
}

static void random_types_move(enum window_kind kind)
{
    static struct slot slot;
    static struct sides sides;
    struct random random = random_start((uint64_t)world_rank);
    struct window window = slots_make(kind, 1);
    for (int target = 0; target < world_size; target++) {
        slot_open(&slot, window.win, target, 1, 0);
        slot_fill(&slot, &random);
        for (int round = 0; round < scaled_rounds(1200) / world_size && !harness_failed(); round++)
            random_round(&slot, &sides, &random);
        slot_check(&slot, &sides, "at the end");
    }
    slots_free(&window);
}

/* All ranks make the same types and use them concurrently: on the origin side of their own
 * operations, on the target side of others'. */
static void one_type_serves_all_ranks_at_once(enum window_kind kind)
{
    static struct slot slot;
    static struct sides sides;
    struct random same = random_start(1000), own = random_start((uint64_t)world_rank);
    struct window window = slots_make(kind, 1);
    slot_open(&slot, window.win, right_of(world_rank), 1, 0);
    for (int round = 0; round < scaled_rounds(200) && !harness_failed(); round++) {
        struct random_signature signature = random_signature_any(&same);
        sides_make(&sides, &signature, true, random_next(&same));
        random_type_free(&sides.origin.type);
        sides.origin = sides.target;
        for (int k = 0; k < 5; k++) {
            put_and_check(&slot, &sides, &own);
            get_and_check(&slot, &sides, &own);
        }
        random_type_free(&sides.target.type);
    }
    slots_free(&window);
}

/* The destination has room for more items than the source fills. */
static void a_sink_may_be_larger_than_the_data(enum window_kind kind)
{
    static struct slot slot;
    static struct sides sides;
    struct random random = random_start((uint64_t)world_rank);
    struct window window = slots_make(kind, 1);
    slot_open(&slot, window.win, right_of(world_rank), 1, 0);
    slot_fill(&slot, &random);
    for (int round = 0; round < scaled_rounds(200) && !harness_failed(); round++) {
        unsigned char field[FIELD_BYTES], packed[PACKED_MOST_BYTES];
        struct random_signature signature = random_signature_any(&random);
        sides_make(&sides, &signature, true, random_next(&random));
        if (sides.len_bytes > 0 && sides.origin.count > 1) {
            int count = 1 + (int)random_below(&random, (uint64_t)sides.origin.count - 1);
            int len_bytes = count * sides.origin.type.size_bytes;
            for (int time = 0; time < 3; time++) {
                bytes_fill(field, sizeof field, &random);
                random_type_gather(&sides.origin.type, len_bytes, field + sides.origin.offset,
                                   packed);
                random_type_scatter(&sides.target.type, len_bytes, slot.model + sides.target.offset,
                                    packed);
                MPI_Put(field + sides.origin.offset, count, sides.origin.type.type, slot.target,
                        slot_disp(&slot, &sides.target), sides.target.count, sides.target.type.type,
                        slot.win);
                MPI_Win_flush(slot.target, slot.win);
                slot_check(&slot, &sides, "put of less than fits");
            }
        }
        sides_free(&sides);
    }
    slots_free(&window);
}

/* The call keeps all that it needs of a type; the handle may be reused for another type immediately
 * afterwards. */
static void types_may_be_freed_after_the_call(enum window_kind kind)
{
    static struct slot slot;
    static struct sides sides, other;
    struct random random = random_start((uint64_t)world_rank);
    struct window window = slots_make(kind, 1);
    slot_open(&slot, window.win, right_of(world_rank), 1, 0);
    for (int round = 0; round < scaled_rounds(300) && !harness_failed(); round++) {
        unsigned char field[FIELD_BYTES], packed[PACKED_MOST_BYTES];
        struct random_signature signature = random_signature_any(&random);
        sides_make(&sides, &signature, false, random_next(&random));
        bytes_fill(field, sizeof field, &random);
        side_pack(&sides.origin, sides.len_bytes, field, packed);
        side_unpack(&sides.target, sides.len_bytes, slot.model, packed);
        MPI_Put(field + sides.origin.offset, sides.origin.count, sides.origin.type.type,
                slot.target, slot_disp(&slot, &sides.target), sides.target.count,
                sides.target.type.type, slot.win);
        sides_free(&sides);
        sides_make(&other, &signature, true, random_next(&random));
        MPI_Win_flush(slot.target, slot.win);
        slot_check(&slot, &sides, "put with types freed since");
        put_and_check(&slot, &other, &random);
        sides_free(&other);
    }
    slots_free(&window);
}

/* Columns of a matrix as interleaved items: the extent is one element, the span nearly the
 * matrix. */
static void interleaved_items_transpose(enum window_kind kind)
{
    enum { N = 24 };
    MPI_Datatype column, item;
    int32_t sent[N][N], got[N][N], wanted[N][N];
    struct window window =
        window_make(kind, (MPI_Aint)sizeof sent * world_size, (int)sizeof sent, MPI_COMM_WORLD);
    int target = right_of(world_rank);
    MPI_Type_vector(N, 1, N, MPI_INT32_T, &column);
    MPI_Type_create_resized(column, 0, sizeof sent[0][0], &item);
    MPI_Type_commit(&item);
    MPI_Type_free(&column);
    for (int i = 0; i < N * N; i++) {
        sent[i / N][i % N] = 1000 * world_rank + i;
        wanted[i % N][i / N] = 1000 * world_rank + i;
    }
    MPI_Win_lock_all(0, window.win);
    MPI_Put(sent, N, item, target, world_rank, N * N, MPI_INT32_T, window.win);
    MPI_Win_flush(target, window.win);
    MPI_Get(got, N * N, MPI_INT32_T, target, world_rank, N * N, MPI_INT32_T, window.win);
    MPI_Win_flush(target, window.win);
    CHECK(memcmp(got, wanted, sizeof got) == 0, "columns at the origin");
    MPI_Put(wanted, N * N, MPI_INT32_T, target, world_rank, N, item, window.win);
    MPI_Win_flush(target, window.win);
    MPI_Get(got, N * N, MPI_INT32_T, target, world_rank, N * N, MPI_INT32_T, window.win);
    MPI_Win_flush(target, window.win);
    CHECK(memcmp(got, sent, sizeof got) == 0, "columns at the target");
    MPI_Win_unlock_all(window.win);
    MPI_Type_free(&item);
    window_free(&window);
}

/* Pieces of three unrelated buffers; the datatype contains their addresses, and the buffer argument
 * is MPI_BOTTOM. */
static void origins_may_be_absolute_addresses(enum window_kind kind)
{
    static int64_t first[4], third[8];
    int64_t second[3], got[9];
    const int lengths[] = {4, 3, 2};
    MPI_Aint displs[3];
    MPI_Datatype type, types[] = {MPI_INT64_T, MPI_INT64_T, MPI_INT64_T};
    struct window window =
        window_make(kind, (MPI_Aint)sizeof got * world_size, (int)sizeof got, MPI_COMM_WORLD);
    int target = right_of(world_rank);
    MPI_Get_address(first, &displs[0]);
    MPI_Get_address(second, &displs[1]);
    MPI_Get_address(third + 5, &displs[2]);
    MPI_Type_create_struct(3, lengths, displs, types, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < 9; i++)
        *(i < 4 ? &first[i] : i < 7 ? &second[i - 4] : &third[i - 2]) = 100 * world_rank + i;
    MPI_Win_lock_all(0, window.win);
    MPI_Put(MPI_BOTTOM, 1, type, target, world_rank, 9, MPI_INT64_T, window.win);
    MPI_Win_flush(target, window.win);
    MPI_Get(got, 9, MPI_INT64_T, target, world_rank, 9, MPI_INT64_T, window.win);
    MPI_Win_flush(target, window.win);
    for (int i = 0; i < 9; i++)
        CHECK_EQUAL(got[i], 100 * world_rank + i);
    memset(first, 0, sizeof first);
    memset(second, 0, sizeof second);
    memset(third, 0, sizeof third);
    MPI_Get(MPI_BOTTOM, 1, type, target, world_rank, 9, MPI_INT64_T, window.win);
    MPI_Win_flush(target, window.win);
    for (int i = 0; i < 9; i++)
        CHECK_EQUAL(i < 4 ? first[i] : i < 7 ? second[i - 4] : third[i - 2], 100 * world_rank + i);
    CHECK(third[4] == 0 && third[7] == 0, "a word next to the data changed");
    MPI_Win_unlock_all(window.win);
    MPI_Type_free(&type);
    window_free(&window);
}

/* Each level contains the one below and one more integer, alternately before and after it. */
static void datatypes_of_sixty_levels_move(enum window_kind kind)
{
    enum { LEVELS = 60 };
    const int ones[] = {1, 1};
    int32_t sent[2 * LEVELS + 2], got[2 * LEVELS + 2], wanted[LEVELS + 1];
    MPI_Datatype type = MPI_INT32_T;
    struct window window =
        window_make(kind, (MPI_Aint)sizeof got * world_size, (int)sizeof got, MPI_COMM_WORLD);
    int target = right_of(world_rank), first = LEVELS, last = LEVELS;
    wanted[0] = first;
    for (int level = 1; level <= LEVELS; level++) {
        int added = level % 2 ? last += 2 : (first -= 1);
        MPI_Datatype old = type, types[] = {old, MPI_INT32_T};
        const MPI_Aint displs[] = {0, (added - LEVELS) * (MPI_Aint)sizeof sent[0]};
        MPI_Type_create_struct(2, ones, displs, types, &type);
        if (old != MPI_INT32_T)
            MPI_Type_free(&old);
        wanted[level] = added;
    }
    MPI_Type_commit(&type);
    for (int i = 0; i < 2 * LEVELS + 2; i++)
        sent[i] = i;
    MPI_Win_lock_all(0, window.win);
    MPI_Put(sent + LEVELS, 1, type, target, world_rank, LEVELS + 1, MPI_INT32_T, window.win);
    MPI_Win_flush(target, window.win);
    MPI_Get(got, LEVELS + 1, MPI_INT32_T, target, world_rank, LEVELS + 1, MPI_INT32_T, window.win);
    MPI_Win_flush(target, window.win);
    for (int i = 0; i <= LEVELS; i++)
        CHECK(got[i] == wanted[i], "element %d is %d, not %d", i, got[i], wanted[i]);
    memset(got, 0, sizeof got);
    MPI_Get(got + LEVELS, 1, type, target, world_rank, LEVELS + 1, MPI_INT32_T, window.win);
    MPI_Win_flush(target, window.win);
    for (int i = 0; i <= LEVELS; i++)
        CHECK(got[wanted[i]] == wanted[i], "element %d is returned as %d", wanted[i],
              got[wanted[i]]);
    MPI_Win_unlock_all(window.win);
    MPI_Type_free(&type);
    window_free(&window);
}

/* A part without bytes, a block of no items and zero blocks are valid constructor arguments and
 * move nothing. */
static void parts_without_bytes_move_nothing(enum window_kind kind)
{
    const int lengths[] = {2, 1, 0, 3, 1};
    const MPI_Aint displs[] = {0, 0, 96, -8, 24};
    const int32_t wanted[] = {0, 1, 6};
    MPI_Datatype empty, blank, type;
    MPI_Type_contiguous(0, MPI_DOUBLE, &empty);
    MPI_Type_create_hvector(0, 2, 24, MPI_SHORT, &blank);
    const MPI_Datatype types[] = {MPI_INT32_T, empty, MPI_DOUBLE, blank, MPI_INT32_T};
    MPI_Type_create_struct(5, lengths, displs, types, &type);
    MPI_Type_commit(&type);
    MPI_Type_commit(&empty);
    struct window window = window_make(kind, 32 * (MPI_Aint)world_size, 32, MPI_COMM_WORLD);
    int target = right_of(world_rank);
    int32_t sent[7] = {0, 1, 2, 3, 4, 5, 6}, got[3] = {-1, -1, -1};
    MPI_Win_lock_all(0, window.win);
    MPI_Put(sent, 7, empty, target, world_rank, 0, MPI_INT32_T, window.win);
    MPI_Put(sent, 1, type, target, world_rank, 3, MPI_INT32_T, window.win);
    MPI_Win_flush(target, window.win);
    MPI_Get(got, 3, MPI_INT32_T, target, world_rank, 3, MPI_INT32_T, window.win);
    MPI_Win_flush(target, window.win);
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL(got[i], wanted[i]);
    MPI_Win_unlock_all(window.win);
    MPI_Type_free(&empty);
    MPI_Type_free(&blank);
    MPI_Type_free(&type);
    window_free(&window);
}

/* Displacements are multiples of zero: all blocks begin at the start of the type. */
static void blocks_over_an_extent_of_0_lie_at_one_place(enum window_kind kind)
{
    int sent = 4711, there = 0, right = (world_rank + 1) % world_size;
    struct window window = window_make(kind, 4 * sizeof(int), sizeof(int), MPI_COMM_WORLD);
    MPI_Datatype flat, types[2];
    MPI_Type_create_resized(MPI_INT, 0, 0, &flat);
    MPI_Type_indexed(1, (int[]){1}, (int[]){2}, flat, &types[0]);
    MPI_Type_create_indexed_block(1, 1, (int[]){3}, flat, &types[1]);
    for (int i = 0; i < 2; i++) {
        MPI_Type_commit(&types[i]);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, window.win);
        MPI_Put(&sent, 1, MPI_INT, right, i, 1, types[i], window.win);
        MPI_Win_flush(right, window.win);
        MPI_Get(&there, 1, MPI_INT, right, i, 1, MPI_INT, window.win);
        MPI_Win_unlock(right, window.win);
        CHECK_EQUAL(there, sent);
        MPI_Type_free(&types[i]);
    }
    MPI_Type_free(&flat);
    window_free(&window);
}

struct worker {
    pthread_t thread;
    struct random random;
    struct slot slot;
    struct sides sides;
    int rounds;
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    for (int round = 0; round < worker->rounds && !harness_failed(); round++)
        random_round(&worker->slot, &worker->sides, &worker->random);
    return NULL;
}

static void threads_use_different_types(enum window_kind kind)
{
    static struct worker workers[THREADS];
    if (harness_thread_level() != MPI_THREAD_MULTIPLE) {
        harness_skip("the host does not support MPI_THREAD_MULTIPLE");
        return;
    }
    struct window window = slots_make(kind, THREADS);
    for (int i = 0; i < THREADS; i++) {
        workers[i].random = random_start((uint64_t)(THREADS * world_rank + i));
        workers[i].rounds = scaled_rounds(500);
        slot_open(&workers[i].slot, window.win, right_of(world_rank), THREADS, i);
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    slots_free(&window);
}

static const struct test_case cases[] = {
    CASE(random_types_move, KINDS_THREE, 1),
    CASE(one_type_serves_all_ranks_at_once, KINDS_THREE, 1),
    CASE(a_sink_may_be_larger_than_the_data, KINDS_BOTH, 1),
    CASE(types_may_be_freed_after_the_call, KINDS_BOTH, 1),
    CASE(interleaved_items_transpose, KINDS_THREE, 1),
    CASE(origins_may_be_absolute_addresses, KINDS_THREE, 1),
    CASE(datatypes_of_sixty_levels_move, KINDS_THREE, 1),
    CASE(parts_without_bytes_move_nothing, KINDS_THREE, 1),
    CASE(blocks_over_an_extent_of_0_lie_at_one_place, KINDS_THREE, 1),
    CASE(threads_use_different_types, KINDS_BOTH, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases));
}
