/* Probes: whether this process may use each of the kernel's and the network's mechanisms, and if not, why.
 * A probe does one real operation and leaves nothing behind; it knows neither MPI nor any window.
 * The command line calls them all, the library those that it is about to rely on; any thread may. */
#ifndef ORIEL_MEMORY_PROBE_H
#define ORIEL_MEMORY_PROBE_H

#include <stdbool.h>
#include <stddef.h>

struct oriel_probe {
    const char *name;
    bool available;
    char detail[256]; /* what was done, or which step was refused and why */
};

/* Memory shared through a file without a name: created, mapped, opened again by /proc, read back. */
void oriel_probe_memfd(struct oriel_probe *out);

/* Copies to and from another process by the kernel, tried on a child process. */
void oriel_probe_cma(struct oriel_probe *out);

/* Write protection of pages from user space. Available means the full mode, which lets a write by the kernel wait;
 * the user mode alone is told in detail. */
void oriel_probe_userfaultfd(struct oriel_probe *out);

/* The XPMEM device. */
void oriel_probe_xpmem(struct oriel_probe *out);

/* The UCX library. */
void oriel_probe_ucx(struct oriel_probe *out);

/* All of them, in the order in which they are shown. */
extern void (*const oriel_probes[])(struct oriel_probe *out);
extern const size_t oriel_probes_count;

#endif
