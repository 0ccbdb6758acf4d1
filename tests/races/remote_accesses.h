/* For remote_accesses.c, reply_copies.c and agent.c: wraps a function by the linker. Inside it,
 * loads and stores of the net's agent, or of any caller while the condition holds, do not count.
 * The wrapper has the type of the function, so the compiler refuses other parameters. */
#include <stdbool.h>

extern _Thread_local bool oriel_net_in_agent; /* transport/ucx/internal.h */

void AnnotateIgnoreWritesBegin(const char *file, int line); /* loads as well */
void AnnotateIgnoreWritesEnd(const char *file, int line);

#define FOR_OTHERS(type, name, parameters, arguments)                                              \
    FOR_OTHERS_IF(oriel_net_in_agent, type, name, parameters, arguments)

#define FOR_OTHERS_IF(condition, type, name, parameters, arguments)                                \
    __typeof__(name) __real_##name, __wrap_##name;                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        const bool is_anothers = (condition);                                                      \
        if (is_anothers)                                                                           \
            AnnotateIgnoreWritesBegin(__FILE__, __LINE__);                                         \
        type returned = __real_##name arguments;                                                   \
        if (is_anothers)                                                                           \
            AnnotateIgnoreWritesEnd(__FILE__, __LINE__);                                           \
        return returned;                                                                           \
    }
