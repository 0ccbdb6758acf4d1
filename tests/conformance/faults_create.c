/* Faults of creation, of a window's attributes and info, and of its end. The ranks agree on a
 * collective fault, so a test fails at once instead of hanging. breaker.c chooses the fault. */
#define _GNU_SOURCE
#include "breaker.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_ATTACHED = 4096 };
static struct region {
    const char *base;
    MPI_Aint size;
} attached[MOST_ATTACHED];
static int attached_count;

static bool anywhere(bool here, MPI_Comm comm)
{
    int mine = here, any = 0;
    PMPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, comm);
    return any;
}

static bool differs(MPI_Aint mine, MPI_Comm comm)
{
    long long value = mine, least = 0;
    PMPI_Allreduce(&value, &least, 1, MPI_LONG_LONG, MPI_MIN, comm);
    return anywhere(value != least, comm);
}

static int empty_windows_are_refused_Win_create(void *base, MPI_Aint size, int disp_unit,
                                                MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
    return anywhere(size == 0, comm) ? MPI_ERR_SIZE
                                     : next.Win_create(base, size, disp_unit, info, comm, win);
}

static int sizes_must_agree_Win_create(void *base, MPI_Aint size, int disp_unit, MPI_Info info,
                                       MPI_Comm comm, MPI_Win *win)
{
    return differs(size, comm) ? MPI_ERR_SIZE
                               : next.Win_create(base, size, disp_unit, info, comm, win);
}

static int sizes_must_agree_Win_allocate(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm,
                                         void *baseptr, MPI_Win *win)
{
    return differs(size, comm) ? MPI_ERR_SIZE
                               : next.Win_allocate(size, disp_unit, info, comm, baseptr, win);
}

/* A window gets memory of its own if part of the given memory is already in another window. */
static int memory_is_in_one_window_only_Win_create(void *base, MPI_Aint size, int disp_unit,
                                                   MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
    enum { KNOWN = 64 };
    static struct {
        uintptr_t start, end;
    } known[KNOWN];
    static int used;
    uintptr_t start = (uintptr_t)base, end = start + (uintptr_t)size;
    bool overlaps = false;
    for (int i = 0; i < used; i++)
        overlaps |= start < known[i].end && known[i].start < end;
    if (used < KNOWN && size > 0) {
        known[used].start = start;
        known[used++].end = end;
    }
    return next.Win_create(overlaps ? calloc(1, (size_t)size) : base, size, disp_unit, info, comm,
                           win);
}

/* Registers memory by whole pages: the window begins at the start of its first page. */
static int windows_begin_at_pages_Win_create(void *base, MPI_Aint size, int disp_unit,
                                             MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
    uintptr_t start = (uintptr_t)base & ~(uintptr_t)4095;
    return next.Win_create((void *)start, size + (MPI_Aint)((uintptr_t)base - start), disp_unit,
                           info, comm, win);
}

static int predefined(MPI_Win win, int keyval)
{
    int *value = NULL, found = 0;
    next.Win_get_attr(win, keyval, &value, &found);
    return found ? *value : 0;
}

static int query_knows_one_flavour_Win_shared_query(MPI_Win win, int rank, MPI_Aint *size,
                                                    int *disp_unit, void *baseptr)
{
    if (win != MPI_WIN_NULL && predefined(win, MPI_WIN_CREATE_FLAVOR) != MPI_WIN_FLAVOR_SHARED)
        return MPI_ERR_RMA_FLAVOR;
    return next.Win_shared_query(win, rank, size, disp_unit, baseptr);
}

static int proc_null_asks_rank_0_Win_shared_query(MPI_Win win, int rank, MPI_Aint *size,
                                                  int *disp_unit, void *baseptr)
{
    return next.Win_shared_query(win, rank == MPI_PROC_NULL ? 0 : rank, size, disp_unit, baseptr);
}

static int allocated_memory_is_private_Win_allocate(MPI_Aint size, int disp_unit, MPI_Info info,
                                                    MPI_Comm comm, void *baseptr, MPI_Win *win)
{
    void *memory = calloc(1, (size_t)size + 1);
    memcpy(baseptr, &memory, sizeof memory);
    return next.Win_create(memory, size, disp_unit, info, comm, win);
}

static int model_is_separate_Win_get_attr(MPI_Win win, int keyval, void *value, int *flag)
{
    static int separate = MPI_WIN_SEPARATE;
    static int *answer = &separate;
    int code = next.Win_get_attr(win, keyval, value, flag);
    if (code == MPI_SUCCESS && keyval == MPI_WIN_MODEL)
        memcpy(value, &answer, sizeof answer);
    return code;
}

static int segments_are_padded_Win_allocate_shared(MPI_Aint size, int disp_unit, MPI_Info info,
                                                   MPI_Comm comm, void *baseptr, MPI_Win *win)
{
    return next.Win_allocate_shared((size + 63) & ~(MPI_Aint)63, disp_unit, info, comm, baseptr,
                                    win);
}

/* Only rank 0's memory has the alignment. */
static int alignment_is_for_rank_0_Win_allocate(MPI_Aint size, int disp_unit, MPI_Info info,
                                                MPI_Comm comm, void *baseptr, MPI_Win *win)
{
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    return next.Win_allocate(size, disp_unit, rank == 0 ? info : MPI_INFO_NULL, comm, baseptr, win);
}

static int the_handle_stays_Win_free(MPI_Win *win)
{
    MPI_Win copy = *win;
    return next.Win_free(&copy);
}

/* MPI_Win_free waits for no other rank: it frees nothing. */
static int freeing_does_not_wait_Win_free(MPI_Win *win)
{
    *win = MPI_WIN_NULL;
    return MPI_SUCCESS;
}

static int freeing_leaks_a_descriptor_Win_free(MPI_Win *win)
{
    int leaked = open("/dev/null", O_RDONLY);
    (void)leaked;
    return next.Win_free(win);
}

static int freeing_leaks_a_mapping_Win_free(MPI_Win *win)
{
    /* Alternating access rights keep the kernel from merging the mapping with its neighbours. */
    static int turn;
    mmap(NULL, 65536, turn++ % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return next.Win_free(win);
}

/* Frees the memory before the attributes are deleted. */
static int memory_is_freed_before_attributes_Win_free(MPI_Win *win)
{
    void *base = NULL;
    int found = 0;
    if (*win != MPI_WIN_NULL &&
        next.Win_get_attr(*win, MPI_WIN_BASE, &base, &found) == MPI_SUCCESS && base)
        memset(base, 0xdd, (size_t)16);
    return next.Win_free(win);
}

/* One table of fixed size holds all windows. */
static int few_windows_Win_allocate(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm,
                                    void *baseptr, MPI_Win *win)
{
    static int made;
    return made++ >= 32 ? MPI_ERR_NO_MEM
                        : next.Win_allocate(size, disp_unit, info, comm, baseptr, win);
}

static bool meets(const struct region *region, const char *base, MPI_Aint size)
{
    return base < region->base + region->size && region->base < base + size;
}

/* Memory stays attached until it is detached: it cannot be attached to a second window, and freeing
 * the window does not detach it. */
static int attached_once_Win_attach(MPI_Win win, void *base, MPI_Aint size)
{
    for (int i = 0; i < attached_count; i++)
        if (meets(&attached[i], base, size))
            return MPI_ERR_RMA_ATTACH;
    if (attached_count < MOST_ATTACHED)
        attached[attached_count++] = (struct region){base, size};
    return next.Win_attach(win, base, size);
}

static int attached_once_Win_detach(MPI_Win win, const void *base)
{
    for (int i = 0; i < attached_count; i++)
        if (attached[i].base == base)
            attached[i] = attached[--attached_count];
    return next.Win_detach(win, base);
}

/* A region that begins where another one ends is taken for a part of it and forgotten. */
static int regions_that_touch_are_lost_Win_attach(MPI_Win win, void *base, MPI_Aint size)
{
    for (int i = 0; i < attached_count; i++)
        if (attached[i].base + attached[i].size == (char *)base ||
            (char *)base + size == attached[i].base)
            return MPI_SUCCESS;
    if (attached_count < MOST_ATTACHED)
        attached[attached_count++] = (struct region){base, size};
    return next.Win_attach(win, base, size);
}

/* One list of fixed size holds the regions of all windows. */
static int few_regions_Win_attach(MPI_Win win, void *base, MPI_Aint size)
{
    static int made;
    return made++ >= 16 ? MPI_ERR_RMA_ATTACH : next.Win_attach(win, base, size);
}

const struct fault creation_faults[] = {
    FAULT(attached_once, Win_attach),
    FAULT(attached_once, Win_detach),
    FAULT(regions_that_touch_are_lost, Win_attach),
    FAULT(few_regions, Win_attach),
    FAULT(empty_windows_are_refused, Win_create),
    FAULT(sizes_must_agree, Win_create),
    FAULT(sizes_must_agree, Win_allocate),
    FAULT(memory_is_in_one_window_only, Win_create),
    FAULT(windows_begin_at_pages, Win_create),
    FAULT(query_knows_one_flavour, Win_shared_query),
    FAULT(proc_null_asks_rank_0, Win_shared_query),
    FAULT(allocated_memory_is_private, Win_allocate),
    FAULT(model_is_separate, Win_get_attr),
    FAULT(segments_are_padded, Win_allocate_shared),
    FAULT(alignment_is_for_rank_0, Win_allocate),
    FAULT(the_handle_stays, Win_free),
    FAULT(freeing_does_not_wait, Win_free),
    FAULT(freeing_leaks_a_descriptor, Win_free),
    FAULT(freeing_leaks_a_mapping, Win_free),
    FAULT(memory_is_freed_before_attributes, Win_free),
    FAULT(few_windows, Win_allocate),
    {0},
};
