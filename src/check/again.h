/* What call sites have found out about their operations: a loop makes the same one again and again, at other places.  What is
 * kept depends on the arguments alone; the epoch, the range and whatever can change are looked at each time.  windows_operate.c
 * calls. */
#ifndef ORIEL_CHECK_AGAIN_H
#define ORIEL_CHECK_AGAIN_H

#include "check/windows_operate.h"

/* Whether this thread has made the operation from this call site before, with these datatypes, counts and operator: then site and
 * types are filled in, and the arguments are right. */
bool oriel_again_find(struct oriel_operation *operation);

/* The arguments were right. */
void oriel_again_keep(const struct oriel_operation *operation);

#endif
