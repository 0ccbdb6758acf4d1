/* Persistent operations: each start issues the operation again, with the buffer's present contents,
 * and every completion function completes it, mixed with requests of the host. A plain MPI program,
 * run by the test rows; skipped without Oriel. */
#include "ext_persistent.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static MPI_Status *volatile no_statuses =
    MPI_STATUSES_IGNORE; /* gcc takes MPICH's for an array that is too short */

static int right_of(int rank)
{
    return (rank + 1) % world_size;
}

static int left_of(int rank)
{
    return (rank + world_size - 1) % world_size;
}

/* Completes the request, which stays. */
static void complete(MPI_Request *request, int completion)
{
    MPI_Request before = *request;
    MPI_Status status;
    int done = 0, index = -1, count = 0;
    switch (completion % COMPLETIONS) {
    case 0: CHECK_OK(MPI_Wait(request, MPI_STATUS_IGNORE)); break;
    case 1:
        while (!done)
            CHECK_OK(MPI_Test(request, &done, MPI_STATUS_IGNORE));
        break;
    case 2: CHECK_OK(MPI_Waitall(1, request, &status)); break;
    case 3: CHECK_OK(MPI_Waitany(1, request, &index, MPI_STATUS_IGNORE)); break;
    case 4: CHECK_OK(MPI_Waitsome(1, request, &count, &index, &status)); break;
    case 5:
        while (!done)
            CHECK_OK(MPI_Testall(1, request, &done, &status));
        break;
    case 6:
        while (!done)
            CHECK_OK(MPI_Testany(1, request, &index, &done, MPI_STATUS_IGNORE));
        break;
    case 7:
        while (count == 0)
            CHECK_OK(MPI_Testsome(1, request, &count, &index, &status));
        break;
    default:
        while (!done)
            CHECK_OK(MPI_Request_get_status(*request, &done, MPI_STATUS_IGNORE));
        CHECK_OK(MPI_Wait(request, MPI_STATUS_IGNORE));
    }
    if (completion % COMPLETIONS == 3 || completion % COMPLETIONS == 4 ||
        completion % COMPLETIONS == 6 || completion % COMPLETIONS == 7)
        CHECK_EQUAL(index, 0);
    CHECK(*request == before, "a completed persistent request has changed");
}

/* --- single requests --- */

static void each_start_puts_what_the_buffer_has(enum window_kind kind)
{
    enum { STARTS = 2 * COMPLETIONS };
    int64_t value = 0;
    MPI_Request request;
    struct window window = window_make(kind, (MPI_Aint)8 * world_size, 8, MPI_COMM_WORLD);
    const int64_t *words = (const int64_t *)window.base;
    CHECK_OK(MPIX_Put_init(&value, 1, MPI_INT64_T, right_of(world_rank), world_rank, 1, MPI_INT64_T,
                           window.win, &request));
    MPI_Win_lock_all(0, window.win);
    for (int start = 0; start < STARTS; start++) {
        value = 1000 * start + world_rank;
        CHECK_OK(MPI_Start(&request));
        complete(&request, start);
        value = -1;
        MPI_Win_flush(right_of(world_rank), window.win);
        barrier(MPI_COMM_WORLD);
        MPI_Win_sync(window.win);
        CHECK_EQUAL(words[left_of(world_rank)], 1000 * start + left_of(world_rank));
        barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(window.win);
    CHECK_OK(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL, "a freed request is not MPI_REQUEST_NULL");
    window_free(&window);
}

static void each_start_gets_what_the_target_has(enum window_kind kind)
{
    enum { STARTS = 2 * COMPLETIONS };
    int64_t seen;
    MPI_Request request;
    struct window window = window_make(kind, 16, 8, MPI_COMM_WORLD);
    int64_t *words = (int64_t *)window.base;
    CHECK_OK(MPIX_Get_init(&seen, 1, MPI_INT64_T, right_of(world_rank), 1, 1, MPI_INT64_T,
                           window.win, &request));
    for (int start = 0; start < STARTS; start++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, world_rank, 0, window.win);
        words[1] = 1000 * start + world_rank;
        MPI_Win_unlock(world_rank, window.win);
        barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_SHARED, right_of(world_rank), 0, window.win);
        seen = -1;
        CHECK_OK(MPI_Start(&request));
        complete(&request, start);
        CHECK_EQUAL(seen, 1000 * start + right_of(world_rank));
        MPI_Win_unlock(right_of(world_rank), window.win);
        barrier(MPI_COMM_WORLD);
    }
    CHECK_OK(MPI_Request_free(&request));
    window_free(&window);
}

static void accumulates_count_each_start(enum window_kind kind)
{
    enum { STARTS = 40 };
    int64_t one = 1, many[5] = {1, 2, 3, 4, 5}, old[5], before;
    MPI_Request requests[3];
    struct window window = window_make(kind, 8 * 8, 8, MPI_COMM_WORLD);
    int64_t *words = (int64_t *)window.base;
    memset(words, 0, 8 * 8);
    barrier(MPI_COMM_WORLD);
    CHECK_OK(MPIX_Accumulate_init(many, 5, MPI_INT64_T, 0, 0, 5, MPI_INT64_T, MPI_SUM, window.win,
                                  &requests[0]));
    CHECK_OK(MPIX_Get_accumulate_init(many, 5, MPI_INT64_T, old, 5, MPI_INT64_T, 0, 0, 5,
                                      MPI_INT64_T, MPI_SUM, window.win, &requests[1]));
    CHECK_OK(MPIX_Fetch_and_op_init(&one, &before, MPI_INT64_T, 0, 6, MPI_SUM, window.win,
                                    &requests[2]));
    MPI_Win_lock_all(0, window.win);
    int64_t last = -1;
    for (int start = 0; start < STARTS; start++) {
        CHECK_OK(MPI_Startall(3, requests));
        CHECK_OK(MPI_Waitall(3, requests, no_statuses));
        CHECK(before > last && before < (int64_t)STARTS * world_size,
              "fetch_and_op returned %lld after %lld", (long long)before, (long long)last);
        CHECK(old[4] >= 5 * (2 * start + 0), "get_accumulate returned %lld in start %d",
              (long long)old[4], start);
        last = before;
    }
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, window.win);
    for (int i = 0; i < 5 && world_rank == 0; i++)
        CHECK_EQUAL(words[i], (i + 1) * 2 * STARTS * world_size);
    if (world_rank == 0)
        CHECK_EQUAL(words[6], STARTS * world_size);
    MPI_Win_unlock(world_rank, window.win);
    for (int i = 0; i < 3; i++)
        CHECK_OK(MPI_Request_free(&requests[i]));
    window_free(&window);
}

/* Elements that the CPU updates, and operators that read nothing. */
static void single_elements_are_updated(enum window_kind kind)
{
    int64_t value = 3, before = -1;
    MPI_Request requests[3];
    int target = right_of(world_rank);
    struct window window = window_make(kind, 16, 8, MPI_COMM_WORLD);
    memset(window.base, 0, 16);
    barrier(MPI_COMM_WORLD);
    CHECK_OK(MPIX_Accumulate_init(&value, 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, MPI_SUM,
                                  window.win, &requests[0]));
    CHECK_OK(MPIX_Fetch_and_op_init(NULL, &before, MPI_INT64_T, target, 1, MPI_NO_OP, window.win,
                                    &requests[1]));
    CHECK_OK(MPIX_Get_accumulate_init(&value, 1, MPI_INT64_T, &before, 1, MPI_INT64_T, target, 1, 1,
                                      MPI_INT64_T, MPI_REPLACE, window.win, &requests[2]));
    MPI_Win_lock_all(0, window.win);
    for (int start = 1; start < 20; start++) {
        CHECK_OK(MPI_Start(&requests[0]));
        complete(&requests[0], start);
        CHECK_OK(MPI_Start(&requests[1]));
        complete(&requests[1], start);
        CHECK_EQUAL(before, 3 * start);
    }
    CHECK_OK(MPI_Start(&requests[2]));
    complete(&requests[2], 0);
    CHECK_EQUAL(before, 3 * 19);
    CHECK_OK(MPI_Start(&requests[1]));
    complete(&requests[1], 0);
    CHECK_EQUAL(before, 3);
    MPI_Win_unlock_all(window.win);
    for (int i = 0; i < 3; i++)
        CHECK_OK(MPI_Request_free(&requests[i]));
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* Elements of each size, with the present contents of the buffers. Every third swap expects another
 * value. */
static void a_swap_compares_at_each_start(enum window_kind kind)
{
    enum { SIZES = 4, STARTS = 3 * COMPLETIONS };
    const MPI_Datatype types[SIZES] = {MPI_INT64_T, MPI_INT32_T, MPI_INT16_T, MPI_INT8_T};
    int64_t desired[SIZES], expected[SIZES], found[SIZES] = {0}, value = 0;
    MPI_Request requests[SIZES];
    int target = right_of(world_rank);
    struct window window = window_make(kind, 8 * SIZES, 8, MPI_COMM_WORLD);
    memset(window.base, 0, 8 * SIZES);
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < SIZES; i++)
        CHECK_OK(MPIX_Compare_and_swap_init(&desired[i], &expected[i], &found[i], types[i], target,
                                            i, window.win, &requests[i]));
    MPI_Win_lock_all(0, window.win);
    for (int start = 0; start < STARTS; start++) {
        const bool fails = start % 3 == 2;
        for (int i = 0; i < SIZES; i++) {
            desired[i] = value + 1;
            expected[i] = fails ? 99 : value;
            CHECK_OK(MPI_Start(&requests[i]));
            complete(&requests[i], start);
            CHECK_EQUAL(found[i], value);
        }
        value += !fails;
    }
    MPI_Win_unlock_all(window.win);
    for (int i = 0; i < SIZES; i++)
        CHECK_OK(MPI_Request_free(&requests[i]));
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* All ranks count by swaps of one element. */
static void started_swaps_are_atomic(enum window_kind kind)
{
    enum { COUNTED = 50 };
    int64_t next, expected = 0, found;
    MPI_Request request;
    struct window window = window_make(kind, 8, 8, MPI_COMM_WORLD);
    *(int64_t *)window.base = 0;
    barrier(MPI_COMM_WORLD);
    CHECK_OK(MPIX_Compare_and_swap_init(&next, &expected, &found, MPI_INT64_T, 0, 0, window.win,
                                        &request));
    MPI_Win_lock_all(0, window.win);
    for (int done = 0; done < scaled_rounds(COUNTED) && !harness_failed();) {
        next = expected + 1;
        CHECK_OK(MPI_Start(&request));
        CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        done += found == expected;
        expected = found == expected ? next : found;
    }
    MPI_Win_unlock_all(window.win);
    CHECK_OK(MPI_Request_free(&request));
    barrier(MPI_COMM_WORLD);
    if (world_rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win);
        CHECK_EQUAL(*(int64_t *)window.base, (int64_t)scaled_rounds(COUNTED) * world_size);
        MPI_Win_unlock(0, window.win);
    }
    window_free(&window);
}

/* --- datatypes --- */

/* A vector (one loop), and blocks in no order (a plan). */
static MPI_Datatype pattern_make(int pattern)
{
    static const int places[] = {9, 2, 5, 12, 0, 14, 7};
    MPI_Datatype made;
    if (pattern == 0)
        MPI_Type_vector(7, 1, 2, MPI_INT64_T, &made);
    else
        MPI_Type_create_indexed_block(7, 1, places, MPI_INT64_T, &made);
    MPI_Type_commit(&made);
    return made;
}

/* The program frees its datatypes, and makes others that may get their handles. */
static void datatypes_may_be_freed_after_the_creation(enum window_kind kind)
{
    enum { WORDS = 16, STARTS = 5 };
    int64_t out[WORDS], in[WORDS], wanted[WORDS];
    int target = right_of(world_rank);
    struct window window = window_make(kind, 2 * 8 * WORDS, 8, MPI_COMM_WORLD);
    for (int pattern = 0; pattern < 4; pattern++) {
        MPI_Request requests[2];
        MPI_Datatype here = pattern_make(pattern % 2), there = pattern_make(pattern / 2);
        memset(window.base, 0, 2 * 8 * WORDS);
        barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win);
        for (int i = 0; i < WORDS; i++)
            out[i] = 100 * pattern + i;
        MPI_Put(out, 1, here, target, 0, 1, there, window.win);
        MPI_Win_flush(target, window.win);
        MPI_Get(wanted, WORDS, MPI_INT64_T, target, 0, WORDS, MPI_INT64_T, window.win);
        MPI_Win_flush(target, window.win);
        CHECK_OK(MPIX_Put_init(out, 1, here, target, WORDS, 1, there, window.win, &requests[0]));
        CHECK_OK(MPIX_Get_init(in, 1, here, target, WORDS, 1, there, window.win, &requests[1]));
        MPI_Type_free(&here);
        MPI_Type_free(&there);
        here = pattern_make(1);
        MPI_Put(out, 1, here, target, 0, 1, here, window.win);
        for (int start = 0; start < STARTS; start++) {
            memset(in, -1, sizeof in);
            CHECK_OK(MPI_Start(&requests[0]));
            CHECK_OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
            MPI_Win_flush(target, window.win);
            CHECK_OK(MPI_Start(&requests[1]));
            CHECK_OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
            for (int i = 0; i < WORDS; i++)
                CHECK(in[i] == out[i] || in[i] == -1, "word %d is %lld", i, (long long)in[i]);
            MPI_Get(in, WORDS, MPI_INT64_T, target, WORDS, WORDS, MPI_INT64_T, window.win);
            MPI_Win_flush(target, window.win);
            CHECK(memcmp(in, wanted, sizeof in) == 0, "pattern %d in start %d", pattern, start);
        }
        MPI_Win_unlock(target, window.win);
        MPI_Type_free(&here);
        CHECK_OK(MPI_Request_free(&requests[0]));
        CHECK_OK(MPI_Request_free(&requests[1]));
        barrier(MPI_COMM_WORLD);
    }
    window_free(&window);
}

static void long_transfers_arrive(enum window_kind kind)
{
    enum { WORDS = 300000 };
    int target = right_of(world_rank);
    MPI_Request requests[2];
    int64_t *out = malloc(8 * WORDS), *in = malloc(8 * WORDS);
    struct window window = window_make(kind, 8 * WORDS, 8, MPI_COMM_WORLD);
    CHECK_OK(MPIX_Put_init(out, WORDS, MPI_INT64_T, target, 0, 8 * WORDS, MPI_BYTE, window.win,
                           &requests[0]));
    CHECK_OK(MPIX_Get_init(in, WORDS, MPI_INT64_T, target, 0, WORDS, MPI_INT64_T, window.win,
                           &requests[1]));
    for (int start = 0; start < 4; start++) {
        for (int i = 0; i < WORDS; i++)
            out[i] = (int64_t)start * WORDS + i;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win);
        CHECK_OK(MPI_Start(&requests[0]));
        CHECK_OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        MPI_Win_flush(target, window.win);
        CHECK_OK(MPI_Start(&requests[1]));
        CHECK_OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
        CHECK(memcmp(in, out, 8 * WORDS) == 0, "start %d moved other bytes", start);
        MPI_Win_unlock(target, window.win);
    }
    CHECK_OK(MPI_Request_free(&requests[0]));
    CHECK_OK(MPI_Request_free(&requests[1]));
    window_free(&window);
    free(out);
    free(in);
}

/* --- epochs --- */

static void any_epoch_allows_a_start(enum window_kind kind)
{
    int64_t value = 0;
    int target = right_of(world_rank), origin = left_of(world_rank);
    MPI_Request request;
    MPI_Group all, to, from;
    struct window window = window_make(kind, (MPI_Aint)8 * world_size, 8, MPI_COMM_WORLD);
    const int64_t *words = (const int64_t *)window.base;
    CHECK_OK(MPIX_Put_init(&value, 1, MPI_INT64_T, target, world_rank, 1, MPI_INT64_T, window.win,
                           &request));
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &target, &to);
    MPI_Group_incl(all, 1, &origin, &from);
    for (int turn = 1; turn <= 3; turn++) {
        value = 10 * turn + 1;
        MPI_Win_fence(0, window.win);
        CHECK_OK(MPI_Start(&request));
        CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
        CHECK_EQUAL(words[origin], 10 * turn + 1);
        value = 10 * turn + 2;
        MPI_Win_post(from, 0, window.win);
        MPI_Win_start(to, 0, window.win);
        CHECK_OK(MPI_Start(&request));
        CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        MPI_Win_complete(window.win);
        MPI_Win_wait(window.win);
        CHECK_EQUAL(words[origin], 10 * turn + 2);
        barrier(MPI_COMM_WORLD);
        value = 10 * turn + 3;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win);
        CHECK_OK(MPI_Start(&request));
        CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        MPI_Win_unlock(target, window.win);
        barrier(MPI_COMM_WORLD);
        MPI_Win_sync(window.win);
        CHECK_EQUAL(words[origin], 10 * turn + 3);
        barrier(MPI_COMM_WORLD);
    }
    CHECK_OK(MPI_Request_free(&request));
    MPI_Group_free(&all);
    MPI_Group_free(&to);
    MPI_Group_free(&from);
    window_free(&window);
}

/* --- several requests --- */

enum { PUT, GET, SEND, RECEIVE, MIXED };

/* Two persistent operations, and a persistent message of the host each way. */
struct mixture {
    struct window window;
    MPI_Request requests[MIXED];
    int64_t put, got, sent, received;
};

static void mixture_make(struct mixture *mixture, enum window_kind kind)
{
    int target = right_of(world_rank);
    mixture->window = window_make(kind, 16, 8, MPI_COMM_WORLD);
    int64_t *words = (int64_t *)mixture->window.base;
    words[0] = 70 + world_rank;
    barrier(MPI_COMM_WORLD);
    CHECK_OK(MPIX_Put_init(&mixture->put, 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T,
                           mixture->window.win, &mixture->requests[PUT]));
    CHECK_OK(MPIX_Get_init(&mixture->got, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T,
                           mixture->window.win, &mixture->requests[GET]));
    MPI_Send_init(&mixture->sent, 1, MPI_INT64_T, target, 5, MPI_COMM_WORLD,
                  &mixture->requests[SEND]);
    MPI_Recv_init(&mixture->received, 1, MPI_INT64_T, left_of(world_rank), 5, MPI_COMM_WORLD,
                  &mixture->requests[RECEIVE]);
}

static void mixture_start(struct mixture *mixture, int turn)
{
    mixture->put = 100 * turn + world_rank;
    mixture->sent = 1000 * turn + world_rank;
    mixture->got = mixture->received = -1;
    CHECK_OK(MPI_Startall(MIXED, mixture->requests));
}

static void mixture_check(const struct mixture *mixture, int turn)
{
    int64_t seen = -1;
    int target = right_of(world_rank);
    CHECK_EQUAL(mixture->got, 70 + target);
    CHECK_EQUAL(mixture->received, 1000 * turn + left_of(world_rank));
    MPI_Win_flush(target, mixture->window.win);
    MPI_Get(&seen, 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, mixture->window.win);
    MPI_Win_flush(target, mixture->window.win);
    CHECK_EQUAL(seen, 100 * turn + world_rank);
}

/* Completes each request once, in any order. */
static void mixture_complete_any(struct mixture *mixture)
{
    int index, seen = 0;
    for (int i = 0; i < MIXED; i++) {
        CHECK_OK(MPI_Waitany(MIXED, mixture->requests, &index, MPI_STATUS_IGNORE));
        if (CHECK(index >= 0 && index < MIXED, "Waitany returned %d", index))
            seen |= 1 << index;
    }
    CHECK_EQUAL(seen, (1 << MIXED) - 1);
    CHECK_OK(MPI_Waitany(MIXED, mixture->requests, &index, MPI_STATUS_IGNORE));
    CHECK_EQUAL(index, MPI_UNDEFINED);
}

static void mixture_complete_some(struct mixture *mixture, bool waits)
{
    int found = 0, indices[MIXED], seen = 0;
    MPI_Status statuses[MIXED];
    while (seen != (1 << MIXED) - 1 && !harness_failed()) {
        if (waits)
            CHECK_OK(MPI_Waitsome(MIXED, mixture->requests, &found, indices, statuses));
        else
            CHECK_OK(MPI_Testsome(MIXED, mixture->requests, &found, indices, statuses));
        CHECK(found >= 0 && found <= MIXED, "%d requests were completed", found);
        for (int i = 0; i < found && !harness_failed(); i++) {
            CHECK((seen & 1 << indices[i]) == 0, "request %d was completed twice", indices[i]);
            seen |= 1 << indices[i];
        }
    }
    CHECK_OK(MPI_Testsome(MIXED, mixture->requests, &found, indices, statuses));
    CHECK_EQUAL(found, MPI_UNDEFINED);
}

static void requests_of_the_host_mix_with_them(enum window_kind kind)
{
    struct mixture mixture;
    mixture_make(&mixture, kind);
    MPI_Win_lock_all(0, mixture.window.win);
    for (int turn = 0; turn < 24; turn++) {
        int done = 0;
        mixture_start(&mixture, turn);
        switch (turn % 5) {
        case 0: CHECK_OK(MPI_Waitall(MIXED, mixture.requests, no_statuses)); break;
        case 1: mixture_complete_any(&mixture); break;
        case 2: mixture_complete_some(&mixture, true); break;
        case 3: mixture_complete_some(&mixture, false); break;
        default:
            while (!done)
                CHECK_OK(MPI_Testall(MIXED, mixture.requests, &done, no_statuses));
        }
        mixture_check(&mixture, turn);
        barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(mixture.window.win);
    for (int i = 0; i < MIXED; i++)
        CHECK_OK(MPI_Request_free(&mixture.requests[i]));
    barrier(MPI_COMM_WORLD);
    window_free(&mixture.window);
}

/* A handle that the host gives to another request denotes that one. */
static void handles_are_forgotten_when_they_are_freed(enum window_kind kind)
{
    int64_t value = 1, seen = 0, sent = 2, received = 0;
    struct window window = window_make(kind, 16, 8, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    for (int turn = 0; turn < 50; turn++) {
        MPI_Request own[2], host[2];
        CHECK_OK(MPIX_Put_init(&value, 1, MPI_INT64_T, right_of(world_rank), 0, 1, MPI_INT64_T,
                               window.win, &own[0]));
        CHECK_OK(MPIX_Get_init(&seen, 1, MPI_INT64_T, right_of(world_rank), 1, 1, MPI_INT64_T,
                               window.win, &own[1]));
        if (turn % 2 == 0)
            CHECK_OK(MPI_Startall(2, own)); /* freed while they are active */
        CHECK_OK(MPI_Request_free(&own[0]));
        CHECK_OK(MPI_Request_free(&own[1]));
        CHECK(own[0] == MPI_REQUEST_NULL && own[1] == MPI_REQUEST_NULL, "handles are left");
        MPI_Win_flush(right_of(world_rank), window.win);
        MPI_Recv_init(&received, 1, MPI_INT64_T, world_rank, 6, MPI_COMM_WORLD, &host[0]);
        MPI_Send_init(&sent, 1, MPI_INT64_T, world_rank, 6, MPI_COMM_WORLD, &host[1]);
        received = 0;
        CHECK_OK(MPI_Startall(2, host));
        CHECK_OK(MPI_Waitall(2, host, no_statuses));
        CHECK_EQUAL(received, 2);
        CHECK_OK(MPI_Request_free(&host[0]));
        CHECK_OK(MPI_Request_free(&host[1]));
    }
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static void cancelling_an_operation_has_no_effect(enum window_kind kind)
{
    int64_t seen;
    MPI_Request request;
    struct window window = numbered_make(kind, 4);
    int target = right_of(world_rank);
    CHECK_OK(MPIX_Get_init(&seen, 1, MPI_INT64_T, target, 3, 1, MPI_INT64_T, window.win, &request));
    MPI_Win_lock_all(0, window.win);
    for (int turn = 0; turn < 10; turn++) {
        seen = -1;
        CHECK_OK(MPI_Start(&request));
        CHECK_OK(MPI_Cancel(&request));
        CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK_EQUAL(seen, 1000 * target + 3);
    }
    MPI_Win_unlock_all(window.win);
    CHECK_OK(MPI_Request_free(&request));
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static void requests_of_the_host_are_cancelled(enum window_kind kind)
{
    int64_t value = 0, received[2];
    struct window window = window_make(kind, 8, 8, MPI_COMM_WORLD);
    MPI_Request own, requests[2];
    CHECK_OK(
        MPIX_Put_init(&value, 1, MPI_INT64_T, world_rank, 0, 1, MPI_INT64_T, window.win, &own));
    MPI_Irecv(&received[0], 1, MPI_INT64_T, world_rank, 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(&received[1], 1, MPI_INT64_T, world_rank, 7, MPI_COMM_WORLD, &requests[1]);
    CHECK_OK(MPI_Start(&requests[1]));
    for (int i = 0; i < 2; i++) {
        MPI_Status status;
        int done = 0, cancelled = 0;
        CHECK_OK(MPI_Cancel(&requests[i]));
        for (double end = seconds_now() + 5; !done && seconds_now() < end;)
            CHECK_OK(MPI_Test(&requests[i], &done, &status));
        if (CHECK(done, "the receive is not cancelled"))
            MPI_Test_cancelled(&status, &cancelled);
        CHECK(cancelled, "the status is not that of a cancelled receive");
    }
    CHECK_OK(MPI_Request_free(&requests[1]));
    CHECK_OK(MPI_Request_free(&own));
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* --- threads --- */

enum { THREADS = 4, ROUNDS = 200 };
static struct window threads_window;

static void *starter_main(void *argument)
{
    int number = (int)(intptr_t)argument, target = right_of(world_rank);
    int64_t value = 0, seen;
    MPI_Request requests[2];
    CHECK_OK(MPIX_Put_init(&value, 1, MPI_INT64_T, target, number, 1, MPI_INT64_T,
                           threads_window.win, &requests[0]));
    CHECK_OK(MPIX_Get_init(&seen, 1, MPI_INT64_T, target, number, 1, MPI_INT64_T,
                           threads_window.win, &requests[1]));
    for (int round = 0; round < scaled_rounds(ROUNDS) && !harness_failed(); round++) {
        value = 1000 * number + round;
        CHECK_OK(MPI_Start(&requests[0]));
        complete(&requests[0], round);
        MPI_Win_flush(target, threads_window.win);
        CHECK_OK(MPI_Startall(1, &requests[1]));
        complete(&requests[1], round + number);
        CHECK_EQUAL(seen, value);
        if (round % 10 == 9) {
            CHECK_OK(MPI_Request_free(&requests[1]));
            CHECK_OK(MPIX_Get_init(&seen, 1, MPI_INT64_T, target, number, 1, MPI_INT64_T,
                                   threads_window.win, &requests[1]));
        }
    }
    CHECK_OK(MPI_Request_free(&requests[0]));
    CHECK_OK(MPI_Request_free(&requests[1]));
    return NULL;
}

static void threads_start_their_own(enum window_kind kind)
{
    pthread_t threads[THREADS];
    if (harness_thread_level() != MPI_THREAD_MULTIPLE) {
        harness_skip("the host does not support MPI_THREAD_MULTIPLE");
        return;
    }
    threads_window = window_make(kind, 8 * THREADS, 8, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, threads_window.win);
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, starter_main, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    MPI_Win_unlock_all(threads_window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&threads_window);
}

static const struct test_case cases[] = {
    CASE(each_start_puts_what_the_buffer_has, KINDS_ALL, 1),
    CASE(each_start_gets_what_the_target_has, KINDS_ALL, 1),
    CASE(accumulates_count_each_start, KINDS_ALL, 1),
    CASE(single_elements_are_updated, KINDS_ALL, 1),
    CASE(a_swap_compares_at_each_start, KINDS_ALL, 1),
    CASE(started_swaps_are_atomic, KINDS_ALL, 1),
    CASE(datatypes_may_be_freed_after_the_creation, KINDS_BOTH, 1),
    CASE(long_transfers_arrive, KINDS_BOTH, 1),
    CASE(any_epoch_allows_a_start, KINDS_BOTH, 1),
    CASE(requests_of_the_host_mix_with_them, KINDS_BOTH, 1),
    CASE(handles_are_forgotten_when_they_are_freed, KINDS_BOTH, 1),
    CASE(cancelling_an_operation_has_no_effect, KINDS_BOTH, 1),
    CASE(requests_of_the_host_are_cancelled, KIND_ALLOCATE, 1),
    CASE(threads_start_their_own, KINDS_BOTH, 1),
};

int main(int argc, char **argv)
{
    return persistent_main(argc, argv, cases, COUNT_OF(cases));
}
