/* The summary and the files at the end of a job, which the helper writes. One process of each node
 * sends the node's findings to rank 0 once; equal findings of several nodes are one. */
#include "check/report/finding_internal.h"

#include "base/helper_process.h"
#include "base/log.h"
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

/* Two calls in one line of one function are one place, where lines are known. */
static bool same_place(const struct oriel_record_site *a, const struct oriel_record_site *b)
{
    if (a->place.line != 0 || b->place.line != 0)
        return a->place.line == b->place.line && strcmp(a->place.file, b->place.file) == 0 &&
               strcmp(a->place.function, b->place.function) == 0 && strcmp(a->call, b->call) == 0;
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

/* Returns the helper's answer, or NULL. */
static struct oriel_helper_summary *helper_ask(const struct oriel_summary *summary,
                                               size_t *answer_bytes)
{
    size_t records_bytes = summary->records_count * sizeof *summary->records;
    size_t counts_bytes = summary->counts_count * sizeof *summary->counts;
    size_t len_bytes = sizeof(struct oriel_helper_check) + records_bytes + counts_bytes;
    struct oriel_helper_check *request = calloc(1, len_bytes);
    void *answer = NULL;
    if (request == NULL)
        return NULL;
    oriel_finding_options(request);
    snprintf(request->version, sizeof request->version, "%s", ORIEL_VERSION);
    snprintf(request->host, sizeof request->host, "%s", oriel_host_name());
    oriel_host_version(request->host_version, sizeof request->host_version);
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
    bool done =
        oriel_helper_request(ORIEL_HELPER_FINDINGS, request, len_bytes, &answer, answer_bytes) &&
        *answer_bytes >= sizeof(struct oriel_helper_summary);
    free(request);
    if (!done) {
        free(answer);
        return NULL;
    }
    return answer;
}

/* What is known without the helper. */
static void summary_write_alone(const struct oriel_summary *summary)
{
    const struct oriel_options *options = oriel_options();
    const char *files[] = {options->check_json, options->check_sarif, options->check_junit};
    char bytes[LINE_BYTES];
    struct oriel_text text = {.bytes = bytes, .room = sizeof bytes};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (files[i] != NULL)
            oriel_text_add(&text,
                           "oriel check: %s was not written: the oriel command does not answer\n",
                           files[i]);
    uint64_t occurrences = 0;
    for (uint32_t i = 0; i < summary->records_count; i++)
        occurrences += summary->records[i].count;
    oriel_text_add(&text,
                   "oriel check: %" PRIu32 " problem%s (%" PRIu64 " occurrence%s) on %d rank%s\n",
                   summary->records_count, summary->records_count == 1 ? "" : "s", occurrences,
                   occurrences == 1 ? "" : "s", summary->ranks, summary->ranks == 1 ? "" : "s");
    oriel_text_write(&text);
}

uint32_t oriel_summary_write(struct oriel_summary *summary)
{
    size_t answer_bytes;
    records_merge(summary);
    counts_merge(summary);
    struct oriel_helper_summary *answer = helper_ask(summary, &answer_bytes);
    if (answer == NULL) {
        summary_write_alone(summary);
        return summary->records_count;
    }
    uint32_t counting = answer->counting;
    oriel_log_write((const char *)(answer + 1), answer_bytes - sizeof *answer);
    free(answer);
    return counting;
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

void oriel_summary_wait_for_reader(void)
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
    findings->total = oriel_summary_write(&summary);
    /* MPI_Abort follows, and launchers then end without reading the rest of the ranks' pipes. */
    oriel_summary_wait_for_reader();
    findings->written = 1;
    free(summary.records);
    free(summary.counts);
}
