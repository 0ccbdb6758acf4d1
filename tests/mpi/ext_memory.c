/* Memory handles: a process that opens one reaches that part of its owner's memory, no other. Its
 * epochs exclude those of the owner's window, and a withdrawal ends them. Errors change nothing. */
#include "errors.h"
#include "oriel/ext.h"

#include <stdio.h>
#include <stdlib.h>

enum { WORDS = 4096, FROM = 512, PART_WORDS = 3000 };

static int right_of(int rank)
{
    return (rank + 1) % world_size;
}

static int left_of(int rank)
{
    return (rank + world_size - 1) % world_size;
}

static bool lacks_extensions(void)
{
    if (!MPIX_Query_oriel())
        harness_skip("extensions are Oriel's");
    return !MPIX_Query_oriel();
}

static bool is_on_own_node(int rank)
{
    MPI_Comm comm = node_comm();
    MPI_Group world, node;
    int there = MPI_UNDEFINED;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Comm_group(comm, &node);
    MPI_Group_translate_ranks(world, 1, &rank, node, &there);
    MPI_Group_free(&world);
    MPI_Group_free(&node);
    MPI_Comm_free(&comm);
    return there != MPI_UNDEFINED;
}

/* Of calls without a window: MPI-4.1 raises them on the first, MPI-3.1 on the second. */
static void return_errors(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

static MPIX_Memory_handle handle_make(MPI_Win win, MPI_Aint disp, MPI_Aint size_bytes)
{
    MPIX_Memory_handle handle;
    memset(&handle, 0xa5, sizeof handle);
    CHECK_OK(MPIX_Win_memory_handle_create(win, disp, size_bytes, &handle));
    return handle;
}

/* Sends this rank's handle to the left, and returns that of the rank on the right. */
static MPIX_Memory_handle handle_pass(const MPIX_Memory_handle *own)
{
    MPIX_Memory_handle theirs;
    MPI_Sendrecv(own, (int)sizeof *own, MPI_BYTE, left_of(world_rank), 0, &theirs,
                 (int)sizeof theirs, MPI_BYTE, right_of(world_rank), 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    return theirs;
}

static MPI_Win handle_open(const MPIX_Memory_handle *handle)
{
    MPI_Win win = MPI_WIN_NULL;
    CHECK_OK(MPIX_Win_memory_open(handle, MPI_INFO_NULL, &win));
    window_watch(win);
    return win;
}

static void words_fill(int64_t *words, int count, int64_t value)
{
    for (int i = 0; i < count; i++)
        words[i] = value + i;
}

static bool words_are(const int64_t *words, int count, int64_t value)
{
    for (int i = 0; i < count; i++)
        if (!CHECK(words[i] == value + i, "word %d is %lld, not %lld", i, (long long)words[i],
                   (long long)value + i))
            return false;
    return true;
}

static void an_opened_handle_is_a_window_of_the_part(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window window = window_make(kind, 8 * WORDS, 8, MPI_COMM_WORLD);
    int64_t *words = (int64_t *)window.base;
    words_fill(words, WORDS, 100000 * world_rank);
    barrier(MPI_COMM_WORLD);
    MPIX_Memory_handle own = handle_make(window.win, FROM, 8 * PART_WORDS);
    MPIX_Memory_handle theirs = handle_pass(&own);
    MPI_Win win = handle_open(&theirs);
    int owner = right_of(world_rank);
    static int64_t got[PART_WORDS], sent[PART_WORDS];
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    CHECK_OK(MPI_Get(got, PART_WORDS, MPI_INT64_T, 0, 0, PART_WORDS, MPI_INT64_T, win));
    CHECK_OK(MPI_Win_flush(0, win));
    words_are(got, PART_WORDS, 100000 * owner + FROM);
    CHECK_OK(MPI_Win_unlock(0, win));
    barrier(MPI_COMM_WORLD);
    words_fill(sent, PART_WORDS, 7000000 + world_rank);
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    CHECK_OK(MPI_Put(sent, 2000, MPI_INT64_T, 0, 0, 2000, MPI_INT64_T, win));
    for (int i = 2000; i < PART_WORDS; i++)
        MPI_Put(&sent[i], 1, MPI_INT64_T, 0, i, 1, MPI_INT64_T, win);
    CHECK_OK(MPI_Win_unlock(0, win));
    barrier(MPI_COMM_WORLD);
    words_are(words, FROM, 100000 * world_rank);
    words_are(words + FROM, PART_WORDS, 7000000 + left_of(world_rank));
    words_are(words + FROM + PART_WORDS, WORDS - FROM - PART_WORDS,
              100000 * world_rank + FROM + PART_WORDS);
    CHECK_OK(MPI_Win_free(&win));
    CHECK(win == MPI_WIN_NULL, "the handle is not null");
    barrier(MPI_COMM_WORLD);
    CHECK_OK(MPIX_Win_memory_handle_free(&own));
    window_free(&window);
}

/* Derived types, large counts, and each kind of epoch and completion. */
static void every_operation_works_on_it(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window window = window_make(kind, 8 * WORDS, 4, MPI_COMM_WORLD);
    int64_t *words = (int64_t *)window.base, value, result, compare;
    memset(words, 0, 8 * WORDS);
    barrier(MPI_COMM_WORLD);
    MPIX_Memory_handle own = handle_make(window.win, 2 * FROM, 8 * PART_WORDS);
    MPIX_Memory_handle theirs = handle_pass(&own);
    MPI_Win win = handle_open(&theirs);
    MPI_Datatype strided;
    MPI_Request request;
    int64_t twenty[20], many[20];
    MPI_Type_vector(20, 1, 3, MPI_INT64_T, &strided);
    MPI_Type_commit(&strided);
    words_fill(twenty, 20, 40);
    CHECK_OK(MPI_Win_lock_all(0, win));
    CHECK_OK(MPI_Put(twenty, 20, MPI_INT64_T, 0, 20, 1, strided, win));
    CHECK_OK(MPI_Win_flush_all(win));
    memset(many, 0, sizeof many);
    CHECK_OK(MPI_Rget(many, 20, MPI_INT64_T, 0, 20, 1, strided, win, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    words_are(many, 20, 40);
    CHECK_OK(MPI_Accumulate(twenty, 20, MPI_INT64_T, 0, 20, 1, strided, MPI_SUM, win));
    CHECK_OK(MPI_Get_accumulate(NULL, 0, MPI_INT64_T, many, 20, MPI_INT64_T, 0, 20, 1, strided,
                                MPI_NO_OP, win));
    CHECK_OK(MPI_Win_flush(0, win));
    for (int i = 0; i < 20; i++)
        CHECK_EQUAL(many[i], 2 * (40 + i));
    CHECK_OK(MPI_Win_unlock_all(win));
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK, win));
    value = 5;
    CHECK_OK(MPI_Fetch_and_op(&value, &result, MPI_INT64_T, 0, 0, MPI_SUM, win));
    CHECK_OK(MPI_Win_flush_local(0, win));
    CHECK_EQUAL(result, 0);
    compare = 5, value = 6;
    CHECK_OK(MPI_Compare_and_swap(&value, &compare, &result, MPI_INT64_T, 0, 0, win));
    CHECK_OK(MPI_Win_unlock(0, win));
    CHECK_EQUAL(result, 5);
    barrier(MPI_COMM_WORLD);
    CHECK_EQUAL(words[FROM], 6);
    CHECK_EQUAL(words[FROM + 10], 80);
    CHECK_EQUAL(words[FROM + 13], 82);
    MPI_Type_free(&strided);
    CHECK_OK(MPI_Win_free(&win));
    window_free(&window);
}

/* Single elements and many, from the window's ranks and from holders, at once on each memory. */
static void accumulates_are_atomic_with_the_windows(enum window_kind kind)
{
    enum { ELEMENTS = 100 };
    if (lacks_extensions())
        return;
    struct window window = window_make(kind, 8 * ELEMENTS, 8, MPI_COMM_WORLD);
    int64_t *words = (int64_t *)window.base, ones[ELEMENTS], one = 1, results[ELEMENTS];
    int rounds = scaled_rounds(400), target = right_of(world_rank);
    memset(words, 0, 8 * ELEMENTS);
    for (int i = 0; i < ELEMENTS; i++)
        ones[i] = 1;
    barrier(MPI_COMM_WORLD);
    MPIX_Memory_handle own = handle_make(window.win, 0, 8 * ELEMENTS);
    MPIX_Memory_handle theirs = handle_pass(&own);
    MPI_Win win = handle_open(&theirs);
    struct random random = random_start((uint64_t)world_rank);
    CHECK_OK(MPI_Win_lock_all(0, window.win));
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    for (int i = 0; i < rounds; i++)
        for (int half = 0; half < 4; half++) {
            MPI_Win to = half % 2 ? win : window.win;
            int rank = half == 2 ? world_rank : half % 2 ? 0 : target;
            CHECK_OK(MPI_Win_flush_local(rank, to));
            if (random_below(&random, 3) == 0)
                MPI_Accumulate(ones, ELEMENTS, MPI_INT64_T, rank, 0, ELEMENTS, MPI_INT64_T, MPI_SUM,
                               to);
            else
                for (int k = 0; k < ELEMENTS; k++)
                    MPI_Fetch_and_op(&one, &results[k], MPI_INT64_T, rank, k, MPI_SUM, to);
        }
    CHECK_OK(MPI_Win_unlock(0, win));
    CHECK_OK(MPI_Win_unlock_all(window.win));
    barrier(MPI_COMM_WORLD);
    for (int k = 0; k < ELEMENTS; k++)
        CHECK_EQUAL(words[k], 4 * (int64_t)rounds);
    CHECK_OK(MPI_Win_free(&win));
    window_free(&window);
}

/* An update that is not atomic: each epoch must exclude all others, also lock_all's readers. */
static void exclusive_locks_exclude_those_of_the_window(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window window = window_make(kind, 16, 8, MPI_COMM_WORLD);
    int64_t *words = (int64_t *)window.base, pair[2];
    MPIX_Memory_handle handle;
    int rounds = scaled_rounds(300);
    memset(words, 0, 16);
    if (world_rank == 0)
        handle = handle_make(window.win, 0, 16);
    MPI_Bcast(&handle, (int)sizeof handle, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Win win = handle_open(&handle);
    struct random random = random_start((uint64_t)world_rank);
    for (int i = 0; i < 2 * rounds && !harness_failed(); i++) {
        MPI_Win on = random_below(&random, 2) ? win : window.win;
        bool updates = i % 2;
        bool all = !updates && random_below(&random, 2);
        if (all)
            MPI_Win_lock_all(0, on);
        else
            MPI_Win_lock(updates ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, on);
        MPI_Get(pair, 2, MPI_INT64_T, 0, 0, 2, MPI_INT64_T, on);
        MPI_Win_flush(0, on);
        CHECK(pair[0] == pair[1], "round %d: %lld, %lld", i, (long long)pair[0],
              (long long)pair[1]);
        random_pause(&random, 20);
        pair[0]++;
        if (updates)
            MPI_Put(&pair[0], 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, on);
        MPI_Win_flush(0, on);
        random_pause(&random, 20);
        if (updates)
            MPI_Put(&pair[0], 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, on);
        if (all)
            MPI_Win_unlock_all(on);
        else
            MPI_Win_unlock(0, on);
    }
    barrier(MPI_COMM_WORLD);
    if (world_rank == 0)
        CHECK_EQUAL(words[0], (int64_t)rounds * world_size);
    CHECK_OK(MPI_Win_free(&win));
    window_free(&window);
}

/* Each rank's window is its own; no other process is in its group. */
static void processes_outside_the_window_open_it(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window window = window_make(kind, 8 * WORDS, 8, MPI_COMM_SELF);
    int64_t *words = (int64_t *)window.base, value = 31 + world_rank, one = 1;
    memset(words, 0, 8 * WORDS);
    MPIX_Memory_handle own = handle_make(window.win, 1, 16);
    MPIX_Memory_handle theirs = handle_pass(&own);
    MPI_Win win = handle_open(&theirs);
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    CHECK_OK(MPI_Put(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win));
    CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, MPI_SUM, win));
    CHECK_OK(MPI_Win_unlock(0, win));
    CHECK_OK(MPI_Win_free(&win));
    barrier(MPI_COMM_WORLD);
    CHECK_EQUAL(words[0], 0);
    CHECK_EQUAL(words[1], 31 + left_of(world_rank));
    CHECK_EQUAL(words[2], 1);
    window_free(&window);
}

/* The owner frees the handle in the middle of an epoch: it returns with all that the epoch did. */
static void a_withdrawal_waits_for_epochs(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window window = window_make(kind, 8 * WORDS, 8, MPI_COMM_WORLD);
    int64_t *words = (int64_t *)window.base;
    struct random random = random_start((uint64_t)world_rank);
    int rounds = scaled_rounds(60);
    for (int round = 1; round <= rounds && !harness_failed(); round++) {
        MPIX_Memory_handle own = handle_make(window.win, 0, 8 * WORDS);
        MPIX_Memory_handle theirs = handle_pass(&own);
        MPI_Win win = handle_open(&theirs);
        int64_t value = 0, seen;
        memset(words, 0, 24);
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        barrier(MPI_COMM_WORLD);
        random_pause(&random, 300);
        /* the holder's epochs: two words, the second after a pause, until they are refused; each
         * rank frees its own handle between two of them */
        int code = MPI_SUCCESS, when = (int)random_below(&random, 4);
        bool freed = false;
        for (int i = 0; code == MPI_SUCCESS; i++) {
            if (i == when) {
                freed = true;
                CHECK_OK(MPIX_Win_memory_handle_free(&own));
                seen = load_word(&words[0]);
                CHECK_EQUAL(load_word(&words[1]), seen);
                random_pause(&random, 300);
                CHECK_EQUAL(load_word(&words[0]), seen);
                CHECK_EQUAL(load_word(&words[1]), seen);
            }
            code = i % 2 ? MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win) : MPI_Win_lock_all(0, win);
            if (code != MPI_SUCCESS)
                break;
            value++;
            MPI_Put(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win);
            MPI_Win_flush(0, win);
            random_pause(&random, 100);
            MPI_Put(&value, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, win);
            CHECK_OK(i % 2 ? MPI_Win_unlock(0, win) : MPI_Win_unlock_all(win));
        }
        CHECK_CLASS(MPI_ERR_RMA_ATTACH, code);
        if (!freed)
            CHECK_OK(MPIX_Win_memory_handle_free(&own));
        barrier(MPI_COMM_WORLD);
        CHECK_CLASS(MPI_ERR_RMA_ATTACH, MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Put(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win));
        return_errors();
        MPI_Win again;
        CHECK_CLASS(MPI_ERR_RMA_ATTACH, MPIX_Win_memory_open(&theirs, MPI_INFO_NULL, &again));
        CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_memory_handle_free(&own));
        CHECK_OK(MPI_Win_free(&win));
        barrier(MPI_COMM_WORLD);
    }
    window_free(&window);
}

static void the_end_of_the_window_withdraws_its_handles(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window window = window_make(kind, 8 * WORDS, 8, MPI_COMM_WORLD);
    int64_t value = 3;
    MPIX_Memory_handle own = handle_make(window.win, 0, 8 * WORDS);
    MPIX_Memory_handle second = handle_make(window.win, 8, 8);
    MPIX_Memory_handle theirs = handle_pass(&own);
    MPIX_Memory_handle their_second = handle_pass(&second);
    MPI_Win win = handle_open(&theirs), other = MPI_WIN_NULL;
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    return_errors();
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    CHECK_OK(MPI_Put(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win));
    CHECK_OK(MPI_Win_unlock(0, win));
    window_free(&window);
    barrier(MPI_COMM_WORLD);
    CHECK_CLASS(MPI_ERR_RMA_ATTACH, MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    CHECK_CLASS(MPI_ERR_RMA_ATTACH, MPI_Win_lock_all(0, win));
    CHECK_CLASS(MPI_ERR_RMA_ATTACH, MPIX_Win_memory_open(&their_second, MPI_INFO_NULL, &other));
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_memory_handle_free(&own));
    CHECK_OK(MPI_Win_free(&win));
}

/* Many windows of one handle, and many handles one after the other: none is left over. */
static void handles_and_windows_come_and_go(enum window_kind kind)
{
    enum { OPEN = 20 };
    if (lacks_extensions())
        return;
    struct window window = window_make(kind, 8 * WORDS, 8, MPI_COMM_WORLD);
    int64_t *words = (int64_t *)window.base, one = 1;
    memset(words, 0, 8 * WORDS);
    barrier(MPI_COMM_WORLD);
    for (int round = 0; round < scaled_rounds(20); round++) {
        MPIX_Memory_handle own = handle_make(window.win, round, 8);
        MPIX_Memory_handle theirs = handle_pass(&own);
        MPI_Win wins[OPEN];
        for (int i = 0; i < OPEN; i++)
            wins[i] = handle_open(&theirs);
        for (int i = 0; i < OPEN; i++) {
            CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, wins[i]));
            CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, wins[i]));
        }
        for (int i = 0; i < OPEN; i++) {
            CHECK_OK(MPI_Win_unlock(0, wins[i]));
            CHECK_OK(MPI_Win_free(&wins[i]));
        }
        barrier(MPI_COMM_WORLD);
        CHECK_EQUAL(words[round], OPEN);
        CHECK_OK(MPIX_Win_memory_handle_free(&own));
    }
    window_free(&window);
}

static void handles_of_a_dynamic_window(enum window_kind kind)
{
    (void)kind;
    if (lacks_extensions())
        return;
    static int64_t words[WORDS];
    MPI_Win dynamic;
    MPI_Aint address;
    MPIX_Memory_handle none;
    int64_t sent[64], one = 1;
    memset(words, 0, sizeof words);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic);
    MPI_Win_set_errhandler(dynamic, MPI_ERRORS_RETURN);
    MPI_Get_address(&words[8], &address);
    CHECK_CLASS(MPI_ERR_RMA_RANGE, MPIX_Win_memory_handle_create(dynamic, address, 8, &none));
    CHECK_OK(MPI_Win_attach(dynamic, words, sizeof words));
    MPIX_Memory_handle own = handle_make(dynamic, address, 8 * 64);
    MPIX_Memory_handle theirs = handle_pass(&own);
    MPI_Win win = handle_open(&theirs);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    words_fill(sent, 64, 70);
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    CHECK_OK(MPI_Put(sent, 64, MPI_INT64_T, 0, 0, 64, MPI_INT64_T, win));
    CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 8, 1, MPI_INT64_T, MPI_SUM, win));
    CHECK_CLASS(MPI_ERR_RMA_RANGE, MPI_Put(sent, 1, MPI_INT64_T, 0, 505, 1, MPI_INT64_T, win));
    CHECK_OK(MPI_Win_unlock(0, win));
    barrier(MPI_COMM_WORLD);
    CHECK_EQUAL(words[7], 0);
    CHECK_EQUAL(words[8], 70);
    CHECK_EQUAL(words[9], 72);
    words_are(words + 10, 62, 72);
    CHECK_EQUAL(words[72], 0);
    CHECK_OK(MPI_Win_free(&win));
    barrier(MPI_COMM_WORLD);
    CHECK_OK(MPIX_Win_memory_handle_free(&own));
    CHECK_OK(MPI_Win_detach(dynamic, words));
    MPI_Win_free(&dynamic);
}

/* --- errors --- */

static void an_opened_window_checks_its_calls(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window window = guarded_make(kind);
    int64_t value = 5;
    MPIX_Memory_handle own = handle_make(window.win, 2, 64), none;
    MPIX_Memory_handle theirs = handle_pass(&own);
    MPI_Win win = handle_open(&theirs);
    MPI_Group group;
    MPI_Info info;
    char path[MPI_MAX_INFO_VAL + 1] = "";
    int size = 0, flag = 0;
    MPI_Aint *bytes;
    int *unit;
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    CHECK_OK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &bytes, &flag));
    CHECK_EQUAL(*bytes, 64);
    CHECK_OK(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &unit, &flag));
    CHECK_EQUAL(*unit, 8);
    CHECK_OK(MPI_Win_get_info(win, &info));
    MPI_Info_get(info, "oriel_memory", MPI_MAX_INFO_VAL, path, &flag);
    if (is_on_own_node(right_of(world_rank)))
        CHECK(flag && (kind == KIND_HEAP) == (strcmp(path, "direct") != 0), "oriel_memory is %s",
              path);
    MPI_Info_free(&info);
    CHECK_OK(MPI_Win_get_group(win, &group));
    MPI_Group_size(group, &size);
    CHECK_EQUAL(size, 1);
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_post(group, 0, win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_start(group, 0, win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_complete(win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_wait(win));
    MPI_Group_free(&group);
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_notify_wait(win, 0, 1));
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_wait_until(win, 0, MPI_INT64_T, MPIX_CMP_EQ, &value));
    CHECK_CLASS(MPI_ERR_RMA_FLAVOR, MPI_Win_attach(win, &value, 8));
    CHECK_CLASS(MPI_ERR_UNSUPPORTED_OPERATION, MPIX_Win_memory_handle_create(win, 0, 8, &none));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Put(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_flush(0, win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(0, win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_unlock_all(win));
    CHECK_CLASS(MPI_ERR_RANK, MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
    CHECK_CLASS(MPI_ERR_LOCKTYPE, MPI_Win_lock(77, 0, 0, win));
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_free(&win));
    CHECK_CLASS(MPI_ERR_RMA_RANGE, MPI_Put(&value, 1, MPI_INT64_T, 0, 8, 1, MPI_INT64_T, win));
    CHECK_CLASS(MPI_ERR_DISP, MPI_Put(&value, 1, MPI_INT64_T, 0, -1, 1, MPI_INT64_T, win));
    CHECK_CLASS(MPI_ERR_RANK, MPI_Put(&value, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, win));
    CHECK_OK(MPI_Win_unlock(0, win));
    CHECK_OK(MPI_Win_lock_all(0, win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(0, win));
    CHECK_OK(MPI_Win_unlock_all(win));
    CHECK_OK(MPI_Win_free(&win));
    guarded_free(&window);
}

static int deletions_refused;

static int refuse_first_deletion(MPI_Win win, int keyval, void *value, void *state)
{
    (void)win, (void)keyval, (void)value, (void)state;
    return deletions_refused++ == 0 ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* The program's callback refuses: the window continues to work, and can be freed later. */
static void an_opened_window_whose_end_is_refused_lives_on(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window window = guarded_make(kind);
    int64_t value = 5;
    int keyval;
    MPIX_Memory_handle own = handle_make(window.win, 2, 64);
    MPIX_Memory_handle theirs = handle_pass(&own);
    MPI_Win win = handle_open(&theirs);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, refuse_first_deletion, &keyval, NULL);
    MPI_Win_set_attr(win, keyval, NULL);
    deletions_refused = 0;
    const int code = MPI_Win_free(&win);
    if (code != MPI_SUCCESS) { /* Open MPI ignores it */
        CHECK_CLASS(MPI_ERR_OTHER, code);
        CHECK_OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
        CHECK_OK(MPI_Get(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win));
        CHECK_OK(MPI_Win_unlock_all(win));
        CHECK_EQUAL(value, 0x5a5a5a5a5a5a5a5a);
        CHECK_OK(MPI_Win_free(&win));
    }
    CHECK(win == MPI_WIN_NULL, "the window is still there");
    CHECK(deletions_refused > 0, "no callback has refused");
    MPI_Win_free_keyval(&keyval);
    barrier(MPI_COMM_WORLD);
    guarded_free(&window);
}

static void calls_of_handles_check_their_arguments(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window window = guarded_make(kind);
    MPIX_Memory_handle handle, garbage;
    MPI_Win win = MPI_WIN_NULL;
    return_errors();
    CHECK_CLASS(MPI_ERR_RMA_RANGE,
                MPIX_Win_memory_handle_create(window.win, 0, GUARD_BYTES + 1, &handle));
    CHECK_CLASS(MPI_ERR_RMA_RANGE,
                MPIX_Win_memory_handle_create(window.win, GUARD_BYTES / 8 + 1, 0, &handle));
    CHECK_CLASS(MPI_ERR_RMA_RANGE,
                MPIX_Win_memory_handle_create(window.win, INT64_MAX / 2, 8, &handle));
    CHECK_CLASS(MPI_ERR_SIZE, MPIX_Win_memory_handle_create(window.win, 0, -1, &handle));
    CHECK_CLASS(MPI_ERR_DISP, MPIX_Win_memory_handle_create(window.win, -1, 8, &handle));
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_memory_handle_create(window.win, 0, 8, NULL));
    CHECK_CLASS(MPI_ERR_WIN, MPIX_Win_memory_handle_create(MPI_WIN_NULL, 0, 8, &handle));
    handle = handle_make(window.win, GUARD_BYTES / 8, 0);
    CHECK_OK(MPIX_Win_memory_handle_free(&handle));
    handle = handle_make(window.win, 0, GUARD_BYTES);
    memset(&garbage, 0, sizeof garbage);
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_memory_open(&garbage, MPI_INFO_NULL, &win));
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_memory_handle_free(&garbage));
    for (size_t i = 0; i < sizeof handle.bytes; i++) {
        garbage = handle;
        garbage.bytes[i] ^= 1;
        CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_memory_open(&garbage, MPI_INFO_NULL, &win));
        CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_memory_handle_free(&garbage));
    }
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_memory_open(NULL, MPI_INFO_NULL, &win));
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_memory_open(&handle, MPI_INFO_NULL, NULL));
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_memory_handle_free(NULL));
    CHECK(win == MPI_WIN_NULL, "a call that failed has set the window");
    MPIX_Memory_handle theirs = handle_pass(&handle);
    if (world_size > 1)
        CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_memory_handle_free(&theirs));
    barrier(MPI_COMM_WORLD);
    /* an epoch of the owner itself would never end in these calls */
    win = handle_open(&handle);
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPIX_Win_memory_handle_free(&handle));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_free(&window.win));
    CHECK_OK(MPI_Win_unlock(0, win));
    CHECK_OK(MPIX_Win_memory_handle_free(&handle));
    CHECK_OK(MPI_Win_free(&win));
    guarded_free(&window);
}

/* Each rank opens the handles of all, also of ranks on other nodes. */
static void handles_are_opened_on_all_nodes(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window window = guarded_make(kind);
    int64_t value = 9 + world_rank, seen = 0;
    MPI_Aint *bytes;
    int flag;
    MPIX_Memory_handle own = handle_make(window.win, SCRATCH_WORD, 8);
    for (int i = 0; i < world_size; i++) {
        MPIX_Memory_handle handle = own;
        MPI_Info info;
        char path[MPI_MAX_INFO_VAL + 1] = "";
        MPI_Bcast(&handle, (int)sizeof handle, MPI_BYTE, i, MPI_COMM_WORLD);
        MPI_Win win = handle_open(&handle);
        CHECK_OK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &bytes, &flag));
        CHECK_EQUAL(*bytes, 8);
        CHECK_OK(MPI_Win_get_info(win, &info));
        MPI_Info_get(info, "oriel_memory", MPI_MAX_INFO_VAL, path, &flag);
        CHECK(flag && is_on_own_node(i) == (strcmp(path, "ucx") != 0), "oriel_memory is %s", path);
        MPI_Info_free(&info);
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        CHECK_OK(MPI_Put(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win));
        CHECK_OK(MPI_Get(&seen, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win));
        CHECK_OK(MPI_Win_unlock(0, win));
        CHECK_EQUAL(seen, value);
        CHECK_OK(MPI_Win_free(&win));
    }
    guarded_free(&window);
}

/* Without a network (ORIEL_NET=off) the host serves windows over several nodes. */
static void owners_without_a_network_are_opened_on_their_node(enum window_kind kind)
{
    const char *net = getenv("ORIEL_NET");
    if (lacks_extensions())
        return;
    if (net == NULL || strcmp(net, "off") != 0) {
        harness_skip("there is a network");
        return;
    }
    struct window window = window_make(kind, 64, 8, MPI_COMM_SELF);
    MPIX_Memory_handle own = handle_make(window.win, 0, 64);
    MPIX_Memory_handle theirs = handle_pass(&own);
    MPI_Win win = MPI_WIN_NULL;
    return_errors();
    CHECK_CLASS(is_on_own_node(right_of(world_rank)) ? MPI_SUCCESS : MPI_ERR_UNSUPPORTED_OPERATION,
                MPIX_Win_memory_open(&theirs, MPI_INFO_NULL, &win));
    if (win != MPI_WIN_NULL)
        CHECK_OK(MPI_Win_free(&win));
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static const struct test_case cases[] = {
    CASE(an_opened_handle_is_a_window_of_the_part, KINDS_ALL, 1),
    CASE(every_operation_works_on_it, KINDS_ALL, 1),
    CASE(accumulates_are_atomic_with_the_windows, KINDS_ALL, 1),
    CASE(exclusive_locks_exclude_those_of_the_window, KINDS_ALL, 1),
    CASE(processes_outside_the_window_open_it, KINDS_BOTH, 1),
    CASE(a_withdrawal_waits_for_epochs, KINDS_BOTH, 2),
    CASE(the_end_of_the_window_withdraws_its_handles, KINDS_ALL, 1),
    CASE(handles_and_windows_come_and_go, KINDS_BOTH, 1),
    CASE(handles_of_a_dynamic_window, KIND_ANY, 1),
    CASE(an_opened_window_checks_its_calls, KINDS_ALL, 1),
    CASE(an_opened_window_whose_end_is_refused_lives_on, KINDS_BOTH, 1),
    CASE(calls_of_handles_check_their_arguments, KINDS_BOTH, 1),
    CASE(handles_are_opened_on_all_nodes, KINDS_BOTH, 1),
    CASE(owners_without_a_network_are_opened_on_their_node, KINDS_BOTH, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
