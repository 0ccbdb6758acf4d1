/* RDMA access of this process to the memory of internode targets (transport/ucx/rdma.c). An origin
 * requests a target's key at its first operation there, and caches it until the window ends. One
 * thread requests a key. The target's side is rkey_target.c. */
#include "internode/origin/origin_sync.h"

#include "base/log.h"
#include "internode/origin/origin_peers.h"

#include <stdlib.h>

static char none; /* marks a target without a key */

static void *ask_key(struct oriel_window *window, int32_t target, struct oriel_net_peer *peer)
{
    struct oriel_internode_head head = {.kind = ORIEL_INTERNODE_KEY};
    struct oriel_internode_question *question;
    size_t len_bytes;
    if (oriel_internode_question(window, target, peer, &head, &question) != ORIEL_OK)
        return &none; /* the operation's own message reports the cause */
    const void *text = oriel_internode_question_data(question, &len_bytes);
    struct oriel_net_key *key = oriel_net_key_open(peer, text, len_bytes);
    free(question);
    if (key == NULL)
        return &none;
    oriel_note("window %llu: puts to and gets from other nodes use RDMA",
               (unsigned long long)window->serial);
    return key;
}

struct oriel_net_key *oriel_internode_key(struct oriel_window *window, int32_t target,
                                          struct oriel_net_peer *peer)
{
    struct oriel_internode *internode = window->internode;
    const uint64_t at = (uint64_t)target + 1;
    if (window->flavour != ORIEL_FLAVOUR_ALLOCATE || !oriel_net_has_devices())
        return NULL;
    void *key = oriel_hash_table_find(&internode->keys, at);
    if (key == NULL) {
        pthread_mutex_lock(&internode->entering); /* one thread requests it */
        key = oriel_hash_table_find(&internode->keys, at);
        if (key == NULL && oriel_hash_table_reserve(&internode->keys)) {
            key = ask_key(window, target, peer);
            (void)oriel_hash_table_set(&internode->keys, at, key); /* room is reserved */
        }
        pthread_mutex_unlock(&internode->entering);
    }
    return key == &none ? NULL : key;
}

bool oriel_internode_has_key(struct oriel_window *window, int32_t target)
{
    const void *key =
        oriel_hash_table_find(&window->internode->keys, (uint64_t)(uint32_t)target + 1);
    return key != NULL && key != &none;
}

static void close_key(void *key, void *context)
{
    (void)context;
    if (key != &none)
        oriel_net_key_close(key);
}

void oriel_internode_keys_close(struct oriel_internode *internode)
{
    oriel_hash_table_visit(&internode->keys, close_key, NULL);
    oriel_hash_table_close(&internode->keys);
}
