/* Error handlers of the program's: they need not return (callback_scope.h). */
#ifndef ORIEL_CHECK_INTERCEPT_ERROR_HANDLERS_H
#define ORIEL_CHECK_INTERCEPT_ERROR_HANDLERS_H

/* Handlers of all kinds of objects differ in the handle's type only, to which they get a pointer.  What comes behind the code is
 * the host's own: one or two words. */
typedef void oriel_handler_fn(void *handle, int *code, ...);

enum oriel_handler_kind {
    ORIEL_HANDLER_COMM,
    ORIEL_HANDLER_WIN,
    ORIEL_HANDLER_FILE,
    ORIEL_HANDLER_SESSION
};

/* What is to be registered in the function's place; address: to which the registering call returns. */
oriel_handler_fn *oriel_handler_in_place(oriel_handler_fn *function, enum oriel_handler_kind kind,
                                         const void *address);

#endif
