/* The stacks of open regions, one per thread. A stack is never freed, and is reused by another
 * thread when its thread has ended. Its mutex orders its thread and the end of observation. A
 * mistake of the program costs one warning of its kind, and no region that was begun is lost. */
#include "observe/stats/program_region.h"

#include "base/hash_table.h"
#include "base/log.h"
#include "base/wait.h"
#include "observe/stats/observed_window.h"
#include "observe/stats/pause.h"
#include "observe/stats/process_record.h"
#include "observe/trace/trace_regions.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { OPEN_MOST = 64, OTHERS = 0 };

struct region_sums {
    uint64_t calls_ns, waiting_ns, operations, bytes;
};

struct open_region {
    uint16_t number; /* its row in the process's record */
    bool is_counted; /* it did not begin in a pause */
    uint64_t begin_ns;
    uint64_t paused_ns; /* all pauses until then */
    struct region_sums before;
};

struct region_stack {
    struct oriel_thread_sums sums;
    pthread_mutex_t mutex; /* protects the following */
    uint32_t depth;        /* may exceed OPEN_MOST; the regions above it are not counted */
    struct open_region open[OPEN_MOST];
    _Atomic bool is_taken; /* by a thread */
    struct region_stack *next;
};

_Thread_local struct oriel_thread_sums *oriel_region_sums;

static _Thread_local struct region_stack *own_stack;
static _Atomic(struct region_stack *) stacks; /* all; a list that only grows */
static pthread_key_t leaving_thread;
static _Atomic bool is_active;

/* from a hash of a name to its row, plus 1 */
static struct oriel_hash_table rows = ORIEL_HASH_TABLE_INIT;
static pthread_mutex_t rows_mutex = PTHREAD_MUTEX_INITIALIZER;

/* --- mistakes of the program: one line for each kind --- */

#define WARN_ONCE(...)                                                                             \
    do {                                                                                           \
        static atomic_flag warned = ATOMIC_FLAG_INIT;                                              \
        if (!atomic_flag_test_and_set(&warned))                                                    \
            oriel_warn(__VA_ARGS__);                                                               \
    } while (0)

/* --- names --- */

/* The name as it is shown: without control characters, and cut off. */
static void region_name_copy(const char *name, const char *call, char out[ORIEL_REGION_NAME])
{
    size_t len = name == NULL ? 0 : strnlen(name, ORIEL_REGION_NAME);
    if (len == 0) {
        name = "(unnamed)";
        len = strlen(name);
        WARN_ONCE("%s: the name of the region is empty: it counts as \"%s\"", call, name);
    }
    bool is_cut = len == ORIEL_REGION_NAME;
    len -= is_cut;
    memcpy(out, name, len);
    for (size_t i = 0; i < len; i++)
        if (iscntrl((unsigned char)name[i]))
            out[i] = '?';
    out[len] = '\0';
    if (is_cut)
        WARN_ONCE("%s: the name of a region has more than %d bytes, and is cut off: \"%s\"", call,
                  ORIEL_REGION_NAME - 1, out);
}

static uint64_t region_name_hash(const char *name)
{
    uint64_t hash = 1;
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return (hash ^ hash >> 29) * UINT64_C(0x9e3779b97f4a7c15) >> 8;
}

/* The row of the name; -1: no region had it. */
static int region_row_find(const char *name)
{
    return (int)(uintptr_t)oriel_hash_table_find(&rows, region_name_hash(name)) - 1;
}

static void *row_value(uint32_t row)
{
    return (void *)(uintptr_t)(row + 1);
}

/* With the mutex held. */
static uint32_t region_row_add(struct oriel_process_record *record, const char *name)
{
    uint32_t count = atomic_load_explicit(&record->regions, memory_order_relaxed);
    uint32_t row = count == 0 ? 1 : count; /* 0 is that of the others */
    if (row < ORIEL_REGIONS_MOST) {
        memcpy(record->region[row].name, name, strlen(name) + 1);
        atomic_store_explicit(&record->regions, row + 1, memory_order_release);
        oriel_trace_regions_set(record->region, row + 1);
    } else {
        WARN_ONCE("more than %d names of regions: \"%s\" and later ones are counted together",
                  ORIEL_REGIONS_MOST - 1, name);
        row = OTHERS;
    }
    oriel_hash_table_set(&rows, region_name_hash(name), row_value(row));
    return row;
}

static uint32_t region_row_get(struct oriel_process_record *record, const char *name)
{
    int row = region_row_find(name);
    if (row >= 0)
        return (uint32_t)row;
    pthread_mutex_lock(&rows_mutex);
    row = region_row_find(name);
    uint32_t added = row >= 0 ? (uint32_t)row : region_row_add(record, name);
    pthread_mutex_unlock(&rows_mutex);
    return added;
}

static const char *row_name(const struct oriel_process_record *record, uint32_t row)
{
    return row == OTHERS ? "other regions" : record->region[row].name;
}

/* --- begin and end, with the stack's mutex held --- */

static struct region_sums sums_read(const struct oriel_thread_sums *sums)
{
    return (struct region_sums){atomic_load_explicit(&sums->calls_ns, memory_order_relaxed),
                                atomic_load_explicit(&sums->waiting_ns, memory_order_relaxed),
                                atomic_load_explicit(&sums->operations, memory_order_relaxed),
                                atomic_load_explicit(&sums->bytes, memory_order_relaxed)};
}

static void region_push(struct region_stack *stack, uint32_t row, const char *name)
{
    if (stack->depth < OPEN_MOST) {
        uint64_t now_ns = oriel_now_ns();
        stack->open[stack->depth] =
            (struct open_region){.number = (uint16_t)row,
                                 .is_counted = !oriel_observation_is_paused(),
                                 .begin_ns = now_ns,
                                 .paused_ns = oriel_observation_paused_ns(now_ns),
                                 .before = sums_read(&stack->sums)};
    } else {
        WARN_ONCE("oriel_region_begin(\"%s\"): more than %d regions are open in this thread: the "
                  "inner ones are not counted",
                  name, OPEN_MOST);
    }
    stack->depth++;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void region_mark(const struct open_region *region, uint64_t now_ns,
                        const struct region_sums *sums)
{
    uint64_t duration_ns = now_ns - region->begin_ns;
    uint64_t calls_ns = least_of(sums->calls_ns, duration_ns);
    oriel_traced_mark(&(struct oriel_trace_mark){
        .kind = ORIEL_MARK_REGION,
        .region = region->number,
        .begin_ns = region->begin_ns,
        .duration_ns = duration_ns,
        .waiting_ns = least_of(sums->waiting_ns, calls_ns),
        .bytes = sums->bytes,
        .operations = (uint32_t)least_of(sums->operations, UINT32_MAX),
        .calls_ns_low = (uint32_t)calls_ns,
        .calls_ns_high = (uint16_t)(calls_ns >> 32),
    });
}

/* Counts a region that ends. */
static void region_count(struct oriel_process_record *record, const struct region_stack *stack,
                         const struct open_region *region)
{
    struct oriel_counted_region *row = &record->region[region->number];
    struct region_sums now = sums_read(&stack->sums);
    const struct region_sums sums = {
        now.calls_ns - region->before.calls_ns, now.waiting_ns - region->before.waiting_ns,
        now.operations - region->before.operations, now.bytes - region->before.bytes};
    uint64_t now_ns = oriel_now_ns();
    uint64_t paused_ns = oriel_observation_paused_ns(now_ns) - region->paused_ns;
    uint64_t whole_ns = now_ns - region->begin_ns;
    if (!region->is_counted)
        return;
    atomic_fetch_add_explicit(&row->count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&row->time_ns, whole_ns > paused_ns ? whole_ns - paused_ns : 0,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&row->calls_ns, sums.calls_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&row->waiting_ns, sums.waiting_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&row->operations, sums.operations, memory_order_relaxed);
    atomic_fetch_add_explicit(&row->bytes, sums.bytes, memory_order_relaxed);
    region_mark(region, now_ns, &sums);
}

static void region_pop(struct oriel_process_record *record, struct region_stack *stack)
{
    stack->depth--;
    if (stack->depth < OPEN_MOST)
        region_count(record, stack, &stack->open[stack->depth]);
}

/* The name of the innermost region that is open and counted; NULL: there is none. */
static const char *innermost_name(const struct oriel_process_record *record,
                                  const struct region_stack *stack)
{
    uint32_t depth = stack->depth < OPEN_MOST ? stack->depth : OPEN_MOST;
    return depth == 0 ? NULL : row_name(record, stack->open[depth - 1].number);
}

/* --- stacks --- */

/* The thread has ended, or observation ends. Returns the number of regions that were open. */
static uint32_t stack_end_all(struct region_stack *stack, const char **name)
{
    struct oriel_process_record *record = oriel_process_record();
    pthread_mutex_lock(&stack->mutex);
    uint32_t open = stack->depth;
    if (open > 0)
        *name = innermost_name(record, stack);
    while (stack->depth > 0)
        region_pop(record, stack);
    pthread_mutex_unlock(&stack->mutex);
    return open;
}

static void stack_release(void *value)
{
    struct region_stack *stack = value;
    const char *name = NULL;
    bool is_counted = atomic_load_explicit(&is_active, memory_order_relaxed);
    oriel_region_sums = NULL;
    own_stack = NULL;
    if (is_counted && stack_end_all(stack, &name) > 0)
        WARN_ONCE("a thread ended in the region \"%s\", which ends there", name);
    atomic_store_explicit(&stack->is_taken, false, memory_order_release);
}

static struct region_stack *stack_reuse(void)
{
    struct region_stack *stack = atomic_load_explicit(&stacks, memory_order_acquire);
    for (; stack != NULL; stack = stack->next) {
        bool is_free = false;
        if (atomic_compare_exchange_strong_explicit(&stack->is_taken, &is_free, true,
                                                    memory_order_acquire, memory_order_relaxed))
            return stack;
    }
    return NULL;
}

static struct region_stack *stack_create(void)
{
    struct region_stack *stack = calloc(1, sizeof *stack);
    if (stack == NULL)
        return NULL;
    pthread_mutex_init(&stack->mutex, NULL);
    atomic_store_explicit(&stack->is_taken, true, memory_order_relaxed);
    stack->next = atomic_load_explicit(&stacks, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&stacks, &stack->next, stack,
                                                  memory_order_release, memory_order_relaxed))
        ;
    return stack;
}

/* This thread's; NULL without memory. */
static struct region_stack *stack_get(void)
{
    if (own_stack != NULL)
        return own_stack;
    own_stack = stack_reuse();
    if (own_stack == NULL)
        own_stack = stack_create();
    if (own_stack != NULL)
        (void)pthread_setspecific(leaving_thread, own_stack);
    return own_stack;
}

/* --- interface --- */

static void thread_sum_add(_Atomic uint64_t *word, uint64_t more)
{
    atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

void oriel_program_region_add_time(uint64_t time_ns, uint64_t waiting_ns)
{
    thread_sum_add(&oriel_region_sums->calls_ns, time_ns);
    thread_sum_add(&oriel_region_sums->waiting_ns, waiting_ns);
}

void oriel_program_region_add_operation(uint64_t bytes)
{
    thread_sum_add(&oriel_region_sums->operations, 1);
    thread_sum_add(&oriel_region_sums->bytes, bytes);
}

void oriel_program_region_begin(const char *name)
{
    static const char call[] = "oriel_region_begin";
    char copy[ORIEL_REGION_NAME];
    if (!atomic_load_explicit(&is_active, memory_order_relaxed))
        return;
    struct oriel_process_record *record = oriel_process_record();
    struct region_stack *stack = record == NULL ? NULL : stack_get();
    region_name_copy(name, call, copy);
    if (stack == NULL) {
        WARN_ONCE("%s(\"%s\"): no memory: it is not counted", call, copy);
        return;
    }
    uint32_t row = region_row_get(record, copy);
    pthread_mutex_lock(&stack->mutex);
    region_push(stack, row, copy);
    pthread_mutex_unlock(&stack->mutex);
    oriel_region_sums = &stack->sums;
}

/* The number of regions that the end of this name ends: the innermost of that name, and those in
 * it. Above OPEN_MOST names are unknown. */
static uint32_t regions_to_end(const struct oriel_process_record *record,
                               const struct region_stack *stack, const char *name)
{
    int row = region_row_find(name);
    if (stack->depth > OPEN_MOST)
        return 1;
    for (uint32_t i = stack->depth; i > 0; i--)
        if (stack->open[i - 1].number == row) {
            if (i < stack->depth)
                WARN_ONCE("oriel_region_end(\"%s\"): the region \"%s\" in it is still open, and "
                          "ends there, too",
                          name, innermost_name(record, stack));
            return stack->depth - i + 1;
        }
    WARN_ONCE("oriel_region_end(\"%s\"): the region that is open is \"%s\": it stays open", name,
              innermost_name(record, stack));
    return 0;
}

/* With the stack's mutex held. */
static void regions_end_locked(struct region_stack *stack, const char *name)
{
    struct oriel_process_record *record = oriel_process_record();
    char copy[ORIEL_REGION_NAME];
    uint32_t ended = 1;
    if (name != NULL) {
        region_name_copy(name, "oriel_region_end", copy);
        ended = regions_to_end(record, stack, copy);
    }
    for (; ended > 0; ended--)
        region_pop(record, stack);
}

void oriel_program_region_end(const char *name)
{
    struct region_stack *stack = own_stack;
    if (!atomic_load_explicit(&is_active, memory_order_relaxed))
        return;
    if (stack == NULL || oriel_region_sums == NULL) {
        char copy[ORIEL_REGION_NAME] = "";
        if (name != NULL)
            region_name_copy(name, "oriel_region_end", copy);
        WARN_ONCE("oriel_region_end(\"%s\"): no region is open in this thread", copy);
        return;
    }
    pthread_mutex_lock(&stack->mutex);
    if (stack->depth > 0)
        regions_end_locked(stack, name);
    if (stack->depth == 0)
        oriel_region_sums = NULL;
    pthread_mutex_unlock(&stack->mutex);
}

void oriel_program_regions_start(void)
{
    if (pthread_key_create(&leaving_thread, stack_release) == 0)
        atomic_store_explicit(&is_active, true, memory_order_relaxed);
}

void oriel_program_regions_stop(void)
{
    const char *name = NULL;
    uint32_t open = 0;
    if (!atomic_exchange_explicit(&is_active, false, memory_order_relaxed))
        return;
    for (struct region_stack *stack = atomic_load_explicit(&stacks, memory_order_acquire);
         stack != NULL; stack = stack->next)
        open += stack_end_all(stack, &name);
    oriel_region_sums = NULL;
    if (open > 1)
        oriel_warn("the region \"%s\" and %u more are still open in MPI_Finalize: they end there",
                   name, open - 1);
    else if (open == 1)
        oriel_warn("the region \"%s\" is still open in MPI_Finalize: it ends there", name);
}
