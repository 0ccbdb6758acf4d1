/* All descriptors that the limit leaves are taken. */
#ifndef ORIEL_TESTS_UNIT_USED_UP_H
#define ORIEL_TESTS_UNIT_USED_UP_H

#include <fcntl.h>

/* The highest of them. */
static inline int descriptors_use_up(void)
{
    int last = -1;
    for (int fd = open("/dev/null", O_RDONLY | O_CLOEXEC); fd >= 0;
         fd = open("/dev/null", O_RDONLY | O_CLOEXEC))
        last = fd > last ? fd : last;
    return last;
}

#endif
