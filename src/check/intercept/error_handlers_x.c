/* Error handlers with an extra state, an extension of MPICH 5: its C++ and Fortran bindings
 * register the program's handlers by it. The state leads to the program's own. */
#include <mpi.h>

#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 50000000
#include "check/intercept/error_handlers.h"

#include "check/intercept/callback_scope.h"
#include "check/intercept/callbacks.h"
#include "check/intercept/wrap.h"

#include <stdlib.h>

typedef void any_fn(void);

struct handler {
    any_fn *function;
    MPIX_Destructor_function *destructor;
    void *extra;
};

static void handler_drop(void *state)
{
    struct handler *handler = state;
    if (handler->destructor != NULL)
        handler->destructor(handler->extra);
    free(handler);
}

#define CREATE(Kind, may_lose)                                                                     \
    typedef MPIX_##Kind##_errhandler_function_x Kind##_fn;                                         \
    static void Kind##_call(MPI_##Kind object, int code, void *state)                              \
    {                                                                                              \
        const struct handler *handler = state;                                                     \
        struct oriel_callback_scope scope;                                                         \
        oriel_callback_scope_handler_begin(&scope, ORIEL_CALLBACK_POSITION(), may_lose, code);     \
        ((Kind##_fn *)handler->function)(object, code, handler->extra);                            \
        oriel_callback_scope_end(&scope);                                                          \
    }                                                                                              \
    ORIEL_CHECK_EXPORT int PMPIX_##Kind##_create_errhandler_x(                                     \
        Kind##_fn *function, MPIX_Destructor_function *destructor, void *extra,                    \
        MPI_Errhandler *errhandler)                                                                \
    {                                                                                              \
        static _Atomic(void *) next;                                                               \
        const bool is_others = oriel_callback_is_others(__builtin_return_address(0));              \
        struct handler *handler = is_others ? NULL : malloc(sizeof *handler);                      \
        __typeof__(&PMPIX_##Kind##_create_errhandler_x) create =                                   \
            (__typeof__(&PMPIX_##Kind##_create_errhandler_x))oriel_host_symbol_kept(               \
                &next, "PMPIX_" #Kind "_create_errhandler_x");                                     \
        if (handler == NULL)                                                                       \
            return create(function, destructor, extra, errhandler);                                \
        *handler = (struct handler){(any_fn *)function, destructor, extra};                        \
        return create(Kind##_call, handler_drop, handler, errhandler);                             \
    }                                                                                              \
    ORIEL_CHECK_EXPORT int MPIX_##Kind##_create_errhandler_x(                                      \
        Kind##_fn *function, MPIX_Destructor_function *destructor, void *extra,                    \
        MPI_Errhandler *errhandler)                                                                \
        __attribute__((weak, alias("PMPIX_" #Kind "_create_errhandler_x")));

CREATE(Comm, true)
CREATE(Win, false)
CREATE(File, false)
CREATE(Session, true)
#endif
