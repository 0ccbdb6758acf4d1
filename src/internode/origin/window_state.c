/* Creates and frees the internode state of a window. It exists before the first message for the
 * window is served, and until after the last. */
#include "internode/origin/origin_sync.h"
#include "internode/origin/rma_requests.h"

#include <stdlib.h>
#include <string.h>

bool oriel_internode_has_spare_partner(struct oriel_internode *internode)
{
    if (internode->spare_partner == NULL && oriel_hash_table_reserve(&internode->partners)) {
        internode->spare_partner = aligned_alloc(ORIEL_CACHE_LINE, ORIEL_CACHE_LINE);
        if (internode->spare_partner != NULL)
            memset(internode->spare_partner, 0, ORIEL_CACHE_LINE);
    }
    return internode->spare_partner != NULL;
}

struct oriel_internode *oriel_internode_make(uint64_t id, int32_t n)
{
    struct oriel_internode *internode = calloc(1, sizeof *internode);
    if (internode == NULL)
        return NULL;
    internode->id = id;
    internode->target_flags = calloc((uint32_t)n, 1);
    internode->flagged = calloc((uint32_t)n, sizeof *internode->flagged);
    internode->refused = calloc((uint32_t)n, 1);
    internode->spare_lock = calloc(1, sizeof *internode->spare_lock);
    internode->partners = (struct oriel_hash_table)ORIEL_HASH_TABLE_INIT;
    internode->keys = (struct oriel_hash_table)ORIEL_HASH_TABLE_INIT;
    pthread_mutex_init(&internode->mutex, NULL);
    pthread_mutex_init(&internode->entering, NULL);
    pthread_mutex_init(&internode->flushing, NULL);
    if (internode->target_flags != NULL && internode->flagged != NULL &&
        internode->refused != NULL && internode->spare_lock != NULL &&
        oriel_internode_has_spare_partner(internode))
        return internode;
    oriel_internode_free(internode);
    return NULL;
}

static void free_partner(void *partner, void *context)
{
    (void)context;
    free(partner);
}

void oriel_internode_free(struct oriel_internode *internode)
{
    oriel_hash_table_visit(&internode->partners, free_partner, NULL);
    oriel_hash_table_close(&internode->partners);
    free(internode->spare_partner);
    free(internode->spare_lock);
    oriel_internode_keys_close(internode);
    while (internode->unlock_requests != NULL) {
        struct oriel_internode_request *request = internode->unlock_requests;
        internode->unlock_requests = request->next;
        free(request);
    }
    /* only if the window's end failed; a request that the net still has is left to it */
    while (internode->open != NULL) {
        struct oriel_internode_request *request = internode->open;
        internode->open = request->next;
        if (atomic_load_explicit(&request->net.done, memory_order_acquire))
            oriel_rma_request_release(request);
    }
    pthread_mutex_destroy(&internode->mutex);
    pthread_mutex_destroy(&internode->entering);
    pthread_mutex_destroy(&internode->flushing);
    free((void *)internode->target_flags);
    free(internode->flagged);
    free(internode->refused);
    free(internode);
}
