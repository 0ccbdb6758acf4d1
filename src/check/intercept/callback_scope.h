/* Functions of the program that the host calls inside a call of the program (callbacks.h): error
 * handlers and others. Each takes the thread out of the call, and back into it when it returns.
 *
 * A call that is left by a jump (longjmp, an exception, a switch to another stack, the end of its
 * thread) ends the checking of its rank: the wrapper never does its work after the call, and no
 * later step can replace that work. The checker prints one line (oriel_finding_left), and the
 * program runs on. Three things show the jump:
 *
 * - a later call of the thread has its frame above the call's (oriel_check_call);
 * - a later call in a callback finds that the callback's frame is gone;
 * - the thread ends, or a callback returns, inside a call that has not returned.
 *
 * While an error handler runs, other ranks and threads go on. State that could mislead them is
 * undone when the handler is entered. A host may call handlers with a lock of its own, so no lock
 * is acquired there under which another thread calls the host. */
#ifndef ORIEL_CHECK_INTERCEPT_CALLBACK_SCOPE_H
#define ORIEL_CHECK_INTERCEPT_CALLBACK_SCOPE_H

#include "check/common/reentrancy.h"
#include "check/deadlock/wait_records.h"
#include "check/intercept/messages.h"

/* The function that runs in place of the program's: an address in the host to which it returns, and
 * the end of its frame. */
struct oriel_callback_position {
    const void *address;
    uintptr_t end;
};
#define ORIEL_CALLBACK_POSITION()                                                                  \
    (struct oriel_callback_position)                                                               \
    {                                                                                              \
        __builtin_return_address(0), (uintptr_t)__builtin_dwarf_cfa()                              \
    }

/* The innermost callback that this thread runs inside a call. */
struct oriel_callback {
    struct oriel_callback_position position;
    struct oriel_check_call call; /* around it */
    uint64_t claim; /* of a call that failed, until its requests' buffers are released; 0: none */
    uint32_t handlers; /* error handlers among it and those around it */
};

/* State that the thread returns to. */
struct oriel_callback_scope {
    uint32_t depth;
    uint32_t functions;
    struct oriel_check_call call;
    struct oriel_callback outer;
    struct oriel_begun begun;
    struct oriel_wait_suspended *wait;
};

/* Around the program's function.  The wait of the call around it is suspended meanwhile. */
void oriel_callback_scope_begin(struct oriel_callback_scope *scope,
                                struct oriel_callback_position position);

/* The same around an error handler; the call around it has failed with that code. may_lose: calls
 * that fail with this handler involve messages and requests. */
void oriel_callback_scope_handler_begin(struct oriel_callback_scope *scope,
                                        struct oriel_callback_position position, bool may_lose,
                                        int code);

void oriel_callback_scope_end(struct oriel_callback_scope *scope);

/* A call in a thread that is in a call or a callback; frame: the upper end of its wrapper's frame.
 * False: the rank is no longer checked. */
bool oriel_callback_scope_look(uintptr_t frame);

/* Whether this thread is in an error handler. A wrapper around it may still read a window that the
 * handler frees. */
bool oriel_callback_scope_handler(void);

#endif
