/* The writer's thread. It has its own table of file descriptors, which the program and its children
 * do not share: whatever the program closes or executes, the trace continues and stays this
 * process's. It is one of the threads that do not touch the program's memory
 * (transport/remote_writers.h), so promotion does not stop it. */
#include "observe/trace/trace_write.h"

#include "base/log.h"
#include "base/schedule.h"
#include "base/wait.h"
#include "observe/trace/trace.h"
#include "observe/trace/trace_file.h"
#include "observe/trace/trace_regions.h"
#include "observe/trace/trace_ring.h"
#include "observe/trace/trace_sites.h"
#include "observe/trace/trace_windows.h"
#include "transport/remote_writers.h"

#include <errno.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES (UINT64_C(256) << 10)

enum { FLUSH_NS = 50000000, PATIENCE_S = 10, BILLION = 1000000000 };

bool oriel_tracing;

static struct {
    pthread_t thread;
    const char *path;
    uint64_t limit_bytes;
    const char *refusal;               /* why the file could not be created */
    struct oriel_trace_header *header; /* NULL: tracing does not begin */
    const struct oriel_trace_host *host;
    const struct oriel_trace_selection *selection;
    const struct oriel_trace_clock *clock;
    uint64_t end_ns;
    bool begun;
    _Atomic bool ends;
    _Atomic uint32_t flushes_wanted;
    _Atomic uint32_t flushes_done; /* all that were wanted when that flush began */
    uint64_t dropped;              /* by the rings, as last read */
    sem_t done;                    /* the thread has created the file, then written the header */
    sem_t go;                      /* it may write the header */
    sem_t bell;                    /* a ring is half full, or tracing ends */
} writer;

static void semaphore_wait(sem_t *what)
{
    while (sem_wait(what) != 0)
        ; /* a signal */
}

static void ring_bell(void)
{
    sem_post(&writer.bell);
}

/* Before Linux 5.9 they are shared with the program. Standard error stays open for a warning about
 * the disk. */
static void keep_own_descriptors(void)
{
#if defined(SYS_close_range) && defined(CLOSE_RANGE_UNSHARE)
    if (syscall(SYS_close_range, STDERR_FILENO + 1U, ~0U, CLOSE_RANGE_UNSHARE) == 0)
        syscall(SYS_close_range, 0U, STDERR_FILENO - 1U, 0U);
#endif
}

static void write_window(const struct oriel_trace_window *window, size_t count)
{
    (void)oriel_trace_file_append(ORIEL_BLOCK_WINDOW, window, sizeof *window, window->world_ranks,
                                  count * sizeof window->world_ranks[0], writer.dropped);
}

static void write_site(const struct oriel_trace_site *site, bool is_again)
{
    oriel_trace_file_site(site, is_again, writer.dropped);
}

static void write_region(const struct oriel_trace_region *region)
{
    (void)oriel_trace_file_append(ORIEL_BLOCK_REGION, region, sizeof *region, NULL, 0,
                                  writer.dropped);
}

static bool write_events(const struct oriel_trace_event *events, size_t count)
{
    oriel_trace_file_events(events, count, writer.dropped);
    return true;
}

/* Call sites, windows and regions must precede the events that name them, so the rings are read
 * first. */
static void writer_flush(void)
{
    uint32_t wanted = oriel_load_acquire(&writer.flushes_wanted);
    writer.dropped = oriel_trace_rings_snapshot().dropped;
    oriel_trace_sites_empty(write_site);
    oriel_trace_windows_empty(write_window);
    oriel_trace_regions_empty(write_region);
    oriel_trace_rings_empty(write_events);
    oriel_store_release(&writer.flushes_done, wanted);
}

static void writer_sleep(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += FLUSH_NS;
    if (until.tv_nsec >= BILLION) {
        until.tv_sec++;
        until.tv_nsec -= BILLION;
    }
    (void)sem_clockwait(&writer.bell, CLOCK_MONOTONIC, &until);
}

static bool writer_begin(void)
{
    return writer.header != NULL && oriel_trace_file_head(writer.header) &&
           oriel_trace_file_append(ORIEL_BLOCK_HOST, writer.host, sizeof *writer.host, NULL, 0,
                                   0) &&
           (writer.selection == NULL ||
            oriel_trace_file_append(ORIEL_BLOCK_SELECTION, writer.selection,
                                    sizeof *writer.selection, NULL, 0, 0)) &&
           (writer.clock == NULL || oriel_trace_file_append(ORIEL_BLOCK_CLOCK, writer.clock,
                                                            sizeof *writer.clock, NULL, 0, 0));
}

static void *writer_run(void *unused)
{
    (void)unused;
    keep_own_descriptors();
    oriel_schedule_all_processors();
    oriel_remote_writers_add_helper(gettid());
    writer.refusal = oriel_trace_file_open(writer.path, writer.limit_bytes);
    sem_post(&writer.done);
    semaphore_wait(&writer.go);
    writer.begun = writer_begin();
    sem_post(&writer.done);
    while (writer.begun && !atomic_load_explicit(&writer.ends, memory_order_acquire)) {
        writer_sleep();
        writer_flush();
        oriel_trace_file_warn();
    }
    if (writer.begun) {
        writer_flush();
        oriel_trace_file_end(writer.clock, writer.end_ns, writer.dropped);
        oriel_trace_file_warn();
    }
    oriel_trace_file_close();
    oriel_remote_writers_remove_helper(gettid());
    return NULL;
}

/* Blocks all signals, since they are the program's threads' to handle. */
static int writer_create(void)
{
    pthread_attr_t small;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    int error = pthread_create(&writer.thread, &small, writer_run, NULL);
    if (error == EINVAL) /* static TLS is taken from the stack, and the program has much of it */
        error = pthread_create(&writer.thread, NULL, writer_run, NULL);
    pthread_attr_destroy(&small);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* A forked child has no such thread, and must not use its state. */
static void enter_child(void)
{
    oriel_tracing = false;
}

const char *oriel_trace_writer_open(const char *path, uint64_t limit_bytes)
{
    writer.path = path;
    writer.limit_bytes = limit_bytes;
    sem_init(&writer.done, 0, 0);
    sem_init(&writer.go, 0, 0);
    sem_init(&writer.bell, 0, 0);
    int error = pthread_atfork(NULL, NULL, enter_child);
    if (error == 0)
        error = writer_create();
    if (error != 0)
        return strerrordesc_np(error);
    pthread_setname_np(writer.thread, "oriel-trace");
    semaphore_wait(&writer.done);
    if (writer.refusal != NULL)
        (void)oriel_trace_writer_begin(NULL, NULL, NULL, NULL);
    return writer.refusal;
}

bool oriel_trace_writer_begin(struct oriel_trace_header *header,
                              const struct oriel_trace_host *host,
                              const struct oriel_trace_selection *selection,
                              const struct oriel_trace_clock *clock)
{
    writer.header = header;
    writer.host = host;
    writer.selection = selection;
    writer.clock = clock;
    sem_post(&writer.go);
    semaphore_wait(&writer.done);
    if (!writer.begun) {
        pthread_join(writer.thread, NULL);
        /* here, because other ranks find the message for as long as its thread has descriptors */
        oriel_trace_file_warn();
        return false;
    }
    oriel_trace_rings_open(ring_bell);
    oriel_tracing = true;
    return true;
}

void oriel_trace_flush(void)
{
    if (!oriel_tracing)
        return;
    uint64_t until_ns = oriel_now_ns() + PATIENCE_S * UINT64_C(1000000000);
    uint32_t wanted =
        atomic_fetch_add_explicit(&writer.flushes_wanted, 1, memory_order_acq_rel) + 1;
    ring_bell();
    while ((int32_t)(oriel_load_acquire(&writer.flushes_done) - wanted) < 0 &&
           oriel_now_ns() < until_ns)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

void oriel_trace_writer_end(const struct oriel_trace_clock *clock, uint64_t end_ns)
{
    struct timespec until;
    oriel_tracing = false;
    writer.clock = clock;
    writer.end_ns = end_ns;
    atomic_store_explicit(&writer.ends, true, memory_order_release);
    ring_bell();
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    if (pthread_timedjoin_np(writer.thread, NULL, &until) != 0)
        oriel_warn("trace: the end was not written within %d s [O22]", PATIENCE_S);
}
