/* Modules of PTX text, and launches of their kernels. */
#include "ptx.h"
#include "standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct oriel_cu_module {
    struct oriel_cu_module *next;
    struct ptx_kernel *kernels; /* the handle of a function is its kernel */
};

struct launch {
    struct standin_operation operation; /* the first member */
    struct ptx_launch ptx;
};

static struct oriel_cu_module *modules;
static uint64_t launches;

uint64_t standinLaunches(void)
{
    pthread_mutex_lock(&standin_mutex);
    uint64_t count = launches;
    pthread_mutex_unlock(&standin_mutex);
    return count;
}

static struct oriel_cu_module **find_module(const struct oriel_cu_module *module)
{
    struct oriel_cu_module **link = &modules;
    while (*link && *link != module) {
        link = &(*link)->next;
    }
    if (!*link) {
        standin_misuse("%p is no module, or was unloaded", (const void *)module);
    }
    return link;
}

static const struct ptx_kernel *find_kernel(const struct oriel_cu_function *function)
{
    for (const struct oriel_cu_module *module = modules; module; module = module->next) {
        for (const struct ptx_kernel *kernel = module->kernels; kernel; kernel = kernel->next) {
            if ((const void *)kernel == (const void *)function) {
                return kernel;
            }
        }
    }
    standin_misuse("%p is no function of a module", (const void *)function);
}

static oriel_cu_result load_module(struct oriel_cu_module **module, const void *image, char *text,
                                   size_t text_bytes)
{
    struct ptx_kernel *kernels = ptx_parse(image, text, text_bytes);
    if (!kernels) {
        fprintf(stderr, "stand-in for the CUDA driver: PTX %s\n", text);
        return ORIEL_CU_ERROR_INVALID_PTX;
    }
    *module = calloc(1, sizeof **module);
    if (!*module) {
        standin_misuse("no memory for the stand-in itself");
    }
    (*module)->kernels = kernels;
    (*module)->next = modules;
    modules = *module;
    return ORIEL_CU_SUCCESS;
}

oriel_cu_result standin_module_load_data(struct oriel_cu_module **module, const void *image)
{
    oriel_cu_result result = standin_begin(CALL_module_load_data, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    char text[256];
    return standin_end(load_module(module, image, text, sizeof text));
}

oriel_cu_result standin_module_load_data_ex(struct oriel_cu_module **module, const void *image,
                                            unsigned count, int *options, void **values)
{
    oriel_cu_result result = standin_begin(CALL_module_load_data_ex, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    char text[256], *log = NULL;
    size_t log_bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == ORIEL_CU_JIT_ERROR_LOG_BUFFER) {
            log = values[i];
        } else if (options[i] == ORIEL_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
            log_bytes = (unsigned)(uintptr_t)values[i];
        }
    }
    result = load_module(module, image, text, sizeof text);
    if (log && log_bytes) {
        snprintf(log, log_bytes, "%s", result == ORIEL_CU_SUCCESS ? "" : text);
    }
    return standin_end(result);
}

oriel_cu_result standin_module_unload(struct oriel_cu_module *module)
{
    oriel_cu_result result = standin_begin(CALL_module_unload, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    standin_drain(NULL);
    struct oriel_cu_module **link = find_module(module);
    *link = module->next;
    ptx_free(module->kernels);
    free(module);
    return standin_end(ORIEL_CU_SUCCESS);
}

oriel_cu_result standin_module_get_function(struct oriel_cu_function **function,
                                            struct oriel_cu_module *module, const char *name)
{
    oriel_cu_result result = standin_begin(CALL_module_get_function, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    for (struct ptx_kernel *kernel = (*find_module(module))->kernels; kernel;
         kernel = kernel->next) {
        if (strcmp(kernel->name, name) == 0) {
            *function = (struct oriel_cu_function *)kernel;
            return standin_end(ORIEL_CU_SUCCESS);
        }
    }
    return standin_end(standin_fault(ORIEL_CU_ERROR_NOT_FOUND, "no kernel %s in the module", name));
}

static oriel_cu_result execute_launch(struct standin_operation *operation)
{
    return ptx_run(&((struct launch *)operation)->ptx);
}

static void finish_launch(struct standin_operation *operation)
{
    struct ptx_launch *launch = &((struct launch *)operation)->ptx;
    for (unsigned i = 0; i < launch->touched_count; i++) {
        launch->touched[i]->in_flight--;
    }
}

/* Blocks of at most 1024 threads, and grids as large as the driver permits. */
static bool has_good_size(const struct ptx_launch *launch)
{
    uint64_t threads = 1;
    for (unsigned i = 0; i < 3; i++) {
        if (!launch->block[i] || launch->block[i] > (i < 2 ? 1024 : 64) || !launch->grid[i] ||
            launch->grid[i] > (i ? 65535 : INT32_MAX)) {
            return false;
        }
        threads *= launch->block[i];
    }
    return threads <= 1024;
}

oriel_cu_result standin_launch_kernel(struct oriel_cu_function *function, unsigned grid_x,
                                      unsigned grid_y, unsigned grid_z, unsigned block_x,
                                      unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                      struct oriel_cu_stream *stream, void **parameters,
                                      void **extra)
{
    oriel_cu_result result = standin_begin(CALL_launch_kernel, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    const struct ptx_kernel *kernel = find_kernel(function);
    struct ptx_launch ptx = {.kernel = kernel,
                             .context = standin_current,
                             .grid = {grid_x, grid_y, grid_z},
                             .block = {block_x, block_y, block_z},
                             .seed = (standin_settings.seed + launches++) * 2 + 1};
    result = standin_stream_find(stream, &stream);
    if (result != ORIEL_CU_SUCCESS) {
        return standin_end(result);
    }
    if (extra || shared_bytes || !has_good_size(&ptx) || (kernel->parameter_count && !parameters) ||
        kernel->parameter_count > PTX_PARAMETERS_MOST) {
        return standin_end(standin_fault(ORIEL_CU_ERROR_INVALID_VALUE,
                                         "a launch of %s with a size or parameters that the "
                                         "stand-in does not have",
                                         kernel->name));
    }
    for (unsigned i = 0; i < kernel->parameter_count; i++) {
        memcpy(&ptx.parameters[i], parameters[i], kernel->parameters[i].type.bytes);
    }
    struct launch *launch = calloc(1, sizeof *launch);
    if (!launch) {
        standin_misuse("no memory for the stand-in itself");
    }
    launch->ptx = ptx;
    launch->operation.execute = execute_launch;
    launch->operation.finish = finish_launch;
    standin_enqueue(stream, &launch->operation);
    return standin_end(ORIEL_CU_SUCCESS);
}
