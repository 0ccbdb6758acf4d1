/* Starts and ends the interface, as often as the program asks for it, before, during and after the
 * time between MPI_Init and MPI_Finalize. The host's interface starts and ends with Oriel's. */
#include "tool/tool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct oriel_tool_calls oriel_tool_host;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_complete; /* the host has all functions */
static _Atomic int users;

static void tool_functions_find(void)
{
    is_complete = true;
#define CALL(name)                                                                                 \
    oriel_tool_host.name = (__typeof__(oriel_tool_host.name))oriel_host_symbol("PMPI_T_" #name);   \
    is_complete = is_complete && oriel_tool_host.name != NULL;
#include "tool/tool_functions.def"
#undef CALL
}

bool oriel_tool_is_initialised(void)
{
    return atomic_load_explicit(&users, memory_order_acquire) > 0;
}

void oriel_tool_text_return(const char *text, char *out, int *len)
{
    if (len == NULL)
        return;
    if (out != NULL && *len > 0)
        snprintf(out, (size_t)*len, "%s", text);
    *len = (int)strlen(text) + 1;
}

int oriel_tool_index_check(int index, int own, int (*get_num)(int *number))
{
    int of_host = 0;
    if (!oriel_tool_is_initialised())
        return MPI_T_ERR_NOT_INITIALIZED;
    if (index >= 0 && index < own)
        return MPI_SUCCESS;
    int code = get_num(&of_host);
    if (code == MPI_SUCCESS && (index < 0 || index - own >= of_host))
        return MPI_T_ERR_INVALID_INDEX;
    return code;
}

ORIEL_EXPORT int PMPI_T_init_thread(int required, int *provided)
{
    pthread_once(&once, tool_functions_find);
    int code =
        is_complete ? oriel_tool_host.init_thread(required, provided) : MPI_T_ERR_CANNOT_INIT;
    if (code == MPI_SUCCESS)
        atomic_fetch_add_explicit(&users, 1, memory_order_release);
    return code;
}
ORIEL_TOOL_NAME(init_thread)

ORIEL_EXPORT int PMPI_T_finalize(void)
{
    int before = atomic_load_explicit(&users, memory_order_relaxed);
    while (before > 0 && !atomic_compare_exchange_weak(&users, &before, before - 1))
        ;
    if (before <= 0)
        return MPI_T_ERR_NOT_INITIALIZED;
    if (before == 1)
        oriel_performance_handles_close();
    return oriel_tool_host.finalize();
}
ORIEL_TOOL_NAME(finalize)
