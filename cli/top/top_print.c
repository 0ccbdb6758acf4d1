/* Prints one job as text and as JSON, with the same content. A rank has no rates unless operations
 * are counted, which the user must request. */
#include "cli/top/top.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/counters.h"
#include "cli/figures.h"
#include "cli/hosts.h"
#include "cli/json.h"

enum { WINDOWS_SHOWN = 5, WORD = 16, RATE = 16, NARROW = 60, BELOW = 4 /* columns */ };

static const char bold[] = "\033[1m", red[] = "\033[1;31m", yellow[] = "\033[33m",
                  green[] = "\033[32m", magenta[] = "\033[35m", soft[] = "\033[2m";

const char *const oriel_top_orders[ORIEL_TOP_ORDERS] = {"rank", "wait", "operations", "bytes"};

/* "1.2 M": a number with a metric prefix. */
static const char *rate_text(double rate, char out[RATE])
{
    static const char *const prefixes[] = {"", " k", " M", " G", " T", " P"};
    size_t at = 0;
    while (rate >= 999.5 && at + 1 < sizeof prefixes / sizeof prefixes[0]) {
        rate /= 1000;
        at++;
    }
    snprintf(out, RATE, at == 0 || rate >= 99.5 ? "%.0f%s" : "%.1f%s", rate, prefixes[at]);
    return out;
}

static void top_colored(const struct oriel_text_style *style, const char *color, const char *text,
                        FILE *out)
{
    fprintf(out, "%s%s%s", style->color ? color : "", text, style->color ? "\033[0m" : "");
}

struct totals {
    size_t present, waiting;
    bool counts;
    double operations_rate, bytes_rate;
};

static struct totals totals_compute(const struct oriel_waits *waits)
{
    struct totals totals = {.present = 0};
    for (size_t i = 0; i < waits->count; i++) {
        const struct oriel_process *process = &waits->processes[i];
        if (process->has_ended || process->why[0] != '\0')
            continue;
        totals.present++;
        totals.waiting += process->wait.what != ORIEL_WAITING_NOTHING;
        if (process->counts && process->operations_rate >= 0) {
            totals.counts = true;
            totals.operations_rate += process->operations_rate;
            totals.bytes_rate += process->bytes_rate;
        }
    }
    return totals;
}

void oriel_top_title(const struct oriel_waits *waits, FILE *out)
{
    struct totals totals = totals_compute(waits);
    const struct oriel_process *first = &waits->processes[0];
    int32_t size = first->world_size;
    fprintf(out, "%d rank%s", (int)(size > 0 ? size : (int32_t)totals.present), oriel_plural(size));
    if (size > 0 && totals.present != (size_t)size)
        fprintf(out, " (%zu here)", totals.present);
    if (totals.counts) {
        char operations[RATE], bytes[RATE];
        rate_text(totals.operations_rate, operations);
        rate_text(totals.bytes_rate, bytes);
        fprintf(out, ", %s operations/s, %s%sB/s", operations, bytes,
                strchr(bytes, ' ') == NULL ? " " : "");
    }
    fprintf(out, ", %zu waiting", totals.waiting);
}

/* Prints a line, of which the first word or words have the color, wrapped after indent. */
static void line_print(const struct oriel_text_style *style, const char *color, const char *head,
                       const char *text, int indent, FILE *out)
{
    top_colored(style, color, head, out);
    oriel_text_wrap(out, text, (int)strlen(head), indent, style->width);
}

struct printing {
    const struct oriel_text_style *style;
    FILE *out;
};

static void deadlock_print(const int32_t *ranks, size_t count, void *context)
{
    const struct printing *printing = context;
    char *text = NULL;
    size_t len = 0;
    FILE *memory = oriel_alloc_checked(open_memstream(&text, &len));
    for (size_t i = 0; i < count; i++)
        fprintf(memory, "%d -> ", (int)ranks[i]);
    fprintf(memory, "%d", (int)ranks[0]);
    fclose(memory);
    line_print(printing->style, red, "  deadlock: ", text, 4, printing->out);
    free(text);
}

/* Stores the ranks with no process in the list, and returns their number. */
static size_t missing_ranks_find(const struct oriel_waits *waits, int32_t *ranks)
{
    size_t count = 0;
    for (int32_t rank = 0; rank < waits->processes[0].world_size && rank < ORIEL_STATE_RANKS;
         rank++)
        if (waits->by_rank[rank] < 0)
            ranks[count++] = rank;
    return count;
}

static void missing_ranks_print(const struct oriel_waits *waits,
                                const struct oriel_text_style *style, FILE *out)
{
    int32_t *ranks = oriel_alloc(ORIEL_STATE_RANKS * sizeof *ranks);
    size_t count = missing_ranks_find(waits, ranks);
    if (count > 0) {
        char *text = NULL;
        size_t len = 0;
        FILE *memory = oriel_alloc_checked(open_memstream(&text, &len));
        oriel_ranks_print(ranks, count, memory);
        fprintf(memory, " %s created no window yet, %s ended, or %s on another node",
                count == 1 ? "has" : "have", count == 1 ? "has" : "have",
                count == 1 ? "is" : "are");
        fclose(memory);
        line_print(style, "", count == 1 ? "  rank " : "  ranks ", text, 4, out);
        free(text);
    }
    free(ranks);
}

static void windows_print(const struct oriel_waits *waits, const struct oriel_text_style *style,
                          FILE *out)
{
    struct oriel_top_window *windows;
    size_t count = oriel_top_windows(waits, &windows);
    if (count > 0)
        top_colored(style, soft, "  ranks     op/s      B/s  window\n", out);
    for (size_t i = 0; i < count && i < WINDOWS_SHOWN; i++) {
        char operations[RATE], bytes[RATE];
        const char *flavour = oriel_flavour_name(windows[i].flavour, "");
        fprintf(out, "  %5zu  %7s  %7s  ", windows[i].ranks,
                rate_text(windows[i].operations_rate, operations),
                rate_text(windows[i].bytes_rate, bytes));
        if (windows[i].name[0] != '\0')
            fprintf(out, "\"%s\"\n", windows[i].name);
        else
            fprintf(out, "unnamed%s%s\n", flavour[0] != '\0' ? ", " : "", flavour);
    }
    if (count > WINDOWS_SHOWN)
        fprintf(out, "  and %zu more\n", count - WINDOWS_SHOWN);
    free(windows);
}

/* --- ranks --- */

struct row {
    size_t process;
    double key; /* the highest first */
};

static int compare_rows(const void *a, const void *b)
{
    const struct row *left = a, *right = b;
    if (left->key != right->key)
        return left->key > right->key ? -1 : 1;
    return (left->process > right->process) - (left->process < right->process);
}

static double row_key(const struct oriel_waits *waits, size_t i, enum oriel_top_order order)
{
    const struct oriel_process *process = &waits->processes[i];
    switch (order) {
    case ORIEL_TOP_BY_WAIT:
        return process->wait.what == ORIEL_WAITING_NOTHING || process->has_ended
                   ? -1
                   : (double)oriel_waits_ns(waits, i);
    case ORIEL_TOP_BY_OPERATIONS: return process->counts ? process->operations_rate : -1;
    case ORIEL_TOP_BY_BYTES: return process->counts ? process->bytes_rate : -1;
    default: return 0;
    }
}

static const char *state_color(const char *state)
{
    static const struct {
        const char *state, *color;
    } colors[] = {{"waits", yellow}, {"computes", green}, {"stopped", magenta}};
    for (size_t i = 0; i < sizeof colors / sizeof colors[0]; i++)
        if (strcmp(state, colors[i].state) == 0)
            return colors[i].color;
    return soft;
}

static void print_rate(const struct oriel_process *process, double rate, FILE *out)
{
    char text[RATE] = "-";
    if (process->counts && rate >= 0)
        rate_text(rate, text);
    fprintf(out, "%7s  ", text);
}

/* Prints what the process does, wrapped after the columns before it, or below them on a narrow
 * terminal. */
static void state_print(const struct oriel_waits *waits, size_t i, int used,
                        const struct oriel_text_style *style, FILE *out)
{
    const struct oriel_process *process = &waits->processes[i];
    char *text = NULL;
    size_t len = 0;
    FILE *memory = oriel_alloc_checked(open_memstream(&text, &len));
    if (process->why[0] != '\0')
        fputs(process->why, memory);
    else
        oriel_waits_print(waits, i, memory);
    fclose(memory);
    if (style->width < NARROW && used + (int)strlen(text) > style->width) {
        used = BELOW;
        fprintf(out, "\n%*s", used, "");
    }
    char word[WORD] = "";
    if (process->why[0] == '\0')
        snprintf(word, sizeof word, "%.*s", (int)strcspn(text, " "), text);
    top_colored(style, state_color(word), word, out);
    oriel_text_wrap(out, text + strlen(word), used + (int)strlen(word), used, style->width);
    free(text);
}

static void rank_print(const struct oriel_waits *waits, size_t i, bool has_rates,
                       const struct oriel_text_style *style, FILE *out)
{
    const struct oriel_process *process = &waits->processes[i];
    char rank[16] = "?";
    if (process->world_rank >= 0)
        snprintf(rank, sizeof rank, "%d", (int)process->world_rank);
    int used = fprintf(out, "  %5s  %7d  ", rank, (int)process->pid);
    if (has_rates) {
        print_rate(process, process->operations_rate, out);
        print_rate(process, process->bytes_rate, out);
        used += 18;
    }
    state_print(waits, i, used, style, out);
}

void oriel_top_print(const struct oriel_waits *waits, enum oriel_top_order order,
                     const struct oriel_text_style *style, FILE *out)
{
    const struct oriel_process *first = &waits->processes[0];
    char *title = NULL, host[ORIEL_HOST_TEXT];
    size_t len = 0;
    FILE *memory = oriel_alloc_checked(open_memstream(&title, &len));
    fprintf(memory, ": %s on %s, ", first->program,
            oriel_host_text(first->host, first->host_version, host));
    oriel_top_title(waits, memory);
    fclose(memory);
    char *job = oriel_format("job %08" PRIx32, (uint32_t)(first->job >> 32));
    line_print(style, bold, job, title, 4, out);
    free(job);
    free(title);

    bool has_rates = false;
    struct row *rows = oriel_alloc((waits->count + 1) * sizeof *rows);
    for (size_t i = 0; i < waits->count; i++) {
        has_rates = has_rates || waits->processes[i].counts;
        rows[i] = (struct row){.process = i, .key = row_key(waits, i, order)};
    }
    qsort(rows, waits->count, sizeof *rows, compare_rows);
    struct printing printing = {.style = style, .out = out};
    oriel_waits_rings(waits, deadlock_print, &printing);
    windows_print(waits, style, out);
    top_colored(style, soft,
                has_rates ? "   rank  process     op/s      B/s\n" : "   rank  process\n", out);
    for (size_t i = 0; i < waits->count; i++)
        rank_print(waits, rows[i].process, has_rates, style, out);
    free(rows);
    missing_ranks_print(waits, style, out);
}

/* --- JSON --- */

static json_t *ranks_json(const int32_t *ranks, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        oriel_json_append(array, json_integer(ranks[i]));
    return array;
}

static void deadlock_append(const int32_t *ranks, size_t count, void *context)
{
    oriel_json_append(context, ranks_json(ranks, count));
}

/* Keys of which nothing is known are absent. */
static void place_json_add(json_t *rank, const struct oriel_process *process)
{
    const struct oriel_code_address place = oriel_waits_place(process);
    const struct {
        const char *key, *text;
    } texts[] = {{"function", place.function}, {"file", place.file}, {"module", place.module}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].text[0] != '\0')
            oriel_json_set(rank, texts[i].key,
                           oriel_json_text(texts[i].text, strlen(texts[i].text)));
    if (place.file[0] != '\0')
        oriel_json_set(rank, "line", json_integer(place.line));
    if (place.offset != 0)
        oriel_json_set(rank, "offset", json_integer((json_int_t)place.offset));
}

static void wait_json_add(json_t *rank, const struct oriel_waits *waits, size_t i)
{
    const struct oriel_process *process = &waits->processes[i];
    const struct oriel_wait_seen *wait = &process->wait;
    int32_t *ranks = oriel_alloc(ORIEL_STATE_RANKS * sizeof *ranks);
    size_t count = oriel_waits_for(waits, i, ranks);
    oriel_json_set(rank, "call", json_string(oriel_waits_call(process)));
    oriel_json_set(rank, "window", json_string(wait->window_name));
    oriel_json_set(rank, "waits_for", ranks_json(ranks, count));
    oriel_json_set(rank, "waits_for_other_nodes", json_boolean(wait->others > 0));
    place_json_add(rank, process);
    oriel_json_set(rank, "since_s", json_real((double)oriel_waits_ns(waits, i) / 1e9));
    if (wait->world_rank >= 0)
        oriel_json_set(rank, "target", json_integer(wait->world_rank));
    free(ranks);
}

static json_t *rank_json(const struct oriel_waits *waits, size_t i)
{
    const struct oriel_process *process = &waits->processes[i];
    json_t *rank = json_object();
    bool known = process->counts && process->operations_rate >= 0;
    oriel_json_set(rank, "rank",
                   process->world_rank >= 0 ? json_integer(process->world_rank) : json_null());
    oriel_json_set(rank, "process", json_integer(process->pid));
    oriel_json_set(rank, "state", json_string(oriel_waits_state_name(process)));
    oriel_json_set(rank, "operations_per_s",
                   known ? json_real(process->operations_rate) : json_null());
    oriel_json_set(rank, "bytes_per_s", known ? json_real(process->bytes_rate) : json_null());
    oriel_json_set(rank, "operations",
                   process->counts ? json_integer((json_int_t)process->operations) : json_null());
    oriel_json_set(rank, "bytes",
                   process->counts ? json_integer((json_int_t)process->bytes) : json_null());
    if (process->why[0] != '\0')
        oriel_json_set(rank, "unreadable", json_string(process->why));
    if (process->wait.what != ORIEL_WAITING_NOTHING && !process->has_ended)
        wait_json_add(rank, waits, i);
    return rank;
}

static json_t *windows_json(const struct oriel_waits *waits)
{
    struct oriel_top_window *windows;
    json_t *list = json_array();
    size_t count = oriel_top_windows(waits, &windows);
    for (size_t i = 0; i < count; i++)
        oriel_json_append(list, json_pack("{s:o, s:I, s:f, s:f}", "window",
                                          oriel_json_text(windows[i].name, ORIEL_STATE_NAME),
                                          "ranks", (json_int_t)windows[i].ranks, "operations_per_s",
                                          windows[i].operations_rate, "bytes_per_s",
                                          windows[i].bytes_rate));
    free(windows);
    return list;
}

json_t *oriel_top_json(const struct oriel_waits *waits)
{
    const struct oriel_process *first = &waits->processes[0];
    char name[16];
    json_t *job = json_object();
    json_t *ranks = json_array();
    json_t *rings = json_array();
    int32_t *missing = oriel_alloc(ORIEL_STATE_RANKS * sizeof *missing);
    snprintf(name, sizeof name, "%08" PRIx32, (uint32_t)(first->job >> 32));
    oriel_json_set(job, "job", json_string(name));
    oriel_json_set(job, "program", json_string(first->program));
    oriel_json_set(job, "host", json_string(first->host));
    oriel_json_set(job, "host_version", json_string(first->host_version));
    oriel_json_set(job, "size", json_integer(first->world_size));
    for (size_t i = 0; i < waits->count; i++)
        oriel_json_append(ranks, rank_json(waits, i));
    oriel_json_set(job, "ranks", ranks);
    oriel_json_set(job, "windows", windows_json(waits));
    oriel_waits_rings(waits, deadlock_append, rings);
    oriel_json_set(job, "deadlocks", rings);
    oriel_json_set(job, "missing", ranks_json(missing, missing_ranks_find(waits, missing)));
    free(missing);
    return job;
}
