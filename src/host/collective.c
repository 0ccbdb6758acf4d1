/* Collectives on the user's communicator while a window is created: creation is collective over it,
 * so they cannot match other collectives. They are nonblocking and polled, for two reasons. Hosts
 * spin where Oriel yields and then sleeps. A rank without Oriel would never join; after 10 s a
 * warning reports that. */
#include "base/log.h"
#include "base/wait.h"
#include "host/host.h"

#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARN_AFTER_S = 10, SPINS = 8, YIELD_NS = 1000000, NAP_NS = 100000, WATCH_NS = 100000000 };

static void late_warn(const char *call)
{
    char rest[120];
    snprintf(rest, sizeof rest,
             " has waited %d s for the other ranks: is one of them late, or running without Oriel? "
             "[O14]",
             WARN_AFTER_S);
    oriel_log_call(ORIEL_LOG_WARNING, call, rest);
}

static enum oriel_status collective_poll(MPI_Request *request, const char *call,
                                         const struct oriel_watch *watch, bool *is_published)
{
    uint64_t begin_ns = oriel_now_ns();
    uint64_t watched_ns = begin_ns;
    bool lasts = false;
    bool warned = false;
    int done = 0;
    for (unsigned tests = 0;; tests++) {
        if (oriel_host()->Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return oriel_fail(ORIEL_E_OTHER,
                              "the host failed in a collective during window creation");
        if (done)
            return ORIEL_OK;
        if (tests < SPINS)
            continue;
        if (lasts)
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        else
            sched_yield();
        if (!lasts && tests % 64 != 0)
            continue;
        uint64_t now_ns = oriel_now_ns();
        lasts = now_ns - begin_ns > YIELD_NS;
        if (!*is_published && lasts)
            oriel_wait_publish(watch, begin_ns, is_published);
        if (watch != NULL && now_ns - watched_ns > WATCH_NS) {
            enum oriel_status status = watch->check(watch->context);
            if (status != ORIEL_OK)
                return status;
            watched_ns = now_ns;
        }
        if (!warned && now_ns - begin_ns > WARN_AFTER_S * UINT64_C(1000000000)) {
            late_warn(call);
            warned = true;
        }
    }
}

static enum oriel_status collective_wait(MPI_Request *request, const char *call,
                                         const struct oriel_watch *watch)
{
    bool is_published = false;
    uint64_t begin_ns = oriel_wait_time_begin(watch);
    enum oriel_status status = collective_poll(request, call, watch, &is_published);
    oriel_wait_unpublish(is_published);
    oriel_wait_time_end(watch, begin_ns);
    return status;
}

/* The buffers of a collective in progress. If a death ends the wait, the request cannot be
 * withdrawn: the host may still read and write the buffers when late ranks arrive. They are then
 * never freed. If malloc fails, a collective of few ranks uses the static spare buffer. With many
 * ranks it reports the lack of memory in another collective, because all others would wait for a
 * rank that does not join. */
struct exchange {
    MPI_Request request;
    char *out;
    char in[];
};

enum { SPARE_BYTES = 16384 };
static struct {
    atomic_flag taken;
    _Alignas(max_align_t) char bytes[SPARE_BYTES];
} spare = {ATOMIC_FLAG_INIT, {0}};

static size_t exchange_bytes(size_t in_bytes, size_t out_bytes)
{
    return sizeof(struct exchange) + in_bytes + out_bytes;
}

static struct exchange *exchange_open(size_t in_bytes, size_t out_bytes)
{
    size_t len_bytes = exchange_bytes(in_bytes, out_bytes);
    struct exchange *exchange = malloc(len_bytes);
    if (exchange == NULL && len_bytes <= SPARE_BYTES && !atomic_flag_test_and_set(&spare.taken))
        exchange = (struct exchange *)spare.bytes;
    if (exchange != NULL)
        exchange->out = exchange->in + in_bytes;
    return exchange;
}

static void exchange_free(struct exchange *exchange)
{
    if ((char *)exchange == spare.bytes)
        atomic_flag_clear(&spare.taken);
    else
        free(exchange);
}

static enum oriel_status exchange_close(struct exchange *exchange, const char *call,
                                        const struct oriel_watch *watch, void *out,
                                        size_t out_bytes)
{
    enum oriel_status status = collective_wait(&exchange->request, call, watch);
    if (status != ORIEL_OK)
        return status;
    if (out != NULL)
        memcpy(out, exchange->out, out_bytes);
    exchange_free(exchange);
    return ORIEL_OK;
}

static enum oriel_status collective_refused(struct exchange *exchange)
{
    exchange_free(exchange);
    return oriel_fail(ORIEL_E_COMM, "the host rejects a collective on the communicator");
}

static enum oriel_status collective_no_memory(void)
{
    return oriel_fail(ORIEL_E_NO_MEM, "no memory for data exchanged between the ranks");
}

enum oriel_status oriel_host_agree(MPI_Comm comm, const char *call, uint32_t bits, uint32_t *agreed,
                                   const struct oriel_watch *watch)
{
    struct exchange *exchange = exchange_open(sizeof bits, sizeof *agreed);
    if (exchange == NULL)
        return collective_no_memory();
    memcpy(exchange->in, &bits, sizeof bits);
    if (oriel_host()->Iallreduce(exchange->in, exchange->out, 1, MPI_UINT32_T, MPI_BAND, comm,
                                 &exchange->request) != MPI_SUCCESS)
        return collective_refused(exchange);
    return exchange_close(exchange, call, watch, agreed, sizeof *agreed);
}

/* The sizes are equal on all ranks. If they exceed the spare buffer, the ranks first agree that all
 * of them have the memory. */
static enum oriel_status exchange_open_all(MPI_Comm comm, const char *call,
                                           const struct oriel_watch *watch, size_t in_bytes,
                                           size_t out_bytes, struct exchange **out)
{
    struct exchange *exchange = exchange_open(in_bytes, out_bytes);
    uint32_t all_have = exchange != NULL;
    enum oriel_status status = ORIEL_OK;
    if (exchange_bytes(in_bytes, out_bytes) > SPARE_BYTES)
        status = oriel_host_agree(comm, call, all_have, &all_have, watch);
    if (status == ORIEL_OK && (exchange == NULL || !all_have))
        status = collective_no_memory();
    if (status != ORIEL_OK && exchange != NULL)
        exchange_free(exchange);
    *out = exchange;
    return status;
}

enum oriel_status oriel_host_allgather(MPI_Comm comm, const char *call, const void *in,
                                       size_t len_bytes, void *out, const struct oriel_watch *watch)
{
    int n = 0;
    oriel_host()->Comm_size(comm, &n);
    struct exchange *exchange;
    enum oriel_status status =
        exchange_open_all(comm, call, watch, len_bytes, (size_t)n * len_bytes, &exchange);
    if (status != ORIEL_OK)
        return status;
    memcpy(exchange->in, in, len_bytes);
    if (oriel_host()->Iallgather(exchange->in, (int)len_bytes, MPI_BYTE, exchange->out,
                                 (int)len_bytes, MPI_BYTE, comm, &exchange->request) != MPI_SUCCESS)
        return collective_refused(exchange);
    return exchange_close(exchange, call, watch, out, (size_t)n * len_bytes);
}

enum oriel_status oriel_host_allgatherv(MPI_Comm comm, const char *call, const void *in,
                                        const int *lens_bytes, const int *starts_bytes, void *out,
                                        const struct oriel_watch *watch)
{
    int n = 0;
    int rank = 0;
    int most_bytes = 0;
    oriel_host()->Comm_size(comm, &n);
    oriel_host()->Comm_rank(comm, &rank);
    for (int i = 0; i < n; i++)
        if (lens_bytes[i] > most_bytes)
            most_bytes = lens_bytes[i];
    size_t out_bytes = (size_t)starts_bytes[n - 1] + (size_t)lens_bytes[n - 1];
    /* the host reads them until the collective ends */
    size_t numbers_bytes = 2 * (size_t)n * sizeof(int);
    struct exchange *exchange;
    enum oriel_status status = exchange_open_all(
        comm, call, watch, (size_t)most_bytes, out_bytes + numbers_bytes + sizeof(int), &exchange);
    if (status != ORIEL_OK)
        return status;
    memcpy(exchange->in, in, (size_t)lens_bytes[rank]);
    int *lens =
        (int *)(((uintptr_t)exchange->out + out_bytes + sizeof(int) - 1) & ~(sizeof(int) - 1));
    memcpy(lens, lens_bytes, (size_t)n * sizeof(int));
    memcpy(lens + n, starts_bytes, (size_t)n * sizeof(int));
    if (oriel_host()->Iallgatherv(exchange->in, lens[rank], MPI_BYTE, exchange->out, lens, lens + n,
                                  MPI_BYTE, comm, &exchange->request) != MPI_SUCCESS)
        return collective_refused(exchange);
    return exchange_close(exchange, call, watch, out, out_bytes);
}

bool oriel_host_shares_memory(MPI_Comm comm)
{
    const struct oriel_host_calls *host = oriel_host();
    MPI_Comm together = MPI_COMM_NULL;
    int n;
    int count;
    if (host->Comm_size(comm, &n) != MPI_SUCCESS ||
        host->Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &together) !=
            MPI_SUCCESS)
        return true;
    bool all = host->Comm_size(together, &count) != MPI_SUCCESS || count == n;
    host->Comm_free(&together);
    return all;
}
