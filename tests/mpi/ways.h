/* Which way a rank's own window memory is reached, as the window itself tells (info keys
 * oriel_memory and oriel_memory_reason), against what a test knows of that memory; and operations
 * at every remarkable place of it.  On the bare host, which tells nothing, only data are checked.
 * Called by the tests of memory that the program brings. */
#ifndef ORIEL_TESTS_WAYS_H
#define ORIEL_TESTS_WAYS_H

#include "harness.h"

enum { PAGE = 4096 };

struct ways {
    bool told; /* by Oriel, and there are others on the machine */
    char list
        /* "arena", "promoted", "cma", "agent", joined by "+" in this order: for ranks of the
         * machine */
        [64];
    char reason[1000]; /* why not better */
};

/* What this process may expect of ordinary private memory. */
enum promotion {
    PROMOTION_NONE,   /* switched off, or the bare host */
    PROMOTION_INWARD, /* whole pages inside of the memory: other threads are stopped meanwhile */
    PROMOTION_OUTWARD /* whole pages around it: userfaultfd */
};

enum promotion promotion_here(void);
/* Whether each window is promoted that can be; else those that live for a short time may be spared
 * it. */
bool promotes_always(void);
struct ways ways_read(MPI_Win win);

/* The memory is of a sort that is promoted, as far as whole pages allow. */
bool check_promoted(MPI_Win win, const void *base, size_t len_bytes);
/* The same where only whole pages inside are promoted for everybody (private copies of files). */
bool check_promoted_inward(MPI_Win win, const void *base, size_t len_bytes);
/* The memory is copied, for a reason that has these words (any of them, separated by '|'); "" for
 * any reason. */
bool check_copied(MPI_Win win, const char *why);
/* The list itself. */
bool check_way(MPI_Win win, const char *list);
/* Whether all or a part of the own memory is promoted now; what loops count. */
bool is_promoted(MPI_Win win);

/* A window over memory of the caller's, displacement unit 1, errors are failures of the case. */
MPI_Win window_over(void *base, size_t len_bytes);

/* All ranks of MPI_COMM_WORLD together: puts, gets and atomics at the first, last, middle and
 * page-crossing places of everybody's memory, from everybody at once; every sum is exact.  The
 * memory's contents are other ones afterwards. */
void window_exercise(MPI_Win win, void *base, size_t len_bytes);

/* Memory of whole pages from mmap, zero. */
char *pages_map(size_t len_bytes);

#endif
