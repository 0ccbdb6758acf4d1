/* The largest size of a file that this process may create. ftruncate beyond the limit
 * (RLIMIT_FSIZE) would fail and also send a signal that ends the process. Memory files are resized
 * only through this file. */
#ifndef ORIEL_BASE_FILE_LIMIT_H
#define ORIEL_BASE_FILE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* The limit in bytes; UINT64_MAX if there is none. */
uint64_t oriel_file_limit(void);

/* Resizes the file. Returns false with errno, which is EFBIG if the size is beyond the limit. */
bool oriel_file_resize(int fd, uint64_t len_bytes);

#endif
