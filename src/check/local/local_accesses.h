/* The process's own memory: which addresses are bytes of windows, and which buffers are still
 * needed by unfinished calls. A use of memory by the program or by one of its calls is an access,
 * LOAD or STORE. It is stored in the history of every window that has the bytes.
 *
 * Bytes that are in no window, but in a buffer that is still needed, have their access in a history
 * of the process's own until the use ends. Memory that is freed and used again therefore causes no
 * false finding.
 *
 * Every function may be called by several threads. A signal handler may load and store at any time.
 * Recording that needs locks. So what it does while its thread has a lock of the checker
 * (oriel_shm_locks), or is in local_accesses.c, is not checked. A conflict may then be missed, and
 * an atomic store to a window orders nothing. */
#ifndef ORIEL_CHECK_LOCAL_LOCAL_ACCESSES_H
#define ORIEL_CHECK_LOCAL_LOCAL_ACCESSES_H

#include "base/atomic.h"
#include "base/status.h"
#include "check/access/datatype_runs.h"
#include "check/common/access_types.h"
#include "check/common/reentrancy.h"
#include "check/local/buffer_uses.h"
#include "check/local/short_buffers.h"
#include "check/local/window_memory.h"
#include "check/report/call_sites.h"

#include <mpi.h>

/* The program's atomic instructions on a window's memory order processes as accumulates do.
 * Arguments: the closure of the region's `tell`, and the offset in its history. `gives` is true
 * before a store, which publishes this process's clock. It is false after a load, which acquires
 * the word's clock. A read-modify-write does both. Called under the lock of local_accesses.c. */
typedef void oriel_atomic_fn(void *closure, int64_t offset, bool gives);

/* Call after oriel_order_start. `tell` reports conflicts about memory outside windows, where
 * offsets are addresses; `order` handles atomic instructions. */
enum oriel_status oriel_local_start(oriel_conflict_fn *tell, void *closure, oriel_atomic_fn *order);
void oriel_local_stop(void);

/* --- memory of windows --- */

/* Registers len_bytes at base: they are the bytes from `offset` on of the memory whose accesses are
 * in `history`. Such a region is this process's part of a window, memory attached to a dynamic
 * window (its offset is its address), or another rank's part of a shared window, mapped here.
 * Regions may overlap: the same memory can be in several windows. `tell` reports conflicts of local
 * accesses. */
enum oriel_status oriel_local_region_add(const void *base, uint64_t len_bytes,
                                         oriel_shm_offset history, int64_t offset,
                                         oriel_conflict_fn *tell, void *closure);

/* Removes the region of the history that starts at base, if there is one. Uses in that history,
 * which may have other regions, continue. */
void oriel_local_region_remove(const void *base, oriel_shm_offset history);

/* The history, whose regions are removed already, is about to be freed: uses no longer refer to
 * it. */
void oriel_local_forget(oriel_shm_offset history);

/* --- buffers of calls --- */

/* What completes an outstanding use: a number that no other call has, or all operations of this
 * process on one target of a window. */
typedef uint64_t oriel_local_group; /* 0: none */

oriel_local_group oriel_local_group_new(void);
oriel_local_group oriel_local_group_target(uint64_t window_id, int target);

/* A call reads count items of the datatype at buffer, or writes them (`writes`). If `group` is not
 * 0, the use is outstanding until oriel_local_complete of the group; call this function before the
 * operation is passed on. If `group` is 0, the call is a blocking one. Then call this function
 * before a call that reads, and after one that writes: its data is ordered by then. flags:
 * ORIEL_ACCESS_MESSAGE for messages and collectives. MPI_BOTTOM is a buffer like others. The caller
 * handles MPI_IN_PLACE. An uncommitted datatype or a count of 0 is no use. */
void oriel_local_buffer(const void *buffer, MPI_Count count, MPI_Datatype datatype, bool writes,
                        uint8_t flags, oriel_local_group group, const struct oriel_site *site);

/* The same for an operation's buffer: at most most_bytes of count items of the type. */
void oriel_local_items(const void *buffer, uint64_t count, const struct oriel_type *type,
                       bool writes, oriel_local_group group, uint64_t most_bytes,
                       const struct oriel_site *site);

/* The same for all one to three buffers of an operation, each of plain bytes; only the last one may
 * be written. Returns false without side effects; oriel_local_items then handles each of them. */
struct oriel_short_buffer_run;
bool oriel_local_runs(const struct oriel_short_buffer_run *runs, unsigned count,
                      oriel_local_group group, const struct oriel_site *site);

/* The same for a buffer of a message or collective, with ORIEL_ACCESS_MESSAGE. */
void oriel_local_message(const void *buffer, MPI_Count count, MPI_Datatype datatype, bool writes,
                         oriel_local_group group, const struct oriel_site *site);

/* Ends the group's uses of window memory. Call before the call that completes the group: other
 * ranks may access the memory as soon as that call allows it. oriel_local_complete ends the group's
 * other uses and the group. */
void oriel_local_complete_shared_uses(oriel_local_group group);
static inline void oriel_local_complete_shared(oriel_local_group group)
{
    if (oriel_check_many_threads || oriel_uses_are_open())
        oriel_local_complete_shared_uses(group);
}

/* Ends all uses of the group: flush_local, flush, unlock, the end of an epoch, the completion of a
 * request. Call after that call, and after acquiring the clocks that it receives. */
void oriel_local_complete(oriel_local_group group);

/* --- memory that ends --- */

/* Whether any buffer is needed now, so that its end could matter. */
static inline bool oriel_local_needs_buffers(void)
{
    return oriel_short_buffers.count > 0 || oriel_uses_are_open();
}

/* Whether the bytes from low to high are certainly of no window and of no such buffer. A few
 * instructions. */
static inline bool oriel_local_is_unused(uint64_t low, uint64_t high)
{
    return oriel_regions_are_elsewhere(low, high) && oriel_uses_are_elsewhere(low, high) &&
           (oriel_check_many_threads || !oriel_short_buffer_overlaps(low, high));
}

/* The program gives up the bytes from low to high: reports the buffers there that are still needed,
 * and the windows that they belong to, and forgets those buffers. site: of the call; its address
 * may be a bare one. */
void oriel_local_end_memory(uint64_t low, uint64_t high, const struct oriel_site *site);

/* The same for the part of this thread's stack from low to high: no function's frame is there now.
 */
void oriel_local_end_frames(uint64_t low, uint64_t high, const struct oriel_site *site);

/* --- loads and stores --- */

/* Whether a load or store of these bytes can matter: bytes of a window, or of a buffer that is
 * still needed. Costs a few nanoseconds if not. */
bool oriel_local_watched(const void *address, uint64_t len_bytes);

/* Records a load or store of the program; address_of_call: the instruction's. `atomic`: an atomic
 * instruction, which orders as a fetching accumulate does and conflicts with nothing. */
void oriel_local_access(const void *address, uint64_t len_bytes, bool writes, bool atomic,
                        const void *address_of_call);

/* Records an access by a function of libc, called at address_of_call. Instrumented code: like
 * oriel_local_access. Other code: compares it with what is under way, and stores nothing. */
void oriel_local_library_access(const void *address, uint64_t len_bytes, bool writes,
                                enum oriel_call call, const void *address_of_call);

#endif
