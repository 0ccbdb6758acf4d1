/* The table of Oriel's performance variables. Counters are sums over all windows of this process,
 * or bound to one window; some of the latter have an element for each rank of the window. Levels
 * are what the process has at the time. All are unsigned long long, and times are nanoseconds. */
#ifndef ORIEL_TOOL_PERFORMANCE_VARIABLES_H
#define ORIEL_TOOL_PERFORMANCE_VARIABLES_H

#include "observe/stats/counter_sums.h"

#include <stdbool.h>

/* The categories of Oriel's variables, in the order of their indices. */
enum oriel_tool_category {
    ORIEL_CATEGORY_ALL,
    ORIEL_CATEGORY_OPTIONS,
    ORIEL_CATEGORY_OPERATIONS,
    ORIEL_CATEGORY_PATHS,
    ORIEL_CATEGORY_CALLS,
    ORIEL_CATEGORY_CAUSES,
    ORIEL_CATEGORY_MEMORY,
    ORIEL_TOOL_CATEGORIES
};

struct oriel_performance_variable {
    const char *name;
    const char *description;
    int verbosity; /* MPI_T_VERBOSITY_* */
    int class;     /* MPI_T_PVAR_CLASS_* */
    enum oriel_tool_category category;
    uint64_t (*level)(void);              /* the value of a level; NULL: a counter */
    enum oriel_counter_quantity quantity; /* of a counter; likewise below */
    unsigned item;                        /* kind of call, path or cause */
    bool of_window;                       /* bound to a window; otherwise of the process */
};

/* memory_variables.c: bytes of this process's memory in Oriel's windows, of its memory file, and of
 * the blocks in use there. */
uint64_t oriel_memory_of_windows(void);
uint64_t oriel_memory_of_file(void);
uint64_t oriel_memory_of_blocks(void);

/* The number of Oriel's performance variables. */
extern const int oriel_performance_variables_count __attribute__((visibility("hidden")));

/* The variable at an index below that. */
const struct oriel_performance_variable *oriel_performance_variable(int index);

#endif
