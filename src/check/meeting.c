/* Where the findings of all machines meet: at rank 0, in MPI_Finalize.  Every rank takes part; of each machine one process
 * brings what stands in the board, when all ranks have come and so nothing is added any more.  start.c calls. */
#include "check/finding_parts.h"

#include "host/host.h"

#include <stdlib.h>
#include <string.h>

/* What a process brings: this, its records, its counts. */
struct parcel {
    uint32_t records_count, counts_count;
    uint64_t lost;
    uint64_t local_watched;
};

/* The collectives behind the checker, in the standard's plainest form: all ranks are here, and wait as in MPI_Finalize itself. */
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
    return out->barrier != NULL && out->gather != NULL && out->gatherv != NULL && out->bcast != NULL;
}

/* This machine's findings as bytes, if this process is to bring them; NULL and 0 otherwise. */
static char *parcel_pack(struct oriel_findings *findings, int *len_bytes)
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
    char *bytes = malloc(sizeof parcel + records_bytes + counts_bytes);
    if (bytes != NULL) {
        memcpy(bytes, &parcel, sizeof parcel);
        memcpy(bytes + sizeof parcel, own.records, records_bytes);
        memcpy(bytes + sizeof parcel + records_bytes, own.counts, counts_bytes);
        *len_bytes = (int)(sizeof parcel + records_bytes + counts_bytes);
    }
    free(own.records);
    free(own.counts);
    return bytes;
}

/* Adds one machine's to the job's, which has room for all. */
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

static void summary_make(const char *bytes, const int *lens_bytes, const int *starts_bytes, int size, size_t all_bytes,
                         struct oriel_summary *out)
{
    memset(out, 0, sizeof *out);
    out->ranks = size;
    out->complete = 1;
    out->records = malloc(all_bytes + 1);
    out->counts = malloc(all_bytes + 1);
    for (int i = 0; i < size && out->records != NULL && out->counts != NULL; i++)
        if (lens_bytes[i] > 0)
            parcel_unpack(bytes + starts_bytes[i], out);
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
    all.barrier(MPI_COMM_WORLD);
    char *own = parcel_pack(findings, &len_bytes);
    int *lens_bytes = calloc(2 * (size_t)size, sizeof *lens_bytes);
    int *starts_bytes = lens_bytes == NULL ? NULL : lens_bytes + size;
    all.gather(&len_bytes, 1, MPI_INT, lens_bytes, 1, MPI_INT, 0, MPI_COMM_WORLD);
    size_t all_bytes = 0;
    for (int i = 0; i < size && rank == 0 && starts_bytes != NULL; i++) {
        starts_bytes[i] = (int)all_bytes;
        all_bytes += (size_t)lens_bytes[i];
    }
    char *bytes = malloc(all_bytes + 1);
    all.gatherv(own, len_bytes, MPI_BYTE, bytes, lens_bytes, starts_bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    uint32_t total = 0;
    if (rank == 0 && bytes != NULL && starts_bytes != NULL) {
        struct oriel_summary summary;
        summary_make(bytes, lens_bytes, starts_bytes, size, all_bytes, &summary);
        oriel_summary_write(&summary);
        total = summary.records_count;
        free(summary.records);
        free(summary.counts);
    }
    all.bcast(&total, 1, MPI_UINT32_T, 0, MPI_COMM_WORLD);
    if (findings != NULL) {
        findings->total = total;
        findings->met = 1;
    }
    free(bytes);
    free(lens_bytes);
    free(own);
}
