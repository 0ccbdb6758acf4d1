/* The program's functions that the host calls inside a call of the program's (callbacks.h): error handlers, and others.  Each of
 * them takes the thread out of the call, and back in again when it returns.
 *
 * It need not: it may jump (longjmp), throw, or end its thread.  Whoever does has left the wrapper around it for good, and the
 * wrapper has not done what it does behind its call.  That is seen at the thread's next call, by its stack, when the function
 * around it returns to the host, or when the thread ends.  Then requests that the wrapper had claimed are free again, and for the
 * order that it has not taken everything before counts as ordered; messages and collectives cannot be told apart any more where one
 * may have been counted that was none; buffers of a call with a request are free.  The summary says so.
 *
 * Other ranks, threads and the function itself go on before that.  What could mislead them is undone as soon as an error handler is
 * entered: a call that has failed seldom does anything more.  (Not so with other functions: nearly all calls around them come to
 * their end.)  A host may call handlers with a lock of its own, so that no lock is taken there under which another thread calls the
 * host. */
#ifndef ORIEL_CHECK_INTERCEPT_CALLBACK_SCOPE_H
#define ORIEL_CHECK_INTERCEPT_CALLBACK_SCOPE_H

#include "check/deadlock/wait_records.h"
#include "check/intercept/messages.h"
#include "check/intercept/reentrancy.h"

/* What the thread comes back to. */
struct oriel_callback_scope {
    uint64_t serial;
    uint32_t depth;
    uint32_t functions;
    uintptr_t stack;
    struct oriel_begun begun;
    struct oriel_wait_suspended *wait;
};

/* Which function stands in the program's place: an address in the host to which it returns, and the end of its frame. */
struct oriel_callback_position {
    const void *address;
    uintptr_t end;
};
#define ORIEL_CALLBACK_POSITION()                                                                  \
    (struct oriel_callback_position)                                                               \
    {                                                                                              \
        __builtin_return_address(0), (uintptr_t)__builtin_dwarf_cfa()                              \
    }

/* Around the program's function.  What the call around it waits for does not stand meanwhile. */
void oriel_callback_scope_begin(struct oriel_callback_scope *inside,
                                struct oriel_callback_position place);

/* The same around an error handler; the call around it has failed with that code.  may_lose: calls that fail with it have to do
 * with messages and requests. */
void oriel_callback_scope_handler_begin(struct oriel_callback_scope *inside,
                                        struct oriel_callback_position place, bool may_lose,
                                        int code);

void oriel_callback_scope_end(struct oriel_callback_scope *inside);

/* A call of the program's in a thread that has entered such functions: whether it is in them still. */
void oriel_callback_scope_look(void);

/* This thread is in no call any more, which something has left that nobody looks at: an error handler without room, one of the
 * classes for C++, a signal's. */
void oriel_callback_scope_call_left(void);

/* Whether this thread is in an error handler: then a wrapper around it may have more to do with a window that is freed, which stays
 * for it, as one that nothing is known of. */
bool oriel_callback_scope_handler(void);

#endif
