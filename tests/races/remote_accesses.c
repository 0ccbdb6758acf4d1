/* Only for builds with ThreadSanitizer. When the agent's thread accesses a window's memory for an
 * origin on another node, the access is that process's. Messages between the two processes order
 * it, which the sanitizer does not see; a suppression would cost 0.3 ms per element. The linker
 * wraps the operations (src/CMakeLists.txt): in that thread, loads and stores inside them do not
 * count. Mutexes and atomics, which order threads of one process, still do. */
#include "remote_accesses.h"

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
           (struct oriel_window * window, const struct oriel_span *target,
            struct oriel_elements elements, enum oriel_operator op,
            const struct oriel_operand *origin, const struct oriel_operand *result),
           (window, target, elements, op, origin, result))
FOR_OTHERS(enum oriel_status, oriel_compare_and_swap,
           (struct oriel_window * window, const struct oriel_span *target, const void *origin,
            const void *compare, void *result),
           (window, target, origin, compare, result))
