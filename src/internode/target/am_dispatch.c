/* Dispatches messages from other nodes to their windows. A window can be found from before all
 * ranks agree on it until after the barrier of its end. It is served once this process has finished
 * it, before all ranks notify each other of that (create.c). So every message that a rank may send
 * is served. A message for an unknown window is for one that ended after an error; its reply
 * reports that. The agent's thread serves one message at a time with serving held. Removal acquires
 * serving, too. */
#include "internode/target/am_dispatch.h"

#include "internode/origin/origin_rma.h"
#include "internode/origin/origin_sync.h"
#include "memory/net_address.h"
#include "sync/memory_wait.h"
#include "window/holders.h"

#include <pthread.h>
#include <stdio.h>

static struct oriel_hash_table windows = ORIEL_HASH_TABLE_INIT;
static pthread_mutex_t serving = PTHREAD_MUTEX_INITIALIZER;

/* The last windows that ended after a death, with the dead rank for replies about them. */
enum { GIVEN_UP = 64 };
static struct {
    uint64_t id;
    int32_t dead;
} given_up[GIVEN_UP];
static unsigned given_up_count;

bool oriel_am_dispatch_add(struct oriel_window *window)
{
    return oriel_hash_table_set(&windows, window->internode->id, window);
}

void oriel_am_dispatch_remove(struct oriel_window *window)
{
    pthread_mutex_lock(&serving);
    oriel_hash_table_remove(&windows, window->internode->id, window);
    oriel_internode_close(window);
    pthread_mutex_unlock(&serving);
}

void oriel_am_dispatch_record_death(struct oriel_window *window, int32_t dead)
{
    if (window->internode == NULL)
        return;
    pthread_mutex_lock(&serving);
    unsigned place = given_up_count++ % GIVEN_UP;
    given_up[place].id = window->internode->id;
    given_up[place].dead = dead;
    pthread_mutex_unlock(&serving);
}

/* NULL: this process has made no memory handle. */
static _Atomic(const struct oriel_am_holders *) serving_holders;

void oriel_am_dispatch_serve_holders(const struct oriel_am_holders *holders)
{
    atomic_store_explicit(&serving_holders, holders, memory_order_release);
}

static bool expects_reply(const struct oriel_internode_head *head)
{
    switch ((enum oriel_internode_kind)head->kind) {
    case ORIEL_INTERNODE_POST:
    case ORIEL_INTERNODE_COMPLETE:
    case ORIEL_INTERNODE_ARRIVED:
    case ORIEL_INTERNODE_LOST:
    case ORIEL_INTERNODE_PUT: return false;
    case ORIEL_INTERNODE_ACCUMULATE: return (head->d >> 16 & ORIEL_INTERNODE_RETURNS) != 0;
    default: return true;
    }
}

static void reply_error(const struct oriel_net_requester *asker,
                        const struct oriel_internode_head *head, enum oriel_status status,
                        const char *why)
{
    struct oriel_internode_reply answer = {.status = status};
    struct oriel_net_bytes bytes = {&answer, sizeof answer, NULL, 0};
    snprintf(answer.text, sizeof answer.text, "%s", why);
    if (expects_reply(head))
        oriel_net_answer(asker, &bytes);
}

static void reply_given_up(const struct oriel_net_requester *asker,
                           const struct oriel_internode_head *head, int32_t dead)
{
    struct oriel_internode_reply answer = {.status = ORIEL_E_PEER};
    uint64_t number = (uint64_t)dead + 1;
    struct oriel_net_bytes bytes = {&answer, sizeof answer, &(struct iovec){&number, sizeof number},
                                    1};
    snprintf(answer.text, sizeof answer.text,
             "rank %d has died, and the target has left the window [O18]", (int)dead);
    if (expects_reply(head))
        oriel_net_answer(asker, &bytes);
}

static void reply_gone(const struct oriel_net_requester *asker,
                       const struct oriel_internode_head *head)
{
    for (unsigned i = 0; i < GIVEN_UP && i < given_up_count; i++) {
        if (given_up[i].id != head->window)
            continue;
        reply_given_up(asker, head, given_up[i].dead);
        return;
    }
    reply_error(asker, head, ORIEL_E_WIN, "the window no longer exists");
}

/* Replies with identity and address of a process of this node. */
static void reply_address(struct oriel_window *window, const struct oriel_net_requester *asker,
                          const struct oriel_internode_head *head)
{
    const struct oriel_peer *peer =
        head->a < (uint64_t)window->n ? window->group->peers[head->a] : NULL;
    const struct oriel_net_address_area *reached =
        peer != NULL ? oriel_net_address_of(peer->base) : NULL;
    if (reached == NULL) {
        reply_error(asker, head, ORIEL_E_WIN, "no such process on this node");
        return;
    }
    struct iovec data[] = {{(void *)(uintptr_t)&peer->identity, sizeof peer->identity},
                           {(void *)(uintptr_t)reached->address, reached->address_bytes}};
    oriel_internode_reply_ok(asker, data, 2);
}

/* Whether the sender is the rank in the head. */
static bool sender_is_valid(const struct oriel_window *window,
                            const struct oriel_internode_head *head,
                            const struct oriel_identity *from)
{
    if (head->from < 0 || head->from >= window->n)
        return false;
    const struct oriel_group_id *id = &window->group->ids[head->from];
    return id->id[0] == from->id[0] && id->id[1] == from->id[1];
}

/* Also runs for messages that a target deferred. */
static void message_serve_now(struct oriel_window *window, const struct oriel_net_requester *asker,
                              const struct oriel_internode_head *head,
                              const struct oriel_net_received *message)
{
    switch ((enum oriel_internode_kind)head->kind) {
    case ORIEL_INTERNODE_GET: oriel_internode_serve_operation(window, asker, head, message); break;
    case ORIEL_INTERNODE_PUT:
    case ORIEL_INTERNODE_ACCUMULATE:
    case ORIEL_INTERNODE_SWAP:
        oriel_internode_serve_operation(window, asker, head, message);
        oriel_fence_full();                   /* W2 (sync/memory_wait.c) */
        oriel_memory_wake(oriel_file_base()); /* W3 */
        break;
    case ORIEL_INTERNODE_ADDRESS: reply_address(window, asker, head); break;
    case ORIEL_INTERNODE_KEY: oriel_internode_reply_key(window, asker); break;
    default: oriel_internode_serve(window, asker, head); break;
    }
}

/* --- holders of memory handles --- */

static void holder_open(const struct oriel_net_requester *asker, const struct oriel_identity *from,
                        const struct oriel_internode_head *head,
                        const struct oriel_net_received *message)
{
    const struct oriel_am_holders *holders =
        atomic_load_explicit(&serving_holders, memory_order_acquire);
    struct oriel_window *window = NULL;
    enum oriel_status status =
        holders != NULL ? holders->open(from, head, message, &window)
                        : oriel_fail(ORIEL_E_ATTACH, "the memory handle has been withdrawn");
    if (status == ORIEL_OK && !oriel_am_dispatch_add(window)) {
        holders->close(window);
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory for a memory handle");
    }
    if (status != ORIEL_OK) {
        oriel_internode_reply_refusal(asker, status);
        return;
    }
    struct oriel_internode_opened opened = {.id = window->internode->id,
                                            .size_bytes = window->targets[0].size_bytes,
                                            .disp_unit = window->targets[0].disp_unit,
                                            .window_number = window->holding->area->window_number};
    oriel_internode_reply_ok(asker, &(struct iovec){&opened, sizeof opened}, 1);
}

static void holder_close(struct oriel_window *window)
{
    oriel_hash_table_remove(&windows, window->internode->id, window);
    atomic_load_explicit(&serving_holders, memory_order_acquire)->close(window);
}

static void holder_serve_close(struct oriel_window *window, const struct oriel_net_requester *asker)
{
    holder_close(window);
    oriel_internode_reply_ok(asker, NULL, 0);
}

/* The owner serves a holder no other messages. */
static bool kind_is_for(const struct oriel_window *window, uint32_t kind)
{
    return oriel_window_is_opened(window)
               ? kind <= ORIEL_INTERNODE_UNLOCK || kind == ORIEL_INTERNODE_KEY ||
                     kind == ORIEL_INTERNODE_CLOSE
               : kind < ORIEL_INTERNODE_OPEN;
}

/* --- all messages --- */

static void message_serve(const struct oriel_net_requester *asker,
                          const struct oriel_identity *from,
                          const struct oriel_net_received *message)
{
    const struct oriel_internode_head *head = message->head;
    if (message->head_bytes != sizeof *head || head->kind > ORIEL_INTERNODE_CLOSE)
        return;
    pthread_mutex_lock(&serving);
    struct oriel_window *window = oriel_hash_table_find(&windows, head->window);
    if (head->kind == ORIEL_INTERNODE_OPEN)
        holder_open(asker, from, head, message);
    else if (window == NULL)
        reply_gone(asker, head);
    else if (!atomic_load_explicit(&window->internode->is_finished, memory_order_acquire))
        /* from a sender that ignores is_settled */
        reply_error(asker, head, ORIEL_E_WIN, "the window is not complete yet");
    else if (!sender_is_valid(window, head, from))
        reply_error(asker, head, ORIEL_E_WIN, "the sender is not a rank of the window");
    else if (!kind_is_for(window, head->kind))
        reply_error(asker, head, ORIEL_E_WIN, "the window has no such messages");
    else if (head->kind == ORIEL_INTERNODE_CLOSE)
        holder_serve_close(window, asker);
    else if (!oriel_internode_defers(window, asker, head, message, expects_reply(head),
                                     message_serve_now))
        message_serve_now(window, asker, head, message);
    pthread_mutex_unlock(&serving);
}

static void locks_advance_window(void *window, void *context)
{
    (void)context;
    oriel_internode_advance_locks(window);
}

static bool locks_advance_all(void)
{
    pthread_mutex_lock(&serving);
    if (oriel_internode_has_waiting_locks())
        oriel_hash_table_visit(&windows, locks_advance_window, NULL);
    bool waiting = oriel_internode_has_waiting_locks();
    pthread_mutex_unlock(&serving);
    return waiting;
}

struct lost_process {
    struct oriel_identity identity;
    struct oriel_window *opened; /* one of the windows of which it was a holder */
};

static void window_forget_process(void *value, void *context)
{
    struct oriel_window *window = value;
    struct lost_process *lost = context;
    for (int32_t i = 0; i < window->n; i++)
        if (window->group->ids[i].id[0] == lost->identity.id[0] &&
            window->group->ids[i].id[1] == lost->identity.id[1]) {
            oriel_internode_rank_lost(window, i);
            if (oriel_window_is_opened(window))
                lost->opened = window;
        }
}

static void process_lost(const struct oriel_identity *who)
{
    struct lost_process lost = {.identity = *who};
    pthread_mutex_lock(&serving);
    do { /* a visit must not change the table */
        lost.opened = NULL;
        oriel_hash_table_visit(&windows, window_forget_process, &lost);
        if (lost.opened != NULL)
            holder_close(lost.opened);
    } while (lost.opened != NULL);
    pthread_mutex_unlock(&serving);
}

const struct oriel_net_service oriel_am_dispatch_service = {
    .serve = message_serve, .look = locks_advance_all, .lost = process_lost};
