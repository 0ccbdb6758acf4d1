/* One entry for each of the last call sites of a thread.  Datatypes count as long as none has been freed (base/recent.h).
 * windows_operate.c calls. */
#include "check/again.h"

#include "base/recent.h"

enum { SITES = 64 }; /* a power of 2 */

struct kept {
    const void *address;
    uint64_t generation;
    MPI_Datatype origin_datatype;
    MPI_Datatype target_datatype;
    MPI_Datatype result_datatype;
    MPI_Op op;
    MPI_Count origin_count;
    MPI_Count target_count;
    MPI_Count result_count;
    bool fetches;
    const struct oriel_type *origin_type;
    const struct oriel_type *target_type;
    const struct oriel_type *result_type;
    enum oriel_operator applied;
    uint64_t items;
    struct oriel_site site;
};

static struct kept *place_of(const void *address)
{
    static _Thread_local struct kept kept[SITES];
    uint64_t key = (uint64_t)(uintptr_t)address;
    return &kept[(key ^ key >> 6) % SITES];
}

bool oriel_again_find(struct oriel_operation *operation)
{
    const struct kept *kept = place_of(operation->address);
    if (kept->address != operation->address || kept->generation != oriel_recent_begin() ||
        kept->target_datatype != operation->target_datatype || kept->target_count != operation->target_count ||
        kept->origin_datatype != operation->origin_datatype || kept->origin_count != operation->origin_count ||
        kept->result_datatype != operation->result_datatype || kept->result_count != operation->result_count ||
        kept->op != operation->op || kept->site.call != operation->call || kept->fetches != (operation->result_addr != NULL))
        return false;
    operation->site = kept->site;
    operation->origin_type = kept->origin_type;
    operation->target_type = kept->target_type;
    operation->result_type = kept->result_type;
    operation->applied = kept->applied;
    operation->items = kept->items;
    return true;
}

/* The site of a call that comes through a binding is another one each time. */
void oriel_again_keep(const struct oriel_operation *operation)
{
    if (oriel_site_is_bound(operation->address))
        return;
    *place_of(operation->address) = (struct kept){.address = operation->address,
                                                  .generation = oriel_recent_begin(),
                                                  .origin_datatype = operation->origin_datatype,
                                                  .target_datatype = operation->target_datatype,
                                                  .result_datatype = operation->result_datatype,
                                                  .op = operation->op,
                                                  .origin_count = operation->origin_count,
                                                  .target_count = operation->target_count,
                                                  .result_count = operation->result_count,
                                                  .fetches = operation->result_addr != NULL,
                                                  .origin_type = operation->origin_type,
                                                  .target_type = operation->target_type,
                                                  .result_type = operation->result_type,
                                                  .applied = operation->applied,
                                                  .items = operation->items,
                                                  .site = operation->site};
}
