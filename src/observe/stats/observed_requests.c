/* The observing entries of the functions that complete requests. A call with active requests for
 * notifications counts as MPIX_Win_notify_wait on the window of the first of them. Others only call
 * the previous entry: their waits are also for the host's requests. */
#include "observe/stats/observed_call.h"

#include "host/persistent.h"

static struct oriel_observed *find_awaited(int count, const MPI_Request requests[])
{
    if (oriel_likely(!oriel_persistent_exist()) || requests == NULL)
        return NULL;
    for (int i = 0; i < count; i++) {
        const struct oriel_persistent *persistent = oriel_persistent_find(requests[i]);
        if (persistent != NULL && persistent->counted == ORIEL_PERSISTENT_NOTIFICATION &&
            oriel_persistent_is_active(persistent))
            return oriel_observed_find(persistent->win);
    }
    return NULL;
}

#define ENTRY(name, count, requests, parameters, arguments)                                        \
    static int observe_##name parameters                                                           \
    {                                                                                              \
        struct oriel_observed *observed = find_awaited(count, requests);                           \
        if (oriel_likely(observed == NULL))                                                        \
            return oriel_observe_before.name arguments;                                            \
        const bool is_sampled = observed->is_quick;                                                \
        struct oriel_observed_call call =                                                          \
            oriel_observed_call_begin(observed, ORIEL_TRACE_CALL + ORIEL_CALL_OF_notify_wait,      \
                                      __builtin_return_address(0), -1, is_sampled);                \
        return oriel_observed_call_return(&call, -1, is_sampled,                                   \
                                          oriel_observe_before.name arguments);                    \
    }

ENTRY(Wait, 1, request, (MPI_Request * request, MPI_Status *status), (request, status))
ENTRY(Test, 1, request, (MPI_Request * request, int *flag, MPI_Status *status),
      (request, flag, status))
ENTRY(Waitany, n, requests, (int n, MPI_Request requests[], int *index, MPI_Status *status),
      (n, requests, index, status))
ENTRY(Testany, n, requests,
      (int n, MPI_Request requests[], int *index, int *flag, MPI_Status *status),
      (n, requests, index, flag, status))
ENTRY(Waitall, n, requests, (int n, MPI_Request requests[], MPI_Status statuses[]),
      (n, requests, statuses))
ENTRY(Testall, n, requests, (int n, MPI_Request requests[], int *flag, MPI_Status statuses[]),
      (n, requests, flag, statuses))
ENTRY(Waitsome, n, requests,
      (int n, MPI_Request requests[], int *found, int indices[], MPI_Status statuses[]),
      (n, requests, found, indices, statuses))
ENTRY(Testsome, n, requests,
      (int n, MPI_Request requests[], int *found, int indices[], MPI_Status statuses[]),
      (n, requests, found, indices, statuses))

void oriel_observe_requests(struct oriel_api *table)
{
    table->Wait = observe_Wait;
    table->Test = observe_Test;
    table->Waitany = observe_Waitany;
    table->Testany = observe_Testany;
    table->Waitall = observe_Waitall;
    table->Testall = observe_Testall;
    table->Waitsome = observe_Waitsome;
    table->Testsome = observe_Testsome;
}
