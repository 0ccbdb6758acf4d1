/* Opens and closes the request area. It is allocated once in the memory file and never freed,
 * because peers keep its address. Thread-safe: one mutex. */
#include "memory/polled_area.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool is_open;

static bool polled_open_locked(void)
{
    _Atomic uint64_t *word = &((struct oriel_file_header *)oriel_file_base())->polled_offset;
    uint64_t offset = atomic_load_explicit(word, memory_order_relaxed);
    if (offset == 0 &&
        oriel_file_alloc(sizeof(struct oriel_polled), ORIEL_CACHE_LINE, &offset) != ORIEL_OK)
        return false;
    struct oriel_polled *area = (struct oriel_polled *)(oriel_file_base() + offset);
    area->process = *oriel_file_identity();
    atomic_store_explicit(word, offset, memory_order_release);
    return oriel_polled_start(area);
}

bool oriel_polled_open(void)
{
    pthread_mutex_lock(&mutex);
    is_open = is_open || polled_open_locked();
    bool open = is_open;
    pthread_mutex_unlock(&mutex);
    return open;
}

void oriel_polled_close(void)
{
    pthread_mutex_lock(&mutex);
    if (is_open)
        oriel_polled_stop();
    is_open = false;
    pthread_mutex_unlock(&mutex);
}
