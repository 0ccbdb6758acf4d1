/* The exported functions that complete requests, start persistent ones and free them (MPI-4.1,
 * 3.7). The next function gets the program's arguments, with statuses where a record needs one.
 * Without records the call passes at once. */
#include "check/intercept/messages_point.h"
#include "check/intercept/messages_waits.h"
#include "check/intercept/request_table.h"
#include "check/intercept/wrap.h"
#include "check/window/checked_window.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = 16 };

/* The records of a call's requests, and statuses that the program does not ask for. */
struct watch {
    int count;
    uint64_t claim;
    MPI_Request *requests;                 /* the program's array */
    struct oriel_request_record **records; /* NULL: the call is not checked */
    struct oriel_request_end *ends;
    MPI_Status *statuses;
    int ended;
    struct oriel_request_record *few_records[FEW];
    struct oriel_request_end few_ends[FEW];
    MPI_Status few_statuses[FEW];
};

static bool watch_room_make(struct watch *watch, int count, bool wants_statuses)
{
    if (count <= FEW) {
        watch->records = watch->few_records;
        watch->ends = watch->few_ends;
        if (wants_statuses)
            watch->statuses = watch->few_statuses;
        return true;
    }
    watch->records = malloc((size_t)count * sizeof(struct oriel_request_record *));
    watch->ends = malloc((size_t)count * sizeof *watch->ends);
    if (wants_statuses)
        watch->statuses = malloc((size_t)count * sizeof *watch->statuses);
    return watch->records != NULL && watch->ends != NULL &&
           (!wants_statuses || watch->statuses != NULL);
}

static void watch_room_free(struct watch *watch)
{
    if (watch->records != watch->few_records)
        free(watch->records);
    if (watch->ends != watch->few_ends)
        free(watch->ends);
    if (watch->statuses != watch->few_statuses)
        free(watch->statuses);
}

/* Whether the call has records. *statuses becomes the room for statuses where the program passes
 * none (none). */
static bool watch_open(struct watch *watch, int count, MPI_Request *requests, MPI_Status **statuses,
                       const MPI_Status *none)
{
    bool any = false;
    if (!oriel_request_records_exist() || count <= 0 || requests == NULL)
        return false;
    watch->count = count;
    watch->requests = requests;
    watch->statuses = NULL;
    watch->ended = 0;
    if (!watch_room_make(watch, count, *statuses == none)) {
        watch_room_free(watch);
        return false;
    }
    watch->claim = oriel_claim_begin();
    for (int i = 0; i < count; i++) {
        watch->records[i] = oriel_request_claim(&requests[i]);
        any = any || watch->records[i] != NULL;
    }
    if (!any) {
        oriel_claim_end();
        watch_room_free(watch);
        return false;
    }
    if (*statuses == none)
        *statuses = watch->statuses;
    return true;
}

/* Whether the call is checked: watch_end must follow. */
#define watch_begin(...)                                                                           \
    (oriel_check_looks() && watch_open(__VA_ARGS__) && (oriel_check_enter(), true))

/* The call waits for all of the requests, or for any. */
static bool wait_begin(const struct watch *watch, const void *address, uint16_t call,
                       enum oriel_wait_mode mode)
{
    struct oriel_site site = oriel_site_here(address, call, (uint32_t)oriel_order_rank(), 0);
    return oriel_wait_requests(&site, watch->requests, watch->records, watch->count, mode);
}
#define WAITS(call, mode)                                                                          \
    wait_begin(&watch, __builtin_return_address(0), ORIEL_CALL_##call, ORIEL_WAIT_FOR_##mode)

static void watch_request_ended(struct watch *watch, int i, const MPI_Status *status)
{
    if (i < 0 || i >= watch->count || watch->records[i] == NULL)
        return;
    watch->ends[watch->ended++] =
        (struct oriel_request_end){.record = watch->records[i], .status = status};
    watch->records[i] = NULL;
}

static void watch_end(struct watch *watch)
{
    oriel_check_leave();
    for (int i = 0; i < watch->count; i++)
        if (watch->records[i] != NULL)
            oriel_request_unclaim(watch->records[i], watch->claim);
    oriel_requests_end(watch->ends, watch->ended, watch->claim);
    oriel_claim_end();
    watch_room_free(watch);
}

/* After a failed call. */
static bool watch_request_is_over(const struct watch *watch, int i, int code)
{
    return oriel_request_is_over(watch->requests[i], watch->records[i], oriel_class_of(code));
}

/* --- one --- */

ORIEL_CHECK_WRAP(Wait, (MPI_Request * request, MPI_Status *status))
{
    struct watch watch;
    int code;
    if (!watch_begin(&watch, 1, request, &status, MPI_STATUS_IGNORE))
        return ORIEL_CHECK_PASS(code, Wait, (request, status));
    bool waits = WAITS(Wait, ALL);
    code = NEXT(Wait)(request, status);
    oriel_wait_done(waits);
    if (code == MPI_SUCCESS || watch_request_is_over(&watch, 0, code))
        watch_request_ended(&watch, 0, status);
    watch_end(&watch);
    return code;
}

ORIEL_CHECK_WRAP(Test, (MPI_Request * request, int *flag, MPI_Status *status))
{
    struct watch watch;
    int code;
    if (!watch_begin(&watch, 1, request, &status, MPI_STATUS_IGNORE))
        return ORIEL_CHECK_PASS(code, Test, (request, flag, status));
    code = NEXT(Test)(request, flag, status);
    if (code == MPI_SUCCESS ? *flag : watch_request_is_over(&watch, 0, code))
        watch_request_ended(&watch, 0, status);
    watch_end(&watch);
    return code;
}

/* The operation is complete, whether or not the program asks again. */
ORIEL_CHECK_WRAP(Request_get_status, (MPI_Request request, int *flag, MPI_Status *status))
{
    struct watch watch;
    int code;
    if (!watch_begin(&watch, 1, &request, &status, MPI_STATUS_IGNORE))
        return ORIEL_CHECK_PASS(code, Request_get_status, (request, flag, status));
    code = NEXT(Request_get_status)(request, flag, status);
    if (code == MPI_SUCCESS && *flag)
        watch_request_ended(&watch, 0, status);
    watch_end(&watch);
    return code;
}

/* --- any of many --- */

/* After an error of one request: MPICH returns its index, Open MPI clears its handle, also of a
 * persistent one. */
static void any_ended(struct watch *watch, int code, bool is_one, int index,
                      const MPI_Status *status)
{
    if (code == MPI_SUCCESS && is_one)
        watch_request_ended(watch, index, status);
    for (int i = 0; i < watch->count && code != MPI_SUCCESS; i++)
        if (oriel_request_is_over(watch->requests[i], watch->records[i], MPI_SUCCESS) ||
            (i == index && watch_request_is_over(watch, i, code)))
            watch_request_ended(watch, i, status);
}

ORIEL_CHECK_WRAP(Waitany,
                 (int count, MPI_Request array_of_requests[], int *index, MPI_Status *status))
{
    struct watch watch;
    int code;
    if (index == NULL || !watch_begin(&watch, count, array_of_requests, &status, MPI_STATUS_IGNORE))
        return ORIEL_CHECK_PASS(code, Waitany, (count, array_of_requests, index, status));
    bool waits = WAITS(Waitany, ANY);
    *index = MPI_UNDEFINED; /* in case the call fails for another reason */
    code = NEXT(Waitany)(count, array_of_requests, index, status);
    oriel_wait_done(waits);
    any_ended(&watch, code, true, *index, status);
    watch_end(&watch);
    return code;
}

ORIEL_CHECK_WRAP(Testany, (int count, MPI_Request array_of_requests[], int *index, int *flag,
                           MPI_Status *status))
{
    struct watch watch;
    int code;
    if (index == NULL || flag == NULL ||
        !watch_begin(&watch, count, array_of_requests, &status, MPI_STATUS_IGNORE))
        return ORIEL_CHECK_PASS(code, Testany, (count, array_of_requests, index, flag, status));
    *index = MPI_UNDEFINED;
    *flag = 0;
    code = NEXT(Testany)(count, array_of_requests, index, flag, status);
    any_ended(&watch, code, *flag, *index, status);
    watch_end(&watch);
    return code;
}

/* --- all --- */

static void all_ended(struct watch *watch, int code, const MPI_Status *statuses)
{
    for (int i = 0; i < watch->count; i++)
        if (code == MPI_SUCCESS ||
            (code == MPI_ERR_IN_STATUS && statuses[i].MPI_ERROR != MPI_ERR_PENDING) ||
            oriel_request_is_over(watch->requests[i], watch->records[i], MPI_ERR_IN_STATUS))
            watch_request_ended(watch, i, &statuses[i]);
}

ORIEL_CHECK_WRAP(Waitall,
                 (int count, MPI_Request array_of_requests[], MPI_Status array_of_statuses[]))
{
    struct watch watch;
    int code;
    if (!watch_begin(&watch, count, array_of_requests, &array_of_statuses, MPI_STATUSES_IGNORE))
        return ORIEL_CHECK_PASS(code, Waitall, (count, array_of_requests, array_of_statuses));
    bool waits = WAITS(Waitall, ALL);
    code = NEXT(Waitall)(count, array_of_requests, array_of_statuses);
    oriel_wait_done(waits);
    all_ended(&watch, code, array_of_statuses);
    watch_end(&watch);
    return code;
}

ORIEL_CHECK_WRAP(Testall, (int count, MPI_Request array_of_requests[], int *flag,
                           MPI_Status array_of_statuses[]))
{
    struct watch watch;
    int code;
    if (!watch_begin(&watch, count, array_of_requests, &array_of_statuses, MPI_STATUSES_IGNORE))
        return ORIEL_CHECK_PASS(code, Testall, (count, array_of_requests, flag, array_of_statuses));
    code = NEXT(Testall)(count, array_of_requests, flag, array_of_statuses);
    if (code != MPI_SUCCESS || *flag)
        all_ended(&watch, code, array_of_statuses);
    watch_end(&watch);
    return code;
}

/* --- some --- */

static void some_ended(struct watch *watch, int code, int found, const int indices[],
                       const MPI_Status *statuses)
{
    if ((code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) || found == MPI_UNDEFINED)
        return;
    for (int i = 0; i < found; i++)
        watch_request_ended(watch, indices[i], &statuses[i]);
}

#define SOME_PARAMETERS                                                                            \
    (int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[],          \
     MPI_Status array_of_statuses[])
#define SOME_ARGUMENTS (incount, array_of_requests, outcount, array_of_indices, array_of_statuses)
#define SOME(name, waits_for)                                                                      \
    ORIEL_CHECK_WRAP(name, SOME_PARAMETERS)                                                        \
    {                                                                                              \
        struct watch watch;                                                                        \
        int code;                                                                                  \
        if (!watch_begin(&watch, incount, array_of_requests, &array_of_statuses,                   \
                         MPI_STATUSES_IGNORE))                                                     \
            return ORIEL_CHECK_PASS(code, name, SOME_ARGUMENTS);                                   \
        bool waits = waits_for;                                                                    \
        code = NEXT(name) SOME_ARGUMENTS;                                                          \
        oriel_wait_done(waits);                                                                    \
        some_ended(&watch, code, *outcount, array_of_indices, array_of_statuses);                  \
        watch_end(&watch);                                                                         \
        return code;                                                                               \
    }
SOME(Waitsome, WAITS(Waitsome, ANY))
SOME(Testsome, false)

/* --- persistent requests, and the end of a handle --- */

/* A start of a request; startable NULL: it is not checked. last: the call of a start that seems to
 * be active; call 0: none. */
struct start {
    struct oriel_startable *startable;
    struct oriel_quiet quiet;
    struct oriel_site last;
};

/* Oriel has refused the start: the request is active indeed. */
static void active_start_report(const struct start *start, const struct oriel_site *site)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    const struct oriel_checked *window = oriel_checked_find(*start->startable->win);
    finding.rule = ORIEL_RULE_START_ACTIVE;
    finding.other = start->last;
    finding.init = start->startable->init;
    finding.help = "call MPI_Wait on the request after @other";
    if (window != NULL)
        oriel_window_report(window, &finding, site);
}

static void start_begin(struct start *start, MPI_Request request, const void *address,
                        const struct oriel_site *site)
{
    *start = (struct start){.startable = NULL};
    start->startable = oriel_request_restart(request, &start->last);
    if (start->startable == NULL)
        return;
    if (start->last.call != ORIEL_CALL_NONE)
        oriel_quiet_begin(&start->quiet, *start->startable->win);
    else
        start->startable->begin(start->startable, address, site->call);
}

/* Returns the program's code. */
static int start_end(struct start *start, MPI_Request request, const struct oriel_site *site,
                     int code)
{
    if (start->startable == NULL)
        return code;
    if (start->last.call != ORIEL_CALL_NONE) {
        if (code != MPI_SUCCESS && oriel_class_of(code) == MPI_ERR_REQUEST)
            active_start_report(start, site);
        return oriel_quiet_end(&start->quiet, code);
    }
    const int programs = start->startable->started(start->startable, code);
    if (code == MPI_SUCCESS)
        oriel_request_activate(request, site);
    return programs;
}

ORIEL_CHECK_WRAP(Start, (MPI_Request * request))
{
    struct start start;
    int code;
    if (!oriel_check_looks() || request == NULL || !oriel_request_records_exist())
        return ORIEL_CHECK_PASS(code, Start, (request));
    const struct oriel_site site = oriel_site_make(__builtin_return_address(0), ORIEL_CALL_Start);
    start_begin(&start, *request, __builtin_return_address(0), &site);
    ORIEL_CHECK_PASS(code, Start, (request));
    return start_end(&start, *request, &site, code);
}

/* One by one, so that each start has its own code, and its own error handler where it is reported.
 * All are started, also after an error; returns the first, as api/start.c. */
ORIEL_CHECK_WRAP(Startall, (int count, MPI_Request array_of_requests[]))
{
    int first = MPI_SUCCESS;
    int code;
    if (!oriel_check_looks() || count < 1 || array_of_requests == NULL ||
        !oriel_request_records_exist())
        return ORIEL_CHECK_PASS(code, Startall, (count, array_of_requests));
    const struct oriel_site site =
        oriel_site_make(__builtin_return_address(0), ORIEL_CALL_Startall);
    for (int i = 0; i < count; i++) {
        struct start start;
        start_begin(&start, array_of_requests[i], __builtin_return_address(0), &site);
        ORIEL_CHECK_PASS(code, Startall, (1, &array_of_requests[i]));
        code = start_end(&start, array_of_requests[i], &site, code);
        if (first == MPI_SUCCESS)
            first = code;
    }
    return first;
}

ORIEL_CHECK_WRAP(Request_free, (MPI_Request * request))
{
    struct oriel_request_record *record = NULL;
    uint64_t claim = 0;
    int code;
    if (oriel_check_looks() && request != NULL && oriel_request_records_exist()) {
        claim = oriel_claim_begin();
        record = oriel_request_claim_any(request);
    }
    ORIEL_CHECK_PASS(code, Request_free, (request));
    if (record != NULL && code == MPI_SUCCESS)
        oriel_request_freed(record, claim);
    else if (record != NULL)
        oriel_request_unclaim(record, claim);
    oriel_claim_end();
    return code;
}
