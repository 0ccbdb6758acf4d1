/* An error handler gets no extra state. So each function of the program gets a trampoline from a
 * table, which knows it by its index. An equal function is entered once. Functions beyond the
 * table's size are registered unchanged, and their calls are not checked. */
#include "check/intercept/error_handlers.h"

#include "check/intercept/callback_scope.h"
#include "check/intercept/callbacks.h"
#include "check/intercept/wrap.h"
#include "check/order/order.h"
#include "check/report/finding.h"

#include <pthread.h>
#include <stdarg.h>

enum { HANDLERS = 64 };

enum { WORDS = 4 }; /* after the code: in registers */

static struct {
    oriel_handler_fn *function; /* NULL: free */
    enum oriel_handler_kind kind;
} handlers[HANDLERS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void handler_call(int at, struct oriel_callback_position place, void *handle, int *code,
                         void *const words[WORDS])
{
    enum oriel_handler_kind kind = handlers[at].kind;
    struct oriel_callback_scope scope;
    oriel_callback_scope_handler_begin(
        &scope, place, kind == ORIEL_HANDLER_COMM || kind == ORIEL_HANDLER_SESSION, *code);
    handlers[at].function(handle, code, words[0], words[1], words[2], words[3]);
    oriel_callback_scope_end(&scope);
}

/* --- the table --- */

/* Reads more words than the host may have passed: from registers, whatever they contain. */
#define HANDLER(at)                                                                                \
    static void handler_##at(void *handle, int *code, ...)                                         \
    {                                                                                              \
        void *words[WORDS];                                                                        \
        va_list list;                                                                              \
        va_start(list, code);                                                                      \
        for (int i = 0; i < WORDS; i++)                                                            \
            words[i] = va_arg(list, void *);                                                       \
        va_end(list);                                                                              \
        handler_call(at, ORIEL_CALLBACK_POSITION(), handle, code, words);                          \
    }
#define NAME(at) handler_##at,
#define EIGHT(EACH, tens)                                                                          \
    EACH(tens##0)                                                                                  \
    EACH(tens##1)                                                                                  \
    EACH(tens##2) EACH(tens##3) EACH(tens##4) EACH(tens##5) EACH(tens##6) EACH(tens##7)
#define ALL(EACH)                                                                                  \
    EIGHT(EACH, 00)                                                                                \
    EIGHT(EACH, 01)                                                                                \
    EIGHT(EACH, 02) EIGHT(EACH, 03) EIGHT(EACH, 04) EIGHT(EACH, 05) EIGHT(EACH, 06) EIGHT(EACH, 07)
ALL(HANDLER)

static oriel_handler_fn *const in_place[] = {ALL(NAME)};
_Static_assert(sizeof in_place / sizeof in_place[0] == HANDLERS, "numbered in octal");

oriel_handler_fn *oriel_handler_in_place(oriel_handler_fn *function, enum oriel_handler_kind kind)
{
    pthread_mutex_lock(&mutex);
    int at = 0;
    while (at < HANDLERS && handlers[at].function != NULL &&
           (handlers[at].function != function || handlers[at].kind != kind))
        at++;
    if (at < HANDLERS) {
        handlers[at].kind = kind;
        handlers[at].function = function;
    }
    pthread_mutex_unlock(&mutex);
    if (at == HANDLERS) {
        oriel_finding_count("error handlers beyond the first 64: their calls are not checked");
        oriel_order_set_doubtful(); /* a jump out of one shows at the thread's next call only */
    }
    return at == HANDLERS ? function : in_place[at];
}

#define CREATE(name, Function, kind)                                                               \
    ORIEL_CHECK_WRAP(name, (Function * function, MPI_Errhandler * errhandler))                     \
    {                                                                                              \
        const void *address = __builtin_return_address(0);                                         \
        oriel_handler_fn *own =                                                                    \
            oriel_handler_registered((oriel_handler_fn *)function, kind, address);                 \
        return NEXT(name)((Function *)own, errhandler);                                            \
    }
CREATE(Comm_create_errhandler, MPI_Comm_errhandler_function, ORIEL_HANDLER_COMM)
CREATE(Win_create_errhandler, MPI_Win_errhandler_function, ORIEL_HANDLER_WIN)
CREATE(File_create_errhandler, MPI_File_errhandler_function, ORIEL_HANDLER_FILE)

/* Of MPI-1, removed by MPI-3.0. Hosts still have it, without a prototype or with one that must not
 * be used. */
#undef MPI_Errhandler_create
typedef int create_fn(MPI_Comm_errhandler_function *function, MPI_Errhandler *errhandler);
ORIEL_CHECK_EXPORT int PMPI_Errhandler_create(MPI_Comm_errhandler_function *function,
                                              MPI_Errhandler *errhandler)
{
    static _Atomic(void *) next;
    oriel_handler_fn *own = oriel_handler_registered(
        (oriel_handler_fn *)function, ORIEL_HANDLER_COMM, __builtin_return_address(0));
    return ((create_fn *)oriel_host_symbol_kept(&next, "PMPI_Errhandler_create"))(
        (MPI_Comm_errhandler_function *)own, errhandler);
}
ORIEL_CHECK_EXPORT int MPI_Errhandler_create(MPI_Comm_errhandler_function *function,
                                             MPI_Errhandler *errhandler)
    __attribute__((weak, alias("PMPI_Errhandler_create")));
