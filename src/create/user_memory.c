/* Promotion costs time at the start and the end of a window, and pays off after one or two accesses
 * of a peer to each page. A window is free of charge for a tenth of its lifetime. Costs beyond that
 * are charged tenfold to an account, which a tenth of the elapsed time refills. Part of the cost is
 * charged at once, which also bounds a program that attaches thousands of regions to one window. */
#include "create/user_memory.h"

#include "base/log.h"
#include "base/options.h"
#include "base/wait.h"
#include "memory/polled_area.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    CREDIT_NS = 100000000,
    DEBT_NS = 100000000, /* maximum, or ten times the window's cost */
    SHARE = 10,          /* 1/SHARE of the time */
    AT_ONCE_NS =
        /* maximum charged at once for a promotion of at least LARGE_BYTES, so that such windows do
         * not exclude each other */
        1000000,
    LARGE_BYTES = 1 << 20,
    TENFOLD =
        10, /* factor for short windows: other ranks wait meanwhile, and more such windows follow */
    FEW_RANKS =
        2, /* with more ranks, more wait and more promote, each with its own account */
};

/* --- the account --- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int64_t account_ns = CREDIT_NS;
static uint64_t filled_ns; /* time of the last refill */

static bool has_credit(uint64_t now_ns)
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

static void charge(int64_t cost_ns)
{
    pthread_mutex_lock(&mutex);
    account_ns -= cost_ns;
    pthread_mutex_unlock(&mutex);
}

/* The cost of a single window does not exclude others for longer than this: a trial is not typical
 * of the program. */
static void bound_debt(int64_t most_ns)
{
    pthread_mutex_lock(&mutex);
    if (account_ns < -most_ns)
        account_ns = -most_ns;
    pthread_mutex_unlock(&mutex);
}

/* --- whether and what to promote --- */

/* The reason against promotion; NULL: it may be tried. */
static const char *why_not_promote(uint64_t now_ns)
{
    if (oriel_options()->promote == ORIEL_PROMOTE_NEVER)
        return "ORIEL_PROMOTE=never";
    if (oriel_options()->promote == ORIEL_PROMOTE_ALWAYS || has_credit(now_ns))
        return NULL;
    return "it has cost too much of the time so far (ORIEL_PROMOTE=always does not count)";
}

static enum oriel_status no_memory(void)
{
    return oriel_fail(ORIEL_E_NO_MEM, "no memory for the description of a window's memory");
}

static enum oriel_status add_stretch(struct oriel_own_memory *memory,
                                     const struct oriel_memory_range *stretch)
{
    struct oriel_memory_range *last =
        memory->stretch_count > 0 ? &memory->stretches[memory->stretch_count - 1] : NULL;
    if (last != NULL && last->place == stretch->place && last->end == stretch->start &&
        (stretch->place == ORIEL_SHARING_PRIVATE ||
         last->offset + (last->end - last->start) == stretch->offset)) {
        last->end = stretch->end;
        return ORIEL_OK;
    }
    if (memory->stretch_count == 0) {
        memory->stretches = &memory->first_stretch;
    } else {
        const bool is_second = memory->stretches == &memory->first_stretch;
        struct oriel_memory_range *longer = realloc(is_second ? NULL : memory->stretches,
                                                    (memory->stretch_count + 1) * sizeof *longer);
        if (longer == NULL)
            return no_memory();
        longer[0] = is_second ? memory->first_stretch : longer[0];
        memory->stretches = longer;
    }
    memory->stretches[memory->stretch_count++] = *stretch;
    return ORIEL_OK;
}

/* Memory that others have promoted may become private before this window ends: only its own
 * reference counts. */
static enum oriel_status add_held(struct oriel_own_memory *memory, uintptr_t start, uintptr_t end,
                                  const struct oriel_promoted *hold)
{
    enum oriel_status status = ORIEL_OK;
    while (start < end && status == ORIEL_OK) {
        struct oriel_memory_range stretch = {start, end, ORIEL_SHARING_PRIVATE, 0};
        if (start < hold->start)
            stretch.end = hold->start < end ? hold->start : end;
        else if (start < hold->end)
            stretch = oriel_registry_find(start, hold->end < end ? hold->end : end);
        status = add_stretch(memory, &stretch);
        start = stretch.end;
    }
    return status;
}

/* If there is no memory for the text, uses a constant. */
static void keep_failure_as_reason(struct oriel_own_memory *memory)
{
    char *text = strdup(oriel_fail_message());
    free(memory->reason_text);
    memory->reason_text = text;
    memory->reason = text != NULL ? text : "no memory";
}

/* Charges the cost at once. */
static enum oriel_status promote(struct oriel_own_memory *memory, uintptr_t start, uintptr_t end,
                                 uint64_t begin_ns, struct oriel_promoted *hold)
{
    const bool always = oriel_options()->promote == ORIEL_PROMOTE_ALWAYS;
    const struct oriel_promote_how how = {.means = ORIEL_MEANS_AUTO, .huge_allowed = always};
    struct oriel_promoted *holds = realloc(memory->holds, (memory->hold_count + 1) * sizeof *holds);
    if (holds == NULL)
        return no_memory();
    memory->holds = holds;
    const bool is_promoted = oriel_promote(start, end - start, &how, hold) == ORIEL_OK;
    const uint64_t took_ns = oriel_now_ns() - begin_ns;
    const bool is_large = end - start >= LARGE_BYTES;
    const uint64_t charged_ns =
        is_promoted && is_large && took_ns > AT_ONCE_NS ? AT_ONCE_NS : took_ns;
    charge((int64_t)charged_ns);
    if (!is_promoted) {
        keep_failure_as_reason(memory);
        return ORIEL_OK;
    }
    holds[memory->hold_count++] = *hold;
    memory->took_ns += took_ns;
    memory->charged_ns += charged_ns;
    if (start < hold->start || hold->end < end)
        memory->reason = "only whole pages can be shared in place by stopping threads";
    return ORIEL_OK;
}

/* Ordinary memory: promoted as far as ORIEL_PROMOTE and the memory itself allow. */
static enum oriel_status add_ordinary(struct oriel_own_memory *memory, uintptr_t start,
                                      uintptr_t end, bool others)
{
    struct oriel_promoted hold = {.start = 0};
    const uint64_t begin_ns = others ? oriel_now_ns() : 0;
    const char *why_not = others ? why_not_promote(begin_ns) : "";
    enum oriel_status status = ORIEL_OK;
    if (why_not == NULL)
        status = promote(memory, start, end, begin_ns, &hold);
    else if (others)
        memory->reason = why_not;
    return status == ORIEL_OK ? add_held(memory, start, end, &hold) : status;
}

static enum oriel_status look(struct oriel_own_memory *memory, uintptr_t start, uintptr_t end,
                              bool others)
{
    enum oriel_status status = ORIEL_OK;
    for (uintptr_t at = start; at < end && status == ORIEL_OK;) {
        struct oriel_memory_range stretch = oriel_registry_find(at, end);
        if (stretch.place == ORIEL_SHARING_ARENA) {
            status = add_stretch(memory, &stretch);
        } else {
            while (stretch.end < end) {
                struct oriel_memory_range next = oriel_registry_find(stretch.end, end);
                if (next.place == ORIEL_SHARING_ARENA)
                    break;
                stretch.end = next.end;
            }
            status = add_ordinary(memory, at, stretch.end, others);
        }
        at = stretch.end;
    }
    return status;
}

enum oriel_status oriel_own_memory_take(uintptr_t base, uint64_t size_bytes, bool others,
                                        struct oriel_own_memory **out)
{
    struct oriel_own_memory *memory = malloc(sizeof *memory);
    *out = NULL;
    if (memory == NULL)
        return no_memory();
    *memory = (struct oriel_own_memory){.reason = ""};
    enum oriel_status status = look(memory, base, base + size_bytes, others);
    if (status != ORIEL_OK) {
        oriel_own_memory_release(memory);
        return status;
    }
    if (others && (oriel_own_memory_ways(memory) & ORIEL_WAY_COPY) != 0 &&
        atomic_load_explicit(&oriel_polled_own, memory_order_relaxed) == NULL)
        (void)oriel_polled_open(); /* on failure, peers copy */
    memory->since_ns = memory->hold_count > 0 ? oriel_now_ns() : 0;
    *out = memory;
    return ORIEL_OK;
}

void oriel_own_memory_begin(struct oriel_own_memory *memory, int32_t ranks)
{
    if (memory == NULL || memory->hold_count == 0)
        return;
    memory->since_ns = oriel_now_ns();
    memory->ranks = ranks;
}

void oriel_own_memory_end(struct oriel_own_memory *memory)
{
    if (memory != NULL && memory->hold_count > 0)
        memory->until_ns = oriel_now_ns();
}

/* The factor by which a rank of this window is charged for costs that were not recovered. */
static int64_t times_charged(const struct oriel_own_memory *memory)
{
    return memory->ranks > FEW_RANKS ? TENFOLD * (int64_t)memory->ranks / FEW_RANKS : TENFOLD;
}

uint64_t oriel_own_memory_release(struct oriel_own_memory *memory)
{
    uint64_t lost_bytes = 0;
    if (memory == NULL)
        return 0;
    if (memory->hold_count > 0) {
        uint64_t begin_ns = oriel_now_ns();
        uint64_t deserved_ns =
            ((memory->until_ns != 0 ? memory->until_ns : begin_ns) - memory->since_ns) / SHARE;
        for (size_t i = 0; i < memory->hold_count; i++)
            lost_bytes += oriel_promote_release(&memory->holds[i]);
        uint64_t cost_ns = memory->took_ns + (oriel_now_ns() - begin_ns);
        uint64_t beyond_ns = cost_ns > deserved_ns ? cost_ns - deserved_ns : 0;
        charge(times_charged(memory) * (int64_t)beyond_ns - (int64_t)memory->charged_ns);
        bound_debt(TENFOLD * (int64_t)cost_ns > DEBT_NS ? TENFOLD * (int64_t)cost_ns : DEBT_NS);
    }
    free(memory->holds);
    if (memory->stretches != &memory->first_stretch)
        free(memory->stretches);
    free(memory->reason_text);
    free(memory);
    return lost_bytes;
}

unsigned oriel_own_memory_ways(const struct oriel_own_memory *memory)
{
    static const unsigned ways[] = {[ORIEL_SHARING_PRIVATE] = ORIEL_WAY_COPY,
                                    [ORIEL_SHARING_ARENA] = ORIEL_WAY_ARENA,
                                    [ORIEL_SHARING_PROMOTED] = ORIEL_WAY_PROMOTED};
    unsigned all = 0;
    for (size_t i = 0; i < memory->stretch_count; i++)
        all |= ways[memory->stretches[i].place];
    return all;
}
