/* Stores rendezvous as attributes of communicators. The host does not copy them to a duplicate of a
 * communicator, on which windows may be created in another order. It deletes them when a
 * communicator is freed; for MPI_COMM_WORLD, in MPI_Finalize. An attribute belongs to the
 * communicator and not to its handle, so a reused handle has no rendezvous.
 *
 * Lifetime. Either all ranks of a communicator have its rendezvous or none has. It is attached
 * before the agreement on the first window, and then confirmed or dropped as all ranks agree. From
 * then on all ranks create their windows through it, in the same order. A rank frees its
 * communicator only after its own last round, but another rank may still be leaving that round.
 * Rank 0 therefore keeps the words until all others have incremented departed, which is their last
 * access.
 *
 * Freeing. Delete callbacks of the program may create windows over the communicator that is being
 * freed. They may also make MPI_Comm_free fail, and then the communicator remains. The host chooses
 * the order in which it deletes attributes, and the order may differ between ranks. Meanwhile the
 * host's attribute table is inconsistent. MPICH forgets the failure of one callback when a later
 * one succeeds. An error handler may leave MPI_Comm_free by a jump.
 *
 * So a rank deletes the rendezvous attribute, and leaves the rendezvous (shm_rendezvous.c, N6),
 * before it calls the host. Windows created from then on use the host's collectives on all ranks.
 * If a rank creates a window in such a callback, no attribute is read or set. A callback may free
 * another communicator, whose callbacks may create windows over the first one. So the check covers
 * all communicators that a thread is freeing. A communicator that remains gets a new rendezvous
 * with the next window that is created outside callbacks. It replaces the old one on ranks that
 * had not deleted it. After a jump out of MPI_Comm_free, the communicator counts as being freed
 * until it is freed again or the outer call ends. */
#include "create/comm_cache.h"

#include "host/host.h"
#include "window/handle.h"

#include <pthread.h>
#include <stdlib.h>

struct cache_entry {
    struct oriel_shm_rendezvous rendezvous; /* first: callers use a pointer to this member */
    MPI_Comm comm;
    int key;
    int64_t own_offset; /* of rank 0, otherwise -1 */
    bool is_confirmed;
    struct cache_entry *next_leaving;
    struct cache_entry *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* on rank 0: other ranks may still access the words */
static struct cache_entry *_Atomic leaving_entries;
static struct cache_entry *live_entries; /* all current attributes */
/* One call of MPI_Comm_free or MPI_Comm_disconnect. Not on its stack, which it may leave by a
 * jump. */
struct free_call {
    MPI_Comm comm;
    struct free_call *outer; /* the call whose delete callback makes this one; NULL: none */
};
static _Thread_local struct free_call *innermost_free;
static int keyval = MPI_KEYVAL_INVALID;

static void entry_free(struct cache_entry *entry)
{
    if (entry->own_offset >= 0)
        oriel_file_free((uint64_t)entry->own_offset);
    oriel_group_release(entry->rendezvous.group);
    free(entry);
}

static bool entry_all_departed(const struct cache_entry *entry)
{
    return oriel_load_acquire(&entry->rendezvous.words->departed) ==
           (uint32_t)entry->rendezvous.group->n - 1;
}

void oriel_comm_cache_reclaim(void)
{
    if (atomic_load_explicit(&leaving_entries, memory_order_relaxed) == NULL)
        return;
    pthread_mutex_lock(&mutex);
    struct cache_entry *entry = leaving_entries;
    leaving_entries = NULL;
    while (entry != NULL) {
        struct cache_entry *next = entry->next_leaving;
        if (entry_all_departed(entry)) {
            entry_free(entry);
        } else {
            entry->next_leaving = leaving_entries;
            leaving_entries = entry;
        }
        entry = next;
    }
    pthread_mutex_unlock(&mutex);
}

static void entry_leave(struct cache_entry *entry)
{
    /* also here: the host may have freed the communicator without MPI_Comm_free */
    if (entry->is_confirmed)
        oriel_shm_rendezvous_leave(&entry->rendezvous);
    if (entry->is_confirmed && entry->own_offset >= 0) {
        pthread_mutex_lock(&mutex);
        entry->next_leaving = leaving_entries;
        leaving_entries = entry;
        pthread_mutex_unlock(&mutex);
        oriel_comm_cache_reclaim();
        return;
    }
    if (entry->is_confirmed)
        atomic_fetch_add_explicit(&entry->rendezvous.words->departed, 1,
                                  memory_order_acq_rel); /* the last access */
    entry_free(entry);
}

static void live_list_insert(struct cache_entry *entry)
{
    pthread_mutex_lock(&mutex);
    entry->next = live_entries;
    live_entries = entry;
    pthread_mutex_unlock(&mutex);
}

static void live_list_remove(struct cache_entry *entry)
{
    pthread_mutex_lock(&mutex);
    struct cache_entry **link = &live_entries;
    while (*link != entry)
        link = &(*link)->next;
    *link = entry->next;
    pthread_mutex_unlock(&mutex);
}

/* The latest entry of this handle, or NULL. Does not call the host, which would raise an error for
 * a handle that is not a communicator. */
static const struct cache_entry *entry_find_latest(MPI_Comm comm)
{
    pthread_mutex_lock(&mutex);
    const struct cache_entry *entry = live_entries;
    while (entry != NULL && (entry->comm != comm || entry->key != keyval))
        entry = entry->next;
    pthread_mutex_unlock(&mutex);
    return entry;
}

/* The link to this thread's call for comm; it holds NULL when there is none. */
static struct free_call **free_call_find(MPI_Comm comm)
{
    struct free_call **link = &innermost_free;
    while (*link != NULL && (*link)->comm != comm)
        link = &(*link)->outer;
    return link;
}

static void free_call_remove(MPI_Comm comm)
{
    struct free_call **link = free_call_find(comm);
    struct free_call *call = *link;
    if (call == NULL)
        return;
    *link = call->outer;
    free(call);
}

/* The host may have lost an attribute and reused the handle. Deleting an attribute that the host
 * does not have would be an error, which ends most programs. So the attribute is looked up first.
 */
enum oriel_status oriel_comm_cache_begin_free(MPI_Comm comm)
{
    struct free_call *call = malloc(sizeof *call);
    if (call == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory to free a communicator");
    free_call_remove(comm); /* an earlier call, left by a jump */
    *call = (struct free_call){comm, innermost_free};
    innermost_free = call;
    const struct cache_entry *entry = oriel_handle_in_child() ? NULL : entry_find_latest(comm);
    void *value = NULL;
    int found = 0;
    if (entry != NULL && oriel_host()->Comm_get_attr(comm, keyval, &value, &found) == MPI_SUCCESS &&
        found && value == entry)
        oriel_host()->Comm_delete_attr(comm, keyval);
    return ORIEL_OK;
}

void oriel_comm_cache_end_free(MPI_Comm comm)
{
    /* the calls inside this one were left by a jump */
    while (innermost_free->comm != comm)
        free_call_remove(innermost_free->comm);
    free_call_remove(comm);
}

bool oriel_comm_cache_is_freeing(MPI_Comm comm)
{
    return *free_call_find(comm) != NULL;
}

/* The host calls this when it deletes the communicator, possibly in MPI_Finalize: no host function
 * may be called. */
static int entry_delete_callback(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm;
    (void)key;
    (void)extra;
    if (oriel_handle_in_child()) /* the words belong to its parent */
        return MPI_SUCCESS;
    live_list_remove(value);
    entry_leave(value);
    return MPI_SUCCESS;
}

struct oriel_shm_rendezvous *oriel_comm_cache_find(MPI_Comm comm)
{
    void *value = NULL;
    int found = 0;
    if (keyval == MPI_KEYVAL_INVALID || oriel_comm_cache_is_freeing(comm) ||
        oriel_host()->Comm_get_attr(comm, keyval, &value, &found) != MPI_SUCCESS || !found)
        return NULL;
    struct cache_entry *entry = value;
    return entry->rendezvous.is_over ? NULL : &entry->rendezvous;
}

enum oriel_status oriel_comm_cache_attach(MPI_Comm comm, struct oriel_group *group, int32_t rank,
                                          uint64_t words_offset, int64_t own_offset,
                                          struct oriel_shm_rendezvous **out)
{
    struct cache_entry *entry = keyval == MPI_KEYVAL_INVALID ? NULL : calloc(1, sizeof *entry);
    *out = NULL;
    if (entry == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for a communicator's rendezvous");
    oriel_group_add_reference(group);
    entry->rendezvous.words = (struct oriel_shm_rendezvous_words *)(group->bases[0] + words_offset);
    entry->rendezvous.group = group;
    entry->rendezvous.rank = rank;
    entry->own_offset = own_offset;
    entry->comm = comm;
    entry->key = keyval;
    live_list_insert(entry);
    if (oriel_host()->Comm_set_attr(comm, keyval, entry) != MPI_SUCCESS) {
        live_list_remove(entry);
        oriel_group_release(group);
        free(entry);
        return oriel_fail(ORIEL_E_NO_MEM, "the host cannot store an attribute of a communicator");
    }
    *out = &entry->rendezvous;
    return ORIEL_OK;
}

void oriel_comm_cache_confirm(struct oriel_shm_rendezvous *rendezvous)
{
    ((struct cache_entry *)rendezvous)->is_confirmed = true;
}

void oriel_comm_cache_drop(MPI_Comm comm)
{
    oriel_host()->Comm_delete_attr(comm, keyval);
}

void oriel_comm_cache_start(void)
{
    if (oriel_host()->Comm_create_keyval(MPI_COMM_NULL_COPY_FN, entry_delete_callback, &keyval,
                                         NULL) != MPI_SUCCESS)
        keyval = MPI_KEYVAL_INVALID;
}

void oriel_comm_cache_stop(void)
{
    if (keyval != MPI_KEYVAL_INVALID)
        oriel_host()->Comm_free_keyval(&keyval);
    keyval = MPI_KEYVAL_INVALID;
}
