/* Decides whether a finding counts. A comment in the source decides before the suppression file,
 * and that before the baseline. Deadlocks always count. This runs in the helper process. */
#include "cli/check/standing.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/report/report_text.h"
#include "cli/check/check_rules.h"
#include "cli/check/source_lines.h"
#include "cli/cli.h"

static void reason_set(struct oriel_record_finding *record, enum oriel_standing standing,
                       const char *format, ...) __attribute__((format(printf, 3, 4)));
static void reason_set(struct oriel_record_finding *record, enum oriel_standing standing,
                       const char *format, ...)
{
    struct oriel_text text = {.bytes = record->reason, .room = sizeof record->reason};
    va_list args;
    record->standing = standing;
    va_start(args, format);
    char *whole;
    if (vasprintf(&whole, format, args) >= 0) {
        oriel_text_add(&text, "%s", whole);
        free(whole);
    }
    va_end(args);
}

/* --- comments --- */

static size_t blanks_len(const char *text, const char *end)
{
    size_t len = 0;
    while (text + len < end && (text[len] == ' ' || text[len] == '\t'))
        len++;
    return len;
}

/* The text after "oriel: allow" in a line's comment, or NULL. */
static const char *allow_find(const char *line, size_t len_bytes, size_t *rest_bytes)
{
    static const char name[] = "oriel:", allow[] = "allow";
    const char *end = line + len_bytes;
    const char *at = memmem(line, len_bytes, name, sizeof name - 1);
    if (at == NULL)
        return NULL;
    const char *before = at;
    while (before > line && (before[-1] == ' ' || before[-1] == '\t'))
        before--;
    bool is_comment =
        before > line &&
        (before[-1] == '#' || before[-1] == '!' ||
         (before - line > 1 && before[-2] == '/' && (before[-1] == '/' || before[-1] == '*')));
    at += sizeof name - 1;
    at += blanks_len(at, end);
    if (!is_comment || (size_t)(end - at) < sizeof allow ||
        memcmp(at, allow, sizeof allow - 1) != 0)
        return NULL;
    at += sizeof allow - 1;
    const size_t blanks = blanks_len(at, end);
    *rest_bytes = (size_t)(end - at) - blanks;
    return blanks == 0 ? NULL : at + blanks;
}

/* Whether nothing but a comment is in the line: then it is about the line after it. */
static bool is_comment_line(const char *line, size_t len_bytes)
{
    while (len_bytes > 0 && isspace((unsigned char)*line)) {
        line++;
        len_bytes--;
    }
    return len_bytes > 1 && (line[0] == '#' || line[0] == '!' ||
                             (line[0] == '/' && (line[1] == '/' || line[1] == '*')));
}

static const char between_rules[] = ",: \t";

/* The length of the rules at the begin of the text: "C1", "C1,C2", "C1, C2:". */
static size_t rules_len(const char *text)
{
    size_t len = strcspn(text, " \t");
    while (len > 0 && text[len - 1] == ',') {
        len += strspn(text + len, " \t");
        size_t word = strcspn(text + len, " \t");
        if (word == 0)
            break;
        len += word;
    }
    return len;
}

/* Whether the line allows the rule; *reason is then the rest, "" if there is none, to be freed. */
static bool line_allows(const char *line, size_t len_bytes, const char *number, char **reason)
{
    size_t rest_bytes;
    const char *rest = allow_find(line, len_bytes, &rest_bytes);
    if (rest == NULL)
        return false;
    char *text = oriel_format("%.*s", (int)rest_bytes, rest);
    size_t rules = rules_len(text);
    bool allows = false;
    for (char *at = text; at < text + rules; at += strcspn(at, between_rules) + 1) {
        char *one = oriel_format("%.*s", (int)strcspn(at, between_rules), at);
        allows = allows || (one[0] != '\0' && oriel_check_rule_fits(one, number));
        free(one);
    }
    char *end = strstr(text + rules, "*/");
    if (end != NULL)
        *end = '\0';
    char *begin = text + rules;
    begin += strspn(begin, " \t");
    for (size_t len = strlen(begin); len > 0 && isspace((unsigned char)begin[len - 1]);)
        begin[--len] = '\0';
    *reason = allows ? oriel_format("%s", begin) : NULL;
    free(text);
    return allows;
}

/* Whether a comment at the place, or alone in the line before, allows the rule. */
static bool place_allows(const struct oriel_code_address *place, const char *number, char **reason)
{
    const char *line;
    size_t len_bytes;
    if (oriel_source_line(place, &line, &len_bytes) != ORIEL_SOURCE_READ)
        return false;
    if (line_allows(line, len_bytes, number, reason))
        return true;
    line = oriel_source_line_before(place, &len_bytes);
    return line != NULL && is_comment_line(line, len_bytes) &&
           line_allows(line, len_bytes, number, reason);
}

static const struct oriel_code_address *allowing_place(const struct oriel_record_finding *record,
                                                       char **reason)
{
    const char *number = oriel_check_rule(record->rule)->number;
    if (place_allows(&record->here.place, number, reason))
        return &record->here.place;
    return place_allows(&record->other.place, number, reason) ? &record->other.place : NULL;
}

const struct oriel_code_address *oriel_standing_no_reason(const struct oriel_record_finding *record)
{
    char *reason = NULL;
    const struct oriel_code_address *place = allowing_place(record, &reason);
    bool is_empty = place != NULL && reason[0] == '\0';
    free(reason);
    return is_empty ? place : NULL;
}

static bool comment_decides(struct oriel_record_finding *record)
{
    char *reason = NULL;
    const struct oriel_code_address *place = allowing_place(record, &reason);
    bool allows = place != NULL && reason[0] != '\0';
    if (allows)
        reason_set(record, ORIEL_STANDING_ALLOWED, "%s:%u: %s", oriel_text_path(place->file),
                   place->line, reason);
    free(reason);
    return allows;
}

/* --- suppression file --- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* A pattern without a slash is compared with the file's name, any other with its path. */
static bool path_fits(const char *pattern, const char *path)
{
    return path[0] != '\0' &&
           (fnmatch(pattern, strchr(pattern, '/') == NULL ? base_name(path) : path, 0) == 0 ||
            (strchr(pattern, '/') != NULL && fnmatch(pattern, oriel_text_path(path), 0) == 0));
}

/* "main+0x12", of a module without debug information, is in main. */
static bool function_fits(const char *pattern, const char *function)
{
    char *name = oriel_format("%.*s", (int)strcspn(function, "+"), function);
    bool fits = name[0] != '\0' && fnmatch(pattern, name, 0) == 0;
    free(name);
    return fits;
}

static bool suppression_fits(const struct oriel_suppression *item,
                             const struct oriel_record_finding *record)
{
    const struct oriel_code_address *a = &record->here.place;
    const struct oriel_code_address *b = &record->other.place;
    return oriel_check_rule_fits(item->rule, oriel_check_rule(record->rule)->number) &&
           (item->window == NULL || fnmatch(item->window, record->window, 0) == 0) &&
           (item->function == NULL || function_fits(item->function, a->function) ||
            function_fits(item->function, b->function)) &&
           (item->file == NULL || path_fits(item->file, a->file) ||
            path_fits(item->file, b->file)) &&
           (item->library == NULL || path_fits(item->library, a->module) ||
            path_fits(item->library, b->module));
}

static struct oriel_suppressions suppressions;

const struct oriel_suppressions *oriel_standing_suppressions(void)
{
    return suppressions.path == NULL ? NULL : &suppressions;
}

static bool suppression_decides(struct oriel_record_finding *record)
{
    for (size_t i = 0; i < suppressions.count; i++) {
        struct oriel_suppression *item = &suppressions.items[i];
        if (!suppression_fits(item, record))
            continue;
        item->used++;
        reason_set(record, ORIEL_STANDING_SUPPRESSED, "%s:%u: %s",
                   oriel_text_path(suppressions.path), item->line, item->reason);
        return true;
    }
    return false;
}

/* --- baseline --- */

static struct {
    char **keys;
    size_t count;
    char *path;
} baseline;

/* A finding without its lines, which move: rule, window, and both call sites in a fixed order. */
static char *key_make(const char *rule, const char *window, const char *const a[4],
                      const char *const b[4])
{
    char *first = oriel_format("%s|%s|%s|%s", a[0], base_name(a[1]), a[2], base_name(a[3]));
    char *second = oriel_format("%s|%s|%s|%s", b[0], base_name(b[1]), b[2], base_name(b[3]));
    bool swapped = strcmp(first, second) > 0;
    char *key = oriel_format("%s|%s|%s|%s", rule, window, swapped ? second : first,
                             swapped ? first : second);
    free(first);
    free(second);
    return key;
}

static const char *json_member(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

static char *key_of_json(const json_t *finding)
{
    const json_t *sites[] = {json_object_get(finding, "call"), json_object_get(finding, "other")};
    const char *parts[2][4];
    for (int i = 0; i < 2; i++) {
        parts[i][0] = json_member(sites[i], "call");
        parts[i][1] = json_member(sites[i], "file");
        parts[i][2] = json_member(sites[i], "function");
        parts[i][3] = json_member(sites[i], "module");
    }
    return key_make(json_member(finding, "rule"), json_member(finding, "window"), parts[0],
                    parts[1]);
}

char *oriel_baseline_read(const char *path)
{
    json_error_t error;
    baseline.path = oriel_format("%s", path);
    json_t *job = json_load_file(path, 0, &error);
    if (job == NULL)
        return error.line > 0 ? oriel_format("%s:%d: %s", path, error.line, error.text)
                              : oriel_format("%s", error.text);
    const json_t *findings = json_object_get(job, "findings");
    if (strcmp(json_member(job, "format"), "oriel-check") != 0 || !json_is_array(findings)) {
        json_decref(job);
        return oriel_format("%s: not a findings file of oriel check --json", path);
    }
    size_t i;
    json_t *finding;
    baseline.keys = oriel_alloc((json_array_size(findings) + 1) * sizeof *baseline.keys);
    json_array_foreach(findings, i, finding) baseline.keys[baseline.count++] = key_of_json(finding);
    json_decref(job);
    return NULL;
}

/* Each finding of the baseline excuses one finding. */
static bool baseline_decides(struct oriel_record_finding *record)
{
    const struct oriel_record_site *sites[] = {&record->here, &record->other};
    const char *parts[2][4];
    for (int i = 0; i < 2; i++) {
        parts[i][0] = sites[i]->call;
        parts[i][1] = sites[i]->place.file;
        parts[i][2] = sites[i]->place.function;
        parts[i][3] = sites[i]->place.module;
    }
    char *key =
        key_make(oriel_check_rule(record->rule)->number, record->window, parts[0], parts[1]);
    bool is_known = false;
    for (size_t i = 0; i < baseline.count && !is_known; i++) {
        is_known = strcmp(baseline.keys[i], key) == 0;
        if (is_known)
            baseline.keys[i][0] = '\0';
    }
    free(key);
    if (is_known)
        reason_set(record, ORIEL_STANDING_KNOWN, "in the baseline %s",
                   oriel_text_path(baseline.path));
    return is_known;
}

static char *problem;

const char *oriel_standing_problem(void)
{
    return problem;
}

static void problem_keep(char *text)
{
    if (problem == NULL)
        problem = text;
    else
        free(text);
}

void oriel_standing_open(const struct oriel_helper_check *check)
{
    if (check->suppress[0] != '\0' && suppressions.path == NULL)
        problem_keep(oriel_suppressions_read(check->suppress, &suppressions));
    if (check->baseline[0] != '\0' && baseline.path == NULL)
        problem_keep(oriel_baseline_read(check->baseline));
}

void oriel_standing_decide(struct oriel_record_finding *record)
{
    if (record->rule == ORIEL_CHECK_RULE_DEADLOCK || record->standing == ORIEL_STANDING_ALLOWED)
        return;
    record->standing = ORIEL_STANDING_COUNTS;
    record->reason[0] = '\0';
    if (!comment_decides(record) && !suppression_decides(record))
        baseline_decides(record);
}
