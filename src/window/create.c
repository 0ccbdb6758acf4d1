/* The creation protocol.
 *
 *   1. Each rank prepares: checks its arguments, allocates its control words and, where the flavour says so, its memory;
 *      rank 0 allocates the common words.  A failure is noted in its record, not returned.
 *   2. All exchange records.  From the same records all draw the same conclusion: an error of any rank is everybody's
 *      error, a rank that cannot share memory sends everybody to the host.
 *   3. Each rank opens the files of all others (so that they can be opened "both ways"), probes CMA where a target needs it,
 *      takes a carrier from the host; rank 0 fills the table of targets.
 *   4. All agree by one reduction of bits; only then is the window everybody's.
 *   5. Where CMA is refused to anybody, all such memory of the window is reached by agents.  When the records say that one is
 *      still to be opened, its rank opens it and all agree once more.  Where one may not be opened: the host.
 *
 * Invariant: no rank returns a window that another rank does not have.  api/ calls, any number of threads on different
 * communicators. */
#include "window/attempt.h"

#include "base/log.h"
#include "host/host.h"
#include "memory/agent.h"
#include "sync/watch.h"
#include "window/attach.h"
#include "window/handle.h"
#include "window/paths.h"
#include "window/regions.h"

#include <stdlib.h>

/* Before the records have come only windows that exist know who the others are: looks whether one of their ranks that is in
 * this communicator too has died. */
struct known {
    MPI_Group group; /* the communicator's */
    enum oriel_status status;
};

static void look_at_known(struct oriel_window *window, void *context)
{
    struct known *known = context;
    for (int32_t i = 0; i < window->n && known->status == ORIEL_OK; i++) {
        const struct oriel_peer *peer = window->group->peers[i];
        int there = i;
        int here = MPI_UNDEFINED;
        if (!oriel_peer_alive(peer) &&
            oriel_host()->Group_translate_ranks(window->host->group, 1, &there, known->group, &here) == MPI_SUCCESS &&
            here != MPI_UNDEFINED)
            known->status = oriel_fail(ORIEL_E_PEER, "rank %d (process %d) has died", here, (int)peer->identity.pid);
    }
}

static enum oriel_status watch_known(void *context)
{
    struct known *known = context;
    known->status = ORIEL_OK;
    oriel_handle_visit(look_at_known, known);
    return known->status;
}

static enum oriel_status exchange(struct attempt *attempt)
{
    uint32_t n = (uint32_t)attempt->window->n;
    attempt->records = n <= FEW ? attempt->few : calloc(n, sizeof *attempt->records);
    if (attempt->records == NULL) /* nothing can be told to so many: they will say that they wait */
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for the records of %u ranks", n);
    if (n == 1) {
        attempt->records[0] = attempt->own;
        return ORIEL_OK;
    }
    struct known known = {MPI_GROUP_NULL, ORIEL_OK};
    struct oriel_watch watch = {watch_known, &known};
    oriel_host()->Comm_group(attempt->creation->comm, &known.group);
    enum oriel_status status = oriel_host_gather(attempt->creation->comm, attempt->creation->call, &attempt->own,
                                                 sizeof attempt->own, attempt->records, &watch);
    oriel_host()->Group_free(&known.group);
    return status;
}

/* Whether some rank cannot share memory at all, or speaks another version. */
static bool somebody_wants_host(const struct attempt *attempt)
{
    for (int32_t i = 0; i < attempt->window->n; i++)
        if (attempt->records[i].wants_host || attempt->records[i].version != RECORD_VERSION)
            return true;
    return false;
}

/* The first rank's error is everybody's. */
static enum oriel_status common_status(const struct attempt *attempt)
{
    for (int32_t i = 0; i < attempt->window->n; i++) {
        enum oriel_status status = attempt->records[i].status;
        if (status == ORIEL_OK)
            continue;
        if (i == attempt->window->rank)
            return status; /* the message is this thread's last one */
        return oriel_fail(status, "rank %d could not make its part of the window", (int)i);
    }
    return ORIEL_OK;
}

static void finish(struct attempt *attempt)
{
    static _Atomic uint64_t serials;
    struct oriel_window *window = attempt->window;
    const struct oriel_creation *creation = attempt->creation;
    static const int flavors[] = {
        [ORIEL_FLAVOUR_CREATE] = MPI_WIN_FLAVOR_CREATE,
        [ORIEL_FLAVOUR_ALLOCATE] = MPI_WIN_FLAVOR_ALLOCATE,
        [ORIEL_FLAVOUR_SHARED] = MPI_WIN_FLAVOR_SHARED,
        [ORIEL_FLAVOUR_DYNAMIC] = MPI_WIN_FLAVOR_DYNAMIC,
    };
    window->flavour = creation->flavour;
    window->common = (struct oriel_common *)(window->control_bases[0] + attempt->records[0].common_offset);
    window->targets = window->common->targets;
    window->access = oriel_control_access(window->control, window->n);
    if (creation->flavour == ORIEL_FLAVOUR_CREATE)
        window->base = creation->base;
    else if (creation->flavour != ORIEL_FLAVOUR_DYNAMIC)
        window->base = oriel_window_direct(window, window->rank, 0);
    if (oriel_attempt_is_contiguous(attempt))
        oriel_hints_set_contiguous(&window->host->hints, creation->size_bytes > 0 ? window->base : NULL);
    window->serial = 1 + atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed);
    window->host->size_bytes = (MPI_Aint)creation->size_bytes;
    window->host->disp_unit = (int)creation->disp_unit;
    window->host->create_flavor = flavors[creation->flavour];
    window->host->model = MPI_WIN_UNIFIED;
}

void oriel_window_release_memory(struct oriel_window *window)
{
    uint64_t lost_bytes = oriel_attached_close(window);
    oriel_regions_close(window);
    lost_bytes += oriel_own_memory_release(window->own_memory);
    window->own_memory = NULL;
    oriel_paths_warn_lost(window, "MPI_Win_free", lost_bytes);
}

/* Gives back everything but the carrier. */
static void destroy(struct oriel_window *window)
{
    oriel_window_release_memory(window);
    oriel_attempt_give_back(window->memory_offset);
    oriel_attempt_give_back(window->common_offset);
    oriel_attempt_give_back(window->control_offset);
    if (window->group != NULL)
        oriel_group_release(window->group);
    if (window->host->group != MPI_GROUP_NULL)
        oriel_host()->Group_free(&window->host->group);
    free(window->own_memory_bases);
    free(window->started);
    free(window->posted);
}

static void free_window(struct oriel_window *window)
{
    free(window->host);
    free(window);
}

/* In the attempt itself when there is no memory; false when the host does not know the communicator. */
static bool make_empty(struct attempt *attempt)
{
    int n;
    int rank;
    MPI_Comm comm = attempt->creation->comm;
    if (oriel_host()->Comm_size(comm, &n) != MPI_SUCCESS || oriel_host()->Comm_rank(comm, &rank) != MPI_SUCCESS)
        return false;
    struct oriel_window *window = aligned_alloc(ORIEL_CACHE_LINE, (sizeof *window + 63) & ~(size_t)63);
    struct oriel_window_host *host = calloc(1, sizeof *host);
    if (window == NULL || host == NULL) {
        free(window);
        free(host);
        window = &attempt->spare;
        host = &attempt->spare_host;
    }
    *host = (struct oriel_window_host){.handle = MPI_WIN_NULL, .group = MPI_GROUP_NULL};
    *window = (struct oriel_window){
        .n = n, .rank = rank, .control_offset = -1, .common_offset = -1, .memory_offset = -1,
        .host = host};
    attempt->window = window;
    return true;
}

/* Step 4. */
static enum oriel_status agree(struct attempt *attempt, uint32_t own, uint32_t *agreed)
{
    const struct oriel_creation *creation = attempt->creation;
    struct oriel_watched watched = {attempt->window, -1};
    struct oriel_watch watch = {oriel_watch_all, &watched};
    *agreed = own;
    if (attempt->window->n == 1)
        return ORIEL_OK;
    return oriel_host_agree(creation->comm, creation->call, own, agreed, attempt->window->group != NULL ? &watch : NULL);
}

static bool somebody_is(const struct attempt *attempt, enum readiness readiness)
{
    for (int32_t i = 0; i < attempt->window->n; i++)
        if (attempt->records[i].agent == readiness)
            return true;
    return false;
}

/* Step 5: from the same records and bits all do the same. */
static enum oriel_status agree_on_agents(struct attempt *attempt, bool *use_host)
{
    const char *call = attempt->creation->call;
    uint32_t agreed = 1;
    enum oriel_status status = ORIEL_OK;
    if (somebody_is(attempt, AGENT_TO_OPEN)) {
        bool opened = attempt->own.agent != AGENT_TO_OPEN || oriel_agent_open() == ORIEL_OK;
        if (!opened)
            oriel_note("%s: %s", call, oriel_fail_message());
        status = agree(attempt, opened, &agreed);
    }
    if (status == ORIEL_OK && agreed == 0)
        oriel_note("%s: the window goes to the host: a rank has no agent", call);
    *use_host = agreed == 0;
    attempt->window->by_agent = true;
    return status;
}

/* Steps 2 to 5. */
static enum oriel_status negotiate(struct attempt *attempt, bool *use_host)
{
    enum oriel_status status = exchange(attempt);
    if (status != ORIEL_OK)
        return status;
    *use_host = somebody_wants_host(attempt);
    if (*use_host)
        return ORIEL_OK;
    status = common_status(attempt);
    if (status != ORIEL_OK)
        return status;
    uint32_t own = oriel_attempt_contribute(attempt);
    uint32_t agreed = own;
    status = agree(attempt, own, &agreed);
    if (status != ORIEL_OK || agreed == AGREE_ALL)
        return status;
    bool by_host = !(agreed & AGREE_CMA) && somebody_is(attempt, AGENT_REFUSED);
    if (by_host)
        oriel_note("%s: the window goes to the host: no cross-memory copies, and ORIEL_AGENT=never", attempt->creation->call);
    *use_host = by_host || !(agreed & AGREE_REACHED);
    if (*use_host)
        return ORIEL_OK;
    if (!(agreed & AGREE_MEMORY))
        return own & AGREE_MEMORY ? oriel_fail(ORIEL_E_NO_MEM, "another rank has run out of memory or window handles")
                                  : ORIEL_E_NO_MEM;
    return agree_on_agents(attempt, use_host);
}

enum oriel_status oriel_window_create(const struct oriel_creation *creation, struct oriel_window **out, bool *use_host)
{
    struct attempt attempt = {.creation = creation};
    *use_host = false;
    oriel_window_reclaim();
    if (!make_empty(&attempt))
        return oriel_fail(ORIEL_E_COMM, "the host does not know the communicator");
    attempt.own.status = oriel_attempt_prepare(&attempt);
    enum oriel_status status = negotiate(&attempt, use_host);
    if (status == ORIEL_OK && !*use_host) {
        finish(&attempt);
        oriel_paths_note(attempt.window, creation->call);
        *out = attempt.window;
    } else {
        if (attempt.has_carrier) {
            MPI_Win handle = attempt.window->host->handle;
            oriel_host()->Win_free(&attempt.window->host->handle);
            oriel_handle_remove(handle, attempt.window);
        }
        destroy(attempt.window);
        if (attempt.window != &attempt.spare)
            free_window(attempt.window);
    }
    if (attempt.records != attempt.few)
        free(attempt.records);
    return status;
}

void oriel_window_destroy(struct oriel_window *window)
{
    destroy(window);
    free_window(window);
}

MPI_Win oriel_window_handle(const struct oriel_window *window)
{
    return window->host->handle;
}
