/* Error handlers have nothing with them that could tell whose they are: so each function of the program's has one of a table in its
 * place, which knows it by its own place there.  The same function is entered once; functions that find no room pass as they are,
 * and what they call is not looked at.  Programs call, and callbacks.c. */
#include "check/handlers.h"

#include "check/behind.h"
#include "check/callbacks.h"
#include "check/finding.h"
#include "check/messages_point.h"
#include "check/order.h"
#include "check/requests.h"

#include <pthread.h>
#include <stdarg.h>
#include <unwind.h>

enum { HANDLERS = 64, LEVELS = 32 };

enum { WORDS = 4 }; /* behind the code: in registers */

static struct {
    oriel_handler_fn *function; /* NULL: free */
    enum oriel_handler_kind kind;
} handlers[HANDLERS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Of this thread, the innermost last, as many as oriel_check_where says.  Not in the frames themselves, which may be gone.  Those
 * that are entered inside so many are not remembered. */
static _Thread_local struct running {
    uintptr_t frame;           /* lies in the stack where the handler runs */
    const void *inside;        /* an address to which that frame returns */
    bool may_lose;             /* calls that fail with it have to do with messages and requests */
    struct oriel_begun begun;  /* by the call that has failed */
} running[LEVELS];

bool oriel_handlers_run(void)
{
    return oriel_check_where.in.handlers != 0;
}

/* The call that this thread is in has failed, and may be left.  What others could be misled by meanwhile is told them at once: it
 * does not wait; it may have met nobody, and then has a number that the others' next call has; and of a program with several
 * threads this one may never make another call. */
static void begin(bool may_lose, int code)
{
    oriel_wait_interrupt();
    if (may_lose && (oriel_begun.is_collective || !oriel_check_alone || oriel_check_where.in.handlers == LEVELS))
        oriel_order_doubt();
    oriel_claimed_requests_failed(oriel_begun.claim, oriel_class_of(code));
    if (oriel_check_where.in.handlers < LEVELS) /* else nobody will know whether it is left */
        running[oriel_check_where.in.handlers++] = (struct running){.may_lose = may_lose, .begun = oriel_begun};
    oriel_begun = (struct oriel_begun){0};
    oriel_check_where.in.depth = 0;
}

/* Handlers inside so many have been left, and their calls. */
static void leave_above(uint32_t inside)
{
    bool may_lose = false;
    if (oriel_check_where.in.handlers <= inside)
        return;
    while (oriel_check_where.in.handlers > inside) {
        const struct running *left = &running[--oriel_check_where.in.handlers];
        may_lose |= left->may_lose;
        oriel_claimed_requests_let_go(left->begun.claim, true);
        if (left->begun.buffers != 0)
            oriel_local_complete(left->begun.buffers);
    }
    if (may_lose)
        oriel_order_doubt();
    oriel_order_unknown_begin("one that failed, whose error handler did not return");
    oriel_order_unknown_end();
}

static __attribute__((noinline)) void run(int at, void *handle, int *code, void *const words[WORDS])
{
    union oriel_check_where where = oriel_check_where;
    uintptr_t stack = oriel_check_stack;
    struct oriel_begun begun = oriel_begun;
    oriel_handler_fn *function = handlers[at].function;
    enum oriel_handler_kind kind = handlers[at].kind;
    if (where.in.depth > 0) { /* else no wrapper is left behind */
        begin(kind == ORIEL_HANDLER_COMM || kind == ORIEL_HANDLER_SESSION, *code);
        if (where.in.handlers < LEVELS) {
            running[where.in.handlers].frame = (uintptr_t)__builtin_frame_address(0);
            running[where.in.handlers].inside = __builtin_return_address(0);
        }
    }
    uint32_t inside = oriel_check_where.in.handlers;
    function(handle, code, words[0], words[1], words[2], words[3]);
    if (oriel_check_where.in.depth != 0)
        oriel_handlers_call_left();
    leave_above(inside);
    oriel_check_where = where;
    oriel_check_stack = stack;
    oriel_begun = begun;
}

struct walk {
    const struct running *handler;
    bool is_left;
};

/* From the innermost frame on: the handler's, or one that lies behind its place. */
static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *frame, void *closure)
{
    enum { OWN_BYTES = 64 }; /* the frame's address and the frame's end are not the same */
    struct walk *walk = closure;
    if ((const void *)_Unwind_GetIP(frame) == walk->handler->inside)
        return _URC_NORMAL_STOP;
    walk->is_left = (uintptr_t)_Unwind_GetCFA(frame) > walk->handler->frame + OWN_BYTES;
    return walk->is_left ? _URC_NORMAL_STOP : _URC_NO_REASON;
}

/* One that a walk through the stack does not come to, since functions on the way do not say how, runs still. */
static bool is_left(const struct running *handler)
{
    struct walk walk = {handler, false};
    (void)_Unwind_Backtrace(look_at_frame, &walk);
    return walk.is_left;
}

void oriel_handlers_look(void)
{
    uint32_t inside = oriel_check_where.in.handlers;
    while (inside > 0 && is_left(&running[inside - 1]))
        inside--;
    leave_above(inside);
}

void oriel_handlers_call_left(void)
{
    oriel_wait_interrupt();
    oriel_claimed_requests_let_go(oriel_begun.claim, false);
    if (oriel_begun.buffers != 0)
        oriel_local_complete(oriel_begun.buffers);
    oriel_begun = (struct oriel_begun){0};
    oriel_check_where.in.depth = 0;
    oriel_order_doubt();
    oriel_order_unknown_begin("one that was left by a jump");
    oriel_order_unknown_end();
}

/* --- the table --- */

/* Reads more words than the host may have given: of registers, whatever is in them. */
#define HANDLER(at)                                                                              \
    static void handler_##at(void *handle, int *code, ...)                                       \
    {                                                                                            \
        void *words[WORDS];                                                                      \
        va_list list;                                                                            \
        va_start(list, code);                                                                    \
        for (int i = 0; i < WORDS; i++)                                                          \
            words[i] = va_arg(list, void *);                                                     \
        va_end(list);                                                                            \
        run(at, handle, code, words);                                                            \
        __asm__ volatile(""); /* run returns to here: look_at_frame */                           \
    }
#define NAME(at) handler_##at,
#define EIGHT(EACH, tens)                                                                        \
    EACH(tens##0) EACH(tens##1) EACH(tens##2) EACH(tens##3)                                      \
    EACH(tens##4) EACH(tens##5) EACH(tens##6) EACH(tens##7)
#define ALL(EACH)                                                                                \
    EIGHT(EACH, 00) EIGHT(EACH, 01) EIGHT(EACH, 02) EIGHT(EACH, 03)                              \
    EIGHT(EACH, 04) EIGHT(EACH, 05) EIGHT(EACH, 06) EIGHT(EACH, 07)
ALL(HANDLER)

static oriel_handler_fn *const in_place[] = {ALL(NAME)};
_Static_assert(sizeof in_place / sizeof in_place[0] == HANDLERS, "numbered in octal");

oriel_handler_fn *oriel_handler_in_place(oriel_handler_fn *function, enum oriel_handler_kind kind, const void *address)
{
    if (function == NULL || oriel_callback_is_others(address))
        return function;
    pthread_mutex_lock(&mutex);
    int at = 0;
    while (at < HANDLERS && handlers[at].function != NULL && (handlers[at].function != function || handlers[at].kind != kind))
        at++;
    if (at < HANDLERS) {
        handlers[at].kind = kind;
        handlers[at].function = function;
    }
    pthread_mutex_unlock(&mutex);
    if (at == HANDLERS) {
        oriel_finding_count("error handlers for which there was no room: what they call is not looked at");
        oriel_order_doubt(); /* should one jump out of a call, nobody knows before this thread's next one */
    }
    return at == HANDLERS ? function : in_place[at];
}

#define CREATE(name, Function, kind)                                                             \
    ORIEL_CHECK_WRAP(name, (Function * function, MPI_Errhandler * errhandler))                   \
    {                                                                                            \
        const void *address = __builtin_return_address(0);                                       \
        oriel_handler_fn *own = oriel_handler_in_place((oriel_handler_fn *)function, kind, address); \
        return BEHIND(name)((Function *)own, errhandler);                                        \
    }
CREATE(Comm_create_errhandler, MPI_Comm_errhandler_function, ORIEL_HANDLER_COMM)
CREATE(Win_create_errhandler, MPI_Win_errhandler_function, ORIEL_HANDLER_WIN)
CREATE(File_create_errhandler, MPI_File_errhandler_function, ORIEL_HANDLER_FILE)

/* Of MPI-1, which has gone with MPI-3.0: hosts have it still, without a prototype, or with one that nobody may use. */
#undef MPI_Errhandler_create
typedef int create_fn(MPI_Comm_errhandler_function *function, MPI_Errhandler *errhandler);
ORIEL_CHECK_EXPORT int PMPI_Errhandler_create(MPI_Comm_errhandler_function *function, MPI_Errhandler *errhandler)
{
    static _Atomic(void *) behind;
    oriel_handler_fn *own = oriel_handler_in_place((oriel_handler_fn *)function, ORIEL_HANDLER_COMM, __builtin_return_address(0));
    return ((create_fn *)oriel_behind(&behind, "PMPI_Errhandler_create"))((MPI_Comm_errhandler_function *)own, errhandler);
}
ORIEL_CHECK_EXPORT int MPI_Errhandler_create(MPI_Comm_errhandler_function *function, MPI_Errhandler *errhandler)
    __attribute__((weak, alias("PMPI_Errhandler_create")));
