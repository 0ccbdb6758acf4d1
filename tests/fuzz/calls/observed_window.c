/* Memory of every kind with guards around it.  KIND_ARENA is in the middle of memory that Oriel
 * shares. KIND_HEAP is in the middle of a file that the test shares itself; Oriel reaches it
 * through the kernel, like memory of malloc. The other kinds have small windows as neighbours. */
#define _GNU_SOURCE
#include "observed_window.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void region_add(struct observed_window *observed, unsigned char *at, size_t len_bytes)
{
    observed->regions[observed->region_count++] =
        (struct region){at, malloc(len_bytes + 1), len_bytes};
}

static void draw(struct observed_window *observed, struct random *shared)
{
    static const int sizes[] = {0, 1, 7, 64, 96, 200, 256, 500, OBSERVED_MOST_BYTES};
    static const MPI_Aint units[] = {1, 1, 1, 2, 3, 4, 8, 8, 16, 1000, (MPI_Aint)1 << 30};
    bool alike = one_in(shared, 3);
    for (int i = 0; i < observed->n; i++) {
        observed->size[i] = one_in(shared, 3) ? sizes[random_below(shared, COUNT_OF(sizes))]
                                              : 256 + below(shared, 200);
        observed->unit[i] = units[random_below(shared, COUNT_OF(units))];
        if (alike)
            observed->unit[i] = observed->unit[0];
    }
}

/* This process's mapping of rank i's memory in a window of Oriel; none of ranks on other nodes. */
static void region_share(struct observed_window *observed, MPI_Win win, int i, size_t len_bytes)
{
    MPI_Aint size, unit;
    void *at = NULL;
    CHECK_OK(FUZZ(Win_shared_query_c, win, i, &size, &unit, &at));
    region_add(observed, at, at ? len_bytes : 0);
}

static void guard_open(struct observed_window *observed, int which)
{
    void *base;
    CHECK_OK(
        FUZZ(Win_allocate, 64, 1, MPI_INFO_NULL, observed->comm, &base, &observed->guards[which]));
}

static void make_allocated(struct observed_window *observed, MPI_Info info, bool wide)
{
    void *base;
    MPI_Aint size = observed->size[observed->me], unit = observed->unit[observed->me];
    guard_open(observed, 0);
    if (observed->kind == KIND_ALLOCATE && wide)
        CHECK_OK(FUZZ(Win_allocate_c, size, unit, info, observed->comm, &base, &observed->win));
    else if (observed->kind == KIND_ALLOCATE)
        CHECK_OK(FUZZ(Win_allocate, size, (int)unit, info, observed->comm, &base, &observed->win));
    else if (wide)
        CHECK_OK(
            FUZZ(Win_allocate_shared_c, size, unit, info, observed->comm, &base, &observed->win));
    else
        CHECK_OK(FUZZ(Win_allocate_shared, size, (int)unit, info, observed->comm, &base,
                      &observed->win));
    guard_open(observed, 1);
    for (int i = 0; i < observed->n; i++)
        region_share(observed, observed->win, i, (size_t)observed->size[i]);
    for (int i = 0; i < 2 * observed->n; i++)
        region_share(observed, observed->guards[i % 2], i / 2, 64);
}

/* A file of this process, which the others map through its name in /proc. */
static unsigned char *map_file(struct observed_window *observed, int owner, const int *pids,
                               const int *files)
{
    char path[64];
    size_t len_bytes = (size_t)observed->size[owner] + 2 * OBSERVED_GUARD_BYTES;
    int file = observed->file;
    if (owner != observed->me) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", pids[owner], files[owner]);
        file = open(path, O_RDWR);
    }
    void *at = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(at != MAP_FAILED, "cannot map the memory of rank %d", owner);
    if (owner != observed->me)
        close(file);
    return at;
}

static void map_all(struct observed_window *observed)
{
    int pid = getpid(), pids[FUZZ_RANKS], files[FUZZ_RANKS];
    observed->file = memfd_create("fuzz", 0);
    CHECK(ftruncate(observed->file, observed->size[observed->me] + 2 * OBSERVED_GUARD_BYTES) == 0,
          "no memory for a file");
    MPI_Allgather(&pid, 1, MPI_INT, pids, 1, MPI_INT, observed->comm);
    MPI_Allgather(&observed->file, 1, MPI_INT, files, 1, MPI_INT, observed->comm);
    for (int i = 0; i < observed->n; i++) {
        bool seen = i == observed->me || ranks_share_memory();
        region_add(observed, seen ? map_file(observed, i, pids, files) : NULL,
                   seen ? (size_t)observed->size[i] + 2 * OBSERVED_GUARD_BYTES : 0);
    }
}

static void make_created(struct observed_window *observed, MPI_Info info, bool wide)
{
    void *base;
    MPI_Aint size = observed->size[observed->me], unit = observed->unit[observed->me];
    if (observed->kind == KIND_HEAP) {
        map_all(observed);
    } else {
        CHECK_OK(FUZZ(Win_allocate, size + 2 * OBSERVED_GUARD_BYTES, 1, MPI_INFO_NULL,
                      observed->comm, &base, &observed->backing));
        for (int i = 0; i < observed->n; i++)
            region_share(observed, observed->backing, i,
                         (size_t)observed->size[i] + 2 * OBSERVED_GUARD_BYTES);
    }
    for (int i = 0; i < observed->n; i++)
        observed->before[i] = OBSERVED_GUARD_BYTES;
    base = observed_memory(observed, observed->me);
    if (wide)
        CHECK_OK(FUZZ(Win_create_c, base, size, unit, info, observed->comm, &observed->win));
    else
        CHECK_OK(FUZZ(Win_create, base, size, (int)unit, info, observed->comm, &observed->win));
}

MPI_Info observed_info(void)
{
    char text[8];
    MPI_Info info;
    snprintf(text, sizeof text, "%d", OBSERVED_COUNTERS);
    MPI_Info_create(&info);
    MPI_Info_set(info, "oriel_notifications", text);
    return info;
}

void observed_open(struct observed_window *observed, enum window_kind kind, MPI_Comm comm,
                   struct random *shared)
{
    MPI_Info info = observed_info();
    bool wide = one_in(shared, 2), noncontig = one_in(shared, 2);
    *observed = (struct observed_window){.kind = kind,
                                         .win = MPI_WIN_NULL,
                                         .backing = MPI_WIN_NULL,
                                         .file = -1,
                                         .guards = {MPI_WIN_NULL, MPI_WIN_NULL}};
    MPI_Comm_dup(comm, &observed->comm);
    MPI_Comm_size(comm, &observed->n);
    MPI_Comm_rank(comm, &observed->me);
    draw(observed, shared);
    if (noncontig)
        MPI_Info_set(info, "alloc_shared_noncontig", "true");
    if (kind == KIND_ALLOCATE || kind == KIND_SHARED)
        make_allocated(observed, info, wide);
    else
        make_created(observed, info, wide);
    MPI_Info_free(&info);
    MPI_Win_set_errhandler(observed->win, MPI_ERRORS_RETURN);
    observed->epochs =
        (struct epochs){.n = observed->n, .me = observed->me, .comm = observed->comm};
    for (size_t i = 0; observed->n > 0 && i < observed->regions[observed->me].len_bytes; i++)
        observed->regions[observed->me].at[i] = (unsigned char)(i * 37 + (size_t)observed->me);
    barrier(observed->comm);
    observed_expect_current(observed);
    barrier(observed->comm);
}

void observed_close(struct observed_window *observed)
{
    notify_settle(observed);
    CHECK_OK(FUZZ(Win_free, &observed->win));
    if (observed->backing != MPI_WIN_NULL)
        CHECK_OK(FUZZ(Win_free, &observed->backing));
    for (int i = 0; i < 2; i++)
        if (observed->guards[i] != MPI_WIN_NULL)
            CHECK_OK(FUZZ(Win_free, &observed->guards[i]));
    for (int i = 0; i < observed->region_count; i++) {
        if (observed->file >= 0)
            munmap(observed->regions[i].at, observed->regions[i].len_bytes);
        free(observed->regions[i].expected);
    }
    if (observed->file >= 0)
        close(observed->file);
    MPI_Comm_free(&observed->comm);
}

void observed_expect_current(struct observed_window *observed)
{
    for (int i = 0; i < observed->region_count; i++)
        if (observed->regions[i].len_bytes > 0)
            memcpy(observed->regions[i].expected, observed->regions[i].at,
                   observed->regions[i].len_bytes);
}

void observed_check(struct observed_window *observed)
{
    for (int i = 0; i < observed->region_count; i++) {
        struct region *region = &observed->regions[i];
        if (region->len_bytes == 0 || memcmp(region->expected, region->at, region->len_bytes) == 0)
            continue;
        size_t at = 0;
        while (region->expected[at] == region->at[at])
            at++;
        CHECK(false, "%.250s: byte %ld of region %d of %d changed", fuzz_description(),
              i < observed->n ? (long)at - (long)observed->before[i] : (long)at, i,
              observed->region_count);
        memcpy(region->expected, region->at, region->len_bytes);
    }
}
