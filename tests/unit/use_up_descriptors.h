/* Opens descriptors until the limit is reached. */
#ifndef ORIEL_TESTS_UNIT_USE_UP_DESCRIPTORS_H
#define ORIEL_TESTS_UNIT_USE_UP_DESCRIPTORS_H

#include <fcntl.h>

/* Returns the highest of them. */
static inline int descriptors_use_up(void)
{
    int last = -1;
    for (int fd = open("/dev/null", O_RDONLY | O_CLOEXEC); fd >= 0;
         fd = open("/dev/null", O_RDONLY | O_CLOEXEC))
        last = fd > last ? fd : last;
    return last;
}

#endif
