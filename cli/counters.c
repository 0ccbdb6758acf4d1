/* The counters by their table: what `oriel run --counters` prints, and docs/statistics.md is made from.
 * Called by run.c. */
#include "cli/statistics.h"

static void print_rows(FILE *out, const char *title, const struct oriel_counter *rows, int count)
{
    fprintf(out, "%s:\n", title);
    for (int i = 0; i < count; i++)
        fprintf(out, "  %-18s%-18s%s\n", rows[i].name, rows[i].field, rows[i].meaning);
}

void oriel_counters_print(FILE *out)
{
    fprintf(out, "%-20s%-18s%s\n", "name", "key in JSON", "meaning");
    print_rows(out, "operations", oriel_counted_operations, ORIEL_COUNTED_OPERATIONS);
    print_rows(out, "paths", oriel_counted_paths, ORIEL_COUNTED_PATHS);
    print_rows(out, "calls", oriel_counted_calls, ORIEL_COUNTED_CALLS);
    print_rows(out, "causes", oriel_counted_causes, ORIEL_COUNTED_CAUSES);
}
