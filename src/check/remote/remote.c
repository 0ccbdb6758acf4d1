/* Asking other machines: one connection to each thread of each server, made when it is first needed, used by one thread of this
 * process at a time.  remote.h has the argument. */
#include "check/remote/remote.h"

#include "base/log.h"
#include "base/options.h"
#include "base/status.h"
#include "check/order/member_state.h"
#include "check/order/rank_clocks.h"
#include "check/remote/remote_order.h"
#include "check/remote/remote_socket.h"
#include "check/report/finding.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 2, PARTS_MOST = 4 };

struct channel {
    pthread_mutex_t mutex;
    int fd; /* -1: not connected */
};

static struct {
    int *machine_of;
    int world_size;
    int own, count;
    struct oriel_check_remote_address *addresses;
    struct channel (*channels)[THREADS]; /* by machine */
    _Atomic bool lost;
    _Atomic bool gap; /* another machine has lost one who asked */
} far;

bool oriel_check_remote_start(const int *machine_of, int world_size, int own_machine,
                              const struct oriel_check_remote_address *addresses,
                              int machines_count)
{
    size_t machines = (size_t)(unsigned)machines_count;
    far.machine_of = calloc((size_t)(unsigned)world_size, sizeof *far.machine_of);
    far.addresses = calloc(machines, sizeof *far.addresses);
    far.channels = calloc(machines, sizeof *far.channels);
    if (far.machine_of == NULL || far.addresses == NULL || far.channels == NULL)
        return false;
    memcpy(far.machine_of, machine_of, (size_t)(unsigned)world_size * sizeof *machine_of);
    memcpy(far.addresses, addresses, machines * sizeof *addresses);
    far.world_size = world_size;
    far.own = own_machine;
    far.count = machines_count;
    far.lost = far.gap = false;
    for (size_t i = 0; i < machines; i++)
        for (int thread = 0; thread < THREADS; thread++) {
            pthread_mutex_init(&far.channels[i][thread].mutex, NULL);
            far.channels[i][thread].fd = -1;
        }
    return true;
}

void oriel_check_remote_span(void)
{
    oriel_check_remote_order_span();
}

void oriel_check_remote_stop(void)
{
    for (int i = 0; i < far.count; i++)
        for (int thread = 0; thread < THREADS; thread++)
            if (far.channels[i][thread].fd >= 0)
                close(far.channels[i][thread].fd);
    far.count = 0;
    free(far.machine_of);
    free(far.addresses);
    free(far.channels);
    far.machine_of = NULL;
    far.addresses = NULL;
    far.channels = NULL;
}

int oriel_check_remote_machine(int world_rank)
{
    return world_rank < 0 || world_rank >= far.world_size ? -1 : far.machine_of[world_rank];
}

int oriel_check_remote_own_machine(void)
{
    return far.own;
}

int oriel_check_remote_machines(void)
{
    return far.count;
}

bool oriel_check_remote_is_lost(void)
{
    return far.lost || oriel_given_has_left();
}

void oriel_check_remote_note_gap(void)
{
    far.gap = true;
}

bool oriel_check_remote_counts_all(void)
{
    return !far.lost && !far.gap && !oriel_given_lost_asker();
}

static void disconnect(struct channel *channel)
{
    if (channel->fd >= 0)
        close(channel->fd);
    channel->fd = -1;
}

/* F4 */
static void lose(void)
{
    if (atomic_exchange(&far.lost, true))
        return;
    oriel_warn(
        "the checker of another machine does not answer (%s): no conflict is told from now on",
        oriel_fail_message());
    oriel_finding_count(
        "the checker of another machine did not answer: conflicts after that were not told");
}

static bool connect_channel(struct channel *channel, int machine, int thread)
{
    if (channel->fd < 0)
        channel->fd = oriel_check_remote_connect(&far.addresses[machine], thread);
    return channel->fd >= 0;
}

bool oriel_check_remote_try(void)
{
    for (int i = 0; i < far.count; i++)
        for (int thread = 0; thread < THREADS && i != far.own; thread++) {
            struct channel *channel = &far.channels[i][thread];
            pthread_mutex_lock(&channel->mutex);
            bool connected = connect_channel(channel, i, thread);
            pthread_mutex_unlock(&channel->mutex);
            if (!connected)
                return false;
        }
    return true;
}

static bool exchange(int fd, struct iovec *parts, int count,
                     struct oriel_check_remote_answer *answer, void *data, size_t room_bytes)
{
    bool answered = oriel_check_remote_write(fd, parts, count) &&
                    oriel_check_remote_read(fd, answer, sizeof *answer);
    bool fits = answered && answer->len_bytes <= room_bytes;
    if (fits && oriel_check_remote_read(fd, data, answer->len_bytes))
        return true;
    (void)oriel_fail(ORIEL_E_OTHER,
                     answered && !fits ? "its answer is longer than it can be"
                     : errno == EAGAIN ? "it was silent for %d s"
                                       : "its connection ended",
                     oriel_options()->timeout_s);
    return false;
}

bool oriel_check_remote_ask(int machine, struct oriel_check_remote_request *request,
                            const struct iovec *parts, int parts_count,
                            struct oriel_check_remote_answer *answer, void *data, size_t room_bytes)
{
    int thread = request->kind >= ORIEL_CHECK_REMOTE_LEAVES;
    struct iovec all[PARTS_MOST] = {{.iov_base = request, .iov_len = sizeof *request}};
    if (machine < 0 || machine >= far.count || far.lost || !oriel_shm_is_open())
        return false;
    request->len_bytes = 0;
    for (int i = 0; i < parts_count; i++) {
        all[1 + i] = parts[i];
        request->len_bytes += parts[i].iov_len;
    }
    struct channel *channel = &far.channels[machine][thread];
    pthread_mutex_lock(&channel->mutex);
    bool answered = connect_channel(channel, machine, thread) &&
                    exchange(channel->fd, all, parts_count + 1, answer, data, room_bytes);
    if (!answered) {
        disconnect(channel);
        if (request->kind < ORIEL_CHECK_REMOTE_QUIET)
            lose();
    }
    pthread_mutex_unlock(&channel->mutex);
    return answered;
}

bool oriel_check_remote_note(int machine, uint64_t window, const struct oriel_member_state_ask *ask,
                             struct oriel_member_state_answer *answer)
{
    struct oriel_check_remote_request request = {.kind = ORIEL_CHECK_REMOTE_NOTE,
                                                 .words = {window}};
    struct oriel_check_remote_answer about;
    struct iovec part = {.iov_base = (void *)(uintptr_t)ask, .iov_len = sizeof *ask};
    return oriel_check_remote_ask(machine, &request, &part, 1, &about, answer, sizeof *answer) &&
           about.word != 0 && about.len_bytes == sizeof *answer;
}
