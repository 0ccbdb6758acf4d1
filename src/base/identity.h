/* The identity of a process: a random 128-bit id, the PID and the kernel's start time of that PID.
 * It cannot be confused with a later process that has the same PID. An identity never changes; a
 * forked child has none. */
#ifndef ORIEL_BASE_IDENTITY_H
#define ORIEL_BASE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

struct oriel_identity {
    uint64_t id[2];
    uint64_t start_time; /* clock ticks since boot, /proc/<pid>/stat field 22 */
    int32_t pid;
    int32_t memory_fd; /* the descriptor of the process's memory file, /proc/<pid>/fd/<memory_fd> */
};
_Static_assert(sizeof(struct oriel_identity) == 32, "identities are exchanged between processes");

/* Fills in all fields but memory_fd for the calling process. Returns false if /proc cannot be
 * read. */
bool oriel_identity_make(struct oriel_identity *out);

static inline bool oriel_identity_equal(const struct oriel_identity *a,
                                        const struct oriel_identity *b)
{
    return a->id[0] == b->id[0] && a->id[1] == b->id[1];
}

/* The calling process as one word, for slots in shared memory: its start time in the upper bits,
 * its PID below. After a successful oriel_identity_make no system call is needed. Returns 0 if it
 * cannot be determined. */
uint64_t oriel_identity_own_word(void);

/* The process that the word identifies. */
int32_t oriel_identity_word_pid(uint64_t word);
bool oriel_identity_word_alive(uint64_t word);

/* True if that very process still runs; false for a zombie and for another process with the same
 * PID. Restores the spare descriptor (base/reserve_fd.h). */
bool oriel_identity_alive(const struct oriel_identity *identity);

#endif
