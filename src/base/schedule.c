/* Requests short time slices and all processors from the kernel (schedule.h). */
#include "base/schedule.h"

#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SLICE_NS = 100000 };

/* The kernel's struct sched_attr; glibc's headers have it only from 2.41. */
struct attributes {
    uint32_t size_bytes;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns; /* for SCHED_OTHER from Linux 6.12: the time slice */
    uint64_t deadline_ns;
    uint64_t period_ns;
};

void oriel_schedule_short_slices(void)
{
    struct attributes attributes = {.size_bytes = 0};
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0 ||
        attributes.policy != SCHED_OTHER)
        return;
    attributes.size_bytes = sizeof attributes;
    attributes.runtime_ns = SLICE_NS;
    syscall(SYS_sched_setattr, 0, &attributes, 0);
}

void oriel_schedule_all_processors(void)
{
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    sched_setaffinity(0, sizeof all, &all);
}
