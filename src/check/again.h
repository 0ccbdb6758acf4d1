/* What call sites have found out about their operations: a loop makes the same one again and again, at other places.  What is
 * kept depends on arguments and window alone; the epoch, the range and whatever can change are looked at each time.
 * windows_operate.c calls. */
#ifndef ORIEL_CHECK_AGAIN_H
#define ORIEL_CHECK_AGAIN_H

#include "check/windows_operate.h"

/* All that is to be done before the call, for a small operation of plain bytes in a lock's epoch that this thread has made from
 * this call site before, on this window and with these datatypes, counts and operator.  False, and nothing has happened: it is
 * another one, or something about it is wrong. */
bool oriel_again_begin(struct oriel_operation *operation);

/* And behind it, if it has fetched. */
void oriel_again_end(const struct oriel_operation *operation);

/* Whether such an operation is known, of any size: then site and types are filled in, and the arguments are right. */
bool oriel_again_fill(struct oriel_operation *operation);

/* The arguments were right; window, site and types are filled in. */
void oriel_again_keep(const struct oriel_operation *operation);

#endif
