/* Who a process is, so that nobody is mistaken for a process that merely has the same number: a random 128-bit id, the
 * PID and the kernel's start time of that PID.  An identity never changes; a forked child has none.  Any layer may use it. */
#ifndef ORIEL_BASE_IDENTITY_H
#define ORIEL_BASE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

struct oriel_identity {
    uint64_t id[2];
    uint64_t start_time; /* clock ticks since boot, /proc/<pid>/stat field 22 */
    int32_t pid;
    int32_t memory_fd; /* the process's memory file, as /proc/<pid>/fd/<memory_fd> */
};
_Static_assert(sizeof(struct oriel_identity) == 32, "identities are exchanged between processes");

/* Fills all but memory_fd for the calling process; false when /proc cannot be read. */
bool oriel_identity_make(struct oriel_identity *out);

static inline bool oriel_identity_equal(const struct oriel_identity *a,
                                        const struct oriel_identity *b)
{
    return a->id[0] == b->id[0] && a->id[1] == b->id[1];
}

/* The calling process in one word, for slots in shared memory: its start time above its PID.  Known without asking the system
 * once oriel_identity_make has succeeded in this process; 0 when it cannot be found out. */
uint64_t oriel_identity_own_word(void);

/* Whose word it is. */
int32_t oriel_identity_word_pid(uint64_t word);
bool oriel_identity_word_lives(uint64_t word);

/* Whether that very process still runs: false also for a zombie and for another process with its number.  Puts the spare
 * descriptor by again (base/reserve_fd.h). */
bool oriel_identity_alive(const struct oriel_identity *who);

#endif
