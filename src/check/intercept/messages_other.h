/* Wrappers of calls that are not modelled, as macros for rows. order.h defines what such a call
 * orders. */
#ifndef ORIEL_CHECK_INTERCEPT_MESSAGES_OTHER_H
#define ORIEL_CHECK_INTERCEPT_MESSAGES_OTHER_H

#include "check/intercept/messages.h"
#include "check/intercept/wrap.h"

#define ORIEL_UNKNOWN_UNTIL(name, parameters, arguments, ended)                                    \
    ORIEL_CHECK_WRAP(name, parameters)                                                             \
    {                                                                                              \
        int code;                                                                                  \
        if (!oriel_check_looks())                                                                  \
            return NEXT(name) arguments;                                                           \
        oriel_order_unknown_begin("MPI_" #name);                                                   \
        ORIEL_CHECK_PASS(code, name, arguments);                                                   \
        ended;                                                                                     \
        return code;                                                                               \
    }

#define ORIEL_UNKNOWN(name, parameters, arguments)                                                 \
    ORIEL_UNKNOWN_UNTIL(name, parameters, arguments, oriel_order_unknown_end())

#define ORIEL_UNKNOWN_REQUEST(name, parameters, arguments)                                         \
    ORIEL_UNKNOWN_UNTIL(name, parameters, arguments,                                               \
                        oriel_unknown_started(code != MPI_SUCCESS, *request))

/* MPI_Comm_idup and its like: what the completion of the request creates. */
void *oriel_idup_begin(MPI_Comm comm, const char *name, MPI_Comm *made);
void oriel_idup_started(void *idup, bool failed, MPI_Request request);

#endif
