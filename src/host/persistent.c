/* Creates, starts, completes and frees persistent requests (persistent.h).
 *
 * P1: the receive is posted before the request is in the list, so the message of P2 matches it.
 * P2: the message is sent under the mutex, by the thread that removes the request from the list.
 * P3: a thread that cancels or frees an active request first removes it from the list under the
 *     mutex. If it was in the list, no message was sent, and the receive is cancelled. Otherwise
 *     its message was sent (P2), and the receive is complete. So no message stays behind for the
 *     next start, and a tag may be used again. */
#include "host/persistent.h"

#include "base/hash_table.h"

#include <pthread.h>

/* Up to the maximum that every MPI has (MPI-4.1, 9.1.2); carrier.c uses 0. The messages of prompt
 * requests are all alike. */
enum { TAGS = 32768, TAGS_IN_WORD = 64, PROMPT_TAG = 1 };

_Atomic uint32_t oriel_persistent_count;
_Atomic uint64_t oriel_persistent_generation = 1;
_Thread_local struct oriel_persistent_recent oriel_persistent_recent[ORIEL_PERSISTENT_RECENT];

static struct oriel_hash_table table = ORIEL_HASH_TABLE_INIT; /* by handle */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;     /* of tags_used and the list */
static struct oriel_persistent *polled;
static _Atomic uint32_t polled_count;
static uint64_t tags_used[TAGS / TAGS_IN_WORD] = {1 << 0 | 1 << PROMPT_TAG};

static uint64_t key_of(MPI_Request request)
{
    return (uint64_t)(uintptr_t)request;
}

/* 0 if none is left. */
static int tag_acquire(void)
{
    int tag = 0;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < TAGS / TAGS_IN_WORD && tag == 0; i++) {
        if (tags_used[i] == UINT64_MAX)
            continue;
        const int bit = __builtin_ctzll(~tags_used[i]);
        tags_used[i] |= UINT64_C(1) << bit;
        tag = i * TAGS_IN_WORD + bit;
    }
    pthread_mutex_unlock(&mutex);
    return tag;
}

static void tag_release(int tag)
{
    if (tag == PROMPT_TAG)
        return;
    pthread_mutex_lock(&mutex);
    tags_used[tag / TAGS_IN_WORD] &= ~(UINT64_C(1) << tag % TAGS_IN_WORD);
    pthread_mutex_unlock(&mutex);
}

enum oriel_status oriel_persistent_create(struct oriel_persistent *persistent, bool is_prompt,
                                          MPI_Request *out)
{
    persistent->is_prompt = is_prompt;
    persistent->tag = is_prompt ? PROMPT_TAG : tag_acquire();
    if (persistent->tag == 0)
        return oriel_fail(ORIEL_E_NO_MEM, "too many persistent requests wait for other ranks");
    atomic_init(&persistent->activity, ORIEL_PERSISTENT_INACTIVE);
    atomic_init(&persistent->failed, false);
    persistent->link = NULL;
    if (oriel_host()->Recv_init(NULL, 0, MPI_BYTE, 0, persistent->tag, oriel_host_singleton(),
                                &persistent->handle) != MPI_SUCCESS) {
        tag_release(persistent->tag);
        return oriel_fail(ORIEL_E_NO_MEM, "the host cannot create a persistent request");
    }
    if (!oriel_hash_table_set(&table, key_of(persistent->handle), persistent)) {
        oriel_host()->Request_free(&persistent->handle);
        tag_release(persistent->tag);
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for the table of persistent requests");
    }
    atomic_fetch_add_explicit(&oriel_persistent_count, 1, memory_order_relaxed);
    *out = persistent->handle;
    return ORIEL_OK;
}

struct oriel_persistent *oriel_persistent_find_slow(struct oriel_persistent_recent *recent,
                                                    uint64_t key)
{
    const uint64_t generation =
        atomic_load_explicit(&oriel_persistent_generation, memory_order_acquire);
    struct oriel_persistent *found = oriel_hash_table_find(&table, key);
    if (found != NULL)
        *recent = (struct oriel_persistent_recent){generation, key, found};
    return found;
}

/* --- the list --- */

static void list_add(struct oriel_persistent *persistent)
{
    pthread_mutex_lock(&mutex);
    persistent->next = polled;
    persistent->link = &polled;
    if (polled != NULL)
        polled->link = &persistent->next;
    polled = persistent;
    atomic_fetch_add_explicit(&polled_count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&oriel_requests_open, 1, memory_order_relaxed);
    pthread_mutex_unlock(&mutex);
}

/* With the mutex held. It stays counted in oriel_requests_open. */
static void list_remove(struct oriel_persistent *persistent)
{
    *persistent->link = persistent->next;
    if (persistent->next != NULL)
        persistent->next->link = persistent->link;
    persistent->link = NULL;
    atomic_fetch_sub_explicit(&polled_count, 1, memory_order_relaxed);
}

static void request_close(void)
{
    atomic_fetch_sub_explicit(&oriel_requests_open, 1, memory_order_relaxed);
}

static void message_send(const struct oriel_persistent *persistent)
{
    oriel_host_calls.Send(NULL, 0, MPI_BYTE, 0, persistent->tag, oriel_host_singleton());
}

/* P2. */
static void complete(struct oriel_persistent *persistent, enum oriel_persistent_state state)
{
    list_remove(persistent);
    if (state == ORIEL_PERSISTENT_FAILED)
        atomic_store_explicit(&persistent->failed, true, memory_order_release);
    message_send(persistent);
    if (state == ORIEL_PERSISTENT_DONE)
        request_close();
}

void oriel_persistent_progress(void)
{
    struct oriel_persistent *next;
    if (atomic_load_explicit(&polled_count, memory_order_relaxed) == 0 ||
        pthread_mutex_trylock(&mutex) != 0)
        return; /* another thread is doing it */
    for (struct oriel_persistent *persistent = polled; persistent != NULL; persistent = next) {
        next = persistent->next;
        const enum oriel_persistent_state state = persistent->kind->poll(persistent);
        if (state != ORIEL_PERSISTENT_ACTIVE)
            complete(persistent, state);
    }
    pthread_mutex_unlock(&mutex);
}

bool oriel_persistent_end(struct oriel_persistent *persistent)
{
    atomic_store_explicit(&persistent->activity, ORIEL_PERSISTENT_INACTIVE, memory_order_relaxed);
    if (!atomic_load_explicit(&persistent->failed, memory_order_relaxed) ||
        !atomic_exchange_explicit(&persistent->failed, false, memory_order_acquire))
        return false;
    request_close();
    return true;
}

/* --- the functions of MPI --- */

/* The start was refused: the receive becomes inactive again. */
static void deactivate(struct oriel_persistent *persistent)
{
    MPI_Request handle = persistent->handle;
    oriel_host_calls.Cancel(&handle);
    oriel_host_calls.Wait(&handle, MPI_STATUS_IGNORE);
}

static bool activate(struct oriel_persistent *persistent)
{
    MPI_Request handle = persistent->handle;
    return oriel_host_calls.Start(&handle) == MPI_SUCCESS;
}

enum oriel_status oriel_persistent_start_later(struct oriel_persistent *persistent,
                                               struct oriel_window *window)
{
    if (!activate(persistent)) /* P1 */
        return oriel_fail(ORIEL_E_OTHER, "the host cannot start a receive");
    const enum oriel_status status = persistent->kind->start(persistent, window);
    if (status != ORIEL_OK) {
        deactivate(persistent);
        return status;
    }
    atomic_store_explicit(&persistent->activity, ORIEL_PERSISTENT_SHOWN, memory_order_relaxed);
    list_add(persistent);
    return ORIEL_OK;
}

void oriel_persistent_show(int count, const MPI_Request requests[])
{
    for (int i = 0; i < count && requests != NULL; i++) {
        struct oriel_persistent *persistent = oriel_persistent_find(requests[i]);
        if (persistent == NULL || !oriel_persistent_finish(persistent) || !activate(persistent))
            continue;
        atomic_store_explicit(&persistent->activity, ORIEL_PERSISTENT_SHOWN, memory_order_relaxed);
        message_send(persistent);
    }
}

/* P3: returns whether it was in the list. */
static bool withdraw(struct oriel_persistent *persistent)
{
    pthread_mutex_lock(&mutex);
    const bool was_polled = persistent->link != NULL;
    if (was_polled) {
        list_remove(persistent);
        request_close();
    }
    if (was_polled && persistent->kind->cancel != NULL)
        persistent->kind->cancel(persistent);
    pthread_mutex_unlock(&mutex);
    return was_polled;
}

int oriel_persistent_cancel(struct oriel_persistent *persistent)
{
    MPI_Request handle = persistent->handle;
    if (persistent->kind->cancel == NULL || !withdraw(persistent))
        return MPI_SUCCESS;
    return oriel_host_calls.Cancel(&handle);
}

int oriel_persistent_free(struct oriel_persistent *persistent, MPI_Request *request)
{
    MPI_Request handle = persistent->handle;
    (void)oriel_persistent_end(persistent);
    if (withdraw(persistent))
        oriel_host_calls.Cancel(&handle);
    /* before the host may give the handle to another request */
    oriel_hash_table_remove(&table, key_of(handle), persistent);
    atomic_fetch_add_explicit(&oriel_persistent_generation, 1, memory_order_release);
    atomic_fetch_sub_explicit(&oriel_persistent_count, 1, memory_order_relaxed);
    tag_release(persistent->tag);
    persistent->kind->release(persistent);
    return oriel_host_calls.Request_free(request);
}
