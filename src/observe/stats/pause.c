/* MPI_Pcontrol (MPI-4.1, 15.2.4). A pause costs calls outside it nothing: entries find a window in
 * their thread's cache, which a pause invalidates, and the lookup then finds none.
 *
 *     P1  the flag is set                          L1  the generation of caches is read (acquire)
 *     P2  the generation is increased (release)    L2  the flag is read
 *                                                  L3  the window is cached for that generation
 *
 * P2 -> L1: a thread that reads the new generation sees the flag, and caches nothing. What is
 * cached for an old generation is not used after P2. */
#include "observe/stats/pause.h"

#include "base/tls_cache.h"
#include "base/wait.h"
#include "observe/stats/observed_window.h"
#include "observe/stats/process_record.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of changes */
static _Atomic bool is_paused;
static bool is_stopped;

bool oriel_observation_is_paused(void)
{
    return atomic_load_explicit(&is_paused, memory_order_relaxed); /* L2 */
}

static uint64_t pause_length_ns(const struct oriel_process_record *record, uint64_t now_ns)
{
    uint64_t since_ns = atomic_load_explicit(&record->paused_since_ns, memory_order_relaxed);
    return since_ns != 0 && now_ns > since_ns ? now_ns - since_ns : 0;
}

uint64_t oriel_observation_paused_ns(uint64_t now_ns)
{
    const struct oriel_process_record *record = oriel_process_record();
    if (record == NULL)
        return 0;
    pthread_mutex_lock(&mutex);
    uint64_t paused_ns = atomic_load_explicit(&record->paused_ns, memory_order_relaxed) +
                         pause_length_ns(record, now_ns);
    pthread_mutex_unlock(&mutex);
    return paused_ns;
}

/* With the mutex held. */
static void pause_begin(void)
{
    struct oriel_process_record *record = oriel_process_record();
    if (atomic_load_explicit(&is_paused, memory_order_relaxed) || is_stopped)
        return;
    if (record != NULL)
        atomic_store_explicit(&record->paused_since_ns, oriel_now_ns(), memory_order_relaxed);
    atomic_store_explicit(&is_paused, true, memory_order_relaxed); /* P1 */
    oriel_tls_cache_invalidate();                                  /* P2 */
}

/* With the mutex held: counts the pause, if there is one, and marks it in the trace. */
static void pause_end(void)
{
    struct oriel_process_record *record = oriel_process_record();
    uint64_t now_ns = oriel_now_ns();
    if (record == NULL || atomic_load_explicit(&record->paused_since_ns, memory_order_relaxed) == 0)
        return;
    uint64_t length_ns = pause_length_ns(record, now_ns);
    oriel_traced_mark(&(struct oriel_trace_mark){
        .kind = ORIEL_MARK_PAUSE, .begin_ns = now_ns - length_ns, .duration_ns = length_ns});
    uint64_t before_ns = atomic_load_explicit(&record->paused_ns, memory_order_relaxed);
    atomic_store_explicit(&record->paused_ns, before_ns + length_ns, memory_order_relaxed);
    atomic_store_explicit(&record->paused_since_ns, 0, memory_order_relaxed);
}

static void observation_pause(void)
{
    pthread_mutex_lock(&mutex);
    pause_begin();
    pthread_mutex_unlock(&mutex);
}

static void observation_resume(void)
{
    pthread_mutex_lock(&mutex);
    pause_end();
    if (!is_stopped)
        atomic_store_explicit(&is_paused, false, memory_order_relaxed);
    pthread_mutex_unlock(&mutex);
}

void oriel_observation_stop(void)
{
    pthread_mutex_lock(&mutex);
    pause_end();
    is_stopped = true;
    pthread_mutex_unlock(&mutex);
}

enum { LEVEL_OFF, LEVEL_ON, LEVEL_FLUSH };

/* Other levels are for other tools. The host's function ignores further arguments, whose types only
 * it would know. */
static int observe_Pcontrol(const int level, ...)
{
    if (level == LEVEL_OFF)
        observation_pause();
    else if (level == LEVEL_ON || level == LEVEL_FLUSH)
        observation_resume();
    if (level == LEVEL_FLUSH)
        oriel_trace_flush();
    return oriel_observe_before.Pcontrol(level);
}

void oriel_observe_levels(struct oriel_api *table)
{
    table->Pcontrol = observe_Pcontrol;
}
