/* A comparison for other programs: JSON, which the page uses too, and CSV. */
#include "cli/report/compare.h"

#include <string.h>

#include "cli/counters.h"
#include "cli/json.h"

/* A whole number without a fraction. */
static json_t *amount_json(double amount)
{
    return amount < 1e15 && (double)(json_int_t)amount >= amount ? json_integer((json_int_t)amount)
                                                                 : json_real(amount);
}

static void amounts_json(const struct oriel_amounts *amounts, json_t *out)
{
    for (int i = 0; i < ORIEL_QUANTITIES; i++) {
        const double *of = amounts->of[i];
        if (of[0] <= 0 && of[1] <= 0)
            continue;
        json_t *pair = oriel_json_checked(json_array());
        for (int side = 0; side < 2; side++)
            oriel_json_append(pair, amount_json(of[side]));
        oriel_json_set(out, oriel_quantity_names[i], pair);
    }
}

static json_t *row_json(const struct oriel_compared_row *row)
{
    char name[32];
    json_t *object = oriel_json_checked(json_object());
    oriel_json_set(object, "table", json_string(oriel_compared_table_name(row->table)));
    oriel_json_set(object, "row", json_string(oriel_compared_row_name(row, name)));
    amounts_json(&row->amounts, object);
    return object;
}

static const struct oriel_window_sum *latest_window(const struct oriel_compared_window *window)
{
    return window->first[1] != NULL ? window->first[1] : window->first[0];
}

static const char *flavour_text(const struct oriel_window_sum *window)
{
    return window->shared_by > 0 ? "" : oriel_flavour_call(window->flavour);
}

static json_t *window_json(const struct oriel_compared_window *window, size_t ranks_most)
{
    const struct oriel_window_sum *sum = latest_window(window);
    json_t *object = oriel_json_checked(json_object());
    json_t *windows = oriel_json_checked(json_array());
    json_t *total = oriel_json_checked(json_object());
    json_t *rows = oriel_json_checked(json_array());
    oriel_json_set(object, "name", oriel_json_text(sum->name, strlen(sum->name)));
    oriel_json_set(object, "flavour", json_string(flavour_text(sum)));
    oriel_json_set(object, "site", oriel_json_text(sum->site, strlen(sum->site)));
    for (int side = 0; side < 2; side++)
        oriel_json_append_number(windows, window->windows[side]);
    oriel_json_set(object, "windows", windows);
    amounts_json(&window->total, total);
    oriel_json_set(object, "total", total);
    size_t ranks = 0;
    for (size_t i = 0; i < window->rows_count; i++) {
        ranks += window->rows[i].table == ORIEL_COMPARED_RANKS;
        if (ranks <= ranks_most)
            oriel_json_append(rows, row_json(&window->rows[i]));
    }
    oriel_json_set(object, "rows", rows);
    if (ranks > ranks_most)
        oriel_json_set(object, "ranks_left_out", json_integer((json_int_t)(ranks - ranks_most)));
    return object;
}

static json_t *run_json(const struct oriel_reported_run *run)
{
    json_t *object = oriel_json_checked(json_object());
    oriel_json_set(object, "path", oriel_json_text(run->path, strlen(run->path)));
    oriel_json_set(object, "program", oriel_json_text(run->head.program, sizeof run->head.program));
    oriel_json_set(object, "host", oriel_json_text(run->head.host, sizeof run->head.host));
    oriel_json_set(object, "host_version",
                   oriel_json_text(run->head.host_version, sizeof run->head.host_version));
    oriel_json_set(object, "oriel", oriel_json_text(run->head.version, sizeof run->head.version));
    oriel_json_set(object, "ranks", json_integer(run->head.ranks));
    oriel_json_set(object, "traced", json_boolean(run->sum.is_traced));
    return object;
}

static json_t *text_or_null(const char *text)
{
    return oriel_json_text(text, strlen(text));
}

static int latest_side(const struct oriel_compared_site *site)
{
    return site->first[1] != NULL;
}

static json_t *site_json(const struct oriel_comparison *comparison,
                         const struct oriel_compared_site *site)
{
    char text[ORIEL_CODE_ADDRESS_TEXT];
    const int side = latest_side(site);
    const struct oriel_site_sum *sum = site->first[side];
    const struct oriel_code_address *place = &comparison->runs[side]->sum.sites.places[sum->place];
    json_t *object = oriel_json_checked(json_object());
    oriel_json_set(object, "call", json_string(oriel_kind_name(sum->kind)));
    oriel_compared_site_text(comparison, site, side, text);
    oriel_json_set(object, "site", text_or_null(text));
    oriel_json_set(object, "function", text_or_null(place->function));
    oriel_json_set(object, "file", text_or_null(place->file));
    oriel_json_set(object, "line",
                   place->file[0] != '\0' ? json_integer(place->line) : json_null());
    oriel_json_set(object, "module", text_or_null(place->module));
    oriel_json_set(object, "offset",
                   place->offset != 0 ? json_integer((json_int_t)place->offset) : json_null());
    if (side == 1 && site->first[0] != NULL) {
        oriel_compared_site_text(comparison, site, 0, text);
        oriel_json_set(object, "site_before", text_or_null(text));
    }
    amounts_json(&site->amounts, object);
    return object;
}

/* Sets the list, which has the first of count entries, and how many it leaves out. */
static void list_json(const char *key, json_t *list, size_t count, json_t *out)
{
    char left_out[32];
    if (json_array_size(list) < count) {
        snprintf(left_out, sizeof left_out, "%s_left_out", key);
        oriel_json_set(out, left_out, json_integer((json_int_t)(count - json_array_size(list))));
    }
    oriel_json_set(out, key, list);
}

static void sites_json(const struct oriel_comparison *comparison, size_t most, json_t *out)
{
    json_t *list = oriel_json_checked(json_array());
    for (size_t i = 0; i < comparison->sites_count && i < most; i++)
        oriel_json_append(list, site_json(comparison, &comparison->sites[i]));
    list_json("sites", list, comparison->sites_count, out);
}

static void regions_json(const struct oriel_comparison *comparison, size_t most, json_t *out)
{
    json_t *list = oriel_json_checked(json_array());
    for (size_t i = 0; i < comparison->regions_count && i < most; i++) {
        json_t *object = oriel_json_checked(json_object());
        oriel_json_set(object, "name", text_or_null(comparison->regions[i].name));
        amounts_json(&comparison->regions[i].amounts, object);
        oriel_json_append(list, object);
    }
    list_json("regions", list, comparison->regions_count, out);
}

json_t *oriel_comparison_json(const struct oriel_comparison *comparison, size_t windows_most,
                              size_t ranks_most)
{
    size_t count =
        comparison->windows_count < windows_most ? comparison->windows_count : windows_most;
    json_t *object = oriel_json_checked(json_object());
    json_t *runs = oriel_json_checked(json_array());
    json_t *notes = oriel_json_checked(json_array());
    json_t *total = oriel_json_checked(json_object());
    json_t *windows = oriel_json_checked(json_array());
    oriel_json_set(object, "format", json_string("oriel-comparison"));
    oriel_json_set(object, "version", json_integer(1));
    for (int side = 0; side < 2; side++)
        oriel_json_append(runs, run_json(comparison->runs[side]));
    oriel_json_set(object, "runs", runs);
    oriel_json_set(object, "per_rank", json_boolean(comparison->is_per_rank));
    for (size_t i = 0; i < comparison->notes_count; i++)
        oriel_json_append(notes,
                          oriel_json_text(comparison->notes[i], strlen(comparison->notes[i])));
    oriel_json_set(object, "notes", notes);
    amounts_json(&comparison->total, total);
    oriel_json_set(object, "total", total);
    sites_json(comparison, windows_most, object);
    regions_json(comparison, windows_most, object);
    for (size_t i = 0; i < count; i++)
        oriel_json_append(windows, window_json(&comparison->windows[i], ranks_most));
    list_json("windows", windows, comparison->windows_count, object);
    return object;
}

/* --- CSV (RFC 4180) --- */

static void csv_text(const char *text, FILE *out)
{
    bool is_quoted = strpbrk(text, ",\"\n\r") != NULL;
    if (is_quoted)
        fputc('"', out);
    for (; *text != '\0'; text++)
        fputs(*text == '"' ? "\"\"" : (char[]){*text, '\0'}, out);
    if (is_quoted)
        fputc('"', out);
    fputc(',', out);
}

/* names: window, function, site, table and row. */
static void csv_amounts(const char *const names[5], const struct oriel_amounts *amounts,
                        bool is_comparison, FILE *out)
{
    for (int i = 0; i < ORIEL_QUANTITIES; i++) {
        const double *of = amounts->of[i];
        if (of[0] <= 0 && of[1] <= 0)
            continue;
        for (int column = 0; column < 5; column++)
            csv_text(names[column], out);
        csv_text(oriel_quantity_names[i], out);
        fprintf(out, "%.15g", of[0]);
        if (is_comparison)
            fprintf(out, ",%.15g", of[1]);
        fputc('\n', out);
    }
}

static void csv_row(const struct oriel_compared_window *window,
                    const struct oriel_compared_row *row, bool is_comparison, FILE *out)
{
    char name[32];
    const struct oriel_window_sum *sum = latest_window(window);
    csv_amounts((const char *[]){sum->name, flavour_text(sum), sum->site,
                                 oriel_compared_table_name(row->table),
                                 oriel_compared_row_name(row, name)},
                &row->amounts, is_comparison, out);
}

void oriel_comparison_csv(const struct oriel_comparison *comparison, FILE *out)
{
    bool is_comparison = comparison->runs[1] != NULL;
    fprintf(out, "window,function,site,table,row,quantity,%s\n",
            is_comparison ? "before,after" : "value");
    for (size_t i = 0; i < comparison->windows_count; i++)
        for (size_t j = 0; j < comparison->windows[i].rows_count; j++)
            csv_row(&comparison->windows[i], &comparison->windows[i].rows[j], is_comparison, out);
    for (size_t i = 0; i < comparison->sites_count; i++) {
        const struct oriel_compared_site *site = &comparison->sites[i];
        char text[ORIEL_CODE_ADDRESS_TEXT];
        const int side = latest_side(site);
        oriel_compared_site_text(comparison, site, side, text);
        csv_amounts(
            (const char *[]){"", "", text, "sites", oriel_kind_name(site->first[side]->kind)},
            &site->amounts, is_comparison, out);
    }
    for (size_t i = 0; i < comparison->regions_count; i++)
        csv_amounts((const char *[]){"", "", "", "regions",
                                     oriel_region_title(comparison->regions[i].name)},
                    &comparison->regions[i].amounts, is_comparison, out);
}
