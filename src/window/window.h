/* A window of this process. The fields that locate memory (targets, bases, common, control, group)
 * are written once, before creation returns. The others are this process's epochs and its state of
 * synchronisation, and change. api/ finds the window from the host's handle (window/handle.h);
 * sync/ and rma/ operate on it. Nothing here needs mpi.h. */
#ifndef ORIEL_WINDOW_WINDOW_H
#define ORIEL_WINDOW_WINDOW_H

#include "base/wait.h"
#include "window/group.h"
#include "window/shared.h"

enum oriel_flavour {
    ORIEL_FLAVOUR_CREATE,
    ORIEL_FLAVOUR_ALLOCATE,
    ORIEL_FLAVOUR_SHARED,
    ORIEL_FLAVOUR_DYNAMIC,
};

/* The access epochs that this process has open. FENCE may be set together only with USED. */
enum oriel_epoch {
    ORIEL_EPOCH_FENCE = 1, /* the last fence did not assert NOSUCCEED */
    ORIEL_EPOCH_USED = 2,  /* an operation followed that fence */
    ORIEL_EPOCH_LOCK_ALL = 4,
    ORIEL_EPOCH_START = 8,
    ORIEL_EPOCH_NOCHECK = 16, /* with LOCK_ALL: it had MPI_MODE_NOCHECK */
    /* each of these allows operations on every target */
    ORIEL_EPOCH_ALL_TARGETS = ORIEL_EPOCH_LOCK_ALL | ORIEL_EPOCH_USED,
};

/* The group members of the last start or post, as this rank's entries for them, cached for the next
 * one. */
struct oriel_members {
    struct oriel_pscw_counter **partners; /* NULL: none so far */
    int32_t count;
    /* the host's handle, while it denotes the same group (api/synchronise.c); 0: unknown */
    uint64_t group;
    uint64_t groups_freed; /* number of groups that the program had freed when these were found */
};

struct oriel_gpu_copies;
struct oriel_window_host; /* the host's objects of this window: window/host_objects.h */

struct oriel_window {
    /* words of the data path */
    int32_t n;
    int32_t rank;
    int32_t here;           /* ranks on this node; all others have ORIEL_PLACEMENT_NETWORK */
    int32_t leader;         /* the lowest rank on this node; common is in its memory file */
    _Atomic uint32_t epoch; /* enum oriel_epoch */
    const struct oriel_target *targets; /* by win_rank, shared */
    char *const *memory_bases; /* by win_rank: of the memory file that contains a target's window */
    /* by win_rank: this rank's access words, or the group's absent ones (sync/access_words.c) */
    _Atomic(_Atomic uint8_t *) access;
    /* synchronisation */
    char *const *control_bases; /* by win_rank: of a rank's own memory file */
    struct oriel_common *common;
    struct oriel_control *control;
    /* arrivals of all ranks that open the barrier that this process entered last
     * (sync/barrier.c) */
    uint32_t arrivals;
    /* this rank's entry that was looked up last; NULL before */
    _Atomic(struct oriel_pscw_counter *) recent_pscw_counter;
    /* targets of start epochs; changed by the thread that sets ORIEL_EPOCH_START while not
     * accessing */
    struct oriel_members started;
    /* origins of exposure epochs; changed by the thread that sets exposed */
    struct oriel_members posted;
    _Atomic uint32_t accessing; /* 1 from the end of a start to the end of its complete */
    _Atomic uint32_t exposed;   /* an exposure epoch is open */
    /* the tests of that epoch that have failed */
    struct oriel_polling polling;
    /* other words */
    struct oriel_group *group;
    struct oriel_internode
        *internode; /* NULL: all ranks are on this node (internode/internode.h) */
    /* NULL: no operation of this process is queued here (rma/deferred.h) */
    struct oriel_deferred *deferred;
    void *device_memory; /* that MPI_Win_allocate has allocated; NULL: it is not device memory */
    /* NULL: this process has begun no copies of device memory here (rma/device_buffers.h) */
    _Atomic(struct oriel_gpu_copies *) begun;
    /* an array of its own where some memory is in another process's file, otherwise NULL */
    struct oriel_peer **memory_peers;
    char **memory_base_array; /* likewise */
    void *base; /* of this rank's window; NULL for a dynamic one and for size 0 of Win_create */
    int64_t control_offset; /* -1 before it is allocated; likewise below */
    int64_t common_offset;  /* the leader's */
    int64_t memory_offset;  /* block that freeing the window releases */
    /* of MPI_Win_create, unless all of it is in memory files: create/user_memory.h */
    struct oriel_user_memory *user_memory;
    /* of a dynamic window, from the first attach on (create/attach.c) */
    _Atomic(struct oriel_attached *) attached;
    /* of this rank's table of regions, once it has one (create/regions.c) */
    struct oriel_region_arrays *region_arrays;
    /* NULL: this rank has no counters of notifications (sync/notify.h) */
    struct oriel_notifications *notifications;
    /* NULL: the window was not opened from a memory handle (window/holders.h) */
    struct oriel_holding *holding;
    /* of this rank's memory handles; NULL: none so far (create/memory_handle.c) */
    struct oriel_window_handles *handles;
    uint64_t serial; /* counts all windows that this process has created, from 1 */
    uint64_t id;     /* the same on all ranks, unique in the job */
    enum oriel_flavour flavour;
    /* memory outside memory files is reached through its owner's agent, not by CMA; the same on
     * all ranks */
    bool by_agent;
    /* the program has asserted that it passes no device memory */
    bool only_host_buffers;
    bool ending; /* in the barrier of MPI_Win_free, or past it */
    /* after a death: waits for the living ranks to leave the window as well (free.c) */
    bool abandoned;
    /* MPI_Win_free has passed its barrier: a retry after a failed callback must not wait again */
    bool parted;
    struct oriel_window *next_leaving;
    struct oriel_window_host *host;
};

static inline struct oriel_control *oriel_window_control(const struct oriel_window *window,
                                                         int32_t win_rank)
{
    return (struct oriel_control *)(window->control_bases[win_rank] +
                                    window->targets[win_rank].control_offset);
}

static inline _Atomic uint8_t *oriel_window_access(const struct oriel_window *window)
{
    return atomic_load_explicit(&window->access, memory_order_acquire);
}

/* enum oriel_access_state to a target. */
static inline uint8_t oriel_window_access_to(const struct oriel_window *window, int32_t win_rank)
{
    return atomic_load_explicit(&oriel_window_access(window)[win_rank], memory_order_relaxed);
}

/* This process's address of byte offset of a target's ORIEL_PLACEMENT_DIRECT window. An address
 * computed from a datatype may precede the window. */
static inline char *oriel_window_direct(const struct oriel_window *window, int32_t win_rank,
                                        uint64_t offset_bytes)
{
    return (char *)((uintptr_t)window->memory_bases[win_rank] + window->targets[win_rank].offset +
                    offset_bytes);
}

#endif
