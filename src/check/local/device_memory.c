/* Asks the driver of a GPU, which the program may have loaded. */
#include "check/local/device_memory.h"

#include "gpu/cuda/abi.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define DRIVER "libcuda.so"

typedef oriel_cu_result attributes_fn(unsigned count, int *attributes, void **values,
                                      oriel_cu_pointer address);

/* Of any version: its file need not have the name that programs ask for. */
static int is_driver(struct dl_phdr_info *library, size_t size, void *closure)
{
    const char *slash = strrchr(library->dlpi_name, '/');
    (void)size;
    (void)closure;
    return strncmp(slash != NULL ? slash + 1 : library->dlpi_name, DRIVER, strlen(DRIVER)) == 0;
}

int oriel_local_device(const void *address)
{
    unsigned type = ORIEL_CU_MEMORY_TYPE_NONE;
    unsigned is_managed = 0;
    int device = -1;
    int attributes[] = {ORIEL_CU_POINTER_MEMORY_TYPE, ORIEL_CU_POINTER_IS_MANAGED,
                        ORIEL_CU_POINTER_DEVICE_ORDINAL};
    void *values[] = {&type, &is_managed, &device};
    /* A search for a driver that is not loaded reads folders, for each occurrence of a finding. */
    if (dl_iterate_phdr(is_driver, NULL) == 0)
        return -1;
    void *driver = dlopen(DRIVER ".1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver == NULL)
        return -1;
    attributes_fn *ask = (attributes_fn *)(uintptr_t)dlsym(driver, "cuPointerGetAttributes");
    const bool is_device = ask != NULL &&
                           ask(sizeof attributes / sizeof attributes[0], attributes, values,
                               (oriel_cu_pointer)(uintptr_t)address) == ORIEL_CU_SUCCESS &&
                           type == ORIEL_CU_MEMORY_TYPE_DEVICE && !is_managed;
    dlclose(driver);
    return is_device ? device : -1;
}
