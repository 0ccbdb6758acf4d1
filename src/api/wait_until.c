/* MPIX_Win_wait_until and test_until (oriel/ext.h): their arguments. sync/memory_wait.c waits. */
#include "api/api.h"
#include "api/argument_checks.h"
#include "gpu/gpu.h"
#include "sync/memory_wait.h"
#include "window/handle.h"

_Static_assert((int)MPIX_CMP_EQ == (int)ORIEL_COMPARE_EQ &&
                   (int)MPIX_CMP_GE == (int)ORIEL_COMPARE_GE,
               "the comparisons are the same");

/* Sets the size and sign of a predefined integer. */
static enum oriel_status check_integer(const struct oriel_type *type,
                                       struct oriel_awaited_value *awaited)
{
    awaited->size_bytes = (unsigned)type->size_bytes;
    awaited->is_signed = false;
    switch (type->predefined ? type->kind : ORIEL_KIND_NONE) {
    case ORIEL_KIND_INT8:
    case ORIEL_KIND_INT16:
    case ORIEL_KIND_INT32:
    case ORIEL_KIND_INT64: awaited->is_signed = true; return ORIEL_OK;
    case ORIEL_KIND_UINT8:
    case ORIEL_KIND_UINT16:
    case ORIEL_KIND_UINT32:
    case ORIEL_KIND_UINT64: return ORIEL_OK;
    default:
        return oriel_fail(ORIEL_E_TYPE,
                          "the datatype is not a predefined integer of 1, 2, 4 or 8 bytes");
    }
}

static enum oriel_status awaited_make(struct oriel_window *window, MPI_Aint disp,
                                      MPI_Datatype datatype, int comparison, const void *value,
                                      struct oriel_awaited_value *awaited)
{
    struct oriel_span place = {.side = {.count = 1}};
    if (comparison < MPIX_CMP_EQ || comparison > MPIX_CMP_GE)
        return oriel_fail(ORIEL_E_ARG, "comparison %d", comparison);
    if (value == NULL)
        return oriel_fail(ORIEL_E_ARG, "the value argument is NULL");
    if (window->holding != NULL)
        return oriel_fail(ORIEL_E_ARG, "the window was opened from a memory handle: only the "
                                       "memory's owner waits for values in it");
    enum oriel_status status = oriel_type_find(datatype, &place.side.type);
    if (status == ORIEL_OK)
        status = check_integer(place.side.type, awaited);
    if (status == ORIEL_OK)
        status = oriel_check_range(window, window->rank, disp, ORIEL_ISSUE_NOW, &place);
    if (status != ORIEL_OK)
        return status;
    const uint64_t address = (uint64_t)(uintptr_t)window->base + place.offset_bytes;
    if (oriel_gpu_is_device((const void *)(uintptr_t)address) || oriel_gpu_is_device(value))
        return oriel_fail(ORIEL_E_UNSUPPORTED, "the CPU cannot wait for values in device memory");
    if (address % awaited->size_bytes != 0)
        return oriel_fail(ORIEL_E_ARG, "the element at displacement %ld is not aligned",
                          (long)disp);
    awaited->at = (const void *)(uintptr_t)address;
    awaited->comparison = (enum oriel_comparison)comparison;
    awaited->value = oriel_awaited_value_read(value, awaited->size_bytes, awaited->is_signed);
    return ORIEL_OK;
}

int oriel_entry_Win_wait_until(MPI_Win win, MPI_Aint disp, MPI_Datatype datatype, int comparison,
                               const void *value)
{
    struct oriel_awaited_value awaited;
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_error_no_extension("MPIX_Win_wait_until", win);
    enum oriel_status status = awaited_make(window, disp, datatype, comparison, value, &awaited);
    if (status == ORIEL_OK)
        status = oriel_memory_wait(window, &awaited);
    return oriel_error_raise(window, "MPIX_Win_wait_until", status);
}

int oriel_entry_Win_test_until(MPI_Win win, MPI_Aint disp, MPI_Datatype datatype, int comparison,
                               const void *value, int *flag)
{
    struct oriel_awaited_value awaited;
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_error_no_extension("MPIX_Win_test_until", win);
    enum oriel_status status = awaited_make(window, disp, datatype, comparison, value, &awaited);
    if (status == ORIEL_OK && flag == NULL)
        status = oriel_fail(ORIEL_E_ARG, "the flag argument is NULL");
    if (status == ORIEL_OK) {
        *flag = oriel_awaited_value_holds(&awaited);
        oriel_tls_cache_count_turn(); /* programs poll with it */
    }
    return oriel_error_raise(window, "MPIX_Win_test_until", status);
}
