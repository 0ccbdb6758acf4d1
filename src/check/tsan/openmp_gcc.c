/* OpenMP by gcc: the functions of libgomp that order threads. libgomp itself is not
 * instrumented, so these functions report what it does. All pass on to libgomp.
 *
 * A parallel region has objects (thread_calls.h): the threads of its team take FORK when they begin
 * and give JOIN when they end. A barrier is given to before and taken from after. Two objects take
 * turns, because a thread that has left one barrier may reach the next before others have left the
 * first.
 *
 * Which thread executes a section is chance. So a thread that executes several sections of one
 * construct counts as a new thread in each but the first: it knows what was known before the first.
 * After the construct the thread knows what it did in all of them.
 *
 * Tasks take an object of their own when they begin, and give TASKS when they end. What waits for
 * some tasks, takes from all that have ended: more order than there is, never less. */
#include "check/tsan/thread_calls.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Of a team, added to its number. Those of team 0 are the whole program's. */
enum { FORK, JOIN, BARRIER, NEXT_BARRIER, TASKS, ORDERED, COPIED, TEAM_OBJECTS };
enum { CRITICAL = FORK, ATOMIC = JOIN, DOACROSS = BARRIER };

static _Atomic uint64_t numbers = TEAM_OBJECTS;

/* Where a thread is. */
static _Thread_local struct {
    uint64_t team;     /* 0: outside parallel regions */
    unsigned barriers; /* that it has passed in the team */
    bool has_section;  /* has begun one of a construct */
    bool is_further;   /* that is not its first */
    void *first;       /* what the thread is in its first one */
} here;

/* Of a thread, added to its number: what it knew before its first section of a construct, and what
 * it did in further ones. */
enum { BEFORE, FURTHER, THREAD_OBJECTS };
static _Thread_local uint64_t own_number; /* 0: none yet */

/* The caller is the program; oriel_tsan_is_oriel is false for NULL. */
static void give(uint64_t number)
{
    oriel_tsan_give(ORIEL_TSAN_OPENMP, number, NULL);
}

static void take(uint64_t number)
{
    oriel_tsan_take(ORIEL_TSAN_OPENMP, number, NULL);
}

/* --- parallel regions --- */

typedef void region_fn(void *data);

int omp_get_num_threads(void);

struct region {
    void *first; /* libgomp reads it: the reductions of tasks */
    region_fn *run;
    void *data;
    uint64_t team;
};

static struct region region_begin(region_fn *run, void *data)
{
    struct region region = {NULL, run, data, atomic_fetch_add(&numbers, TEAM_OBJECTS)};
    if (oriel_tsan_hooks() == NULL)
        return region;
    oriel_tsan_hooks()->fork(oriel_tsan_object(ORIEL_TSAN_OPENMP, region.team + FORK));
    return region;
}

static void region_end(const struct region *region)
{
    take(region->team + JOIN);
    take(region->team + TASKS);
}

static void region_run(void *argument)
{
    struct region region = *(struct region *)argument;
    __typeof__(here) outer = here;
    here = (__typeof__(here)){.team = region.team};
    take(region.team + FORK);
    region.run(region.data);
    give(region.team + JOIN);
    here = outer;
}

#define PARALLEL(name, parameters, arguments)                                                      \
    ORIEL_TSAN_ENTRY void name parameters;                                                         \
    ORIEL_TSAN_ENTRY void name parameters                                                          \
    {                                                                                              \
        struct region region = region_begin(run, data);                                            \
        ORIEL_TSAN_NEXT(name) arguments;                                                           \
        region_end(&region);                                                                       \
    }
#define PARALLEL_LOOP(name)                                                                        \
    PARALLEL(name,                                                                                 \
             (region_fn * run, void *data, unsigned threads, long start, long end, long step,      \
              long chunk, unsigned flags),                                                         \
             (region_run, &region, threads, start, end, step, chunk, flags))
#define PARALLEL_RUNTIME_LOOP(name)                                                                \
    PARALLEL(name,                                                                                 \
             (region_fn * run, void *data, unsigned threads, long start, long end, long step,      \
              unsigned flags),                                                                     \
             (region_run, &region, threads, start, end, step, flags))

PARALLEL(GOMP_parallel, (region_fn * run, void *data, unsigned threads, unsigned flags),
         (region_run, &region, threads, flags))
PARALLEL(GOMP_parallel_sections,
         (region_fn * run, void *data, unsigned threads, unsigned count, unsigned flags),
         (region_run, &region, threads, count, flags))
PARALLEL_LOOP(GOMP_parallel_loop_static)
PARALLEL_LOOP(GOMP_parallel_loop_dynamic)
PARALLEL_LOOP(GOMP_parallel_loop_guided)
PARALLEL_LOOP(GOMP_parallel_loop_nonmonotonic_dynamic)
PARALLEL_LOOP(GOMP_parallel_loop_nonmonotonic_guided)
PARALLEL_RUNTIME_LOOP(GOMP_parallel_loop_runtime)
PARALLEL_RUNTIME_LOOP(GOMP_parallel_loop_nonmonotonic_runtime)
PARALLEL_RUNTIME_LOOP(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

ORIEL_TSAN_ENTRY unsigned GOMP_parallel_reductions(region_fn *run, void *data, unsigned threads,
                                                   unsigned flags);
ORIEL_TSAN_ENTRY unsigned GOMP_parallel_reductions(region_fn *run, void *data, unsigned threads,
                                                   unsigned flags)
{
    struct region region = region_begin(run, data);
    memcpy(&region.first, data, sizeof region.first);
    unsigned count = ORIEL_TSAN_NEXT(GOMP_parallel_reductions)(region_run, &region, threads, flags);
    region_end(&region);
    return count;
}

/* --- sections --- */

static void further_end(void)
{
    if (!here.is_further)
        return;
    oriel_tsan_hooks()->rejoin(oriel_tsan_object(ORIEL_TSAN_OPENMP, own_number + FURTHER),
                               here.first);
    here.is_further = false;
}

/* Before the thread executes a section; 0: there is none left. A team of one is always in order. */
static void section_begin(unsigned section)
{
    if (section == 0 || oriel_tsan_hooks() == NULL || ORIEL_TSAN_NEXT(omp_get_num_threads)() == 1)
        return;
    if (!here.has_section) {
        here.has_section = true;
        if (own_number == 0)
            own_number = atomic_fetch_add(&numbers, THREAD_OBJECTS);
        give(own_number + BEFORE);
        return;
    }
    further_end();
    here.is_further = oriel_tsan_hooks()->branch(
        oriel_tsan_object(ORIEL_TSAN_OPENMP, own_number + BEFORE), &here.first);
}

/* At the end of a construct, with or without sections. */
static void sections_end(void)
{
    if (!here.has_section)
        return;
    further_end();
    take(own_number + FURTHER);
    here.has_section = false;
}

ORIEL_TSAN_ENTRY unsigned GOMP_sections_start(unsigned count);
ORIEL_TSAN_ENTRY unsigned GOMP_sections_start(unsigned count)
{
    unsigned section = ORIEL_TSAN_NEXT(GOMP_sections_start)(count);
    section_begin(section);
    return section;
}

ORIEL_TSAN_ENTRY unsigned GOMP_sections_next(void);
ORIEL_TSAN_ENTRY unsigned GOMP_sections_next(void)
{
    unsigned section = ORIEL_TSAN_NEXT(GOMP_sections_next)();
    section_begin(section);
    return section;
}

ORIEL_TSAN_ENTRY void GOMP_sections_end_nowait(void);
ORIEL_TSAN_ENTRY void GOMP_sections_end_nowait(void)
{
    sections_end();
    ORIEL_TSAN_NEXT(GOMP_sections_end_nowait)();
}

/* --- barriers --- */

static uint64_t barrier_now(void)
{
    return here.team + (here.barriers % 2 == 0 ? BARRIER : NEXT_BARRIER);
}

static void barrier_reach(void)
{
    sections_end();
    give(barrier_now());
}

static void barrier_leave(void)
{
    take(barrier_now());
    take(here.team + TASKS);
    here.barriers++;
}

#define BARRIER_BEFORE(name)                                                                       \
    ORIEL_TSAN_ENTRY void name(void);                                                              \
    ORIEL_TSAN_ENTRY void name(void)                                                               \
    {                                                                                              \
        barrier_reach();                                                                           \
        ORIEL_TSAN_NEXT(name)();                                                                   \
        barrier_leave();                                                                           \
    }
#define BARRIER_CANCELLED(name)                                                                    \
    ORIEL_TSAN_ENTRY bool name(void);                                                              \
    ORIEL_TSAN_ENTRY bool name(void)                                                               \
    {                                                                                              \
        barrier_reach();                                                                           \
        bool cancelled = ORIEL_TSAN_NEXT(name)();                                                  \
        barrier_leave();                                                                           \
        return cancelled;                                                                          \
    }
BARRIER_BEFORE(GOMP_barrier)
BARRIER_BEFORE(GOMP_loop_end)
BARRIER_BEFORE(GOMP_sections_end)
BARRIER_CANCELLED(GOMP_barrier_cancel)
BARRIER_CANCELLED(GOMP_loop_end_cancel)
BARRIER_CANCELLED(GOMP_sections_end_cancel)

/* single with copyprivate: one thread copies in a barrier of the team. */
ORIEL_TSAN_ENTRY void *GOMP_single_copy_start(void);
ORIEL_TSAN_ENTRY void *GOMP_single_copy_start(void)
{
    give(barrier_now());
    void *copied = ORIEL_TSAN_NEXT(GOMP_single_copy_start)();
    if (copied != NULL) {
        barrier_leave();
        take(here.team + COPIED);
    }
    return copied;
}

ORIEL_TSAN_ENTRY void GOMP_single_copy_end(void *data);
ORIEL_TSAN_ENTRY void GOMP_single_copy_end(void *data)
{
    give(here.team + COPIED);
    give(barrier_now());
    ORIEL_TSAN_NEXT(GOMP_single_copy_end)(data);
    barrier_leave();
}

/* --- one thread after the other --- */

#define BEGIN(name, number)                                                                        \
    ORIEL_TSAN_ENTRY void name(void);                                                              \
    ORIEL_TSAN_ENTRY void name(void)                                                               \
    {                                                                                              \
        ORIEL_TSAN_NEXT(name)();                                                                   \
        take(number);                                                                              \
    }
#define END(name, number)                                                                          \
    ORIEL_TSAN_ENTRY void name(void);                                                              \
    ORIEL_TSAN_ENTRY void name(void)                                                               \
    {                                                                                              \
        give(number);                                                                              \
        ORIEL_TSAN_NEXT(name)();                                                                   \
    }
BEGIN(GOMP_critical_start, CRITICAL)
END(GOMP_critical_end, CRITICAL)
BEGIN(GOMP_atomic_start, ATOMIC)
END(GOMP_atomic_end, ATOMIC)
BEGIN(GOMP_ordered_start, here.team + ORDERED)
END(GOMP_ordered_end, here.team + ORDERED)

#define LOCK(name)                                                                                 \
    ORIEL_TSAN_ENTRY void name(void *at);                                                          \
    ORIEL_TSAN_ENTRY void name(void *at)                                                           \
    {                                                                                              \
        ORIEL_TSAN_NEXT(name)(at);                                                                 \
        oriel_tsan_take(ORIEL_TSAN_ADDRESS, ORIEL_TSAN_AT(at), NULL);                              \
    }
#define TRY(name)                                                                                  \
    ORIEL_TSAN_ENTRY int name(void *at);                                                           \
    ORIEL_TSAN_ENTRY int name(void *at)                                                            \
    {                                                                                              \
        int acquired = ORIEL_TSAN_NEXT(name)(at);                                                  \
        if (acquired)                                                                              \
            oriel_tsan_take(ORIEL_TSAN_ADDRESS, ORIEL_TSAN_AT(at), NULL);                          \
        return acquired;                                                                           \
    }
#define UNLOCK(name)                                                                               \
    ORIEL_TSAN_ENTRY void name(void *at);                                                          \
    ORIEL_TSAN_ENTRY void name(void *at)                                                           \
    {                                                                                              \
        oriel_tsan_give(ORIEL_TSAN_ADDRESS, ORIEL_TSAN_AT(at), NULL);                              \
        ORIEL_TSAN_NEXT(name)(at);                                                                 \
    }
LOCK(GOMP_critical_name_start)
UNLOCK(GOMP_critical_name_end)
/* and those of Fortran */
LOCK(omp_set_lock)
LOCK(omp_set_lock_)
LOCK(omp_set_nest_lock)
LOCK(omp_set_nest_lock_)
TRY(omp_test_lock)
TRY(omp_test_lock_)
TRY(omp_test_nest_lock)
TRY(omp_test_nest_lock_)
UNLOCK(omp_unset_lock)
UNLOCK(omp_unset_lock_)
UNLOCK(omp_unset_nest_lock)
UNLOCK(omp_unset_nest_lock_)

/* Iterations that wait for earlier ones. A loop has at most DIMENSIONS loops in it; further
 * arguments than there are do no harm. */
enum { DIMENSIONS = 8 };
#define DOACROSS_POST(name, type)                                                                  \
    ORIEL_TSAN_ENTRY void name(type *counts);                                                      \
    ORIEL_TSAN_ENTRY void name(type *counts)                                                       \
    {                                                                                              \
        give(DOACROSS);                                                                            \
        ORIEL_TSAN_NEXT(name)(counts);                                                             \
    }
#define DOACROSS_WAIT(name, type)                                                                  \
    ORIEL_TSAN_ENTRY void name(type first, ...);                                                   \
    ORIEL_TSAN_ENTRY void name(type first, ...)                                                    \
    {                                                                                              \
        type more[DIMENSIONS];                                                                     \
        va_list list;                                                                              \
        va_start(list, first);                                                                     \
        for (int i = 0; i < DIMENSIONS; i++)                                                       \
            more[i] = va_arg(list, type);                                                          \
        va_end(list);                                                                              \
        ORIEL_TSAN_NEXT(name)                                                                      \
        (first, more[0], more[1], more[2], more[3], more[4], more[5], more[6], more[7]);           \
        take(DOACROSS);                                                                            \
    }
DOACROSS_POST(GOMP_doacross_post, long)
DOACROSS_WAIT(GOMP_doacross_wait, long)
DOACROSS_POST(GOMP_doacross_ull_post, unsigned long long)
DOACROSS_WAIT(GOMP_doacross_ull_wait, unsigned long long)

/* --- tasks --- */

typedef void copy_fn(void *to, void *from);

/* Precedes the data of a task. libgomp copies both, and reads and writes the first words: the
 * bounds of a loop of tasks and its reductions, or the event of a task that is detached. */
enum { FIRST_WORDS = 3 };
struct task {
    uint64_t first[FIRST_WORDS];
    uint32_t written; /* how many of them libgomp writes */
    uint32_t offset;  /* of the data */
    region_fn *run;
    copy_fn *copy; /* NULL: by bytes */
    void *source;  /* of the data */
    uint64_t object;
    uint64_t team; /* a thread may execute the task after its part of the region */
    bool waits;    /* for tasks that it depends on */
};

enum { FLAG_DEPEND = 1 << 3, FLAG_DETACH = 1 << 13 };

static void task_run(void *argument)
{
    struct task *task = argument;
    char *data = (char *)argument + task->offset;
    memcpy(data, task->first, task->written * sizeof task->first[0]);
    uint64_t outer = here.team;
    here.team = task->team;
    take(task->object);
    if (task->waits)
        take(task->team + TASKS);
    task->run(data);
    give(task->team + TASKS);
    here.team = outer;
}

static void task_copy(void *to, void *from)
{
    struct task *task = from;
    memcpy(to, task, sizeof *task);
    task->copy((char *)to + task->offset, task->source);
}

/* A task with its data, aligned as libgomp will align its copy. NULL: no memory. */
static struct task *task_make(region_fn *run, void *data, copy_fn *copy, long len_bytes,
                              long *align_bytes)
{
    if (*align_bytes < (long)_Alignof(struct task))
        *align_bytes = _Alignof(struct task);
    size_t align = (size_t)*align_bytes;
    size_t offset = (sizeof(struct task) + align - 1) & ~(align - 1);
    size_t room = (offset + (size_t)len_bytes + align - 1) & ~(align - 1);
    struct task *task = aligned_alloc(align < sizeof(void *) ? sizeof(void *) : align, room);
    if (task == NULL)
        return NULL;
    *task = (struct task){.offset = (uint32_t)offset,
                          .run = run,
                          .copy = copy,
                          .source = data,
                          .object = atomic_fetch_add(&numbers, 1),
                          .team = here.team};
    size_t first_bytes = sizeof task->first;
    memcpy(task->first, data, (size_t)len_bytes < first_bytes ? (size_t)len_bytes : first_bytes);
    if (copy == NULL)
        memcpy((char *)task + offset, data, (size_t)len_bytes);
    give(task->object);
    return task;
}

ORIEL_TSAN_ENTRY void GOMP_task(region_fn *run, void *data, copy_fn *copy, long len_bytes,
                                long align_bytes, bool deferred, unsigned flags, void **depend,
                                int priority, void *event);
ORIEL_TSAN_ENTRY void GOMP_task(region_fn *run, void *data, copy_fn *copy, long len_bytes,
                                long align_bytes, bool deferred, unsigned flags, void **depend,
                                int priority, void *event)
{
    struct task *task = task_make(run, data, copy, len_bytes, &align_bytes);
    if (task == NULL)
        abort();
    task->written = (flags & FLAG_DETACH) != 0;
    task->waits = (flags & FLAG_DEPEND) != 0;
    ORIEL_TSAN_NEXT(GOMP_task)
    (task_run, task, copy != NULL ? task_copy : NULL, (long)task->offset + len_bytes, align_bytes,
     deferred, flags, depend, priority, event);
    memcpy(data, task->first, task->written * sizeof task->first[0]);
    free(task);
}

#define TASKLOOP(name, type)                                                                       \
    ORIEL_TSAN_ENTRY void name(region_fn *run, void *data, copy_fn *copy, long len_bytes,          \
                               long align_bytes, unsigned flags, unsigned long count,              \
                               int priority, type start, type end, type step);                     \
    ORIEL_TSAN_ENTRY void name(region_fn *run, void *data, copy_fn *copy, long len_bytes,          \
                               long align_bytes, unsigned flags, unsigned long count,              \
                               int priority, type start, type end, type step)                      \
    {                                                                                              \
        struct task *task = task_make(run, data, copy, len_bytes, &align_bytes);                   \
        if (task == NULL)                                                                          \
            abort();                                                                               \
        task->written = 2;                                                                         \
        ORIEL_TSAN_NEXT(name)                                                                      \
        (task_run, task, copy != NULL ? task_copy : NULL, (long)task->offset + len_bytes,          \
         align_bytes, flags, count, priority, start, end, step);                                   \
        take(here.team + TASKS);                                                                   \
        free(task);                                                                                \
    }
TASKLOOP(GOMP_taskloop, long)
TASKLOOP(GOMP_taskloop_ull, unsigned long long)

BEGIN(GOMP_taskwait, here.team + TASKS)
BEGIN(GOMP_taskgroup_end, here.team + TASKS)

ORIEL_TSAN_ENTRY void GOMP_taskwait_depend(void **depend);
ORIEL_TSAN_ENTRY void GOMP_taskwait_depend(void **depend)
{
    ORIEL_TSAN_NEXT(GOMP_taskwait_depend)(depend);
    take(here.team + TASKS);
}

/* The thread that completes a detached task gives for it. */
ORIEL_TSAN_ENTRY void omp_fulfill_event(void *event);
ORIEL_TSAN_ENTRY void omp_fulfill_event(void *event)
{
    give(here.team + TASKS);
    ORIEL_TSAN_NEXT(omp_fulfill_event)(event);
}
