/* The wrappers of collectives as macros for the rows of messages.def, over the types Count and
 * Displ of the includer: messages_collective.c makes those of int, messages_large.c makes those of
 * MPI_Count. */
#ifndef ORIEL_CHECK_INTERCEPT_MESSAGES_COLLECTIVE_H
#define ORIEL_CHECK_INTERCEPT_MESSAGES_COLLECTIVE_H

#include "check/intercept/messages.h"
#include "check/intercept/messages_waits.h"
#include "check/intercept/wrap.h"

/* Fills in this process's rank and the size of the communicator. */
void oriel_uses_in(struct oriel_uses *uses, MPI_Comm comm, int root);

#define IS_ROOT    uses.is_root
#define RANK       uses.rank
#define SIZE       uses.size
#define NO_BUFFERS (void)uses;

#define USE(condition, writes, address, count, datatype)                                           \
    if (SIZE > 0 && (condition))                                                                   \
        oriel_use(&uses, writes, address, count, datatype);
#define READS(condition, address, count, datatype)  USE(condition, false, address, count, datatype)
#define WRITES(condition, address, count, datatype) USE(condition, true, address, count, datatype)

#define USE_EACH(condition, writes, address, counts, displs, datatype)                             \
    for (int each = 0; (condition) && (address) != MPI_IN_PLACE && each < SIZE; each++)            \
        oriel_use_at(&uses, writes, address, displs[each], counts[each], datatype);
#define READS_EACH(condition, address, counts, displs, datatype)                                   \
    USE_EACH(condition, false, address, counts, displs, datatype)
#define WRITES_EACH(condition, address, counts, displs, datatype)                                  \
    USE_EACH(condition, true, address, counts, displs, datatype)

/* Displacements in bytes, with a datatype for each. */
#define USE_OWN(writes, address, counts, displs, datatypes)                                        \
    for (int each = 0; (address) != MPI_IN_PLACE && each < SIZE; each++)                           \
        oriel_use(&uses, writes, (const char *)(address) + displs[each], counts[each],             \
                  datatypes[each]);
#define READS_OWN(address, counts, displs, datatypes)                                              \
    USE_OWN(false, address, counts, displs, datatypes)
#define WRITES_OWN(address, counts, displs, datatypes)                                             \
    USE_OWN(true, address, counts, displs, datatypes)

/* In place, each member contributes the contents of the result buffer, which the call reads before
 * it writes there. These are two uses at two times, so only a blocking call has both. With a
 * request only the write counts. */
#define IN_PLACE(reads)                                                                            \
    if (sendbuf == MPI_IN_PLACE) {                                                                 \
        reads                                                                                      \
    }
#define READS_AT(address, displacement, count, datatype)                                           \
    if (SIZE > 0)                                                                                  \
        oriel_use_at(&uses, false, address, displacement, count, datatype);

#define READS_SUM(address, counts, datatype)                                                       \
    {                                                                                              \
        MPI_Count sum = 0;                                                                         \
        for (int each = 0; each < SIZE; each++)                                                    \
            sum += counts[each];                                                                   \
        READS(true, address, sum, datatype)                                                        \
    }

#define ORIEL_COLLECTIVE(exported, base, parameters, arguments, its_flow, its_root, buffers)       \
    ORIEL_CHECK_WRAP(exported, parameters)                                                         \
    {                                                                                              \
        struct oriel_collective collective;                                                        \
        struct oriel_uses uses;                                                                    \
        int code;                                                                                  \
        if (!oriel_check_looks())                                                                  \
            return NEXT(exported) arguments;                                                       \
        oriel_uses_begin(&uses, __builtin_return_address(0), ORIEL_CALL_##base, false);            \
        oriel_uses_in(&uses, comm, its_root);                                                      \
        {buffers} oriel_collective_begin(&collective, comm, ORIEL_FLOW_##its_flow, its_root,       \
                                         "MPI_" #base);                                            \
        bool waits = oriel_wait_collective(&uses.site, &collective);                               \
        ORIEL_CHECK_PASS(code, exported, arguments);                                               \
        oriel_wait_done(waits);                                                                    \
        oriel_collective_end(&collective, code != MPI_SUCCESS);                                    \
        uses.is_after = true;                                                                      \
        {                                                                                          \
            buffers                                                                                \
        }                                                                                          \
        return code;                                                                               \
    }

#define ORIEL_COLLECTIVE_REQUEST(exported, base, parameters, arguments, its_flow, its_root,        \
                                 buffers)                                                          \
    ORIEL_CHECK_WRAP(exported, parameters)                                                         \
    {                                                                                              \
        struct oriel_uses uses;                                                                    \
        int code;                                                                                  \
        if (!oriel_check_looks())                                                                  \
            return NEXT(exported) arguments;                                                       \
        oriel_uses_begin(&uses, __builtin_return_address(0), ORIEL_CALL_##base, true);             \
        oriel_uses_in(&uses, comm, its_root);                                                      \
        {                                                                                          \
            buffers                                                                                \
        }                                                                                          \
        struct oriel_collective_request *pending = oriel_collective_request_begin(                 \
            comm, ORIEL_FLOW_##its_flow, its_root, "MPI_" #base, uses.group);                      \
        oriel_collective_request_arrived(pending, &uses.site, comm);                               \
        ORIEL_CHECK_PASS(code, exported, arguments);                                               \
        oriel_collective_request_started(pending, code != MPI_SUCCESS, request);                   \
        return code;                                                                               \
    }

#endif
