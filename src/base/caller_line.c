/* The `oriel` command finds the line in the debug information (base/helper_process.h). A program
 * that creates windows in a loop has few call sites, so the answers are cached. */
#include "base/caller_line.h"

#include "base/helper_process.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CACHED = 32 };

static struct {
    pthread_mutex_t mutex;
    unsigned count;
    struct oriel_code_address list[CACHED];
} cache = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static bool is_same_address(const struct oriel_code_address *a, const struct oriel_code_address *b)
{
    return a->offset == b->offset && strcmp(a->module, b->module) == 0;
}

/* The cached description of the address; false if there is none. A forked child may have a copy of
 * a locked mutex, so no caller waits for it. */
static bool cache_find(struct oriel_code_address *address)
{
    bool is_found = false;
    if (pthread_mutex_trylock(&cache.mutex) != 0)
        return false;
    for (unsigned i = 0; i < CACHED && i < cache.count && !is_found; i++)
        if (is_same_address(&cache.list[i], address)) {
            *address = cache.list[i];
            is_found = true;
        }
    pthread_mutex_unlock(&cache.mutex);
    return is_found;
}

static void cache_add(const struct oriel_code_address *address)
{
    if (pthread_mutex_trylock(&cache.mutex) != 0)
        return;
    cache.list[cache.count++ % CACHED] = *address;
    pthread_mutex_unlock(&cache.mutex);
}

void oriel_caller_line_find(struct oriel_code_address *caller, char out[ORIEL_CALLER_LINE_BYTES])
{
    void *answer = NULL;
    size_t answer_bytes = 0;
    if (!cache_find(caller)) {
        if (oriel_helper_request(ORIEL_HELPER_PLACES, caller, sizeof *caller, &answer,
                                 &answer_bytes) &&
            answer_bytes == sizeof *caller)
            memcpy(caller, answer, sizeof *caller);
        free(answer);
        cache_add(caller);
    }
    if (caller->file[0] != '\0')
        snprintf(out, ORIEL_CALLER_LINE_BYTES, "%.120s:%u", file_name(caller->file),
                 (unsigned)caller->line);
    else /* within the call, which is before its return address */
        snprintf(out, ORIEL_CALLER_LINE_BYTES, "%.120s+0x%lx", file_name(caller->module),
                 (unsigned long)caller->offset - 1);
}
