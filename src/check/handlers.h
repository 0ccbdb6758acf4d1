/* Error handlers of the program's, which need not return: they may jump out of the call (longjmp), or throw.  Whoever does has left
 * the wrapper around it for good, and the wrapper has not done what it does behind its call.  That is seen at the thread's next
 * call, by its stack, or when the function around it returns to the host.  Then requests that the wrapper had claimed are free
 * again, and for the order that it has not taken everything before counts as ordered; messages and collectives cannot be told apart
 * any more where one may have been counted that was none; buffers of a call with a request are free.  The summary says so.
 *
 * Other ranks, threads and the handler itself go on before that: what could mislead them is undone as soon as the handler is
 * entered.  A host may call it with a lock of its own, so that no lock is taken there under which another thread calls the host.
 * callbacks.h says the rest. */
#ifndef ORIEL_CHECK_HANDLERS_H
#define ORIEL_CHECK_HANDLERS_H

#include <stdbool.h>

/* Handlers of all kinds of objects differ in the handle's type only, to which they get a pointer.  What comes behind the code is
 * the host's own: one or two words. */
typedef void oriel_handler_fn(void *handle, int *code, ...);

enum oriel_handler_kind { ORIEL_HANDLER_COMM, ORIEL_HANDLER_WIN, ORIEL_HANDLER_FILE, ORIEL_HANDLER_SESSION };

/* What is to be registered in the function's place; address: to which the registering call returns. */
oriel_handler_fn *oriel_handler_in_place(oriel_handler_fn *function, enum oriel_handler_kind kind, const void *address);

/* A call of the program's in a thread that has entered error handlers: whether it is in them still. */
void oriel_handlers_look(void);

/* This thread is in no call any more, which something has left that nobody looks at: an error handler without room, one of the
 * classes for C++, a signal's. */
void oriel_handlers_call_left(void);

/* Whether this thread is in an error handler: then a wrapper around it may have more to do with a window that is freed, which stays
 * for it, as one that nothing is known of. */
bool oriel_handlers_run(void);

#endif
