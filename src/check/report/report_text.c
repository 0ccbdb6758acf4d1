/* Locations and ranks in texts: lines of the user's own files, names of the program's own
 * functions. Unknown parts are omitted. */
#include "check/report/report_text.h"

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

const char *oriel_text_path(const char *path)
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
        inlined = oriel_text_path(at);
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
        oriel_text_add(text, "%s", oriel_text_path(place->file));
    if (place->file[0] != '\0' && place->line != 0)
        oriel_text_add(text, ":%" PRIu32, place->line);
    if (place->function[0] != '\0')
        oriel_text_add(text, "%s%s", place->file[0] != '\0' ? " in " : "", place->function);
    if (place->inlined[0] != '\0') {
        oriel_text_add(text, ", inlined ");
        inlined_add(text, place->inlined);
    }
    if (place->file[0] != '\0')
        return;
    if (place->module[0] == '\0')
        oriel_text_add(text, "an unknown location");
    else if (place->function[0] != '\0')
        oriel_text_add(text, " of %s", file_name(place->module));
    else
        oriel_text_add(text, "offset 0x%" PRIx64 " of %s", place->offset, file_name(place->module));
}

void oriel_text_ranks(struct oriel_text *text, const struct oriel_record_finding *record)
{
    int ranks = 0;
    for (size_t i = 0; i < sizeof record->ranks / sizeof record->ranks[0]; i++)
        ranks += __builtin_popcountll(record->ranks[i]);
    if (ranks == 0)
        return;
    oriel_text_add(text, "rank%s", ranks > 1 ? "s" : "");
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
