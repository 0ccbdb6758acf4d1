/* Merges the findings of all nodes at rank 0, in MPI_Finalize. Every rank takes part. One process
 * of each node sends the findings of its shared memory, after all ranks have arrived and nothing
 * can be added any more. */
#include "check/report/finding_internal.h"

#include "base/log.h"
#include "host/host.h"

#include <stdlib.h>
#include <string.h>

/* The data that a process sends: this header, its records, its counts. */
struct parcel {
    uint32_t records_count, counts_count;
    uint64_t lost;
    uint64_t local_watched;
};

/* The next library's collectives, in the simplest forms of the standard: all ranks are here, and
 * wait as in MPI_Finalize itself. */
struct collectives {
    __typeof__(PMPI_Barrier) *barrier;
    __typeof__(PMPI_Gather) *gather;
    __typeof__(PMPI_Gatherv) *gatherv;
    __typeof__(PMPI_Bcast) *bcast;
};

static bool collectives_find(struct collectives *out)
{
    out->barrier = (__typeof__(out->barrier))oriel_host_symbol("PMPI_Barrier");
    out->gather = (__typeof__(out->gather))oriel_host_symbol("PMPI_Gather");
    out->gatherv = (__typeof__(out->gatherv))oriel_host_symbol("PMPI_Gatherv");
    out->bcast = (__typeof__(out->bcast))oriel_host_symbol("PMPI_Bcast");
    return out->barrier != NULL && out->gather != NULL && out->gatherv != NULL &&
           out->bcast != NULL;
}

/* Returns this node's findings as bytes if this process sends them, else NULL and 0. Without memory
 * they are only counted, in the spare parcel. */
static char *parcel_pack(struct oriel_findings *findings, struct parcel *spare, int *len_bytes)
{
    *len_bytes = 0;
    if (findings == NULL || atomic_exchange(&findings->taken, 1) != 0)
        return NULL;
    struct oriel_summary own;
    oriel_summary_collect(&own);
    struct parcel parcel = {.records_count = own.records_count,
                            .counts_count = own.counts_count,
                            .lost = own.lost,
                            .local_watched = (uint64_t)own.local_watched};
    size_t records_bytes = own.records_count * sizeof *own.records;
    size_t counts_bytes = own.counts_count * sizeof *own.counts;
    bool collected = own.records != NULL && own.counts != NULL;
    char *bytes = collected ? malloc(sizeof parcel + records_bytes + counts_bytes) : NULL;
    if (bytes != NULL) {
        memcpy(bytes, &parcel, sizeof parcel);
        memcpy(bytes + sizeof parcel, own.records, records_bytes);
        memcpy(bytes + sizeof parcel + records_bytes, own.counts, counts_bytes);
        *len_bytes = (int)(sizeof parcel + records_bytes + counts_bytes);
    } else {
        *spare = (struct parcel){.lost = own.lost + findings->used,
                                 .local_watched = (uint64_t)own.local_watched};
        *len_bytes = (int)sizeof *spare;
        bytes = (char *)spare;
    }
    free(own.records);
    free(own.counts);
    return bytes;
}

/* Adds one node's findings to the job's, which has room for all. */
static void parcel_unpack(const char *bytes, struct oriel_summary *summary)
{
    struct parcel parcel;
    memcpy(&parcel, bytes, sizeof parcel);
    size_t records_bytes = parcel.records_count * sizeof *summary->records;
    memcpy(summary->records + summary->records_count, bytes + sizeof parcel, records_bytes);
    memcpy(summary->counts + summary->counts_count, bytes + sizeof parcel + records_bytes,
           parcel.counts_count * sizeof *summary->counts);
    summary->records_count += parcel.records_count;
    summary->counts_count += parcel.counts_count;
    summary->lost += parcel.lost;
    summary->local_watched = summary->local_watched || parcel.local_watched != 0;
}

/* Returns false when memory is exhausted. */
static bool summary_make(const char *bytes, const int *lens_bytes, const int *starts_bytes,
                         int size, size_t all_bytes, struct oriel_summary *out)
{
    memset(out, 0, sizeof *out);
    out->ranks = size;
    out->complete = 1;
    out->records = malloc(all_bytes + 1);
    out->counts = malloc(all_bytes + 1);
    if (out->records == NULL || out->counts == NULL)
        return false;
    for (int i = 0; i < size; i++)
        if (lens_bytes[i] > 0)
            parcel_unpack(bytes + starts_bytes[i], out);
    return true;
}

/* Whether rank 0 has the memory for the next step; if not, no rank sends anything. */
static bool rank_0_has_memory(const struct collectives *all, const void *room)
{
    int can = room != NULL;
    all->bcast(&can, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return can != 0;
}

/* Sends all parcels to rank 0, which gets them one after the other in *bytes. Returns false if rank
 * 0 has no memory for them. */
static bool parcels_meet(const struct collectives *all, int rank, int size, char *own,
                         int len_bytes, int *lens_bytes, char **bytes, size_t *all_bytes)
{
    int *starts_bytes = lens_bytes == NULL ? NULL : lens_bytes + size;
    *bytes = NULL;
    *all_bytes = 0;
    if (!rank_0_has_memory(all, lens_bytes))
        return false;
    all->gather(&len_bytes, 1, MPI_INT, lens_bytes, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < size && rank == 0 && starts_bytes != NULL; i++) {
        starts_bytes[i] = (int)*all_bytes;
        *all_bytes += (size_t)lens_bytes[i];
    }
    if (rank == 0)
        *bytes = malloc(*all_bytes + 1);
    if (!rank_0_has_memory(all, *bytes))
        return false;
    all->gatherv(own, len_bytes, MPI_BYTE, *bytes, lens_bytes, starts_bytes, MPI_BYTE, 0,
                 MPI_COMM_WORLD);
    return true;
}

/* At rank 0: returns the number of findings that count. */
static uint32_t merged_findings_write(const char *bytes, const int *lens_bytes, int size,
                                      size_t all_bytes, bool *done)
{
    struct oriel_summary summary;
    *done = summary_make(bytes, lens_bytes, lens_bytes + size, size, all_bytes, &summary);
    uint32_t counting = *done ? oriel_summary_write(&summary) : 0;
    free(summary.records);
    free(summary.counts);
    return counting;
}

void oriel_finding_end(void)
{
    struct oriel_findings *findings = oriel_findings();
    struct collectives all;
    int rank = 0;
    int size = 0;
    int len_bytes = 0;
    if (!collectives_find(&all))
        return;
    oriel_host()->Comm_rank(MPI_COMM_WORLD, &rank);
    oriel_host()->Comm_size(MPI_COMM_WORLD, &size);
    /* A launcher reads the ranks' pipes in any order; the summary comes after all findings. */
    if (oriel_finding_has_printed())
        oriel_summary_wait_for_reader();
    all.barrier(MPI_COMM_WORLD);
    struct parcel spare;
    char *own = parcel_pack(findings, &spare, &len_bytes);
    int *lens_bytes = rank == 0 ? calloc(2 * (size_t)size, sizeof *lens_bytes) : NULL;
    char *bytes;
    size_t all_bytes;
    uint32_t total = 0;
    bool done = parcels_meet(&all, rank, size, own, len_bytes, lens_bytes, &bytes, &all_bytes);
    if (rank == 0 && done)
        total = merged_findings_write(bytes, lens_bytes, size, all_bytes, &done);
    if (rank == 0 && !done) {
        oriel_warn_job(
            "the checker has no memory for a summary; findings were reported as they were "
            "found");
        total = findings == NULL ? 0 : findings->used;
    }
    all.bcast(&total, 1, MPI_UINT32_T, 0, MPI_COMM_WORLD);
    if (findings != NULL) {
        findings->total = total;
        findings->met = 1;
    }
    free(bytes);
    free(lens_bytes);
    if (own != (char *)&spare)
        free(own);
}
