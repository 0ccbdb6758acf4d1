/* Copies by other processes into this one's memory, and pages of this one that move (promotion).  A copy of the kernel pins the
 * page first and writes into it then: pages that move in between take the old contents along, and the write is lost.  And in
 * the place of pages that move there may be none for a moment, where a copy would read zeroes.  Therefore no copy is under way
 * while pages move.  struct oriel_remote_writers lies in the first page of the target's memory file; origins (cma/cma.c) announce
 * each call of the kernel, who moves pages (memory/promote/promote.c) keeps them out.  Readers are writers here.
 *
 * A writer, for each call of the kernel:
 *
 *   E1  takes a slot: owner 0 -> who it is, in one step (seq_cst)
 *   E2  looks at moving (seq_cst): even, it is in
 *   E3  odd: it gives the slot back (owner -> 0), waits until moving is another, and begins anew
 *   E4  copies
 *   E5  gives the slot back: owner -> 0 (release)
 *
 * The mover, one at a time in a process:
 *
 *   M1  moving becomes odd (seq_cst)
 *   M2  waits at each slot, one after the other, until it has seen it free (seq_cst)
 *   M3  moves pages
 *   M4  moving becomes even (seq_cst), and wakes those who wait
 *
 * P1  Nobody copies during M3.  In the one order of these operations E2 follows M1, and the writer keeps out; or E1 comes before
 *     M1, and then before M2's look at that slot, which sees the writer, or E5.  A slot that was seen free may be taken again:
 *     by those who keep out.
 * P2  E5 -> M2: what was copied is in the pages that move.   P3  M4 -> E2: who is let in finds the pages where they are now.
 * P4  Waiting (E3) and waking is argued in base/wait.h, with moving as the word.  A writer waits as long as pages move, a mover
 *     as long as one call of the kernel takes (cma/cma.c keeps them short).  A writer that waits has no slot.
 *
 * Death.  A slot says which process has taken it: its number and start time, so that another process with this number is
 * another one.  Killed in E1 to E5, a writer leaves its slot taken; in one step, so there is no state that does not say by whom.
 * Who waits for a slot longer than a millisecond looks whether that process lives, and frees the slot where not: a process is
 * dead when its last thread has left the kernel, and with it the copy.  A counter would take the place of all slots, but what the
 * dead had added to it nobody could tell.  Who waits for moving asks whether the target lives; in a dead one no pages move.
 *
 * Slots.  A writer holds one for a call of the kernel only, and each thread tries first the one that it had last: threads and
 * processes that write at once soon have a line of their own each.  Who finds all taken gives its processor away. */
#ifndef ORIEL_TRANSPORT_REMOTE_WRITERS_H
#define ORIEL_TRANSPORT_REMOTE_WRITERS_H

#include "base/identity.h"
#include "base/status.h"
#include "base/wait.h"

#include <stdalign.h>

enum { ORIEL_REMOTE_WRITERS_SLOTS = 56 };

struct oriel_remote_writers_slot {
    alignas(ORIEL_CACHE_LINE) _Atomic uint64_t
        owner; /* 0, or who copies: start time above 22 bits of PID */
};

struct oriel_remote_writers {
    /* the target; written before moving is odd for the first time, read where it is odd */
    alignas(ORIEL_CACHE_LINE) struct oriel_identity process;
    struct oriel_event moving; /* odd while pages move; the mover's alone (M1, M4); wraps around */
    struct oriel_remote_writers_slot slots[ORIEL_REMOTE_WRITERS_SLOTS];
};
_Static_assert(sizeof(struct oriel_remote_writers) ==
                   (1 + ORIEL_REMOTE_WRITERS_SLOTS) * ORIEL_CACHE_LINE,
               "in every memory file's first page");

/* E1 to E3; the slot for leave, NULL with the reason when the system does not tell who this process is.  Of a dead target, too:
 * the copy says so then. */
struct oriel_remote_writers_slot *oriel_remote_writers_enter(struct oriel_remote_writers *writers);

/* E5 */
static inline void oriel_remote_writers_leave(struct oriel_remote_writers_slot *slot)
{
    atomic_store_explicit(&slot->owner, 0, memory_order_release); /* E5 */
}

/* M1 and M2, in the target, which is self.  Where copies do not end within 100 ms nothing may move: ORIEL_E_OTHER with the
 * reason, and M4 is done.  in_any_case: pages must move; after a second that is reported and writers who live are taken to be
 * stopped outside of the kernel. */
enum oriel_status oriel_remote_writers_halt(struct oriel_remote_writers *writers,
                                            const struct oriel_identity *self, bool in_any_case);

/* M4 */
void oriel_remote_writers_resume(struct oriel_remote_writers *writers);

/* Threads of this process that touch the program's memory between enter and leave only, and while they are outside nothing but
 * the memory file, their own stacks and what belongs to libraries: the agent's, the net's and UCX's own.  They block all
 * signals, so where pages move while all threads are stopped, these are kept out like other processes.  One too many is none. */
void oriel_remote_writers_add_helper(int32_t tid);
void oriel_remote_writers_remove_helper(int32_t tid);
bool oriel_remote_writers_is_helper(int32_t tid);

/* A place in what these threads write at any time: a range of the program that has it may have more of that, and must not
 * move. */
void oriel_remote_writers_add_place(const void *place);
void oriel_remote_writers_remove_place(const void *place);
bool oriel_remote_writers_has_place(uintptr_t start, uintptr_t end);

#endif
