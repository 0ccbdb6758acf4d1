/* Stands between the net and its pools of buffers; linked with --wrap=oriel_pool_take.  Tests of messages set poor_here. */
#include "poor.h"

#include "transport/ucx/buffers.h"

_Thread_local bool poor_here;

struct oriel_buffer *__real_oriel_pool_take(struct oriel_pool *pool, size_t len_bytes);
struct oriel_buffer *__wrap_oriel_pool_take(struct oriel_pool *pool, size_t len_bytes);

struct oriel_buffer *__wrap_oriel_pool_take(struct oriel_pool *pool, size_t len_bytes)
{
    return poor_here ? NULL : __real_oriel_pool_take(pool, len_bytes);
}
