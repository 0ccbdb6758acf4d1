/* Making and freeing windows.  All flavours share one protocol: each rank prepares its part, the ranks exchange one record
 * each and agree on one outcome before anyone returns.  api/ calls. */
#ifndef ORIEL_CREATE_CREATE_H
#define ORIEL_CREATE_CREATE_H

#include "window/window.h"

#include <mpi.h>

/* What the program asked for. */
struct oriel_creation {
    const char *call; /* the MPI function, for messages */
    enum oriel_flavour flavour;
    void *base; /* MPI_Win_create only */
    int64_t size_bytes;
    int64_t disp_unit;
    MPI_Info info;
    MPI_Comm comm; /* an intracommunicator */
};

/* What others are told of a creation that waits in the host's collectives (ORIEL_WAITING_AGREE). */
struct oriel_making {
    const struct oriel_window *window; /* its group is NULL before all are known */
    MPI_Group group;                   /* the communicator's, then */
};

/* Makes the window, in the handle table under its carrier.  Collective; every rank gets the same status.  *use_host, with
 * ORIEL_OK: nothing was made, the host must make it (the reason has been noted, and is this thread's last message). */
enum oriel_status oriel_window_create(const struct oriel_creation *creation,
                                      struct oriel_window **out, bool *use_host);

/* Gives back everything but the carrier and the handle.  free.c calls. */
void oriel_window_destroy(struct oriel_window *window);

/* MPI_Win_free has been called: before its barrier. */
void oriel_window_begin_end(struct oriel_window *window);

/* The own memory of MPI_Win_create and MPI_Win_attach is the program's alone again.  After the barrier of MPI_Win_free. */
void oriel_window_release_memory(struct oriel_window *window);

/* Gives back windows that this process freed and the others have left since. */
void oriel_window_reclaim(void);

/* After a barrier: lets the host run the delete callbacks, gives everything back.  Collective.  *gone: the window does not
 * exist any more, whatever the status. */
enum oriel_status oriel_window_free(struct oriel_window *window, bool *gone);

/* Rank dead has died, and the window has no other end: the same without the others, whom it awaits for a second at most.  What
 * they may still touch after that stays until a later window is made or freed; the window's own words stay for good. */
void oriel_window_abandon(struct oriel_window *window, int32_t dead, bool *gone);

/* The same for a window that is not the program's yet, and whose handle is gone. */
void oriel_window_give_up(struct oriel_window *window, int32_t dead);

/* The host's handle. */
MPI_Win oriel_window_handle(const struct oriel_window *window);

/* Sets up what every window needs, if it is not there. */
enum oriel_status oriel_window_start(void);

/* Right after MPI_Init: callbacks on MPI_COMM_SELF run in reverse order, so that those of the program, which may free windows,
 * come before the one that ends Oriel. */
void oriel_window_attach_finaliser(void);

/* Gives that up, when no window is left that needs it.  MPI_Finalize does it by itself; the end of the last session calls. */
void oriel_window_stop(void);

#endif
