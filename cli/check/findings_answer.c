/* Answers of the helper to the checker: one finding with its lines and text, or the summary of a
 * job with all files. The checker's options come with each request. */
#include "cli/helper.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/helper_process.h"
#include "check/report/report_text.h"
#include "cli/check/check_rules.h"
#include "cli/check/finding_text.h"
#include "cli/check/findings.h"
#include "cli/check/standing.h"
#include "cli/cli.h"
#include "cli/figures.h"

enum { LISTED = 50, RANKS_BYTES = 4096 };

const char *oriel_standing_name(const struct oriel_record_finding *record)
{
    static const char *const names[] = {"", "allowed", "suppressed", "known"};
    return names[record->standing <= ORIEL_STANDING_KNOWN ? record->standing : 0];
}

/* --- one finding --- */

/* Whether it is the C library's caller of main, or a frame before it. */
static bool is_start_frame(const struct oriel_code_address *place)
{
    return strncmp(place->function, "__libc_start", 12) == 0 ||
           strncmp(place->function, "_start", 6) == 0;
}

static void stack_fill(struct oriel_code_address *frames, size_t count, char *out, size_t room)
{
    struct oriel_text text = {.bytes = out, .room = room};
    oriel_dwarf_lookup(frames, count);
    for (size_t i = 0; i < count; i++)
        if (!is_start_frame(&frames[i])) {
            oriel_text_place(&text, &frames[i]);
            oriel_text_add(&text, "\n");
        }
}

/* Removes "folder/.." from the path of a build folder, unless it is a link elsewhere. */
static void path_shorten(char path[ORIEL_RECORD_LONG])
{
    char shorter[ORIEL_RECORD_LONG];
    struct stat before, after;
    for (char *up = strstr(path, "/../"); up != NULL && up > path; up = strstr(path, "/../")) {
        char *folder = up;
        while (folder > path && folder[-1] != '/')
            folder--;
        if (folder == up || strncmp(folder, "..", (size_t)(up - folder)) == 0)
            return;
        snprintf(shorter, sizeof shorter, "%.*s%s", (int)(folder - path), path, up + 4);
        if (stat(path, &before) != 0 || stat(shorter, &after) != 0 ||
            before.st_ino != after.st_ino || before.st_dev != after.st_dev)
            return;
        memcpy(path, shorter, sizeof shorter);
    }
}

static void lines_find(struct oriel_record_finding *record)
{
    struct oriel_record_site *sites[] = {&record->here,          &record->other, &record->opening,
                                         &record->other_opening, &record->made,  &record->init,
                                         &record->other_init};
    for (size_t i = 0; i < sizeof sites / sizeof sites[0]; i++)
        if (sites[i]->call[0] != '\0') {
            oriel_dwarf_lookup(&sites[i]->place, 1);
            path_shorten(sites[i]->place.file);
        }
}

/* Whether a finding of the same rule, window, functions and lines was printed before: two calls in
 * one line, or one call that the compiler copied. */
static bool is_repeated(const struct oriel_record_finding *record)
{
    static char **keys;
    static size_t count;
    const struct oriel_code_address *a = &record->here.place, *b = &record->other.place;
    if (a->line == 0 || (record->other.call[0] != '\0' && b->line == 0))
        return false;
    char *first =
        oriel_format("%s:%" PRIu32 " %s %s", a->file, a->line, a->function, record->here.call);
    char *second =
        oriel_format("%s:%" PRIu32 " %s %s", b->file, b->line, b->function, record->other.call);
    bool swapped = strcmp(first, second) > 0;
    char *key = oriel_format("%" PRIu32 " %s %s %s", record->rule, record->window,
                             swapped ? second : first, swapped ? first : second);
    free(first);
    free(second);
    for (size_t i = 0; i < count; i++)
        if (strcmp(keys[i], key) == 0) {
            free(key);
            return true;
        }
    keys = oriel_alloc_checked(realloc(keys, (count + 1) * sizeof *keys)); /* NOLINT */
    keys[count++] = key;
    return false;
}

void *oriel_findings_answer_one(const void *request, size_t len_bytes, size_t *answer_bytes)
{
    const struct oriel_helper_check *check = request;
    size_t fixed_bytes = sizeof *check + sizeof(struct oriel_record_finding);
    char *text = NULL;
    size_t text_bytes = 0;
    if (len_bytes < fixed_bytes ||
        (len_bytes - fixed_bytes) % sizeof(struct oriel_code_address) != 0)
        return NULL;
    struct oriel_record_finding *record = oriel_alloc(sizeof *record);
    memcpy(record, check + 1, sizeof *record);
    struct oriel_code_address *frames =
        (struct oriel_code_address *)(uintptr_t)((const char *)request + fixed_bytes);
    lines_find(record);
    stack_fill(frames, (len_bytes - fixed_bytes) / sizeof *frames, record->stack,
               sizeof record->stack);
    oriel_standing_open(check);
    oriel_standing_decide(record);
    FILE *out = oriel_alloc_checked(open_memstream(&text, &text_bytes));
    struct oriel_text_style style = {.color = check->color != 0, .width = (int)check->width};
    if (record->standing == ORIEL_STANDING_COUNTS && !is_repeated(record))
        oriel_finding_print(out, record, &style);
    fclose(out);
    char *answer = oriel_alloc(sizeof *record + text_bytes);
    memcpy(answer, record, sizeof *record);
    memcpy(answer + sizeof *record, text, text_bytes);
    *answer_bytes = sizeof *record + text_bytes;
    free(record);
    free(text);
    return answer;
}

/* --- the summary --- */

/* Length of the label up to and including the colon. Counts with the same label are printed after
 * it together. */
static size_t label_bytes(const char *what)
{
    const char *colon = strstr(what, ": ");
    return colon == NULL ? strlen(what) : (size_t)(colon - what) + 2;
}

static bool same_label(const struct oriel_record_count *a, const struct oriel_record_count *b)
{
    size_t len_bytes = label_bytes(a->what);
    return label_bytes(b->what) == len_bytes && memcmp(a->what, b->what, len_bytes) == 0;
}

static void counts_print(FILE *out, const struct oriel_checked_job *job)
{
    for (uint32_t i = 0; i < job->head->counts; i++) {
        const struct oriel_record_count *first = &job->counts[i];
        uint32_t before = 0;
        while (before < i && !same_label(&job->counts[before], first))
            before++;
        if (before < i)
            continue;
        fprintf(out, "; %s (%" PRIu64 ")", first->what, first->count);
        for (uint32_t k = i + 1; k < job->head->counts; k++)
            if (same_label(&job->counts[k], first))
                fprintf(out, ", %s (%" PRIu64 ")", job->counts[k].what + label_bytes(first->what),
                        job->counts[k].count);
    }
}

/* Its user compiles nothing. */
static bool is_python(const struct oriel_checked_job *job)
{
    for (uint32_t i = 0; i < job->head->counts; i++)
        if (strcmp(job->counts[i].what, ORIEL_COUNT_PYTHON) == 0)
            return true;
    return false;
}

static void not_checked_print(FILE *out, const struct oriel_checked_job *job)
{
    fprintf(out, "local accesses were %s",
            job->head->local_watched ? "watched"
            : is_python(job)         ? "not watched"
                                     : "not watched (compile with -fsanitize=thread)");
    if (job->head->lost > 0)
        fprintf(out, "; no room for %" PRIu64 " more finding%s", job->head->lost,
                oriel_plural(job->head->lost));
    counts_print(out, job);
    fputs("\n", out);
}

static void place_print(FILE *out, const char *before, const struct oriel_record_site *site)
{
    if (site->call[0] == '\0')
        return;
    char *place = oriel_finding_place(&site->place);
    fprintf(out, "%s%s at %s", before, site->call, place);
    free(place);
}

/* One line for a finding: what, where, how often. */
static void finding_list(FILE *out, const struct oriel_record_finding *record)
{
    const struct oriel_check_rule *rule = oriel_check_rule(record->rule);
    char ranks[RANKS_BYTES] = "";
    struct oriel_text text = {.bytes = ranks, .room = sizeof ranks};
    fprintf(out, "  %s: ", rule->number);
    place_print(out, "", &record->here);
    place_print(out, record->here.call[0] != '\0' ? " and " : "", &record->other);
    if (record->window[0] != '\0')
        fprintf(out, ", window \"%.*s\"", ORIEL_RECORD_SHORT, record->window);
    fprintf(out, record->count == 1 ? ": once" : ": %" PRIu64 " times", record->count);
    oriel_text_ranks(&text, record);
    fprintf(out, "%s%s\n", ranks[0] == '\0' ? "" : " on ", ranks);
}

/* What GitHub's runner shows at the lines of a change. */
static void annotation_value(FILE *out, const char *text, bool is_property)
{
    for (; *text != '\0'; text++)
        if (*text == '%' || *text == '\r' || *text == '\n' ||
            (is_property && (*text == ':' || *text == ',')))
            fprintf(out, "%%%02X", (unsigned)(unsigned char)*text);
        else
            fputc(*text, out);
}

static void annotation_print(FILE *out, const struct oriel_record_finding *record)
{
    const struct oriel_check_rule *rule = oriel_check_rule(record->rule);
    const struct oriel_code_address *place =
        record->here.place.line != 0 ? &record->here.place : &record->other.place;
    char *headline = oriel_finding_headline(record);
    char *help = oriel_finding_help(record);
    fprintf(out, "::%s ", rule->severity);
    if (place->line != 0) {
        fputs("file=", out);
        annotation_value(out, oriel_text_path(place->file), true);
        fprintf(out, ",line=%" PRIu32 ",", place->line);
    }
    fprintf(out, "title=oriel check %s::", rule->number);
    annotation_value(out, headline, false);
    fputs("%0A", out);
    annotation_value(out, help, false);
    fputs("\n", out);
    free(headline);
    free(help);
}

struct totals {
    uint32_t by_standing[ORIEL_STANDING_KNOWN + 1];
    uint64_t occurrences; /* of those that count */
};

static void findings_list(FILE *out, const struct oriel_checked_job *job, uint32_t counting)
{
    uint32_t listed = 0;
    const char *github = getenv("GITHUB_ACTIONS");
    for (uint32_t i = 0; i < job->head->findings; i++)
        if (job->records[i].standing == ORIEL_STANDING_COUNTS && listed++ < LISTED)
            finding_list(out, &job->records[i]);
    if (listed > LISTED)
        fprintf(out, "  and %" PRIu32 " more, which --json, --sarif and --junit list\n",
                counting - LISTED);
    listed = 0;
    for (uint32_t i = 0; i < job->head->findings && github != NULL && github[0] != '\0'; i++)
        if (job->records[i].standing == ORIEL_STANDING_COUNTS && listed++ < LISTED)
            annotation_print(out, &job->records[i]);
}

static void unused_print(FILE *out, const struct oriel_checked_job *job)
{
    const struct oriel_suppressions *all = oriel_standing_suppressions();
    if (oriel_standing_problem() != NULL)
        fprintf(out, "oriel: %s\n", oriel_standing_problem());
    for (size_t i = 0; all != NULL && job->head->complete && i < all->count; i++)
        if (all->items[i].used == 0)
            fprintf(out, "oriel check: %s:%u: this suppression matches no finding of the job\n",
                    oriel_text_path(all->path), all->items[i].line);
}

static void count_print(FILE *out, const struct oriel_checked_job *job, const struct totals *totals)
{
    uint32_t counting = totals->by_standing[ORIEL_STANDING_COUNTS];
    fputs("oriel check: ", out);
    if (counting == 0)
        fputs("no problems", out);
    else
        fprintf(out, "%" PRIu32 " problem%s (%" PRIu64 " occurrence%s)", counting,
                oriel_plural(counting), totals->occurrences, oriel_plural(totals->occurrences));
    if (job->head->complete)
        fprintf(out, " on %" PRIu32 " rank%s", job->head->ranks, oriel_plural(job->head->ranks));
    else
        fputs(" on this node; the program ended without MPI_Finalize", out);
    for (int standing = ORIEL_STANDING_ALLOWED; standing <= ORIEL_STANDING_KNOWN; standing++)
        if (totals->by_standing[standing] > 0)
            fprintf(out, "; %" PRIu32 " %s", totals->by_standing[standing],
                    oriel_standing_name(
                        &(struct oriel_record_finding){.standing = (uint32_t)standing}));
    if (job->head->only)
        fputs("; some rules are left out", out);
    if (counting == 0) {
        fputs("; ", out);
        not_checked_print(out, job);
    } else
        fputs("\n", out);
}

static void summary_print(FILE *out, const struct oriel_checked_job *job,
                          const struct totals *totals)
{
    uint32_t counting = totals->by_standing[ORIEL_STANDING_COUNTS];
    findings_list(out, job, counting);
    unused_print(out, job);
    if (counting > 0) {
        fputs("oriel check: ", out);
        not_checked_print(out, job);
    }
    count_print(out, job, totals);
}

static void files_write(FILE *out, const struct oriel_checked_job *job)
{
    const struct {
        const char *path;
        char *(*write)(const struct oriel_checked_job *job, const char *path);
    } files[] = {{job->head->json, oriel_findings_write_json},
                 {job->head->sarif, oriel_findings_write_sarif},
                 {job->head->junit, oriel_findings_write_junit}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (files[i].path[0] == '\0')
            continue;
        char *refusal = files[i].write(job, files[i].path);
        if (refusal[0] != '\0')
            fprintf(out, "oriel check: %s was not written: %s\n", files[i].path, refusal);
        free(refusal);
    }
}

void *oriel_findings_answer_all(const void *request, size_t len_bytes, size_t *answer_bytes)
{
    const struct oriel_helper_check *head = request;
    struct totals totals = {.occurrences = 0};
    if (len_bytes < sizeof *head ||
        len_bytes != sizeof *head + head->findings * sizeof(struct oriel_record_finding) +
                         head->counts * sizeof(struct oriel_record_count))
        return NULL;
    struct oriel_record_finding *records = (struct oriel_record_finding *)(uintptr_t)(head + 1);
    struct oriel_checked_job job = {
        .head = head, .records = records, .counts = (const void *)(records + head->findings)};
    oriel_standing_open(head);
    for (uint32_t i = 0; i < head->findings; i++) {
        oriel_standing_decide(&records[i]);
        totals.by_standing[records[i].standing]++;
        if (records[i].standing == ORIEL_STANDING_COUNTS)
            totals.occurrences += records[i].count;
    }
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *out = oriel_alloc_checked(open_memstream(&text, &text_bytes));
    files_write(out, &job);
    summary_print(out, &job, &totals);
    fclose(out);
    struct oriel_helper_summary summary = {.counting = totals.by_standing[ORIEL_STANDING_COUNTS] +
                                                       (head->lost > 0)};
    char *answer = oriel_alloc(sizeof summary + text_bytes);
    memcpy(answer, &summary, sizeof summary);
    memcpy(answer + sizeof summary, text, text_bytes);
    *answer_bytes = sizeof summary + text_bytes;
    free(text);
    return answer;
}

char *oriel_findings_count_after(const void *request, const void *answer, size_t answer_bytes)
{
    const struct oriel_helper_check *head = request;
    const struct oriel_helper_summary *summary = answer;
    const char *text = (const char *)(summary + 1);
    size_t end = answer_bytes - sizeof *summary;
    size_t begin = end > 0 ? end - 1 : 0;
    while (begin > 0 && text[begin - 1] != '\n')
        begin--;
    return head->fails && summary->counting > 0 && end > 0
               ? oriel_format("%.*s", (int)(end - begin), text + begin)
               : NULL;
}
