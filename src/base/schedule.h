/* How the kernel schedules a thread that serves others: at once, and wherever there is room.  What the kernel does not know or
 * refuses stays as it was.  Such a thread calls for itself, when it starts. */
#ifndef ORIEL_BASE_SCHEDULE_H
#define ORIEL_BASE_SCHEDULE_H

/* Who asks for short slices runs as soon as it is woken, where a rank that polls for messages would else keep the processor to
 * the end of its own slice, some milliseconds.  Older kernels ignore it. */
void oriel_schedule_soon(void);

/* Launchers bind ranks to processors.  Who serves works while its origin waits: it may run there, and need not have the
 * processor on which its own rank computes.  What the process may not use at all (its cpuset) the kernel leaves out. */
void oriel_schedule_anywhere(void);

#endif
