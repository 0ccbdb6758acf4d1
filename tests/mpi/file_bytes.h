/* How large files may become from now on, if TEST_FILE_BYTES says it: not from the beginning, since
 * hosts need larger ones for themselves and for windows than are of interest.  Called by programs
 * whose files test_full_disk.py looks at. */
#ifndef ORIEL_TEST_FILE_BYTES_H
#define ORIEL_TEST_FILE_BYTES_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static inline void limit_file_bytes(void)
{
    const char *bytes = getenv("TEST_FILE_BYTES");
    if (bytes == NULL)
        return;
    const struct rlimit limit = {.rlim_cur = (rlim_t)atol(bytes), .rlim_max = (rlim_t)atol(bytes)};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        perror("setrlimit");
}

#endif
