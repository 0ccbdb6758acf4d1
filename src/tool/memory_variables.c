/* The performance variables of memory: what this process has now. */
#include "tool/performance_variables.h"

#include "memory/file.h"
#include "window/handle.h"
#include "window/host_objects.h"

static void window_bytes_add(struct oriel_window *window, void *context)
{
    *(uint64_t *)context += (uint64_t)window->host->size_bytes;
}

uint64_t oriel_memory_of_windows(void)
{
    uint64_t bytes = 0;
    oriel_handle_visit(window_bytes_add, &bytes);
    return bytes;
}

uint64_t oriel_memory_of_file(void)
{
    return oriel_file_usage().file_bytes;
}

uint64_t oriel_memory_of_blocks(void)
{
    return oriel_file_usage().block_bytes;
}
