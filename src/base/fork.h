/* Handlers that libc calls at a fork.  Each set is registered once, however often it is asked for, and for as long as the process
 * lives.  Any part of the library may ask, from any thread. */
#ifndef ORIEL_BASE_FORK_H
#define ORIEL_BASE_FORK_H

#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>

/* watches: the set's, false at first.  Any of the three may be NULL.  Without memory for them (ORIEL_E_NO_MEM) the next that asks
 * tries again. */
enum oriel_status oriel_fork_watch(_Atomic bool *watches, void (*before)(void),
                                   void (*in_parent)(void), void (*in_child)(void));

#endif
