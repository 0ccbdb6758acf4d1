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

static void region_add(struct field *field, unsigned char *at, size_t len_bytes)
{
    field->regions[field->region_count++] = (struct region){at, malloc(len_bytes + 1), len_bytes};
}

static void draw(struct field *field, struct random *shared)
{
    static const int sizes[] = {0, 1, 7, 64, 96, 200, 256, 500, FIELD_MOST_BYTES};
    static const MPI_Aint units[] = {1, 1, 1, 2, 3, 4, 8, 8, 16, 1000, (MPI_Aint)1 << 30};
    bool alike = one_in(shared, 3);
    for (int i = 0; i < field->n; i++) {
        field->size[i] = one_in(shared, 3) ? sizes[random_below(shared, COUNT_OF(sizes))]
                                           : 256 + below(shared, 200);
        field->unit[i] = units[random_below(shared, COUNT_OF(units))];
        if (alike)
            field->unit[i] = field->unit[0];
    }
}

/* This process's mapping of rank i's memory in a window of Oriel; none of ranks on other nodes. */
static void region_share(struct field *field, MPI_Win win, int i, size_t len_bytes)
{
    MPI_Aint size, unit;
    void *at = NULL;
    CHECK_OK(FUZZ(Win_shared_query_c, win, i, &size, &unit, &at));
    region_add(field, at, at ? len_bytes : 0);
}

static void guard_open(struct field *field, int which)
{
    void *base;
    CHECK_OK(FUZZ(Win_allocate, 64, 1, MPI_INFO_NULL, field->comm, &base, &field->guards[which]));
}

static void make_allocated(struct field *field, MPI_Info info, bool wide)
{
    void *base;
    MPI_Aint size = field->size[field->me], unit = field->unit[field->me];
    guard_open(field, 0);
    if (field->kind == KIND_ALLOCATE && wide)
        CHECK_OK(FUZZ(Win_allocate_c, size, unit, info, field->comm, &base, &field->win));
    else if (field->kind == KIND_ALLOCATE)
        CHECK_OK(FUZZ(Win_allocate, size, (int)unit, info, field->comm, &base, &field->win));
    else if (wide)
        CHECK_OK(FUZZ(Win_allocate_shared_c, size, unit, info, field->comm, &base, &field->win));
    else
        CHECK_OK(FUZZ(Win_allocate_shared, size, (int)unit, info, field->comm, &base, &field->win));
    guard_open(field, 1);
    for (int i = 0; i < field->n; i++)
        region_share(field, field->win, i, (size_t)field->size[i]);
    for (int i = 0; i < 2 * field->n; i++)
        region_share(field, field->guards[i % 2], i / 2, 64);
}

/* A file of this process, which the others map through its name in /proc. */
static unsigned char *map_file(struct field *field, int owner, const int *pids, const int *files)
{
    char path[64];
    size_t len_bytes = (size_t)field->size[owner] + 2 * FIELD_GUARD_BYTES;
    int file = field->file;
    if (owner != field->me) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", pids[owner], files[owner]);
        file = open(path, O_RDWR);
    }
    void *at = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(at != MAP_FAILED, "cannot map the memory of rank %d", owner);
    if (owner != field->me)
        close(file);
    return at;
}

static void map_all(struct field *field)
{
    int pid = getpid(), pids[FUZZ_RANKS], files[FUZZ_RANKS];
    field->file = memfd_create("fuzz", 0);
    CHECK(ftruncate(field->file, field->size[field->me] + 2 * FIELD_GUARD_BYTES) == 0,
          "no memory for a file");
    MPI_Allgather(&pid, 1, MPI_INT, pids, 1, MPI_INT, field->comm);
    MPI_Allgather(&field->file, 1, MPI_INT, files, 1, MPI_INT, field->comm);
    for (int i = 0; i < field->n; i++) {
        bool seen = i == field->me || ranks_share_memory();
        region_add(field, seen ? map_file(field, i, pids, files) : NULL,
                   seen ? (size_t)field->size[i] + 2 * FIELD_GUARD_BYTES : 0);
    }
}

static void make_created(struct field *field, MPI_Info info, bool wide)
{
    void *base;
    MPI_Aint size = field->size[field->me], unit = field->unit[field->me];
    if (field->kind == KIND_HEAP) {
        map_all(field);
    } else {
        CHECK_OK(FUZZ(Win_allocate, size + 2 * FIELD_GUARD_BYTES, 1, MPI_INFO_NULL, field->comm,
                      &base, &field->backing));
        for (int i = 0; i < field->n; i++)
            region_share(field, field->backing, i, (size_t)field->size[i] + 2 * FIELD_GUARD_BYTES);
    }
    for (int i = 0; i < field->n; i++)
        field->before[i] = FIELD_GUARD_BYTES;
    base = field_memory(field, field->me);
    if (wide)
        CHECK_OK(FUZZ(Win_create_c, base, size, unit, info, field->comm, &field->win));
    else
        CHECK_OK(FUZZ(Win_create, base, size, (int)unit, info, field->comm, &field->win));
}

void field_open(struct field *field, enum window_kind kind, MPI_Comm comm, struct random *shared)
{
    MPI_Info info = MPI_INFO_NULL;
    bool wide = one_in(shared, 2), noncontig = one_in(shared, 2);
    *field = (struct field){.kind = kind,
                            .win = MPI_WIN_NULL,
                            .backing = MPI_WIN_NULL,
                            .file = -1,
                            .guards = {MPI_WIN_NULL, MPI_WIN_NULL}};
    MPI_Comm_dup(comm, &field->comm);
    MPI_Comm_size(comm, &field->n);
    MPI_Comm_rank(comm, &field->me);
    draw(field, shared);
    if (noncontig) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "alloc_shared_noncontig", "true");
    }
    if (kind == KIND_ALLOCATE || kind == KIND_SHARED)
        make_allocated(field, info, wide);
    else
        make_created(field, info, wide);
    if (noncontig)
        MPI_Info_free(&info);
    MPI_Win_set_errhandler(field->win, MPI_ERRORS_RETURN);
    field->epochs = (struct epochs){.n = field->n, .me = field->me, .comm = field->comm};
    for (size_t i = 0; field->n > 0 && i < field->regions[field->me].len_bytes; i++)
        field->regions[field->me].at[i] = (unsigned char)(i * 37 + (size_t)field->me);
    barrier(field->comm);
    field_keep(field);
    barrier(field->comm);
}

void field_close(struct field *field)
{
    CHECK_OK(FUZZ(Win_free, &field->win));
    if (field->backing != MPI_WIN_NULL)
        CHECK_OK(FUZZ(Win_free, &field->backing));
    for (int i = 0; i < 2; i++)
        if (field->guards[i] != MPI_WIN_NULL)
            CHECK_OK(FUZZ(Win_free, &field->guards[i]));
    for (int i = 0; i < field->region_count; i++) {
        if (field->file >= 0)
            munmap(field->regions[i].at, field->regions[i].len_bytes);
        free(field->regions[i].kept);
    }
    if (field->file >= 0)
        close(field->file);
    MPI_Comm_free(&field->comm);
}

void field_keep(struct field *field)
{
    for (int i = 0; i < field->region_count; i++)
        if (field->regions[i].len_bytes > 0)
            memcpy(field->regions[i].kept, field->regions[i].at, field->regions[i].len_bytes);
}

void field_check(struct field *field)
{
    for (int i = 0; i < field->region_count; i++) {
        struct region *region = &field->regions[i];
        if (region->len_bytes == 0 || memcmp(region->kept, region->at, region->len_bytes) == 0)
            continue;
        size_t at = 0;
        while (region->kept[at] == region->at[at])
            at++;
        CHECK(false, "%.250s: byte %ld of region %d of %d changed", fuzz_description(),
              i < field->n ? (long)at - (long)field->before[i] : (long)at, i, field->region_count);
        memcpy(region->kept, region->at, region->len_bytes);
    }
}
