/* Creates and frees the internode state of a window. It exists before the first message for the
 * window is served, and until after the last. */
#include "internode/origin/origin_sync.h"
#include "internode/origin/rma_requests.h"

#include <stdlib.h>
#include <string.h>

bool oriel_internode_has_spare_partner(struct oriel_internode *far)
{
    if (far->spare_partner == NULL && oriel_hash_table_reserve(&far->partners)) {
        far->spare_partner = aligned_alloc(ORIEL_CACHE_LINE, ORIEL_CACHE_LINE);
        if (far->spare_partner != NULL)
            memset(far->spare_partner, 0, ORIEL_CACHE_LINE);
    }
    return far->spare_partner != NULL;
}

struct oriel_internode *oriel_internode_make(uint64_t id, int32_t n)
{
    struct oriel_internode *far = calloc(1, sizeof *far);
    if (far == NULL)
        return NULL;
    far->id = id;
    far->target_flags = calloc((uint32_t)n, 1);
    far->flagged = calloc((uint32_t)n, sizeof *far->flagged);
    far->refused = calloc((uint32_t)n, 1);
    far->spare_lock = calloc(1, sizeof *far->spare_lock);
    far->partners = (struct oriel_hash_table)ORIEL_HASH_TABLE_INIT;
    far->keys = (struct oriel_hash_table)ORIEL_HASH_TABLE_INIT;
    pthread_mutex_init(&far->mutex, NULL);
    pthread_mutex_init(&far->entering, NULL);
    pthread_mutex_init(&far->flushing, NULL);
    if (far->target_flags != NULL && far->flagged != NULL && far->refused != NULL &&
        far->spare_lock != NULL && oriel_internode_has_spare_partner(far))
        return far;
    oriel_internode_free(far);
    return NULL;
}

static void free_partner(void *partner, void *context)
{
    (void)context;
    free(partner);
}

void oriel_internode_free(struct oriel_internode *far)
{
    oriel_lazy_lock_free(far);
    oriel_hash_table_visit(&far->partners, free_partner, NULL);
    oriel_hash_table_close(&far->partners);
    free(far->spare_partner);
    free(far->spare_lock);
    oriel_internode_keys_close(far);
    while (far->unlock_requests != NULL) {
        struct oriel_internode_request *request = far->unlock_requests;
        far->unlock_requests = request->next;
        free(request);
    }
    /* only if the window's end failed; a request that the net still has is left to it */
    while (far->open != NULL) {
        struct oriel_internode_request *request = far->open;
        far->open = request->next;
        if (atomic_load_explicit(&request->net.done, memory_order_acquire))
            oriel_rma_request_release(request);
    }
    pthread_mutex_destroy(&far->mutex);
    pthread_mutex_destroy(&far->entering);
    pthread_mutex_destroy(&far->flushing);
    free((void *)far->target_flags);
    free(far->flagged);
    free(far->refused);
    free(far);
}
