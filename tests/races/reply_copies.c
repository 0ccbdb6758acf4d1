/* As remote_accesses.c: the agent's thread copies a window's memory into a message to answer
 * another node, and that copy counts as the other process's access. A separate file, because two
 * parts of the library have a struct oriel_ucx_buffer. */
#include "remote_accesses.h"

#include "transport/ucx/coalesce.h"
#include "transport/ucx/internal.h"

FOR_OTHERS(bool, oriel_coalesce_add,
           (struct oriel_coalesce * gather, struct oriel_pool *pool, void *whose,
            const struct oriel_wire *wire, const struct oriel_net_bytes *bytes),
           (gather, pool, whose, wire, bytes))
FOR_OTHERS(struct oriel_ucx_buffer *, oriel_net_pack,
           (struct oriel_net_worker * worker, const struct oriel_wire *wire,
            const struct oriel_net_bytes *bytes),
           (worker, wire, bytes))
