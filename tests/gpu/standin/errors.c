/* Names of errors, and the look-up of functions. */
#include "standin.h"

#include <stdio.h>
#include <string.h>

/* By this symbol `scripts/check-gpu` recognises the stand-in. */
extern const char standin_is_no_driver[] __attribute__((visibility("default")));
const char standin_is_no_driver[] = "a stand-in for the tests";

static const struct {
    oriel_cu_result code;
    const char *name;
} names[] = {
    {ORIEL_CU_SUCCESS, "CUDA_SUCCESS"},
    {ORIEL_CU_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
    {ORIEL_CU_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
    {ORIEL_CU_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
    {ORIEL_CU_ERROR_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED"},
    {ORIEL_CU_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
    {ORIEL_CU_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
    {ORIEL_CU_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
    {ORIEL_CU_ERROR_PEER_ACCESS_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"},
    {ORIEL_CU_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX"},
    {ORIEL_CU_ERROR_OPERATING_SYSTEM, "CUDA_ERROR_OPERATING_SYSTEM"},
    {ORIEL_CU_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
    {ORIEL_CU_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
    {ORIEL_CU_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY"},
    {ORIEL_CU_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {ORIEL_CU_ERROR_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT"},
    {ORIEL_CU_ERROR_PEER_ACCESS_ALREADY_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"},
    {ORIEL_CU_ERROR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
    {ORIEL_CU_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
    {ORIEL_CU_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"},
    {ORIEL_CU_ERROR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS"},
    {ORIEL_CU_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
    {ORIEL_CU_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
    {ORIEL_CU_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN"},
};

static const struct {
    const char *symbol;
    void *function;
} functions[] = {
#define CUDA_FUNCTION(field, symbol, parameters) {symbol, (void *)standin_##field},
#include "gpu/cuda/cuda_functions.def"
#include "program_functions.def"
#undef CUDA_FUNCTION
};

oriel_cu_result standin_get_error_name(oriel_cu_result result, const char **text)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].code == result) {
            *text = names[i].name;
            return ORIEL_CU_SUCCESS;
        }
    }
    *text = NULL;
    return ORIEL_CU_ERROR_INVALID_VALUE;
}

oriel_cu_result standin_get_error_string(oriel_cu_result result, const char **text)
{
    static _Thread_local char sentence[80];
    const char *name;
    if (standin_get_error_name(result, &name) != ORIEL_CU_SUCCESS) {
        *text = NULL;
        return ORIEL_CU_ERROR_INVALID_VALUE;
    }
    snprintf(sentence, sizeof sentence, "%s (stand-in for the driver)", name);
    *text = sentence;
    return ORIEL_CU_SUCCESS;
}

/* Finds a function by its name with or without the suffix of its version. */
oriel_cu_result standin_get_proc_address(const char *name, void **function, int version,
                                         uint64_t flags, int *status)
{
    (void)version;
    (void)flags;
    size_t len = strlen(name);
    *function = NULL;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0] && !*function; i++) {
        const char *symbol = functions[i].symbol;
        if (strncmp(symbol, name, len) == 0 && (!symbol[len] || strcmp(symbol + len, "_v2") == 0)) {
            *function = functions[i].function;
        }
    }
    if (status) {
        *status =
            *function ? ORIEL_CU_PROC_ADDRESS_SUCCESS : ORIEL_CU_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    return *function ? ORIEL_CU_SUCCESS : ORIEL_CU_ERROR_NOT_FOUND;
}
