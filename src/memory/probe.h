/* Probes: whether this process may use each mechanism of the kernel and of the network, and if not,
 * why. A probe performs one real operation and leaves nothing allocated. Probes know neither MPI
 * nor windows. Thread-safe. */
#ifndef ORIEL_MEMORY_PROBE_H
#define ORIEL_MEMORY_PROBE_H

#include <stdbool.h>
#include <stddef.h>

struct oriel_probe {
    const char *name;
    bool available;
    char detail[256]; /* the operation that succeeded, or the step that failed and why */
};

/* Memory shared through an unnamed file: created, mapped, opened again through /proc, and read
 * back. */
void oriel_probe_memfd(struct oriel_probe *out);

/* Copies to and from another process by the kernel, tried on a child process. */
void oriel_probe_cma(struct oriel_probe *out);

/* Write protection of pages from user space. Available means the full mode, in which a write by the
 * kernel can wait. User mode alone is reported only in detail. */
void oriel_probe_userfaultfd(struct oriel_probe *out);

/* The XPMEM device. */
void oriel_probe_xpmem(struct oriel_probe *out);

/* The UCX library. */
void oriel_probe_ucx(struct oriel_probe *out);

/* The probes above, in display order. */
extern void (*const oriel_probes[])(struct oriel_probe *out);
extern const size_t oriel_probes_count;

#endif
