/* As many windows as the host has handles for, and tens of thousands one after the other: freed
 * resources are available again. When handles run out every rank gets MPI_ERR_NO_MEM, and the
 * existing windows continue to work. A plain MPI program, run by the test rows; TEST_TURNS is the
 * number of windows made one after the other. */
#include "footprint.h"
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "many windows"

enum { LIMIT = 5000, ALIVE_OPENMPI = 5000, ALIVE_MPICH = 1500 };

struct live {
    MPI_Win win;
    int64_t *base;
};
static struct live windows[LIMIT];

/* MPICH has a fixed number of context ids, Open MPI practically no limit. */
static bool host_has_few_handles(void)
{
    static char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    return strstr(version, "MPICH") != NULL;
}

enum { FLAVOURS = 4, DYNAMIC = FLAVOURS }; /* the numbers below FLAVOURS take turns */
enum { WINDOW_BYTES = 4096 }; /* large enough to reveal leaks; only the first words are used */

static int live_make_dynamic(struct live *live, MPI_Comm comm)
{
    int code = MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &live->win);
    if (code != MPI_SUCCESS)
        return code;
    live->base = malloc(WINDOW_BYTES);
    return MPI_Win_attach(live->win, live->base, WINDOW_BYTES);
}

/* At least one word for each rank. */
static int live_make(struct live *live, int flavour, MPI_Comm comm)
{
    MPI_Aint size_bytes = WINDOW_BYTES;
    live->win = MPI_WIN_NULL;
    live->base = NULL;
    if (flavour == 1 && !ranks_share_memory())
        flavour = 0;
    switch (flavour) {
    case DYNAMIC: return live_make_dynamic(live, comm);
    case 0: return MPI_Win_allocate(size_bytes, 8, MPI_INFO_NULL, comm, &live->base, &live->win);
    case 1:
        return MPI_Win_allocate_shared(size_bytes, 8, MPI_INFO_NULL, comm, &live->base, &live->win);
    default:
        live->base = malloc(WINDOW_BYTES);
        return MPI_Win_create(live->base, size_bytes, 8, MPI_INFO_NULL, comm, &live->win);
    }
}

static void live_free(struct live *live, int flavour)
{
    CHECK_OK(MPI_Win_free(&live->win));
    if (flavour > 1)
        free(live->base);
    live->base = NULL;
}

/* Every window takes a put from the left neighbour, all before the first check. */
static void live_check(int count, int64_t mark)
{
    int right = (world_rank + 1) % world_size, left = (world_rank + world_size - 1) % world_size;
    for (int i = 0; i < count; i++) {
        int64_t value = mark + 100 * i + world_rank;
        MPI_Win_lock(MPI_LOCK_SHARED, right, 0, windows[i].win);
        MPI_Put(&value, 1, MPI_INT64_T, right, world_rank, 1, MPI_INT64_T, windows[i].win);
        MPI_Win_unlock(right, windows[i].win);
    }
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < count && !harness_failed(); i++) {
        MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, windows[i].win);
        CHECK(windows[i].base[left] == mark + 100 * i + left, "window %d of %d holds %lld", i,
              count, (long long)windows[i].base[left]);
        MPI_Win_unlock(world_rank, windows[i].win);
    }
    barrier(MPI_COMM_WORLD);
}

static void thousands_of_windows_live_at_once(enum window_kind kind)
{
    int count = host_has_few_handles() ? ALIVE_MPICH : ALIVE_OPENMPI;
    if (!ranks_share_memory())
        count /= 10;
    (void)kind;
    for (int i = 0; i < count; i++) {
        CHECK_OK(live_make(&windows[i], i % FLAVOURS, MPI_COMM_WORLD));
        window_watch(windows[i].win);
    }
    live_check(count, 0);
    for (int i = 0; i < count; i++)
        live_free(&windows[i * 7 % count], i * 7 % count % FLAVOURS);
}

/* Makes windows until a creation fails. Returns their number; all ranks must agree on the
 * outcome. */
static int make_until_refused(MPI_Comm comm, int count)
{
    int codes[2] = {MPI_SUCCESS, 0}, lowest[2], highest[2];
    for (; count < LIMIT; count++) {
        int code = live_make(&windows[count], count % FLAVOURS, comm);
        MPI_Error_class(code, &codes[0]);
        if (codes[0] != MPI_SUCCESS)
            break;
        MPI_Win_set_errhandler(windows[count].win, MPI_ERRORS_RETURN);
    }
    if (count < LIMIT && count % FLAVOURS > 1)
        free(windows[count].base);
    codes[1] = count;
    MPI_Allreduce(codes, lowest, 2, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(codes, highest, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(lowest[0] == highest[0] && lowest[1] == highest[1],
          "class %d after %d windows here, %d to %d after %d to %d on other ranks", codes[0], count,
          lowest[0], highest[0], lowest[1], highest[1]);
    if (count == LIMIT)
        return count;
    CHECK_EQUAL(codes[0], MPI_ERR_NO_MEM);
    CHECK(!through_oriel() ||
              (strstr(oriel_error_text(), "MPI_Win_") && strstr(oriel_error_text(), NAME)),
          "the error names neither call nor communicator: %s", oriel_error_text());
    return count;
}

static void windows_beyond_the_hosts_handles_are_refused_on_all_ranks(MPI_Comm comm)
{
    enum { GIVEN_BACK = 20 };
    int count = make_until_refused(comm, 0);
    if (count == LIMIT)
        harness_skip("the host does not run out of handles");
    for (int round = 0; round < 2 && count < LIMIT && count > GIVEN_BACK; round++) {
        live_check(count, 1000000 * (round + 1));
        for (int i = count - GIVEN_BACK; i < count; i++)
            live_free(&windows[i], i % FLAVOURS);
        int again = make_until_refused(comm, count - GIVEN_BACK);
        CHECK(again == count, "%d windows, after freeing %d there is room for %d", count,
              GIVEN_BACK, again);
        count = again;
    }
    live_check(count, 9000000);
    for (int i = 0; i < count; i++)
        live_free(&windows[i], i % FLAVOURS);
}

static void handles_that_run_out_are_refused_on_all_ranks(enum window_kind kind)
{
    MPI_Comm comm;
    (void)kind;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_name(comm, NAME);
    windows_beyond_the_hosts_handles_are_refused_on_all_ranks(comm);
    MPI_Comm_free(&comm);
}

/* All ranks have used handles of their own, the last rank most, so the others have some left when
 * it has none. */
static void one_rank_without_handles_fails_on_all(enum window_kind kind)
{
    enum { OWN = 1800, FEWER = 200 };
    static MPI_Win own[OWN];
    int own_count = world_rank == world_size - 1 ? OWN : OWN - FEWER;
    MPI_Comm comm;
    (void)kind;
    if (!host_has_few_handles()) {
        harness_skip("the host does not run out of handles");
        return;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_name(comm, NAME);
    for (int i = 0; i < own_count; i++)
        CHECK_OK(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_SELF, &own[i]));
    windows_beyond_the_hosts_handles_are_refused_on_all_ranks(comm);
    for (int i = 0; i < own_count; i++)
        CHECK_OK(MPI_Win_free(&own[i]));
    MPI_Comm_free(&comm);
}

/* Every rank writes a word of rank 0, or its own where displacements are addresses, and reads it
 * back. */
static void live_use(const struct live *live, int flavour, MPI_Comm comm, int64_t value)
{
    int target = 0;
    int64_t seen = -1;
    MPI_Aint disp = world_rank;
    if (flavour == DYNAMIC) {
        MPI_Comm_rank(comm, &target);
        MPI_Get_address(&live->base[world_rank], &disp);
    }
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, live->win);
    MPI_Put(&value, 1, MPI_INT64_T, target, disp, 1, MPI_INT64_T, live->win);
    MPI_Win_flush(target, live->win);
    MPI_Get(&seen, 1, MPI_INT64_T, target, disp, 1, MPI_INT64_T, live->win);
    MPI_Win_unlock(target, live->win);
    CHECK_EQUAL(seen, value);
}

/* Up to ALIVE windows on three kinds of communicators, made and freed in random order, the same on
 * all ranks. */
static void turns_run(int turns, const MPI_Comm comms[3], struct random *random)
{
    enum { ALIVE = 24 };
    static struct live live[ALIVE];
    int flavours[ALIVE];
    for (int i = 0; i < ALIVE; i++)
        live[i].win = MPI_WIN_NULL;
    for (int turn = 0; turn < turns; turn++) {
        int slot = (int)random_below(random, ALIVE),
            flavour = (int)random_below(random, FLAVOURS + 1);
        MPI_Comm comm = comms[random_below(random, 3)];
        if (live[slot].win != MPI_WIN_NULL)
            live_free(&live[slot], flavours[slot]);
        flavours[slot] = flavour;
        CHECK_OK(live_make(&live[slot], flavour, comm));
        window_watch(live[slot].win);
        live[slot].base[world_rank] = turn;
        if (turn % 8 == 0)
            live_use(&live[slot], flavour, comm, turn);
    }
    for (int i = 0; i < ALIVE; i++)
        if (live[i].win != MPI_WIN_NULL)
            live_free(&live[i], flavours[i]);
}

static void windows_of_all_flavours_in_turn_leave_nothing(enum window_kind kind)
{
    const char *text = getenv("TEST_TURNS");
    int turns = text ? atoi(text) : world_size <= 2 ? scaled_rounds(20000) : scaled_rounds(4000);
    struct random random = random_start(1);
    MPI_Comm comms[3] = {MPI_COMM_WORLD, MPI_COMM_NULL, MPI_COMM_SELF};
    (void)kind;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &comms[1]);
    turns_run(turns / 10 + 400, comms, &random);
    struct footprint before = footprint_read();
    turns_run(turns, comms, &random);
    struct footprint after = footprint_read();
    CHECK(after.mappings <= before.mappings + 8, "%ld mappings became %ld", before.mappings,
          after.mappings);
    CHECK(after.descriptors <= before.descriptors + 4, "%ld descriptors became %ld",
          before.descriptors, after.descriptors);
    CHECK(after.resident_kib <= before.resident_kib + 4096 + FREED_CACHED_KIB,
          "%ld KiB became %ld KiB", before.resident_kib, after.resident_kib);
    MPI_Comm_free(&comms[1]);
}

static const struct test_case cases[] = {
    CASE(thousands_of_windows_live_at_once, KIND_ANY, 1),
    CASE(handles_that_run_out_are_refused_on_all_ranks, KIND_ANY, 1),
    CASE(one_rank_without_handles_fails_on_all, KIND_ANY, 1),
    CASE(windows_of_all_flavours_in_turn_leave_nothing, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
