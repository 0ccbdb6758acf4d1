/* The table of communicators by handle. The host deletes an attribute of the communicator when it
 * is freed, by whatever call, and that removes the entry. So no stale entry is found under a handle
 * that is used again. */
#include "check/intercept/communicators.h"

#include "base/hash_table.h"
#include "check/order/order.h"
#include "host/host.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WORLD_ID = 1, SELF_ID = 2 };

static struct oriel_hash_table table = ORIEL_HASH_TABLE_INIT;
/* Protects made_counts, and the first entry of the predefined communicators. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Communicators made so far, by parent, call and group; the value itself is the count. */
static struct oriel_hash_table made_counts = ORIEL_HASH_TABLE_INIT;

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

static uint64_t handle_key(MPI_Comm comm)
{
    return (uint64_t)(uintptr_t)comm;
}

/* --- references --- */

void oriel_comm_retain(struct oriel_comm *comm)
{
    atomic_fetch_add_explicit(&comm->references, 1, memory_order_relaxed);
}

void oriel_comm_release(struct oriel_comm *comm)
{
    if (atomic_fetch_sub_explicit(&comm->references, 1, memory_order_acq_rel) != 1)
        return;
    oriel_matching_close(&comm->matching);
    oriel_collective_progress_leave(comm->progress, comm->id);
    free(comm->world_ranks);
    free(comm);
}

/* --- members --- */

/* Translates the members to MPI_COMM_WORLD. Returns false when a member is not in it. */
static bool world_ranks_translate(MPI_Group group, int size, int *world_ranks)
{
    const struct oriel_host_calls *host = oriel_host();
    MPI_Group world = MPI_GROUP_NULL;
    int *ranks = malloc((size_t)size * sizeof *ranks);
    bool known = ranks != NULL;
    for (int i = 0; known && i < size; i++)
        ranks[i] = i;
    known = known && host->Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS &&
            host->Group_translate_ranks(group, size, ranks, world, world_ranks) == MPI_SUCCESS;
    for (int i = 0; known && i < size; i++)
        known = world_ranks[i] != MPI_UNDEFINED;
    if (world != MPI_GROUP_NULL)
        host->Group_free(&world);
    free(ranks);
    return known;
}

static void own_rank_find(struct oriel_comm *comm)
{
    comm->rank = -1;
    comm->is_here = true;
    comm->is_reached = true;
    for (int i = 0; i < comm->size; i++) {
        comm->is_here = comm->is_here && oriel_order_is_here(comm->world_ranks[i]);
        comm->is_reached = comm->is_reached && oriel_order_reaches(comm->world_ranks[i]);
        if (comm->world_ranks[i] == oriel_order_rank())
            comm->rank = i;
    }
}

struct oriel_comm *oriel_comm_of_group(MPI_Group group)
{
    struct oriel_comm *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    bool known = oriel_host()->Group_size(group, &made->size) == MPI_SUCCESS && made->size > 0;
    if (known) {
        made->world_ranks = malloc((size_t)made->size * sizeof *made->world_ranks);
        known = made->world_ranks != NULL &&
                world_ranks_translate(group, made->size, made->world_ranks);
    }
    if (known) {
        atomic_store(&made->references, 1);
        own_rank_find(made);
        oriel_matching_open(&made->matching, 0, oriel_order_rank());
        if (made->rank >= 0)
            return made;
    }
    free(made->world_ranks);
    free(made);
    return NULL;
}

/* NULL: not modelled. */
static struct oriel_comm *comm_make(MPI_Comm comm)
{
    const struct oriel_host_calls *host = oriel_host();
    MPI_Group group;
    if (host->Comm_group(comm, &group) != MPI_SUCCESS)
        return NULL;
    struct oriel_comm *made = oriel_comm_of_group(group);
    host->Group_free(&group);
    return made;
}

static void comm_id_set(struct oriel_comm *comm, uint64_t id)
{
    comm->id = id;
    comm->matching.id = id;
    if (comm->is_reached && comm->size > 1)
        comm->progress = oriel_collective_progress_find(id, false, comm->size, comm->world_ranks);
}

/* --- the table --- */

void oriel_comm_add(MPI_Comm comm, uint64_t id)
{
    struct oriel_comm *entry = comm_make(comm);
    if (entry == NULL)
        return;
    comm_id_set(entry, id);
    if (!oriel_hash_table_set(&table, handle_key(comm), entry))
        oriel_comm_release(entry);
}

void oriel_comm_freed(MPI_Comm was, struct oriel_comm *entry)
{
    oriel_hash_table_remove(&table, handle_key(was),
                            entry); /* unless the handle is already used again */
    oriel_comm_release(entry);
}

static struct oriel_comm *predefined_comm_add(MPI_Comm comm)
{
    pthread_mutex_lock(&mutex);
    struct oriel_comm *entry = oriel_hash_table_find(&table, handle_key(comm));
    if (entry == NULL) {
        entry = comm_make(comm);
        if (entry != NULL)
            comm_id_set(entry, comm == MPI_COMM_WORLD ? WORLD_ID
                                                      : mix(SELF_ID, (uint64_t)oriel_order_rank()));
        if (entry != NULL && !oriel_hash_table_set(&table, handle_key(comm), entry)) {
            oriel_comm_release(entry);
            entry = NULL;
        }
    }
    pthread_mutex_unlock(&mutex);
    return entry;
}

struct oriel_comm *oriel_comm_find(MPI_Comm comm)
{
    struct oriel_comm *entry = oriel_hash_table_find(&table, handle_key(comm));
    return entry == NULL && (comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF)
               ? predefined_comm_add(comm)
               : entry;
}

static void comm_entry_release(void *entry, void *nothing)
{
    (void)nothing;
    oriel_comm_release(entry);
}

void oriel_comm_stop(void)
{
    oriel_hash_table_visit(&table, comm_entry_release, NULL);
    oriel_hash_table_close(&table);
}

/* --- ids --- */

struct oriel_comm_origin oriel_comm_origin(const struct oriel_comm *parent, const char *call,
                                           int tag)
{
    struct oriel_comm_origin making = {.parent_id = parent == NULL ? 0 : parent->id,
                                       .tag = (uint64_t)(uint32_t)tag};
    for (const char *c = call; *c != '\0'; c++)
        making.tag = mix(making.tag, (unsigned char)*c);
    return making;
}

static uint64_t comm_id_next(uint64_t key)
{
    pthread_mutex_lock(&mutex);
    uintptr_t count = (uintptr_t)oriel_hash_table_find(&made_counts, key) + 1;
    bool counted = oriel_hash_table_set_nolock(&made_counts, key, (void *)count);
    pthread_mutex_unlock(&mutex);
    return counted ? mix(key, count) : 0;
}

uint64_t oriel_comm_id_assign(const struct oriel_comm_origin *making, const struct oriel_comm *like)
{
    uint64_t key = mix(making->parent_id, making->tag);
    for (int i = 0; i < like->size; i++)
        key = mix(key, (uint64_t)oriel_comm_world_rank(like, i));
    return comm_id_next(key);
}

void oriel_comm_add_made(const struct oriel_comm_origin *making, MPI_Comm comm)
{
    struct oriel_comm *entry = comm == MPI_COMM_NULL ? NULL : comm_make(comm);
    if (entry == NULL)
        return;
    uint64_t id = oriel_comm_id_assign(making, entry);
    oriel_comm_release(entry);
    if (id != 0)
        oriel_comm_add(comm, id);
}
