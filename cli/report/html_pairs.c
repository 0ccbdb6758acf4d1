/* Which ranks accessed and waited for which, in each window of a page. A cell is a pair of rows of
 * ranks. If too many cells are non-empty at the end, pairs of rows are merged until they fit. */
#include "cli/report/html_parts.h"

#include <stdlib.h>

#include "cli/cli.h"
#include "cli/json.h"

struct access {
    uint64_t operations, bytes;
};

struct wait {
    uint64_t by_cause[ORIEL_COUNTED_CAUSES];
};

struct oriel_html_pairs {
    uint32_t windows, rows, ranks_per_row;
    struct {
        struct access *accesses; /* rows x rows: origin, target; NULL while empty */
        struct wait *waits;      /* rows x rows: waiting rank, awaited rank */
    } of[];
};

struct oriel_html_pairs *oriel_html_pairs_new(const struct oriel_html_run *run)
{
    struct oriel_html_pairs *pairs =
        oriel_alloc(sizeof *pairs + run->windows * sizeof pairs->of[0]);
    pairs->windows = run->windows;
    pairs->rows = run->rows;
    pairs->ranks_per_row = run->ranks_per_row;
    return pairs;
}

void oriel_html_pairs_free(struct oriel_html_pairs *pairs)
{
    for (uint32_t i = 0; i < pairs->windows; i++) {
        free(pairs->of[i].accesses);
        free(pairs->of[i].waits);
    }
    free(pairs);
}

static size_t cells_count(const struct oriel_html_pairs *pairs)
{
    return (size_t)pairs->rows * pairs->rows;
}

static size_t cell_of(const struct oriel_html_pairs *pairs, int32_t from, int32_t to)
{
    return (size_t)((uint32_t)from / pairs->ranks_per_row) * pairs->rows +
           (uint32_t)to / pairs->ranks_per_row;
}

/* Returns the matrix, and allocates it with zeros at the first use. */
static void *matrix_get(const struct oriel_html_pairs *pairs, void *matrix, size_t cell_bytes)
{
    return matrix != NULL ? matrix : oriel_alloc(cells_count(pairs) * cell_bytes);
}

void oriel_html_pairs_add(struct oriel_html_pairs *pairs, const struct oriel_html_event *event)
{
    if (event->operation >= 0 && event->target >= 0) {
        struct access *accesses =
            matrix_get(pairs, pairs->of[event->window].accesses, sizeof *accesses);
        struct access *access = &accesses[cell_of(pairs, event->rank, event->target)];
        pairs->of[event->window].accesses = accesses;
        access->operations += event->weight;
        access->bytes += event->bytes * event->weight;
    }
    if (event->waiting_ns != 0 && event->cause_rank >= 0) {
        struct wait *waits = matrix_get(pairs, pairs->of[event->window].waits, sizeof *waits);
        pairs->of[event->window].waits = waits;
        waits[cell_of(pairs, event->rank, event->cause_rank)].by_cause[event->cause] +=
            event->waiting_ns * event->weight;
    }
}

static size_t filled_cells_count(const struct oriel_html_pairs *pairs)
{
    size_t count = 0;
    unsigned cause;
    for (uint32_t window = 0; window < pairs->windows; window++)
        for (size_t i = 0; i < cells_count(pairs); i++) {
            count +=
                pairs->of[window].accesses != NULL && pairs->of[window].accesses[i].operations != 0;
            count += pairs->of[window].waits != NULL &&
                     oriel_html_waiting(pairs->of[window].waits[i].by_cause, &cause) != 0;
        }
    return count;
}

/* Merges 2 x 2 cells into one; a remaining row or column stays unmerged. */
static void matrix_halve(uint64_t *matrix, uint32_t rows, size_t numbers)
{
    uint32_t half = (rows + 1) / 2;
    if (matrix == NULL)
        return;
    for (uint32_t from = 0; from < half; from++)
        for (uint32_t to = 0; to < half; to++)
            for (size_t i = 0; i < numbers; i++) {
                uint64_t sum = 0;
                for (uint32_t x = 2 * from; x < rows && x < 2 * from + 2; x++)
                    for (uint32_t y = 2 * to; y < rows && y < 2 * to + 2; y++)
                        sum += matrix[((size_t)x * rows + y) * numbers + i];
                /* Never overwrites a cell before it is read: a result's index is at most that of
                 * its first source cell. */
                matrix[((size_t)from * half + to) * numbers + i] = sum;
            }
}

uint32_t oriel_html_pairs_fit(struct oriel_html_pairs *pairs)
{
    while (filled_cells_count(pairs) > ORIEL_HTML_PAIRS) {
        for (uint32_t i = 0; i < pairs->windows; i++) {
            matrix_halve((uint64_t *)pairs->of[i].accesses, pairs->rows,
                         sizeof(struct access) / sizeof(uint64_t));
            matrix_halve((uint64_t *)pairs->of[i].waits, pairs->rows,
                         sizeof(struct wait) / sizeof(uint64_t));
        }
        pairs->rows = (pairs->rows + 1) / 2;
        pairs->ranks_per_row *= 2;
    }
    return pairs->ranks_per_row;
}

void oriel_html_pairs_json(const struct oriel_html_pairs *pairs, uint32_t window, json_t *out)
{
    static const char *const keys[2][4] = {{"origin", "target", "operations", "bytes"},
                                           {"rank", "awaited", "ns", "cause"}};
    const struct access *accesses = pairs->of[window].accesses;
    const struct wait *waits = pairs->of[window].waits;
    json_t *columns[2][4];
    for (int table = 0; table < 2; table++) {
        json_t *object = oriel_json_checked(json_object());
        for (int key = 0; key < 4; key++)
            oriel_json_set(object, keys[table][key],
                           columns[table][key] = oriel_json_checked(json_array()));
        oriel_json_set(out, table == 0 ? "pairs" : "waits", object);
    }
    for (size_t i = 0; i < cells_count(pairs); i++) {
        unsigned cause;
        uint64_t values[2][2] = {{0, 0}, {0, 0}};
        if (accesses != NULL) {
            values[0][0] = accesses[i].operations;
            values[0][1] = accesses[i].bytes;
        }
        if (waits != NULL) {
            values[1][0] = oriel_html_waiting(waits[i].by_cause, &cause);
            values[1][1] = cause;
        }
        for (int table = 0; table < 2; table++) {
            if (values[table][0] == 0)
                continue;
            oriel_json_append_number(columns[table][0], i / pairs->rows);
            oriel_json_append_number(columns[table][1], i % pairs->rows);
            oriel_json_append_number(columns[table][2], values[table][0]);
            oriel_json_append_number(columns[table][3], values[table][1]);
        }
    }
}
