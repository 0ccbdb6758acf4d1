/* The agent's thread: its kernel settings, and when it is awake. It sleeps until a request arrives.
 * After an answer it stays awake for some microseconds. execute.c executes the requests. */
#include "transport/agent/agent.h"

#include "base/delay.h"
#include "base/reserve_fd.h"
#include "base/schedule.h"
#include "gpu/gpu.h"
#include "transport/remote_writers.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES (UINT64_C(256) << 10)

enum { SPIN_NS = 2000, AWAKE_NS = 10000 }; /* after an answer: spins, then yields */

static struct {
    struct oriel_agent *agent;
    struct oriel_remote_writers *writers; /* of this process: pages may move between two requests */
    int fd;
    uint64_t offset; /* of the area in the file */
    pthread_t thread;
    sem_t ready;            /* the thread has finished its initialisation */
    pid_t pid;              /* of the process that has the thread: a forked child has none */
    bool has_own_table;     /* of descriptors */
    bool origin_shares_cpu; /* the origin that was served last waits for this processor */
} serving;

/* Gives the thread its own descriptor table. If the program closes all descriptors and reuses their
 * numbers, the agent must not access another file. The agent must not keep the program's files open
 * either. Before Linux 5.9 the table stays shared; also if the agent may call a GPU's driver. */
static void descriptor_table_unshare(void)
{
    unsigned fd = (unsigned)serving.fd;
    oriel_agent_has_descriptors = true;
#if defined(SYS_close_range) && defined(CLOSE_RANGE_UNSHARE)
    if (oriel_gpu_is_loaded() || syscall(SYS_close_range, fd + 1, ~0U, CLOSE_RANGE_UNSHARE) != 0)
        return;
    oriel_agent_has_descriptors = false;
    serving.has_own_table = true;
    oriel_reserve_fd_detach_thread();
    if (fd > 0)
        syscall(SYS_close_range, 0U, fd - 1, 0U);
#endif
}

static void slot_serve(unsigned number)
{
    struct oriel_agent_slot *slot = &serving.agent->slots[number];
    if (oriel_load_acquire(&slot->answer.value) != ORIEL_AGENT_ASKED)
        return; /* Z2, P5 */
    struct oriel_remote_writers_slot *inside = oriel_remote_writers_enter(serving.writers);
    slot->error =
        inside != NULL ? oriel_agent_execute(serving.agent, slot, serving.fd, serving.offset) : EIO;
    if (inside != NULL)
        oriel_remote_writers_leave(inside);
    serving.origin_shares_cpu = slot->cpu == sched_getcpu();
    oriel_delay();
    atomic_exchange_explicit(&slot->answer.value, ORIEL_AGENT_DONE,
                             memory_order_seq_cst); /* Z3, P2 */
    oriel_wake(&slot->answer.value, &slot->answer.sleepers);
}

/* Serves all requests of the bits in asked (Z1). Returns the bits, 0 if there were none. */
static uint32_t slots_serve(struct oriel_agent *agent)
{
    if (oriel_load_relaxed(&agent->asked) == 0)
        return 0;
    uint32_t bits = atomic_exchange_explicit(&agent->asked, 0, memory_order_seq_cst); /* Z1 */
    atomic_store_explicit(&agent->cpu, sched_getcpu(), memory_order_relaxed);
    oriel_delay();
    for (unsigned i = 0; i < ORIEL_AGENT_SLOTS; i++)
        if (bits & (UINT32_C(1) << i))
            slot_serve(i);
    return bits;
}

/* Stays awake for a while: an origin often sends its next request soon, and a wake costs more than
 * the request. But not if the origin needs this processor. */
static bool is_asked_soon(struct oriel_agent *agent)
{
    uint64_t begin_ns = oriel_now_ns();
    if (serving.origin_shares_cpu)
        return false;
    for (;;) {
        for (int i = 0; i < 16; i++) {
            oriel_cpu_relax();
            if (oriel_load_relaxed(&agent->asked) != 0)
                return true;
        }
        uint64_t waited_ns = oriel_now_ns() - begin_ns;
        if (waited_ns >= AWAKE_NS)
            return false;
        if (waited_ns >= SPIN_NS)
            sched_yield();
    }
}

/* S1 and S2 of base/wait.h. Without a time limit: each origin wakes the agent, and one that dies
 * before has no answer to wait for. */
static void agent_sleep(struct oriel_agent *agent)
{
    atomic_fetch_add_explicit(&agent->sleepers, 1, memory_order_seq_cst); /* S1 */
    oriel_delay();
    while (oriel_load_relaxed(&agent->asked) == 0)
        syscall(SYS_futex, &agent->asked, FUTEX_WAIT, 0, NULL, NULL, 0); /* S2 */
    atomic_fetch_sub_explicit(&agent->sleepers, 1, memory_order_seq_cst);
}

/* Reads the area through the descriptor, to check that it refers to the file that contains the
 * area. */
static bool area_file_is_valid(const struct oriel_agent *agent)
{
    struct oriel_identity found;
    return pread(serving.fd, &found, sizeof found, (off_t)serving.offset) ==
               (ssize_t)sizeof found &&
           memcmp(&found, &agent->process, sizeof found) == 0;
}

static void *agent_thread_main(void *unused)
{
    (void)unused;
    struct oriel_agent *agent = serving.agent;
    descriptor_table_unshare();
    oriel_schedule_short_slices();
    oriel_schedule_all_processors();
    oriel_remote_writers_add_helper(gettid());
    bool goes_on = area_file_is_valid(agent);
    oriel_store_release(&agent->state, goes_on ? ORIEL_AGENT_RUNNING : ORIEL_AGENT_STOPPED);
    sem_post(&serving.ready);
    while (goes_on) {
        uint32_t bits = slots_serve(agent);
        goes_on = (bits & ORIEL_AGENT_STOP) == 0;
        if (goes_on && (bits == 0 || !is_asked_soon(agent)))
            agent_sleep(agent);
    }
    oriel_remote_writers_remove_helper(gettid());
    return NULL;
}

/* Static thread-local memory is part of the stack: if a program has much of it, the small stack
 * fails and the default size is used. */
static int agent_thread_create(void)
{
    pthread_attr_t small;
    int error = pthread_attr_init(&small);
    if (error != 0)
        return error;
    pthread_attr_setstacksize(&small, STACK_BYTES);
    error = pthread_create(&serving.thread, &small, agent_thread_main, NULL);
    pthread_attr_destroy(&small);
    return error == EINVAL ? pthread_create(&serving.thread, NULL, agent_thread_main, NULL) : error;
}

/* Returns 0 or an errno; EBADF: fd is not the memory file. */
static int thread_run(void)
{
    sigset_t all;
    sigset_t before;
    serving.has_own_table = false;
    sem_init(&serving.ready, 0, 0);
    sigfillset(&all);
    /* the program's signal handlers run only in the program's threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = agent_thread_create();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0)
        return error;
    pthread_setname_np(serving.thread, "oriel-agent");
    while (sem_wait(&serving.ready) != 0)
        ; /* interrupted by a signal */
    if (oriel_load_acquire(&serving.agent->state) == ORIEL_AGENT_RUNNING)
        return 0;
    pthread_join(serving.thread, NULL);
    return EBADF;
}

enum oriel_status oriel_agent_start(struct oriel_agent *agent, struct oriel_remote_writers *writers,
                                    int fd, uint64_t offset)
{
    serving.agent = agent;
    serving.writers = writers;
    serving.fd = fd;
    serving.offset = offset;
    int error = thread_run();
    if (error == EBADF)
        return oriel_fail(ORIEL_E_OTHER, "descriptor %d is not the memory file, so no agent starts",
                          fd);
    if (error != 0)
        return oriel_fail(ORIEL_E_OTHER, "cannot create the agent's thread: %s", strerror(error));
    serving.pid = getpid();
    return ORIEL_OK;
}

static bool has_thread(void)
{
    return serving.pid != 0 && serving.pid == getpid();
}

static void thread_end(void)
{
    struct oriel_agent *agent = serving.agent;
    atomic_fetch_or_explicit(&agent->asked, ORIEL_AGENT_STOP, memory_order_seq_cst);
    oriel_wake(&agent->asked, &agent->sleepers);
    pthread_join(serving.thread, NULL);
}

void oriel_agent_share_descriptors(void)
{
    if (!has_thread() || !serving.has_own_table)
        return;
    thread_end();
    if (thread_run() == 0)
        return;
    oriel_store_release(&serving.agent->state, ORIEL_AGENT_STOPPED);
    serving.pid = 0;
}

void oriel_agent_stop(void)
{
    struct oriel_agent *agent = serving.agent;
    if (!has_thread())
        return;
    thread_end();
    oriel_store_release(&agent->state, ORIEL_AGENT_STOPPED);
    serving.pid = 0;
}
