/* Regions of a dynamic window: attached and detached at random, adjacent, overlapping, empty, or at
 * impossible addresses. The model tracks attached memory byte by byte.  It omits regions that end
 * past the program's memory but within the address space. Their refusal is optional, and an access
 * to them would be an error of the program. */
#include "observed_window.h"

#include <stdlib.h>
#include <string.h>

void observed_make_dynamic(struct observed_window *observed)
{
    struct attached *attached = calloc(1, sizeof *attached);
    MPI_Aint address;
    attached->fixed = observed->win;
    MPI_Get_address(observed_memory(observed, observed->me), &address);
    MPI_Allgather(&address, 1, MPI_AINT, attached->address, 1, MPI_AINT, observed->comm);
    MPI_Info info = observed_info();
    CHECK_OK(FUZZ(Win_create_dynamic, info, observed->comm, &observed->win));
    MPI_Info_free(&info);
    MPI_Win_set_errhandler(observed->win, MPI_ERRORS_RETURN);
    for (int i = 0; i < observed->n; i++)
        observed->unit[i] = 1;
    observed->attached = attached;
}

/* Detaches everything that is still attached. */
void observed_end_dynamic(struct observed_window *observed)
{
    notify_settle(observed);
    CHECK_OK(FUZZ(Win_free, &observed->win));
    observed->win = observed->attached->fixed;
    free(observed->attached);
    observed->attached = NULL;
}

bool observed_is_attached(const struct observed_window *observed, int rank, __int128 offset,
                          __int128 len_bytes)
{
    __int128 first = offset + (__int128)observed->before[rank];
    if (first < 0 || first + len_bytes > (__int128)observed->regions[rank].len_bytes)
        return false;
    for (__int128 i = first; i < first + len_bytes; i++)
        if (!observed->attached->bytes[rank][i])
            return false;
    return true;
}

void observed_share_attached(struct observed_window *observed)
{
    unsigned char own[OBSERVED_SPAN_BYTES];
    memcpy(own, observed->attached->bytes[observed->me], sizeof own);
    MPI_Allgather(own, sizeof own, MPI_BYTE, observed->attached->bytes, sizeof own, MPI_BYTE,
                  observed->comm);
}

static bool touches(const struct attached *attached, int me, int from, int to)
{
    for (int i = from; i < to; i++)
        if (attached->bytes[me][i])
            return true;
    return false;
}

static void attach(struct observed_window *observed, struct random *random)
{
    struct attached *attached = observed->attached;
    struct region *region = &observed->regions[observed->me];
    int end = (int)region->len_bytes;
    int from = below(random, end);
    if (attached->count > 0 && one_in(random, 2)) /* directly after another region, or nearly */
        from = attached->to[below(random, attached->count)] + below(random, 2);
    int to = from + 1 + below(random, one_in(random, 3) ? 200 : 60);
    from = from < end ? from : end - 1;
    to = to < end ? to : end;
    struct verdict verdict = {touches(attached, observed->me, from, to) ? FAULT_ATTACH : 0, 0};
    fuzz_describe("Win_attach(from %d to %d of %d)", from, to, end);
    if (!fuzz_judge(verdict, FUZZ(Win_attach, observed->win, region->at + from, to - from)) ||
        verdict.must != 0)
        return;
    memset(attached->bytes[observed->me] + from, 1, (size_t)(to - from));
    attached->from[attached->count] = from;
    attached->to[attached->count++] = to;
}

static void attach_wrongly(struct observed_window *observed, struct random *random)
{
    unsigned char *at = observed->regions[observed->me].at;
    unsigned char *top = (unsigned char *)UINTPTR_MAX - below(random, 50);
    MPI_Aint size = 60 + below(random, 1000);
    int choice = below(random, 3);
    fuzz_describe("Win_attach, invalid in form %d", choice);
    if (choice == 0)
        fuzz_judge((struct verdict){FAULT_SIZE | FAULT_ARG, 0},
                   FUZZ(Win_attach, observed->win, one_in(random, 2) ? at : NULL,
                        -1 - (fuzz_bad_aint(random) & INT64_MAX)));
    else if (choice == 1)
        fuzz_judge((struct verdict){FAULT_BASE, 0}, FUZZ(Win_attach, observed->win, NULL, size));
    else
        fuzz_judge((struct verdict){FAULT_ATTACH, 0}, FUZZ(Win_attach, observed->win, top, size));
}

/* An empty region makes nothing accessible. Several may share an address, and the address may be
 * outside all regions. */
static void attach_empty(struct observed_window *observed, struct random *random)
{
    struct attached *attached = observed->attached;
    unsigned char *at = one_in(random, 3) ? NULL
                                          : observed->regions[observed->me].at +
                                                observed->regions[observed->me].len_bytes + 64;
    fuzz_describe("Win_attach(nothing)");
    if (attached->empty_count < OBSERVED_SPAN_BYTES &&
        fuzz_judge((struct verdict){0, 0}, FUZZ(Win_attach, observed->win, at, 0)))
        attached->empty[attached->empty_count++] = at;
}

static void detach(struct observed_window *observed, struct random *random)
{
    struct attached *attached = observed->attached;
    struct region *region = &observed->regions[observed->me];
    if (attached->empty_count > 0 && one_in(random, 4)) {
        fuzz_describe("Win_detach(nothing)");
        attached->empty_count--;
        fuzz_judge((struct verdict){0, 0},
                   FUZZ(Win_detach, observed->win, attached->empty[attached->empty_count]));
        return;
    }
    int chosen = attached->count > 0 ? below(random, attached->count) : -1;
    int from = chosen >= 0 && !one_in(random, 3) ? attached->from[chosen]
                                                 : below(random, (int)region->len_bytes);
    for (chosen = attached->count - 1; chosen >= 0 && attached->from[chosen] != from;)
        chosen--;
    struct verdict verdict = {chosen < 0 ? FAULT_ATTACH : 0, 0};
    fuzz_describe("Win_detach(%d)", from);
    if (!fuzz_judge(verdict, FUZZ(Win_detach, observed->win, region->at + from)) || chosen < 0)
        return;
    memset(attached->bytes[observed->me] + from, 0, (size_t)(attached->to[chosen] - from));
    attached->count--;
    attached->from[chosen] = attached->from[attached->count];
    attached->to[chosen] = attached->to[attached->count];
}

void observed_attach_once(struct observed_window *observed, struct random *random)
{
    switch (random_below(random, 10)) {
    case 0: attach_wrongly(observed, random); return;
    case 1: attach_empty(observed, random); return;
    case 2:
    case 3:
    case 4: detach(observed, random); return;
    default: attach(observed, random); return;
    }
}
