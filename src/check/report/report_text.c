/* Formats findings for standard error: lines of the user's own files, names of the program's own
 * calls. Unknown parts are omitted. */
#include "check/report/finding_internal.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void oriel_text_add(struct oriel_text *text, const char *format, ...)
{
    size_t left = text->room - text->used;
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text->bytes + text->used, left, format, args);
    va_end(args);
    text->used += len < 0 ? 0 : (size_t)len < left ? (size_t)len : left - 1;
}

void oriel_text_write(const struct oriel_text *text)
{
    oriel_log_write(text->bytes, text->used);
}

/* Returns the path relative to the current folder, if it is below it. */
static const char *path_shorten(const char *path)
{
    char folder[ORIEL_RECORD_LONG];
    if (getcwd(folder, sizeof folder) == NULL)
        return path;
    size_t len = strlen(folder);
    return len > 1 && strncmp(path, folder, len) == 0 && path[len] == '/' ? path + len + 1 : path;
}

/* Several locations in one text, each path shortened. */
static void inlined_add(struct oriel_text *text, const char *inlined)
{
    static const char before[] = " at ";
    const char *at = strstr(inlined, before);
    while (at != NULL) {
        at += sizeof before - 1;
        oriel_text_add(text, "%.*s", (int)(at - inlined), inlined);
        inlined = path_shorten(at);
        at = strstr(inlined, before);
    }
    oriel_text_add(text, "%s", inlined);
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

void oriel_text_place(struct oriel_text *text, const struct oriel_code_address *place)
{
    if (place->file[0] != '\0')
        oriel_text_add(text, "at %s", path_shorten(place->file));
    if (place->file[0] != '\0' && place->line != 0)
        oriel_text_add(text, ":%" PRIu32, place->line);
    if (place->function[0] != '\0')
        oriel_text_add(text, "%sin %s", place->file[0] != '\0' ? " " : "", place->function);
    if (place->inlined[0] != '\0') {
        oriel_text_add(text, ", inlined ");
        inlined_add(text, place->inlined);
    }
    if (place->file[0] != '\0')
        return;
    if (place->module[0] == '\0')
        oriel_text_add(text, "at an unknown location");
    else if (place->function[0] != '\0')
        oriel_text_add(text, " of %s", file_name(place->module));
    else
        oriel_text_add(text, "at offset 0x%" PRIx64 " of %s", place->offset,
                       file_name(place->module));
}

static void site_add(struct oriel_text *text, const char *before,
                     const struct oriel_record_site *site, const char *after)
{
    oriel_text_add(text, "oriel:     %srank %" PRId32 ": %s ", before, site->rank, site->call);
    oriel_text_place(text, &site->place);
    oriel_text_add(text, "%s\n", after);
}

static void window_add(struct oriel_text *text, const struct oriel_record_finding *record)
{
    if (record->flavour[0] == '\0' && record->window[0] == '\0')
        return;
    oriel_text_add(text, "oriel:     window ");
    if (record->window[0] != '\0')
        oriel_text_add(text, "\"%.*s\"", ORIEL_RECORD_SHORT, record->window);
    else
        oriel_text_add(text, "without a name");
    if (record->flavour[0] != '\0')
        oriel_text_add(text, " (%s)", record->flavour);
    if (record->target >= 0)
        oriel_text_add(text, ", target rank %" PRId32, record->target);
    if (record->offset >= 0 || record->len_bytes > 0) {
        bool one = record->len_bytes <= 1;
        oriel_text_add(text, one ? ", byte %" PRId64 : ", bytes %" PRId64, record->offset);
        if (!one)
            oriel_text_add(text, " to %" PRId64, record->offset + (int64_t)record->len_bytes - 1);
    }
    if (record->element >= 0) {
        oriel_text_add(text, record->elements <= 1 ? ", element %" PRId64 : ", elements %" PRId64,
                       record->element);
        if (record->elements > 1)
            oriel_text_add(text, " to %" PRId64, record->element + (int64_t)record->elements - 1);
    }
    oriel_text_add(text, "\n");
}

static void stack_add(struct oriel_text *text, const char *stack)
{
    for (const char *at = stack; *at != '\0';) {
        size_t len = strcspn(at, "\n");
        oriel_text_add(text, "oriel:     %s %.*s\n", at == stack ? "stack:" : "      ", (int)len,
                       at);
        at += len + (at[len] == '\n');
    }
}

/* Whether a site of the program has no line because the program was compiled without debug
 * information. */
static bool lacks_debug(const struct oriel_record_site *site)
{
    return site->call[0] != '\0' && site->place.file[0] == '\0' && site->place.module[0] != '\0' &&
           site->place.has_debug == 0;
}

void oriel_text_finding(struct oriel_text *text, const struct oriel_record_finding *record)
{
    const struct oriel_rule_text *rule = oriel_rule_text(record->rule);
    oriel_text_add(text, "oriel: %s: %s\n", rule->number, rule->title);
    window_add(text, record);
    if (record->here.call[0] != '\0')
        site_add(text, "", &record->here, "");
    if (record->other.call[0] != '\0')
        site_add(text, "", &record->other, record->here.call[0] != '\0' ? ", before it" : "");
    if (record->opening.call[0] != '\0')
        site_add(text, "epoch opened by ", &record->opening, "");
    if (record->detail[0] != '\0')
        oriel_text_add(text, "oriel:     %s\n", record->detail);
    if (record->missing[0] != '\0')
        oriel_text_add(text, "oriel:     missing: %s\n", record->missing);
    oriel_text_add(text, "oriel:     remedy: %s\n", rule->remedy);
    stack_add(text, record->stack);
    if (lacks_debug(&record->here) || lacks_debug(&record->other))
        oriel_text_add(text, "oriel:     (compile with -g to see files and lines)\n");
}

/* "ranks 0-3, 7" */
static void ranks_add(struct oriel_text *text, const struct oriel_record_finding *record)
{
    int ranks = 0;
    for (size_t i = 0; i < sizeof record->ranks / sizeof record->ranks[0]; i++)
        ranks += __builtin_popcountll(record->ranks[i]);
    if (ranks == 0)
        return;
    oriel_text_add(text, " on rank%s", ranks > 1 ? "s" : "");
    const char *comma = " ";
    for (int rank = 0; rank < ORIEL_RECORD_RANKS; rank++) {
        int last = rank;
        while (last < ORIEL_RECORD_RANKS && (record->ranks[last / 64] >> (last % 64) & 1) != 0)
            last++;
        if (last == rank)
            continue;
        oriel_text_add(text, last - rank == 1 ? "%s%d" : "%s%d-%d", comma, rank, last - 1);
        comma = ", ";
        rank = last;
    }
}

static void site_add_brief(struct oriel_text *text, const char *before,
                           const struct oriel_record_site *site)
{
    if (site->call[0] == '\0')
        return;
    oriel_text_add(text, "%s%s ", before, site->call);
    oriel_text_place(text, &site->place);
}

void oriel_text_finding_brief(struct oriel_text *text, const struct oriel_record_finding *record)
{
    const struct oriel_rule_text *rule = oriel_rule_text(record->rule);
    oriel_text_add(text, "oriel:     %s: %s: ", rule->number, rule->title);
    site_add_brief(text, "", &record->here);
    site_add_brief(text, record->here.call[0] != '\0' ? " and " : "", &record->other);
    if (record->window[0] != '\0')
        oriel_text_add(text, ", window \"%.*s\"", ORIEL_RECORD_SHORT, record->window);
    oriel_text_add(text, record->count == 1 ? ": once" : ": %" PRIu64 " times", record->count);
    ranks_add(text, record);
    oriel_text_add(text, "\n");
}
