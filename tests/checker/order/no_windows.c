/* What the checker of messages needs of that of windows, of which these tests have none. */
#include "check/intercept/messages_waits.h"
#include "check/window/checked_window.h"

struct oriel_site oriel_site_make(const void *address, enum oriel_call call)
{
    return oriel_site_here(address, (uint16_t)call, 0, 0);
}

_Atomic uint64_t oriel_checked_version;
_Thread_local struct oriel_checked_last oriel_checked_last;

void oriel_checked_look(MPI_Win win, uint64_t version)
{
    oriel_checked_last = (struct oriel_checked_last){version, win, NULL};
}

void oriel_quiet_begin(struct oriel_quiet *quiet, MPI_Win win)
{
    *quiet = (struct oriel_quiet){.win = win};
}

int oriel_quiet_end(struct oriel_quiet *quiet, int code)
{
    (void)quiet;
    return code;
}

void oriel_window_report(const struct oriel_checked *window, struct oriel_finding *finding,
                         const struct oriel_site *here)
{
    (void)window, (void)finding, (void)here;
}

int oriel_notify_request_needs(const struct oriel_request_record *record,
                               struct oriel_wait_need *need)
{
    (void)record, (void)need;
    return 0;
}
