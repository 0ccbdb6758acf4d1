/* The table of counters and its printed form, from which docs/reference/statistics.md is
 * generated. */
#include "cli/counters.h"

#include <stddef.h>

#include "observe/trace/trace_format.h"

#define ROW(field_, name_, meaning_) {.field = #field_, .name = name_, .meaning = meaning_},

const struct oriel_counter oriel_counted_operations[] = {
#define OPERATION ROW
#include "observe/stats/counters.def"
};
const struct oriel_counter oriel_counted_paths[] = {
#define PATH ROW
#include "observe/stats/counters.def"
};
const struct oriel_counter oriel_counted_calls[] = {
#define CALL ROW
#include "observe/stats/counters.def"
};
const struct oriel_counter oriel_counted_causes[] = {
#define CAUSE ROW
#include "observe/stats/counters.def"
};

static void counter_rows_print(FILE *out, const char *title, const struct oriel_counter *rows,
                               int count)
{
    fprintf(out, "%s:\n", title);
    for (int i = 0; i < count; i++)
        fprintf(out, "  %-18s%-18s%s\n", rows[i].name, rows[i].field, rows[i].meaning);
}

void oriel_counters_print(FILE *out)
{
    fprintf(out, "%-20s%-18s%s\n", "name", "key in JSON", "meaning");
    counter_rows_print(out, "operations", oriel_counted_operations, ORIEL_COUNTED_OPERATIONS);
    counter_rows_print(out, "paths", oriel_counted_paths, ORIEL_COUNTED_PATHS);
    counter_rows_print(out, "calls", oriel_counted_calls, ORIEL_COUNTED_CALLS);
    counter_rows_print(out, "causes", oriel_counted_causes, ORIEL_COUNTED_CAUSES);
}

bool oriel_kind_exists(uint8_t kind)
{
    return kind < ORIEL_COUNTED_OPERATIONS ||
           (kind >= ORIEL_TRACE_CALL && kind < ORIEL_TRACE_CALL + (int)ORIEL_COUNTED_CALLS);
}

const char *oriel_kind_name(uint8_t kind)
{
    /* cppcheck-suppress arrayIndexOutOfBoundsCond; the reader refuses other kinds
     * (trace_reader.c) */
    return kind < ORIEL_TRACE_CALL ? oriel_counted_operations[kind].name
                                   : oriel_counted_calls[kind - ORIEL_TRACE_CALL].name;
}

const char *oriel_flavour_name(uint32_t flavour, const char *otherwise)
{
    static const char *const names[] = {"create", "allocate", "shared", "dynamic"};
    return flavour < sizeof names / sizeof names[0] ? names[flavour] : otherwise;
}

const char *oriel_flavour_call(uint32_t flavour)
{
    static const char *const calls[] = {"MPI_Win_create", "MPI_Win_allocate",
                                        "MPI_Win_allocate_shared", "MPI_Win_create_dynamic"};
    return flavour < sizeof calls / sizeof calls[0] ? calls[flavour] : "?";
}
