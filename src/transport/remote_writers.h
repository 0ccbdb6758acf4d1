/* Copies by other processes into this process's memory, and pages of it that move (promotion). A
 * copy by the kernel first pins the page and then writes into it. If the page moves in between, it
 * takes the old contents along and the write is lost. While a page moves, its address may also be
 * unmapped briefly, and a copy would read zeroes. So no copy may be in progress while pages move.
 * struct oriel_remote_writers is in the first page of the target's memory file. Origins (cma/cma.c)
 * announce each system call in it, and the mover (memory/promote/promote.c) excludes them. Readers
 * count as writers here.
 *
 * A writer, for each system call:
 * E1: claims a slot: owner 0 -> its process word, in one step (seq_cst)
 * E2: loads moving (seq_cst); if it is even, the writer has entered
 * E3: if it is odd, releases the slot (owner -> 0), waits until moving changes, and starts again
 * E4: copies
 * E5: releases the slot: owner -> 0 (release)
 *
 * The mover, one at a time in a process:
 * M1: makes moving odd (seq_cst)
 * M2: waits at each slot, one after the other, until it has seen it free (seq_cst)
 * M3: moves pages
 * M4: makes moving even (seq_cst), and wakes the waiting writers
 *
 * P1: No writer copies during M3. In the single order of these operations, either E2 follows M1 and
 *     the writer does not enter, or E1 precedes M1. Then E1 also precedes M2's load of that slot,
 *     which sees the writer, or E5. A slot that was seen free may be claimed again, but only by
 *     writers that do not enter.
 * P2: E5 -> M2: the copied bytes are in the pages that move.
 * P3: M4 -> E2: a writer that enters finds the pages at their new location.
 * P4: Waiting (E3) and waking follow the argument in base/wait.h, with moving as the word. A writer
 *     waits while pages move. A mover waits for the length of one system call (cma/cma.c keeps them
 *     short). A waiting writer holds no slot.
 *
 * Death. A slot names the process that claimed it by PID and start time, so a later process with
 * the same PID differs. A writer killed in E1 to E5 leaves its slot claimed. A claim is one step,
 * so every state names its owner. A process that waits for a slot longer than a millisecond checks
 * whether the owner lives, and frees the slot if not. A process is dead when its last thread has
 * left the kernel, and with it the copy. With a counter instead of slots, the share of a dead
 * process would be unknown. A process that waits for moving checks whether the target lives; in a
 * dead target no pages move.
 *
 * Slots. A writer holds a slot only for one system call, and each thread first tries the slot that
 * it used last. So threads and processes that write concurrently soon have a cache line each. If
 * all slots are in use, the writer yields its processor. */
#ifndef ORIEL_TRANSPORT_REMOTE_WRITERS_H
#define ORIEL_TRANSPORT_REMOTE_WRITERS_H

#include "base/identity.h"
#include "base/status.h"
#include "base/wait.h"

#include <stdalign.h>

enum { ORIEL_REMOTE_WRITERS_SLOTS = 56 };

struct oriel_remote_writers_slot {
    /* 0, or the copying process: start time above 22 bits of PID */
    alignas(ORIEL_CACHE_LINE) _Atomic uint64_t owner;
};

struct oriel_remote_writers {
    /* the target; written before moving is odd for the first time, read while it is odd */
    alignas(ORIEL_CACHE_LINE) struct oriel_identity process;
    /* odd while pages move; written only by the mover (M1, M4); wraps around */
    struct oriel_event moving;
    struct oriel_remote_writers_slot slots[ORIEL_REMOTE_WRITERS_SLOTS];
};
_Static_assert(sizeof(struct oriel_remote_writers) ==
                   (1 + ORIEL_REMOTE_WRITERS_SLOTS) * ORIEL_CACHE_LINE,
               "in every memory file's first page");

/* E1 to E3; returns the slot for leave. Returns NULL with the reason if the system does not provide
 * this process's identity. Also enters for a dead target: the copy then reports the death. */
struct oriel_remote_writers_slot *oriel_remote_writers_enter(struct oriel_remote_writers *writers);

/* E5 */
static inline void oriel_remote_writers_leave(struct oriel_remote_writers_slot *slot)
{
    atomic_store_explicit(&slot->owner, 0, memory_order_release); /* E5 */
}

/* M1 and M2, in the target, which is self. If copies do not end within 100 ms, nothing may move:
 * returns ORIEL_E_OTHER with the reason, after M4. in_any_case: pages must move. After a second a
 * warning reports that, and live writers are assumed to be stopped outside the kernel. */
enum oriel_status oriel_remote_writers_halt(struct oriel_remote_writers *writers,
                                            const struct oriel_identity *self, bool in_any_case);

/* M4 */
void oriel_remote_writers_resume(struct oriel_remote_writers *writers);

/* Threads of this process that access the program's memory only between enter and leave. Outside
 * they access only the memory file, their own stacks and memory of libraries: the agent's, the
 * net's and UCX's own threads. They block all signals. If pages move while all threads are stopped,
 * these are excluded like other processes instead. If the table is full, a further thread is not
 * registered. */
void oriel_remote_writers_add_helper(int32_t tid);
void oriel_remote_writers_remove_helper(int32_t tid);
bool oriel_remote_writers_is_helper(int32_t tid);

/* An address in memory that these threads write at any time. A range of the program that contains
 * one may contain more of that memory, and must not move. */
void oriel_remote_writers_add_address(const void *addr);
void oriel_remote_writers_remove_address(const void *addr);
bool oriel_remote_writers_has_address(uintptr_t start, uintptr_t end);

#endif
