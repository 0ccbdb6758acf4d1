/* How large a file of this process may become.  ftruncate beyond the limit (RLIMIT_FSIZE) would not only fail, but send a signal
 * that ends the process.  Whoever makes a memory file asks, and sets its size here. */
#ifndef ORIEL_BASE_FILE_LIMIT_H
#define ORIEL_BASE_FILE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* In bytes; UINT64_MAX without a limit. */
uint64_t oriel_size_most(void);

/* False with errno, EFBIG beyond the limit. */
bool oriel_size_set(int fd, uint64_t len_bytes);

#endif
