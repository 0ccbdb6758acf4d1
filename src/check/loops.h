/* Whether accesses come in a loop, over places at one distance: such ones become one in the tree, where cells would keep each.
 * small.c calls. */
#ifndef ORIEL_CHECK_LOOPS_H
#define ORIEL_CHECK_LOOPS_H

#include "check/history.h"

/* Of this thread's accesses of one kind (a history and a trait, mixed): whether this one continues the last two. */
bool oriel_loop_continues(uint64_t kind, const struct oriel_extent *runs);

#endif
