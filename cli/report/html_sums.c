/* The sums for each window of a page: operations by kind, paths, time in calls and causes of
 * waiting, and histograms of sizes and durations. Histograms have one bin for each power of two of
 * bytes, and four for each power of two of nanoseconds. */
#include "cli/report/html_parts.h"

#include <stdlib.h>

#include "cli/cli.h"
#include "cli/json.h"

enum { SIZES = 65, TIMES = 64 * 4, KINDS = ORIEL_COUNTED_OPERATIONS + ORIEL_COUNTED_CALLS };

struct window_sums {
    uint64_t operations[ORIEL_COUNTED_OPERATIONS][3]; /* count, bytes, ns */
    uint64_t paths[ORIEL_COUNTED_PATHS][2];           /* count, bytes */
    /* count, ns, ns of waiting, calls that waited, longest wait */
    uint64_t calls[ORIEL_COUNTED_CALLS][5];
    uint64_t causes[ORIEL_COUNTED_CAUSES]; /* ns */
    uint64_t sizes[ORIEL_COUNTED_OPERATIONS][SIZES];
    uint64_t times[KINDS][TIMES];
};

struct oriel_html_sums {
    uint32_t windows;
    struct window_sums of[];
};

uint64_t oriel_html_waiting(const uint64_t by_cause[ORIEL_COUNTED_CAUSES], unsigned *cause)
{
    uint64_t sum = 0;
    *cause = 0;
    for (unsigned i = 0; i < ORIEL_COUNTED_CAUSES; i++) {
        sum += by_cause[i];
        if (by_cause[i] > by_cause[*cause])
            *cause = i;
    }
    return sum;
}

struct oriel_html_sums *oriel_html_sums_new(uint32_t windows)
{
    struct oriel_html_sums *sums = oriel_alloc(sizeof *sums + windows * sizeof sums->of[0]);
    sums->windows = windows;
    return sums;
}

void oriel_html_sums_free(struct oriel_html_sums *sums)
{
    free(sums);
}

/* 0 for 0, otherwise 1 plus the base-2 logarithm. */
static unsigned size_bin(uint64_t bytes)
{
    return bytes == 0 ? 0 : 64 - (unsigned)__builtin_clzll(bytes);
}

/* Bin i begins at 2^(i/4) (1 + i%4 / 4) ns; below 4 ns there are no quarters. */
static unsigned time_bin(uint64_t ns)
{
    if (ns < 4)
        return ns < 2 ? 0 : 4;
    unsigned power = 63 - (unsigned)__builtin_clzll(ns);
    return power * 4 + (unsigned)(ns >> (power - 2) & 3);
}

void oriel_html_sums_add(struct oriel_html_sums *sums, const struct oriel_html_event *event)
{
    struct window_sums *of = &sums->of[event->window];
    if (event->operation >= 0) {
        of->operations[event->operation][0] += event->weight;
        of->operations[event->operation][1] += event->bytes * event->weight;
        of->operations[event->operation][2] += event->time_ns;
        of->paths[event->path][0] += event->weight;
        of->paths[event->path][1] += event->bytes * event->weight;
        of->sizes[event->operation][size_bin(event->bytes)] += event->weight;
        of->times[event->operation][time_bin(event->duration_ns)] += event->weight;
    } else {
        uint64_t *call = of->calls[event->call];
        call[0]++;
        call[1] += event->duration_ns;
        call[2] += event->waiting_ns;
        call[3] += event->waiting_ns != 0;
        call[4] = event->waiting_ns > call[4] ? event->waiting_ns : call[4];
        of->times[ORIEL_COUNTED_OPERATIONS + event->call][time_bin(event->duration_ns)]++;
    }
    if (event->waiting_ns != 0)
        of->causes[event->cause] += event->waiting_ns * event->weight;
}

static json_t *numbers_json(const uint64_t *numbers, size_t count)
{
    json_t *list = oriel_json_checked(json_array());
    for (size_t i = 0; i < count; i++)
        oriel_json_append_number(list, numbers[i]);
    return list;
}

#define LISTS(lists)                                                                               \
    number_lists_json((lists)[0], sizeof(lists) / sizeof(lists)[0],                                \
                      sizeof(lists)[0] / sizeof(lists)[0][0])

static json_t *number_lists_json(const uint64_t *numbers, size_t count, size_t each)
{
    json_t *lists = oriel_json_checked(json_array());
    for (size_t i = 0; i < count; i++)
        oriel_json_append(lists, numbers_json(numbers + i * each, each));
    return lists;
}

/* {"first": bin, "counts": [...]} for each kind, without the empty bins at both ends. */
static json_t *histograms_json(const uint64_t *counts, size_t kinds, size_t bins)
{
    json_t *all = oriel_json_checked(json_array());
    for (size_t i = 0; i < kinds; i++, counts += bins) {
        size_t first = 0, end = bins;
        while (end > 0 && counts[end - 1] == 0)
            end--;
        while (first < end && counts[first] == 0)
            first++;
        json_t *one = oriel_json_checked(json_object());
        oriel_json_set(one, "first", json_integer((json_int_t)first));
        oriel_json_set(one, "counts", numbers_json(counts + first, end - first));
        oriel_json_append(all, one);
    }
    return all;
}

void oriel_html_sums_json(const struct oriel_html_sums *sums, uint32_t window, json_t *out)
{
    const struct window_sums *of = &sums->of[window];
    oriel_json_set(out, "operations", LISTS(of->operations));
    oriel_json_set(out, "taken", LISTS(of->paths));
    oriel_json_set(out, "calls", LISTS(of->calls));
    oriel_json_set(out, "causes", numbers_json(of->causes, ORIEL_COUNTED_CAUSES));
    oriel_json_set(out, "sizes", histograms_json(of->sizes[0], ORIEL_COUNTED_OPERATIONS, SIZES));
    oriel_json_set(out, "times", histograms_json(of->times[0], KINDS, TIMES));
}
