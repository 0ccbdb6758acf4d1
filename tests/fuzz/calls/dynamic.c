/* Regions of a dynamic window: attached and detached at random, adjacent, overlapping, empty, or at
 * impossible addresses. The model tracks attached memory byte by byte.  It omits regions that end
 * past the program's memory but within the address space. Their refusal is optional, and an access
 * to them would be an error of the program. */
#include "observed_window.h"

#include <stdlib.h>
#include <string.h>

void field_make_dynamic(struct field *field)
{
    struct attached *attached = calloc(1, sizeof *attached);
    MPI_Aint address;
    attached->fixed = field->win;
    MPI_Get_address(field_memory(field, field->me), &address);
    MPI_Allgather(&address, 1, MPI_AINT, attached->address, 1, MPI_AINT, field->comm);
    CHECK_OK(FUZZ(Win_create_dynamic, MPI_INFO_NULL, field->comm, &field->win));
    MPI_Win_set_errhandler(field->win, MPI_ERRORS_RETURN);
    for (int i = 0; i < field->n; i++)
        field->unit[i] = 1;
    field->attached = attached;
}

/* Detaches everything that is still attached. */
void field_end_dynamic(struct field *field)
{
    CHECK_OK(FUZZ(Win_free, &field->win));
    field->win = field->attached->fixed;
    free(field->attached);
    field->attached = NULL;
}

bool field_is_attached(const struct field *field, int rank, __int128 offset, __int128 len_bytes)
{
    __int128 first = offset + (__int128)field->before[rank];
    if (first < 0 || first + len_bytes > (__int128)field->regions[rank].len_bytes)
        return false;
    for (__int128 i = first; i < first + len_bytes; i++)
        if (!field->attached->bytes[rank][i])
            return false;
    return true;
}

void field_tell_attached(struct field *field)
{
    unsigned char own[FIELD_SPAN_BYTES];
    memcpy(own, field->attached->bytes[field->me], sizeof own);
    MPI_Allgather(own, sizeof own, MPI_BYTE, field->attached->bytes, sizeof own, MPI_BYTE,
                  field->comm);
}

static bool touches(const struct attached *attached, int me, int from, int to)
{
    for (int i = from; i < to; i++)
        if (attached->bytes[me][i])
            return true;
    return false;
}

static void attach(struct field *field, struct random *random)
{
    struct attached *attached = field->attached;
    struct region *region = &field->regions[field->me];
    int end = (int)region->len_bytes;
    int from = below(random, end);
    if (attached->count > 0 && one_in(random, 2)) /* directly after another region, or nearly */
        from = attached->to[below(random, attached->count)] + below(random, 2);
    int to = from + 1 + below(random, one_in(random, 3) ? 200 : 60);
    from = from < end ? from : end - 1;
    to = to < end ? to : end;
    struct verdict verdict = {touches(attached, field->me, from, to) ? FAULT_ATTACH : 0, 0};
    fuzz_describe("Win_attach(from %d to %d of %d)", from, to, end);
    if (!fuzz_judge(verdict, FUZZ(Win_attach, field->win, region->at + from, to - from)) ||
        verdict.must != 0)
        return;
    memset(attached->bytes[field->me] + from, 1, (size_t)(to - from));
    attached->from[attached->count] = from;
    attached->to[attached->count++] = to;
}

static void attach_wrongly(struct field *field, struct random *random)
{
    unsigned char *at = field->regions[field->me].at;
    unsigned char *top = (unsigned char *)UINTPTR_MAX - below(random, 50);
    MPI_Aint size = 60 + below(random, 1000);
    int choice = below(random, 3);
    fuzz_describe("Win_attach, wrong in way %d", choice);
    if (choice == 0)
        fuzz_judge((struct verdict){FAULT_SIZE | FAULT_ARG, 0},
                   FUZZ(Win_attach, field->win, one_in(random, 2) ? at : NULL,
                        -1 - (fuzz_bad_aint(random) & INT64_MAX)));
    else if (choice == 1)
        fuzz_judge((struct verdict){FAULT_BASE, 0}, FUZZ(Win_attach, field->win, NULL, size));
    else
        fuzz_judge((struct verdict){FAULT_ATTACH, 0}, FUZZ(Win_attach, field->win, top, size));
}

/* An empty region makes nothing accessible. Several may share an address, and the address may be
 * outside all regions. */
static void attach_empty(struct field *field, struct random *random)
{
    struct attached *attached = field->attached;
    unsigned char *at =
        one_in(random, 3) ? NULL
                          : field->regions[field->me].at + field->regions[field->me].len_bytes + 64;
    fuzz_describe("Win_attach(nothing)");
    if (attached->empty_count < FIELD_SPAN_BYTES &&
        fuzz_judge((struct verdict){0, 0}, FUZZ(Win_attach, field->win, at, 0)))
        attached->empty[attached->empty_count++] = at;
}

static void detach(struct field *field, struct random *random)
{
    struct attached *attached = field->attached;
    struct region *region = &field->regions[field->me];
    if (attached->empty_count > 0 && one_in(random, 4)) {
        fuzz_describe("Win_detach(nothing)");
        attached->empty_count--;
        fuzz_judge((struct verdict){0, 0},
                   FUZZ(Win_detach, field->win, attached->empty[attached->empty_count]));
        return;
    }
    int chosen = attached->count > 0 ? below(random, attached->count) : -1;
    int from = chosen >= 0 && !one_in(random, 3) ? attached->from[chosen]
                                                 : below(random, (int)region->len_bytes);
    for (chosen = attached->count - 1; chosen >= 0 && attached->from[chosen] != from;)
        chosen--;
    struct verdict verdict = {chosen < 0 ? FAULT_ATTACH : 0, 0};
    fuzz_describe("Win_detach(%d)", from);
    if (!fuzz_judge(verdict, FUZZ(Win_detach, field->win, region->at + from)) || chosen < 0)
        return;
    memset(attached->bytes[field->me] + from, 0, (size_t)(attached->to[chosen] - from));
    attached->count--;
    attached->from[chosen] = attached->from[attached->count];
    attached->to[chosen] = attached->to[attached->count];
}

void field_attach_once(struct field *field, struct random *random)
{
    switch (random_below(random, 10)) {
    case 0: attach_wrongly(field, random); return;
    case 1: attach_empty(field, random); return;
    case 2:
    case 3:
    case 4: detach(field, random); return;
    default: attach(field, random); return;
    }
}
