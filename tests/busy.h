/* Time limits that do not depend on how busy the machine is. */
#ifndef TESTS_BUSY_H
#define TESTS_BUSY_H

#include <stdio.h>
#include <unistd.h>

/* The limit for what takes less than `seconds` on a machine of its own: more by the number of
 * threads that want to run now, or did in the last minute, for each processor. */
static inline unsigned busy_limit_s(unsigned seconds)
{
    double of_minute = 0;
    int now = 0;
    FILE *file = fopen("/proc/loadavg", "r");
    if (file != NULL) {
        if (fscanf(file, "%lf %*f %*f %d", &of_minute, &now) != 2)
            now = 0;
        fclose(file);
    }
    double each = (of_minute > now ? of_minute : now) / (double)sysconf(_SC_NPROCESSORS_ONLN);
    return each > 1 ? (unsigned)(seconds * each) : seconds;
}

#endif
