/* MPI_Alloc_mem and MPI_Free_mem (MPI-4.1, 10.2): memory from the own file, which windows made over it reach by load and store.
 * What Oriel did not allocate goes to the host.  Programs call, through entries.c. */
#include "api/api.h"
#include "base/log.h"
#include "base/options.h"
#include "base/table.h"
#include "memory/file.h"
#include "window/create.h"
#include "window/handle.h"
#include "window/info.h"

static struct oriel_table given_out = ORIEL_TABLE_INIT; /* by MPI_Alloc_mem, and not freed */

int oriel_entry_Alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr)
{
    uint64_t offset;
    struct oriel_hints hints;
    if (oriel_options()->bypass || oriel_handle_in_child())
        return oriel_host()->Alloc_mem(size, info, baseptr);
    if (size < 0)
        return oriel_error_raise_nowhere("MPI_Alloc_mem", oriel_fail(ORIEL_E_SIZE, "size %ld is negative", (long)size));
    if (oriel_window_start() != ORIEL_OK) {
        oriel_note("MPI_Alloc_mem: the memory comes from the host: %s", oriel_fail_message());
        return oriel_host()->Alloc_mem(size, info, baseptr);
    }
    oriel_hints_init(&hints);
    enum oriel_status status = oriel_hints_read(&hints, info);
    if (status == ORIEL_OK)
        status = oriel_file_alloc((uint64_t)size, oriel_hints_alignment(&hints), &offset);
    if (status == ORIEL_E_OTHER) {
        oriel_note("MPI_Alloc_mem: the memory comes from the host: %s", oriel_fail_message());
        return oriel_host()->Alloc_mem(size, info, baseptr);
    }
    char *base = status == ORIEL_OK ? oriel_file_base() + offset : NULL;
    if (status == ORIEL_OK && !oriel_table_set(&given_out, (uintptr_t)base, base)) {
        oriel_file_free(offset);
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory for the table of allocations");
    }
    if (status != ORIEL_OK)
        return oriel_error_raise_nowhere("MPI_Alloc_mem", status);
    *(void **)baseptr = base;
    return MPI_SUCCESS;
}

int oriel_entry_Free_mem(void *base)
{
    uint64_t offset;
    if (!oriel_file_find(base, 1, &offset))
        return oriel_host()->Free_mem(base);
    if (oriel_handle_in_child() || (oriel_table_remove(&given_out, (uintptr_t)base, base) && oriel_file_free(offset)))
        return MPI_SUCCESS;
    return oriel_error_raise_nowhere(
        "MPI_Free_mem", oriel_fail(ORIEL_E_BASE, "%p was not returned by MPI_Alloc_mem, or is free already", base));
}
