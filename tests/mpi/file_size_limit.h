/* Limits the size of files from now on to TEST_FILE_BYTES, if set. Not from the start, since hosts
 * need larger ones for themselves and for windows that are not under test. test_full_disk.py checks
 * the files of programs that call it. */
#ifndef ORIEL_TESTS_FILE_SIZE_LIMIT_H
#define ORIEL_TESTS_FILE_SIZE_LIMIT_H

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
