/* Writes the state page: this process's identity, once, and the reason for each wait, while it
 * waits.
 *
 * The page shows one wait at a time. Of several waiting threads the first one owns it, and releases
 * it when its wait ends. A wait inside another one's watch is not shown. A reader accepts the
 * fields if changed had the same even value before and after it read them. The writer makes changed
 * odd before (release fence after it) and even after (release) it writes. A process that dies in
 * between leaves it odd, and its page is unusable. */
#include "observe/observe.h"

#include "base/job.h"
#include "create/create.h"
#include "create/shm_rendezvous.h"
#include "host/host.h"
#include "internode/origin/liveness.h"
#include "memory/file.h"
#include "observe/state/state.h"
#include "observe/stats/observed_window.h"
#include "observe/stats/site_places.h"
#include "transport/agent/agent.h"
#include "window/host_objects.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(struct oriel_state) <= ORIEL_PAGE_BYTES, "it has a page");

static struct oriel_state *own;
static _Atomic bool taken; /* a wait is on the page */
static _Thread_local bool is_mine;

/* The ranks that a wait is for. */
struct wait_description {
    uint64_t ranks[ORIEL_STATE_RANKS / 64];
    uint32_t others;
    int32_t rank;
    int32_t world_rank;
    uint64_t window_id;
    uint64_t turn;
    const struct oriel_window *window; /* NULL before it is created */
};

static struct oriel_state *state_of(const struct oriel_peer *peer)
{
    return (struct oriel_state *)(peer->base + ORIEL_FILE_STATE_OFFSET);
}

/* The rank of a peer in this process's MPI_COMM_WORLD; -1 if the peer has no page, or another
 * job's. */
static int32_t world_rank_of(const struct oriel_peer *peer)
{
    const struct oriel_state *state = peer != NULL ? state_of(peer) : NULL;
    bool is_ours = state != NULL &&
                   atomic_load_explicit(&state->magic, memory_order_acquire) == ORIEL_STATE_MAGIC &&
                   state->job == own->job;
    return is_ours ? state->world_rank : -1;
}

static void add_world_rank(struct wait_description *description, int32_t world_rank)
{
    if (world_rank >= 0 && world_rank < ORIEL_STATE_RANKS)
        description->ranks[world_rank / 64] |= UINT64_C(1) << (world_rank % 64);
    else
        description->others++;
}

static void add_group(struct wait_description *description, const struct oriel_group *group)
{
    for (int32_t i = 0; i < group->n; i++)
        if (group->peers[i] == NULL || group->peers[i]->base != oriel_file_base())
            add_world_rank(description, world_rank_of(group->peers[i]));
}

static bool add_blockers(struct wait_description *description, const struct oriel_watch *watch,
                         bool queued)
{
    bool any = false;
    for (int32_t i = 0; i < description->window->n; i++)
        if (i != description->window->rank && oriel_liveness_blocks(watch, i, queued)) {
            add_world_rank(description, world_rank_of(description->window->group->peers[i]));
            any = true;
        }
    return any;
}

/* lock_all also waits for exclusive locks that are not acquired yet. */
static void add_lock_holders(struct wait_description *description, const struct oriel_watch *watch)
{
    if (!add_blockers(description, watch, false) && watch->what == ORIEL_WAITING_LOCK_ALL)
        add_blockers(description, watch, true);
}

/* For an accumulate: adds the rank that holds the target's accumulate lock
 * (sync/accumulate_mutex.c). */
static void add_updater(struct wait_description *description)
{
    uint32_t word =
        oriel_load_relaxed(
            &oriel_window_control(description->window, description->rank)->accumulate.word) &
        ~UINT32_C(0x80000000);
    if (word != 0 && word <= (uint32_t)description->window->n &&
        description->window->holding == NULL)
        add_world_rank(description, world_rank_of(description->window->group->peers[word - 1]));
}

static void describe_watched_wait(const struct oriel_watch *watch,
                                  struct wait_description *description)
{
    const struct oriel_watched *watched = watch->context;
    const struct oriel_window *window = description->window = watched->window;
    const struct oriel_peer *peer =
        watched->win_rank >= 0 ? window->group->peers[watched->win_rank] : NULL;
    description->rank = watched->win_rank;
    description->world_rank = world_rank_of(peer);
    description->window_id = window->id;
    switch (watch->what) {
    case ORIEL_WAITING_FENCE:
    case ORIEL_WAITING_FREE:
        description->turn = window->arrivals;
        add_group(description, window->group);
        break;
    case ORIEL_WAITING_LOCK:
    case ORIEL_WAITING_LOCK_ALL: add_lock_holders(description, watch); break;
    case ORIEL_WAITING_NOTIFICATION:
    case ORIEL_WAITING_MEMORY: break; /* any rank may end it */
    case ORIEL_WAITING_UPDATE: add_updater(description); break;
    default: add_world_rank(description, description->world_rank); break;
    }
}

static void describe_creation_wait(const struct oriel_shm_rendezvous *board,
                                   struct wait_description *description)
{
    const struct oriel_peer *leader = board->group->peers[0];
    description->turn = oriel_load_relaxed(&board->words->turn.value);
    description->window_id =
        leader->identity.id[0] ^ (uint64_t)((const char *)board->words - leader->base);
    add_group(description, board->group);
}

/* Before all ranks know each other, the host's group has their identities. They share no words yet,
 * so the set of ranks replaces the id. */
static void describe_agreement_wait(const struct oriel_create_progress *making,
                                    struct wait_description *description)
{
    const struct oriel_host_calls *host = oriel_host();
    const struct oriel_group *known = making->window->group;
    MPI_Group world;
    int n = 0;
    if (known != NULL) {
        for (int32_t i = 0; i < known->n; i++)
            add_world_rank(description, world_rank_of(known->peers[i]));
    } else if (oriel_host_has_world() && host->Group_size(making->group, &n) == MPI_SUCCESS &&
               host->Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS) {
        for (int i = 0; i < n; i++) {
            int there = MPI_UNDEFINED;
            host->Group_translate_ranks(making->group, 1, &i, world, &there);
            add_world_rank(description, there == MPI_UNDEFINED ? -1 : there);
        }
        host->Group_free(&world);
    }
    for (size_t i = 0; i < sizeof description->ranks / sizeof description->ranks[0]; i++)
        description->window_id =
            (description->window_id ^ description->ranks[i]) * UINT64_C(0x9e3779b97f4a7c15);
    if (own->world_rank >= 0 && own->world_rank < ORIEL_STATE_RANKS)
        description->ranks[own->world_rank / 64] &= ~(UINT64_C(1) << (own->world_rank % 64));
}

/* The wait's context is an agent: only its process is known. */
static void describe_agent_wait(const struct oriel_agent *agent,
                                struct wait_description *description)
{
    struct oriel_peer *peer = NULL;
    if (oriel_peer_open(&agent->process, &peer) == ORIEL_OK)
        description->world_rank = world_rank_of(peer);
    add_world_rank(description, description->world_rank);
}

static void describe_wait(const struct oriel_watch *watch, struct wait_description *description)
{
    *description = (struct wait_description){.rank = -1, .world_rank = -1};
    switch (watch->what) {
    case ORIEL_WAITING_CREATE: describe_creation_wait(watch->context, description); break;
    case ORIEL_WAITING_AGREE: describe_agreement_wait(watch->context, description); break;
    case ORIEL_WAITING_AGENT:
        describe_agent_wait(*(struct oriel_agent *const *)watch->context, description);
        break;
    default: describe_watched_wait(watch, description); break;
    }
}

/* The host's name of the window, since the program may set it at any time. A window that is being
 * opened has no handle yet. */
static void read_window_name(const struct oriel_window *window, char out[ORIEL_STATE_NAME])
{
    char name[MPI_MAX_OBJECT_NAME] = "";
    int name_bytes = 0;
    const bool has_handle = window != NULL && window->host->handle != MPI_WIN_NULL;
    if (!has_handle ||
        oriel_host()->Win_get_name(window->host->handle, name, &name_bytes) != MPI_SUCCESS)
        name[0] = '\0';
    snprintf(out, ORIEL_STATE_NAME, "%.*s", ORIEL_STATE_NAME - 1, name);
}

/* The call in the program. An observed call knows its place, also in Python. */
static void find_place(struct oriel_code_address *out)
{
    const struct oriel_code_address *known =
        oriel_current_call.observed != NULL ? oriel_site_place_at(oriel_current_call.site->place)
                                            : NULL;
    if (known != NULL)
        *out = *known;
    else if (!oriel_code_address_caller(out))
        memset(out, 0, sizeof *out);
}

#define SET(field, value) atomic_store_explicit(&own->field, value, memory_order_relaxed)

static void page_write_begin(void)
{
    SET(changed, oriel_load_relaxed(&own->changed) | 1);
    atomic_thread_fence(memory_order_release);
}

static void page_write_end(void)
{
    atomic_store_explicit(&own->changed, oriel_load_relaxed(&own->changed) + 1,
                          memory_order_release);
}

static void page_write_ranks(const struct wait_description *description)
{
    SET(looked_ns, oriel_now_ns());
    SET(others, description->others);
    for (size_t i = 0; i < sizeof description->ranks / sizeof description->ranks[0]; i++)
        SET(ranks[i], description->ranks[i]);
}

static void page_begin_wait(const struct oriel_watch *watch, uint64_t since_ns)
{
    struct wait_description description;
    char name[ORIEL_STATE_NAME];
    union {
        struct oriel_code_address place;
        uint64_t words[sizeof(struct oriel_code_address) / sizeof(uint64_t)];
    } call;
    find_place(&call.place);
    describe_wait(watch, &description);
    read_window_name(description.window, name);
    page_write_begin();
    SET(waiting, watch->what == ORIEL_WAITING_FENCE && description.window->ending
                     ? ORIEL_WAITING_FREE
                     : watch->what);
    SET(rank, description.rank);
    SET(world_rank_waited, description.world_rank);
    SET(window_id, description.window_id);
    SET(turn, description.turn);
    SET(since_ns, since_ns);
    for (size_t i = 0; i < sizeof name; i++)
        SET(window_name[i], name[i]);
    for (size_t i = 0; i < sizeof call.words / sizeof call.words[0]; i++)
        SET(place[i], call.words[i]);
    page_write_ranks(&description);
    page_write_end();
}

/* The holder of a lock may change during the wait. */
static void page_update_wait(const struct oriel_watch *watch)
{
    struct wait_description description;
    describe_wait(watch, &description);
    page_write_begin();
    page_write_ranks(&description);
    page_write_end();
}

static bool page_wait_lasts(const struct oriel_watch *watch, uint64_t since_ns, bool was)
{
    int error = errno;
    if (was)
        page_update_wait(watch);
    else if (is_mine || atomic_exchange_explicit(&taken, true, memory_order_acquire))
        return false;
    else
        page_begin_wait(watch, since_ns);
    is_mine = true;
    errno = error;
    return true;
}

static void page_wait_over(void)
{
    page_write_begin();
    SET(waiting, ORIEL_WAITING_NOTHING);
    page_write_end();
    is_mine = false;
    atomic_store_explicit(&taken, false, memory_order_release);
}

/* Before MPI_Init, or with sessions only, the launcher's environment has the rank. */
static void read_world(struct oriel_state *state)
{
    int rank = -1, size = 0;
    if (oriel_host_has_world()) {
        oriel_host()->Comm_rank(MPI_COMM_WORLD, &rank);
        oriel_host()->Comm_size(MPI_COMM_WORLD, &size);
    } else {
        rank = oriel_job_rank();
    }
    state->world_rank = rank;
    state->world_size = size;
}

static void open_page(void)
{
    static const struct oriel_wait_publisher teller = {page_wait_lasts, page_wait_over};
    struct oriel_code_address first;
    if (oriel_window_start() != ORIEL_OK)
        return; /* the creation of the window fails with the reason */
    own = (struct oriel_state *)(oriel_file_base() + ORIEL_FILE_STATE_OFFSET);
    own->version = ORIEL_STATE_VERSION;
    own->job = oriel_job_find();
    read_world(own);
    snprintf(own->program, sizeof own->program, "%s", program_invocation_short_name);
    snprintf(own->host, sizeof own->host, "%s", oriel_host_name());
    oriel_host_version(own->host_version, sizeof own->host_version);
    atomic_store_explicit(&own->magic, ORIEL_STATE_MAGIC, memory_order_release);
    /* The first unwinding loads a library, which no wait should do. */
    (void)oriel_code_address_caller(&first);
    oriel_wait_set_publisher(&teller);
}

void oriel_state_set_records(uint64_t offset)
{
    if (own != NULL)
        atomic_store_explicit(&own->records, offset, memory_order_release);
}

void oriel_state_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_page);
}
