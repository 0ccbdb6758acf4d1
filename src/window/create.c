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
#include "window/create.h"

#include "base/log.h"
#include "base/options.h"
#include "host/host.h"
#include "memory/agent.h"
#include "memory/limit.h"
#include "memory/reach.h"
#include "sync/watch.h"
#include "window/handle.h"
#include "window/objects.h"
#include "window/own_memory.h"
#include "window/regions.h"

#include <stdlib.h>
#include <string.h>

enum { RECORD_VERSION = 2 };

/* Of a rank's agent. */
enum readiness {
    AGENT_READY,   /* it runs, or nobody will need it */
    AGENT_TO_OPEN,
    AGENT_REFUSED, /* ORIEL_AGENT=never */
};

/* What each rank tells the others. */
struct record {
    struct oriel_identity process;
    struct oriel_identity memory; /* of the file that holds the window's memory, ORIEL_BY_ARENA only */
    uint32_t version;
    uint32_t status;              /* enum oriel_status of the preparation */
    uint32_t wants_host;
    uint32_t noncontig;           /* MPI_Win_allocate_shared: every rank its own memory */
    uint32_t agent;               /* enum readiness */
    uint32_t unused;
    uint64_t alignment;
    uint64_t common_offset;       /* rank 0's */
    struct oriel_target target;
};

/* Bits of the agreement. */
enum {
    AGREE_REACHED = 1, /* all files are open */
    AGREE_CMA = 2,     /* all targets that need CMA grant it */
    AGREE_MEMORY = 4,  /* memory and handles suffice */
    AGREE_ALL = 7,
};

enum { FEW = 32 };

struct attempt {
    const struct oriel_creation *creation;
    struct oriel_window *window;
    struct record own;
    struct record *records;
    bool has_carrier;
    /* a rank without memory must still tell the others */
    struct oriel_window spare;
    struct oriel_window_host spare_host;
    struct record few[FEW];
};

static enum oriel_status alloc_block(uint64_t len_bytes, uint64_t align_bytes, int64_t *kept, uint64_t *offset)
{
    enum oriel_status status = oriel_file_alloc(len_bytes, align_bytes, offset);
    if (status == ORIEL_OK)
        *kept = (int64_t)*offset;
    return status;
}

static void give_back(int64_t offset)
{
    if (offset >= 0)
        oriel_file_free((uint64_t)offset);
}

static enum oriel_status check_arguments(const struct oriel_creation *creation)
{
    if (creation->size_bytes < 0)
        return oriel_fail(ORIEL_E_SIZE, "size %ld is negative", (long)creation->size_bytes);
    if (creation->disp_unit <= 0)
        return oriel_fail(ORIEL_E_DISP, "displacement unit %ld is not above 0", (long)creation->disp_unit);
    if (creation->flavour == ORIEL_FLAVOUR_CREATE && creation->base == NULL && creation->size_bytes > 0)
        return oriel_fail(ORIEL_E_BASE, "base is NULL, size is %ld", (long)creation->size_bytes);
    return ORIEL_OK;
}

static uint32_t agent_readiness(void)
{
    if (oriel_options()->agent == ORIEL_AGENT_NEVER)
        return AGENT_REFUSED;
    return oriel_agent_is_open() ? AGENT_READY : AGENT_TO_OPEN;
}

/* The memory of this rank, where the flavour gives each rank its own. */
static enum oriel_status prepare_memory(struct attempt *attempt)
{
    const struct oriel_creation *creation = attempt->creation;
    struct oriel_window *window = attempt->window;
    struct oriel_target *target = &attempt->own.target;
    uint64_t size_bytes = (uint64_t)creation->size_bytes;
    target->size_bytes = size_bytes;
    target->disp_unit = creation->disp_unit;
    target->mechanism = ORIEL_BY_ARENA;
    attempt->own.memory = *oriel_file_identity();
    if (creation->flavour == ORIEL_FLAVOUR_DYNAMIC) {
        target->mechanism = ORIEL_BY_ADDRESS;
        attempt->own.agent = agent_readiness();
        return ORIEL_OK;
    }
    if (creation->flavour == ORIEL_FLAVOUR_CREATE) {
        target->address = (uint64_t)(uintptr_t)creation->base;
        if (size_bytes > 0 && !oriel_reach_file(creation->base, size_bytes, &attempt->own.memory, &target->offset))
            oriel_own_memory_prepare(window, creation->call, target);
        if (target->mechanism != ORIEL_BY_ARENA)
            attempt->own.agent = agent_readiness();
        return ORIEL_OK;
    }
    if (creation->flavour == ORIEL_FLAVOUR_SHARED && !attempt->own.noncontig)
        return ORIEL_OK; /* rank 0 allocates for all once it knows the sizes */
    enum oriel_status status = alloc_block(size_bytes, attempt->own.alignment, &window->memory_offset, &target->offset);
    target->address = (uint64_t)(uintptr_t)(oriel_file_base() + target->offset);
    return status;
}

static enum oriel_status prepare_control(struct attempt *attempt)
{
    struct oriel_window *window = attempt->window;
    uint64_t offset;
    enum oriel_status status = oriel_file_alloc_sparse(oriel_control_bytes(window->n), &offset);
    if (status != ORIEL_OK)
        return status;
    window->control_offset = (int64_t)offset;
    attempt->own.target.control_offset = offset;
    if (window->rank != 0)
        return ORIEL_OK;
    return alloc_block(oriel_common_bytes(window->n), ORIEL_CACHE_LINE, &window->common_offset,
                       &attempt->own.common_offset);
}

static enum oriel_status prepare(struct attempt *attempt)
{
    const struct oriel_creation *creation = attempt->creation;
    struct oriel_hints *hints = &attempt->window->host->hints;
    oriel_hints_init(hints);
    enum oriel_status status = oriel_hints_read(hints, creation->info);
    attempt->own.version = RECORD_VERSION;
    attempt->own.noncontig = oriel_hint_is_true(hints->noncontig);
    attempt->own.alignment = oriel_hints_alignment(hints);
    if (oriel_window_start() != ORIEL_OK) {
        oriel_note("%s: this process cannot share memory: %s", creation->call, oriel_fail_message());
        attempt->own.wants_host = 1;
        return ORIEL_OK;
    }
    attempt->own.process = *oriel_file_identity();
    if (status == ORIEL_OK && attempt->window == &attempt->spare)
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory for a window");
    if (status == ORIEL_OK)
        status = check_arguments(creation);
    if (status == ORIEL_OK)
        status = prepare_control(attempt);
    if (status == ORIEL_OK)
        status = prepare_memory(attempt);
    if (status != ORIEL_E_OTHER)
        return status;
    oriel_note("%s: the window goes to the host: %s", creation->call, oriel_fail_message());
    attempt->own.wants_host = 1;
    return ORIEL_OK;
}

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

/* Pages above ORIEL_RESERVED_BYTES come at first touch: all ranks' together must be there to come. */
static enum oriel_status check_total(const struct attempt *attempt)
{
    uint64_t total_bytes = 0;
    for (int32_t i = 0; i < attempt->window->n; i++)
        if (attempt->records[i].target.size_bytes > ORIEL_RESERVED_BYTES)
            total_bytes += attempt->records[i].target.size_bytes;
    if (attempt->creation->flavour == ORIEL_FLAVOUR_CREATE || total_bytes == 0 || total_bytes <= oriel_limit_available())
        return ORIEL_OK;
    return oriel_fail(ORIEL_E_NO_MEM, "the ranks ask for %lu bytes, %lu are available", (unsigned long)total_bytes,
                      (unsigned long)oriel_limit_available());
}

/* One block in rank 0's file, the segments one after the other in rank order (MPI-4.1, 13.2.3). */
static enum oriel_status allocate_contiguous(struct attempt *attempt)
{
    struct oriel_window *window = attempt->window;
    struct record *records = attempt->records;
    uint64_t total_bytes = 0;
    uint64_t align_bytes = 0;
    for (int32_t i = 0; i < window->n; i++) {
        if (__builtin_add_overflow(total_bytes, records[i].target.size_bytes, &total_bytes))
            return oriel_fail(ORIEL_E_NO_MEM, "the sizes of all ranks overflow");
        align_bytes = records[i].alignment > align_bytes ? records[i].alignment : align_bytes;
    }
    uint64_t offset;
    enum oriel_status status = alloc_block(total_bytes, align_bytes, &window->memory_offset, &offset);
    for (int32_t i = 0; i < window->n && status == ORIEL_OK; i++) {
        records[i].target.offset = offset;
        records[i].target.address = (uint64_t)(uintptr_t)(oriel_file_base() + offset);
        offset += records[i].target.size_bytes;
    }
    return status;
}

/* Every rank must have asked for memory of its own; a hint that only some gave is none. */
static bool is_contiguous(const struct attempt *attempt)
{
    bool contiguous = false;
    for (int32_t i = 0; i < attempt->window->n; i++)
        contiguous = contiguous || !attempt->records[i].noncontig;
    return contiguous && attempt->creation->flavour == ORIEL_FLAVOUR_SHARED;
}

/* Rank 0 alone: the common words, as read by all after the agreement. */
static enum oriel_status fill_common(struct attempt *attempt)
{
    struct oriel_window *window = attempt->window;
    enum oriel_status status = check_total(attempt);
    if (status == ORIEL_OK && is_contiguous(attempt))
        status = allocate_contiguous(attempt);
    if (status != ORIEL_OK)
        return status;
    struct oriel_common *common = (struct oriel_common *)(oriel_file_base() + window->common_offset);
    common->version = RECORD_VERSION;
    common->n = window->n;
    for (int32_t i = 0; i < window->n; i++) {
        struct oriel_target *target = &common->targets[i];
        *target = attempt->records[i].target;
        if (target->mechanism == ORIEL_BY_ARENA)
            target->direct_bytes = target->size_bytes;
    }
    return ORIEL_OK;
}

/* Where each target's memory lies, when not all lie in their owners' own files. */
static enum oriel_status open_memory(struct attempt *attempt)
{
    struct oriel_window *window = attempt->window;
    bool contiguous = is_contiguous(attempt);
    bool own_files = !contiguous;
    if (contiguous && attempt->own.noncontig) { /* others did not ask for it */
        give_back(window->memory_offset);
        window->memory_offset = -1;
    }
    for (int32_t i = 0; i < window->n; i++)
        own_files = own_files && oriel_identity_equal(&attempt->records[i].memory, &attempt->records[i].process);
    window->memory_bases = window->group->bases;
    if (own_files)
        return ORIEL_OK;
    window->own_memory_bases = calloc((uint32_t)window->n, sizeof *window->own_memory_bases);
    if (window->own_memory_bases == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for the window's addresses");
    window->memory_bases = window->own_memory_bases;
    enum oriel_status status = ORIEL_OK;
    for (int32_t i = 0; i < window->n && status == ORIEL_OK; i++) {
        struct oriel_peer *peer = NULL;
        status = oriel_peer_open(contiguous ? &attempt->records[0].process : &attempt->records[i].memory, &peer);
        if (status == ORIEL_OK)
            window->own_memory_bases[i] = peer->base;
    }
    return status;
}

static enum oriel_status reach(struct attempt *attempt)
{
    struct oriel_window *window = attempt->window;
    enum oriel_status status =
        oriel_group_acquire(&attempt->records[0].process, sizeof attempt->records[0], window->n, &window->group);
    if (status != ORIEL_OK)
        return status;
    window->control_bases = window->group->bases;
    return open_memory(attempt);
}

static enum oriel_status probe_cma(struct attempt *attempt)
{
    struct oriel_window *window = attempt->window;
    enum oriel_status status = ORIEL_OK;
    for (int32_t i = 0; i < window->n && status == ORIEL_OK; i++)
        if (i != window->rank && attempt->records[i].target.mechanism != ORIEL_BY_ARENA)
            status = oriel_reach_cma(window->group->peers[i]);
    return status;
}

static enum oriel_status take_handles(struct attempt *attempt)
{
    struct oriel_window *window = attempt->window;
    enum oriel_status status = ORIEL_OK;
    if (window->rank == 0)
        status = fill_common(attempt);
    if (status == ORIEL_OK && oriel_host()->Comm_group(attempt->creation->comm, &window->host->group) != MPI_SUCCESS)
        status = oriel_fail(ORIEL_E_NO_MEM, "the host cannot make a group");
    if (status == ORIEL_OK)
        status = oriel_host_carrier(attempt->creation->comm, oriel_handle_live(), &window->host->handle);
    if (status != ORIEL_OK)
        return status;
    attempt->has_carrier = true;
    return oriel_handle_add(window->host->handle, window);
}

/* Step 3: the bits that this rank can give. */
static uint32_t contribute(struct attempt *attempt)
{
    const char *call = attempt->creation->call;
    uint32_t bits = AGREE_MEMORY;
    if (reach(attempt) != ORIEL_OK)
        oriel_note("%s: the window goes to the host: %s", call, oriel_fail_message());
    else
        bits |= AGREE_REACHED;
    if ((bits & AGREE_REACHED) && probe_cma(attempt) == ORIEL_OK)
        bits |= AGREE_CMA;
    else if (bits & AGREE_REACHED)
        oriel_note("%s: no cross-memory copies: %s", call, oriel_fail_message());
    enum oriel_status status = (bits & AGREE_REACHED) ? take_handles(attempt) : ORIEL_OK;
    if (status == ORIEL_E_OTHER)
        oriel_note("%s: the window goes to the host: %s", call, oriel_fail_message());
    if (status != ORIEL_OK)
        bits &= status == ORIEL_E_OTHER ? ~(uint32_t)AGREE_REACHED : ~(uint32_t)AGREE_MEMORY;
    return bits;
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
    window->control = oriel_window_control(window, window->rank);
    window->access = oriel_control_access(window->control, window->n);
    if (creation->flavour == ORIEL_FLAVOUR_CREATE)
        window->base = creation->base;
    else if (creation->flavour != ORIEL_FLAVOUR_DYNAMIC)
        window->base = oriel_window_direct(window, window->rank, 0);
    if (is_contiguous(attempt))
        oriel_hints_set_contiguous(&window->host->hints, creation->size_bytes > 0 ? window->base : NULL);
    window->serial = 1 + atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed);
    window->host->size_bytes = (MPI_Aint)creation->size_bytes;
    window->host->disp_unit = (int)creation->disp_unit;
    window->host->create_flavor = flavors[creation->flavour];
    window->host->model = MPI_WIN_UNIFIED;
}

/* With ORIEL_VERBOSE rank 0 says which way the window's memory takes. */
static void note_path(const struct attempt *attempt)
{
    const struct oriel_window *window = attempt->window;
    const char *copier = window->by_agent ? "agent" : "CMA";
    int by_arena = 0;
    int by_parts = 0;
    if (window->rank != 0)
        return;
    if (window->flavour == ORIEL_FLAVOUR_DYNAMIC) {
        oriel_note("%s: %d ranks: attached memory from MPI_Alloc_mem or MPI_Win_allocate by load and store, all other by %s",
                   attempt->creation->call, (int)window->n, copier);
        return;
    }
    for (int32_t i = 0; i < window->n; i++) {
        by_arena += window->targets[i].mechanism == ORIEL_BY_ARENA;
        by_parts += window->targets[i].mechanism == ORIEL_BY_PARTS;
    }
    oriel_note("%s: %d ranks: memory of %d by load and store, of %d in whole pages by load and store and at the ends by %s, "
               "of %d by %s", attempt->creation->call, (int)window->n, by_arena, by_parts, copier,
               (int)window->n - by_arena - by_parts, copier);
}

/* Gives back everything but the carrier. */
static void destroy(struct oriel_window *window)
{
    oriel_promote_release(&window->promoted);
    give_back(window->memory_offset);
    give_back(window->common_offset);
    give_back(window->control_offset);
    oriel_regions_close(window);
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
    uint32_t own = contribute(attempt);
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
    attempt.own.status = prepare(&attempt);
    enum oriel_status status = negotiate(&attempt, use_host);
    if (status == ORIEL_OK && !*use_host) {
        finish(&attempt);
        note_path(&attempt);
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
