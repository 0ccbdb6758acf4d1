/* At the end: sends every rank's records to rank 0, which passes them to the `oriel` command to be
 * written.
 *
 * Messages of the host carry them over MPI_COMM_WORLD, the one communicator of all ranks. The
 * program may have receives outstanding that match any message, so nothing is sent before all ranks
 * are here. A nonblocking barrier of the host confirms that: a rank without Oriel, or without
 * ORIEL_STATS, never joins it. Every step takes at most PATIENCE_S, unless all ranks are known to
 * be on their way. Then a warning names the missing ranks, and the program ends normally. */
#include "observe/stats/observed_window.h"

#include "base/helper_process.h"
#include "base/log.h"
#include "base/options.h"
#include "base/wait.h"
#include "host/host.h"
#include "memory/peer.h"
#include "observe/state/state.h"
#include "observe/stats/merged_records.h"
#include "oriel/oriel.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_S = 10, SPINS = 200, TAG = 28530 };

struct part {
    struct oriel_merged_records *gathered; /* from malloc, with its records; NULL: absent */
    size_t len_bytes;
};

/* --- a process's part, from its memory file --- */

/* The mapped file, and in it the newest record of a window and that of the process, or NULL. */
struct source {
    const char *base;
    uint64_t newest;
    const struct oriel_process_record *process;
};

static const struct oriel_window_record *record_at(const struct source *source, uint64_t offset)
{
    return offset == 0 ? NULL : (const struct oriel_window_record *)(source->base + offset);
}

/* Its counters may change meanwhile. */
static char *pack_window(const struct source *source, const struct oriel_window_record *record,
                         char *at)
{
    struct oriel_window_record *packed = (struct oriel_window_record *)at;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the second walk finds the same chain */
    size_t toward_bytes = (size_t)record->n * sizeof(struct oriel_toward);
    memcpy(at, record, sizeof *record);
    memcpy(at + sizeof *record, source->base + record->toward, toward_bytes);
    memcpy(at + sizeof *record + toward_bytes, source->base + record->ranks,
           (size_t)record->n * sizeof(int32_t));
    packed->sites = oriel_site_table_copy(
        (const void *)(source->base + record->sites),
        (struct oriel_counted_site *)(at + oriel_merged_window_bytes(record->n, 0)));
    return at + oriel_merged_window_bytes(record->n, packed->sites);
}

/* The places of its call sites, as far as its newest record knows them. */
static const struct oriel_site_places *source_places(const struct source *source)
{
    const struct oriel_window_record *newest = record_at(source, source->newest);
    return newest == NULL || newest->places == 0 ? NULL
                                                 : (const void *)(source->base + newest->places);
}

static char *pack_places(const struct source *source, struct oriel_merged_records *part, char *at)
{
    const struct oriel_site_places *places = source_places(source);
    part->places = places == NULL ? 0 : atomic_load_explicit(&places->count, memory_order_acquire);
    size_t len_bytes = part->places * sizeof(struct oriel_code_address);
    if (len_bytes > 0)
        memcpy(at, places->places, len_bytes);
    return at + len_bytes;
}

/* A pause that goes on counts until now. */
static char *pack_process(const struct source *source, struct oriel_merged_records *part, char *at)
{
    const struct oriel_process_record *process = source->process;
    uint32_t count =
        process == NULL ? 0 : atomic_load_explicit(&process->regions, memory_order_acquire);
    if (process == NULL)
        return at;
    uint64_t since_ns = atomic_load_explicit(&process->paused_since_ns, memory_order_relaxed);
    part->paused_ns = atomic_load_explicit(&process->paused_ns, memory_order_relaxed);
    part->paused_ns += since_ns != 0 ? oriel_now_ns() - since_ns : 0;
    for (uint32_t i = 0; i < count && i < ORIEL_REGIONS_MOST; i++) {
        if (atomic_load_explicit(&process->region[i].count, memory_order_relaxed) == 0)
            continue;
        memcpy(at, &process->region[i], sizeof process->region[i]);
        at += sizeof process->region[i];
        part->regions++;
    }
    return at;
}

/* The number of records in the chain, which starts at the newest; and the most that they, their
 * call sites, places and regions can need. */
static uint32_t chain_measure(const struct source *source, size_t *len_bytes)
{
    uint32_t windows = 0;
    *len_bytes = sizeof(struct oriel_merged_records) +
                 ORIEL_PLACES_MOST * sizeof(struct oriel_code_address) +
                 ORIEL_REGIONS_MOST * sizeof(struct oriel_counted_region);
    for (const struct oriel_window_record *record = record_at(source, source->newest);
         record != NULL; record = record_at(source, record->next)) {
        *len_bytes += oriel_merged_window_bytes(record->n, ORIEL_SITE_ROWS);
        windows++;
    }
    return windows;
}

static struct part part_pack(const struct source *source, int world_rank)
{
    size_t room;
    uint32_t windows = chain_measure(source, &room);
    struct part part = {.gathered = room <= INT_MAX ? calloc(1, room) : NULL};
    const struct oriel_window_record **records =
        calloc(windows + 1, sizeof(const struct oriel_window_record *));
    if (part.gathered == NULL || records == NULL) {
        free(part.gathered);
        free(records);
        return (struct part){NULL, 0};
    }
    uint32_t i = windows;
    for (const struct oriel_window_record *record = record_at(source, source->newest);
         record != NULL; record = record_at(source, record->next))
        records[--i] = record;
    *part.gathered = (struct oriel_merged_records){
        .magic = ORIEL_MERGED_MAGIC, .world_rank = world_rank, .windows = windows};
    char *at = pack_places(source, part.gathered, (char *)(part.gathered + 1));
    at = pack_process(source, part.gathered, at);
    for (i = 0; i < windows; i++)
        at = pack_window(source, records[i], at);
    free(records);
    part.len_bytes = (size_t)(at - (char *)part.gathered);
    part.gathered->len_bytes = part.len_bytes - sizeof *part.gathered;
    return part;
}

/* --- between the ranks --- */

/* Whether the request completes before the time. An incomplete receive is cancelled. A send or
 * barrier is left to the host. */
static bool request_await_until(MPI_Request *request, uint64_t until_ns, bool is_receive)
{
    for (unsigned tests = 0;; tests++) {
        int done = 0;
        if (oriel_host()->Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return false;
        if (done)
            return true;
        if (oriel_now_ns() >= until_ns)
            break;
        if (tests > SPINS)
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    if (is_receive) {
        oriel_host()->Cancel(request);
        oriel_host()->Request_free(request);
    }
    return false;
}

static uint64_t patience_end_ns(void)
{
    return oriel_now_ns() + PATIENCE_S * UINT64_C(1000000000);
}

/* A process of this node that shares a window with this one; false if it is not of this world. */
static bool peer_source(const struct oriel_peer *peer, int ranks, int32_t *rank,
                        struct source *source)
{
    const struct oriel_state *state =
        (const struct oriel_state *)(peer->base + ORIEL_FILE_STATE_OFFSET);
    *rank = state->world_rank;
    *source = (struct source){
        .base = peer->base, .newest = atomic_load_explicit(&state->records, memory_order_acquire)};
    if (source->newest != 0) {
        uint64_t process = record_at(source, source->newest)->process;
        source->process = process != 0 ? (const void *)(peer->base + process) : NULL;
    }
    return state->world_size == ranks && *rank >= 0 && *rank < ranks && source->newest != 0;
}

struct census {
    bool *is_coming; /* by rank */
    int ranks;
};

static void count_peer(void *value, void *context)
{
    const struct oriel_peer *peer = value;
    const struct census *census = context;
    const struct oriel_file_header *header = (const struct oriel_file_header *)peer->base;
    struct source source;
    int32_t rank;
    if (peer_source(peer, census->ranks, &rank, &source) &&
        record_at(&source, source.newest)->is_gathered &&
        atomic_load_explicit(&header->state, memory_order_acquire) == ORIEL_FILE_RUNNING &&
        oriel_peer_alive(peer))
        census->is_coming[rank] = true;
}

/* Whether each rank is known to be on its way: then the late ones are awaited, as in any
 * MPI_Finalize. */
static bool all_are_coming(int ranks)
{
    struct census census = {calloc((unsigned)ranks, sizeof *census.is_coming), ranks};
    bool all = census.is_coming != NULL;
    if (all)
        oriel_peer_visit(count_peer, &census);
    for (int i = 0; i < ranks && all; i++)
        all = census.is_coming[i];
    free(census.is_coming);
    return all;
}

/* Whether all ranks have arrived. */
static bool all_ranks_meet(int ranks)
{
    MPI_Request request;
    if (oriel_host()->Ibarrier(MPI_COMM_WORLD, &request) != MPI_SUCCESS)
        return false;
    while (!request_await_until(&request, patience_end_ns(), false))
        if (!all_are_coming(ranks))
            return false;
    return true;
}

/* Sends this rank's part to rank 0. False: the host may still be reading the buffer. */
static bool part_send(const struct part *part)
{
    static uint64_t len_bytes;
    MPI_Request request;
    uint64_t until_ns = patience_end_ns();
    len_bytes = part->gathered != NULL ? part->len_bytes : 0;
    if (oriel_host()->Isend(&len_bytes, sizeof len_bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD,
                            &request) != MPI_SUCCESS)
        return true;
    if (!request_await_until(&request, until_ns, false))
        return false;
    return len_bytes == 0 ||
           oriel_host()->Isend(part->gathered, (int)len_bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD,
                               &request) != MPI_SUCCESS ||
           request_await_until(&request, until_ns, false);
}

/* Receives a rank's part. A buffer that the host may still write to is left to it. */
static struct part part_receive(int rank, uint64_t until_ns)
{
    static uint64_t len_bytes;
    MPI_Request request;
    if (oriel_host()->Irecv(&len_bytes, sizeof len_bytes, MPI_BYTE, rank, TAG, MPI_COMM_WORLD,
                            &request) != MPI_SUCCESS ||
        !request_await_until(&request, until_ns, true) ||
        len_bytes < sizeof(struct oriel_merged_records) || len_bytes > INT_MAX)
        return (struct part){NULL, 0};
    struct part part = {malloc(len_bytes), len_bytes};
    if (part.gathered == NULL ||
        oriel_host()->Irecv(part.gathered, (int)len_bytes, MPI_BYTE, rank, TAG, MPI_COMM_WORLD,
                            &request) != MPI_SUCCESS ||
        !request_await_until(&request, until_ns, true))
        return (struct part){NULL, 0};
    return part;
}

/* --- rank 0 --- */

static void read_program_path(char *out, size_t room)
{
    ssize_t len = readlink("/proc/self/exe", out, room - 1);
    out[len < 0 ? 0 : len] = '\0';
}

static void write_parts(const struct part *parts, int ranks, const char *file, uint64_t ran_ns)
{
    size_t len_bytes = sizeof(struct oriel_statistics_head);
    void *answer = NULL;
    size_t answer_bytes = 0;
    for (int i = 0; i < ranks; i++)
        len_bytes += parts[i].len_bytes;
    if (len_bytes > ORIEL_HELPER_LEN_MAX) {
        oriel_warn_job("the statistics of %d ranks are %zu MiB, the limit is %d MiB: they are "
                       "lost [O21]",
                       ranks, len_bytes >> 20, ORIEL_HELPER_LEN_MAX >> 20);
        return;
    }
    struct oriel_statistics_head *head = calloc(1, len_bytes);
    if (head == NULL) {
        oriel_warn_job("no memory for the statistics of %d ranks [O21]", ranks);
        return;
    }
    head->magic = ORIEL_MERGED_MAGIC;
    head->ranks = ranks;
    head->ran_ns = ran_ns;
    head->width = oriel_options()->stats_width;
    snprintf(head->file, sizeof head->file, "%s", file);
    snprintf(head->version, sizeof head->version, "%s", ORIEL_VERSION);
    snprintf(head->host, sizeof head->host, "%s", oriel_host_name());
    oriel_host_version(head->host_version, sizeof head->host_version);
    read_program_path(head->program, sizeof head->program);
    char *at = (char *)(head + 1);
    for (int i = 0; i < ranks; i++) {
        if (parts[i].gathered == NULL)
            continue;
        memcpy(at, parts[i].gathered, parts[i].len_bytes);
        at += parts[i].len_bytes;
        head->parts++;
    }
    if (oriel_helper_request(ORIEL_HELPER_STATISTICS, head, len_bytes, &answer, &answer_bytes))
        oriel_log_write(answer, answer_bytes);
    else
        oriel_warn_job("the statistics are lost: the oriel command next to the library, "
                       "which writes them, did not answer [O21]");
    free(answer);
    free(head);
}

/* Ranks of this node that share a window with this one and have not sent their records: read from
 * their memory files. */
struct missing {
    struct part *parts;
    int32_t ranks;
};

static void read_peer(void *value, void *context)
{
    const struct missing *missing = context;
    struct source source;
    int32_t rank;
    if (!peer_source(value, missing->ranks, &rank, &source) ||
        missing->parts[rank].gathered != NULL)
        return;
    missing->parts[rank] = part_pack(&source, rank);
    if (missing->parts[rank].gathered != NULL)
        missing->parts[rank].gathered->is_early = 1;
}

static void records_collect(const struct part *own, int ranks, bool all_here, const char *file,
                            uint64_t ran_ns)
{
    struct part *parts = calloc((unsigned)ranks, sizeof *parts);
    if (parts == NULL) {
        oriel_warn_job("no memory for the statistics of %d ranks [O21]", ranks);
        return;
    }
    uint64_t until_ns = patience_end_ns();
    parts[0] = *own;
    for (int i = 1; i < ranks && all_here; i++)
        parts[i] = part_receive(i, until_ns);
    oriel_peer_visit(read_peer, &(struct missing){parts, ranks});
    write_parts(parts, ranks, file, ran_ns);
    for (int i = 1; i < ranks; i++)
        free(parts[i].gathered);
    free(parts);
}

void oriel_statistics_write(const char *file, uint64_t ran_ns)
{
    int rank = 0;
    int ranks = 0;
    if (oriel_host()->Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS ||
        oriel_host()->Comm_size(MPI_COMM_WORLD, &ranks) != MPI_SUCCESS)
        return;
    const struct oriel_process_record *process = oriel_process_record();
    struct source source = {oriel_file_base(), oriel_records_newest(), process};
    struct part own = part_pack(&source, rank);
    bool all_here = all_ranks_meet(ranks);
    bool is_free = true;
    if (rank == 0)
        records_collect(&own, ranks, all_here, file, ran_ns);
    else if (all_here)
        is_free = part_send(&own);
    if (is_free)
        free(own.gathered);
} /* NOLINT(clang-analyzer-unix.Malloc): a buffer that the host may still send stays */
