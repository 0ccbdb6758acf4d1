/* Waiting for a value in this process's own window memory (MPIX_Win_wait_until), and waking the
 * processes that do. memory_wait.c has the argument. */
#ifndef ORIEL_SYNC_MEMORY_WAIT_H
#define ORIEL_SYNC_MEMORY_WAIT_H

#include "window/window.h"

/* As MPIX_CMP_EQ and its followers. */
enum oriel_comparison {
    ORIEL_COMPARE_EQ = 1,
    ORIEL_COMPARE_NE,
    ORIEL_COMPARE_LT,
    ORIEL_COMPARE_LE,
    ORIEL_COMPARE_GT,
    ORIEL_COMPARE_GE
};

/* An aligned integer in memory, compared with a value. */
struct oriel_awaited_value {
    const void *at;
    unsigned size_bytes; /* 1, 2, 4 or 8 */
    bool is_signed;
    enum oriel_comparison comparison;
    uint64_t value; /* extended by its sign, if it has one */
};

/* The integer of that size at an address that needs no alignment, extended to 64 bits. */
uint64_t oriel_awaited_value_read(const void *at, unsigned size_bytes, bool is_signed);

/* Whether the comparison holds now. Acquire order if it does. */
bool oriel_awaited_value_holds(const void *awaited_value);

/* Returns when it holds, or ORIEL_E_PEER if a rank of the window has died. */
enum oriel_status oriel_memory_wait(struct oriel_window *window,
                                    const struct oriel_awaited_value *awaited);

/* W3 to W6: wakes the sleeping threads of the process with this memory file, if there are any. */
void oriel_memory_wake(char *base);

/* The same for all ranks of the window on this node. */
void oriel_memory_wake_all(const struct oriel_window *window) __attribute__((cold));

/* After a full fence (W2) of a call that completes operations on several targets, or on one: W3. */
static inline __attribute__((always_inline)) void
oriel_memory_changed(const struct oriel_window *window)
{
    if (oriel_unlikely(oriel_load_has(&window->common->memory_sleepers, UINT32_MAX)))
        oriel_memory_wake_all(window);
}

#endif
