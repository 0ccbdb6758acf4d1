/* Error handlers of the program. They may leave by a jump (callback_scope.h). */
#ifndef ORIEL_CHECK_INTERCEPT_ERROR_HANDLERS_H
#define ORIEL_CHECK_INTERCEPT_ERROR_HANDLERS_H

#include "check/intercept/callbacks.h"

/* Handlers of all kinds of objects get a pointer to their handle and differ only in its type. The
 * words after the code are the host's own: one or two. */
typedef void oriel_handler_fn(void *handle, int *code, ...);

enum oriel_handler_kind {
    ORIEL_HANDLER_COMM,
    ORIEL_HANDLER_WIN,
    ORIEL_HANDLER_FILE,
    ORIEL_HANDLER_SESSION
};

/* The function to register instead of the program's, which is not NULL. */
oriel_handler_fn *oriel_handler_in_place(oriel_handler_fn *function, enum oriel_handler_kind kind);

/* The same, in an exported function. address: to which it returns. */
ORIEL_CHECK_INLINE oriel_handler_fn *oriel_handler_registered(oriel_handler_fn *function,
                                                              enum oriel_handler_kind kind,
                                                              const void *address)
{
    return function == NULL || oriel_callback_is_others(address)
               ? function
               : oriel_handler_in_place(function, kind);
}

#endif
