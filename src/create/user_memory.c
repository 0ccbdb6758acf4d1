/* Divides the program's memory into ranges by path, promotes ordinary memory, and limits the time
 * that promotion takes.
 *
 * Promotion costs time at the start and the end of a window. It pays off after one or two accesses
 * of a peer to each page. Costs of up to a tenth of the window's lifetime are free. Costs beyond
 * that are debited from an account ten times over, and more with more than two ranks. The account
 * is refilled with a tenth of the elapsed time. Part of the cost is debited at once, which also
 * limits a program that attaches thousands of regions to one window. */
#include "create/user_memory.h"

#include "base/log.h"
#include "base/options.h"
#include "base/wait.h"
#include "gpu/share.h"
#include "memory/agent_area.h"
#include "memory/file.h"
#include "memory/polled_area.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CREDIT_NS = 100000000,
    DEBT_NS = 100000000, /* maximum, if ten times the window's cost is not more */
    SHARE = 10,          /* 1/SHARE of the time */
    /* maximum charged at once for a promotion of at least LARGE_BYTES, so that such windows do not
     * exclude each other */
    AT_ONCE_NS = 1000000,
    LARGE_BYTES = 1 << 20,
    /* factor for short windows: other ranks wait meanwhile, and more such windows follow */
    TENFOLD = 10,
    FEW_RANKS = 2, /* with more ranks, more wait and more promote, each with its own account */
};

/* --- the account --- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int64_t account_ns = CREDIT_NS;
static uint64_t filled_ns; /* time of the last refill */

static bool account_has_credit(uint64_t now_ns)
{
    pthread_mutex_lock(&mutex);
    if (filled_ns != 0)
        account_ns += (int64_t)((now_ns - filled_ns) / SHARE);
    if (account_ns > CREDIT_NS)
        account_ns = CREDIT_NS;
    filled_ns = now_ns;
    bool has = account_ns > 0;
    pthread_mutex_unlock(&mutex);
    return has;
}

static void account_charge(int64_t cost_ns)
{
    pthread_mutex_lock(&mutex);
    account_ns -= cost_ns;
    pthread_mutex_unlock(&mutex);
}

/* The cost of a single window does not exclude others for longer than this: the first window is not
 * typical of the program. */
static void account_limit_debt(int64_t most_ns)
{
    pthread_mutex_lock(&mutex);
    if (account_ns < -most_ns)
        account_ns = -most_ns;
    pthread_mutex_unlock(&mutex);
}

/* --- whether and what to promote --- */

/* The reason against promotion; NULL: it may be tried. */
static const char *promotion_refusal(uint64_t now_ns)
{
    if (oriel_options()->promote == ORIEL_PROMOTE_NEVER)
        return "ORIEL_PROMOTE=never";
    if (oriel_options()->promote == ORIEL_PROMOTE_ALWAYS || account_has_credit(now_ns))
        return NULL;
    return "it has used too much of the run time so far (ORIEL_PROMOTE=always ignores this)";
}

static enum oriel_status user_memory_no_memory(void)
{
    return oriel_fail(ORIEL_E_NO_MEM, "no memory for the description of a window's memory");
}

static enum oriel_status range_append(struct oriel_user_memory *memory,
                                      const struct oriel_memory_range *range)
{
    struct oriel_memory_range *last =
        memory->range_count > 0 ? &memory->ranges[memory->range_count - 1] : NULL;
    if (last != NULL && last->place == range->place && last->end == range->start &&
        (range->place == ORIEL_SHARING_PRIVATE ||
         last->offset + (last->end - last->start) == range->offset)) {
        last->end = range->end;
        return ORIEL_OK;
    }
    if (memory->range_count == 0) {
        memory->ranges = &memory->first_range;
    } else {
        const bool is_second = memory->ranges == &memory->first_range;
        struct oriel_memory_range *longer =
            realloc(is_second ? NULL : memory->ranges, (memory->range_count + 1) * sizeof *longer);
        if (longer == NULL)
            return user_memory_no_memory();
        longer[0] = is_second ? memory->first_range : longer[0];
        memory->ranges = longer;
    }
    memory->ranges[memory->range_count++] = *range;
    return ORIEL_OK;
}

/* Memory that others have promoted may become private before this window ends: only its own
 * reference counts. */
static enum oriel_status referenced_ranges_append(struct oriel_user_memory *memory, uintptr_t start,
                                                  uintptr_t end,
                                                  const struct oriel_promoted *reference)
{
    enum oriel_status status = ORIEL_OK;
    while (start < end && status == ORIEL_OK) {
        struct oriel_memory_range range = {start, end, ORIEL_SHARING_PRIVATE, 0};
        if (start < reference->start)
            range.end = reference->start < end ? reference->start : end;
        else if (start < reference->end)
            range = oriel_registry_find(start, reference->end < end ? reference->end : end);
        status = range_append(memory, &range);
        start = range.end;
    }
    return status;
}

/* If there is no memory for the text, uses a constant. */
static void reason_set_failure(struct oriel_user_memory *memory)
{
    char *text = strdup(oriel_fail_message());
    free(memory->reason_text);
    memory->reason_text = text;
    memory->reason = text != NULL ? text : "no memory";
}

/* Charges the cost at once. */
static enum oriel_status range_promote(struct oriel_user_memory *memory, uintptr_t start,
                                       uintptr_t end, uint64_t begin_ns,
                                       struct oriel_promoted *reference)
{
    const bool always = oriel_options()->promote == ORIEL_PROMOTE_ALWAYS;
    const struct oriel_promote_options options = {.method = ORIEL_BARRIER_AUTO,
                                                  .huge_allowed = always};
    struct oriel_promoted *references =
        realloc(memory->references, (memory->reference_count + 1) * sizeof *references);
    if (references == NULL)
        return user_memory_no_memory();
    memory->references = references;
    const bool is_promoted = oriel_promote(start, end - start, &options, reference) == ORIEL_OK;
    const uint64_t took_ns = oriel_now_ns() - begin_ns;
    const bool is_large = end - start >= LARGE_BYTES;
    const uint64_t charged_ns =
        is_promoted && is_large && took_ns > AT_ONCE_NS ? AT_ONCE_NS : took_ns;
    account_charge((int64_t)charged_ns);
    if (!is_promoted) {
        reason_set_failure(memory);
        return ORIEL_OK;
    }
    references[memory->reference_count++] = *reference;
    memory->took_ns += took_ns;
    memory->charged_ns += charged_ns;
    if (start < reference->start || reference->end < end)
        memory->reason = "only whole pages can be shared in place by stopping threads";
    return ORIEL_OK;
}

/* Ordinary memory: promoted as far as ORIEL_PROMOTE and the memory itself allow. */
static enum oriel_status ordinary_range_append(struct oriel_user_memory *memory, uintptr_t start,
                                               uintptr_t end, bool others)
{
    struct oriel_promoted reference = {.start = 0};
    const uint64_t begin_ns = others ? oriel_now_ns() : 0;
    const char *why_not = others ? promotion_refusal(begin_ns) : "";
    enum oriel_status status = ORIEL_OK;
    if (why_not == NULL)
        status = range_promote(memory, start, end, begin_ns, &reference);
    else if (others)
        memory->reason = why_not;
    return status == ORIEL_OK ? referenced_ranges_append(memory, start, end, &reference) : status;
}

/* --- memory that a GPU uses --- */

/* Memory of one allocation that the GPU's driver copies: what other ranks must know to map it. */
static enum oriel_status device_range_append(struct oriel_user_memory *memory, uintptr_t start,
                                             uintptr_t end, bool others)
{
    struct oriel_gpu_shared shared;
    uint64_t offset;
    enum oriel_status status = oriel_gpu_share((const void *)start, &shared);
    if (status != ORIEL_OK)
        return status;
    if (end > shared.end)
        status = oriel_fail(ORIEL_E_BASE,
                            "the memory of %lu bytes at %#lx ends %lu bytes after the allocation "
                            "of a GPU's memory that it begins in; it must be of one allocation",
                            (unsigned long)(end - start), (unsigned long)start,
                            (unsigned long)(end - shared.end));
    else
        status = oriel_file_alloc(sizeof shared, ORIEL_CACHE_LINE, &offset);
    if (status != ORIEL_OK) {
        oriel_gpu_unshare(&shared);
        return status;
    }
    struct oriel_gpu_shared *stored = (struct oriel_gpu_shared *)(oriel_file_base() + offset);
    oriel_agent_serve_devices();
    *stored = shared;
    memory->shared_offset = offset;
    memory->is_mapped_by_none = shared.refusal[0] != '\0';
    memory->reason = others ? stored->refusal : "";
    return range_append(memory,
                        &(struct oriel_memory_range){start, end, ORIEL_SHARING_DEVICE, offset});
}

static void device_range_release(struct oriel_user_memory *memory)
{
    if (memory->shared_offset == 0)
        return;
    oriel_gpu_unshare((const struct oriel_gpu_shared *)(oriel_file_base() + memory->shared_offset));
    oriel_file_free(memory->shared_offset);
}

/* Device memory, managed memory; and host memory whose pages a GPU uses, which must stay where they
 * are. *is_done: it is one of these. */
static enum oriel_status gpu_range_append(struct oriel_user_memory *memory, uintptr_t start,
                                          uintptr_t end, bool others, bool *is_done)
{
    const struct oriel_gpu_memory allocation = oriel_gpu_find((const void *)start);
    *is_done = allocation.kind != ORIEL_GPU_HOST;
    if (!*is_done)
        return ORIEL_OK;
    if (allocation.kind != ORIEL_GPU_PINNED)
        return device_range_append(memory, start, end, others);
    if (others)
        memory->reason = "it is pinned for a GPU";
    return range_append(memory, &(struct oriel_memory_range){start, end, ORIEL_SHARING_PRIVATE, 0});
}

static enum oriel_status user_memory_classify(struct oriel_user_memory *memory, uintptr_t start,
                                              uintptr_t end, bool others)
{
    enum oriel_status status = ORIEL_OK;
    bool is_done = false;
    if (oriel_gpu_is_loaded())
        status = gpu_range_append(memory, start, end, others, &is_done);
    for (uintptr_t at = start; at < end && !is_done && status == ORIEL_OK;) {
        struct oriel_memory_range range = oriel_registry_find(at, end);
        if (range.place == ORIEL_SHARING_ARENA) {
            status = range_append(memory, &range);
        } else {
            while (range.end < end) {
                struct oriel_memory_range next = oriel_registry_find(range.end, end);
                if (next.place == ORIEL_SHARING_ARENA)
                    break;
                range.end = next.end;
            }
            status = ordinary_range_append(memory, at, range.end, others);
        }
        at = range.end;
    }
    return status;
}

enum oriel_status oriel_user_memory_open(uintptr_t base, uint64_t size_bytes, bool others,
                                         struct oriel_user_memory **out)
{
    struct oriel_user_memory *memory = malloc(sizeof *memory);
    *out = NULL;
    if (memory == NULL)
        return user_memory_no_memory();
    *memory = (struct oriel_user_memory){.reason = ""};
    enum oriel_status status = user_memory_classify(memory, base, base + size_bytes, others);
    if (status != ORIEL_OK) {
        oriel_user_memory_close(memory);
        return status;
    }
    if (others && (oriel_user_memory_paths(memory) & ORIEL_PATH_COPY) != 0 &&
        atomic_load_explicit(&oriel_polled_own, memory_order_relaxed) == NULL)
        (void)oriel_polled_open(); /* on failure, peers copy */
    memory->since_ns = memory->reference_count > 0 ? oriel_now_ns() : 0;
    *out = memory;
    return ORIEL_OK;
}

void oriel_user_memory_begin(struct oriel_user_memory *memory, int32_t ranks)
{
    if (memory == NULL || memory->reference_count == 0)
        return;
    memory->since_ns = oriel_now_ns();
    memory->ranks = ranks;
}

void oriel_user_memory_end(struct oriel_user_memory *memory)
{
    if (memory != NULL && memory->reference_count > 0)
        memory->until_ns = oriel_now_ns();
}

/* The factor by which a rank of this window is charged for costs that were not recovered. */
static int64_t charge_factor(const struct oriel_user_memory *memory)
{
    return memory->ranks > FEW_RANKS ? TENFOLD * (int64_t)memory->ranks / FEW_RANKS : TENFOLD;
}

uint64_t oriel_user_memory_close(struct oriel_user_memory *memory)
{
    uint64_t lost_bytes = 0;
    if (memory == NULL)
        return 0;
    if (memory->reference_count > 0) {
        uint64_t begin_ns = oriel_now_ns();
        uint64_t deserved_ns =
            ((memory->until_ns != 0 ? memory->until_ns : begin_ns) - memory->since_ns) / SHARE;
        for (size_t i = 0; i < memory->reference_count; i++)
            lost_bytes += oriel_promote_release(&memory->references[i]);
        uint64_t cost_ns = memory->took_ns + (oriel_now_ns() - begin_ns);
        uint64_t beyond_ns = cost_ns > deserved_ns ? cost_ns - deserved_ns : 0;
        account_charge(charge_factor(memory) * (int64_t)beyond_ns - (int64_t)memory->charged_ns);
        account_limit_debt(TENFOLD * (int64_t)cost_ns > DEBT_NS ? TENFOLD * (int64_t)cost_ns
                                                                : DEBT_NS);
    }
    device_range_release(memory);
    free(memory->references);
    if (memory->ranges != &memory->first_range)
        free(memory->ranges);
    free(memory->reason_text);
    free(memory);
    return lost_bytes;
}

unsigned oriel_user_memory_paths(const struct oriel_user_memory *memory)
{
    static const unsigned path_bits[] = {[ORIEL_SHARING_PRIVATE] = ORIEL_PATH_COPY,
                                         [ORIEL_SHARING_ARENA] = ORIEL_PATH_DIRECT,
                                         [ORIEL_SHARING_PROMOTED] = ORIEL_PATH_PROMOTED,
                                         [ORIEL_SHARING_DEVICE] = ORIEL_PATH_GPU};
    unsigned all = 0;
    for (size_t i = 0; i < memory->range_count; i++)
        all |= path_bits[memory->ranges[i].place];
    return memory->is_mapped_by_none ? ORIEL_PATH_AGENT : all;
}

void oriel_user_memory_reason(const struct oriel_user_memory *memory, char *text, size_t room)
{
    const size_t used = strlen(text);
    if (memory->reason[0] != '\0' && strstr(text, memory->reason) == NULL)
        snprintf(text + used, room - used, "%s%s: %s", used > 0 ? "; " : "",
                 memory->is_mapped_by_none ? "gpu" : "promotion", memory->reason);
}
