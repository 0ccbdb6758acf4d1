/* The functions that complete requests (MPI-4.1, 3.7 and 13.3.6). While this process has no
 * outstanding operation and no persistent one, they call the host directly. Else they first process
 * messages from other nodes. Then they poll the host by its functions that do not wait, so requests
 * of the host and of operations can be mixed.
 *
 * Oriel reports failures of operations: on the window's handler, by the function that completes the
 * request. It returns the class, or MPI_ERR_IN_STATUS if it has several statuses. */
#include "api/progress_hook.h"
#include "api/requests.h"
#include "api/start.h"
#include "base/options.h"
#include "base/tls_cache.h"
#include "base/wait.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    YIELD_NS = 1000000,
    NAP_NS = 50000,
    MANY = 64, /* requests that the host tests in about the time of one poll of the net */
};

/* The host's functions, cached to save a call. */
static inline const struct oriel_host_calls *completion_host(void)
{
    static _Atomic(const struct oriel_host_calls *) known;
    const struct oriel_host_calls *calls = atomic_load_explicit(&known, memory_order_acquire);
    if (oriel_unlikely(calls == NULL)) {
        calls = oriel_host_waits();
        atomic_store_explicit(&known, calls, memory_order_release);
    }
    return calls;
}

/* --- waiting --- */

struct poll_state {
    uint64_t begin_ns;    /* 0 at first */
    uint64_t observed_ns; /* of statistics, which ask only for notifications */
    int skipped;          /* polls since the host was last asked */
    bool napped;
};

static const struct oriel_watch for_notification = {.what = ORIEL_WAITING_NOTIFICATION};

/* Spins, yields, then naps. It does not sleep on UCX's descriptor, since the wait may be for the
 * host. */
static void poll_backoff(struct poll_state *patience)
{
    uint64_t now_ns = oriel_now_ns();
    uint64_t spin_ns = (uint64_t)oriel_options()->spin_ns;
    if (patience->begin_ns == 0) {
        patience->begin_ns = now_ns;
        patience->observed_ns = oriel_wait_time_begin(&for_notification);
    }
    uint64_t waited_ns = now_ns - patience->begin_ns;
    patience->napped = waited_ns >= spin_ns + YIELD_NS;
    if (patience->napped)
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    else if (waited_ns >= spin_ns)
        sched_yield();
}

static void poll_end(const struct poll_state *patience)
{
    oriel_wait_time_end(&for_notification, patience->observed_ns);
}

/* Whether to ask the host in this poll: less often the more requests it must test. */
static bool host_poll_is_due(struct poll_state *patience, int count)
{
    if (patience->begin_ns != 0 && !patience->napped && patience->skipped++ < count / MANY)
        return false;
    patience->skipped = 0;
    return true;
}

/* --- failures --- */

/* For functions with one status. completed: the program's variable of the request that the host
 * completed, which only a persistent one stays in; NULL if it completed none. */
static int report_failure(const char *call, int code, const MPI_Request *completed)
{
    MPI_Request request;
    int error_class;
    if (oriel_likely(!oriel_requests_failed(call, &error_class, &request)))
        return completed != NULL && oriel_persistent_complete(call, *completed, &error_class)
                   ? error_class
                   : code;
    oriel_requests_ignore_failed();
    return error_class;
}

/* A copy of the requests before the host removes some of them; NULL without memory. */
static MPI_Request *copy_requests(int count, const MPI_Request requests[])
{
    MPI_Request *copy = count > 0 && requests != NULL ? malloc((size_t)count * sizeof *copy) : NULL;
    if (copy != NULL)
        memcpy(copy, requests, (size_t)count * sizeof *copy);
    return copy;
}

/* The statuses of a function with many: one per request, or one per entry of indices. */
struct completion_statuses {
    const MPI_Request *before, *after; /* persistent ones stay */
    int count;
    const int *indices;
    MPI_Status *statuses;
    bool is_complete; /* the host completed them */
};

static MPI_Request request_at(const struct completion_statuses *outcome,
                              const MPI_Request requests[], int i)
{
    return requests[outcome->indices != NULL ? outcome->indices[i] : i];
}

static void set_status_error(const struct completion_statuses *outcome, MPI_Request request,
                             int error_class)
{
    if (outcome->statuses == MPI_STATUSES_IGNORE || outcome->before == NULL)
        return;
    for (int i = 0; i < outcome->count; i++)
        if (request_at(outcome, outcome->before, i) == request)
            outcome->statuses[i].MPI_ERROR = error_class;
}

/* A failure of any of the requests. next: the first of the persistent ones to look at. */
static bool find_failure(const char *call, const struct completion_statuses *outcome, int *next,
                         int *error_class, MPI_Request *request)
{
    if (oriel_requests_failed(call, error_class, request))
        return true;
    while (oriel_persistent_exist() && outcome->is_complete && *next < outcome->count) {
        *request = request_at(outcome, outcome->after, (*next)++);
        if (oriel_persistent_complete(call, *request, error_class))
            return true;
    }
    return false;
}

static int report_failures(const char *call, int code, const struct completion_statuses *outcome)
{
    MPI_Request request;
    int error_class;
    int next = 0;
    bool any = false;
    while (oriel_unlikely(find_failure(call, outcome, &next, &error_class, &request))) {
        if (!any && code == MPI_SUCCESS && outcome->statuses != MPI_STATUSES_IGNORE)
            for (int i = 0; i < outcome->count; i++)
                outcome->statuses[i].MPI_ERROR = MPI_SUCCESS;
        set_status_error(outcome, request, error_class);
        any = true;
    }
    return any ? MPI_ERR_IN_STATUS : code;
}

/* --- one request --- */

/* Completes it if it is a prompt persistent request. The program may poll by starting it again and
 * again, so the host gets its turn. */
static inline bool finish_prompt(const MPI_Request *request, MPI_Status *status)
{
    struct oriel_persistent *persistent = request == NULL ? NULL : oriel_persistent_find(*request);
    if (persistent == NULL || !oriel_persistent_finish(persistent))
        return false;
    if (status != MPI_STATUS_IGNORE)
        oriel_host_fill_status(status);
    oriel_tls_cache_count_turn();
    return true;
}

static __attribute__((noinline)) int wait_one(MPI_Request *request, MPI_Status *status)
{
    struct poll_state patience = {0};
    for (;;) {
        int done = 1;
        oriel_requests_progress();
        int code = oriel_requests_are_open() ? completion_host()->Test(request, &done, status)
                                             : completion_host()->Wait(request, status);
        if (done || code != MPI_SUCCESS) {
            poll_end(&patience);
            return report_failure("MPI_Wait", code, code == MPI_SUCCESS ? request : NULL);
        }
        poll_backoff(&patience);
    }
}

static __attribute__((noinline)) int wait_special(MPI_Request *request, MPI_Status *status)
{
    return oriel_likely(finish_prompt(request, status)) ? MPI_SUCCESS : wait_one(request, status);
}

int oriel_entry_Wait(MPI_Request *request, MPI_Status *status)
{
    return oriel_requests_are_special() ? wait_special(request, status)
                                        : completion_host()->Wait(request, status);
}

static __attribute__((noinline)) int test_one(MPI_Request *request, int *flag, MPI_Status *status)
{
    if (finish_prompt(request, status)) {
        *flag = 1;
        return MPI_SUCCESS;
    }
    oriel_requests_progress();
    int code = completion_host()->Test(request, flag, status);
    return report_failure("MPI_Test", code, code == MPI_SUCCESS && *flag ? request : NULL);
}

int oriel_entry_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    return oriel_requests_are_special() ? test_one(request, flag, status)
                                        : completion_host()->Test(request, flag, status);
}

int oriel_entry_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    if (!oriel_requests_are_special())
        return completion_host()->Request_get_status(request, flag, status);
    oriel_requests_progress();
    int code = completion_host()->Request_get_status(request, flag, status);
    oriel_requests_ignore_failed(); /* the function that completes it reports it */
    return code;
}

/* --- any of many --- */

static const MPI_Request *completed_any(const MPI_Request requests[], bool is_done,
                                        const int *index)
{
    return is_done && *index != MPI_UNDEFINED ? &requests[*index] : NULL;
}

static __attribute__((noinline)) int wait_any(int count, MPI_Request requests[], int *index,
                                              MPI_Status *status)
{
    struct poll_state patience = {0};
    oriel_persistent_show(count, requests);
    for (;;) {
        int done = 0, code = MPI_SUCCESS;
        oriel_requests_progress();
        if (!oriel_requests_are_open()) {
            code = completion_host()->Waitany(count, requests, index, status);
            done = code == MPI_SUCCESS;
        } else if (host_poll_is_due(&patience, count)) {
            code = completion_host()->Testany(count, requests, index, &done, status);
        }
        if (done || code != MPI_SUCCESS) {
            poll_end(&patience);
            return report_failure("MPI_Waitany", code, completed_any(requests, done, index));
        }
        poll_backoff(&patience);
    }
}

int oriel_entry_Waitany(int count, MPI_Request array_of_requests[], int *index, MPI_Status *status)
{
    return oriel_requests_are_special()
               ? wait_any(count, array_of_requests, index, status)
               : completion_host()->Waitany(count, array_of_requests, index, status);
}

static __attribute__((noinline)) int test_any(int count, MPI_Request requests[], int *index,
                                              int *flag, MPI_Status *status)
{
    oriel_persistent_show(count, requests);
    oriel_requests_progress();
    int code = completion_host()->Testany(count, requests, index, flag, status);
    return report_failure("MPI_Testany", code,
                          completed_any(requests, code == MPI_SUCCESS && *flag, index));
}

int oriel_entry_Testany(int count, MPI_Request array_of_requests[], int *index, int *flag,
                        MPI_Status *status)
{
    return oriel_requests_are_special()
               ? test_any(count, array_of_requests, index, flag, status)
               : completion_host()->Testany(count, array_of_requests, index, flag, status);
}

/* --- all --- */

/* waits: asks the host until all are done; otherwise once. */
static int test_all_until(const struct completion_statuses *outcome, MPI_Request requests[],
                          int *flag, bool waits, struct poll_state *patience)
{
    for (;;) {
        int code = MPI_SUCCESS;
        oriel_requests_progress();
        if (waits && !oriel_requests_are_open()) {
            *flag = 1;
            return completion_host()->Waitall(outcome->count, requests, outcome->statuses);
        }
        if (host_poll_is_due(patience, outcome->count))
            code = completion_host()->Testall(outcome->count, requests, flag, outcome->statuses);
        if (!waits || *flag || code != MPI_SUCCESS)
            return code;
        poll_backoff(patience);
    }
}

static int complete_all(const char *call, int count, MPI_Request requests[], int *flag,
                        MPI_Status statuses[], bool waits)
{
    MPI_Request *before = copy_requests(count, requests);
    struct completion_statuses outcome = {before, requests, count, NULL, statuses, false};
    struct poll_state patience = {0};
    int code = test_all_until(&outcome, requests, flag, waits, &patience);
    poll_end(&patience);
    outcome.is_complete = requests != NULL && (code != MPI_SUCCESS || *flag);
    code = report_failures(call, code, &outcome);
    free(before);
    return code;
}

static __attribute__((noinline)) int wait_all(int count, MPI_Request requests[],
                                              MPI_Status statuses[])
{
    int flag = 0;
    return complete_all("MPI_Waitall", count, requests, &flag, statuses, true);
}

int oriel_entry_Waitall(int count, MPI_Request array_of_requests[], MPI_Status array_of_statuses[])
{
    return oriel_requests_are_special()
               ? wait_all(count, array_of_requests, array_of_statuses)
               : completion_host()->Waitall(count, array_of_requests, array_of_statuses);
}

int oriel_entry_Testall(int count, MPI_Request array_of_requests[], int *flag,
                        MPI_Status array_of_statuses[])
{
    return oriel_requests_are_special()
               ? complete_all("MPI_Testall", count, array_of_requests, flag, array_of_statuses,
                              false)
               : completion_host()->Testall(count, array_of_requests, flag, array_of_statuses);
}

/* --- some --- */

/* *found is 0 if none is done, MPI_UNDEFINED if there is none. */
static int test_some_until(int count, MPI_Request requests[], int *found, int indices[],
                           MPI_Status statuses[], bool waits, struct poll_state *patience)
{
    for (;;) {
        int code = MPI_SUCCESS;
        oriel_requests_progress();
        if (waits && !oriel_requests_are_open())
            return completion_host()->Waitsome(count, requests, found, indices, statuses);
        *found = 0;
        if (host_poll_is_due(patience, count))
            code = completion_host()->Testsome(count, requests, found, indices, statuses);
        if (!waits || *found != 0 || code != MPI_SUCCESS)
            return code;
        poll_backoff(patience);
    }
}

static __attribute__((noinline)) int complete_some(const char *call, int count,
                                                   MPI_Request requests[], int *found,
                                                   int indices[], MPI_Status statuses[], bool waits)
{
    MPI_Request *before = copy_requests(count, requests);
    oriel_persistent_show(count, requests);
    struct poll_state patience = {0};
    int code = test_some_until(count, requests, found, indices, statuses, waits, &patience);
    poll_end(&patience);
    struct completion_statuses outcome = {before,  requests, *found == MPI_UNDEFINED ? 0 : *found,
                                          indices, statuses, requests != NULL};
    code = report_failures(call, code, &outcome);
    free(before);
    return code;
}

int oriel_entry_Waitsome(int incount, MPI_Request array_of_requests[], int *outcount,
                         int array_of_indices[], MPI_Status array_of_statuses[])
{
    return oriel_requests_are_special()
               ? complete_some("MPI_Waitsome", incount, array_of_requests, outcount,
                               array_of_indices, array_of_statuses, true)
               : completion_host()->Waitsome(incount, array_of_requests, outcount, array_of_indices,
                                             array_of_statuses);
}

int oriel_entry_Testsome(int incount, MPI_Request array_of_requests[], int *outcount,
                         int array_of_indices[], MPI_Status array_of_statuses[])
{
    return oriel_requests_are_special()
               ? complete_some("MPI_Testsome", incount, array_of_requests, outcount,
                               array_of_indices, array_of_statuses, false)
               : completion_host()->Testsome(incount, array_of_requests, outcount, array_of_indices,
                                             array_of_statuses);
}
