/* Descriptors that belong to Oriel, not to the program: they use high numbers. One spare descriptor
 * is reserved. With it a process that has used up all others can still check whether a peer is
 * alive and open a peer's memory. Thread-safe. */
#ifndef ORIEL_BASE_RESERVE_FD_H
#define ORIEL_BASE_RESERVE_FD_H

#include <stdbool.h>

/* Moves fd to a high number, out of the way of programs that count their descriptors. Returns fd
 * itself if that fails. A negative fd is returned with errno unchanged. */
int oriel_reserve_fd_move_high(int fd);

/* Reserves the spare descriptor if enough others are free, or restores a spent one. If the program
 * has closed it, or few were free, the next call retries. */
void oriel_reserve_fd_reserve(void);

/* The same in a process that has already reserved one; otherwise does nothing. */
void oriel_reserve_fd_restore(void);

/* Returns true if an operation that failed with this errno may be retried: it needed a descriptor,
 * and the spare is now free. Preserves errno. */
bool oriel_reserve_fd_release(int reason);

/* From now on the calling thread has its own descriptor table, which does not contain the spare. */
void oriel_reserve_fd_detach_thread(void);

#endif
