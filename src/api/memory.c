/* MPI_Alloc_mem and MPI_Free_mem (MPI-4.1, 10.2): memory from this process's memory file, which
 * windows over it access by load and store. Other memory is the host's. */
#include "api/api.h"
#include "base/hash_table.h"
#include "base/log.h"
#include "base/options.h"
#include "create/create.h"
#include "gpu/gpu.h"
#include "host/confirm.h"
#include "memory/file.h"
#include "window/handle.h"
#include "window/hints.h"

/* of the host, by the aligned address inside that the program got */
static struct oriel_hash_table host_blocks = ORIEL_HASH_TABLE_INIT;

/* Some hosts ignore the alignment (Open MPI 4.1), so this asks for more. The host has already
 * allocated size bytes, so the sum cannot overflow. */
static int host_alloc_aligned(MPI_Aint size, MPI_Info info, uint64_t align_bytes, void **base)
{
    const struct oriel_host_calls *host = oriel_host();
    oriel_note("MPI_Alloc_mem: the host allocates the memory: %s", oriel_fail_message());
    int code = host->Alloc_mem(size, info, base);
    if (code != MPI_SUCCESS || (uintptr_t)*base % align_bytes == 0)
        return code;
    host->Free_mem(*base);
    char *block;
    code = host->Alloc_mem(size + (MPI_Aint)align_bytes, info, &block);
    if (code != MPI_SUCCESS)
        return code;
    *base = block + (align_bytes - (uintptr_t)block % align_bytes);
    if (oriel_hash_table_set(&host_blocks, (uintptr_t)*base, block))
        return MPI_SUCCESS;
    host->Free_mem(block);
    return oriel_error_raise_nowhere(
        "MPI_Alloc_mem", oriel_fail(ORIEL_E_NO_MEM, "no memory for the table of allocations"));
}

static int host_free_aligned(void *base)
{
    void *block = oriel_hash_table_find(&host_blocks, (uintptr_t)base);
    if (block == NULL)
        return oriel_host()->Free_mem(base);
    if (!oriel_handle_in_child())
        oriel_hash_table_remove(&host_blocks, (uintptr_t)base, block);
    return oriel_host()->Free_mem(block);
}

/* In whole pages if they have a NUMA placement, which then is set where the kernel lets it. */
static enum oriel_status alloc_mem_placed(uint64_t size_bytes, const struct oriel_hints *hints,
                                          uint64_t *offset)
{
    const struct oriel_pages_placement placement = oriel_hints_placement(hints);
    const bool is_placed = placement.from != ORIEL_PAGES_ANYWHERE;
    if (is_placed && size_bytes < ORIEL_FILE_PAGES_BYTES)
        size_bytes = ORIEL_FILE_PAGES_BYTES;
    enum oriel_status status =
        oriel_file_alloc_mem(size_bytes, oriel_hints_alignment(hints), offset);
    if (status == ORIEL_OK && is_placed)
        oriel_file_place(*offset, *offset, size_bytes, placement);
    return status;
}

/* of device memory, by its own address */
static struct oriel_hash_table device_blocks = ORIEL_HASH_TABLE_INIT;

static enum oriel_status alloc_mem_on_device(uint64_t size_bytes, void **base)
{
    oriel_gpu_look();
    enum oriel_status status = oriel_gpu_alloc(size_bytes, base);
    if (status == ORIEL_OK && !oriel_hash_table_set(&device_blocks, (uintptr_t)*base, *base)) {
        (void)oriel_gpu_free(*base);
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory for the table of allocations");
    }
    return status;
}

/* False if MPI_Alloc_mem has not returned it as device memory. */
static bool free_mem_on_device(void *base, enum oriel_status *status)
{
    if (oriel_handle_in_child() || oriel_hash_table_find(&device_blocks, (uintptr_t)base) == NULL)
        return false;
    oriel_hash_table_remove(&device_blocks, (uintptr_t)base, base);
    *status = oriel_gpu_free(base);
    return true;
}

int oriel_entry_Alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr)
{
    uint64_t offset;
    struct oriel_hints hints;
    if (oriel_options()->bypass || oriel_handle_in_child())
        return oriel_host()->Alloc_mem(size, info, baseptr);
    oriel_host_confirm_once();
    if (size < 0)
        return oriel_error_raise_nowhere(
            "MPI_Alloc_mem", oriel_fail(ORIEL_E_SIZE, "size %ld is negative", (long)size));
    oriel_hints_init(&hints);
    enum oriel_status status = oriel_hints_read(&hints, info);
    if (status == ORIEL_OK && size > 0 && oriel_hints_want_device(&hints))
        return oriel_error_raise_nowhere("MPI_Alloc_mem",
                                         alloc_mem_on_device((uint64_t)size, baseptr));
    if (status == ORIEL_OK) {
        const uint64_t align_bytes = oriel_hints_alignment(&hints);
        status = oriel_window_start() == ORIEL_OK
                     ? alloc_mem_placed((uint64_t)size, &hints, &offset)
                     : ORIEL_E_OTHER;
        if (status == ORIEL_E_OTHER)
            return host_alloc_aligned(size, info, align_bytes, baseptr);
    }
    if (status != ORIEL_OK)
        return oriel_error_raise_nowhere("MPI_Alloc_mem", status);
    *(void **)baseptr = oriel_file_base() + offset;
    return MPI_SUCCESS;
}

int oriel_entry_Free_mem(void *base)
{
    uint64_t offset;
    enum oriel_status status;
    if (oriel_gpu_is_loaded() && free_mem_on_device(base, &status))
        return oriel_error_raise_nowhere("MPI_Free_mem", status);
    if (!oriel_file_find(base, 1, &offset))
        return host_free_aligned(base);
    if (oriel_handle_in_child() || oriel_file_free_mem(offset))
        return MPI_SUCCESS;
    return oriel_error_raise_nowhere(
        "MPI_Free_mem",
        oriel_fail(ORIEL_E_BASE, "%p was not returned by MPI_Alloc_mem, or is already freed",
                   base));
}
