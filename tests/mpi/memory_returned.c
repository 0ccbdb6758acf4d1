/* Memory of windows returns to the system when they are freed, whatever their size and flavour, and
 * no file system limits it. At most the memory that Oriel retains for the next window remains. The
 * memory file is found among the process's descriptors; on a bare host, which has none, only the
 * node's figures are checked. A plain MPI program, run by the test rows. */
#include "footprint.h"
#include "harness.h"
#include "memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 3000, TURNS = 60, KEPT_KIB = 2048, REUSED_KIB = 256 << 10 };
/* The header and slabs of small blocks remain, and REUSED_KIB of freed memory for the next. */

/* One window of the kind; size and unit may differ by rank. */
static struct window plain_make(enum window_kind kind, MPI_Aint size_bytes)
{
    struct window window = {MPI_WIN_NULL, NULL, kind};
    if (kind == KIND_ALLOCATE) {
        MPI_Win_allocate(size_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window.base, &window.win);
    } else if (kind == KIND_SHARED) {
        MPI_Win_allocate_shared(size_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window.base,
                                &window.win);
    } else {
        if (kind == KIND_HEAP)
            window.base = malloc((size_t)size_bytes);
        else
            MPI_Alloc_mem(size_bytes, MPI_INFO_NULL, &window.base);
        MPI_Win_create(window.base, size_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window.win);
    }
    window_watch(window.win);
    return window;
}

/* Rank 0 frees memory that the others have left when it makes or frees the next window. */
static void window_last(void)
{
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 2; i++) {
        struct window window = plain_make(KIND_ALLOCATE, 8);
        window_free(&window);
        barrier(MPI_COMM_WORLD);
    }
}

static MPI_Aint random_size(struct random *random)
{
    MPI_Aint size_bytes = (MPI_Aint)1 << random_below(random, 21);
    return size_bytes + (MPI_Aint)random_below(random, (uint64_t)size_bytes);
}

static void use_once(enum window_kind kind, struct random *random)
{
    MPI_Aint size_bytes = random_size(random);
    struct window window = plain_make(kind, size_bytes);
    memset(window.base, 1, (size_t)size_bytes);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* If the pages of live windows are not visible, leaked ones would not be either. The same on all
 * ranks. */
static bool sees_pages_of(enum window_kind kind)
{
    enum { KIB = 1024 };
    if (!through_oriel()) {
        harness_skip("no memory file: memory is the host's");
        return false;
    }
    struct window window = plain_make(kind, KIB * 1024);
    memset(window.base, 1, KIB * 1024);
    barrier(MPI_COMM_WORLD);
    long kib = memory_file_kib(), least_kib, sum_kib;
    MPI_Allreduce(&kib, &least_kib, 1, MPI_LONG, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&kib, &sum_kib, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    window_free(&window);
    return CHECK(least_kib > 0 && sum_kib >= KIB * world_size,
                 "windows have %d KiB on each rank, the memory files %ld KiB together, one %ld",
                 KIB, sum_kib, least_kib);
}

static void pages_of_freed_windows_are_given_back(enum window_kind kind)
{
    struct random random = random_start((uint64_t)world_rank + 17 * (uint64_t)kind);
    int rounds = scaled_rounds(ROUNDS);
    if (!sees_pages_of(kind))
        return;
    for (int round = 0; round < 50; round++)
        use_once(kind, &random);
    window_last();
    struct footprint before = footprint_read();
    for (int round = 0; round < rounds; round++)
        use_once(kind, &random);
    window_last();
    long after_kib = memory_file_kib();
    struct footprint after = footprint_read();
    CHECK(after_kib <= KEPT_KIB + REUSED_KIB, "the memory file holds %ld KiB and no window",
          after_kib);
    CHECK(after.mappings <= before.mappings + 8, "%ld mappings became %ld", before.mappings,
          after.mappings);
    CHECK(after.descriptors <= before.descriptors + 4, "%ld descriptors became %ld",
          before.descriptors, after.descriptors);
}

/* Many alive at a time, freed in another order. */
static void pages_of_freed_memory_are_given_back(enum window_kind kind)
{
    enum { LIVE = 32 };
    struct random random = random_start((uint64_t)world_rank);
    char *memory[LIVE] = {NULL};
    (void)kind;
    if (!sees_pages_of(KIND_ARENA))
        return;
    for (int turn = 0; turn < ROUNDS; turn++) {
        int slot = (int)random_below(&random, LIVE);
        size_t size_bytes = (size_t)random_size(&random);
        if (memory[slot])
            MPI_Free_mem(memory[slot]);
        MPI_Alloc_mem((MPI_Aint)size_bytes, MPI_INFO_NULL, &memory[slot]);
        memset(memory[slot], 1, size_bytes);
    }
    for (int slot = 0; slot < LIVE; slot++)
        if (memory[slot])
            MPI_Free_mem(memory[slot]);
    long after_kib = memory_file_kib();
    CHECK(after_kib <= KEPT_KIB + REUSED_KIB,
          "the memory file holds %ld KiB and no memory of the program", after_kib);
}

/* A figure of /proc/meminfo, in KiB. */
static long node_kib(const char *name)
{
    char line[128];
    long kib = -1;
    size_t name_bytes = strlen(name);
    FILE *info = fopen("/proc/meminfo", "r");
    while (info && fgets(line, sizeof line, info))
        if (strncmp(line, name, name_bytes) == 0 && line[name_bytes] == ':')
            kib = atol(line + name_bytes + 1);
    if (info)
        fclose(info);
    return kib;
}

static bool room_for(long kib)
{
    int room = node_kib("MemAvailable") > 2 * kib;
    MPI_Bcast(&room, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!room)
        harness_skip("too little memory is free");
    return room;
}

/* --- core files --- */

static void check_dumped(const char *when, const void *address, long most_kib)
{
    bool has_address;
    long kib = dumped_kib(address, &has_address);
    CHECK(kib <= most_kib, "%s: core files have %ld KiB of memory files, %ld is the most", when,
          kib, most_kib);
    CHECK(address == NULL || has_address, "%s: core files lack the window's memory", when);
}

/* A child whose core file would contain too much, or lacks its writes, exits with 1. */
static void check_child(char *address, long most_kib)
{
    int status = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        bool has_address;
        address[0] = 5;
        _exit(dumped_kib(address, &has_address) > most_kib || !has_address);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "a child's core file: %d",
          status);
}

/* Not the reserve, and of previously used memory only the part retained for the next window. Of a
 * window each rank's core file contains the rank's own part, or everything in its memory file. */
static void core_files_have_the_memory_in_use_alone(enum window_kind kind)
{
    const MPI_Aint size_bytes = 96 << 20, few_bytes = 3 << 20;
    const long slack_kib = (20L << 10) + REUSED_KIB;
    const long parts = kind == KIND_SHARED && world_rank == 0 ? world_size : 1;
    const long few_kib = parts * (few_bytes >> 10), large_kib = parts * (size_bytes >> 10);
    if (!room_for((96L << 10) * world_size))
        return;
    struct window window = plain_make(kind, few_bytes);
    memset(window.base, 3, (size_t)few_bytes);
    check_dumped("a small window", window.base, few_kib + slack_kib);
    check_dumped("its end", window.base + few_bytes - 1, few_kib + slack_kib);
    if (through_oriel())
        check_child(window.base + few_bytes / 2, few_kib + slack_kib);
    barrier(MPI_COMM_WORLD);
    struct window large = plain_make(kind, size_bytes);
    for (int part = 0; part < 4; part++)
        check_dumped("a large one", large.base + size_bytes / 4 * part,
                     large_kib + few_kib + 2 * slack_kib);
    barrier(MPI_COMM_WORLD);
    window_free(&large);
    window_last();
    check_dumped("the large one is freed", window.base, few_kib + slack_kib);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
    window_last();
    check_dumped("both are freed", NULL, slack_kib);
}

/* Other processes use the node meanwhile: one undisturbed turn suffices. Each rank has more than is
 * retained for the next. */
static void the_node_gets_the_memory_back(enum window_kind kind)
{
    const long total_kib = kind == KIND_SHARED ? 512L << 10 : (REUSED_KIB + 1024L) * world_size;
    MPI_Aint size_bytes = (MPI_Aint)total_kib * 1024 / world_size;
    int done = 0;
    if (kind == KIND_ARENA && !through_oriel()) {
        harness_skip("the host's memory is private");
        return;
    }
    if (!room_for(total_kib))
        return;
    for (int turn = 0; turn < TURNS && !done; turn++) {
        usleep(turn < 8 ? 0 : 500000); /* tests like this one take seconds */
        window_last();
        long before_kib = node_kib("Shmem");
        barrier(MPI_COMM_WORLD);
        struct window window = plain_make(kind, size_bytes);
        memset(window.base, 1, (size_t)size_bytes);
        barrier(MPI_COMM_WORLD);
        long during_kib = node_kib("Shmem");
        barrier(MPI_COMM_WORLD);
        window_free(&window);
        window_last();
        long after_kib = node_kib("Shmem");
        done = during_kib - before_kib >= total_kib / 10 * 9 &&
               after_kib - before_kib <= total_kib / 10;
        MPI_Bcast(&done, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (!done && world_rank == 0)
            printf("# Shmem: %ld KiB before, %ld with the window, %ld after\n", before_kib,
                   during_kib, after_kib);
    }
    CHECK(done, "the node's shared memory never rose and fell by %ld KiB", total_kib);
}

/* Also where /dev/shm is full (dev_shm.py). */
static void large_window_works(enum window_kind kind, MPI_Aint size_bytes)
{
    const MPI_Aint step_bytes = 1 << 20;
    int target = (world_rank + 1) % world_size, origin = (world_rank + world_size - 1) % world_size;
    struct window window = plain_make(kind, size_bytes);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win);
    for (MPI_Aint at = step_bytes; at <= size_bytes; at += step_bytes) {
        int64_t value = at + world_rank;
        MPI_Put(&value, 1, MPI_INT64_T, target, at - 8, 1, MPI_INT64_T, window.win);
        MPI_Win_flush(target, window.win);
    }
    MPI_Win_unlock(target, window.win);
    barrier(MPI_COMM_WORLD);
    for (MPI_Aint at = step_bytes; at <= size_bytes; at += step_bytes) {
        int64_t value;
        memcpy(&value, window.base + at - 8, sizeof value);
        if (!CHECK_EQUAL(value, at + origin))
            break;
    }
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static void windows_of_256_mib_on_each_rank_work(enum window_kind kind)
{
    if (room_for((256L << 10) * world_size))
        large_window_works(kind, (MPI_Aint)256 << 20);
}

/* dev_shm.py reports that this job has its own /dev/shm. Bare hosts, whose windows are there, end
 * by SIGBUS. */
static void windows_work_where_dev_shm_is_full(enum window_kind kind)
{
    static const char path[] = "/dev/shm/oriel-filler", page[4096];
    if (getenv("TEST_OWN_DEV_SHM") == NULL) {
        harness_skip("TEST_OWN_DEV_SHM is not set");
        return;
    }
    int fd = world_rank == 0 ? open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600) : -1;
    while (fd >= 0 && write(fd, page, sizeof page) > 0)
        continue;
    CHECK(fd < 0 || errno == ENOSPC, "%s: %s", path, strerror(errno));
    barrier(MPI_COMM_WORLD);
    large_window_works(kind, 16 << 20);
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    barrier(MPI_COMM_WORLD);
}

static const struct test_case cases[] = {
    CASE(windows_work_where_dev_shm_is_full, KIND_ALLOCATE | KIND_SHARED | KIND_ARENA, 1),
    CASE(windows_of_256_mib_on_each_rank_work, KIND_ALLOCATE | KIND_SHARED | KIND_ARENA, 1),
    CASE(pages_of_freed_windows_are_given_back, KIND_ALLOCATE | KIND_SHARED | KIND_ARENA, 1),
    CASE(pages_of_freed_memory_are_given_back, KIND_ANY, 1),
    CASE(core_files_have_the_memory_in_use_alone,
         KIND_ALLOCATE | KIND_SHARED | KIND_ARENA | KIND_HEAP, 1),
    CASE(the_node_gets_the_memory_back, KIND_ALLOCATE | KIND_SHARED | KIND_ARENA, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
