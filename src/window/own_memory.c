/* Promotion pays after one or two accesses of a peer to each page, but making and freeing a promoted window costs a good part of
 * a millisecond, whatever its size, where a window by CMA costs microseconds.  A program that makes windows all the time
 * is therefore given promotions up to a rate: at most a tenth of its time goes there.  Creation calls, from any thread. */
#include "window/own_memory.h"

#include "base/log.h"
#include "base/options.h"

#include <dirent.h>
#include <pthread.h>

enum { TOKENS_MOST = 1000, TOKENS_PER_SECOND = 100 };

/* A promotion takes a token; tokens come with time. */
static bool take_token(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static double tokens = TOKENS_MOST;
    static uint64_t then_ns;
    pthread_mutex_lock(&mutex);
    uint64_t now_ns = oriel_now_ns();
    if (then_ns != 0)
        tokens += (double)(now_ns - then_ns) * 1e-9 * TOKENS_PER_SECOND;
    if (tokens > TOKENS_MOST)
        tokens = TOKENS_MOST;
    then_ns = now_ns;
    bool taken = tokens >= 1;
    if (taken)
        tokens -= 1;
    pthread_mutex_unlock(&mutex);
    return taken;
}

/* A network card may have pinned pages, which then would not be those of the file. */
static bool has_rdma_device(void)
{
    bool found = false;
    DIR *devices = opendir("/sys/class/infiniband");
    if (devices == NULL)
        return false;
    for (const struct dirent *entry; !found && (entry = readdir(devices)) != NULL;)
        found = entry->d_name[0] != '.';
    closedir(devices);
    return found;
}

static enum oriel_status may_promote(const struct oriel_window *window)
{
    if (window->n == 1)
        return oriel_fail(ORIEL_E_OTHER, "the window has one rank");
    if (oriel_options()->promote == ORIEL_PROMOTE_NEVER)
        return oriel_fail(ORIEL_E_OTHER, "ORIEL_PROMOTE=never");
    if (oriel_options()->promote == ORIEL_PROMOTE_ALWAYS)
        return ORIEL_OK;
    if (has_rdma_device())
        return oriel_fail(ORIEL_E_OTHER, "an RDMA device may hold its pages (ORIEL_PROMOTE=always does not ask)");
    if (!take_token())
        return oriel_fail(ORIEL_E_OTHER, "the program makes more than %d windows in a second (ORIEL_PROMOTE=always)",
                          TOKENS_PER_SECOND);
    return ORIEL_OK;
}

/* All of the promoted part by one difference between addresses and offsets; ORIEL_E_OTHER when it lies in several pieces. */
static enum oriel_status find_part(struct oriel_window *window, struct oriel_target *target)
{
    uint64_t held_bytes = 0;
    uintptr_t base = (uintptr_t)target->address;
    uintptr_t end = base + target->size_bytes;
    uintptr_t low = window->promoted.start > base ? window->promoted.start : base;
    uintptr_t high = window->promoted.end < end ? window->promoted.end : end;
    if (!oriel_promote_find(low, high - low, &target->offset, &held_bytes) || held_bytes < high - low)
        return oriel_fail(ORIEL_E_OTHER, "other windows have shared parts of it already, which lie apart");
    target->offset -= low - base;
    target->direct_low = low - base;
    target->direct_bytes = high - low;
    target->mechanism = high - low == target->size_bytes ? ORIEL_BY_ARENA : ORIEL_BY_PARTS;
    return ORIEL_OK;
}

void oriel_own_memory_prepare(struct oriel_window *window, const char *call, struct oriel_target *target)
{
    struct oriel_promote_how how = {.means = ORIEL_MEANS_AUTO,
                                    .huge_allowed = oriel_options()->promote == ORIEL_PROMOTE_ALWAYS};
    enum oriel_status status = may_promote(window);
    if (status == ORIEL_OK)
        status = oriel_promote((uintptr_t)target->address, target->size_bytes, &how, &window->promoted);
    if (status == ORIEL_OK)
        status = find_part(window, target);
    if (status == ORIEL_OK)
        return;
    oriel_note("%s: the memory is not shared in place, but reached by copying: %s", call, oriel_fail_message());
    oriel_promote_release(&window->promoted);
    target->offset = 0;
    target->mechanism = ORIEL_BY_COPY;
}
