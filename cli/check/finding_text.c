/* Formats a finding. Marks are notes at lines of the program: what each access does, which call
 * opened its epoch. Marks whose lines can be read are drawn under the lines, sorted by file and
 * line; the others are notes below. */
#include "cli/check/finding_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "check/report/report_text.h"
#include "cli/check/check_rules.h"
#include "cli/check/source_lines.h"
#include "cli/check/standing.h"
#include "cli/cli.h"

enum { MARKS = 4, TAB = 4, LOCATION_BYTES = 2048 };

struct mark {
    const struct oriel_record_site *site;
    char *note;
    bool underlines; /* else the note is beside the line */
    const char *line;
    size_t len_bytes;
};

struct drawing {
    FILE *out;
    struct oriel_text_style style;
    int gutter; /* columns of line numbers */
    struct mark marks[MARKS];
    int count;
};

static const char bold[] = "\033[1m", red[] = "\033[1;31m", yellow[] = "\033[1;33m",
                  blue[] = "\033[1;34m", cyan[] = "\033[1;36m";

static void colored(const struct drawing *drawing, const char *color, const char *text)
{
    fprintf(drawing->out, "%s%s%s", drawing->style.color ? color : "", text,
            drawing->style.color ? "\033[0m" : "");
}

char *oriel_finding_place(const struct oriel_code_address *place)
{
    char bytes[LOCATION_BYTES] = "";
    struct oriel_text text = {.bytes = bytes, .room = sizeof bytes};
    oriel_text_place(&text, place);
    return oriel_format("%s", bytes);
}

/* "app.c:12", or what else is known of the place. */
static char *place_brief(const struct oriel_code_address *place)
{
    return place->file[0] != '\0' && place->line != 0
               ? oriel_format("%s:%" PRIu32, oriel_text_path(place->file), place->line)
               : oriel_finding_place(place);
}

static bool is_same_line(const struct oriel_record_site *a, const struct oriel_record_site *b)
{
    if (a->place.line == 0) /* without debug information: the same call */
        return b->place.line == 0 && a->place.offset != 0 && a->place.offset == b->place.offset &&
               strcmp(a->place.module, b->place.module) == 0;
    return a->place.line == b->place.line && strcmp(a->place.file, b->place.file) == 0;
}

static bool is_conflict(const struct oriel_record_finding *record)
{
    return record->here.effect != ORIEL_EFFECT_NONE && record->other.effect != ORIEL_EFFECT_NONE;
}

static bool ends_buffer(const struct oriel_record_site *site)
{
    return site->effect == ORIEL_EFFECT_FREES || site->effect == ORIEL_EFFECT_RETURNS;
}

/* The order of two conflicting accesses is chance. They are shown in the order of their lines, so
 * that the text is the same in each run. What frees a buffer is later than the operation. */
static void accesses_order(const struct oriel_record_finding *record,
                           const struct oriel_record_site **first,
                           const struct oriel_record_site **second)
{
    const struct oriel_record_site *here = &record->here, *other = &record->other;
    int files = strcmp(here->place.file, other->place.file);
    bool swaps = is_conflict(record) && here->place.line != 0 && other->place.line != 0 &&
                 (files > 0 || (files == 0 && here->place.line > other->place.line));
    swaps = swaps || ends_buffer(here);
    *first = swaps ? other : here;
    *second = swaps ? here : other;
}

char *oriel_finding_headline(const struct oriel_record_finding *record)
{
    const char *title = oriel_check_rule(record->rule)->title;
    const struct oriel_record_site *first, *second;
    accesses_order(record, &first, &second);
    if (!is_conflict(record))
        return oriel_format("%s", title);
    switch (record->rule) {
    case ORIEL_CHECK_RULE_CONFLICT:
    case ORIEL_CHECK_RULE_BESIDE_ACCUMULATE:
    case ORIEL_CHECK_RULE_ACCUMULATE_MIX:
    case ORIEL_CHECK_RULE_LOCAL_ACCESS: {
        bool reads =
            record->here.effect == ORIEL_EFFECT_READS || record->other.effect == ORIEL_EFFECT_READS;
        return oriel_format("unordered %s and %s %s the same bytes", first->call, second->call,
                            reads ? "of" : "to");
    }
    default: return oriel_format("%s", title);
    }
}

/* --- help --- */

static const struct oriel_record_site *placeholder_find(const struct oriel_record_finding *record,
                                                        const char *at, size_t *len)
{
    const struct {
        const char *name;
        const struct oriel_record_site *site;
    } names[] = {{"@here", &record->here},
                 {"@other_opening", &record->other_opening},
                 {"@other", &record->other},
                 {"@opening", &record->opening},
                 {"@made", &record->made}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        *len = strlen(names[i].name);
        if (strncmp(at, names[i].name, *len) == 0)
            return names[i].site;
    }
    return NULL;
}

/* A remedy as a part of a line: "call MPI_Win_flush", not "Call MPI_Win_flush." */
static char *remedy_inline(const char *remedy)
{
    size_t len = strlen(remedy);
    char *text = oriel_format("%.*s", (int)(len - (len > 0 && remedy[len - 1] == '.')), remedy);
    if (isupper((unsigned char)text[0]) && islower((unsigned char)text[1]))
        text[0] = (char)tolower((unsigned char)text[0]);
    return text;
}

static char *site_brief(const struct oriel_record_site *site)
{
    return site->place.line == 0 && site->place.module[0] == '\0' ? oriel_format("%s", site->call)
                                                                  : place_brief(&site->place);
}

/* "between app.c:8 and app.c:9"; if both are in one line, "between MPI_Put and free at app.c:8", or
 * "between two calls of MPI_Put at app.c:8", as in a loop. */
static void between_print(FILE *out, const struct oriel_record_finding *record)
{
    const struct oriel_record_site *first = &record->other, *second = &record->here;
    char *first_place = site_brief(first), *second_place = site_brief(second);
    if (!is_same_line(first, second))
        fprintf(out, "between %s and %s", first_place, second_place);
    else if (strcmp(first->call, second->call) == 0)
        fprintf(out, "between two calls of %s at %s", first->call, first_place);
    else
        fprintf(out, "between %s and %s at %s", first->call, second->call, first_place);
    free(first_place);
    free(second_place);
}

char *oriel_finding_help(const struct oriel_record_finding *record)
{
    static const char between[] = "between @other and @here";
    char *remedy = remedy_inline(oriel_check_rule(record->rule)->remedy);
    const char *at = record->help[0] != '\0' ? record->help : remedy;
    char *text = NULL;
    size_t text_bytes;
    FILE *out = oriel_alloc_checked(open_memstream(&text, &text_bytes));
    while (*at != '\0') {
        size_t len = 0;
        if (strncmp(at, between, sizeof between - 1) == 0) {
            between_print(out, record);
            at += sizeof between - 1;
            continue;
        }
        const struct oriel_record_site *site = placeholder_find(record, at, &len);
        if (site == NULL) {
            fputc(*at++, out);
            continue;
        }
        char *place = site_brief(site);
        if (is_same_line(&record->here, &record->other) &&
            (site == &record->here || site == &record->other))
            fprintf(out, "%s at ", site->call); /* tells the two apart */
        fputs(place, out);
        free(place);
        at += len;
    }
    fclose(out);
    free(remedy);
    return oriel_alloc_checked(text);
}

/* --- notes of marks --- */

char *oriel_finding_bytes(const struct oriel_record_finding *record)
{
    char *bytes;
    if (record->offset < 0 || record->len_bytes == 0)
        return oriel_format("%s", "");
    int64_t last = record->offset + (int64_t)record->len_bytes - 1;
    if (record->len_bytes == 1)
        bytes = oriel_format("byte %" PRId64, record->offset);
    else
        bytes = oriel_format("bytes %" PRId64 " to %" PRId64, record->offset, last);
    if (record->element < 0)
        return bytes;
    char *both = record->elements <= 1
                     ? oriel_format("element %" PRId64 " (%s)", record->element, bytes)
                     : oriel_format("elements %" PRId64 " to %" PRId64 " (%s)", record->element,
                                    record->element + (int64_t)record->elements - 1, bytes);
    free(bytes);
    return both;
}

/* "in device memory of GPU 0" after the text before; "" for host memory. To be freed. */
static char *device_describe(const struct oriel_record_finding *record, const char *before)
{
    return record->device < 0
               ? oriel_format("%s", "")
               : oriel_format("%sin device memory of GPU %" PRId32, before, record->device);
}

/* The window with what identifies it, and the bytes; "" if there is no window. */
static char *window_describe(const struct oriel_record_finding *record)
{
    if (record->flavour[0] == '\0' && record->window[0] == '\0')
        return oriel_format("%s", "");
    char *made = record->made.call[0] == '\0' ? NULL : place_brief(&record->made.place);
    char *bytes = oriel_finding_bytes(record);
    char *rank = record->target < 0 ? oriel_format("%s", "")
                                    : oriel_format(", rank %" PRId32, record->target);
    char *name = record->window[0] == '\0'
                     ? oriel_format("%s", made == NULL ? "a window" : "the window")
                     : oriel_format("window \"%s\"", record->window);
    char *device = device_describe(record, ", ");
    char *text = oriel_format("%s%s%s%s%s%s%s%s", name, made == NULL ? "" : " (made at ",
                              made == NULL ? "" : made, made == NULL ? "" : ")", rank, device,
                              bytes[0] == '\0' ? "" : ", ", bytes);
    free(made);
    free(device);
    free(bytes);
    free(rank);
    free(name);
    return text;
}

static const char *effect_name(uint32_t effect)
{
    return effect == ORIEL_EFFECT_READS     ? "reads"
           : effect == ORIEL_EFFECT_WRITES  ? "writes"
           : effect == ORIEL_EFFECT_UPDATES ? "updates"
           : effect == ORIEL_EFFECT_FREES   ? "frees"
                                            : "";
}

static void mark_add(struct drawing *drawing, const struct oriel_record_site *site, char *note,
                     bool underlines)
{
    struct mark *mark = &drawing->marks[drawing->count++];
    *mark = (struct mark){.site = site, .note = note, .underlines = underlines};
    if (oriel_source_line(&site->place, &mark->line, &mark->len_bytes) != ORIEL_SOURCE_READ)
        mark->line = NULL;
}

static void accesses_mark(struct drawing *drawing, const struct oriel_record_finding *record)
{
    const struct oriel_record_site *here, *other;
    char *window = window_describe(record);
    char *device = device_describe(record, " ");
    accesses_order(record, &here, &other);
    if (here->call[0] != '\0') {
        const char *does = effect_name(here->effect);
        mark_add(drawing, here,
                 window[0] != '\0'
                     ? oriel_format("%s%s%s", does, does[0] == '\0' ? "" : " ", window)
                 : does[0] != '\0' ? oriel_format("%s the buffer%s", does, device)
                                   : oriel_format("%s", ""),
                 true);
    }
    if (other->call[0] != '\0' && strcmp(other->call, record->made.call) == 0 &&
        is_same_line(other, &record->made))
        mark_add(drawing, other, oriel_format("made here"), true);
    else if (other->call[0] != '\0' && is_conflict(record) &&
             !(is_same_line(here, other) && here->effect == other->effect))
        mark_add(drawing, other,
                 other->effect == ORIEL_EFFECT_RETURNS
                     ? oriel_format("the function with the buffer has returned before this call")
                     : oriel_format("%s the same bytes", effect_name(other->effect)),
                 true);
    else if (other->call[0] != '\0' && !is_conflict(record))
        mark_add(drawing, other, oriel_format("rank %" PRId32, other->rank), true);
    free(window);
    free(device);
}

static void epochs_mark(struct drawing *drawing, const struct oriel_record_finding *record)
{
    const struct oriel_record_site *a = &record->opening, *b = &record->other_opening;
    bool are_one = a->call[0] != '\0' && is_same_line(a, b) && strcmp(a->epoch, b->epoch) == 0;
    if (!is_conflict(record)) {
        if (a->call[0] != '\0')
            mark_add(drawing, a,
                     strncmp(a->epoch, "MPI_", 4) == 0 || a->epoch[0] == '\0'
                         ? oriel_format("opens the epoch")
                         : oriel_format("opens the epoch: %s", a->epoch),
                     false);
        return;
    }
    if (a->call[0] != '\0')
        mark_add(drawing, a,
                 are_one ? oriel_format("epoch of both: %s", a->epoch)
                         : oriel_format("epoch of rank %" PRId32 ": %s", a->rank, a->epoch),
                 false);
    if (b->call[0] != '\0' && !are_one)
        mark_add(drawing, b, oriel_format("epoch of rank %" PRId32 ": %s", b->rank, b->epoch),
                 false);
}

/* By file, the first mark's first, and line; epochs before accesses. */
static const char *first_file;

static int marks_compare(const void *left, const void *right)
{
    const struct mark *a = left, *b = right;
    const char *file_a = a->site->place.file, *file_b = b->site->place.file;
    int files = strcmp(file_a, file_b);
    if (files != 0)
        return strcmp(file_a, first_file) == 0 ? -1 : strcmp(file_b, first_file) == 0 ? 1 : files;
    if (a->site->place.line != b->site->place.line)
        return a->site->place.line < b->site->place.line ? -1 : 1;
    return (int)a->underlines - (int)b->underlines;
}

/* --- drawing --- */

static void gutter_print(const struct drawing *drawing, uint32_t number)
{
    char text[32];
    if (number == 0)
        snprintf(text, sizeof text, "%*s |", drawing->gutter, "");
    else
        snprintf(text, sizeof text, "%*" PRIu32 " |", drawing->gutter, number);
    colored(drawing, blue, text);
}

/* Columns of a line that are visible: from skipped on, room of them. "..." replaces the first. */
enum { ELLIPSIS = 3, CALL_INDENT = 8 };
struct view {
    int skipped, room;
};

/* Tabs become spaces, control characters '?'. Returns the columns printed. */
static int source_print(const struct drawing *drawing, const struct mark *mark,
                        const struct view *view)
{
    int column = 0;
    int first = view->skipped == 0 ? 0 : view->skipped + ELLIPSIS;
    int end = view->skipped + view->room;
    fputs(mark->len_bytes == 0 ? "" : view->skipped == 0 ? " " : " ...", drawing->out);
    for (size_t i = 0; i < mark->len_bytes; i++) {
        unsigned char byte = (unsigned char)mark->line[i];
        bool continues = (byte & 0xc0) == 0x80; /* a character is shown whole */
        int next = continues ? column : column + (byte == '\t' ? TAB - column % TAB : 1);
        if (column >= end && !continues)
            break;
        if (next > first && byte == '\t')
            fprintf(drawing->out, "%*s", next - (column > first ? column : first), "");
        else if (next > first)
            fputc(byte < ' ' || byte == 0x7f ? '?' : byte, drawing->out);
        column = next;
    }
    return column - view->skipped;
}

/* The column of a byte of the line. */
static int column_of(const struct mark *mark, size_t at)
{
    int column = 0;
    for (size_t i = 0; i < at && i < mark->len_bytes; i++)
        column += mark->line[i] == '\t'                           ? TAB - column % TAB
                  : ((unsigned char)mark->line[i] & 0xc0) == 0x80 ? 0
                                                                  : 1;
    return column;
}

static bool is_of_name(char byte)
{
    return isalnum((unsigned char)byte) || byte == '_';
}

/* A call: "read (", not "nread(", "read_all(" or "read". */
static bool is_call(const struct mark *mark, size_t begin, size_t len)
{
    size_t after = begin + len;
    while (after < mark->len_bytes && mark->line[after] == ' ')
        after++;
    return (begin == 0 || !is_of_name(mark->line[begin - 1])) && after < mark->len_bytes &&
           mark->line[after] == '(';
}

/* Finds the call of the name in the line, in any case: MPI_Win_put, then as languages with objects
 * write it, without MPI_ or MPI_Win_. Otherwise the whole statement. */
static void call_find(const struct mark *mark, size_t *begin, size_t *len)
{
    static const char *const prefixes[] = {"", "MPI_", "MPI_Win_"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        size_t skipped = strlen(prefixes[i]);
        const char *name = mark->site->call + skipped;
        *len = strlen(mark->site->call) > skipped ? strlen(name) : 0;
        if (*len == 0 || strncmp(mark->site->call, prefixes[i], skipped) != 0)
            continue;
        for (*begin = 0; *begin + *len <= mark->len_bytes; (*begin)++)
            if (strncasecmp(mark->line + *begin, name, *len) == 0 && is_call(mark, *begin, *len))
                return;
    }
    *begin = 0;
    while (*begin < mark->len_bytes && isspace((unsigned char)mark->line[*begin]))
        (*begin)++;
    *len = mark->len_bytes - *begin;
}

/* The column after the gutter, where notes begin. */
static int note_indent(const struct drawing *drawing)
{
    return drawing->gutter + 3;
}

/* Prints a note below the line, wrapped behind the gutter. */
static void note_print(const struct drawing *drawing, const char *note, int column)
{
    char *text = NULL;
    size_t text_bytes;
    int room = drawing->style.width - note_indent(drawing) - column;
    if (room < 20) {
        column = 0;
        room = drawing->style.width - note_indent(drawing);
    }
    FILE *lines = oriel_alloc_checked(open_memstream(&text, &text_bytes));
    oriel_text_wrap(lines, note, 0, 0, room > 10 ? room : 10);
    fclose(lines);
    for (const char *at = text; *at != '\0'; at += strcspn(at, "\n") + 1) {
        if (at != text || column == 0) {
            gutter_print(drawing, 0);
            fprintf(drawing->out, " %*s", column, "");
        }
        fprintf(drawing->out, "%.*s\n", (int)strcspn(at, "\n"), at);
    }
    free(text);
}

/* The part of the line with the first call that is underlined. */
static struct view line_view(const struct drawing *drawing, int at)
{
    struct view view = {.room = drawing->style.width - note_indent(drawing)};
    const struct mark *mark = &drawing->marks[at];
    size_t begin, len;
    while (at < drawing->count && !drawing->marks[at].underlines)
        at++;
    if (at == drawing->count || !is_same_line(mark->site, drawing->marks[at].site))
        return view;
    mark = &drawing->marks[at];
    call_find(mark, &begin, &len);
    int column = column_of(mark, begin);
    int columns = column_of(mark, begin + len) - column;
    if (column + (columns < view.room / 2 ? columns : view.room / 2) > view.room &&
        column > CALL_INDENT)
        view.skipped = column - CALL_INDENT;
    return view;
}

static void carets_print(const struct drawing *drawing, const struct mark *mark,
                         const struct view *view, const char *color)
{
    size_t begin, len;
    char carets[128];
    call_find(mark, &begin, &len);
    int column = column_of(mark, begin) - view->skipped;
    int columns = column_of(mark, begin + len) - view->skipped - column;
    if (column >= view->room || (view->skipped > 0 && column < ELLIPSIS)) {
        char *note =
            oriel_format("%s%s%s", mark->site->call, mark->note[0] == '\0' ? "" : ": ", mark->note);
        note_print(drawing, note, 0);
        free(note);
        return;
    }
    columns = columns < 1 ? 1 : columns > view->room - column ? view->room - column : columns;
    columns = columns >= (int)sizeof carets ? (int)sizeof carets - 1 : columns;
    memset(carets, '^', (size_t)columns);
    carets[columns] = '\0';
    gutter_print(drawing, 0);
    fprintf(drawing->out, " %*s", column, "");
    colored(drawing, color, carets);
    int used = note_indent(drawing) + column + columns + 1;
    if (mark->note[0] == '\0')
        fputs("\n", drawing->out);
    else if (used + (int)strlen(mark->note) <= drawing->style.width)
        fprintf(drawing->out, " %s\n", mark->note);
    else {
        fputs("\n", drawing->out);
        note_print(drawing, mark->note, 0);
    }
}

/* Draws the marks of one line, from marks[at] on. Returns the next mark. */
static int line_draw(const struct drawing *drawing, int at, const char *color)
{
    const struct mark *mark = &drawing->marks[at];
    const struct view view = line_view(drawing, at);
    gutter_print(drawing, mark->site->place.line);
    int column = source_print(drawing, mark, &view);
    int next = at;
    bool is_beside = !mark->underlines;
    for (; next < drawing->count && is_same_line(mark->site, drawing->marks[next].site); next++) {
        const struct mark *one = &drawing->marks[next];
        if (next == at && is_beside && column + 6 + (int)strlen(one->note) <= view.room) {
            fprintf(drawing->out, "      ");
            colored(drawing, blue, one->note);
            fputs("\n", drawing->out);
            continue;
        }
        if (next == at)
            fputs("\n", drawing->out);
        if (one->underlines)
            carets_print(drawing, one, &view, color);
        else
            note_print(drawing, one->note, 0);
    }
    return next;
}

static void equals_print(const struct drawing *drawing, const char *label, const char *color,
                         const char *text)
{
    fprintf(drawing->out, "%*s ", drawing->gutter, "");
    colored(drawing, blue, "=");
    fputs(" ", drawing->out);
    colored(drawing, color, label);
    fputs(" ", drawing->out);
    int used = drawing->gutter + 4 + (int)strlen(label);
    oriel_text_wrap(drawing->out, text, used, drawing->gutter + 3, drawing->style.width);
}

/* Returns whether a line was quoted. */
static bool marks_draw(struct drawing *drawing, const struct oriel_record_finding *record,
                       const char *color)
{
    const char *file = record->here.place.file;
    int quoted = 0;
    struct mark unread[MARKS];
    int unread_count = 0;
    for (int i = 0; i < drawing->count; i++)
        if (drawing->marks[i].line == NULL)
            unread[unread_count++] = drawing->marks[i];
        else
            drawing->marks[quoted++] = drawing->marks[i];
    drawing->count = quoted;
    first_file = file;
    qsort(drawing->marks, (size_t)quoted, sizeof drawing->marks[0], marks_compare);
    uint32_t last = 0;
    if (quoted > 0) {
        gutter_print(drawing, 0);
        fputs("\n", drawing->out);
    }
    for (int i = 0; i < quoted;) {
        const struct oriel_code_address *place = &drawing->marks[i].site->place;
        if (strcmp(place->file, file) != 0) {
            file = place->file;
            fprintf(drawing->out, "%*s", drawing->gutter, "");
            colored(drawing, blue, " ::: ");
            fprintf(drawing->out, "%s\n", oriel_text_path(file));
        } else if (last != 0 && place->line > last + 1)
            colored(drawing, blue, "...\n");
        last = place->line;
        i = line_draw(drawing, i, color);
    }
    for (int i = 0; i < unread_count; i++) {
        char *where = place_brief(&unread[i].site->place);
        char *note =
            oriel_format("%s%s%s%s%s", unread[i].site->call, unread[i].underlines ? "" : " at ",
                         unread[i].underlines ? "" : where, unread[i].note[0] == '\0' ? "" : ": ",
                         unread[i].note);
        if (unread[i].note[0] != '\0')
            equals_print(drawing, "note:", bold, note);
        free(where);
        free(note);
        free(unread[i].note);
    }
    for (int i = 0; i < quoted; i++)
        free(drawing->marks[i].note);
    return quoted > 0;
}

static void locations_print(const struct drawing *drawing,
                            const struct oriel_record_finding *record)
{
    const struct oriel_record_site *here, *other;
    accesses_order(record, &here, &other);
    char *a = here->call[0] == '\0' ? NULL : oriel_finding_place(&here->place);
    char *b = other->call[0] == '\0' ? NULL : oriel_finding_place(&other->place);
    char *text;
    fprintf(drawing->out, "%*s", drawing->gutter, "");
    colored(drawing, blue, "--> ");
    if (a == NULL || b == NULL)
        text = oriel_format("%s (rank %" PRId32 ")", a == NULL ? b == NULL ? "" : b : a,
                            a == NULL ? other->rank : here->rank);
    else if (strcmp(a, b) == 0 && here->rank == other->rank)
        text = oriel_format("%s (rank %" PRId32 ", twice)", a, here->rank);
    else
        text = oriel_format("%s (rank %" PRId32 ") and %s (rank %" PRId32 ")", a, here->rank, b,
                            other->rank);
    oriel_text_wrap(drawing->out, text, drawing->gutter + 4, drawing->gutter + 4,
                    drawing->style.width);
    free(text);
    free(a);
    free(b);
}

/* "MPIX_Put_init at app.c:8 made the request of MPI_Start at app.c:12". */
static void init_print(struct drawing *drawing, const struct oriel_record_site *start,
                       const struct oriel_record_site *init)
{
    if (init->call[0] == '\0')
        return;
    char *made = site_brief(init), *started = site_brief(start);
    char *note = oriel_format("%s at %s made the request of %s at %s", init->call, made,
                              start->call, started);
    equals_print(drawing, "note:", bold, note);
    free(note);
    free(made);
    free(started);
}

/* Why lines are not known or not quoted: the first reason of all sites. */
static void lines_explain(const struct drawing *drawing, const struct oriel_record_finding *record)
{
    const struct oriel_record_site *sites[] = {&record->here, &record->other};
    for (size_t i = 0; i < sizeof sites / sizeof sites[0]; i++) {
        const struct oriel_code_address *place = &sites[i]->place;
        const char *line;
        size_t len_bytes;
        const char *slash = strrchr(place->module, '/');
        char *note = NULL;
        if (sites[i]->call[0] == '\0')
            continue;
        if (oriel_source_line(place, &line, &len_bytes) == ORIEL_SOURCE_NEWER)
            note = oriel_format("%s is newer than the program: it changed since the build, and is "
                                "not quoted",
                                oriel_text_path(place->file));
        else if (place->file[0] == '\0' && place->module[0] != '\0' && place->has_debug == 0)
            note = oriel_format("%s has no debug information: compile with -g to see files and "
                                "lines",
                                slash == NULL ? place->module : slash + 1);
        if (note == NULL)
            continue;
        equals_print(drawing, "note:", bold, note);
        free(note);
        return;
    }
}

static void stack_print(const struct drawing *drawing, const char *stack)
{
    for (const char *at = stack; *at != '\0';) {
        size_t len = strcspn(at, "\n");
        char *frame = oriel_format("%.*s", (int)len, at);
        if (at == stack)
            equals_print(drawing, "stack:", bold, frame);
        else
            fprintf(drawing->out, "%*s%s\n", drawing->gutter + 10, "", frame);
        free(frame);
        at += len + (at[len] == '\n');
    }
}

static int gutter_columns(const struct drawing *drawing)
{
    uint32_t most = 10;
    int columns = 0;
    for (int i = 0; i < drawing->count; i++)
        if (drawing->marks[i].line != NULL && drawing->marks[i].site->place.line > most)
            most = drawing->marks[i].site->place.line;
    for (; most > 0; most /= 10)
        columns++;
    return columns;
}

char *oriel_finding_source(const struct oriel_record_finding *record, int width)
{
    char *text = NULL;
    size_t text_bytes;
    FILE *out = oriel_alloc_checked(open_memstream(&text, &text_bytes));
    struct drawing drawing = {.out = out, .style = {.width = width}};
    accesses_mark(&drawing, record);
    epochs_mark(&drawing, record);
    drawing.gutter = gutter_columns(&drawing);
    bool is_quoted = marks_draw(&drawing, record, "");
    fclose(out);
    text = oriel_alloc_checked(text);
    text[is_quoted ? text_bytes : 0] = '\0';
    return text;
}

void oriel_finding_print(FILE *out, const struct oriel_record_finding *record,
                         const struct oriel_text_style *style)
{
    struct drawing drawing = {.out = out, .style = *style};
    const struct oriel_check_rule *rule = oriel_check_rule(record->rule);
    const char *color = strcmp(rule->severity, "error") == 0 ? red : yellow;
    char *headline = oriel_finding_headline(record);
    char *help = oriel_finding_help(record);
    char *label = oriel_format("%s[%s]", rule->severity, rule->number);
    accesses_mark(&drawing, record);
    epochs_mark(&drawing, record);
    drawing.gutter = gutter_columns(&drawing);
    colored(&drawing, color, label);
    fputs(style->color ? bold : "", out);
    fputs(": ", out);
    oriel_text_wrap(out, headline, (int)strlen(label) + 2, 2, style->width);
    fputs(style->color ? "\033[0m" : "", out);
    if (record->here.call[0] != '\0' || record->other.call[0] != '\0')
        locations_print(&drawing, record);
    marks_draw(&drawing, record, color);
    if (record->detail[0] != '\0')
        equals_print(&drawing, "note:", bold, record->detail);
    init_print(&drawing, &record->here, &record->init);
    init_print(&drawing, &record->other, &record->other_init);
    lines_explain(&drawing, record);
    const struct oriel_code_address *allowed = oriel_standing_no_reason(record);
    if (allowed != NULL) {
        char *note =
            oriel_format("the comment at %s:%" PRIu32 " has no reason, so it allows nothing",
                         oriel_text_path(allowed->file), allowed->line);
        equals_print(&drawing, "note:", bold, note);
        free(note);
    }
    stack_print(&drawing, record->stack);
    equals_print(&drawing, "help:", cyan, help);
    fputs("\n", out);
    free(headline);
    free(help);
    free(label);
}
