/* Handlers that libc runs at a fork. Each set is registered once, for the life of the process,
 * regardless of the number of calls. Thread-safe. */
#ifndef ORIEL_BASE_FORK_H
#define ORIEL_BASE_FORK_H

#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>

/* watches is the set's flag, initially false. Any of the three handlers may be NULL. If
 * registration runs out of memory (ORIEL_E_NO_MEM), the next call retries. */
enum oriel_status oriel_fork_register(_Atomic bool *watches, void (*before)(void),
                                      void (*in_parent)(void), void (*in_child)(void));

#endif
