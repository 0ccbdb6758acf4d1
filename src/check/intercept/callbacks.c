/* Attributes and generalised requests. The program's functions are stored in a record that the host
 * gets as extra state, together with functions that call the record's. A record of attributes stays
 * for the life of the process, because the host may delete an attribute long after its keyval was
 * freed; an equal record is used again. Predefined functions pass unchanged: hosts recognise their
 * addresses. */
#include "check/intercept/callbacks.h"

#include "base/code_address.h"
#include "check/intercept/callback_scope.h"
#include "check/intercept/wrap.h"
#include "check/report/call_sites.h"

#include <pthread.h>
#include <stdlib.h>

bool oriel_check_is_programs_yet(const void *address, uintptr_t frame)
{
    if (!oriel_check_running)
        return false;
    if (!oriel_callback_scope_look(frame))
        return false;
    if (oriel_check_where.in.depth == 0)
        return true;
    if (!oriel_site_is_bound(address))
        return false;
    oriel_wait_interrupt();
    return true;
}

/* --- attributes --- */

void (*oriel_callback_failed_at_end)(void);

static void attribute_not_deleted(uintptr_t object)
{
    if (oriel_callback_failed_at_end != NULL && object == (uintptr_t)MPI_COMM_SELF)
        oriel_callback_failed_at_end();
}

typedef void any_fn(void); /* type of the copy and delete functions of all kinds of objects */

struct attribute {
    struct attribute *next;
    any_fn *copy;
    any_fn *del;
    void *extra;
};

static struct attribute *attributes;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* MPICH's C++ classes register functions that take references to objects, and have the host call
 * them through proxies. (Error handlers get a reference instead of a pointer, which passes on
 * unchanged; generalised requests get functions in C.) */
static bool is_cxx_function(const void *address)
{
    struct oriel_code_address place;
    return oriel_code_address_find((uint64_t)(uintptr_t)address, &place) &&
           oriel_code_address_is_cxx_binding(place.module);
}

/* NULL: no memory. */
static struct attribute *attribute_record(any_fn *copy, any_fn *del, void *extra)
{
    enum { NEWEST = 64 };
    pthread_mutex_lock(&mutex);
    struct attribute *found = attributes;
    for (int i = 0;
         found != NULL && (found->copy != copy || found->del != del || found->extra != extra); i++)
        found = i < NEWEST ? found->next : NULL;
    if (found == NULL) {
        found = malloc(sizeof *found);
        if (found != NULL) {
            *found = (struct attribute){attributes, copy, del, extra};
            attributes = found;
        }
    }
    pthread_mutex_unlock(&mutex);
    return found;
}

/* The functions of one kind of object, and the call that registers them. NULL: no function, as
 * hosts have it. */
#define ATTRIBUTES(Kind, Handle, name, null_copy, dup, null_delete)                                \
    static int copy_##name(Handle object, int keyval, void *extra, void *in, void *out, int *flag) \
    {                                                                                              \
        const struct attribute *attribute = extra;                                                 \
        struct oriel_callback_scope scope;                                                         \
        oriel_callback_scope_begin(&scope, ORIEL_CALLBACK_POSITION());                             \
        int code = ((MPI_##Kind##_copy_attr_function *)attribute->copy)(                           \
            object, keyval, attribute->extra, in, out, flag);                                      \
        oriel_callback_scope_end(&scope);                                                          \
        return code;                                                                               \
    }                                                                                              \
    static int delete_##name(Handle object, int keyval, void *value, void *extra)                  \
    {                                                                                              \
        const struct attribute *attribute = extra;                                                 \
        struct oriel_callback_scope scope;                                                         \
        oriel_callback_scope_begin(&scope, ORIEL_CALLBACK_POSITION());                             \
        int code = ((MPI_##Kind##_delete_attr_function *)attribute->del)(object, keyval, value,    \
                                                                         attribute->extra);        \
        oriel_callback_scope_end(&scope);                                                          \
        if (code != MPI_SUCCESS)                                                                   \
            attribute_not_deleted((uintptr_t)object);                                              \
        return code;                                                                               \
    }                                                                                              \
    ORIEL_CHECK_WRAP(name, (MPI_##Kind##_copy_attr_function * copy,                                \
                            MPI_##Kind##_delete_attr_function * del, int *keyval, void *extra))    \
    {                                                                                              \
        bool copies = copy != NULL && copy != (null_copy) && copy != (dup);                        \
        bool deletes = del != NULL && del != (null_delete);                                        \
        struct attribute *attribute = NULL;                                                        \
        const void *address = __builtin_return_address(0);                                         \
        if ((copies || deletes) && !oriel_callback_is_others(address) &&                           \
            !is_cxx_function(address))                                                             \
            attribute = attribute_record((any_fn *)copy, (any_fn *)del, extra);                    \
        if (attribute == NULL)                                                                     \
            return NEXT(name)(copy, del, keyval, extra);                                           \
        return NEXT(name)(copies ? copy_##name : copy, deletes ? delete_##name : del, keyval,      \
                          attribute);                                                              \
    }

ATTRIBUTES(Comm, MPI_Comm, Comm_create_keyval, MPI_COMM_NULL_COPY_FN, MPI_COMM_DUP_FN,
           MPI_COMM_NULL_DELETE_FN)
ATTRIBUTES(Win, MPI_Win, Win_create_keyval, MPI_WIN_NULL_COPY_FN, MPI_WIN_DUP_FN,
           MPI_WIN_NULL_DELETE_FN)
ATTRIBUTES(Type, MPI_Datatype, Type_create_keyval, MPI_TYPE_NULL_COPY_FN, MPI_TYPE_DUP_FN,
           MPI_TYPE_NULL_DELETE_FN)

/* Of MPI-1 (MPI-4.1, 16.1): hosts still have it, but not every header of the standard ABI. */
#ifndef MPI_DUP_FN
#define MPI_NULL_COPY_FN   MPI_COMM_NULL_COPY_FN
#define MPI_DUP_FN         MPI_COMM_DUP_FN
#define MPI_NULL_DELETE_FN MPI_COMM_NULL_DELETE_FN
#endif
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
ATTRIBUTES(Comm, MPI_Comm, Keyval_create, MPI_NULL_COPY_FN, MPI_DUP_FN, MPI_NULL_DELETE_FN)
#pragma GCC diagnostic pop

/* --- generalised requests --- */

struct generalised {
    MPI_Grequest_query_function *query;
    MPI_Grequest_free_function *free;
    MPI_Grequest_cancel_function *cancel;
    void *extra;
};

static int query_generalised(void *extra, MPI_Status *status)
{
    const struct generalised *request = extra;
    struct oriel_callback_scope scope;
    oriel_callback_scope_begin(&scope, ORIEL_CALLBACK_POSITION());
    int code = request->query(request->extra, status);
    oriel_callback_scope_end(&scope);
    return code;
}

/* The host calls this function last. */
static int free_generalised(void *extra)
{
    struct generalised *request = extra;
    struct oriel_callback_scope scope;
    oriel_callback_scope_begin(&scope, ORIEL_CALLBACK_POSITION());
    int code = request->free(request->extra);
    oriel_callback_scope_end(&scope);
    free(request);
    return code;
}

static int cancel_generalised(void *extra, int complete)
{
    const struct generalised *request = extra;
    struct oriel_callback_scope scope;
    oriel_callback_scope_begin(&scope, ORIEL_CALLBACK_POSITION());
    int code = request->cancel(request->extra, complete);
    oriel_callback_scope_end(&scope);
    return code;
}

ORIEL_CHECK_WRAP(Grequest_start,
                 (MPI_Grequest_query_function * query, MPI_Grequest_free_function *free_function,
                  MPI_Grequest_cancel_function *cancel, void *extra, MPI_Request *request))
{
    struct generalised *own = NULL;
    if (query != NULL && free_function != NULL && cancel != NULL &&
        !oriel_callback_is_others(__builtin_return_address(0)))
        own = malloc(sizeof *own);
    if (own == NULL)
        return NEXT(Grequest_start)(query, free_function, cancel, extra, request);
    *own = (struct generalised){query, free_function, cancel, extra};
    int code =
        NEXT(Grequest_start)(query_generalised, free_generalised, cancel_generalised, own, request);
    if (code != MPI_SUCCESS)
        free(own);
    return code;
}
