/* What is said when a transport has failed. */
#include "ops/remote.h"

#include <stdio.h>

_Thread_local bool oriel_remote_for_others;

enum oriel_status oriel_remote_failed(enum oriel_status status, const struct oriel_window *window, int32_t target)
{
    char reason[400];
    if (status == ORIEL_E_PEER)
        return oriel_fail(ORIEL_E_PEER, "rank %d (process %d) has died", (int)target,
                          (int)window->group->peers[target]->identity.pid);
    snprintf(reason, sizeof reason, "%s", oriel_fail_message());
    return oriel_fail(status, "access to rank %d: %s", (int)target, reason);
}
