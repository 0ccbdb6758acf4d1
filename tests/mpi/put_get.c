/* Put and get: every predefined type and contiguous ones made of them, any count, any alignment,
 * any size, against a model. Every case checks the written data and that the surrounding bytes are
 * unchanged. A plain MPI program, run by the test rows. */
#include "types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOT_BYTES = 4096, GUARD = 0x5a };

static int right_of(int rank)
{
    return (rank + 1) % world_size;
}

/* Each origin has its own slot in every target's memory. */
static struct window slots_make(enum window_kind kind)
{
    struct window window = window_make(kind, (MPI_Aint)world_size * SLOT_BYTES, 1, MPI_COMM_WORLD);
    memset(window.base, GUARD, (size_t)world_size * SLOT_BYTES);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    return window;
}

static void slots_free(struct window *window)
{
    MPI_Win_unlock_all(window->win);
    window_free(window);
}

static void slot_read(MPI_Win win, int target, void *slot)
{
    MPI_Get(slot, SLOT_BYTES, MPI_BYTE, target, (MPI_Aint)world_rank * SLOT_BYTES, SLOT_BYTES,
            MPI_BYTE, win);
    MPI_Win_flush(target, win);
}

static void slot_expect(MPI_Win win, int target, const void *wanted, const char *what)
{
    static unsigned char slot[SLOT_BYTES];
    slot_read(win, target, slot);
    for (int i = 0; i < SLOT_BYTES; i++)
        if (!CHECK(slot[i] == ((const unsigned char *)wanted)[i], "%s: byte %d is %d, not %d", what,
                   i, slot[i], ((const unsigned char *)wanted)[i]))
            return;
}

static void type_round_trip(MPI_Win win, const struct test_type *type, int count, int offset_bytes,
                            struct random *random)
{
    static unsigned char model[SLOT_BYTES], sent[SLOT_BYTES], got[SLOT_BYTES];
    size_t len_bytes = (size_t)count * type->extent_bytes;
    int target = (int)random_below(random, (uint64_t)world_size);
    char what[100];
    snprintf(what, sizeof what, "%d %s at offset %d", count, type->name, offset_bytes);
    memset(model, GUARD, sizeof model);
    memset(got, GUARD, sizeof got);
    MPI_Put(model, SLOT_BYTES, MPI_BYTE, target, (MPI_Aint)world_rank * SLOT_BYTES, SLOT_BYTES,
            MPI_BYTE, win);
    MPI_Win_flush(target, win);
    for (int i = 0; i < count; i++) {
        char *element = (char *)sent + (size_t)i * type->extent_bytes;
        type_fill(type, element, random, GUARD);
        type_apply(type, MPI_REPLACE, model + offset_bytes + (size_t)i * type->extent_bytes,
                   element);
    }
    MPI_Put(sent, count, type->type, target, (MPI_Aint)world_rank * SLOT_BYTES + offset_bytes,
            count, type->type, win);
    MPI_Win_flush(target, win);
    slot_expect(win, target, model, what);
    MPI_Get(got, count, type->type, target, (MPI_Aint)world_rank * SLOT_BYTES + offset_bytes, count,
            type->type, win);
    MPI_Win_flush(target, win);
    CHECK(memcmp(got, model + offset_bytes, len_bytes) == 0, "%s: get returns something else",
          what);
    CHECK(got[len_bytes] == GUARD, "%s: get wrote beyond its buffer", what);
}

static void every_type_moves(enum window_kind kind)
{
    static const int counts[] = {0, 1, 2, 3, 17, 64};
    struct random random = random_start((uint64_t)world_rank);
    struct window window = slots_make(kind);
    for (size_t i = 0; i < test_type_count; i++)
        for (size_t j = 0; j < COUNT_OF(counts); j++)
            type_round_trip(window.win, &test_types[i], counts[j], 64, &random);
    slots_free(&window);
}

static void misaligned_elements_move(enum window_kind kind)
{
    struct random random = random_start((uint64_t)world_rank);
    struct window window = slots_make(kind);
    for (size_t i = 0; i < test_type_count; i++)
        for (int offset_bytes = 1; offset_bytes < 16; offset_bytes += 2)
            type_round_trip(window.win, &test_types[i], 1 + offset_bytes % 4, offset_bytes,
                            &random);
    slots_free(&window);
}

/* Only the fields of a pair belong to its type: the bytes between them are unchanged. */
static void padding_of_pairs_is_not_moved(enum window_kind kind)
{
    struct random random = random_start((uint64_t)world_rank);
    struct window window = slots_make(kind);
    static unsigned char model[SLOT_BYTES], sent[SLOT_BYTES];
    int target = right_of(world_rank);
    for (size_t i = 0; i < test_type_count; i++) {
        const struct test_type *type = &test_types[i];
        if (type->group != GROUP_PAIR || type->value_bytes == sizeof(long double))
            continue;
        memset(model, GUARD, sizeof model);
        MPI_Put(model, SLOT_BYTES, MPI_BYTE, target, (MPI_Aint)world_rank * SLOT_BYTES, SLOT_BYTES,
                MPI_BYTE, window.win);
        MPI_Win_flush(target, window.win);
        for (int k = 0; k < 5; k++) {
            type_fill(type, sent + (size_t)k * type->extent_bytes, &random, 0x77);
            type_apply(type, MPI_REPLACE, model + (size_t)k * type->extent_bytes,
                       sent + (size_t)k * type->extent_bytes);
        }
        MPI_Put(sent, 5, type->type, target, (MPI_Aint)world_rank * SLOT_BYTES, 5, type->type,
                window.win);
        MPI_Win_flush(target, window.win);
        slot_expect(window.win, target, model, type->name);
    }
    slots_free(&window);
}

/* 24 integers, in five descriptions on either side. */
static void contiguous_derived_types_move(enum window_kind kind)
{
    MPI_Datatype duplicate, three, three_again, nested, deep;
    MPI_Type_dup(MPI_INT, &duplicate);
    MPI_Type_contiguous(3, MPI_INT, &three);
    MPI_Type_dup(three, &three_again);
    MPI_Type_contiguous(2, three_again, &nested);
    MPI_Type_contiguous(4, nested, &deep);
    MPI_Datatype types[] = {MPI_INT, duplicate, three, three_again, nested, deep};
    const int counts[] = {24, 24, 8, 8, 4, 1};
    for (size_t i = 1; i < COUNT_OF(types); i++)
        MPI_Type_commit(&types[i]);
    struct window window = slots_make(kind);
    int target = right_of(world_rank);
    for (size_t i = 0; i < COUNT_OF(types) * COUNT_OF(types); i++) {
        size_t from = i / COUNT_OF(types), into = i % COUNT_OF(types);
        static unsigned char model[SLOT_BYTES];
        int sent[24], got[25];
        memset(model, GUARD, sizeof model);
        for (int k = 0; k < 24; k++)
            sent[k] = 100 * (int)i + k;
        memcpy(model + 20, sent, sizeof sent);
        got[24] = GUARD;
        MPI_Aint disp = (MPI_Aint)world_rank * SLOT_BYTES + 20;
        MPI_Put(sent, counts[from], types[from], target, disp, counts[into], types[into],
                window.win);
        MPI_Win_flush(target, window.win);
        slot_expect(window.win, target, model, "derived type");
        MPI_Get(got, counts[into], types[into], target, disp, counts[from], types[from],
                window.win);
        MPI_Win_flush(target, window.win);
        CHECK(memcmp(got, sent, sizeof sent) == 0 && got[24] == GUARD, "get with types %zu and %zu",
              from, into);
    }
    slots_free(&window);
    for (size_t i = 1; i < COUNT_OF(types); i++)
        MPI_Type_free(&types[i]);
}

static void a_freed_datatypes_handle_may_be_another_type(enum window_kind kind)
{
    struct window window = slots_make(kind);
    int target = right_of(world_rank);
    for (int length = 1; length < 40; length++) {
        static unsigned char model[SLOT_BYTES], sent[SLOT_BYTES];
        MPI_Datatype type;
        memset(model, GUARD, sizeof model);
        MPI_Put(model, SLOT_BYTES, MPI_BYTE, target, (MPI_Aint)world_rank * SLOT_BYTES, SLOT_BYTES,
                MPI_BYTE, window.win);
        MPI_Win_flush(target, window.win);
        memset(sent, length, sizeof sent);
        memset(model, length, (size_t)(3 * length) * (length % 2 ? sizeof(short) : sizeof(double)));
        MPI_Type_contiguous(length, length % 2 ? MPI_SHORT : MPI_DOUBLE, &type);
        MPI_Type_commit(&type);
        MPI_Put(sent, 3, type, target, (MPI_Aint)world_rank * SLOT_BYTES, 3, type, window.win);
        MPI_Type_free(&type);
        MPI_Win_flush(target, window.win);
        slot_expect(window.win, target, model, "type of a reused handle");
    }
    slots_free(&window);
}

static void large_data_moves(enum window_kind kind)
{
    const int len_bytes = (5 << 20) + 3;
    struct window window = window_make(kind, len_bytes + 64, 1, MPI_COMM_WORLD);
    unsigned char *sent = malloc((size_t)len_bytes), *got = malloc((size_t)len_bytes);
    struct random random = random_start((uint64_t)world_rank);
    int target = right_of(world_rank), origin = (world_rank + world_size - 1) % world_size;
    for (int i = 0; i < len_bytes; i++)
        sent[i] = (unsigned char)random_next(&random);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win);
    MPI_Put(sent, len_bytes, MPI_BYTE, target, 33, len_bytes, MPI_BYTE, window.win);
    MPI_Win_flush(target, window.win);
    MPI_Get(got, len_bytes, MPI_BYTE, target, 33, len_bytes, MPI_BYTE, window.win);
    MPI_Win_unlock(target, window.win);
    CHECK(memcmp(sent, got, (size_t)len_bytes) == 0, "a get does not return the put data");
    barrier(MPI_COMM_WORLD);
    random = random_start((uint64_t)origin);
    for (int i = 0; i < len_bytes; i++)
        if (!CHECK((unsigned char)window.base[33 + i] == (unsigned char)random_next(&random),
                   "byte %d differs", i))
            break;
    CHECK(window.base[32] == 0 && window.base[33 + len_bytes] == 0,
          "a byte next to the data changed");
    free(sent);
    free(got);
    window_free(&window);
}

static void a_count_of_zero_is_fine_at_any_displacement(enum window_kind kind)
{
    struct window window = slots_make(kind);
    static const MPI_Aint disps[] = {0, 5, SLOT_BYTES, 1 << 20};
    for (size_t i = 0; i < COUNT_OF(disps); i++) {
        CHECK_OK(MPI_Put(NULL, 0, MPI_INT, right_of(world_rank), disps[i], 0, MPI_INT, window.win));
        CHECK_OK(MPI_Get(NULL, 0, MPI_DOUBLE, right_of(world_rank), disps[i], 0, MPI_DOUBLE,
                         window.win));
        CHECK_OK(MPI_Accumulate(NULL, 0, MPI_INT, right_of(world_rank), disps[i], 0, MPI_INT,
                                MPI_SUM, window.win));
    }
    slots_free(&window);
}

static void oneself_is_a_target(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    double sent = 2.5, got = 0;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, world_rank, 0, window.win);
    MPI_Put(&sent, 1, MPI_DOUBLE, world_rank, 3, 1, MPI_DOUBLE, window.win);
    MPI_Win_flush(world_rank, window.win);
    CHECK(((double *)window.base)[3] == 2.5, "the own memory has not changed");
    MPI_Get(&got, 1, MPI_DOUBLE, world_rank, 3, 1, MPI_DOUBLE, window.win);
    MPI_Win_unlock(world_rank, window.win);
    CHECK(got == 2.5, "get from oneself");
    window_free(&window);
}

static void put_after_flush_is_visible(enum window_kind kind)
{
    struct window window = window_make(kind, 1024, 8, MPI_COMM_WORLD);
    int origin = (world_rank + world_size - 1) % world_size;
    MPI_Win_lock_all(0, window.win);
    for (int round = 1; round <= scaled_rounds(200); round++) {
        int64_t sent = 1000 * world_rank + round;
        int token = 0;
        MPI_Put(&sent, 1, MPI_INT64_T, right_of(world_rank), round % 128, 1, MPI_INT64_T,
                window.win);
        MPI_Win_flush(right_of(world_rank), window.win);
        MPI_Sendrecv(&round, 1, MPI_INT, right_of(world_rank), 0, &token, 1, MPI_INT, origin, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Win_sync(window.win);
        CHECK_EQUAL(((int64_t *)window.base)[round % 128], 1000 * origin + round);
    }
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

static void the_origin_buffer_may_be_changed_after_flush_local(enum window_kind kind)
{
    struct window window = slots_make(kind);
    static unsigned char model[SLOT_BYTES], buffer[512];
    int target = right_of(world_rank);
    memset(model, GUARD, sizeof model);
    for (int i = 0; i < 8; i++) {
        memset(buffer, i + 1, sizeof buffer);
        memset(model + 512 * i, i + 1, 512);
        MPI_Put(buffer, 512, MPI_BYTE, target, (MPI_Aint)world_rank * SLOT_BYTES + 512 * i, 512,
                MPI_BYTE, window.win);
        if (i % 2)
            MPI_Win_flush_local(target, window.win);
        else
            MPI_Win_flush_local_all(window.win);
        memset(buffer, 0xff, sizeof buffer);
    }
    MPI_Win_flush_all(window.win);
    slot_expect(window.win, target, model, "after flush_local");
    slots_free(&window);
}

static void the_origin_buffer_may_be_read_only_or_the_windows_own(enum window_kind kind)
{
    struct window window = slots_make(kind);
    static const char text[] = "constant data in the program's read-only segment";
    char *own = window.base + (size_t)world_rank * SLOT_BYTES;
    char got[sizeof text] = "";
    MPI_Aint disp = (MPI_Aint)world_rank * SLOT_BYTES;
    int target = right_of(world_rank);
    MPI_Put(text, sizeof text, MPI_CHAR, target, disp + 7, sizeof text, MPI_CHAR, window.win);
    MPI_Win_flush(target, window.win);
    MPI_Get(got, sizeof text, MPI_CHAR, target, disp + 7, sizeof text, MPI_CHAR, window.win);
    MPI_Win_flush(target, window.win);
    CHECK(memcmp(got, text, sizeof text) == 0, "read-only data arrives as \"%.20s\"", got);
    MPI_Get(own + 2000, sizeof text, MPI_CHAR, target, disp + 7, sizeof text, MPI_CHAR, window.win);
    MPI_Win_flush(target, window.win);
    MPI_Put(own + 2000, sizeof text, MPI_CHAR, target, disp + 1000, sizeof text, MPI_CHAR,
            window.win);
    MPI_Win_flush(target, window.win);
    MPI_Get(got, sizeof text, MPI_CHAR, target, disp + 1000, sizeof text, MPI_CHAR, window.win);
    MPI_Win_flush(target, window.win);
    CHECK(memcmp(got, text, sizeof text) == 0, "data from window to window arrives as \"%.20s\"",
          got);
    slots_free(&window);
}

/* One random access of the own slot of a random target, checked against the model of that slot. */
static void random_access(MPI_Win win, unsigned char *models, struct random *random)
{
    static const int units[] = {1, 2, 4, 8};
    static unsigned char buffer[SLOT_BYTES];
    int target = (int)random_below(random, (uint64_t)world_size), unit = units[target % 4];
    const struct test_type *type = &test_types[random_below(random, test_type_count)];
    unsigned char *model = models + (size_t)target * SLOT_BYTES;
    if (type->group == GROUP_PAIR || type->extent_bytes > 8)
        return;
    uint64_t most = random_below(random, 4) ? 8 : SLOT_BYTES / type->extent_bytes;
    int count = (int)random_below(random, most + 1);
    size_t len_bytes = (size_t)count * type->extent_bytes;
    size_t offset =
        random_below(random, (SLOT_BYTES - len_bytes) / (size_t)unit + 1) * (size_t)unit;
    MPI_Aint disp = (MPI_Aint)((size_t)world_rank * SLOT_BYTES + offset) / unit;
    if (random_below(random, 2)) {
        for (size_t i = 0; i < len_bytes; i++)
            buffer[i] = model[offset + i] = (unsigned char)random_next(random);
        MPI_Put(buffer, count, type->type, target, disp, count, type->type, win);
        MPI_Win_flush_local(target, win);
        return;
    }
    MPI_Win_flush(target, win);
    MPI_Get(buffer, count, type->type, target, disp, count, type->type, win);
    MPI_Win_flush(target, win);
    CHECK(memcmp(buffer, model + offset, len_bytes) == 0,
          "get of %d %s at offset %zu of rank %d differs", count, type->name, offset, target);
}

/* A flush separates overlapping puts, since MPI leaves their order open. */
static void random_accesses_follow_the_model(enum window_kind kind)
{
    size_t all_bytes = (size_t)world_size * SLOT_BYTES;
    struct random random = random_start((uint64_t)world_rank);
    struct window window =
        window_make(kind, (MPI_Aint)all_bytes, 1 << (world_rank % 4), MPI_COMM_WORLD);
    unsigned char *models = calloc(all_bytes, 1), *wanted = malloc(all_bytes);
    MPI_Win_lock_all(0, window.win);
    for (int round = 0; round < scaled_rounds(8000) && !harness_failed(); round++) {
        random_access(window.win, models, &random);
        MPI_Win_flush_all(window.win);
    }
    MPI_Win_unlock_all(window.win);
    MPI_Alltoall(models, SLOT_BYTES, MPI_BYTE, wanted, SLOT_BYTES, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, window.win);
    for (size_t i = 0; i < all_bytes; i++)
        if (!CHECK((unsigned char)window.base[i] == wanted[i],
                   "byte %zu of the own memory differs from the model", i))
            break;
    MPI_Win_unlock(world_rank, window.win);
    free(models);
    free(wanted);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static const struct test_case cases[] = {
    CASE(every_type_moves, KINDS_ALL, 1),
    CASE(misaligned_elements_move, KINDS_ALL, 1),
    CASE(padding_of_pairs_is_not_moved, KINDS_ALL, 1),
    CASE(contiguous_derived_types_move, KINDS_ALL, 1),
    CASE(a_freed_datatypes_handle_may_be_another_type, KINDS_BOTH, 1),
    CASE(large_data_moves, KINDS_ALL, 1),
    CASE(a_count_of_zero_is_fine_at_any_displacement, KINDS_ALL, 1),
    CASE(oneself_is_a_target, KINDS_ALL, 1),
    CASE(put_after_flush_is_visible, KINDS_ALL, 1),
    CASE(the_origin_buffer_may_be_changed_after_flush_local, KINDS_ALL, 1),
    CASE(the_origin_buffer_may_be_read_only_or_the_windows_own, KINDS_ALL, 1),
    CASE(random_accesses_follow_the_model, KINDS_ALL, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
