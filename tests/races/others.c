/* Builds for ThreadSanitizer alone: what the agent's thread does to a window's memory for an origin on another machine is that
 * process's access, and ordered by what the two processes tell each other, of which the sanitizer sees nothing; a suppression
 * would take 0.3 ms for each element.  The linker puts these in front of the operations (src/CMakeLists.txt): in that thread
 * loads and stores inside them do not count.  What orders threads of one process, mutexes and atomics, still does. */
#include "others.h"

#include "rma/rma.h"

FOR_OTHERS(enum oriel_status, oriel_put,
           (struct oriel_window * window, const struct oriel_span *target, const void *here,
            const struct oriel_side *origin),
           (window, target, here, origin))
FOR_OTHERS(enum oriel_status, oriel_get,
           (struct oriel_window * window, const struct oriel_span *target, void *here,
            const struct oriel_side *origin),
           (window, target, here, origin))
FOR_OTHERS(enum oriel_status, oriel_accumulate,
           (struct oriel_window * window, const struct oriel_span *target, uint64_t count,
            enum oriel_operator operator, const struct oriel_operand * origin,
            const struct oriel_operand *result),
           (window, target, count, operator, origin, result))
FOR_OTHERS(enum oriel_status, oriel_compare_and_swap,
           (struct oriel_window * window, const struct oriel_span *target, const void *origin,
            const void *compare, void *result),
           (window, target, origin, compare, result))
