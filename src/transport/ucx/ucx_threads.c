/* The threads that libucp creates when its workers are opened: one that accepts connections. They
 * inherit the signal mask of the opening thread, with all signals blocked, so they are not stopped
 * while pages of the program move (memory/promote/stop_threads.c). That is harmless: UCX receives
 * only Oriel's buffers, so its threads do not access the program's memory. All of this happens
 * while the net is not started.
 *
 * They are identified by three properties together: they did not exist before, they block all
 * signals, and they have UCX's thread name. A thread with another name, of another version, is not
 * identified. Then stopping the threads fails, as for any thread that blocks its signal. */
#include "transport/ucx/internal.h"

#include "transport/remote_writers.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS_MOST = 512 };

static int32_t recorded_tids[THREADS_MOST];
static unsigned recorded_count;
static int32_t exempt_tids[ORIEL_NET_THREADS];

/* Calls visit for each thread of the process. Returns false if they cannot be listed, or visit
 * returns false. */
static bool threads_visit(bool (*visit)(int32_t tid))
{
    DIR *folder = opendir("/proc/self/task");
    bool all = folder != NULL;
    if (folder == NULL)
        return false;
    for (const struct dirent *entry; all && (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.')
            all = visit((int32_t)strtol(entry->d_name, NULL, 10));
    closedir(folder);
    return all;
}

static bool thread_record(int32_t tid)
{
    if (recorded_count == THREADS_MOST)
        return false;
    recorded_tids[recorded_count++] = tid;
    return true;
}

static bool thread_is_recorded(int32_t tid)
{
    for (unsigned i = 0; i < recorded_count; i++)
        if (recorded_tids[i] == tid)
            return true;
    return false;
}

static bool is_ucx_thread(int32_t tid)
{
    char path[64];
    char text[2048];
    sigset_t all;
    uint64_t wanted;
    snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    const char *mask = strstr(text, "\nSigBlk:\t");
    sigfillset(&all);
    memcpy(&wanted, &all, sizeof wanted);
    /* signals that cannot be blocked */
    wanted &= ~(UINT64_C(1) << (SIGKILL - 1) | UINT64_C(1) << (SIGSTOP - 1));
    return strncmp(text, "Name:\tasync\n", 12) == 0 && mask != NULL &&
           (strtoull(mask + 9, NULL, 16) & wanted) == wanted;
}

static bool thread_exempt(int32_t tid)
{
    for (unsigned i = 0; !thread_is_recorded(tid) && i < ORIEL_NET_THREADS; i++)
        if (exempt_tids[i] == 0 && is_ucx_thread(tid)) {
            exempt_tids[i] = tid;
            oriel_remote_writers_add_helper(tid);
            break;
        }
    return true;
}

void oriel_net_threads_record(void)
{
    recorded_count = 0;
    if (!threads_visit(thread_record))
        recorded_count = THREADS_MOST + 1; /* unknown: no thread counts as new */
}

/* Calls change for the address of each worker, which UCX's threads may write. */
static void worker_addresses_change(void (*change)(const void *addr))
{
    const struct oriel_net_worker *workers[] = {&oriel_net.origin, &oriel_net.agent};
    for (int i = 0; i < 2; i++) {
        change(workers[i]->ucp);
        if (workers[i]->devices != NULL)
            change(workers[i]->devices);
    }
}

void oriel_net_threads_exempt(void)
{
    if (recorded_count <= THREADS_MOST)
        (void)threads_visit(thread_exempt);
    worker_addresses_change(oriel_remote_writers_add_address);
}

void oriel_net_threads_forget(void)
{
    for (unsigned i = 0; i < ORIEL_NET_THREADS; i++) {
        if (exempt_tids[i] != 0)
            oriel_remote_writers_remove_helper(exempt_tids[i]);
        exempt_tids[i] = 0;
    }
    worker_addresses_change(oriel_remote_writers_remove_address);
}
