/* Creates and frees windows. All flavours share one protocol: each rank prepares its part, the
 * ranks exchange one record each, and they agree on one outcome before any of them returns. */
#ifndef ORIEL_CREATE_CREATE_H
#define ORIEL_CREATE_CREATE_H

#include "window/window.h"

#include <mpi.h>

/* The program's request. */
struct oriel_creation {
    const char *call; /* the MPI function, for messages */
    enum oriel_flavour flavour;
    void *base; /* only for MPI_Win_create */
    int64_t size_bytes;
    int64_t disp_unit;
    MPI_Info info;
    MPI_Comm comm; /* an intracommunicator */
};

/* Data for reports about a creation that waits in the host's collectives (ORIEL_WAITING_AGREE). */
struct oriel_create_progress {
    const struct oriel_window *window; /* its group is NULL before all processes are known */
    MPI_Group group;                   /* the communicator's group, in that case */
};

/* Creates the window and enters it in the handle table under its carrier. Collective; every rank
 * gets the same status. *use_host, with ORIEL_OK: nothing was created and the host must create the
 * window; the reason has been reported, and is this thread's last message. */
enum oriel_status oriel_window_create(const struct oriel_creation *creation,
                                      struct oriel_window **out, bool *use_host);

/* Frees everything except the carrier and the handle. */
void oriel_window_destroy(struct oriel_window *window);

/* Call at the start of MPI_Win_free, before its barrier. */
void oriel_window_free_begin(struct oriel_window *window);

/* Frees the host's group, if the window has one: it belongs to the communicator's session. */
void oriel_window_release_host_group(struct oriel_window *window);

/* Returns this rank's memory of MPI_Win_create and MPI_Win_attach to the program alone. Call after
 * the barrier of MPI_Win_free. */
void oriel_window_release_memory(struct oriel_window *window);

/* Frees windows that this process freed earlier and that all others have left since. */
void oriel_window_reclaim(void);

/* Call after a barrier. Runs the delete callbacks through the host, and frees everything.
 * Collective. *gone: the window no longer exists, whatever the status. */
enum oriel_status oriel_window_free(struct oriel_window *window, bool *gone);

/* Frees the window without the other ranks, after rank dead has died. Waits for the others for at
 * most a second. Memory that they may still touch stays until a later window is created or freed;
 * the window's own words are never freed. */
void oriel_window_abandon(struct oriel_window *window, int32_t dead, bool *gone);

/* The same for a window that the program does not have yet, and whose handle is gone. */
void oriel_window_abandon_local(struct oriel_window *window, int32_t dead);

/* The number of the next window that this process creates. */
uint64_t oriel_window_next_serial(void);

/* Frees the carrier and removes the handle. *gone: the handle no longer exists. */
enum oriel_status oriel_window_free_handle(struct oriel_window *window, bool *gone);

/* The host's handle. */
MPI_Win oriel_window_handle(const struct oriel_window *window);

/* Initialises what every window needs, once. */
enum oriel_status oriel_window_start(void);

/* Call right after MPI_Init. Callbacks on MPI_COMM_SELF run in reverse order, so the program's
 * callbacks, which may free windows, run before the one that stops Oriel. */
void oriel_window_attach_finaliser(void);

/* The reverse of oriel_window_start, if no window is left. MPI_Finalize does this on its own; the
 * end of the last session needs this call. */
void oriel_window_stop(void);

#endif
