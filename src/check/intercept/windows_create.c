/* Creation of windows. Before the call is passed on, all members send each other their arguments.
 * After it they meet, so that what came before on any member is ordered before what follows on any
 * other. */
#include "check/intercept/callback_scope.h"
#include "check/intercept/messages_waits.h"
#include "check/local/device_memory.h"
#include "check/remote/history_proxy.h"
#include "check/remote/remote_waits.h"
#include "check/window/notified.h"
#include "check/window/window_steps.h"
#include "check/window/thread_debts.h"

#include "oriel/mpi_rma.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEY_COMMON = 100 }; /* words[0] of the key of a window's shared part; above order.h's */

struct creation {
    enum oriel_check_flavour flavour;
    MPI_Comm comm;
    /* the communicator is checked; all members agree on this */
    bool looks;
    struct oriel_checked_member *members; /* NULL: no memory for them */
    int n;
    int rank;
    struct oriel_site site;
    uint64_t part;  /* of this member, in a window over several nodes */
    uint64_t locks; /* of the first member, likewise */
    bool waits;
};

static _Atomic uint32_t made; /* windows that this process has begun to make, or opened */

uint64_t oriel_window_next_id(void)
{
    return (uint64_t)(uint32_t)(oriel_order_rank() + 1) << 32 | atomic_fetch_add(&made, 1);
}

/* Processes of another MPI_COMM_WORLD (spawned ones) may not be checked: their windows are ignored.
 * spans: not all are on this node. Allocates nothing, because all members must get the same result.
 */
static bool all_of_this_world(MPI_Comm comm, int n, bool *spans)
{
    enum { PART = 256 };
    const struct oriel_host_calls *host = oriel_host();
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Group world = MPI_GROUP_NULL;
    int ranks[PART];
    int world_ranks[PART];
    bool all = host->Comm_group(comm, &group) == MPI_SUCCESS &&
               host->Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS;
    *spans = false;
    for (int from = 0; from < n && all; from += PART) {
        int count = n - from < PART ? n - from : PART;
        for (int i = 0; i < count; i++)
            ranks[i] = from + i;
        all = host->Group_translate_ranks(group, count, ranks, world, world_ranks) == MPI_SUCCESS;
        for (int i = 0; i < count && all; i++) {
            all = world_ranks[i] != MPI_UNDEFINED;
            *spans = *spans || !oriel_rank_is_on_this_node(world_ranks[i]);
        }
    }
    if (group != MPI_GROUP_NULL)
        host->Group_free(&group);
    if (world != MPI_GROUP_NULL)
        host->Group_free(&world);
    if (!all)
        oriel_finding_count("windows with ranks of several MPI_COMM_WORLDs: not checked");
    return all;
}

/* --- waiting for all members --- */

/* asks: ask another node's server, too. It may not answer any more, or report which ranks have
 * died. */
static bool rank_is_lost(int world_rank, bool asks)
{
    size_t count = 0;
    if (oriel_rank_is_on_this_node(world_rank))
        return oriel_wait_rank_has_died(world_rank);
    if (!asks || !oriel_start_reaches_all_nodes())
        return false;
    const struct oriel_wait_snapshot_remote *remote = oriel_check_remote_waits();
    struct oriel_wait_report *reports = remote->reports(remote->node_of(world_rank), &count);
    bool found = reports == NULL;
    for (size_t i = 0; i < count && !found; i++)
        found = reports[i].rank == world_rank && reports[i].state == ORIEL_DEADLOCK_SET_FINISHED &&
                reports[i].record.noted.site.call == ORIEL_CALL_NONE; /* not in MPI_Finalize */
    free(reports);
    return found;
}

/* Called while this rank waits for all members of a communicator (the watch's context): fails if a
 * member has died. Each call looks at a few members in turn, and at one on another node. */
static enum oriel_status members_watch(void *context)
{
    enum { FEW = 64 };
    static _Thread_local unsigned turn, turn_remote;
    const MPI_Comm *comm = context;
    const struct oriel_host_calls *host = oriel_host();
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Group world = MPI_GROUP_NULL;
    int n = 0;
    int lost = MPI_UNDEFINED;
    bool known = host->Comm_size(*comm, &n) == MPI_SUCCESS && n > 0 &&
                 host->Comm_group(*comm, &group) == MPI_SUCCESS &&
                 host->Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS;
    int few = n < FEW ? n : FEW;
    for (int i = 0; i <= few && known && lost == MPI_UNDEFINED; i++) {
        bool asks = i == few;
        int rank = (int)((asks ? turn_remote++ : turn++) % (unsigned)n);
        int world_rank = MPI_UNDEFINED;
        known = host->Group_translate_ranks(group, 1, &rank, world, &world_rank) == MPI_SUCCESS;
        if (known && world_rank != MPI_UNDEFINED && rank_is_lost(world_rank, asks))
            lost = world_rank;
    }
    if (group != MPI_GROUP_NULL)
        host->Group_free(&group);
    if (world != MPI_GROUP_NULL)
        host->Group_free(&world);
    return lost == MPI_UNDEFINED
               ? ORIEL_OK
               : oriel_fail(ORIEL_E_PEER, "rank %d of MPI_COMM_WORLD has died", lost);
}

static bool communicator_is_checked(MPI_Comm comm, int *n, int *rank, bool *spans)
{
    int inter = 1;
    const struct oriel_host_calls *host = oriel_host();
    return comm != MPI_COMM_NULL && host->Comm_test_inter(comm, &inter) == MPI_SUCCESS && !inter &&
           host->Comm_size(comm, n) == MPI_SUCCESS && host->Comm_rank(comm, rank) == MPI_SUCCESS &&
           all_of_this_world(comm, *n, spans);
}

/* A rank that is no longer checked takes part in the members' exchange and makes no entry: no
 * member checks the window. */
static bool joins_unchecked(const void *address)
{
    if (!oriel_check_left || oriel_check_where.in.depth != 0)
        return false;
    oriel_check_enter_from(NULL, address);
    return true;
}

static void creation_begin(struct creation *creation, enum oriel_check_flavour flavour,
                           MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm,
                           const void *address, enum oriel_call call)
{
    *creation =
        (struct creation){.flavour = flavour, .comm = comm, .site = oriel_site_make(address, call)};
    bool spans = false;
    creation->looks = communicator_is_checked(comm, &creation->n, &creation->rank, &spans);
    if (!creation->looks)
        return;
    spans = spans && oriel_start_reaches_all_nodes() && !oriel_check_left;
    creation->part = spans ? oriel_part_open() : 0;
    creation->locks = spans && creation->rank == 0 ? oriel_part_open() : 0;
    static const uint16_t calls[] = {ORIEL_CALL_Win_create, ORIEL_CALL_Win_allocate,
                                     ORIEL_CALL_Win_allocate_shared, ORIEL_CALL_Win_create_dynamic};
    creation->waits =
        !oriel_check_left && oriel_wait_creation(&creation->site, comm, calls[flavour]);
    struct oriel_checked_member own = {.id = oriel_window_next_id(),
                                       .size_bytes = size,
                                       .disp_unit = disp_unit,
                                       .promises = oriel_promises_read(info),
                                       .world_rank = (uint32_t)oriel_order_rank(),
                                       .flavour = flavour,
                                       .part = creation->part,
                                       .locks = creation->locks,
                                       .notifications = oriel_notified_counters(info),
                                       .site = creation->site};
    creation->members = calloc((size_t)(unsigned)creation->n, sizeof own);
    const struct oriel_watch watch = {.check = members_watch, .context = &comm};
    if (oriel_host_allgather(comm, "the checker", &own, sizeof own, creation->members, &watch) !=
        ORIEL_OK) {
        free(creation->members);
        creation->members = NULL;
    }
}

/* All members meet after the creation and agree on bits that are set on all of them: none if a
 * member has died. */
static uint32_t members_agree(const struct creation *creation, uint32_t bits)
{
    uint32_t agreed = 0;
    MPI_Comm comm = creation->comm;
    const struct oriel_watch watch = {.check = members_watch, .context = &comm};
    return oriel_host_agree(comm, "the checker", bits, &agreed, &watch) == ORIEL_OK ? agreed : 0;
}

/* The address of each member's memory, for prefetches. Only Oriel returns it without an error for
 * these windows. */
static void members_memory_find(struct oriel_checked *window)
{
    bool knows_all = window->flavour == ORIEL_CHECK_ALLOCATE && window->prompt && window->n > 1;
    for (int32_t i = 0; i < window->n && knows_all; i++) {
        MPI_Aint size = 0;
        int unit = 0;
        void *base = NULL;
        if (oriel_host()->Win_shared_query(window->win, i, &size, &unit, &base) == MPI_SUCCESS)
            window->paths[i].memory = base;
    }
}

static void regions_add(struct oriel_checked *window)
{
    struct oriel_checked_member *own = &window->members[window->rank];
    oriel_shm_offset history =
        window->flavour == ORIEL_CHECK_DYNAMIC ? 0 : oriel_window_history(window, window->rank);
    if (history != 0 && own->size_bytes > 0)
        oriel_local_region_add(window->base, (uint64_t)own->size_bytes, history, 0,
                               oriel_window_conflict, &window->places[window->rank]);
    for (int32_t i = 0; i < window->n && window->flavour == ORIEL_CHECK_SHARED; i++) {
        MPI_Aint size = 0;
        int unit = 0;
        void *base = NULL;
        if (i != window->rank &&
            oriel_host()->Win_shared_query(window->win, i, &size, &unit, &base) == MPI_SUCCESS)
            oriel_window_map(window, i, base, size);
    }
}

enum { HAS_IT = 1, HAS_COMMON = 2 };

/* If one member has no memory for its entry, no member makes one. NULL: the window is not
 * checked. */
static struct oriel_checked *entry_make(struct creation *creation, int code, const void *base,
                                        MPI_Win win)
{
    struct oriel_checked *window = NULL;
    if (!creation->looks)
        return NULL;
    if (code == MPI_SUCCESS && creation->members != NULL && !oriel_check_left)
        window = oriel_checked_make(win, creation->members, creation->n, creation->rank, base,
                                    creation->flavour);
    else
        free(creation->members);
    uint32_t bits = window == NULL ? 0 : window->common == NULL ? HAS_IT : HAS_IT | HAS_COMMON;
    uint32_t agreed = members_agree(creation, bits);
    if (agreed == bits)
        return window;
    if (window != NULL && window->common != NULL)
        oriel_checked_part(window);
    if (agreed & HAS_IT)
        return window;
    if (code == MPI_SUCCESS)
        oriel_finding_count("windows with an unchecked or dead rank, or without memory for the "
                            "checker: not checked");
    if (window != NULL) {
        oriel_checked_remove(window);
        oriel_checked_free(window);
    }
    return NULL;
}

static int creation_end(struct creation *creation, int code, const void *base, MPI_Win *win)
{
    oriel_wait_done(creation->waits);
    struct oriel_checked *window = entry_make(creation, code, base, *win);
    if (window == NULL) {
        if (creation->part != 0)
            oriel_part_close(oriel_part_of(creation->part));
        if (creation->locks != 0)
            oriel_part_close(oriel_part_of(creation->locks));
        return code;
    }
    members_memory_find(window);
    regions_add(window);
    oriel_promises_creation(window, &creation->site);
    if (window->ordered) {
        struct oriel_key key = oriel_window_key(window, ORIEL_ORDER_FENCE, 0, 0);
        oriel_promises_synchronised(window);
        oriel_order_give(&key, window->n);
        members_agree(creation, HAS_IT);
        oriel_order_take(&key);
    }
    return code;
}

/* --- the entry --- */

static struct oriel_window_shared *common_find(uint64_t id, int n)
{
    struct oriel_key key = {.words = {KEY_COMMON, id, 0, 0}};
    size_t len_bytes =
        sizeof(struct oriel_window_shared) + (size_t)(unsigned)n * sizeof(struct oriel_share);
    oriel_shm_offset place = oriel_shm_find(&key, len_bytes, NULL);
    return place == 0 ? NULL : oriel_shm_at(place);
}

void oriel_common_drop(uint64_t id)
{
    struct oriel_key key = {.words = {KEY_COMMON, id, 0, 0}};
    oriel_shm_drop(&key);
}

typedef int free_info_fn(MPI_Info *info);
static struct oriel_collective_progress *progress_find(const struct oriel_checked *window)
{
    struct oriel_collective_progress *progress = NULL;
    int *ranks = calloc((size_t)(unsigned)window->n, sizeof *ranks);
    for (int i = 0; i < window->n && ranks != NULL; i++)
        ranks[i] = (int)window->members[i].world_rank;
    if (ranks != NULL && window->ordered)
        progress = oriel_collective_progress_find(window->id, true, window->n, ranks);
    free(ranks);
    return progress;
}

static bool checked_allocate_parts(struct oriel_checked *window)
{
    size_t n = (size_t)(unsigned)window->n;
    window->touched = calloc(n, sizeof *window->touched);
    window->buffers = calloc(n, sizeof *window->buffers);
    window->holds = calloc(n + 1, sizeof *window->holds);
    window->started = calloc(n, sizeof *window->started);
    window->posted = calloc(n, sizeof *window->posted);
    window->untaken = calloc(n, sizeof *window->untaken);
    window->lazy = calloc(n, sizeof *window->lazy);
    window->unpromised = calloc(n, sizeof *window->unpromised);
    window->spare = calloc(2 * n + 1, sizeof *window->spare);
    window->places = calloc(n, sizeof *window->places);
    window->paths = aligned_alloc(_Alignof(struct oriel_window_target), n * sizeof *window->paths);
    if (window->paths != NULL)
        memset(window->paths, 0, n * sizeof *window->paths);
    return oriel_debts_make(window->n, &window->debts) && window->touched != NULL &&
           window->buffers != NULL && window->holds != NULL && window->started != NULL &&
           window->posted != NULL && window->untaken != NULL && window->unpromised != NULL &&
           window->lazy != NULL && window->spare != NULL && window->places != NULL &&
           window->paths != NULL && oriel_epochs_open(&window->epochs, window->n) == ORIEL_OK;
}

/* Oriel adds to the window's info how it reaches the memory; a window that it leaves to the host
 * has no such key. */
static bool is_served_by_oriel(MPI_Win win)
{
    char value[64];
    MPI_Info info = MPI_INFO_NULL;
    int flag = 0;
    if (oriel_host()->Win_get_info(win, &info) != MPI_SUCCESS)
        return false;
    oriel_host()->Info_get(info, "oriel_memory", (int)sizeof value - 1, value, &flag);
    free_info_fn *free_info = (free_info_fn *)oriel_host_symbol("PMPI_Info_free");
    if (free_info != NULL)
        free_info(&info);
    return flag != 0;
}

struct oriel_checked *oriel_checked_alloc(MPI_Win win, struct oriel_checked_member *members, int n,
                                          int rank, const void *base,
                                          enum oriel_check_flavour flavour)
{
    struct oriel_checked *window = calloc(1, sizeof *window);
    if (window == NULL) {
        free(members);
        return NULL;
    }
    pthread_mutex_init(&window->mutex, NULL);
    window->win = win;
    window->group = MPI_GROUP_NULL;
    window->id = members[0].id;
    window->n = n;
    window->rank = rank;
    window->base = base;
    window->flavour = flavour;
    window->members = members;
    window->threaded = oriel_start_is_threaded();
    if (!checked_allocate_parts(window) ||
        oriel_host()->Win_get_group(win, &window->group) != MPI_SUCCESS) {
        oriel_checked_free(window);
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        window->promises |= members[i].promises;
        window->places[i] = (struct oriel_conflict_place){.window = window, .target = i};
        window->buffers[i] = oriel_local_group_target(window->id, i);
    }
    return window;
}

struct oriel_checked *oriel_checked_make(MPI_Win win, struct oriel_checked_member *members, int n,
                                         int rank, const void *base,
                                         enum oriel_check_flavour flavour)
{
    int members_here = 0;
    for (int i = 0; i < n; i++) {
        members_here += oriel_rank_is_on_this_node((int32_t)members[i].world_rank);
        members[i].part = oriel_part_of(members[i].part);
        members[i].locks = oriel_part_of(members[i].locks);
    }
    bool spans = members_here < n;
    struct oriel_checked *window = oriel_checked_alloc(win, members, n, rank, base, flavour);
    if (window != NULL && !oriel_checked_add(window)) {
        oriel_checked_free(window);
        window = NULL;
    }
    if (window == NULL)
        return NULL;
    if (!spans)
        window->common = common_find(window->id, n);
    window->here = window->common != NULL;
    if (window->here) {
        window->common->shares[rank].pid = getpid();
        window->common->shares[rank].device = oriel_local_device(base);
    }
    window->ordered = (window->here || spans) && oriel_start_reaches_all_nodes();
    if (window->here || window->ordered)
        window->notes = oriel_member_states_find(window->id, n, members_here);
    window->prompt =
        window->here && (n == 1 || is_served_by_oriel(win)); /* with one member there is no wait */
    window->progress = progress_find(window);
    return window;
}

void oriel_checked_part(struct oriel_checked *window)
{
    if (window->notes != NULL)
        oriel_member_states_leave(window->id);
    oriel_collective_progress_leave(window->progress, window->id);
    oriel_common_drop(window->id);
    window->common = NULL;
    window->notes = NULL;
    window->progress = NULL;
    window->here = window->ordered = window->prompt = false;
}

/* A wrapper around an error handler may still use the entry: it is emptied and stays. */
static void freed_entry_keep(struct oriel_checked *window)
{
    static struct oriel_checked *kept;
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    oriel_collective_progress_leave(window->progress, window->id);
    window->progress = NULL;
    window->common = NULL;
    window->notes = NULL;
    window->here = window->ordered = window->prompt = window->late_more = window->touched_any =
        false;
    window->late_count = 0;
    memset(window->touched, 0, (size_t)(unsigned)window->n * sizeof *window->touched);
    pthread_mutex_lock(&mutex);
    window->next_kept = kept;
    kept = window;
    pthread_mutex_unlock(&mutex);
}

void oriel_checked_free(struct oriel_checked *window)
{
    if (window->touched != NULL && oriel_callback_scope_handler()) {
        freed_entry_keep(window);
        return;
    }
    if (window->since != 0)
        oriel_order_snapshot_release(window->since);
    if (window->group != MPI_GROUP_NULL)
        oriel_host()->Group_free(&window->group);
    oriel_collective_progress_leave(window->progress, window->id);
    oriel_epochs_close(&window->epochs);
    pthread_mutex_destroy(&window->mutex);
    free(window->members);
    oriel_debts_free(window->debts);
    free(window->touched);
    free(window->buffers);
    free(window->holds);
    free(window->started);
    free(window->posted);
    free(window->untaken);
    free(window->unpromised);
    free(window->spare);
    free(window->lazy);
    free(window->places);
    free(window->paths);
    free(window);
}

/* --- exported --- */

/* A void * that is stored where a void * points to. */
static const void *base_given(int code, const void *baseptr)
{
    return code == MPI_SUCCESS ? *(void *const *)baseptr : NULL;
}

#define CREATE(name, Unit)                                                                         \
    ORIEL_EXPORT int PMPI_##name(void *base, MPI_Aint size, Unit disp_unit, MPI_Info info,         \
                                 MPI_Comm comm, MPI_Win *win)                                      \
    {                                                                                              \
        struct creation creation;                                                                  \
        if (!oriel_window_look() && !joins_unchecked(ORIEL_CALLER))                                \
            return oriel_host()->name(base, size, disp_unit, info, comm, win);                     \
        creation_begin(&creation, ORIEL_CHECK_CREATE, size, disp_unit, info, comm, ORIEL_CALLER,   \
                       ORIEL_CALL_##name);                                                         \
        int code = creation_end(                                                                   \
            &creation, oriel_host()->name(base, size, disp_unit, info, comm, win), base, win);     \
        oriel_check_leave();                                                                       \
        return code;                                                                               \
    }                                                                                              \
    ORIEL_EXPORT int MPI_##name(void *base, MPI_Aint size, Unit disp_unit, MPI_Info info,          \
                                MPI_Comm comm, MPI_Win *win)                                       \
        __attribute__((weak, alias("PMPI_" #name)));
CREATE(Win_create, int)
CREATE(Win_create_c, MPI_Aint)

#define ALLOCATE(name, Unit, flavour)                                                              \
    ORIEL_EXPORT int PMPI_##name(MPI_Aint size, Unit disp_unit, MPI_Info info, MPI_Comm comm,      \
                                 void *baseptr, MPI_Win *win)                                      \
    {                                                                                              \
        struct creation creation;                                                                  \
        if (!oriel_window_look() && !joins_unchecked(ORIEL_CALLER))                                \
            return oriel_host()->name(size, disp_unit, info, comm, baseptr, win);                  \
        creation_begin(&creation, flavour, size, disp_unit, info, comm, ORIEL_CALLER,              \
                       ORIEL_CALL_##name);                                                         \
        int code = oriel_host()->name(size, disp_unit, info, comm, baseptr, win);                  \
        code = creation_end(&creation, code, base_given(code, baseptr), win);                      \
        oriel_check_leave();                                                                       \
        return code;                                                                               \
    }                                                                                              \
    ORIEL_EXPORT int MPI_##name(MPI_Aint size, Unit disp_unit, MPI_Info info, MPI_Comm comm,       \
                                void *baseptr, MPI_Win *win)                                       \
        __attribute__((weak, alias("PMPI_" #name)));
ALLOCATE(Win_allocate, int, ORIEL_CHECK_ALLOCATE)
ALLOCATE(Win_allocate_c, MPI_Aint, ORIEL_CHECK_ALLOCATE)
ALLOCATE(Win_allocate_shared, int, ORIEL_CHECK_SHARED)
ALLOCATE(Win_allocate_shared_c, MPI_Aint, ORIEL_CHECK_SHARED)

ORIEL_EXPORT int PMPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
    struct creation creation;
    if (!oriel_window_look() && !joins_unchecked(ORIEL_CALLER))
        return oriel_host()->Win_create_dynamic(info, comm, win);
    creation_begin(&creation, ORIEL_CHECK_DYNAMIC, 0, 1, info, comm, ORIEL_CALLER,
                   ORIEL_CALL_Win_create_dynamic);
    int code =
        creation_end(&creation, oriel_host()->Win_create_dynamic(info, comm, win), NULL, win);
    oriel_check_leave();
    return code;
}
ORIEL_EXPORT int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win)
    __attribute__((weak, alias("PMPI_Win_create_dynamic")));
