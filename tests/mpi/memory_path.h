/* The path to a rank's own window memory, as the window reports it (info keys oriel_memory and
 * oriel_memory_reason), against the test's knowledge of that memory; and operations at every
 * boundary of it. The bare host reports nothing, so there only data is checked. */
#ifndef ORIEL_TESTS_MEMORY_PATH_H
#define ORIEL_TESTS_MEMORY_PATH_H

#include "harness.h"

enum { PAGE = 4096 };

struct memory_path {
    bool is_known; /* Oriel reports, and other ranks are on the node */
    /* "direct", "promoted", "cma", "agent", joined by "+" in this order: for ranks of the node */
    char list[64];
    char reason[1000]; /* the reason why no better path is used */
};

/* The form of promotion that this process may expect for ordinary private memory. */
enum promotion {
    PROMOTION_NONE,   /* switched off, or the bare host */
    PROMOTION_INWARD, /* whole pages inside the memory: other threads are stopped meanwhile */
    PROMOTION_OUTWARD /* whole pages around it: userfaultfd */
};

enum promotion promotion_here(void);
/* True if each promotable window is promoted; else short-lived ones may be exempt. */
bool promotes_always(void);
struct memory_path memory_path_read(MPI_Win win);

/* The memory is of a kind that is promoted, as far as whole pages allow. */
bool check_promoted(MPI_Win win, const void *base, size_t len_bytes);
/* The same where no process promotes more than the whole pages inside (private copies of files). */
bool check_promoted_inward(MPI_Win win, const void *base, size_t len_bytes);
/* The memory is copied, for a reason that contains any of these words, separated by '|'; "" for any
 * reason. */
bool check_copied(MPI_Win win, const char *why);
/* Compares the whole list. */
bool check_path(MPI_Win win, const char *list);
/* True if all or a part of the own memory is promoted now; for loops that count. */
bool is_promoted(MPI_Win win);

/* A window over the caller's memory with displacement unit 1; errors are failures of the case. */
MPI_Win window_over(void *base, size_t len_bytes);

/* Collective over MPI_COMM_WORLD: concurrent puts, gets and atomics by all ranks at the first,
 * last, middle and page-crossing offsets of each rank's memory; every sum is exact. Changes the
 * contents of the memory. */
void window_exercise(MPI_Win win, void *base, size_t len_bytes);

/* Memory of whole pages from mmap, zero. */
char *pages_map(size_t len_bytes);

#endif
