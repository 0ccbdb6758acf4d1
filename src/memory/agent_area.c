/* Opens and closes this process's agent. The agent's area is allocated once in the memory file and
 * never freed, because peers keep its address. Thread-safe: one mutex. */
#include "memory/agent_area.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool is_open;

static _Atomic uint64_t *offset_word(void)
{
    return &((struct oriel_file_header *)oriel_file_base())->agent_offset;
}

bool oriel_agent_is_open(void)
{
    pthread_mutex_lock(&mutex);
    bool open = is_open;
    pthread_mutex_unlock(&mutex);
    return open;
}

static enum oriel_status agent_open_locked(void)
{
    uint64_t offset = atomic_load_explicit(offset_word(), memory_order_relaxed);
    enum oriel_status status = ORIEL_OK;
    if (offset == 0)
        status = oriel_file_alloc(sizeof(struct oriel_agent), ORIEL_CACHE_LINE, &offset);
    if (status != ORIEL_OK)
        return status;
    struct oriel_agent *agent = (struct oriel_agent *)(oriel_file_base() + offset);
    agent->process = *oriel_file_identity();
    atomic_store_explicit(offset_word(), offset, memory_order_release);
    status = oriel_agent_start(agent, oriel_file_remote_writers(oriel_file_base()),
                               agent->process.memory_fd, offset);
    is_open = status == ORIEL_OK;
    return status;
}

enum oriel_status oriel_agent_open(void)
{
    pthread_mutex_lock(&mutex);
    enum oriel_status status = is_open ? ORIEL_OK : agent_open_locked();
    pthread_mutex_unlock(&mutex);
    return status;
}

void oriel_agent_serve_devices(void)
{
    pthread_mutex_lock(&mutex);
    if (is_open)
        oriel_agent_share_descriptors();
    pthread_mutex_unlock(&mutex);
}

void oriel_agent_close(void)
{
    pthread_mutex_lock(&mutex);
    if (is_open)
        oriel_agent_stop();
    is_open = false;
    pthread_mutex_unlock(&mutex);
}
