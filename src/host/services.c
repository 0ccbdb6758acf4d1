/* Answers from the host's properties, and services that only some hosts have. */
#include "host/properties.h"

#include "base/host_version.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

const char *oriel_host_name(void)
{
    return oriel_host_properties.name;
}

void oriel_host_version(char *out, size_t room)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int len;
    if (oriel_host()->Get_library_version(text, &len) != MPI_SUCCESS)
        snprintf(text, sizeof text, "%s", oriel_host_name());
    oriel_host_version_format(text, out, room);
}

uint32_t oriel_host_node_ranks(void)
{
    for (int i = 0; i < 2 && oriel_host_properties.node_ranks[i] != NULL; i++) {
        const char *ranks = getenv(oriel_host_properties.node_ranks[i]);
        if (ranks != NULL)
            return (uint32_t)strtoul(ranks, NULL, 10);
    }
    return 0;
}

bool oriel_host_windows_scarce(uint32_t live_windows)
{
    return oriel_host_properties.scarce_windows != 0 &&
           live_windows >= oriel_host_properties.scarce_windows;
}

/* Open MPI's function that registers progress functions; NULL with another host, for a program of
 * the standard ABI too. */
static int (*progress_register(void))(int (*)(void))
{
    int (*function)(int (*)(void)) = NULL;
    *(void **)&function = oriel_host_symbol("opal_progress_register");
    return function;
}

/* Codes beyond MPI_ERR_LASTCODE are the program's (MPI-4.1, 9.5): a callback may have returned one
 * that the host does not know, and Open MPI raises an error for those. Through the standard ABI,
 * MPICH's own codes are beyond it, too; MPICH raises none. */
bool oriel_host_has_code(int code)
{
    const bool may_exceed = ORIEL_HOST_IS_ABI && progress_register() == NULL;
    return code >= 0 && (may_exceed || code <= MPI_ERR_LASTCODE);
}

/* Open MPI calls registered functions in each turn of its progress. MPICH has no such hook:
 * api/progress_hook.c interposes a function that MPICH calls in each turn. */
static int (*_Atomic registered)(void);

void oriel_host_progress_register(int (*turn)(void))
{
    int (*nothing)(void) = NULL;
    if (!atomic_compare_exchange_strong(&registered, &nothing, turn))
        return;
    int (*add)(int (*)(void)) = progress_register();
    if (add != NULL)
        (void)add(turn);
}

void oriel_host_progress_unregister(void)
{
    int (*take)(int (*)(void)) = NULL;
    int (*turn)(void) = atomic_exchange(&registered, NULL);
    *(void **)&take = oriel_host_symbol("opal_progress_unregister");
    if (take != NULL && turn != NULL)
        (void)take(turn);
}
