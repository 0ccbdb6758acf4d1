/* Scheduling of a thread that serves other processes: it runs at once, on any processor that is
 * free. Settings that the kernel does not know or refuses stay unchanged. The thread calls these
 * functions for itself when it starts. */
#ifndef ORIEL_BASE_SCHEDULE_H
#define ORIEL_BASE_SCHEDULE_H

/* A thread with short slices runs as soon as it is woken. Otherwise a rank that polls for messages
 * would keep the processor to the end of its own slice, some milliseconds. Older kernels ignore the
 * setting. */
void oriel_schedule_short_slices(void);

/* Launchers bind ranks to processors. A serving thread works while its origin waits. It may run on
 * the origin's processor and does not need the one on which its own rank computes. The kernel
 * excludes processors outside the process's cpuset. */
void oriel_schedule_all_processors(void);

#endif
