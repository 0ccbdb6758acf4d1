/* Calls by call site, for each window of the page. At most ORIEL_HTML_SITES rows, those with the
 * most time; the others become their windows' other call sites. */
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "cli/cli.h"
#include "cli/json.h"
#include "cli/report/html_parts.h"

struct html_site {
    uint32_t window, place;
    uint8_t kind;
    uint64_t count, bytes, time_ns, waiting_ns, waited, longest_ns;
};

struct oriel_html_sites {
    const struct oriel_traces *traces;
    struct html_site *rows;
    size_t count, room;
    struct oriel_hash_table known; /* from window, place and kind to the row's index, plus 1 */
    uint32_t *places;              /* from the run's place to the page's; 0: others */
    uint32_t places_count;         /* on the page, with place 0 */
};

struct oriel_html_sites *oriel_html_sites_new(const struct oriel_html_run *run)
{
    struct oriel_html_sites *sites = oriel_alloc(sizeof *sites);
    *sites = (struct oriel_html_sites){.traces = run->traces, .known = ORIEL_HASH_TABLE_INIT};
    return sites;
}

void oriel_html_sites_free(struct oriel_html_sites *sites)
{
    oriel_hash_table_close(&sites->known);
    free(sites->rows);
    free(sites->places);
    free(sites);
}

static struct html_site *row_get(struct oriel_html_sites *sites, uint32_t window, uint32_t place,
                                 uint8_t kind)
{
    uint64_t key = (uint64_t)window << 40 | (uint64_t)place << 8 | kind;
    uintptr_t index = (uintptr_t)oriel_hash_table_find(&sites->known, key);
    if (index != 0)
        return &sites->rows[index - 1];
    if (sites->count == sites->room) {
        sites->room = sites->room == 0 ? 64 : 2 * sites->room;
        sites->rows =
            oriel_alloc_checked(reallocarray(sites->rows, sites->room, sizeof *sites->rows));
    }
    sites->rows[sites->count] = (struct html_site){.window = window, .place = place, .kind = kind};
    index = ++sites->count;
    if (!oriel_hash_table_set(&sites->known, key, (void *)index))
        oriel_die("out of memory");
    return &sites->rows[index - 1];
}

void oriel_html_sites_add(struct oriel_html_sites *sites, const struct oriel_html_event *event)
{
    struct html_site *row = row_get(sites, event->window, event->place, event->kind);
    row->count += event->weight;
    row->bytes += event->bytes * event->weight;
    row->time_ns += event->time_ns;
    row->waiting_ns += event->waiting_ns * event->weight;
    row->waited += event->waiting_ns != 0 ? event->weight : 0;
    if (event->waiting_ns > row->longest_ns)
        row->longest_ns = event->waiting_ns;
}

static int more_time_first(const void *left, const void *right)
{
    const struct html_site *a = left, *b = right;
    if (a->time_ns != b->time_ns)
        return a->time_ns > b->time_ns ? -1 : 1;
    return a->place != b->place ? (a->place < b->place ? -1 : 1) : (int)a->kind - (int)b->kind;
}

/* Joins row to its window's other call sites, which are behind the first ORIEL_HTML_SITES rows. */
static void others_join(struct oriel_html_sites *sites, const struct html_site *row, size_t *end)
{
    size_t at = ORIEL_HTML_SITES;
    while (at < *end &&
           (sites->rows[at].window != row->window || sites->rows[at].kind != row->kind))
        at++;
    struct html_site *others = &sites->rows[at];
    if (at == *end) {
        *others = *row;
        others->place = ORIEL_PLACE_OTHERS;
        ++*end;
        return;
    }
    others->count += row->count;
    others->bytes += row->bytes;
    others->time_ns += row->time_ns;
    others->waiting_ns += row->waiting_ns;
    others->waited += row->waited;
    if (row->longest_ns > others->longest_ns)
        others->longest_ns = row->longest_ns;
}

/* Numbers the places of the rows that stay. */
static void places_number(struct oriel_html_sites *sites)
{
    sites->places = oriel_alloc(sites->traces->sites.places_count * sizeof *sites->places);
    sites->places_count = 1;
    for (size_t i = 0; i < sites->count; i++) {
        uint32_t *place = &sites->places[sites->rows[i].place];
        if (sites->rows[i].place != ORIEL_PLACE_OTHERS && *place == 0)
            *place = sites->places_count++;
    }
}

void oriel_html_sites_fit(struct oriel_html_sites *sites)
{
    if (sites->count > 0)
        qsort(sites->rows, sites->count, sizeof *sites->rows, more_time_first);
    size_t end = ORIEL_HTML_SITES;
    for (size_t i = ORIEL_HTML_SITES; i < sites->count; i++) {
        const struct html_site row = sites->rows[i];
        others_join(sites, &row, &end);
    }
    if (sites->count > end)
        sites->count = end;
    places_number(sites);
}

uint32_t oriel_html_sites_place(const struct oriel_html_sites *sites, uint32_t place)
{
    return sites->places[place];
}

static json_t *place_json(const struct oriel_code_address *place)
{
    char text[ORIEL_CODE_ADDRESS_TEXT];
    oriel_code_address_text(place, text);
    const struct {
        const char *key, *text;
    } texts[] = {{"text", text},
                 {"function", place->function},
                 {"file", place->file},
                 {"module", place->module},
                 {"inlined", place->inlined}};
    json_t *out = oriel_json_checked(json_object());
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        oriel_json_set(out, texts[i].key, oriel_json_text(texts[i].text, strlen(texts[i].text)));
    oriel_json_set(out, "line", place->file[0] != '\0' ? json_integer(place->line) : json_null());
    return out;
}

json_t *oriel_html_places_json(const struct oriel_html_sites *sites)
{
    const struct oriel_site_sums *all = &sites->traces->sites;
    json_t *list = oriel_json_checked(json_array());
    for (uint32_t i = 0; i < sites->places_count; i++)
        oriel_json_append(list, json_null());
    for (size_t i = 0; i < all->places_count; i++)
        if (sites->places[i] != 0)
            json_array_set_new(list, sites->places[i],
                               oriel_json_checked(place_json(&all->places[i])));
    return list;
}

/* Rows of figures: place, kind, number, bytes, time, waiting, waited, longest. */
void oriel_html_sites_json(const struct oriel_html_sites *sites, uint32_t window, json_t *out)
{
    json_t *list = oriel_json_checked(json_array());
    for (size_t i = 0; i < sites->count; i++) {
        const struct html_site *row = &sites->rows[i];
        if (row->window != window)
            continue;
        const uint64_t figures[] = {
            sites->places[row->place], row->kind,   row->count,     row->bytes, row->time_ns,
            row->waiting_ns,           row->waited, row->longest_ns};
        json_t *line = oriel_json_checked(json_array());
        for (size_t j = 0; j < sizeof figures / sizeof figures[0]; j++)
            oriel_json_append_number(line, figures[j]);
        oriel_json_append(list, line);
    }
    oriel_json_set(out, "sites", list);
}
