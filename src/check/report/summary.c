/* The summary and the JSON file at the end of a job. One process of each node sends the node's
 * findings to rank 0 once; equal findings of several nodes are one. */
#include "check/report/finding_internal.h"

#include "base/helper_process.h"
#include "host/host.h"
#include "oriel/oriel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/options.h"

enum { LINE_BYTES = 4096 };
#define PATIENCE_NS UINT64_C(2000000000)

void oriel_summary_collect(struct oriel_summary *out)
{
    struct oriel_findings *findings = oriel_findings();
    uint32_t used = findings->used;
    uint32_t counted = findings->counted;
    memset(out, 0, sizeof *out);
    out->lost = findings->lost;
    out->local_watched = findings->local_watched != 0;
    out->records = calloc(used + 1, sizeof *out->records);
    out->counts = calloc(counted + 1, sizeof *out->counts);
    if (out->records == NULL || out->counts == NULL)
        return;
    for (; out->records_count < used; out->records_count++)
        oriel_record_read(&findings->entries[out->records_count],
                          &out->records[out->records_count]);
    for (; out->counts_count < counted; out->counts_count++) {
        struct oriel_record_count *count = &out->counts[out->counts_count];
        count->count = findings->counts[out->counts_count].count;
        memcpy(count->what, findings->counts[out->counts_count].what, sizeof count->what);
    }
}

static bool same_place(const struct oriel_record_site *a, const struct oriel_record_site *b)
{
    static const uint8_t unknown[sizeof a->place.build_id];
    bool same_module = memcmp(a->place.build_id, unknown, sizeof unknown) != 0
                           ? memcmp(a->place.build_id, b->place.build_id, sizeof unknown) == 0
                           : strcmp(a->place.module, b->place.module) == 0;
    return same_module && a->place.offset == b->place.offset && strcmp(a->call, b->call) == 0;
}

static bool same_finding(const struct oriel_record_finding *a, const struct oriel_record_finding *b)
{
    return a->rule == b->rule && strcmp(a->window, b->window) == 0 &&
           ((same_place(&a->here, &b->here) && same_place(&a->other, &b->other)) ||
            (same_place(&a->here, &b->other) && same_place(&a->other, &b->here)));
}

static void records_merge(struct oriel_summary *summary)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < summary->records_count; i++) {
        uint32_t at = 0;
        while (at < kept && !same_finding(&summary->records[at], &summary->records[i]))
            at++;
        if (at == kept) {
            summary->records[kept] = summary->records[i];
            kept++;
            continue;
        }
        summary->records[at].count += summary->records[i].count;
        for (size_t word = 0; word < sizeof summary->records[at].ranks / sizeof(uint64_t); word++)
            summary->records[at].ranks[word] |= summary->records[i].ranks[word];
    }
    summary->records_count = kept;
}

static void counts_merge(struct oriel_summary *summary)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < summary->counts_count; i++) {
        uint32_t at = 0;
        while (at < kept && strcmp(summary->counts[at].what, summary->counts[i].what) != 0)
            at++;
        if (at == kept)
            summary->counts[kept++] = summary->counts[i];
        else
            summary->counts[at].count += summary->counts[i].count;
    }
    summary->counts_count = kept;
}

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

static void counts_add(struct oriel_text *text, const struct oriel_summary *summary)
{
    for (uint32_t i = 0; i < summary->counts_count; i++) {
        const struct oriel_record_count *first = &summary->counts[i];
        uint32_t before = 0;
        while (before < i && !same_label(&summary->counts[before], first))
            before++;
        if (before < i)
            continue;
        oriel_text_add(text, "; %s (%" PRIu64 ")", first->what, first->count);
        for (uint32_t k = i + 1; k < summary->counts_count; k++)
            if (same_label(&summary->counts[k], first))
                oriel_text_add(text, ", %s (%" PRIu64 ")",
                               summary->counts[k].what + label_bytes(first->what),
                               summary->counts[k].count);
    }
}

static void not_checked_add(struct oriel_text *text, const struct oriel_summary *summary)
{
    oriel_text_add(text, "local accesses were %s",
                   summary->local_watched ? "watched"
                                          : "not watched (compile with -fsanitize=thread)");
    if (summary->lost > 0)
        oriel_text_add(text, "; no room for %" PRIu64 " more findings", summary->lost);
    counts_add(text, summary);
}

static void text_write(const struct oriel_summary *summary)
{
    char bytes[LINE_BYTES];
    struct oriel_text text = {.bytes = bytes, .room = sizeof bytes};
    uint64_t occurrences = 0;
    for (uint32_t i = 0; i < summary->records_count; i++)
        occurrences += summary->records[i].count;
    oriel_text_add(&text, "oriel: check: ");
    if (summary->records_count == 0)
        oriel_text_add(&text, "no findings");
    else
        oriel_text_add(&text, "%" PRIu32 " finding%s, %" PRIu64 " in all", summary->records_count,
                       summary->records_count == 1 ? "" : "s", occurrences);
    if (summary->complete)
        oriel_text_add(&text, " on %d rank%s", summary->ranks, summary->ranks == 1 ? "" : "s");
    else
        oriel_text_add(&text, " on this node; the program ended without MPI_Finalize");
    if (summary->records_count == 0) {
        oriel_text_add(&text, "; ");
        not_checked_add(&text, summary);
        oriel_text_add(&text, "\n");
        oriel_text_write(&text);
        return;
    }
    oriel_text_add(&text, "\n");
    oriel_text_write(&text);
    for (uint32_t i = 0; i < summary->records_count; i++) {
        text.used = 0;
        oriel_text_finding_brief(&text, &summary->records[i]);
        oriel_text_write(&text);
    }
    text.used = 0;
    oriel_text_add(&text, "oriel:     ");
    not_checked_add(&text, summary);
    oriel_text_add(&text, "\n");
    oriel_text_write(&text);
}

static void json_write(const struct oriel_summary *summary)
{
    const char *file = oriel_options()->check_json;
    if (file == NULL)
        return;
    size_t records_bytes = summary->records_count * sizeof *summary->records;
    size_t counts_bytes = summary->counts_count * sizeof *summary->counts;
    size_t len_bytes = sizeof(struct oriel_helper_json) + records_bytes + counts_bytes;
    struct oriel_helper_json *request = calloc(1, len_bytes);
    void *answer = NULL;
    size_t answer_bytes = 0;
    char line[LINE_BYTES];
    struct oriel_text text = {.bytes = line, .room = sizeof line};
    if (request != NULL) {
        snprintf(request->file, sizeof request->file, "%s", file);
        snprintf(request->version, sizeof request->version, "%s", ORIEL_VERSION);
        snprintf(request->host, sizeof request->host, "%s", oriel_host_name());
        ssize_t len = readlink("/proc/self/exe", request->program, sizeof request->program - 1);
        request->program[len < 0 ? 0 : len] = '\0';
        request->ranks = (uint32_t)summary->ranks;
        request->findings = summary->records_count;
        request->counts = summary->counts_count;
        request->local_watched = (uint32_t)summary->local_watched;
        request->lost = summary->lost;
        request->complete = (uint32_t)summary->complete;
        memcpy(request + 1, summary->records, records_bytes);
        memcpy((char *)(request + 1) + records_bytes, summary->counts, counts_bytes);
    }
    bool asked = request != NULL && oriel_helper_request(ORIEL_HELPER_JSON, request, len_bytes,
                                                         &answer, &answer_bytes);
    if (!asked || answer_bytes > 0) {
        oriel_text_add(&text, "oriel: check: %s was not written: %.*s\n", file,
                       asked ? (int)answer_bytes : 64,
                       asked ? (const char *)answer : "the oriel command does not answer");
        oriel_text_write(&text);
    }
    free(answer);
    free(request);
}

void oriel_summary_write(struct oriel_summary *summary)
{
    records_merge(summary);
    counts_merge(summary);
    text_write(summary);
    json_write(summary);
}

static bool is_within_patience(uint64_t begin_ns)
{
    return oriel_now_ns() - begin_ns < PATIENCE_NS;
}

/* Another process writes the summary; MPI_Abort here would end it in the middle of that. It may
 * also have died. */
static void wait_for_writer(const struct oriel_findings *findings)
{
    static const struct timespec some = {.tv_nsec = 1000000};
    for (uint64_t begin_ns = oriel_now_ns();
         findings->written == 0 && findings->met == 0 && is_within_patience(begin_ns);)
        nanosleep(&some, NULL);
}

/* MPI_Abort follows, and launchers then end without reading the rest of the ranks' pipes. */
static void wait_for_reader(void)
{
    static const struct timespec some = {.tv_nsec = 1000000}, passing_on = {.tv_nsec = 20000000};
    struct stat what;
    int left = 0;
    if (fstat(STDERR_FILENO, &what) != 0 || !S_ISFIFO(what.st_mode))
        return;
    for (uint64_t begin_ns = oriel_now_ns();
         ioctl(STDERR_FILENO, FIONREAD, &left) == 0 && left > 0 && is_within_patience(begin_ns);)
        nanosleep(&some, NULL);
    nanosleep(&passing_on, NULL);
}

void oriel_finding_end_alone(void)
{
    struct oriel_findings *findings = oriel_findings();
    if (findings == NULL)
        return;
    if (atomic_exchange(&findings->taken, 1) != 0) {
        wait_for_writer(findings);
        return;
    }
    struct oriel_summary summary;
    oriel_summary_collect(&summary);
    summary.ranks = oriel_shm_world_size();
    findings->total = summary.records_count;
    oriel_summary_write(&summary);
    wait_for_reader();
    findings->written = 1;
    free(summary.records);
    free(summary.counts);
}
