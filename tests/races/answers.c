/* As others.c: what the agent's thread reads of a window to answer another machine is copied into a message, and that is the other
 * process's access. */
#include "transport/ucx/gather.h"
#include "transport/ucx/inner.h"

void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);

bool __real_oriel_gather_add(struct oriel_gather *gather, struct oriel_pool *pool, void *whose, const struct oriel_wire *wire,
                             const struct oriel_net_bytes *bytes);
bool __wrap_oriel_gather_add(struct oriel_gather *gather, struct oriel_pool *pool, void *whose, const struct oriel_wire *wire,
                             const struct oriel_net_bytes *bytes);
bool __wrap_oriel_gather_add(struct oriel_gather *gather, struct oriel_pool *pool, void *whose, const struct oriel_wire *wire,
                             const struct oriel_net_bytes *bytes)
{
    if (!oriel_net_in_agent)
        return __real_oriel_gather_add(gather, pool, whose, wire, bytes);
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    bool added = __real_oriel_gather_add(gather, pool, whose, wire, bytes);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    return added;
}

struct oriel_buffer *__real_oriel_net_pack(struct oriel_net_worker *worker, const struct oriel_wire *wire,
                                           const struct oriel_net_bytes *bytes);
struct oriel_buffer *__wrap_oriel_net_pack(struct oriel_net_worker *worker, const struct oriel_wire *wire,
                                           const struct oriel_net_bytes *bytes);
struct oriel_buffer *__wrap_oriel_net_pack(struct oriel_net_worker *worker, const struct oriel_wire *wire,
                                           const struct oriel_net_bytes *bytes)
{
    if (!oriel_net_in_agent)
        return __real_oriel_net_pack(worker, wire, bytes);
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    struct oriel_buffer *buffer = __real_oriel_net_pack(worker, wire, bytes);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    return buffer;
}
