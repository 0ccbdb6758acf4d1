/* The process's own memory: which addresses are bytes of windows, and which buffers calls that are under way still need.  A use
 * of memory by the program or by a call of it is an access LOAD or STORE: it stands in the history of every window that the
 * bytes belong to, and where they belong to none, and are a buffer that is still needed, in a history of the process's own until
 * that ends.  Memory that is freed and used again is therefore never blamed for what it was. windows*.c and messages*.c call
 * with buffers, tsan/ with loads and stores; every function may be called by several threads. */
#ifndef ORIEL_CHECK_LOCAL_LOCAL_ACCESSES_H
#define ORIEL_CHECK_LOCAL_LOCAL_ACCESSES_H

#include "base/status.h"
#include "check/access/datatype_runs.h"
#include "check/common/access_types.h"
#include "check/common/reentrancy.h"
#include "check/local/buffer_uses.h"

#include <mpi.h>

/* The program's atomic instructions on a window's memory carry order like accumulates there: called with the closure of the
 * region's tell and the offset in its history (before a store, which gives; behind a load, which takes; a read-modify-write is
 * both), under local_accesses.c's lock. */
typedef void oriel_atomic_fn(void *closure, int64_t offset, bool gives);

/* tell is called for conflicts about memory outside windows: offsets are addresses; order for atomic instructions.  After
 * oriel_order_start. */
enum oriel_status oriel_local_start(oriel_conflict_fn *tell, void *closure, oriel_atomic_fn *order);
void oriel_local_stop(void);

/* --- memory of windows --- */

/* len_bytes at base are the bytes from offset on of the memory whose accesses stand in history: this process's part of a window,
 * a region attached to a dynamic one (offset: its address), or another rank's part of a shared window, mapped here.  Regions may
 * overlap: the same memory can be in several windows.  Conflicts of local accesses are told by tell. */
enum oriel_status oriel_local_region_add(const void *base, uint64_t len_bytes,
                                         oriel_shm_offset history, int64_t offset,
                                         oriel_conflict_fn *tell, void *closure);

/* Of the region of the history that starts at base: nothing when there is none.  Uses of that history, which may have other
 * regions, go on. */
void oriel_local_region_remove(const void *base, oriel_shm_offset history);

/* The history is about to be freed: no use ends there any more.  Its regions are removed. */
void oriel_local_forget(oriel_shm_offset history);

/* --- buffers of calls --- */

/* What completes a pending use: a number that no other call uses, or all operations of this process on a window's target. */
typedef uint64_t oriel_local_group; /* 0: none */

oriel_local_group oriel_local_group_new(void);
oriel_local_group oriel_local_group_target(uint64_t window_id, int target);

/* A call reads (writes: writes) count items of the datatype at buffer.  group: pending until oriel_local_complete of it (call
 * before the operation is passed on); 0: the call is a blocking one (call before it when it reads, behind it when it writes:
 * what it brought is ordered then).  flags: ORIEL_ACCESS_MESSAGE for messages and collectives.  MPI_BOTTOM is a buffer like
 * others; MPI_IN_PLACE is the caller's affair; what is no committed datatype, and a count of 0, are no use of anything. */
void oriel_local_buffer(const void *buffer, MPI_Count count, MPI_Datatype datatype, bool writes,
                        uint8_t flags, oriel_local_group group, const struct oriel_site *site);

/* The same of an operation's buffer, of at most most_bytes of count items of the type. */
void oriel_local_items(const void *buffer, uint64_t count, const struct oriel_type *type,
                       bool writes, oriel_local_group group, uint64_t most_bytes,
                       const struct oriel_site *site);

/* The same of all buffers of an operation, one to three, each of plain bytes; only the last one may be written.  False: nothing
 * has happened, they are for oriel_local_items. */
struct oriel_short_buffer_run;
bool oriel_local_runs(const struct oriel_short_buffer_run *runs, unsigned count,
                      oriel_local_group group, const struct oriel_site *site);

/* A buffer of a message or collective: the same with ORIEL_ACCESS_MESSAGE. */
void oriel_local_message(const void *buffer, MPI_Count count, MPI_Datatype datatype, bool writes,
                         oriel_local_group group, const struct oriel_site *site);

/* What the group has used of windows' memory, which others may access as soon as the call that completes it lets them go on:
 * over before that call.  The rest of its uses, and the group, end by oriel_local_complete. */
void oriel_local_complete_shared_uses(oriel_local_group group);
static inline void oriel_local_complete_shared(oriel_local_group group)
{
    if (oriel_check_many_threads || oriel_uses_are_open())
        oriel_local_complete_shared_uses(group);
}

/* All uses of the group are over: flush_local, flush, unlock, the end of an epoch, the completion of a request.  Behind the
 * call, and behind what it takes. */
void oriel_local_complete(oriel_local_group group);

/* --- loads and stores --- */

/* Whether a load or store of these bytes would be of interest: bytes of a window, or of a buffer that is still needed.  A few
 * nanoseconds where not. */
bool oriel_local_watched(const void *address, uint64_t len_bytes);

/* The program has loaded or stored them; address_of_call: the instruction's.  Atomic: by an atomic instruction, which orders as a
 * fetching accumulate does, and is in conflict with none. */
void oriel_local_access(const void *address, uint64_t len_bytes, bool writes, bool atomic,
                        const void *address_of_call);

#endif
