/* Modules and kernels. */
#include "standin.h"

oriel_cu_result standin_module_load_data(struct oriel_cu_module **module, const void *image)
{
    (void)module;
    (void)image;
    return ORIEL_CU_ERROR_NOT_SUPPORTED;
}

oriel_cu_result standin_module_load_data_ex(struct oriel_cu_module **module, const void *image,
                                            unsigned count, int *options, void **values)
{
    (void)count;
    (void)options;
    (void)values;
    return standin_module_load_data(module, image);
}

oriel_cu_result standin_module_unload(struct oriel_cu_module *module)
{
    (void)module;
    return ORIEL_CU_ERROR_NOT_SUPPORTED;
}

oriel_cu_result standin_module_get_function(struct oriel_cu_function **function,
                                            struct oriel_cu_module *module, const char *name)
{
    (void)function;
    (void)module;
    (void)name;
    return ORIEL_CU_ERROR_NOT_SUPPORTED;
}

oriel_cu_result standin_launch_kernel(struct oriel_cu_function *function, unsigned grid_x,
                                      unsigned grid_y, unsigned grid_z, unsigned block_x,
                                      unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                      struct oriel_cu_stream *stream, void **parameters,
                                      void **extra)
{
    (void)function;
    (void)grid_x;
    (void)grid_y;
    (void)grid_z;
    (void)block_x;
    (void)block_y;
    (void)block_z;
    (void)shared_bytes;
    (void)stream;
    (void)parameters;
    (void)extra;
    return ORIEL_CU_ERROR_NOT_SUPPORTED;
}
