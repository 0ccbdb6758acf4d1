/* Sessions and handles of performance variables. A handle of one of Oriel's counters has values of
 * its own: what the counters grew by while the handle was started. Each counter only grows, so
 * handles and sessions do not affect each other. A handle of a level is always started, from 0.
 *
 * The first handle of one of Oriel's counters starts to count (observe.h), and counting lasts to
 * the end of the process. Handles of a window outlive it: its record stays.
 *
 * Sessions and handles of the host are in the tables too. So a handle that was freed, or that
 * belongs to another session, never reaches the host. */
#include "tool/performance_variables.h"
#include "tool/tool.h"

#include "base/hash_table.h"
#include "observe/observe.h"
#include "window/handle.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A handle; its key is the host's pointer, or for Oriel's its own address. */
struct performance_handle {
    const struct oriel_performance_variable *variable; /* NULL: the host's */
    struct performance_session *session;
    struct performance_handle *next; /* of the session */
    uint64_t key;
    uint64_t window_id; /* 0: of the process */
    uint32_t count;
    bool is_started;
    /* [count] each: before the last start, the counters at that start, and now */
    uint64_t *values;
    uint64_t *counters_started;
    uint64_t *counters;
};

/* A session; its key is the host's pointer. */
struct performance_session {
    struct performance_handle *handles;
    uint64_t key;
};

static struct oriel_hash_table sessions = ORIEL_HASH_TABLE_INIT;
static struct oriel_hash_table handles = ORIEL_HASH_TABLE_INIT;

/* Protects the sessions, and the handles with their values. */
static pthread_mutex_t tool_mutex = PTHREAD_MUTEX_INITIALIZER;

static uint64_t pointer_key(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

static struct performance_session *session_find(MPI_T_pvar_session session)
{
    return oriel_hash_table_find(&sessions, pointer_key(session));
}

/* --- values --- */

static bool is_level(const struct performance_handle *handle)
{
    return handle->variable->level != NULL;
}

/* Nothing is counted in a forked child: there the counters remain those read last. */
static void counters_read(struct performance_handle *handle)
{
    if (oriel_handle_in_child())
        return;
    if (is_level(handle))
        handle->counters[0] = handle->variable->level();
    else
        oriel_counter_sum(handle->variable->quantity, handle->variable->item, handle->window_id,
                          handle->count, handle->counters);
}

static uint64_t value_of(const struct performance_handle *handle, uint32_t i)
{
    return handle->values[i] +
           (handle->is_started ? handle->counters[i] - handle->counters_started[i] : 0);
}

static size_t values_bytes(const struct performance_handle *handle)
{
    return handle->count * sizeof *handle->values;
}

/* Sets the values, which change from the counters read last. */
static void values_set(struct performance_handle *handle, const uint64_t *values)
{
    if (values == NULL)
        memset(handle->values, 0, values_bytes(handle));
    else
        memcpy(handle->values, values, values_bytes(handle));
    memcpy(handle->counters_started, handle->counters, values_bytes(handle));
}

/* These return a code of MPI. */

static int handle_start(struct performance_handle *handle)
{
    if (is_level(handle))
        return MPI_T_ERR_PVAR_NO_STARTSTOP;
    if (handle->is_started)
        return MPI_SUCCESS;
    counters_read(handle);
    memcpy(handle->counters_started, handle->counters, values_bytes(handle));
    handle->is_started = true;
    return MPI_SUCCESS;
}

static int handle_stop(struct performance_handle *handle)
{
    if (is_level(handle))
        return MPI_T_ERR_PVAR_NO_STARTSTOP;
    counters_read(handle);
    for (uint32_t i = 0; i < handle->count; i++)
        handle->values[i] = value_of(handle, i);
    handle->is_started = false;
    return MPI_SUCCESS;
}

static int handle_reset(struct performance_handle *handle)
{
    if (is_level(handle))
        return MPI_T_ERR_PVAR_NO_WRITE;
    counters_read(handle);
    values_set(handle, NULL);
    return MPI_SUCCESS;
}

static int handle_read(struct performance_handle *handle, void *values)
{
    unsigned long long *out = values;
    counters_read(handle);
    for (uint32_t i = 0; i < handle->count; i++)
        out[i] = value_of(handle, i);
    return MPI_SUCCESS;
}

/* No count between the read and the reset is lost: both are of one sum. */
static int handle_read_reset(struct performance_handle *handle, void *values)
{
    if (is_level(handle))
        return MPI_T_ERR_PVAR_NO_ATOMIC;
    handle_read(handle, values);
    values_set(handle, NULL);
    return MPI_SUCCESS;
}

static int handle_write(struct performance_handle *handle, void *values)
{
    if (is_level(handle))
        return MPI_T_ERR_PVAR_NO_WRITE;
    counters_read(handle);
    values_set(handle, values);
    return MPI_SUCCESS;
}

/* --- handles --- */

/* Oriel's handle for an element of each rank, or for one number; NULL without memory. */
static struct performance_handle *handle_create(const struct oriel_performance_variable *variable,
                                                uint64_t window_id, uint32_t count)
{
    struct performance_handle *handle =
        calloc(1, sizeof *handle + 3 * (size_t)count * sizeof *handle->values);
    if (handle == NULL)
        return NULL;
    handle->variable = variable;
    handle->key = pointer_key(handle);
    handle->window_id = window_id;
    handle->count = count;
    handle->values = (uint64_t *)(handle + 1);
    handle->counters_started = handle->values + count;
    handle->counters = handle->counters_started + count;
    handle->is_started = is_level(handle);
    return handle;
}

/* Adds the handle to the session, or frees it. NULL is a handle for which there was no memory. */
static int handle_add(MPI_T_pvar_session session, struct performance_handle *handle)
{
    int code = MPI_SUCCESS;
    pthread_mutex_lock(&tool_mutex);
    struct performance_session *found = session_find(session);
    if (found == NULL) {
        code = MPI_T_ERR_INVALID_SESSION;
    } else if (handle == NULL || !oriel_hash_table_set(&handles, handle->key, handle)) {
        code = MPI_T_ERR_MEMORY;
    } else {
        handle->session = found;
        handle->next = found->handles;
        found->handles = handle;
    }
    pthread_mutex_unlock(&tool_mutex);
    if (code != MPI_SUCCESS)
        free(handle);
    return code;
}

static void handle_remove(struct performance_handle *handle)
{
    struct performance_handle **at = &handle->session->handles;
    while (*at != handle)
        at = &(*at)->next;
    *at = handle->next;
    oriel_hash_table_remove(&handles, handle->key, handle);
    free(handle);
}

/* Finds the session's handle, with the mutex held. */
static int handle_find(MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                       struct performance_handle **out)
{
    const struct performance_session *found = session_find(session);
    *out = oriel_hash_table_find(&handles, pointer_key(handle));
    if (found == NULL)
        return MPI_T_ERR_INVALID_SESSION;
    return *out != NULL && (*out)->session == found ? MPI_SUCCESS : MPI_T_ERR_INVALID_HANDLE;
}

/* --- sessions --- */

/* Returns false if memory is exhausted. */
static bool session_add(uint64_t key)
{
    struct performance_session *created = calloc(1, sizeof *created);
    if (created == NULL)
        return false;
    created->key = key;
    pthread_mutex_lock(&tool_mutex);
    bool is_added = oriel_hash_table_set(&sessions, key, created);
    pthread_mutex_unlock(&tool_mutex);
    if (!is_added)
        free(created);
    return is_added;
}

ORIEL_EXPORT int PMPI_T_pvar_session_create(MPI_T_pvar_session *session)
{
    if (!oriel_tool_is_initialised())
        return MPI_T_ERR_NOT_INITIALIZED;
    if (session == NULL)
        return MPI_T_ERR_INVALID;
    int code = oriel_tool_host.pvar_session_create(session);
    if (code != MPI_SUCCESS || session_add(pointer_key(*session)))
        return code;
    oriel_tool_host.pvar_session_free(session);
    return MPI_T_ERR_MEMORY;
}
ORIEL_TOOL_NAME(pvar_session_create)

/* Frees Oriel's handles of the session; the host frees its own. */
static void session_remove(struct performance_session *session)
{
    while (session->handles != NULL)
        handle_remove(session->handles);
    oriel_hash_table_remove(&sessions, session->key, session);
    free(session);
}

ORIEL_EXPORT int PMPI_T_pvar_session_free(MPI_T_pvar_session *session)
{
    if (!oriel_tool_is_initialised())
        return MPI_T_ERR_NOT_INITIALIZED;
    if (session == NULL)
        return MPI_T_ERR_INVALID;
    pthread_mutex_lock(&tool_mutex);
    struct performance_session *found = session_find(*session);
    if (found != NULL)
        session_remove(found);
    pthread_mutex_unlock(&tool_mutex);
    return found == NULL ? MPI_T_ERR_INVALID_SESSION : oriel_tool_host.pvar_session_free(session);
}
ORIEL_TOOL_NAME(pvar_session_free)

static void session_visit(void *session, void *context)
{
    *(struct performance_session **)context = session;
}

void oriel_performance_handles_close(void)
{
    struct performance_session *left;
    pthread_mutex_lock(&tool_mutex);
    do {
        left = NULL;
        oriel_hash_table_visit(&sessions, session_visit, &left);
        if (left != NULL)
            session_remove(left);
    } while (left != NULL);
    pthread_mutex_unlock(&tool_mutex);
}

/* --- allocation --- */

static int window_bind(const MPI_Win *win, uint64_t *window_id, uint32_t *n)
{
    if (win == NULL)
        return MPI_T_ERR_INVALID;
    if (oriel_handle_find(*win) == NULL && oriel_handle_forwarded(*win) == NULL)
        return MPI_T_ERR_INVALID_HANDLE;
    oriel_observe_count(&oriel_api);
    *window_id = oriel_observe_window_id(*win, n);
    return *window_id != 0 ? MPI_SUCCESS : MPI_T_ERR_OUT_OF_HANDLES;
}

static int own_handle_alloc(MPI_T_pvar_session session,
                            const struct oriel_performance_variable *variable, const MPI_Win *win,
                            MPI_T_pvar_handle *handle, int *count)
{
    uint64_t window_id = 0;
    uint32_t n = 1;
    int code = MPI_SUCCESS;
    if (variable->of_window)
        code = window_bind(win, &window_id, &n);
    else if (variable->level == NULL)
        oriel_observe_count(&oriel_api);
    if (code != MPI_SUCCESS)
        return code;
    bool is_by_rank = variable->of_window && oriel_counter_is_by_rank(variable->quantity);
    struct performance_handle *created = handle_create(variable, window_id, is_by_rank ? n : 1);
    code = handle_add(session, created);
    if (code == MPI_SUCCESS) {
        *handle = (MPI_T_pvar_handle)created;
        *count = is_by_rank ? (int)n : 1;
    }
    return code;
}

static int host_handle_alloc(MPI_T_pvar_session session, int pvar_index, void *obj_handle,
                             MPI_T_pvar_handle *handle, int *count)
{
    int code = oriel_tool_host.pvar_handle_alloc(session, pvar_index, obj_handle, handle, count);
    if (code != MPI_SUCCESS)
        return code;
    struct performance_handle *created = calloc(1, sizeof *created);
    if (created != NULL)
        created->key = pointer_key(*handle);
    code = handle_add(session, created);
    if (code != MPI_SUCCESS)
        oriel_tool_host.pvar_handle_free(session, handle);
    return code;
}

ORIEL_EXPORT int PMPI_T_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index,
                                          void *obj_handle, MPI_T_pvar_handle *handle, int *count)
{
    if (!oriel_tool_is_initialised())
        return MPI_T_ERR_NOT_INITIALIZED;
    if (handle == NULL || count == NULL)
        return MPI_T_ERR_INVALID;
    if (session_find(session) == NULL)
        return MPI_T_ERR_INVALID_SESSION;
    int code = oriel_tool_index_check(pvar_index, oriel_performance_variables_count,
                                      oriel_tool_host.pvar_get_num);
    if (code != MPI_SUCCESS)
        return code;
    if (pvar_index >= oriel_performance_variables_count)
        return host_handle_alloc(session, pvar_index - oriel_performance_variables_count,
                                 obj_handle, handle, count);
    return own_handle_alloc(session, oriel_performance_variable(pvar_index), obj_handle, handle,
                            count);
}
ORIEL_TOOL_NAME(pvar_handle_alloc)

ORIEL_EXPORT int PMPI_T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle *handle)
{
    struct performance_handle *found;
    if (!oriel_tool_is_initialised())
        return MPI_T_ERR_NOT_INITIALIZED;
    if (handle == NULL)
        return MPI_T_ERR_INVALID;
    pthread_mutex_lock(&tool_mutex);
    int code = handle_find(session, *handle, &found);
    bool is_own = code == MPI_SUCCESS && found->variable != NULL;
    if (code == MPI_SUCCESS)
        handle_remove(found);
    pthread_mutex_unlock(&tool_mutex);
    if (code == MPI_SUCCESS && !is_own)
        return oriel_tool_host.pvar_handle_free(session, handle);
    if (code == MPI_SUCCESS)
        *handle = MPI_T_PVAR_HANDLE_NULL;
    return code;
}
ORIEL_TOOL_NAME(pvar_handle_free)

/* --- start, stop and reset: of one handle, or of all in a session --- */

typedef int own_operation(struct performance_handle *handle);
typedef int host_operation(MPI_T_pvar_session session, MPI_T_pvar_handle handle);

/* Of all handles. The host gets its own one by one: libraries of the standard ABI hand on the
 * constant for all handles as if it were one of them. As in MPI-4.1, 15.3.7, variables that cannot
 * be changed so are left out. */
static int all_handles_change(MPI_T_pvar_session session, const struct performance_session *all,
                              own_operation *change, host_operation *of_host)
{
    int code = MPI_SUCCESS;
    for (struct performance_handle *handle = all->handles; handle != NULL; handle = handle->next) {
        int one = handle->variable != NULL
                      ? change(handle)
                      : of_host(session, (MPI_T_pvar_handle)(uintptr_t)handle->key);
        if (one != MPI_T_ERR_PVAR_NO_STARTSTOP && one != MPI_T_ERR_PVAR_NO_WRITE &&
            code == MPI_SUCCESS)
            code = one;
    }
    return code;
}

static int handles_change(MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                          own_operation *change, host_operation *of_host)
{
    struct performance_handle *found = NULL;
    if (!oriel_tool_is_initialised())
        return MPI_T_ERR_NOT_INITIALIZED;
    pthread_mutex_lock(&tool_mutex);
    int code = handle_find(session, handle, &found);
    bool is_host = code == MPI_SUCCESS && found->variable == NULL;
    if (code == MPI_SUCCESS && !is_host)
        code = change(found);
    if (code == MPI_T_ERR_INVALID_HANDLE && handle == MPI_T_PVAR_ALL_HANDLES)
        code = all_handles_change(session, session_find(session), change, of_host);
    pthread_mutex_unlock(&tool_mutex);
    return is_host ? of_host(session, handle) : code;
}

ORIEL_EXPORT int PMPI_T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return handles_change(session, handle, handle_start, oriel_tool_host.pvar_start);
}
ORIEL_TOOL_NAME(pvar_start)

ORIEL_EXPORT int PMPI_T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return handles_change(session, handle, handle_stop, oriel_tool_host.pvar_stop);
}
ORIEL_TOOL_NAME(pvar_stop)

ORIEL_EXPORT int PMPI_T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return handles_change(session, handle, handle_reset, oriel_tool_host.pvar_reset);
}
ORIEL_TOOL_NAME(pvar_reset)

/* --- reading and writing --- */

/* Uses Oriel's handle. For one of the host, sets *is_host and does nothing else. */
static int own_handle_use(MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                          int (*use)(struct performance_handle *handle, void *values),
                          const void *values, bool *is_host)
{
    struct performance_handle *found;
    *is_host = false;
    if (!oriel_tool_is_initialised())
        return MPI_T_ERR_NOT_INITIALIZED;
    if (values == NULL)
        return MPI_T_ERR_INVALID;
    pthread_mutex_lock(&tool_mutex);
    int code = handle_find(session, handle, &found);
    *is_host = code == MPI_SUCCESS && found->variable == NULL;
    if (code == MPI_SUCCESS && !*is_host)
        code = use(found, (void *)(uintptr_t)values);
    pthread_mutex_unlock(&tool_mutex);
    return code;
}

ORIEL_EXPORT int PMPI_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf)
{
    bool is_host;
    int code = own_handle_use(session, handle, handle_read, buf, &is_host);
    return is_host ? oriel_tool_host.pvar_read(session, handle, buf) : code;
}
ORIEL_TOOL_NAME(pvar_read)

ORIEL_EXPORT int PMPI_T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                                       void *buf)
{
    bool is_host;
    int code = own_handle_use(session, handle, handle_read_reset, buf, &is_host);
    return is_host ? oriel_tool_host.pvar_readreset(session, handle, buf) : code;
}
ORIEL_TOOL_NAME(pvar_readreset)

ORIEL_EXPORT int PMPI_T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                                   const void *buf)
{
    bool is_host;
    int code = own_handle_use(session, handle, handle_write, buf, &is_host);
    return is_host ? oriel_tool_host.pvar_write(session, handle, buf) : code;
}
ORIEL_TOOL_NAME(pvar_write)
