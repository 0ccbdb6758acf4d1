/* The job this process belongs to. */
#ifndef ORIEL_BASE_JOB_H
#define ORIEL_BASE_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The same in all processes of a job on this node, and rarely equal to another job's. */
uint64_t oriel_job_find(void);

/* The rank from the launcher's environment; -1 if there is none. */
int32_t oriel_job_rank(void);

/* The kernel's name of the parent process, at most 15 characters; false if it is hidden. */
bool oriel_job_parent_name(char *out, size_t room);

#endif
