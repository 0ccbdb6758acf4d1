/* Replaces the net's buffer allocation and Oriel's calloc; linked with --wrap=oriel_pool_take and
 * --wrap=calloc. Tests of messages select the threads whose allocations fail. */
#include "no_memory.h"

#include "transport/ucx/internal.h"

_Thread_local bool no_buffers_here;
_Atomic bool no_buffers_of_agent;
_Thread_local bool no_heap_here;
_Atomic bool no_heap_of_agent;

struct oriel_ucx_buffer *__real_oriel_pool_take(struct oriel_pool *pool, size_t len_bytes);
struct oriel_ucx_buffer *__wrap_oriel_pool_take(struct oriel_pool *pool, size_t len_bytes);

struct oriel_ucx_buffer *__wrap_oriel_pool_take(struct oriel_pool *pool, size_t len_bytes)
{
    const bool is_refused =
        no_buffers_here || (pool == &oriel_net.agent.pool && atomic_load(&no_buffers_of_agent));
    return is_refused ? NULL : __real_oriel_pool_take(pool, len_bytes);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
    bool is_refused = no_heap_here || (oriel_net_in_agent && atomic_load(&no_heap_of_agent));
    return is_refused ? NULL : __real_calloc(count, size);
}
