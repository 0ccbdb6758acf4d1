/* Windows of all flavours, created and freed at random, with random sizes, displacement units,
 * hints, memory and groups. Every rank knows each window's kind; members also know its expected
 * bytes. */
#include "soak.h"

#include "../../include/oriel/ext.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE_RANKS_MOST = 8, LARGEST_RANKS_MOST = 4 };

struct soak_window windows[WINDOWS_MOST];
static int windows_made;

static void on_error(MPI_Win *win, int *code, ...)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    union {
        void *found;
        const char *(*call)(void);
    } sentence = {dlsym(RTLD_DEFAULT, "oriel_last_error")};
    (void)win;
    MPI_Error_string(*code, text, &length);
    fail("unexpected error of a window: %s: %s: %s", soak.doing, text,
         sentence.found == NULL ? "" : sentence.call());
}

static void hint_set(MPI_Info info, const char *key, const char *value, enum count count)
{
    MPI_Info_set(info, key, value);
    count_one(count);
}

static bool all_same(const struct soak_window *window, bool unit)
{
    const struct region *first = &window->regions[0][0];
    for (int i = 1; i < window->group->n; i++) {
        const struct region *region = &window->regions[i][0];
        if (unit ? region->unit != first->unit : region->size != first->size)
            return false;
    }
    return true;
}

/* True hints, and the remaining freedom under them. */
static MPI_Info hints_draw(struct soak_window *window, struct random *random)
{
    static const char *const orders[] = {"none", "rar", "raw,war", "rar,raw,war,waw"};
    static const char *const granularities[] = {"1", "8", "64", "4096"};
    static const char *const alignments[] = {"8", "64", "256", "4096", "65536", "2097152"};
    MPI_Info info;
    bool allocates = window->flavour == FLAVOUR_ALLOCATE || window->flavour == FLAVOUR_SHARED;
    window->locks = window->ordered = window->mixes_no_op = true;
    window->notifies = false;
    if (one_in(random, 6)) {
        count_one(COUNT_INFO_NULL);
        return MPI_INFO_NULL;
    }
    int order = below(random, 8), ops = below(random, 8), granularity = below(random, 8),
        alignment = below(random, 12);
    bool no_locks = one_in(random, 6), same_size = one_in(random, 3), same_unit = one_in(random, 3),
         apart = one_in(random, 2), notifies = one_in(random, 2);
    MPI_Info_create(&info);
    if (no_locks)
        hint_set(info, "no_locks", "true", COUNT_INFO_NO_LOCKS);
    window->locks = !no_locks;
    if (order < 4)
        hint_set(info, "accumulate_ordering", orders[order], COUNT_INFO_ORDERING);
    window->ordered = order >= 3;
    if (ops < 2)
        hint_set(info, "accumulate_ops", ops ? "same_op_no_op" : "same_op", COUNT_INFO_OPS);
    window->mixes_no_op = ops > 0;
    if (granularity < 4)
        hint_set(info, "mpi_accumulate_granularity", granularities[granularity],
                 COUNT_INFO_GRANULARITY);
    if (allocates && alignment < (int)COUNT_OF(alignments))
        hint_set(info, "mpi_minimum_memory_alignment", alignments[alignment], COUNT_INFO_ALIGNMENT);
    if (same_size && window->flavour != FLAVOUR_DYNAMIC && all_same(window, false))
        hint_set(info, "same_size", "true", COUNT_INFO_SAME_SIZE);
    if (same_unit && window->flavour != FLAVOUR_DYNAMIC && all_same(window, true))
        hint_set(info, "same_disp_unit", "true", COUNT_INFO_SAME_UNIT);
    window->notifies = notifies;
    if (notifies)
        hint_set(info, "oriel_notifications", "2", COUNT_INFO_NOTIFICATIONS);
    if (apart && window->flavour == FLAVOUR_SHARED)
        hint_set(info, "alloc_shared_noncontig", "true", COUNT_WIN_SHARED_APART);
    return info;
}

/* With few ranks, sometimes larger than the largest single transfer on any path. */
static size_t large_draw(struct random *random, int ranks)
{
    if (ranks > LARGEST_RANKS_MOST || one_in(random, 2))
        return (size_t)between(random, 1 << 18, (1 << 20) + 5000);
    if (ranks <= 2 && one_in(random, 4))
        return (size_t)between(random, 16 << 20, PLAIN_MOST_BYTES);
    return (size_t)between(random, 1 << 20, 5 << 20);
}

size_t size_draw(struct random *random, int ranks)
{
    int choice = below(random, 24);
    if (choice < 3)
        return 0;
    if (choice < 6)
        return (size_t)between(random, 1, 64);
    if (choice < 20)
        return (size_t)between(random, 65, 4096);
    if (choice < 22 || ranks > LARGE_RANKS_MOST)
        return (size_t)between(random, 4097, 40000);
    return large_draw(random, ranks);
}

static int unit_draw(struct random *random)
{
    static const int units[] = {1, 1, 2, 4, 8, 8, 16, 3, 12, 64};
    return units[below(random, COUNT_OF(units))];
}

static void sizes_draw(struct soak_window *window, struct random *random)
{
    bool same_size = one_in(random, 3), same_unit = one_in(random, 2);
    bool none = window->flavour == FLAVOUR_SHARED && one_in(random, 6);
    int large = 2;
    for (int i = 0; i < window->group->n; i++) {
        struct region *region = &window->regions[i][0];
        do
            region->size = size_draw(random, window->group->n);
        while (region->size > 1 << 17 && large-- <= 0);
        region->unit = unit_draw(random);
        if (same_size && i > 0 && window->regions[0][0].size < 1 << 17)
            region->size = window->regions[0][0].size;
        if (none)
            region->size = 0;
        if (same_unit && i > 0)
            region->unit = window->regions[0][0].unit;
    }
}

static void *room(size_t bytes)
{
    void *room = calloc(bytes + 1, 1);
    if (room == NULL)
        fail("no memory");
    return room;
}

static void region_start(struct region *region)
{
    region->claims = room(region->size * sizeof *region->claims);
    region->writers = room(region->size * sizeof *region->writers);
}

void region_stop(struct region *region)
{
    free(region->claims);
    free(region->writers);
    if (region->memory.whole != NULL)
        memory_free(&region->memory);
}

void region_fill(struct region *region, struct random *random)
{
    region->model = room(region->size);
    bytes_draw(region->model, region->size, random);
    region_start(region);
}

static void *large_form(const char *name, bool wanted)
{
    void *function = wanted ? dlsym(RTLD_DEFAULT, name) : NULL;
    if (function != NULL)
        count_one(COUNT_WIN_LARGE);
    return function;
}

static void call_create(struct soak_window *window, struct region *own, MPI_Info info,
                        MPI_Comm comm, bool wide)
{
    union {
        void *found;
        int (*call)(void *, MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, MPI_Win *);
    } large = {large_form("MPI_Win_create_c", wide)};
    if (large.found != NULL)
        large.call(own->at, (MPI_Aint)own->size, own->unit, info, comm, &window->win);
    else
        MPI_Win_create(own->at, (MPI_Aint)own->size, own->unit, info, comm, &window->win);
}

static void call_allocate(struct soak_window *window, struct region *own, MPI_Info info,
                          MPI_Comm comm, bool wide)
{
    bool shared = window->flavour == FLAVOUR_SHARED;
    union {
        void *found;
        int (*call)(MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, void *, MPI_Win *);
    } large = {large_form(shared ? "MPI_Win_allocate_shared_c" : "MPI_Win_allocate_c", wide)};
    if (large.found != NULL)
        large.call((MPI_Aint)own->size, own->unit, info, comm, &own->at, &window->win);
    else if (shared)
        MPI_Win_allocate_shared((MPI_Aint)own->size, own->unit, info, comm, &own->at, &window->win);
    else
        MPI_Win_allocate((MPI_Aint)own->size, own->unit, info, comm, &own->at, &window->win);
}

/* MPI_PROC_NULL means the lowest rank with memory.  If none has any, the answer only reports zero
 * bytes. */
static void lowest_ask(const struct soak_window *window)
{
    unsigned char *at = NULL;
    MPI_Aint size;
    int unit, rank = 0;
    while (rank < window->group->n && window->regions[rank][0].size == 0)
        rank++;
    MPI_Win_shared_query(window->win, MPI_PROC_NULL, &size, &unit, &at);
    count_one(rank < window->group->n ? COUNT_QUERY_LOWEST : COUNT_QUERY_NO_MEMORY);
    if (rank == window->group->n && size != 0)
        fail("MPI_Win_shared_query of MPI_PROC_NULL: %ld bytes, where no rank has any", (long)size);
    if (rank == window->group->n)
        return;
    const struct region *lowest = &window->regions[rank][0];
    if (size != (MPI_Aint)lowest->size || unit != lowest->unit || at != lowest->at)
        fail("MPI_Win_shared_query of MPI_PROC_NULL: %ld bytes in units of %d at %p, not rank %d's "
             "%zu of %d at %p",
             (long)size, unit, (void *)at, rank, lowest->size, lowest->unit, (void *)lowest->at);
}

static void peers_ask(struct soak_window *window)
{
    for (int i = 0; i < window->group->n; i++) {
        struct region *region = &window->regions[i][0];
        MPI_Aint size;
        int unit;
        MPI_Win_shared_query(window->win, i, &size, &unit, &region->at);
        if (size != (MPI_Aint)region->size || unit != region->unit)
            fail("MPI_Win_shared_query: %ld bytes in units of %d, not %zu of %d", (long)size, unit,
                 region->size, region->unit);
    }
    lowest_ask(window);
}

/* The alignment that the window reports for its own part; a host alone may report nothing. */
static void alignment_check(const struct soak_window *window, const void *at, MPI_Info asked)
{
    char wanted[24] = "", used[24] = "";
    int is_asked = 0, found = 0;
    MPI_Info info;
    if (asked != MPI_INFO_NULL)
        MPI_Info_get(asked, "mpi_minimum_memory_alignment", sizeof wanted - 1, wanted, &is_asked);
    MPI_Win_get_info(window->win, &info);
    MPI_Info_get(info, "mpi_minimum_memory_alignment", sizeof used - 1, used, &found);
    MPI_Info_free(&info);
    size_t bytes = found ? strtoul(used, NULL, 10) : 1;
    if (bytes == 0 || (uintptr_t)at % bytes != 0)
        fail("window %d of flavour %d: the memory at %p is not aligned to '%s'", window->number,
             window->flavour, at, used);
    if (is_asked && bytes >= strtoul(wanted, NULL, 10))
        count_one(COUNT_ALIGNED);
}

/* The host has no counters. A rank without memory has no such key. */
static bool is_served_by_oriel(const struct soak_window *window)
{
    char text[64];
    int found = 0;
    MPI_Info info;
    MPI_Win_get_info(window->win, &info);
    MPI_Info_get(info, "oriel_memory", sizeof text - 1, text, &found);
    MPI_Info_free(&info);
    MPI_Allreduce(MPI_IN_PLACE, &found, 1, MPI_INT, MPI_MAX, window->comm);
    return found;
}

/* The call, and the expected contents of the memory afterwards. */
static void window_call(struct soak_window *window, MPI_Info info, struct random *random)
{
    struct region *own = &window->regions[window->group->me][0];
    bool wide = one_in(random, 3), own_comm = one_in(random, 3), shares_comm = one_in(random, 2);
    MPI_Errhandler handler;
    MPI_Comm_dup(window->group->comm, &window->comm);
    MPI_Comm comm = shares_comm ? window->group->comm : window->comm;
    if (own_comm)
        MPI_Comm_dup(window->group->comm, &comm);
    if (window->flavour == FLAVOUR_DYNAMIC)
        MPI_Win_create_dynamic(info, comm, &window->win);
    else if (window->flavour == FLAVOUR_CREATE)
        call_create(window, own, info, comm, wide);
    else
        call_allocate(window, own, info, comm, wide);
    if (own_comm) {
        MPI_Comm_free(&comm);
        count_one(COUNT_WIN_COMM_FREED);
    }
    MPI_Win_create_errhandler(on_error, &handler);
    MPI_Win_set_errhandler(window->win, handler);
    MPI_Errhandler_free(&handler);
    int *model = NULL, found = 0;
    MPI_Win_get_attr(window->win, MPI_WIN_MODEL, &model, &found);
    window->unified = found && *model == MPI_WIN_UNIFIED;
    window->extended = MPIX_Query_oriel() && is_served_by_oriel(window);
    window->notifies = window->notifies && window->extended;
    if (window->flavour == FLAVOUR_SHARED)
        peers_ask(window);
    if (window->flavour == FLAVOUR_ALLOCATE || window->flavour == FLAVOUR_SHARED) {
        if (own->size > 0)
            alignment_check(window, own->at, info);
        memcpy(own->at, own->model, own->size);
    }
    if (window->locks) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, window->group->me, 0, window->win);
        MPI_Win_unlock(window->group->me, window->win);
    }
    barrier(window->group->comm);
}

/* Each rank's part of another window. */
static void parts_draw(struct soak_window *window, struct random *random)
{
    const struct soak_window *parent = &windows[window->parent];
    for (int i = 0; i < window->group->n; i++) {
        const struct region *from = &parent->regions[i][0];
        struct region *region = &window->regions[i][0];
        size_t at = random_below(random, from->size + 1) / 8 * 8;
        region->size = random_below(random, from->size - at + 1);
        region->unit = unit_draw(random);
        region->model = from->model == NULL ? NULL : from->model + at;
        region->at = from->at == NULL ? NULL : from->at + at;
    }
}

static void parent_draw(struct soak_window *window, struct random *random)
{
    int choice = below(random, 2 * WINDOWS_MOST);
    struct soak_window *parent = choice < WINDOWS_MOST ? &windows[choice] : NULL;
    window->parent = -1;
    if (window->flavour != FLAVOUR_CREATE || parent == NULL || parent == window || !parent->live ||
        parent->parent >= 0 || parent->flavour == FLAVOUR_DYNAMIC)
        return;
    window->parent = choice;
    window->group = parent->group;
    parent->children++;
}

/* Drawn by the members alone. */
static void members_make(struct soak_window *window)
{
    static const enum count flavours[] = {COUNT_WIN_CREATE, COUNT_WIN_ALLOCATE, COUNT_WIN_SHARED,
                                          COUNT_WIN_DYNAMIC};
    struct random random = stream(3, (uint64_t)window->number);
    struct random mine = stream(4, (uint64_t)(window->number * RANKS_MOST + window->group->me));
    MPI_Info info = hints_draw(window, &random);
    for (int i = 0; i < window->group->n && window->flavour != FLAVOUR_DYNAMIC; i++) {
        struct region *region = &window->regions[i][0];
        if (window->parent >= 0)
            region_start(region);
        else
            region_fill(region, &random);
        if (region->size == 0)
            count_one(COUNT_SIZE_ZERO);
        if (region->size >= 1 << 18)
            count_one(COUNT_SIZE_LARGE);
        if (region->size >= 2 << 20)
            count_one(COUNT_SIZE_LARGEST);
        if (region->unit % 3 == 0)
            count_one(COUNT_UNIT_ODD);
    }
    struct region *own = &window->regions[window->group->me][0];
    if (window->flavour == FLAVOUR_CREATE && window->parent < 0) {
        memory_allocate(&own->memory, own->size, &mine);
        own->at = own->memory.at;
        memcpy(own->at, own->model, own->size);
    }
    count_one(window->parent >= 0 ? COUNT_WIN_ALIAS : flavours[window->flavour]);
    count_one(window->group->count);
    window_call(window, info, &random);
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
}

void window_make_random(struct random *shared)
{
    int index = 0;
    while (index < WINDOWS_MOST && windows[index].live)
        index++;
    if (index == WINDOWS_MOST)
        return;
    struct soak_window *window = &windows[index];
    *window = (struct soak_window){.live = true, .number = windows_made++, .segments = 1};
    struct random random = stream(5, (uint64_t)window->number);
    do
        window->group = &groups[one_in(shared, 3) ? 0 : below(shared, group_count)];
    while (window->group->n == 0);
    window->flavour = (enum flavour)below(shared, 4);
    if (window->flavour == FLAVOUR_SHARED && !window->group->on_one_node)
        window->flavour = FLAVOUR_ALLOCATE;
    parent_draw(window, shared);
    if (window->parent >= 0)
        parts_draw(window, &random);
    else if (window->flavour != FLAVOUR_DYNAMIC)
        sizes_draw(window, &random);
    if (window->flavour == FLAVOUR_DYNAMIC)
        window->segments = SEGMENTS_MOST;
    if (window->group->me < 0)
        return;
    doing("makes window %d of flavour %d over %d ranks", window->number, window->flavour,
          window->group->n);
    members_make(window);
    if (window->flavour == FLAVOUR_DYNAMIC)
        window_attach_random(window);
}

static void window_end(struct soak_window *window)
{
    if (window->parent >= 0)
        windows[window->parent].children--;
    window->live = false;
    if (window->group->me < 0)
        return;
    doing("frees window %d", window->number);
    struct region *own = window->regions[window->group->me];
    for (int k = 0; k < window->segments && window->flavour == FLAVOUR_DYNAMIC; k++)
        if (own[k].memory.whole != NULL && k % 2 == 0) /* the others end with the window */
            MPI_Win_detach(window->win, own[k].at);
    MPI_Win_free(&window->win);
    MPI_Comm_free(&window->comm);
    for (int i = 0; i < window->group->n; i++) {
        for (int k = 0; k < window->segments; k++) {
            if (window->parent < 0)
                free(window->regions[i][k].model);
            region_stop(&window->regions[i][k]);
        }
    }
}

void window_free_random(struct random *shared)
{
    struct soak_window *window = &windows[below(shared, WINDOWS_MOST)];
    if (window->live && window->children == 0)
        window_end(window);
}

void windows_free(void)
{
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < WINDOWS_MOST; i++)
            if (windows[i].live && windows[i].children == 0)
                window_end(&windows[i]);
}
