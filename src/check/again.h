/* What call sites have found out about their operations: a loop makes the same one again and again, at other places.  What is
 * kept depends on arguments and window alone; the epoch, the range and whatever can change are
 * looked at each time.  windows_operate.c calls. */
#ifndef ORIEL_CHECK_AGAIN_H
#define ORIEL_CHECK_AGAIN_H

#include "check/windows_operate.h"

struct oriel_again;

/* What this thread has kept of the operation from this call site on this window, with these datatypes, counts and operator; NULL:
 * nothing. */
struct oriel_again *oriel_again_find(const struct oriel_operation *operation);

/* Fills in site and types; the arguments are right. */
void oriel_again_fill(const struct oriel_again *again, struct oriel_operation *operation);

/* All of oriel_operation_begin for a small operation of plain bytes in a lock's epoch.  False, and nothing has happened: it is none, or something about it is wrong. */
bool oriel_again_begin(struct oriel_again *again, struct oriel_operation *operation);

/* The arguments were right; window, site and types are filled in. */
void oriel_again_keep(const struct oriel_operation *operation);

#endif
