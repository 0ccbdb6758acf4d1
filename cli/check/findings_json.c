/* Writes the findings of a job as one JSON object; docs/reference/file-formats.md describes it. In
 * strings that are not UTF-8, bytes above 0x7f become '?'. This runs in the helper process. */
#include "cli/check/findings.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/check/check_rules.h"
#include "cli/check/finding_text.h"
#include "cli/cli.h"
#include "cli/json.h"

enum { SOURCE_COLUMNS = 100 };

#define TEXT(field) oriel_json_text(field, sizeof(field))

static json_t *number_or_null(int64_t number)
{
    return oriel_json_checked(number < 0 ? json_null() : json_integer(number));
}

/* The count, or null when the first item is unknown. */
static json_t *count_or_null(int64_t first, uint64_t count)
{
    return oriel_json_checked(first < 0 ? json_null() : json_integer((json_int_t)count));
}

static json_t *site_json(const struct oriel_record_site *site)
{
    if (site->call[0] == '\0')
        return oriel_json_checked(json_null());
    const struct oriel_code_address *place = &site->place;
    json_t *line = oriel_json_checked(place->line == 0 ? json_null() : json_integer(place->line));
    return oriel_json_checked(json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o}", "call", TEXT(site->call), "rank",
        number_or_null(site->rank), "file", TEXT(place->file), "line", line, "function",
        TEXT(place->function), "inlined", TEXT(place->inlined), "module", TEXT(place->module),
        "offset", (json_int_t)place->offset, "epoch", TEXT(site->epoch)));
}

static json_t *ranks_json(const struct oriel_record_finding *record)
{
    json_t *list = oriel_json_checked(json_array());
    for (int rank = 0; rank < ORIEL_RECORD_RANKS; rank++)
        if ((record->ranks[rank / 64] >> (rank % 64) & 1) != 0)
            json_array_append_new(list, oriel_json_checked(json_integer(rank)));
    return list;
}

/* The lines of a text, without empty ones. */
static json_t *lines_json(const char *at, size_t room)
{
    json_t *list = oriel_json_checked(json_array());
    const char *end = at + strnlen(at, room);
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop == NULL ? end : stop;
        if (stop > at)
            json_array_append_new(list, oriel_json_text(at, (size_t)(stop - at)));
        at = stop + 1;
    }
    return list;
}

static json_t *finding_json(const struct oriel_record_finding *record)
{
    const struct oriel_check_rule *rule = oriel_check_rule(record->rule);
    char *headline = oriel_finding_headline(record);
    char *help = oriel_finding_help(record);
    char *source = oriel_finding_source(record, SOURCE_COLUMNS);
    json_t *value = json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o}",
        "rule", rule->number, "severity", rule->severity, "title", rule->title, "headline",
        oriel_json_text(headline, strlen(headline)), "window", TEXT(record->window), "flavour",
        TEXT(record->flavour), "target", number_or_null(record->target), "offset",
        number_or_null(record->offset), "bytes", count_or_null(record->offset, record->len_bytes),
        "element", number_or_null(record->element), "elements",
        count_or_null(record->element, record->elements), "device", number_or_null(record->device),
        "call", site_json(&record->here), "other", site_json(&record->other), "opening",
        site_json(&record->opening), "other_opening", site_json(&record->other_opening), "made",
        site_json(&record->made), "init", site_json(&record->init), "other_init",
        site_json(&record->other_init), "detail", TEXT(record->detail), "help",
        oriel_json_text(help, strlen(help)), "source", lines_json(source, SIZE_MAX), "count",
        (json_int_t)record->count, "ranks", ranks_json(record), "stack",
        lines_json(record->stack, sizeof record->stack), "excused",
        oriel_json_text(oriel_standing_name(record), sizeof "suppressed"), "reason",
        TEXT(record->reason));
    free(headline);
    free(help);
    free(source);
    return oriel_json_checked(value);
}

/* The complete object. */
static json_t *job_json(const struct oriel_checked_job *job)
{
    const struct oriel_helper_check *head = job->head;
    json_t *findings = oriel_json_checked(json_array());
    json_t *unseen = oriel_json_checked(json_array());
    for (uint32_t i = 0; i < head->findings; i++)
        json_array_append_new(findings, finding_json(&job->records[i]));
    for (uint32_t i = 0; i < head->counts; i++)
        json_array_append_new(
            unseen, oriel_json_checked(json_pack("{s:o, s:I}", "what", TEXT(job->counts[i].what),
                                                 "count", (json_int_t)job->counts[i].count)));
    return oriel_json_checked(json_pack(
        "{s:s, s:i, s:o, s:s, s:o, s:i, s:o, s:b, s:b, s:o, s:I, s:o}", "format", "oriel-check",
        "version", 3, "oriel", TEXT(head->version), "host", head->host, "host_version",
        TEXT(head->host_version), "ranks", (int)head->ranks, "program", TEXT(head->program),
        "complete", (int)head->complete, "local_accesses_watched", (int)head->local_watched,
        "findings", findings, "findings_lost", (json_int_t)head->lost, "not_checked", unseen));
}

char *oriel_findings_write_json(const struct oriel_checked_job *job, const char *path)
{
    json_t *value = job_json(job);
    char *refusal = oriel_json_write(path, value);
    json_decref(value);
    return refusal;
}
