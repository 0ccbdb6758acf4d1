/* Windows in a process without address space or without free descriptors, on one rank or on all.
 * Either the window works, whether Oriel or the host makes it, or every rank gets the same error
 * class. Nothing is leaked, and the next window works.
 *
 * TEST_FIRST: the program's first window meets the limit, before any memory file exists: "space" or
 * "descriptors", the ranks "first", "last" or "all", the first level. Oriel then leaves the window
 * to the host, if necessary. Bare hosts fail at the tightest of these limits. MPICH hangs or
 * crashes in MPI_Win_allocate when one rank alone has no descriptor or 16 KiB of address space
 * left; on all ranks it tolerates both. With four ranks it also fails when any of them have 4 MiB
 * left. Open MPI crashes below some hundred KiB of address space. The rows begin above these
 * limits. A plain MPI program, run by the test rows. */
#include "footprint.h"
#include "harness.h"
#include "memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { BYTES = 300000, LEVELS = 5, DESCRIPTORS_MOST = 20, FILLERS = 4096, KEPT_KIB = 1024 };
enum what { SPACE, DESCRIPTORS };
enum ranks { FIRST, LAST, ALL, RANKS_END };

/* The address space that remains at each level. */
static const long space_left_kib[LEVELS] = {16, 256, 4096, 65536, 1048576};
static const int descriptors_left[LEVELS] = {0, 1, 2, 3, 8};

/* TEST_EVERY: each number of descriptors from 0 on is a level. */
static int levels_of(enum what what)
{
    return what == DESCRIPTORS && getenv("TEST_EVERY") ? DESCRIPTORS_MOST + 1 : LEVELS;
}

static int descriptors_at(int level)
{
    return getenv("TEST_EVERY") ? level : descriptors_left[level];
}

/* --- the limits --- */

static struct {
    struct rlimit before;
    int resource;
    int filler[FILLERS];
    int filler_count;
} squeezed;

static bool is_among(enum ranks ranks)
{
    return ranks == ALL || (ranks == FIRST && world_rank == 0) ||
           (ranks == LAST && world_rank == world_size - 1);
}

static long space_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        sscanf(line, "VmSize: %ld", &kib);
    if (status)
        fclose(status);
    return kib;
}

/* Opens all descriptors below the limit except the given number. */
static rlim_t use_descriptors(int left)
{
    int last = open("/dev/null", O_RDONLY | O_CLOEXEC);
    squeezed.filler[squeezed.filler_count++] = last;
    for (int fd = last; fd < 256 && squeezed.filler_count < FILLERS - 1;
         fd = squeezed.filler[squeezed.filler_count - 1])
        squeezed.filler[squeezed.filler_count++] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    rlim_t limit = (rlim_t)squeezed.filler[squeezed.filler_count - 1] + 1;
    for (int i = 0; i < left; i++)
        close(squeezed.filler[--squeezed.filler_count]);
    return limit;
}

static void squeeze(enum what what, enum ranks ranks, int level)
{
    squeezed.resource = what == SPACE ? RLIMIT_AS : RLIMIT_NOFILE;
    squeezed.filler_count = 0;
    getrlimit((__rlimit_resource_t)squeezed.resource, &squeezed.before);
    if (!is_among(ranks))
        return;
    struct rlimit tight = squeezed.before;
    tight.rlim_cur = what == SPACE ? (rlim_t)(space_kib() + space_left_kib[level]) * 1024
                                   : use_descriptors(descriptors_at(level));
    CHECK(setrlimit((__rlimit_resource_t)squeezed.resource, &tight) == 0, "setrlimit: %s",
          strerror(errno));
}

static void relax(void)
{
    setrlimit((__rlimit_resource_t)squeezed.resource, &squeezed.before);
    while (squeezed.filler_count > 0)
        close(squeezed.filler[--squeezed.filler_count]);
}

/* --- windows --- */

static int64_t heap[BYTES / 8 + 1];

static int class_of(int code)
{
    int class = code;
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    return class;
}

/* Returns the error class of the creation; KIND_ARENA: the memory exists already. */
static int make(enum window_kind kind, MPI_Comm comm, struct window *window)
{
    if (kind == KIND_ALLOCATE)
        return class_of(
            MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, comm, &window->base, &window->win));
    if (kind == KIND_SHARED)
        return class_of(
            MPI_Win_allocate_shared(BYTES, 1, MPI_INFO_NULL, comm, &window->base, &window->win));
    return class_of(MPI_Win_create(window->base, BYTES, 1, MPI_INFO_NULL, comm, &window->win));
}

/* All ranks put to a neighbour, at both ends. */
static void use(const struct window *window)
{
    int target = (world_rank + 1) % world_size, origin = (world_rank + world_size - 1) % world_size;
    int64_t value = 1000 + world_rank, found[2];
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window->win);
    MPI_Put(&value, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, window->win);
    MPI_Put(&value, 1, MPI_INT64_T, target, BYTES - 8, 1, MPI_INT64_T, window->win);
    MPI_Win_unlock(target, window->win);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, window->win);
    memcpy(&found[0], window->base, 8);
    memcpy(&found[1], window->base + BYTES - 8, 8);
    MPI_Win_unlock(world_rank, window->win);
    CHECK_EQUAL(found[0], 1000 + origin);
    CHECK_EQUAL(found[1], 1000 + origin);
    barrier(MPI_COMM_WORLD);
}

/* Checks that all ranks have the same class. */
static void agree(int class, const char *when)
{
    int least, most;
    MPI_Allreduce(&class, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&class, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(least == most, "%s: one rank has class %d, another %d", when, least, most);
}

static struct window window_over(enum window_kind kind)
{
    struct window window = {MPI_WIN_NULL, NULL, kind};
    if (kind == KIND_HEAP)
        window.base = (char *)heap;
    if (kind == KIND_ARENA)
        MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &window.base);
    return window;
}

static void window_close(struct window *window)
{
    if (window->win != MPI_WIN_NULL)
        MPI_Win_free(&window->win);
    if (window->kind == KIND_ARENA)
        MPI_Free_mem(window->base);
}

static void next_window_works(enum window_kind kind, MPI_Comm comm)
{
    struct window window = window_over(kind);
    int class = make(kind, comm, &window);
    if (CHECK_EQUAL(class, MPI_SUCCESS)) {
        window_watch(window.win);
        use(&window);
        CHECK(memory_file_kib() != 0, "a window lives, and the memory file holds nothing");
    }
    window_close(&window);
}

static int made_count; /* windows under a limit */

static void make_under_limit(enum window_kind kind, MPI_Comm comm, enum what what, enum ranks ranks,
                             int level)
{
    char when[80];
    struct window window = window_over(kind);
    snprintf(when, sizeof when, "%s, level %d, ranks %d",
             what == SPACE ? "address space" : "descriptors", level, (int)ranks);
    barrier(MPI_COMM_WORLD);
    squeeze(what, ranks, level);
    int class = make(kind, comm, &window);
    relax();
    agree(class, when);
    if (class == MPI_SUCCESS && !harness_failed()) {
        made_count++;
        window_watch(window.win);
        use(&window);
    }
    window_close(&window);
}

static MPI_Comm quiet_comm(void)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    return comm;
}

static void all_levels(enum window_kind kind, enum what what)
{
    MPI_Comm comm = quiet_comm();
    struct footprint before = {0, 0, 0};
    long before_kib = 0;
    next_window_works(kind, comm);
    for (int turn = 0; turn < 4; turn++) {
        if (turn == 1) {
            before = footprint_read();
            before_kib = memory_file_kib();
            CHECK(before_kib > 0 || !through_oriel(), "there is no memory file to measure");
        }
        for (int level = 0; level < levels_of(what); level++)
            for (enum ranks ranks = FIRST; ranks < RANKS_END; ranks++)
                make_under_limit(kind, comm, what, ranks, level);
        next_window_works(kind, comm);
        next_window_works(KIND_ALLOCATE, comm); /* rank 0 frees memory that the others have left */
    }
    struct footprint after = footprint_read();
    long after_kib = memory_file_kib();
    CHECK(after.mappings <= before.mappings + 8, "%ld mappings became %ld", before.mappings,
          after.mappings);
    /* A leak repeats in each of three turns; between nodes a turn may make a connection, which
     * stays open. */
    CHECK(after.descriptors < before.descriptors + 3, "%ld descriptors became %ld",
          before.descriptors, after.descriptors);
    CHECK(after_kib <= before_kib + KEPT_KIB, "the memory file holds %ld KiB, %ld before",
          after_kib, before_kib);
    MPI_Comm_free(&comm);
}

static void window_without_address_space_works_or_fails_everywhere(enum window_kind kind)
{
    all_levels(kind, SPACE);
}

static void window_without_descriptors_works_or_fails_everywhere(enum window_kind kind)
{
    all_levels(kind, DESCRIPTORS);
}

/* MPI_Alloc_mem is local to each rank. */
static void memory_under_limits(enum what what)
{
    MPI_Errhandler handlers[2];
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handlers[0]);
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &handlers[1]);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    struct footprint before = {0, 0, 0};
    for (int turn = 0; turn < 8 * levels_of(what); turn++) {
        char *memory = NULL;
        if (turn == 2 * levels_of(what))
            before = footprint_read();
        squeeze(what, ALL, turn % levels_of(what));
        int class =
            class_of(MPI_Alloc_mem(turn % 2 == 0 ? 3000 : 30 * BYTES, MPI_INFO_NULL, &memory));
        if (class == MPI_SUCCESS)
            memset(memory, 1, turn % 2 == 0 ? 3000 : 30 * BYTES);
        relax();
        CHECK(class == MPI_SUCCESS || class == MPI_ERR_NO_MEM, "MPI_Alloc_mem gave class %d",
              class);
        if (class == MPI_SUCCESS)
            CHECK_OK(MPI_Free_mem(memory));
    }
    struct footprint after = footprint_read();
    CHECK(after.mappings <= before.mappings + 8, "%ld mappings became %ld", before.mappings,
          after.mappings);
    CHECK(after.descriptors <= before.descriptors, "%ld descriptors became %ld", before.descriptors,
          after.descriptors);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handlers[0]);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handlers[1]);
    MPI_Errhandler_free(&handlers[0]);
    MPI_Errhandler_free(&handlers[1]);
    barrier(MPI_COMM_WORLD);
}

static void alloc_mem_at_a_limit_returns_memory_or_an_error(enum window_kind kind)
{
    (void)kind;
    memory_under_limits(SPACE);
    memory_under_limits(DESCRIPTORS);
}

/* Attaching is local: it works, or the window is unchanged. */
static void attach_under_limit(MPI_Win win, enum what what, enum ranks ranks, int level)
{
    MPI_Aint address, there;
    int64_t value = 77 + level, seen = 0;
    int target = (world_rank + 1) % world_size, origin = (world_rank + world_size - 1) % world_size;
    squeeze(what, ranks, level);
    int class = class_of(MPI_Win_attach(win, heap, BYTES));
    relax();
    if (class != MPI_SUCCESS)
        CHECK_OK(MPI_Win_attach(win, heap, BYTES));
    MPI_Get_address(heap, &address);
    MPI_Sendrecv(&address, 1, MPI_AINT, origin, 1, &there, 1, MPI_AINT, target, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    CHECK_OK(MPI_Put(&value, 1, MPI_INT64_T, target, there, 1, MPI_INT64_T, win));
    CHECK_OK(MPI_Get(&seen, 1, MPI_INT64_T, target, there, 1, MPI_INT64_T, win));
    CHECK_OK(MPI_Win_unlock(target, win));
    CHECK_EQUAL(seen, value);
    barrier(MPI_COMM_WORLD);
    CHECK_EQUAL(heap[0], value);
    CHECK_OK(MPI_Win_detach(win, heap));
    barrier(MPI_COMM_WORLD);
}

/* The window was made under the same limit, or without it where creation under the limit fails on
 * all ranks. */
static void attach_to(MPI_Comm comm, enum what what, enum ranks ranks, int level)
{
    MPI_Win win = MPI_WIN_NULL;
    barrier(MPI_COMM_WORLD);
    squeeze(what, ranks, level);
    int class = class_of(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win));
    relax();
    agree(class, what == SPACE ? "dynamic, address space" : "dynamic, descriptors");
    if (harness_failed())
        return;
    if (class != MPI_SUCCESS)
        CHECK_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    attach_under_limit(win, what, ranks, level);
    MPI_Win_free(&win);
}

/* Between nodes a turn may make a connection, which stays open; a leak repeats in every turn. */
static void dynamic_window_and_attach_at_a_limit_work_or_change_nothing(enum window_kind kind)
{
    MPI_Comm comm = quiet_comm();
    long before = 0;
    long after = LONG_MAX;
    (void)kind;
    for (int turn = 0, more = 1; more != 0 && turn < 6; turn++) {
        for (enum what what = SPACE; what <= DESCRIPTORS; what++)
            for (int level = 0; level < levels_of(what); level++)
                for (enum ranks ranks = FIRST; ranks < RANKS_END; ranks++)
                    attach_to(comm, what, ranks, level);
        before = after;
        after = footprint_read().descriptors;
        more = turn == 0 || after > before;
        MPI_Allreduce(MPI_IN_PLACE, &more, 1, MPI_INT, MPI_MAX, comm);
    }
    CHECK(after <= before, "%ld descriptors became %ld", before, after);
    MPI_Comm_free(&comm);
}

/* A window that needed resources to be freed could never be freed at the limit. */
static void window_is_freed_at_a_limit(enum window_kind kind)
{
    MPI_Comm comm = quiet_comm();
    for (int turn = 0; turn < 2 * LEVELS; turn++) {
        struct window window = window_over(kind);
        int class = make(kind, comm, &window);
        CHECK_EQUAL(class, MPI_SUCCESS);
        window_watch(window.win);
        use(&window);
        squeeze(turn % 2 == 0 ? SPACE : DESCRIPTORS, ALL,
                turn / 2); /* a higher number of descriptors does not limit the free */
        MPI_Win_free(&window.win);
        relax();
        window_close(&window);
        memset(heap, 5, sizeof heap); /* the memory belongs to the program alone again */
    }
    next_window_works(kind, comm);
    MPI_Comm_free(&comm);
}

static void first_window_at_a_limit_works_or_fails_everywhere(enum window_kind kind)
{
    const char *first = getenv("TEST_FIRST");
    (void)kind;
    if (!first) {
        harness_skip("TEST_FIRST is not set");
        return;
    }
    enum what what = strncmp(first, "space", 5) == 0 ? SPACE : DESCRIPTORS;
    enum ranks ranks = strstr(first, "all") ? ALL : strstr(first, "first") ? FIRST : LAST;
    MPI_Comm comm = quiet_comm();
    const char *from = strrchr(first, '-');
    for (int level = from ? atoi(from + 1) : 0; level < levels_of(what); level++)
        make_under_limit(KIND_ALLOCATE, comm, what, ranks, level);
    next_window_works(KIND_ALLOCATE, comm);
    MPI_Comm_free(&comm);
}

static const struct test_case cases[] = {
    CASE(first_window_at_a_limit_works_or_fails_everywhere, KIND_ANY, 1),
    CASE(window_without_descriptors_works_or_fails_everywhere, KINDS_ALL, 1),
    CASE(window_without_address_space_works_or_fails_everywhere, KINDS_ALL, 1),
    CASE(alloc_mem_at_a_limit_returns_memory_or_an_error, KIND_ANY, 1),
    CASE(dynamic_window_and_attach_at_a_limit_work_or_change_nothing, KIND_ANY, 1),
    CASE(window_is_freed_at_a_limit, KINDS_ALL, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
