/* Constructors of communicators, and calls that are not modelled: the wrappers that
 * messages_other.def describes, and those that need more than a row. A constructor orders all its
 * members, as it does in every host that agrees on a context. */
#include "check/intercept/messages_other.h"

#include "check/intercept/messages_waits.h"
#include "check/intercept/request_table.h"

#include <stdlib.h>

#define CONSTRUCTOR(name, parameters, arguments, parent, made)                                     \
    ORIEL_CHECK_WRAP(name, parameters)                                                             \
    {                                                                                              \
        struct oriel_collective collective;                                                        \
        int code;                                                                                  \
        if (!oriel_check_looks())                                                                  \
            return NEXT(name) arguments;                                                           \
        const struct oriel_comm *entry = oriel_comm_find(parent);                                  \
        struct oriel_comm_origin making = oriel_comm_origin(entry, #name, 0);                      \
        oriel_collective_begin(&collective, parent, ORIEL_FLOW_ALL, -1, "MPI_" #name);             \
        struct oriel_site site = oriel_site_here(__builtin_return_address(0), ORIEL_CALL_##name,   \
                                                 (uint32_t)oriel_order_rank(), 0);                 \
        bool waits = oriel_wait_collective(&site, &collective);                                    \
        ORIEL_CHECK_PASS(code, name, arguments);                                                   \
        oriel_wait_done(waits);                                                                    \
        oriel_collective_end(&collective, code != MPI_SUCCESS);                                    \
        if (code == MPI_SUCCESS && entry != NULL)                                                  \
            oriel_comm_add_made(&making, *made);                                                   \
        return code;                                                                               \
    }
#define UNKNOWN         ORIEL_UNKNOWN
#define UNKNOWN_REQUEST ORIEL_UNKNOWN_REQUEST
#include "check/intercept/messages_other.def"

/* --- communicators that need more than a row --- */

/* Also inside other calls: a callback may free one. */
ORIEL_CHECK_WRAP(Comm_free, (MPI_Comm * comm))
{
    MPI_Comm was = comm == NULL ? MPI_COMM_NULL : *comm;
    struct oriel_comm *entry = oriel_check_running && was != MPI_COMM_WORLD && was != MPI_COMM_SELF
                                   ? oriel_comm_find(was)
                                   : NULL;
    int code;
    ORIEL_CHECK_PASS(code, Comm_free, (comm));
    if (code == MPI_SUCCESS && entry != NULL)
        oriel_comm_freed(was, entry);
    return code;
}

/* It waits for outstanding communication between the members. */
ORIEL_CHECK_WRAP(Comm_disconnect, (MPI_Comm * comm))
{
    MPI_Comm was = comm == NULL ? MPI_COMM_NULL : *comm;
    struct oriel_comm *entry = oriel_check_running && was != MPI_COMM_WORLD && was != MPI_COMM_SELF
                                   ? oriel_comm_find(was)
                                   : NULL;
    bool looks = oriel_check_looks();
    int code;
    if (looks)
        oriel_order_unknown_begin("MPI_Comm_disconnect");
    ORIEL_CHECK_PASS(code, Comm_disconnect, (comm));
    if (looks)
        oriel_order_unknown_end();
    if (code == MPI_SUCCESS && entry != NULL)
        oriel_comm_freed(was, entry);
    return code;
}

struct idup {
    struct oriel_collective collective;
    MPI_Comm *made;
    uint64_t id;
};

static void idup_done(void *closure, const MPI_Status *status)
{
    struct idup *idup = closure;
    oriel_collective_end(&idup->collective, false);
    if (status != NULL && idup->id != 0)
        oriel_comm_add(*idup->made, idup->id);
    free(idup);
}

static const struct oriel_request_kind idup_kind = {.done = idup_done};

void *oriel_idup_begin(MPI_Comm comm, const char *name, MPI_Comm *made)
{
    const struct oriel_comm *entry = oriel_comm_find(comm);
    struct oriel_comm_origin making = oriel_comm_origin(entry, name, 0);
    uint64_t id = entry == NULL ? 0 : oriel_comm_id_assign(&making, entry);
    struct idup *idup = malloc(sizeof *idup);
    if (idup == NULL)
        return NULL;
    *idup = (struct idup){.made = made, .id = id};
    oriel_collective_begin(&idup->collective, comm, ORIEL_FLOW_ALL, -1, name);
    return idup;
}

void oriel_idup_started(void *idup, bool failed, MPI_Request request)
{
    oriel_begun.is_collective = false;
    if (idup != NULL && failed) {
        oriel_collective_end(&((struct idup *)idup)->collective, true);
        free(idup);
    } else if (idup != NULL)
        oriel_checked_request_add(request, &idup_kind, idup);
}

ORIEL_CHECK_WRAP(Comm_idup, (MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request))
{
    int code;
    if (!oriel_check_looks())
        return NEXT(Comm_idup)(comm, newcomm, request);
    void *idup = oriel_idup_begin(comm, "MPI_Comm_idup", newcomm);
    ORIEL_CHECK_PASS(code, Comm_idup, (comm, newcomm, request));
    oriel_idup_started(idup, code != MPI_SUCCESS, *request);
    return code;
}

/* Collective over the group only: the group defines its order and draws its id. */
ORIEL_CHECK_WRAP(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm))
{
    struct oriel_collective collective = {.comm = NULL};
    uint64_t id = 0;
    int code;
    if (!oriel_check_looks())
        return NEXT(Comm_create_group)(comm, group, tag, newcomm);
    const struct oriel_comm *entry = oriel_comm_find(comm);
    struct oriel_comm *like = entry == NULL ? NULL : oriel_comm_of_group(group);
    if (like != NULL) {
        struct oriel_comm_origin making = oriel_comm_origin(entry, "Comm_create_group", tag);
        id = oriel_comm_id_assign(&making, like);
        like->id = ~id;
        oriel_collective_begin_in(&collective, like, ORIEL_FLOW_ALL, -1, "MPI_Comm_create_group");
        oriel_comm_release(like);
    } else {
        oriel_order_unknown_begin("MPI_Comm_create_group");
    }
    ORIEL_CHECK_PASS(code, Comm_create_group, (comm, group, tag, newcomm));
    if (like != NULL)
        oriel_collective_end(&collective, code != MPI_SUCCESS);
    else
        oriel_order_unknown_end();
    if (code == MPI_SUCCESS && id != 0)
        oriel_comm_add(*newcomm, id);
    return code;
}

/* Of an intercommunicator, which has no id: the order of such calls on each member identifies
 * them. */
ORIEL_CHECK_WRAP(Intercomm_merge, (MPI_Comm intercomm, int high, MPI_Comm *newintercomm))
{
    int code;
    if (!oriel_check_looks())
        return NEXT(Intercomm_merge)(intercomm, high, newintercomm);
    struct oriel_comm_origin making = oriel_comm_origin(NULL, "Intercomm_merge", 0);
    oriel_order_unknown_begin("MPI_Intercomm_merge");
    ORIEL_CHECK_PASS(code, Intercomm_merge, (intercomm, high, newintercomm));
    oriel_order_unknown_end();
    if (code == MPI_SUCCESS)
        oriel_comm_add_made(&making, *newintercomm);
    return code;
}
