/* The job this process belongs to. */
#ifndef ORIEL_BASE_JOB_H
#define ORIEL_BASE_JOB_H

#include <stdint.h>

/* The same in all processes of a job on this node, and rarely equal to another job's. */
uint64_t oriel_job_find(void);

/* The rank from the launcher's environment; -1 if there is none. */
int32_t oriel_job_rank(void);

#endif
