/* The windows of a job with the sums of their ranks' rates. */
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/top/top.h"

/* The record of one rank or thread in a window. */
struct part {
    const struct oriel_record_seen *record;
    size_t process;
};

static int compare_parts(const void *a, const void *b)
{
    const struct part *left = a, *right = b;
    if (left->record->window_id != right->record->window_id)
        return left->record->window_id < right->record->window_id ? -1 : 1;
    return (left->process > right->process) - (left->process < right->process);
}

static int compare_windows(const void *a, const void *b)
{
    const struct oriel_top_window *left = a, *right = b;
    if (left->bytes_rate != right->bytes_rate)
        return left->bytes_rate > right->bytes_rate ? -1 : 1;
    if (left->operations_rate != right->operations_rate)
        return left->operations_rate > right->operations_rate ? -1 : 1;
    return (left->window_id > right->window_id) - (left->window_id < right->window_id);
}

/* Lists the records of existing windows, those of one window together. */
static size_t parts_list(const struct oriel_waits *waits, struct part **out)
{
    size_t all = 0;
    size_t count = 0;
    for (size_t i = 0; i < waits->count; i++)
        all += waits->processes[i].records_count;
    struct part *parts = oriel_alloc((all + 1) * sizeof *parts);
    for (size_t i = 0; i < waits->count; i++) {
        const struct oriel_process *process = &waits->processes[i];
        for (size_t k = 0; !process->has_ended && k < process->records_count; k++)
            if (!process->records[k].is_freed)
                parts[count++] = (struct part){.record = &process->records[k], .process = i};
    }
    qsort(parts, count, sizeof *parts, compare_parts);
    *out = parts;
    return count;
}

size_t oriel_top_windows(const struct oriel_waits *waits, struct oriel_top_window **out)
{
    struct part *parts;
    size_t count = 0;
    size_t parts_count = parts_list(waits, &parts);
    struct oriel_top_window *windows = oriel_alloc((parts_count + 1) * sizeof *windows);
    for (size_t i = 0; i < parts_count; i++) {
        const struct oriel_record_seen *record = parts[i].record;
        bool is_next = i == 0 || parts[i - 1].record->window_id != record->window_id;
        if (is_next)
            windows[count++] =
                (struct oriel_top_window){.window_id = record->window_id, .name = ""};
        struct oriel_top_window *window = &windows[count - 1];
        window->ranks += is_next || parts[i - 1].process != parts[i].process;
        if (record->name[0] != '\0')
            window->name = record->name;
        window->flavour = record->flavour > window->flavour ? record->flavour : window->flavour;
        window->operations_rate += record->operations_rate;
        window->bytes_rate += record->bytes_rate;
    }
    free(parts);
    qsort(windows, count, sizeof *windows, compare_windows);
    *out = windows;
    return count;
}
