/* Oriel's extensions of MPI's one-sided communication, for C (C90 and later) and C++. The prefix is
 * the one that MPI reserves for extensions. docs/guides/extensions.md explains them with examples,
 * and each function has a manual page.
 *
 * All functions are weak: a program that uses them also links and starts without Oriel, and then
 * must not call them. MPIX_Query_oriel() tells. They follow MPI's rules: they return error classes
 * and raise errors on the window's error handler, PMPIX_ names are for tools, and MPI_PROC_NULL is
 * a target without effect. Counts are in items of their datatype, target_disp in the target's
 * displacement units. A window that the host serves (docs/troubleshooting.md, O12) is
 * MPI_ERR_UNSUPPORTED_OPERATION. */
#ifndef ORIEL_EXT_H
#define ORIEL_EXT_H

#include <mpi.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The linker sets a weak function that it does not find to NULL for good, if a program that is
 * linked as position-dependent refers to it directly. All references here are through the table
 * that the loader fills, also in such a program: calls by noplt, for assemblers before binutils
 * 2.31. */
#define ORIEL_LATE_ __attribute__((weak))
#if defined(__x86_64__) && defined(__has_attribute)
#if __has_attribute(noplt)
#undef ORIEL_LATE_
#define ORIEL_LATE_ __attribute__((weak, noplt))
#endif
#endif

/* Declares MPIX_<name> and PMPIX_<name>. */
#define ORIEL_EXTENSION_(name, parameters)                                                         \
    int MPIX_##name parameters ORIEL_LATE_;                                                        \
    int PMPIX_##name parameters ORIEL_LATE_;

int PMPIX_Query_oriel(void) ORIEL_LATE_;

/* Returns 1 if the functions below may be called: Oriel is loaded, and not switched off by
 * ORIEL_BYPASS. May be called at any time, also before MPI_Init. */
static __inline__ int MPIX_Query_oriel(void)
{
#if defined(__x86_64__)
    const void *loaded;
    __asm__("movq PMPIX_Query_oriel@GOTPCREL(%%rip), %0" : "=r"(loaded));
    return loaded != NULL && PMPIX_Query_oriel();
#else
    return PMPIX_Query_oriel != NULL && PMPIX_Query_oriel();
#endif
}

/* --- notified access --- */

/* A window has counters of notifications if the info key oriel_notifications has their number, at
 * most MPIX_NOTIFICATIONS_MOST, when the window is created. Each rank has that many, numbered from
 * 0. The key may differ between ranks: number is checked against the target's.
 *
 * A notified operation is the operation without _notify, followed by a notification: the target's
 * counter of that number rises by 1. A rank that sees the notification also sees the operation, and
 * all operations that the same thread issued to this target of the window before it: a put or
 * accumulate is visible in the target's memory, a get has read it. The origin needs no flush for
 * that. A count of 0 sends the notification alone. Epochs, errors and completion at the origin are
 * those of the operation without _notify. If it fails, there is no notification, nor if an earlier
 * operation on this target of another node has failed and no call has returned that error yet.
 * Counters have 64 bits, so they do not overflow.
 *
 * Errors, besides those: MPI_ERR_ARG if the target has no counter of that number. For a target on
 * another node the call that completes the operation raises it. */
enum { MPIX_NOTIFICATIONS_MOST = 65536 };
ORIEL_EXTENSION_(Put_notify,
                 (const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                  int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                  MPI_Datatype target_datatype, int number, MPI_Win win))
ORIEL_EXTENSION_(Get_notify,
                 (void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                  int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                  MPI_Datatype target_datatype, int number, MPI_Win win))
ORIEL_EXTENSION_(Accumulate_notify,
                 (const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                  int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                  MPI_Datatype target_datatype, MPI_Op op, int number, MPI_Win win))

/* Wait until count notifications of the calling rank's counter number have arrived that no call has
 * taken yet, and take them. count is from 1 to INT_MAX. test does not wait: flag is 1 if it took
 * them, else 0, and then it took none. wait_any waits for one notification of any of n counters,
 * takes it, and returns its place in numbers; the lowest place that has one. They are local calls,
 * need no epoch, and may be called by several threads: each notification is taken once.
 *
 * Errors: MPI_ERR_ARG for an unknown number, MPI_ERR_COUNT, and MPI_ERR_OTHER if a rank of the
 * window has died while a call waits. An error takes no notification. */
ORIEL_EXTENSION_(Win_notify_wait, (MPI_Win win, int number, MPI_Count count))
ORIEL_EXTENSION_(Win_notify_test, (MPI_Win win, int number, MPI_Count count, int *flag))
ORIEL_EXTENSION_(Win_notify_wait_any, (MPI_Win win, int n, const int numbers[], int *index))

/* A persistent request for the same wait: MPI_Start begins it, and MPI_Wait, MPI_Test and their
 * multiple forms complete it, mixed with other requests. Only they look at the counter. A request
 * that is cancelled or freed takes no notification. */
ORIEL_EXTENSION_(Win_notify_init, (MPI_Win win, int number, MPI_Count count, MPI_Request *request))

/* --- order and flushes --- */

/* The operations that this thread issued to rank before the call take effect there before those
 * that it issues after it. It completes nothing, and asks no rank unless an RDMA device may have
 * the earlier ones. Called where an operation on rank is allowed. Errors: those of
 * MPI_Win_flush. */
ORIEL_EXTENSION_(Win_order, (int rank, MPI_Win win))

/* MPI_Win_flush for each of n ranks, and MPI_Win_flush_all for each of n windows: one round trip
 * for all of them (up to 32 windows). All are flushed, also after an error, and the first error is
 * returned. Entries may repeat. Errors, besides those of MPI_Win_flush: MPI_ERR_ARG for a negative
 * n, or a list that is NULL. */
ORIEL_EXTENSION_(Win_flush_list, (int n, const int ranks[], MPI_Win win))
ORIEL_EXTENSION_(Win_flush_windows, (int n, const MPI_Win wins[]))

/* MPI_Win_flush and MPI_Win_flush_all that return at once with a request. The operations that were
 * issued before the call are complete when the request is. Errors that another node reports are
 * raised by the call that completes the request, all others by this one. */
ORIEL_EXTENSION_(Win_iflush, (int rank, MPI_Win win, MPI_Request *request))
ORIEL_EXTENSION_(Win_iflush_all, (MPI_Win win, MPI_Request *request))

/* --- atomic operations --- */

/* MPI_Fetch_and_op and MPI_Compare_and_swap with a request: the result is in result_addr when it is
 * complete. As the other request-based operations, only in passive-target epochs (MPI-4.1,
 * 13.3.6). */
ORIEL_EXTENSION_(Rfetch_and_op, (const void *origin_addr, void *result_addr, MPI_Datatype datatype,
                                 int target_rank, MPI_Aint target_disp, MPI_Op op, MPI_Win win,
                                 MPI_Request *request))
ORIEL_EXTENSION_(Rcompare_and_swap, (const void *origin_addr, const void *compare_addr,
                                     void *result_addr, MPI_Datatype datatype, int target_rank,
                                     MPI_Aint target_disp, MPI_Win win, MPI_Request *request))

/* count times MPI_Fetch_and_op in one call, in order: operand i of origin_addr on the element at
 * target_disps[i], with its former value in element i of result_addr. Each is atomic by itself. A
 * displacement may occur more than once. All displacements are checked before the first operation;
 * of a dynamic window on another node, 1,024 at a time, and errors are reported by the flush.
 * origin_addr may be NULL for MPI_NO_OP.
 *
 * Errors, besides those of MPI_Fetch_and_op: MPI_ERR_COUNT, MPI_ERR_ARG if target_disps is NULL. */
ORIEL_EXTENSION_(Fetch_and_op_list, (const void *origin_addr, void *result_addr, MPI_Count count,
                                     MPI_Datatype datatype, int target_rank,
                                     const MPI_Aint target_disps[], MPI_Op op, MPI_Win win))

/* MPI_Compare_and_swap of 16 bytes. The place at the target is aligned to 16 bytes in its memory
 * (else MPI_ERR_ARG); the three buffers need no alignment. Atomic with respect to itself, and to
 * all accumulates on parts of these bytes. */
ORIEL_EXTENSION_(Compare_and_swap_128,
                 (const void *origin_addr, const void *compare_addr, void *result_addr,
                  int target_rank, MPI_Aint target_disp, MPI_Win win))

/* The datatype of a 16-bit real (IEEE binary16), and of a complex number of two: the host's own
 * where it has one. Operations on windows compute with them as with other reals and complex
 * numbers. The host moves them as integers where they are Oriel's. Each call returns the same
 * handle, which must not be freed.
 *
 * Errors: MPI_ERR_ARG if type is NULL, MPI_ERR_UNSUPPORTED_OPERATION where Oriel cannot start. */
ORIEL_EXTENSION_(Type_float16, (MPI_Datatype * type))
ORIEL_EXTENSION_(Type_float16_complex, (MPI_Datatype * type))

/* --- waiting on memory --- */

/* Comparisons of the element in the window (left) with a value (right). */
enum { MPIX_CMP_EQ = 1, MPIX_CMP_NE, MPIX_CMP_LT, MPIX_CMP_LE, MPIX_CMP_GT, MPIX_CMP_GE };

/* Wait until the element at disp in the calling rank's own window memory compares with *value as
 * asked. disp is in the calling rank's displacement units, an address for a dynamic window.
 * datatype is a predefined integer of 1, 2, 4 or 8 bytes, and the element is aligned. What a rank
 * wrote before its update of the element is then visible. The wait sleeps: operations on this
 * window wake it at once when their origin completes them. It sees plain stores, and puts by RDMA
 * devices, within a millisecond. test does not wait; flag is 1 if the comparison holds. Both are
 * local calls and need no epoch.
 *
 * Errors: MPI_ERR_RMA_RANGE, MPI_ERR_DISP for a negative disp, MPI_ERR_TYPE, MPI_ERR_ARG for an
 * unknown comparison, a NULL or an element that is not aligned, and MPI_ERR_OTHER if a rank of the
 * window has died while the call waits. */
ORIEL_EXTENSION_(Win_wait_until, (MPI_Win win, MPI_Aint disp, MPI_Datatype datatype, int comparison,
                                  const void *value))
ORIEL_EXTENSION_(Win_test_until, (MPI_Win win, MPI_Aint disp, MPI_Datatype datatype, int comparison,
                                  const void *value, int *flag))

/* --- persistent operations --- */

/* Each makes an inactive persistent request of an operation, with its arguments checked and its
 * copy planned once; the datatypes may be freed then. It needs no epoch. MPI_Start and MPI_Startall
 * issue the operation, in an epoch that allows it; their errors are raised on the window, and leave
 * the request inactive. MPI_Startall starts all that it can and returns the first error. The
 * request is complete as that of the operation's request-based form would be: it is as much use to
 * the target as that. The operation is also completed by all that completes operations. MPI_Cancel
 * has no effect. MPI_Request_free ends the request, before MPI_Win_free; what was started goes on.
 *
 * Errors: those of the operation. A start of an active request is MPI_ERR_REQUEST, and one on a
 * freed window MPI_ERR_WIN. */
ORIEL_EXTENSION_(Put_init,
                 (const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                  int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                  MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request))
ORIEL_EXTENSION_(Get_init, (void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                            int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                            MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request))
ORIEL_EXTENSION_(Accumulate_init,
                 (const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                  int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                  MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request *request))
ORIEL_EXTENSION_(Get_accumulate_init,
                 (const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                  void *result_addr, MPI_Count result_count, MPI_Datatype result_datatype,
                  int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                  MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request *request))
ORIEL_EXTENSION_(Fetch_and_op_init, (const void *origin_addr, void *result_addr,
                                     MPI_Datatype datatype, int target_rank, MPI_Aint target_disp,
                                     MPI_Op op, MPI_Win win, MPI_Request *request))
ORIEL_EXTENSION_(Compare_and_swap_init, (const void *origin_addr, const void *compare_addr,
                                         void *result_addr, MPI_Datatype datatype, int target_rank,
                                         MPI_Aint target_disp, MPI_Win win, MPI_Request *request))
ORIEL_EXTENSION_(Put_notify_init,
                 (const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                  int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                  MPI_Datatype target_datatype, int number, MPI_Win win, MPI_Request *request))
ORIEL_EXTENSION_(Get_notify_init,
                 (void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                  int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                  MPI_Datatype target_datatype, int number, MPI_Win win, MPI_Request *request))
ORIEL_EXTENSION_(Accumulate_notify_init,
                 (const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                  int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                  MPI_Datatype target_datatype, MPI_Op op, int number, MPI_Win win,
                  MPI_Request *request))

/* --- memory handles --- */

/* A part of a rank's window memory that other processes may be given access to. It has a fixed size
 * and may be sent as sizeof(MPIX_Memory_handle) items of MPI_BYTE, over any communicator. */
typedef struct {
    unsigned char bytes[1280];
} MPIX_Memory_handle;

/* Makes a handle of size bytes from disp (the calling rank's displacement units; an address for a
 * dynamic window) of the calling rank's own window memory. A local call. Free withdraws it: it
 * waits until the epochs that other processes have open on it have ended, and later ones are
 * refused. MPI_Win_free of the window withdraws all its handles in the same manner, after all its
 * ranks have made the call. A rank that frees a handle or the window while another process has an
 * epoch open on it waits for that process, also for ever. Holders that have died are not waited
 * for. Memory of a dynamic window stays attached until its handles are withdrawn.
 *
 * Errors: MPI_ERR_RMA_RANGE, MPI_ERR_DISP and MPI_ERR_SIZE for negative arguments, MPI_ERR_NO_MEM,
 * and MPI_ERR_UNSUPPORTED_OPERATION for a window that was opened from a handle. Free: MPI_ERR_ARG
 * for a handle that is not one of the calling rank, or is withdrawn, and MPI_ERR_RMA_SYNC if the
 * calling process has itself an epoch open on it; MPI_Win_free too. */
ORIEL_EXTENSION_(Win_memory_handle_create,
                 (MPI_Win win, MPI_Aint disp, MPI_Aint size, MPIX_Memory_handle *handle))
ORIEL_EXTENSION_(Win_memory_handle_free, (MPIX_Memory_handle * handle))

/* Makes a window of one rank, number 0, whose memory is the handle's part: disp_unit is the
 * displacement unit of its owner's window. A local call, by any process of the job, in the group of
 * the owner's window or not; the owner too. It asks an owner on another node. The window has
 * passive-target epochs only (else MPI_ERR_RMA_SYNC). Its locks are locks of the owner's rank in
 * the owner's window: an exclusive one excludes all others of either window. Accumulates are atomic
 * with respect to those of either window. The calling process has no memory in it, MPI_WIN_BASE is
 * NULL, and its group has the calling process alone. MPI_Win_free gives it back, without its owner.
 *
 * Errors: MPI_ERR_ARG for bytes that are no handle, MPI_ERR_RMA_ATTACH if it is withdrawn (also
 * from later lock calls), MPI_ERR_OTHER if its owner has died (also from later lock, flush and
 * unlock calls; the unlock ends the epoch), MPI_ERR_UNSUPPORTED_OPERATION if the owner is on
 * another node and had no network when it made the handle, or the kernel refuses copies and the
 * owner has no agent. */
ORIEL_EXTENSION_(Win_memory_open, (const MPIX_Memory_handle *handle, MPI_Info info, MPI_Win *win))

#undef ORIEL_EXTENSION_
#undef ORIEL_LATE_

#ifdef __cplusplus
}
#endif

#endif
