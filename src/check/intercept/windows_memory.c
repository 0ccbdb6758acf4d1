/* Memory of windows: regions of dynamic windows, which are recorded for origins, and parts of other
 * members that this process has mapped. */
#include "check/remote/history_proxy.h"
#include "check/window/window_steps.h"

#include "oriel/mpi_rma.h"

#include <stdlib.h>

/* Memory outside its own part in which this process's loads and stores are watched. */
struct oriel_attached_list {
    struct oriel_attached_list *next;
    const void *base;
    uint64_t len_bytes;
    int32_t target; /* whose memory it is */
};

static struct oriel_attached_list **mapping_link_find(struct oriel_checked *window,
                                                      const void *base, int32_t target)
{
    struct oriel_attached_list **link = &window->attached;
    while (*link != NULL && ((*link)->base != base || (*link)->target != target))
        link = &(*link)->next;
    return link;
}

/* Whether it is new. */
static bool mapping_add(struct oriel_checked *window, int32_t target, const void *base,
                        uint64_t len_bytes)
{
    struct oriel_attached_list *region = malloc(sizeof *region);
    if (region == NULL)
        return false;
    *region = (struct oriel_attached_list){.base = base, .len_bytes = len_bytes, .target = target};
    oriel_window_enter(window);
    bool fresh = *mapping_link_find(window, base, target) == NULL;
    if (fresh) {
        region->next = window->attached;
        window->attached = region;
    }
    oriel_window_leave(window);
    if (!fresh)
        free(region);
    return fresh;
}

static uint64_t mapping_drop(struct oriel_checked *window, int32_t target, const void *base)
{
    oriel_window_enter(window);
    struct oriel_attached_list **link = mapping_link_find(window, base, target);
    struct oriel_attached_list *region = *link;
    if (region != NULL)
        *link = region->next;
    oriel_window_leave(window);
    uint64_t len_bytes = region == NULL ? 0 : region->len_bytes;
    free(region);
    return len_bytes;
}

void oriel_window_map(struct oriel_checked *window, int32_t target, const void *base, MPI_Aint size)
{
    oriel_shm_offset history = size > 0 && base != NULL ? oriel_window_history(window, target) : 0;
    if (history != 0 && !oriel_part_is_remote(history) &&
        mapping_add(window, target, base, (uint64_t)size))
        oriel_local_region_add(base, (uint64_t)size, history, window->opened.from,
                               oriel_window_conflict, &window->places[target]);
}

static void region_unmap(const struct oriel_checked *window, int32_t target, const void *base)
{
    oriel_shm_offset history = window->ordered ? oriel_window_history(window, target) : 0;
    if (history == 0)
        return;
    oriel_local_region_remove(base, history);
    oriel_local_forget(history);
}

/* The history still has the accesses to memory that was detached before. */
void oriel_window_unmap_all(struct oriel_checked *window)
{
    if (window->flavour == ORIEL_CHECK_DYNAMIC || window->members[window->rank].size_bytes > 0)
        region_unmap(window, window->rank, window->base);
    while (window->attached != NULL) {
        struct oriel_attached_list *region = window->attached;
        window->attached = region->next;
        region_unmap(window, region->target, region->base);
        free(region);
    }
}

/* --- dynamic windows --- */

/* For the origins. */
static void region_note(const struct oriel_checked *window, enum oriel_member_state_kind kind,
                        const void *base, uint64_t len_bytes)
{
    struct oriel_member_state_answer answer;
    struct oriel_member_state_ask ask = {
        .kind = kind,
        .member = window->rank,
        .extent = {.offset = (int64_t)(uintptr_t)base, .len_bytes = len_bytes, .count = 1}};
    oriel_window_ask(window, window->rank, &ask, &answer);
}

static void region_attach(struct oriel_checked *window, const void *base, MPI_Aint size)
{
    if (size <= 0)
        return;
    region_note(window, ORIEL_MEMBER_ATTACH, base, (uint64_t)size);
    oriel_shm_offset history = oriel_window_history(window, window->rank);
    if (history != 0 && mapping_add(window, window->rank, base, (uint64_t)size))
        oriel_local_region_add(base, (uint64_t)size, history, (int64_t)(uintptr_t)base,
                               oriel_window_conflict, &window->places[window->rank]);
}

static void region_detach(struct oriel_checked *window, const void *base)
{
    region_note(window, ORIEL_MEMBER_DETACH, base, 0);
    uint64_t len_bytes = mapping_drop(window, window->rank, base);
    oriel_shm_offset history = len_bytes > 0 ? oriel_window_history(window, window->rank) : 0;
    if (history == 0)
        return;
    oriel_local_region_remove(base, history);
    oriel_history_forget(history, (int64_t)(uintptr_t)base, len_bytes);
}

ORIEL_EXPORT int PMPI_Win_attach(MPI_Win win, void *base, MPI_Aint size)
{
    if (!oriel_window_look())
        return oriel_host()->Win_attach(win, base, size);
    struct oriel_checked *window = oriel_checked_find(win);
    int code = oriel_host()->Win_attach(win, base, size);
    if (window != NULL && code == MPI_SUCCESS)
        region_attach(window, base, size);
    oriel_check_leave();
    return code;
}
ORIEL_EXPORT int MPI_Win_attach(MPI_Win win, void *base, MPI_Aint size)
    __attribute__((weak, alias("PMPI_Win_attach")));

ORIEL_EXPORT int PMPI_Win_detach(MPI_Win win, const void *base)
{
    if (!oriel_window_look())
        return oriel_host()->Win_detach(win, base);
    struct oriel_checked *window = oriel_checked_find(win);
    int code = oriel_host()->Win_detach(win, base);
    if (window != NULL && code == MPI_SUCCESS)
        region_detach(window, base);
    oriel_check_leave();
    return code;
}
ORIEL_EXPORT int MPI_Win_detach(MPI_Win win, const void *base)
    __attribute__((weak, alias("PMPI_Win_detach")));

/* --- memory of other members --- */

static void member_memory_mapped(MPI_Win win, int rank, MPI_Aint size, const void *baseptr)
{
    struct oriel_checked *window = oriel_checked_find(win);
    if (window != NULL && rank >= 0 && rank < window->n && rank != window->rank)
        oriel_window_map(window, rank, *(void *const *)baseptr, size);
}

#define QUERY(name, Unit)                                                                          \
    ORIEL_EXPORT int PMPI_##name(MPI_Win win, int rank, MPI_Aint *size, Unit *disp_unit,           \
                                 void *baseptr)                                                    \
    {                                                                                              \
        if (!oriel_window_look())                                                                  \
            return oriel_host()->name(win, rank, size, disp_unit, baseptr);                        \
        int code = oriel_host()->name(win, rank, size, disp_unit, baseptr);                        \
        if (code == MPI_SUCCESS)                                                                   \
            member_memory_mapped(win, rank, *size, baseptr);                                       \
        oriel_check_leave();                                                                       \
        return code;                                                                               \
    }                                                                                              \
    ORIEL_EXPORT int MPI_##name(MPI_Win win, int rank, MPI_Aint *size, Unit *disp_unit,            \
                                void *baseptr) __attribute__((weak, alias("PMPI_" #name)));
QUERY(Win_shared_query, int)
QUERY(Win_shared_query_c, MPI_Aint)

ORIEL_EXPORT int PMPI_Win_set_info(MPI_Win win, MPI_Info info)
{
    if (!oriel_window_look())
        return oriel_host()->Win_set_info(win, info);
    struct oriel_checked *window = oriel_checked_find(win);
    uint64_t promises = window == NULL ? 0 : oriel_promises_read(info) & ~window->promises;
    if (promises != 0) {
        window->promises |= promises;
        atomic_fetch_add(&oriel_checked_version,
                         1); /* callsite_cache.c has cached accesses without them */
    }
    int code = oriel_host()->Win_set_info(win, info);
    oriel_check_leave();
    return code;
}
ORIEL_EXPORT int MPI_Win_set_info(MPI_Win win, MPI_Info info)
    __attribute__((weak, alias("PMPI_Win_set_info")));
