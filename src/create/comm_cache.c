/* Stores rendezvous as attributes of communicators. The host does not copy them to a duplicate of a
 * communicator, on which windows may be created in another order. It deletes them when a
 * communicator is freed; for MPI_COMM_WORLD, in MPI_Finalize. An attribute belongs to the
 * communicator and not to its handle, so a reused handle has no rendezvous.
 *
 * Lifetime. Either all ranks of a communicator have its rendezvous or none has. It is attached
 * before the agreement on the first window, and then confirmed or dropped as all ranks agree. From
 * then on all ranks create their windows through it, in the same order. No rank frees its
 * communicator before it has left its last round, but another rank may still be leaving that round.
 * Rank 0 therefore keeps the words until all others have incremented departed, their last access.
 *
 * Freeing. Delete callbacks of the program may create windows over the communicator that is being
 * freed. They may also make MPI_Comm_free fail, and then the communicator remains. The order in
 * which attributes are deleted is up to the host and may differ between ranks. The host's attribute
 * table is inconsistent meanwhile. MPICH forgets the failure of one callback when a later one
 * succeeds.
 *
 * So a rank deletes the rendezvous attribute, and leaves the rendezvous (shm_rendezvous.c, N6),
 * before the host starts. Windows created from then on use the host's collectives on all ranks. If
 * a rank creates a window in such a callback, no attribute is read or set. Callbacks may free other
 * communicators, whose callbacks may create windows over the first: all communicators that a thread
 * is freeing count. A communicator that remains gets a new rendezvous with the next window that is
 * created outside callbacks. On some ranks it replaces the old one. */
#include "create/comm_cache.h"

#include "host/host.h"
#include "window/handle.h"

#include <pthread.h>
#include <stdlib.h>

struct kept {
    struct oriel_shm_rendezvous board; /* first: callers use a pointer to this member */
    MPI_Comm comm;
    int key;
    int64_t own_offset; /* of rank 0, otherwise -1 */
    bool is_confirmed;
    struct kept *next_leaving;
    struct kept *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct kept *_Atomic leaving; /* on rank 0: other ranks may still access the words */
static struct kept *living;          /* all current attributes */
static _Thread_local struct oriel_freeing
    *innermost; /* the innermost MPI_Comm_free call of this thread */
static int keyval = MPI_KEYVAL_INVALID;

static void close_board(struct kept *kept)
{
    if (kept->own_offset >= 0)
        oriel_file_free((uint64_t)kept->own_offset);
    oriel_group_release(kept->board.group);
    free(kept);
}

static bool all_have_left(const struct kept *kept)
{
    return oriel_load_acquire(&kept->board.words->departed) == (uint32_t)kept->board.group->n - 1;
}

void oriel_comm_cache_reclaim(void)
{
    if (atomic_load_explicit(&leaving, memory_order_relaxed) == NULL)
        return;
    pthread_mutex_lock(&mutex);
    struct kept *kept = leaving;
    leaving = NULL;
    while (kept != NULL) {
        struct kept *next = kept->next_leaving;
        if (all_have_left(kept)) {
            close_board(kept);
        } else {
            kept->next_leaving = leaving;
            leaving = kept;
        }
        kept = next;
    }
    pthread_mutex_unlock(&mutex);
}

static void leave(struct kept *kept)
{
    if (kept->is_confirmed)
        oriel_shm_rendezvous_leave(
            &kept->board); /* the host may have freed the communicator without MPI_Comm_free */
    if (kept->is_confirmed && kept->own_offset >= 0) {
        pthread_mutex_lock(&mutex);
        kept->next_leaving = leaving;
        leaving = kept;
        pthread_mutex_unlock(&mutex);
        oriel_comm_cache_reclaim();
        return;
    }
    if (kept->is_confirmed)
        atomic_fetch_add_explicit(&kept->board.words->departed, 1,
                                  memory_order_acq_rel); /* the last access */
    close_board(kept);
}

static void insert(struct kept *kept)
{
    pthread_mutex_lock(&mutex);
    kept->next = living;
    living = kept;
    pthread_mutex_unlock(&mutex);
}

static void remove_living(struct kept *kept)
{
    pthread_mutex_lock(&mutex);
    struct kept **link = &living;
    while (*link != kept)
        link = &(*link)->next;
    *link = kept->next;
    pthread_mutex_unlock(&mutex);
}

/* The latest entry of this handle, or NULL. Does not call the host, which would raise an error for
 * a handle that is not a communicator. */
static const struct kept *youngest(MPI_Comm comm)
{
    pthread_mutex_lock(&mutex);
    const struct kept *kept = living;
    while (kept != NULL && (kept->comm != comm || kept->key != keyval))
        kept = kept->next;
    pthread_mutex_unlock(&mutex);
    return kept;
}

/* The host may have lost an attribute and reused the handle. Deleting an attribute that the host
 * does not have would be an error, which ends most programs. So the attribute is looked up first.
 */
void oriel_comm_cache_begin_free(struct oriel_freeing *freeing, MPI_Comm comm)
{
    freeing->comm = comm;
    freeing->outer = innermost;
    innermost = freeing;
    const struct kept *kept = oriel_handle_in_child() ? NULL : youngest(comm);
    void *value = NULL;
    int found = 0;
    if (kept != NULL && oriel_host()->Comm_get_attr(comm, keyval, &value, &found) == MPI_SUCCESS &&
        found && value == kept)
        oriel_host()->Comm_delete_attr(comm, keyval);
}

void oriel_comm_cache_end_free(const struct oriel_freeing *freeing)
{
    innermost = freeing->outer;
}

bool oriel_comm_cache_is_freeing(MPI_Comm comm)
{
    const struct oriel_freeing *freeing = innermost;
    while (freeing != NULL && freeing->comm != comm)
        freeing = freeing->outer;
    return freeing != NULL;
}

/* The host calls this when it deletes the communicator, possibly in MPI_Finalize: no host function
 * may be called. */
static int forget(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm;
    (void)key;
    (void)extra;
    if (oriel_handle_in_child()) /* the words belong to its parent */
        return MPI_SUCCESS;
    remove_living(value);
    leave(value);
    return MPI_SUCCESS;
}

struct oriel_shm_rendezvous *oriel_comm_cache_find(MPI_Comm comm)
{
    void *value = NULL;
    int found = 0;
    if (keyval == MPI_KEYVAL_INVALID || oriel_comm_cache_is_freeing(comm) ||
        oriel_host()->Comm_get_attr(comm, keyval, &value, &found) != MPI_SUCCESS || !found)
        return NULL;
    struct kept *kept = value;
    return kept->board.is_over ? NULL : &kept->board;
}

enum oriel_status oriel_comm_cache_attach(MPI_Comm comm, struct oriel_group *group, int32_t rank,
                                          uint64_t words_offset, int64_t own_offset,
                                          struct oriel_shm_rendezvous **out)
{
    struct kept *kept = keyval == MPI_KEYVAL_INVALID ? NULL : calloc(1, sizeof *kept);
    *out = NULL;
    if (kept == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for the board of a communicator");
    oriel_group_share(group);
    kept->board.words = (struct oriel_shm_rendezvous_words *)(group->bases[0] + words_offset);
    kept->board.group = group;
    kept->board.rank = rank;
    kept->own_offset = own_offset;
    kept->comm = comm;
    kept->key = keyval;
    insert(kept);
    if (oriel_host()->Comm_set_attr(comm, keyval, kept) != MPI_SUCCESS) {
        remove_living(kept);
        oriel_group_release(group);
        free(kept);
        return oriel_fail(ORIEL_E_NO_MEM, "the host cannot keep an attribute of a communicator");
    }
    *out = &kept->board;
    return ORIEL_OK;
}

void oriel_comm_cache_confirm(struct oriel_shm_rendezvous *board)
{
    ((struct kept *)board)->is_confirmed = true;
}

void oriel_comm_cache_drop(MPI_Comm comm)
{
    oriel_host()->Comm_delete_attr(comm, keyval);
}

void oriel_comm_cache_start(void)
{
    if (oriel_host()->Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, NULL) !=
        MPI_SUCCESS)
        keyval = MPI_KEYVAL_INVALID;
}

void oriel_comm_cache_stop(void)
{
    if (keyval != MPI_KEYVAL_INVALID)
        oriel_host()->Comm_free_keyval(&keyval);
    keyval = MPI_KEYVAL_INVALID;
}
