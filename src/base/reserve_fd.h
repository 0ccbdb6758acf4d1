/* Descriptors that are not the program's: where they lie, and one that is put by, so that a process that has used up all others
 * can still ask who lives and open a peer's memory.  Any layer may use it; thread-safe. */
#ifndef ORIEL_BASE_RESERVE_FD_H
#define ORIEL_BASE_RESERVE_FD_H

#include <stdbool.h>

/* The same file under a high number, out of the way of programs that count theirs, or fd itself where that cannot be.  Negative
 * ones stay; errno is kept for these. */
int oriel_reserve_fd_high(int fd);

/* Puts one by, where some more are free, or back that was spent.  Where the program has closed it, or few were free, the next
 * call does. */
void oriel_reserve_fd_keep_spare(void);

/* The same in a process that has put one by before; elsewhere nothing. */
void oriel_reserve_fd_restore_spare(void);

/* Whether what failed for this reason, an errno, may be tried again, as it wanted a descriptor and the spare one is free now.
 * Keeps errno. */
bool oriel_reserve_fd_spend_spare(int reason);

/* The calling thread has descriptors of its own from now on: the spare one is not among them. */
void oriel_reserve_fd_leave_spare(void);

#endif
