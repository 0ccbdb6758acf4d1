/* The call sites that created windows: as module and offset while the program runs, and as
 * function, file and line at its end. The `oriel` command resolves them, which takes some ten
 * milliseconds. One process of a window requests it, its first in this world. */
#include "observe/stats/observed_window.h"

#include "base/code_address.h"
#include "base/helper_process.h"
#include "base/python_frames.h"
#include "memory/file.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct site_entry {
    struct oriel_window_record *record;
    unsigned place;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct oriel_code_address *call_sites;
static struct site_entry site_entries[ORIEL_RECORDS_MOST];
static unsigned call_sites_count, site_entries_count;

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static void write_site(const struct oriel_code_address *place, struct oriel_window_record *record)
{
    enum { PART = 40 };
    const char *function = place->function[0] == '\0' ? "?" : place->function;
    if (place->file[0] != '\0')
        snprintf(record->site, sizeof record->site, "%.*s at %.*s:%u", PART, function, PART,
                 last_part(place->file), (unsigned)place->line);
    else if (place->function[0] != '\0')
        snprintf(record->site, sizeof record->site, "%.*s in %.*s", PART, function, PART,
                 last_part(place->module));
    else
        snprintf(record->site, sizeof record->site, "%.*s+0x%lx", PART, last_part(place->module),
                 (unsigned long)place->offset);
}

/* The index of the call site; call_sites_count without memory. */
static unsigned call_site_add(const struct oriel_code_address *place)
{
    unsigned at = 0;
    while (at < call_sites_count && memcmp(&call_sites[at], place, sizeof *place) != 0)
        at++;
    if (at < call_sites_count)
        return at;
    struct oriel_code_address *more =
        realloc(call_sites, (call_sites_count + 1) * sizeof *call_sites);
    if (more == NULL)
        return at;
    call_sites = more;
    call_sites[call_sites_count++] = *place;
    return at;
}

/* Whether no earlier rank will request it. */
static bool resolves_site(const struct oriel_window_record *record)
{
    const int32_t *ranks = (const int32_t *)(oriel_file_base() + record->ranks);
    int32_t first = 0;
    while (first < record->rank && ranks[first] < 0)
        first++;
    return first == record->rank;
}

/* Replaces a place in a binding of Python by the line in Python. */
static void python_place_find(struct oriel_code_address *place)
{
    struct oriel_python_frame frame;
    if (!oriel_python_is_binding(place->module) || !oriel_python_frame_find(true, &frame))
        return;
    *place = (struct oriel_code_address){.line = frame.line};
    memcpy(place->file, frame.file, sizeof frame.file);
    memcpy(place->function, frame.function, sizeof frame.function);
}

void oriel_window_sites_add(struct oriel_window_record *record)
{
    struct oriel_code_address place;
    if (!oriel_code_address_caller(&place))
        return;
    python_place_find(&place);
    write_site(&place, record);
    pthread_mutex_lock(&mutex);
    unsigned at = resolves_site(record) && site_entries_count < ORIEL_RECORDS_MOST
                      ? call_site_add(&place)
                      : call_sites_count;
    if (at < call_sites_count)
        site_entries[site_entries_count++] = (struct site_entry){record, at};
    pthread_mutex_unlock(&mutex);
}

void oriel_window_sites_resolve(void)
{
    void *answer = NULL;
    size_t answer_bytes = 0;
    size_t len_bytes = call_sites_count * sizeof *call_sites;
    if (len_bytes > 0 &&
        oriel_helper_request(ORIEL_HELPER_PLACES, call_sites, len_bytes, &answer, &answer_bytes) &&
        answer_bytes == len_bytes)
        for (unsigned i = 0; i < site_entries_count; i++) {
            write_site((const struct oriel_code_address *)answer + site_entries[i].place,
                       site_entries[i].record);
            site_entries[i].record->has_line = 1;
            oriel_traced_describe(site_entries[i].record);
        }
    free(answer);
}
