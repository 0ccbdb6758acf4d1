/* Shared windows: the addresses of MPI_Win_allocate_shared's segments, the results of
 * MPI_Win_shared_query, loads and stores between ranks. Every other rank sees a rank's direct store
 * after a synchronisation, and by gets. A plain MPI program, run by the test rows. */
#include "harness.h"
#include "one_node.h"

#include <stdlib.h>
#include <string.h>

/* Rank 0 and every third rank have no memory; the others have odd sizes. */
static MPI_Aint segment_bytes(int rank)
{
    return rank % 3 == 0 ? 0 : 13 * rank + 1;
}

static void *query(MPI_Win win, int rank, MPI_Aint wanted_bytes, int wanted_unit)
{
    MPI_Aint size_bytes = -1;
    int unit = -1;
    void *base = NULL;
    CHECK_OK(MPI_Win_shared_query(win, rank, &size_bytes, &unit, &base));
    CHECK_EQUAL(size_bytes, wanted_bytes);
    CHECK_EQUAL(unit, wanted_unit);
    return base;
}

static void segments_follow_each_other_byte_by_byte(enum window_kind kind)
{
    struct window window = window_make(kind, segment_bytes(world_rank), 1, MPI_COMM_WORLD);
    char *next = NULL;
    for (int rank = 0; rank < world_size; rank++) {
        char *segment = query(window.win, rank, segment_bytes(rank), 1);
        CHECK(segment != NULL, "the segment of rank %d is nowhere", rank);
        CHECK(!next || segment == next, "the segment of rank %d is %td bytes off", rank,
              segment - next);
        next = segment + segment_bytes(rank);
    }
    char *own = query(window.win, world_rank, segment_bytes(world_rank), 1), *attribute = NULL;
    int found = 0;
    MPI_Win_get_attr(window.win, MPI_WIN_BASE, &attribute, &found);
    CHECK(found && own == window.base && own == attribute,
          "the own segment is at %p, from creation %p, MPI_WIN_BASE %p", (void *)own,
          (void *)window.base, (void *)attribute);
    window_free(&window);
}

static void proc_null_asks_for_the_first_segment_with_memory(enum window_kind kind)
{
    struct window window = window_make(kind, segment_bytes(world_rank), 1, MPI_COMM_WORLD);
    char *first = query(window.win, MPI_PROC_NULL, segment_bytes(1), 1);
    CHECK(first == query(window.win, 1, segment_bytes(1), 1), "not the segment of rank 1");
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static void units_of_other_ranks_are_returned(enum window_kind kind)
{
    struct window window = window_make(kind, 48, 1 + world_rank, MPI_COMM_WORLD);
    for (int rank = 0; rank < world_size; rank++)
        query(window.win, rank, 48, 1 + rank);
    window_free(&window);
}

/* Each rank stores into its slot of every segment directly, then all ranks read by load and by
 * get. */
static void stores_check(MPI_Win win, const char *own)
{
    MPI_Win_lock_all(0, win);
    for (int rank = 0; rank < world_size; rank++) {
        char *segment = query(win, rank, world_size, 1);
        segment[world_rank] = (char)(10 * rank + world_rank);
    }
    MPI_Win_sync(win);
    barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    for (int rank = 0; rank < world_size; rank++) {
        char seen = -1;
        CHECK_EQUAL(own[rank], (char)(10 * world_rank + rank));
        MPI_Get(&seen, 1, MPI_CHAR, rank, world_rank, 1, MPI_CHAR, win);
        MPI_Win_flush(rank, win);
        CHECK_EQUAL(seen, (char)(10 * rank + world_rank));
    }
    MPI_Win_unlock_all(win);
    barrier(MPI_COMM_WORLD);
}

static void direct_stores_are_seen_by_others(enum window_kind kind)
{
    struct window window = window_make(kind, world_size, 1, MPI_COMM_WORLD);
    stores_check(window.win, window.base);
    window_free(&window);
}

static void segments_may_lie_apart(enum window_kind kind)
{
    MPI_Info info;
    MPI_Win win;
    char *base;
    (void)kind;
    MPI_Info_create(&info);
    MPI_Info_set(info, "alloc_shared_noncontig", "true");
    MPI_Win_allocate_shared(world_size, 1, info, MPI_COMM_WORLD, &base, &win);
    window_watch(win);
    stores_check(win, base);
    MPI_Win_free(&win);
    MPI_Win_allocate_shared(segment_bytes(world_rank), 1, info, MPI_COMM_WORLD, &base, &win);
    CHECK(query(win, world_rank, segment_bytes(world_rank), 1) == base,
          "the own segment differs from the created one");
    MPI_Win_free(&win);
    MPI_Info_free(&info);
}

static void shared_windows_on_a_sub_communicator(enum window_kind kind)
{
    MPI_Comm upper;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank > 0, -world_rank, &upper);
    int rank, size;
    MPI_Comm_rank(upper, &rank);
    MPI_Comm_size(upper, &size);
    struct window window = window_make(kind, sizeof(int), sizeof(int), upper);
    *(int *)window.base = 100 + rank;
    MPI_Win_fence(0, window.win);
    for (int other = 0; other < size; other++)
        CHECK_EQUAL(*(int *)query(window.win, other, sizeof(int), sizeof(int)), 100 + other);
    MPI_Win_fence(0, window.win);
    window_free(&window);
    MPI_Comm_free(&upper);
}

/* A later window over the same physical memory: each rank gives its right neighbour's segment, at
 * its own address for it. */
static void shared_memory_serves_in_a_later_window(enum window_kind kind)
{
    struct window shared = window_make(kind, 64, 1, MPI_COMM_WORLD);
    int right = (world_rank + 1) % world_size, left = (world_rank + world_size - 1) % world_size;
    char *theirs = query(shared.win, right, 64, 1);
    MPI_Win later;
    MPI_Win_create(theirs, 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &later);
    window_watch(later);
    MPI_Win_fence(0, later);
    for (int target = 0; target < world_size; target++) {
        char mark = (char)(world_rank + 1);
        MPI_Put(&mark, 1, MPI_CHAR, target, world_rank, 1, MPI_CHAR, later);
    }
    MPI_Win_fence(0, later);
    for (int origin = 0; origin < world_size; origin++) {
        CHECK_EQUAL(shared.base[origin], origin + 1);
        CHECK_EQUAL(theirs[origin], origin + 1);
    }
    MPI_Win_free(&later);
    int64_t one = 1;
    MPI_Win_create(theirs, 64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &later);
    window_watch(later);
    barrier(MPI_COMM_WORLD);
    memset(shared.base, 0, 64);
    MPI_Win_fence(0, later);
    MPI_Accumulate(&one, 1, MPI_INT64_T, left, 3, 1, MPI_INT64_T, MPI_SUM, later);
    MPI_Win_fence(0, later);
    CHECK_EQUAL(((int64_t *)shared.base)[3], 1);
    MPI_Win_free(&later);
    window_free(&shared);
}

/* The contiguous block belongs to rank 0, which is not a member of the later window. */
static void shared_memory_serves_where_rank_0_is_absent(enum window_kind kind)
{
    struct window shared = window_make(kind, 40, 1, MPI_COMM_WORLD);
    MPI_Comm others;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank == 0 ? MPI_UNDEFINED : 0, 0, &others);
    if (others != MPI_COMM_NULL) {
        int rank, size, value = 500 + world_rank;
        MPI_Win later;
        MPI_Comm_rank(others, &rank);
        MPI_Comm_size(others, &size);
        MPI_Win_create(shared.base, 40, 4, MPI_INFO_NULL, others, &later);
        window_watch(later);
        MPI_Win_fence(0, later);
        MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, 2, 1, MPI_INT, later);
        MPI_Win_fence(0, later);
        CHECK_EQUAL(((int *)shared.base)[2], 501 + (rank + size - 1) % size);
        MPI_Win_free(&later);
        MPI_Comm_free(&others);
    }
    barrier(MPI_COMM_WORLD);
    window_free(&shared);
}

/* Where this rank can reach the memory the pointer must be the memory, otherwise size 0 and NULL.
 * The rank's own memory is reachable. */
static bool store_if_in_reach(MPI_Win win, int rank)
{
    MPI_Aint size_bytes = -1;
    int unit = -1;
    char *base = (char *)&unit;
    CHECK_OK(MPI_Win_shared_query(win, rank, &size_bytes, &unit, &base));
    CHECK(size_bytes == 64 || (size_bytes == 0 && base == NULL && rank != world_rank),
          "size %ld, base %p", (long)size_bytes, (void *)base);
    if (size_bytes != 64)
        return false;
    CHECK_EQUAL(unit, 2);
    base[world_rank] = (char)(rank + world_rank + 1);
    return true;
}

static void query_answers_on_every_flavour(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 2, MPI_COMM_WORLD);
    int *stored = calloc((size_t)world_size, sizeof *stored);
    for (int rank = 0; rank < world_size; rank++) {
        int mine = store_if_in_reach(window.win, rank);
        MPI_Allgather(&mine, 1, MPI_INT, stored, 1, MPI_INT, MPI_COMM_WORLD);
        MPI_Win_sync(window.win);
        for (int other = 0; rank == world_rank && other < world_size; other++)
            CHECK_EQUAL(window.base[other], stored[other] ? rank + other + 1 : 0);
    }
    free(stored);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* The ranks of each node share a window; all ranks can reach its memory in a window over all. */
static void each_node_has_a_shared_window(enum window_kind kind)
{
    MPI_Comm node = node_comm();
    int here, count;
    (void)kind;
    MPI_Comm_rank(node, &here);
    MPI_Comm_size(node, &count);
    struct window shared = window_make(KIND_SHARED, 64, 1, node);
    char *next = query(shared.win, (here + 1) % count, 64, 1), mark = (char)(world_rank + 1);
    MPI_Win all;
    MPI_Win_create(shared.base, 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &all);
    window_watch(all);
    MPI_Win_fence(0, all);
    next[63] = 77;
    for (int target = 0; target < world_size; target++)
        MPI_Put(&mark, 1, MPI_CHAR, target, world_rank, 1, MPI_CHAR, all);
    MPI_Win_fence(0, all);
    CHECK_EQUAL(shared.base[63], 77);
    for (int origin = 0; origin < world_size; origin++) {
        CHECK_EQUAL(shared.base[origin], origin + 1);
        CHECK_EQUAL(next[origin], origin + 1);
    }
    MPI_Win_free(&all);
    window_free(&shared);
    MPI_Comm_free(&node);
}

/* ORIEL_NODE_SIZE does not restrict memory of MPI_Win_allocate_shared. */
static void ranks_that_share_no_memory_get_the_error(enum window_kind kind)
{
    MPI_Comm node, comm;
    MPI_Win win = MPI_WIN_NULL;
    int size;
    char *base = NULL;
    (void)kind;
    node = one_node_comm(MPI_COMM_WORLD);
    MPI_Comm_size(node, &size);
    MPI_Comm_free(&node);
    if (size == world_size) {
        harness_skip("needs ranks that do not share memory");
        return;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_ERR_RMA_SHARED,
                MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, comm, &base, &win));
    MPI_Comm_free(&comm);
}

static const struct test_case cases[] = {
    CASE(segments_follow_each_other_byte_by_byte, KIND_SHARED, 1),
    CASE(proc_null_asks_for_the_first_segment_with_memory, KIND_SHARED, 2),
    CASE(units_of_other_ranks_are_returned, KIND_SHARED, 1),
    CASE(direct_stores_are_seen_by_others, KIND_SHARED, 1),
    CASE(segments_may_lie_apart, KIND_ONE_NODE, 1),
    CASE(shared_windows_on_a_sub_communicator, KIND_SHARED, 1),
    CASE(shared_memory_serves_in_a_later_window, KIND_SHARED, 1),
    CASE(shared_memory_serves_where_rank_0_is_absent, KIND_SHARED, 2),
    CASE(query_answers_on_every_flavour, KINDS_ALL, 1),
    CASE(each_node_has_a_shared_window, KIND_ANY, 1),
    CASE(ranks_that_share_no_memory_get_the_error, KIND_ANY, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
