/* Marks are sorted by location, beginning and end, the longest first, so an outer one precedes its
 * inner ones. A location's open marks are a list from the innermost to the outermost. */
#include "cli/report/otf2/otf2_marks.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "base/siphash.h"
#include "cli/cli.h"
#include "cli/region_sums.h"

enum { NONE = -1 };

struct mark {
    uint64_t location;
    int64_t begin_ns, end_ns;
    int64_t outer; /* of an open one: index of the next outer one, or NONE */
    uint32_t name;
};

struct cursor {
    int64_t next, end; /* indices of the location's marks that have not begun */
    int64_t innermost; /* index of the open mark, or NONE */
};

struct oriel_otf2_marks {
    struct mark *list;
    int64_t count;
    struct cursor *cursors; /* by location */
    const char **names;     /* of the traces */
    uint32_t names_count;
    struct oriel_hash_table known; /* from a digest of a name to its index, plus 1 */
};

static uint32_t name_index(struct oriel_otf2_marks *marks, const char *name)
{
    static const uint64_t key[2] = {5, 6};
    uint64_t digest = oriel_siphash(key, name, strlen(name));
    uintptr_t index = (uintptr_t)oriel_hash_table_find(&marks->known, digest);
    if (index != 0)
        return (uint32_t)index - 1;
    marks->names = oriel_alloc_checked(
        reallocarray(marks->names, marks->names_count + 1, sizeof *marks->names));
    marks->names[marks->names_count++] = name;
    if (!oriel_hash_table_set(&marks->known, digest, (void *)(uintptr_t)marks->names_count))
        oriel_die("out of memory");
    return marks->names_count - 1;
}

static bool mark_append(const struct oriel_trace_mark_record *record, void *context)
{
    struct oriel_otf2_marks *marks = context;
    const bool is_pause = record->mark->kind == ORIEL_MARK_PAUSE;
    if ((marks->count & (marks->count - 1)) == 0) /* a power of two, or 0 */
        marks->list = oriel_alloc_checked(reallocarray(
            marks->list, marks->count == 0 ? 1 : 2 * (size_t)marks->count, sizeof *marks->list));
    marks->list[marks->count++] = (struct mark){
        .location = (uint64_t)record->rank * ORIEL_OTF2_LOCATIONS +
                    (is_pause ? ORIEL_OTF2_PAUSES : record->mark->thread),
        .begin_ns = record->begin_ns,
        .end_ns = record->end_ns,
        .name = is_pause ? ORIEL_OTF2_PAUSED : name_index(marks, oriel_region_title(record->name))};
    return true;
}

static int compare_marks(const void *left, const void *right)
{
    const struct mark *a = left, *b = right;
    if (a->location != b->location)
        return a->location < b->location ? -1 : 1;
    if (a->begin_ns != b->begin_ns)
        return a->begin_ns < b->begin_ns ? -1 : 1;
    return (a->end_ns < b->end_ns) - (a->end_ns > b->end_ns);
}

struct oriel_otf2_marks *oriel_otf2_marks_new(const struct oriel_traces *traces)
{
    struct oriel_otf2_marks *marks = oriel_alloc(sizeof *marks);
    size_t locations = traces->ranks_count * ORIEL_OTF2_LOCATIONS;
    int64_t next = 0;
    marks->known = (struct oriel_hash_table)ORIEL_HASH_TABLE_INIT;
    marks->names = oriel_alloc(sizeof *marks->names);
    marks->names[marks->names_count++] = "paused"; /* a region of that name is another one */
    oriel_traces_marks_each(traces, mark_append, marks);
    if (marks->count > 0)
        qsort(marks->list, (size_t)marks->count, sizeof *marks->list, compare_marks);
    marks->cursors = oriel_alloc(locations * sizeof *marks->cursors);
    for (size_t i = 0; i < locations; i++) {
        struct cursor *cursor = &marks->cursors[i];
        *cursor = (struct cursor){.next = next, .innermost = NONE};
        while (next < marks->count && marks->list[next].location == i)
            next++;
        cursor->end = next;
    }
    return marks;
}

void oriel_otf2_marks_free(struct oriel_otf2_marks *marks)
{
    oriel_hash_table_close(&marks->known);
    free(marks->cursors);
    free(marks->names);
    free(marks->list);
    free(marks);
}

const char *const *oriel_otf2_marks_names(const struct oriel_otf2_marks *marks, uint32_t *count)
{
    *count = marks->names_count;
    return marks->names;
}

bool oriel_otf2_marks_step(struct oriel_otf2_marks *marks, uint64_t location, int64_t until_ns,
                           struct oriel_otf2_step *out)
{
    struct cursor *cursor = &marks->cursors[location];
    const struct mark *open = cursor->innermost != NONE ? &marks->list[cursor->innermost] : NULL;
    struct mark *fresh = cursor->next < cursor->end ? &marks->list[cursor->next] : NULL;
    if (open != NULL && open->end_ns <= until_ns &&
        (fresh == NULL || open->end_ns <= fresh->begin_ns)) {
        *out = (struct oriel_otf2_step){.at_ns = open->end_ns, .name = open->name};
        cursor->innermost = open->outer;
        return true;
    }
    if (fresh == NULL || fresh->begin_ns > until_ns)
        return false;
    *out =
        (struct oriel_otf2_step){.at_ns = fresh->begin_ns, .name = fresh->name, .is_enter = true};
    fresh->outer = cursor->innermost;
    cursor->innermost = cursor->next++;
    return true;
}
