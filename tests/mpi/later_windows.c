/* Windows over communicators that have had windows before: in any order of flavours, with late
 * ranks, over all kinds of memory. Every window takes a put from the left neighbour, followed by a
 * barrier. A plain MPI program, run by the test rows. */
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>

enum { LIVE = 6, TURNS = 120, FLAVOURS = 6, WORDS = 32, ROUNDS = 40 };

/* A window of WORDS words; memory, if not NULL, is freed after it. */
struct later {
    MPI_Win win;
    int64_t *base;
    void *memory;
};

static int64_t value_of(int64_t mark, int rank)
{
    return mark * 100 + rank;
}

/* Segments are contiguous, unless only one exists, whose rank has asked for memory of its own. */
static void check_place(MPI_Win win, const int64_t *base, int rank)
{
    int64_t *first;
    MPI_Aint size_bytes;
    int unit;
    CHECK_OK(MPI_Win_shared_query(win, 0, &size_bytes, &unit, &first));
    CHECK(base == first + rank * WORDS, "rank %d's segment does not follow the others'", rank);
}

static struct later make(int flavour, MPI_Comm comm)
{
    MPI_Aint size_bytes = WORDS * sizeof(int64_t);
    struct later later = {MPI_WIN_NULL, NULL, NULL};
    MPI_Info info = MPI_INFO_NULL;
    int rank;
    MPI_Comm_rank(comm, &rank);
    if (flavour < 3 && !ranks_share_memory())
        flavour = 0;
    switch (flavour) {
    case 0:
        CHECK_OK(MPI_Win_allocate(size_bytes, 8, MPI_INFO_NULL, comm, &later.base, &later.win));
        break;
    case 1:
        CHECK_OK(
            MPI_Win_allocate_shared(size_bytes, 8, MPI_INFO_NULL, comm, &later.base, &later.win));
        check_place(later.win, later.base, rank);
        break;
    case 2: /* a hint of the even ranks only: it counts only if all ranks give it */
        MPI_Info_create(&info);
        MPI_Info_set(info, "alloc_shared_noncontig", rank % 2 == 0 ? "true" : "false");
        CHECK_OK(MPI_Win_allocate_shared(size_bytes, 8, info, comm, &later.base, &later.win));
        check_place(later.win, later.base, rank);
        MPI_Info_free(&info);
        break;
    case 3: /* two kinds of memory: odd ranks use an interior part of their heap */
        later.memory = rank % 2 == 0 ? NULL : malloc((size_t)size_bytes + 64);
        if (rank % 2 == 0)
            MPI_Alloc_mem(size_bytes, MPI_INFO_NULL, &later.base);
        else
            later.base = (int64_t *)later.memory + 8;
        CHECK_OK(MPI_Win_create(later.base, size_bytes, 8, MPI_INFO_NULL, comm, &later.win));
        break;
    case 4:
        later.base = later.memory = malloc((size_t)size_bytes);
        CHECK_OK(MPI_Win_create(later.base, size_bytes, 8, MPI_INFO_NULL, comm, &later.win));
        break;
    default:
        MPI_Alloc_mem(size_bytes, MPI_INFO_NULL, &later.base);
        CHECK_OK(MPI_Win_create(later.base, size_bytes, 8, MPI_INFO_NULL, comm, &later.win));
        break;
    }
    window_watch(later.win);
    return later;
}

static void release(struct later *later, int flavour, int rank)
{
    CHECK_OK(MPI_Win_free(&later->win));
    if (flavour == 5 || (flavour == 3 && rank % 2 == 0))
        MPI_Free_mem(later->base);
    free(later->memory);
}

/* Collective over comm: a put to the right neighbour, and a check of the left neighbour's put. */
static void use(struct later *later, int64_t mark, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    int64_t value = value_of(mark, rank);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, later->win);
    MPI_Put(&value, 1, MPI_INT64_T, right, 3, 1, MPI_INT64_T, later->win);
    MPI_Win_unlock(right, later->win);
    barrier(comm);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, later->win);
    CHECK_EQUAL(later->base[3], value_of(mark, left));
    MPI_Win_unlock(rank, later->win);
    barrier(comm);
}

static void alternating_flavours_preserve_their_data(enum window_kind kind)
{
    struct later live[LIVE];
    int flavour_of[LIVE] = {0};
    bool is_live[LIVE] = {false};
    struct random common = random_start(1), own = random_start(2 + (uint64_t)world_rank);
    (void)kind;
    for (int turn = 0; turn < scaled_rounds(TURNS); turn++) {
        int at = (int)random_below(&common, LIVE);
        if (is_live[at])
            release(&live[at], flavour_of[at], world_rank);
        flavour_of[at] = (int)random_below(&common, FLAVOURS);
        random_pause(&own, 300);
        live[at] = make(flavour_of[at], MPI_COMM_WORLD);
        is_live[at] = true;
        if (random_below(&common, 4) == 0)
            use(&live[at], turn + 1, MPI_COMM_WORLD);
    }
    for (int at = 0; at < LIVE; at++) {
        if (!is_live[at])
            continue;
        use(&live[at], 1000 + at, MPI_COMM_WORLD);
        release(&live[at], flavour_of[at], world_rank);
    }
}

/* Each rank gives the segment of its right neighbour: memory in another process's file. */
static void memory_of_another_process_may_be_given(enum window_kind kind)
{
    MPI_Win segments, win;
    int64_t *own, *right_segment;
    MPI_Aint size_bytes;
    int unit, right = (world_rank + 1) % world_size,
              left = (world_rank + world_size - 1) % world_size;
    (void)kind;
    CHECK_OK(MPI_Win_allocate_shared(WORDS * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &segments));
    CHECK_OK(MPI_Win_shared_query(segments, right, &size_bytes, &unit, &right_segment));
    for (int turn = 1; turn <= 3; turn++) {
        int64_t value = value_of(turn, world_rank);
        CHECK_OK(MPI_Win_create(right_segment, WORDS * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        window_watch(win);
        MPI_Win_fence(0, win);
        MPI_Put(&value, 1, MPI_INT64_T, left, 0, 1, MPI_INT64_T,
                win); /* the left neighbour's window is this rank's segment */
        MPI_Win_fence(0, win);
        CHECK_EQUAL(own[0], value);
        CHECK_OK(MPI_Win_free(&win));
    }
    MPI_Win_free(&segments);
}

/* Each rank in turn has the bad argument; the windows in between are valid. */
static void a_bad_argument_of_any_rank_is_everybodys_error(enum window_kind kind)
{
    MPI_Comm comm;
    (void)kind;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int wrong = 0; wrong < world_size; wrong++) {
        MPI_Win win = MPI_WIN_NULL;
        void *base;
        struct later later = make(wrong % FLAVOURS, comm);
        bool mine = wrong == world_rank;
        CHECK_CLASS(MPI_ERR_SIZE,
                    MPI_Win_allocate(mine ? -1 : 64, 8, MPI_INFO_NULL, comm, &base, &win));
        CHECK_CLASS(MPI_ERR_DISP,
                    MPI_Win_allocate_shared(64, mine ? 0 : 8, MPI_INFO_NULL, comm, &base, &win));
        use(&later, wrong + 1, comm);
        release(&later, wrong % FLAVOURS, world_rank);
    }
    MPI_Comm_free(&comm);
}

/* Hosts reuse handles of freed communicators, for the same processes in another order, or some of
 * them. */
static void repeatedly_made_communicators_have_windows_of_their_own(enum window_kind kind)
{
    (void)kind;
    for (int round = 0; round < scaled_rounds(ROUNDS); round++) {
        MPI_Comm comm, second = MPI_COMM_NULL;
        int rank;
        int color = round % 3 == 2 ? world_rank % 2 : 0;
        MPI_Comm_split(MPI_COMM_WORLD, color, round % 2 == 0 ? world_rank : -world_rank, &comm);
        MPI_Comm_rank(comm, &rank);
        struct later first = make(round % FLAVOURS, comm), other = make(0, comm);
        if (round % 4 == 0) {
            MPI_Comm_dup(comm, &second);
            struct later of_second = make(4, second);
            use(&of_second, round + 1, second);
            release(&of_second, 4, rank);
        }
        use(&first, round + 1, comm);
        use(&other, round + 2, comm);
        release(&other, 0, rank);
        MPI_Comm_free(&comm); /* before its last window */
        release(&first, round % FLAVOURS, rank);
        if (second != MPI_COMM_NULL)
            MPI_Comm_free(&second);
    }
}

/* Some ranks have not yet left the creation. */
static void a_communicator_may_be_freed_as_soon_as_its_window_exists(enum window_kind kind)
{
    (void)kind;
    for (int round = 0; round < 4 * scaled_rounds(ROUNDS); round++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        struct later first = make(0, comm), second = make(round % 2 * 4, comm);
        MPI_Comm_free(&comm);
        use(&second, round + 1, MPI_COMM_WORLD);
        release(&second, round % 2 * 4, world_rank);
        release(&first, 0, world_rank);
    }
}

static void *make_often(void *argument)
{
    MPI_Comm comm = *(MPI_Comm *)argument;
    struct random random = random_start(7 + 2 * (uint64_t)world_rank);
    for (int round = 0; round < scaled_rounds(TURNS); round++) {
        int64_t *base, value = round;
        MPI_Win win;
        random_pause(&random, 200);
        CHECK_OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, comm, &base, &win));
        CHECK_OK(MPI_Win_fence(0, win));
        CHECK_OK(MPI_Put(&value, 1, MPI_INT64_T, world_rank, 0, 1, MPI_INT64_T, win));
        CHECK_OK(MPI_Win_fence(0, win));
        CHECK_EQUAL(base[0], round);
        CHECK_OK(MPI_Win_free(&win));
    }
    return NULL;
}

/* The same processes twice: the order of the two communicators' windows differs between ranks. */
static void two_communicators_make_windows_at_once(enum window_kind kind)
{
    MPI_Comm comms[2];
    pthread_t thread;
    (void)kind;
    if (harness_thread_level() < MPI_THREAD_MULTIPLE) {
        harness_skip("the host has no MPI_THREAD_MULTIPLE");
        return;
    }
    for (int i = 0; i < 2; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    pthread_create(&thread, NULL, make_often, &comms[0]);
    make_often(&comms[1]);
    pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++)
        MPI_Comm_free(&comms[i]);
}

static const struct test_case cases[] = {
    CASE(alternating_flavours_preserve_their_data, KIND_ANY, 1),
    CASE(memory_of_another_process_may_be_given, KIND_ONE_NODE, 1),
    CASE(a_bad_argument_of_any_rank_is_everybodys_error, KIND_ANY, 1),
    CASE(repeatedly_made_communicators_have_windows_of_their_own, KIND_ANY, 1),
    CASE(a_communicator_may_be_freed_as_soon_as_its_window_exists, KIND_ANY, 1),
    CASE(two_communicators_make_windows_at_once, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases));
}
