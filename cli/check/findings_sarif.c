/* Writes the findings as a SARIF 2.1.0 log, which code scanners and editors read: the rules, one
 * result for each finding, and why a finding does not count. */
#include "cli/check/findings.h"

#include <ctype.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "check/report/report_text.h"
#include "cli/check/check_rules.h"
#include "cli/check/finding_text.h"
#include "cli/cli.h"
#include "cli/json.h"

static json_t *message_json(const char *text)
{
    json_t *value = oriel_json_checked(json_object());
    oriel_json_set(value, "text", oriel_json_text(text, strlen(text)));
    return value;
}

/* A file below the current folder is relative to it, as repositories expect. */
static json_t *uri_json(const char *path)
{
    char *uri = NULL;
    size_t uri_bytes;
    const char *brief = oriel_text_path(path);
    FILE *out = oriel_alloc_checked(open_memstream(&uri, &uri_bytes));
    fputs(brief[0] == '/' ? "file:/" : "", out);
    fputs(brief[0] == '/' ? "/" : "", out);
    for (; *brief != '\0'; brief++)
        if (isalnum((unsigned char)*brief) || strchr("/._-~+", *brief) != NULL)
            fputc(*brief, out);
        else
            fprintf(out, "%%%02X", (unsigned)(unsigned char)*brief);
    fclose(out);
    json_t *value = oriel_json_checked(json_string(uri));
    free(uri);
    return value;
}

/* NULL for a site without a place. */
static json_t *location_json(const struct oriel_record_site *site, const char *note)
{
    const struct oriel_code_address *place = &site->place;
    if (site->call[0] == '\0')
        return NULL;
    json_t *value = oriel_json_checked(json_object());
    if (place->file[0] != '\0') {
        json_t *physical = oriel_json_checked(json_object());
        json_t *artifact = oriel_json_checked(json_object());
        oriel_json_set(artifact, "uri", uri_json(place->file));
        oriel_json_set(physical, "artifactLocation", artifact);
        if (place->line != 0)
            oriel_json_set(physical, "region",
                           json_pack("{s:I}", "startLine", (json_int_t)place->line));
        oriel_json_set(value, "physicalLocation", physical);
    }
    char *name = place->function[0] != '\0' ? oriel_format("%s", place->function)
                                            : oriel_finding_place(place);
    json_t *logical = oriel_json_checked(json_object());
    oriel_json_set(logical, "name", oriel_json_text(name, strlen(name)));
    if (place->function[0] != '\0')
        oriel_json_set(logical, "kind", json_string("function"));
    json_t *list = oriel_json_checked(json_array());
    oriel_json_append(list, logical);
    oriel_json_set(value, "logicalLocations", list);
    free(name);
    char *text = oriel_format("%s%s%s, rank %d", note, note[0] == '\0' ? "" : ": ", site->call,
                              (int)site->rank);
    oriel_json_set(value, "message", message_json(text));
    free(text);
    return value;
}

static json_t *related_json(const struct oriel_record_finding *record)
{
    const struct {
        const struct oriel_record_site *site;
        const char *note;
    } sites[] = {{&record->other, "the other call"},
                 {&record->opening, "opens the epoch"},
                 {&record->other_opening, "opens the other epoch"},
                 {&record->made, "makes the window"},
                 {&record->init, "makes the request"},
                 {&record->other_init, "makes the other request"}};
    json_t *list = oriel_json_checked(json_array());
    for (size_t i = record->here.call[0] == '\0'; i < sizeof sites / sizeof sites[0]; i++) {
        json_t *location = location_json(sites[i].site, sites[i].note);
        if (location == NULL)
            continue;
        oriel_json_set(location, "id", json_integer((json_int_t)json_array_size(list) + 1));
        oriel_json_append(list, location);
    }
    return list;
}

static json_t *suppressions_json(const struct oriel_record_finding *record)
{
    json_t *list = oriel_json_checked(json_array());
    if (record->standing == ORIEL_STANDING_ALLOWED || record->standing == ORIEL_STANDING_SUPPRESSED)
        oriel_json_append(
            list,
            json_pack("{s:s, s:o}", "kind",
                      record->standing == ORIEL_STANDING_ALLOWED ? "inSource" : "external",
                      "justification", oriel_json_text(record->reason, sizeof record->reason)));
    return list;
}

static json_t *result_json(const struct oriel_checked_job *job,
                           const struct oriel_record_finding *record)
{
    const struct oriel_check_rule *rule = oriel_check_rule(record->rule);
    char *headline = oriel_finding_headline(record);
    char *help = oriel_finding_help(record);
    char *bytes = oriel_finding_bytes(record);
    char *message = oriel_format(
        "%s%s%s%s%s%s%s. Help: %s.", headline, record->window[0] == '\0' ? "" : ", window \"",
        record->window, record->window[0] == '\0' ? "" : "\"", bytes[0] == '\0' ? "" : ", ", bytes,
        record->detail[0] == '\0' ? "" : ".", help);
    json_t *value = oriel_json_checked(json_object());
    oriel_json_set(value, "ruleId", json_string(rule->number));
    oriel_json_set(value, "ruleIndex", json_integer(rule - oriel_check_rules));
    oriel_json_set(value, "level", json_string(rule->severity));
    oriel_json_set(value, "message", message_json(message));
    json_t *locations = oriel_json_checked(json_array());
    json_t *first =
        location_json(record->here.call[0] != '\0' ? &record->here : &record->other, "");
    if (first != NULL)
        oriel_json_append(locations, first);
    oriel_json_set(value, "locations", locations);
    oriel_json_set(value, "relatedLocations", related_json(record));
    oriel_json_set(value, "occurrenceCount",
                   json_integer((json_int_t)(record->count > 0 ? record->count : 1)));
    oriel_json_set(value, "suppressions", suppressions_json(record));
    if (job->head->baseline[0] != '\0')
        oriel_json_set(value, "baselineState",
                       json_string(record->standing == ORIEL_STANDING_KNOWN ? "unchanged" : "new"));
    free(headline);
    free(help);
    free(bytes);
    free(message);
    return value;
}

static json_t *rule_json(const struct oriel_check_rule *rule)
{
    json_t *value = oriel_json_checked(json_object());
    oriel_json_set(value, "id", json_string(rule->number));
    oriel_json_set(value, "shortDescription", message_json(rule->title));
    oriel_json_set(value, "fullDescription", message_json(rule->text));
    oriel_json_set(value, "help", message_json(rule->remedy));
    oriel_json_set(value, "defaultConfiguration", json_pack("{s:s}", "level", rule->severity));
    return value;
}

static json_t *run_json(const struct oriel_checked_job *job)
{
    json_t *rules = oriel_json_checked(json_array());
    json_t *results = oriel_json_checked(json_array());
    for (size_t i = 0; i < ORIEL_CHECK_RULES; i++)
        oriel_json_append(rules, rule_json(&oriel_check_rules[i]));
    for (uint32_t i = 0; i < job->head->findings; i++)
        oriel_json_append(results, result_json(job, &job->records[i]));
    json_t *driver = oriel_json_checked(json_object());
    oriel_json_set(driver, "name", json_string("oriel check"));
    oriel_json_set(driver, "version",
                   oriel_json_text(job->head->version, sizeof job->head->version));
    oriel_json_set(driver, "rules", rules);
    return oriel_json_checked(json_pack("{s:{s:o}, s:[{s:b}], s:s, s:o}", "tool", "driver", driver,
                                        "invocations", "executionSuccessful",
                                        (int)job->head->complete, "columnKind", "unicodeCodePoints",
                                        "results", results));
}

char *oriel_findings_write_sarif(const struct oriel_checked_job *job, const char *path)
{
    json_t *log = oriel_json_checked(json_pack("{s:s, s:s, s:[o]}", "$schema",
                                               "https://json.schemastore.org/sarif-2.1.0.json",
                                               "version", "2.1.0", "runs", run_json(job)));
    char *refusal = oriel_json_write(path, log);
    json_decref(log);
    return refusal;
}
