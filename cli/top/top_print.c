/* Prints one job as text and as JSON, with the same content. A rank has no rates unless operations
 * are counted, which the user must request. */
#include "cli/top/top.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/hosts.h"
#include "cli/json.h"

void oriel_rate_print(double rate, const char *unit, FILE *out)
{
    static const char prefixes[] = " kMGTP";
    int at = 0;
    while (rate >= 999.5 && prefixes[at + 1] != '\0') {
        rate /= 1000;
        at++;
    }
    fprintf(out, at == 0 || rate >= 99.5 ? "%.0f%s%.*s%s" : "%.1f%s%.*s%s", rate,
            at > 0 || unit[0] != ' ' ? " " : "", at > 0, &prefixes[at], unit);
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
    fprintf(out, "%d rank%s", (int)(size > 0 ? size : (int32_t)totals.present),
            size == 1 ? "" : "s");
    if (size > 0 && totals.present != (size_t)size)
        fprintf(out, " (%zu here)", totals.present);
    if (totals.counts) {
        fputs(", ", out);
        oriel_rate_print(totals.operations_rate, " operations/s", out);
        fputs(", ", out);
        oriel_rate_print(totals.bytes_rate, "B/s", out);
    }
    fprintf(out, ", %zu waiting", totals.waiting);
}

static void deadlock_print(const int32_t *ranks, size_t count, void *context)
{
    FILE *out = context;
    fputs("  deadlock: ", out);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%d -> ", (int)ranks[i]);
    fprintf(out, "%d\n", (int)ranks[0]);
}

static void print_rate(bool counts, double rate, const char *unit, FILE *out)
{
    char *text = NULL;
    size_t len = 0;
    FILE *memory = oriel_alloc_checked(open_memstream(&text, &len));
    if (counts && rate >= 0)
        oriel_rate_print(rate, unit, memory);
    else
        fputc('-', memory);
    fclose(memory);
    fprintf(out, "%10s  ", text);
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

static void missing_ranks_print(const struct oriel_waits *waits, FILE *out)
{
    int32_t *ranks = oriel_alloc(ORIEL_STATE_RANKS * sizeof *ranks);
    size_t count = missing_ranks_find(waits, ranks);
    if (count > 0) {
        fprintf(out, "  %s ", count == 1 ? "rank" : "ranks");
        oriel_ranks_print(ranks, count, out);
        fprintf(out, " %s created no window yet, %s ended, or %s on another node\n",
                count == 1 ? "has" : "have", count == 1 ? "has" : "have",
                count == 1 ? "is" : "are");
    }
    free(ranks);
}

void oriel_top_print(const struct oriel_waits *waits, FILE *out)
{
    const struct oriel_process *first = &waits->processes[0];
    fprintf(out, "job %08" PRIx32 ": %s on %s, ", (uint32_t)(first->job >> 32), first->program,
            oriel_host_title(first->host));
    oriel_top_title(waits, out);
    fputc('\n', out);
    oriel_waits_rings(waits, deadlock_print, out);
    fprintf(out, "  %5s  %7s  %10s  %10s\n", "rank", "process", "operations", "bytes");
    for (size_t i = 0; i < waits->count; i++) {
        const struct oriel_process *process = &waits->processes[i];
        char rank[16] = "?";
        if (process->world_rank >= 0)
            snprintf(rank, sizeof rank, "%d", (int)process->world_rank);
        fprintf(out, "  %5s  %7d  ", rank, (int)process->pid);
        print_rate(process->counts, process->operations_rate, "/s", out);
        print_rate(process->counts, process->bytes_rate, "B/s", out);
        if (process->why[0] != '\0')
            fputs(process->why, out);
        else
            oriel_waits_print(waits, i, out);
        fputc('\n', out);
    }
    missing_ranks_print(waits, out);
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
    oriel_json_set(job, "size", json_integer(first->world_size));
    for (size_t i = 0; i < waits->count; i++)
        oriel_json_append(ranks, rank_json(waits, i));
    oriel_json_set(job, "ranks", ranks);
    oriel_waits_rings(waits, deadlock_append, rings);
    oriel_json_set(job, "deadlocks", rings);
    oriel_json_set(job, "missing", ranks_json(missing, missing_ranks_find(waits, missing)));
    free(missing);
    return job;
}
