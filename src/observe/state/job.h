/* Which job this process belongs to.  state.c and `oriel run --watch` call. */
#ifndef ORIEL_OBSERVE_STATE_JOB_H
#define ORIEL_OBSERVE_STATE_JOB_H

#include <stdint.h>

/* The same in all processes of a job on this machine, and seldom another job's. */
uint64_t oriel_job_find(void);

/* The rank that the launcher gave this process; -1 where it says none. */
int32_t oriel_job_rank(void);

#endif
