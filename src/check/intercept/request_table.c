/* The table of requests by handle: chains under one mutex. A record is claimed while a thread is in
 * a call that may complete its request. So a handle that the host uses again meanwhile is not
 * mistaken for it. When the call fails, its error handler may use the unfinished requests: a claim
 * by the handler replaces the call's claim. The call then leaves the record alone.
 *
 * When a call that completes a request returns, the record of that request has ended. The argument:
 *
 *   1. At each time at most one request of the program that has a record has a given handle, except
 *      for handles that the host has freed in a call that has not returned yet.
 *   2. Only the call that completes a request may use its handle (MPI-4.1, 3.7.3). It claims the
 *      record of the handle before it calls the host. By 1 that is the record of its request, or
 *      there are several and all others are claimed.
 *   3. The host may give a freed handle to another thread before the first call returns. The new
 *      record is not claimed, and the old one is. So neither is found for the other.
 *   4. The call ends the records that it claimed itself, before it returns.
 *
 * Hosts break 1: they use one handle for all requests that are complete at once. The wait of one
 * thread then claims the record of another, whose own wait finds none and returns first. So a
 * request that is complete already gets a generalised request in place of that handle. A receive
 * has a handle of its own, which holds its status; one from MPI_PROC_NULL has no record. */
#include "check/intercept/request_table.h"

#include "check/intercept/messages_point.h"
#include "check/intercept/wrap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { BUCKETS = 8192 };

struct oriel_request_record {
    struct oriel_request_record *next;
    uint64_t key;
    uint64_t serial; /* number of its creation or last start */
    const struct oriel_request_kind *kind;
    void *closure;
    struct oriel_startable *startable; /* NULL: not persistent */
    struct oriel_site started;         /* the last start of a persistent one */
    unsigned holders; /* the table, and calls that have claimed it: the last one frees it */
    bool active;
    bool claimed; /* no other call finds it */
    /* finished; of a claimed record whose call has failed and not returned */
    bool over;
    uint64_t claim;        /* the claiming call; 0: not claimed, or not in the table */
    const MPI_Request *at; /* the claiming call's own handle */
};

static struct oriel_request_record *buckets[BUCKETS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t serials;
static _Atomic uint64_t records;

static uint64_t request_key(MPI_Request request)
{
    return (uint64_t)(uintptr_t)request;
}

static struct oriel_request_record **record_chain(uint64_t key)
{
    return &buckets[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 51];
}
_Static_assert(BUCKETS == 1 << (64 - 51), "the shift above");

/* --- with the mutex --- */

/* The oldest unclaimed record of the key. */
static struct oriel_request_record *record_find(uint64_t key)
{
    struct oriel_request_record *found = NULL;
    for (struct oriel_request_record *record = *record_chain(key); record != NULL;
         record = record->next)
        if (record->key == key && !record->claimed)
            found = record;
    return found;
}

static void record_insert(struct oriel_request_record *record)
{
    record->holders = 1;
    struct oriel_request_record **first = record_chain(record->key);
    record->serial = ++serials;
    record->next = *first;
    *first = record;
    atomic_fetch_add_explicit(&records, 1, memory_order_relaxed);
}

static void record_remove(struct oriel_request_record *record)
{
    struct oriel_request_record **link = record_chain(record->key);
    while (*link != record)
        link = &(*link)->next;
    *link = record->next;
    record->claim = 0;
    atomic_fetch_sub_explicit(&records, 1, memory_order_relaxed);
}

static void record_drop(struct oriel_request_record *record, unsigned holders)
{
    record->holders -= holders;
    if (record->holders == 0)
        free(record);
}

/* --- ends --- */

/* A record that was removed from the table; holders: references to drop. */
static void record_end_unseen(struct oriel_request_record *record, unsigned holders)
{
    if (record->active)
        record->kind->done(record->closure, NULL);
    if (record->startable != NULL)
        record->startable->drop(record->startable);
    pthread_mutex_lock(&mutex);
    record_drop(record, holders);
    pthread_mutex_unlock(&mutex);
}

static int by_serial(const void *a, const void *b)
{
    const struct oriel_request_end *one = a, *other = b;
    return one->record->serial < other->record->serial
               ? -1
               : one->record->serial > other->record->serial;
}

void oriel_requests_end(struct oriel_request_end *ends, int count, uint64_t claim)
{
    if (count > 1)
        qsort(ends, (size_t)count, sizeof *ends, by_serial);
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < count; i++) {
        struct oriel_request_record *record = ends[i].record;
        ends[i].is_own = record->claim == claim;
        if (!ends[i].is_own)
            continue;
        record->active = false;
        record->claimed = false;
        if (record->startable == NULL)
            record_remove(record);
    }
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < count; i++)
        if (ends[i].is_own)
            ends[i].record->kind->done(ends[i].record->closure, ends[i].status);
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < count; i++) {
        bool is_out = ends[i].is_own && ends[i].record->startable == NULL;
        record_drop(ends[i].record, is_out ? 2 : 1); /* the call, and the table */
    }
    pthread_mutex_unlock(&mutex);
}

/* --- adding --- */

static void record_add(MPI_Request request, struct oriel_request_record made)
{
    struct oriel_request_record *record =
                                    request == MPI_REQUEST_NULL ? NULL : malloc(sizeof *record),
                                *stale = NULL;
    if (record != NULL) {
        *record = made;
        record->key = request_key(request);
        pthread_mutex_lock(&mutex);
        stale = record_find(record->key);
        if (stale != NULL)
            record_remove(stale);
        record_insert(record);
        pthread_mutex_unlock(&mutex);
    }
    if (stale != NULL)
        record_end_unseen(stale, 1);
    if (record != NULL)
        return;
    if (made.active)
        made.kind->done(made.closure, NULL);
    if (made.startable != NULL)
        made.startable->drop(made.startable);
}

void oriel_checked_request_add(MPI_Request request, const struct oriel_request_kind *kind,
                               void *closure)
{
    record_add(request,
               (struct oriel_request_record){.kind = kind, .closure = closure, .active = true});
}

static int own_fill_status(void *unused, MPI_Status *status)
{
    (void)unused;
    oriel_host_fill_status(status);
    return MPI_SUCCESS;
}

static int own_drop_nothing(void *unused)
{
    (void)unused;
    return MPI_SUCCESS;
}

static bool request_is_complete(MPI_Request request)
{
    static _Atomic(void *) slot;
    MPI_Status status;
    int flag = 0;
    int code = ((__typeof__(&PMPI_Request_get_status))oriel_host_symbol_kept(
        &slot, "PMPI_Request_get_status"))(request, &flag, &status);
    return code == MPI_SUCCESS && flag;
}

/* False: the handle may be that of other requests, too. */
static bool request_give_own_handle(MPI_Request *request)
{
    MPI_Request own;
    int done;
    if (*request == MPI_REQUEST_NULL || !request_is_complete(*request))
        return true;
    if (oriel_host_request_start(own_fill_status, own_drop_nothing, NULL, &own) != ORIEL_OK)
        return false;
    (void)oriel_host()->Test(request, &done, MPI_STATUS_IGNORE);
    *request = own;
    oriel_host_request_complete(own);
    return true;
}

void oriel_checked_request_add_own(MPI_Request *request, const struct oriel_request_kind *kind,
                                   void *closure)
{
    oriel_check_enter();
    bool is_own = request_give_own_handle(request);
    oriel_check_leave();
    oriel_checked_request_add(is_own ? *request : MPI_REQUEST_NULL, kind, closure);
}

void oriel_checked_request_add_persistent(MPI_Request request, struct oriel_startable *startable)
{
    record_add(request, (struct oriel_request_record){
                            .kind = startable->kind, .closure = startable, .startable = startable});
}

/* --- looking --- */

bool oriel_request_records_exist(void)
{
    return atomic_load_explicit(&records, memory_order_relaxed) != 0;
}

void *oriel_checked_request_closure(MPI_Request request, const struct oriel_request_kind *kind)
{
    pthread_mutex_lock(&mutex);
    struct oriel_request_record *record = record_find(request_key(request));
    void *closure =
        record != NULL && record->active && record->kind == kind ? record->closure : NULL;
    pthread_mutex_unlock(&mutex);
    return closure;
}

static struct oriel_request_record *record_claim(const MPI_Request *request, bool inactive_too)
{
    if (*request == MPI_REQUEST_NULL)
        return NULL;
    pthread_mutex_lock(&mutex);
    struct oriel_request_record *record = record_find(request_key(*request));
    if (record != NULL && !record->active && !inactive_too)
        record = NULL;
    if (record != NULL) {
        record->claimed = true;
        record->over = false;
        record->claim = oriel_begun.claim;
        record->at = request;
        record->holders++;
    }
    pthread_mutex_unlock(&mutex);
    return record;
}

struct oriel_request_record *oriel_request_claim(const MPI_Request *request)
{
    return record_claim(request, false);
}

struct oriel_request_record *oriel_request_claim_any(const MPI_Request *request)
{
    return record_claim(request, true);
}

void *oriel_request_closure(const struct oriel_request_record *record,
                            const struct oriel_request_kind *kind)
{
    return record->kind == kind ? record->closure : NULL;
}

void oriel_request_unclaim(struct oriel_request_record *record, uint64_t claim)
{
    pthread_mutex_lock(&mutex);
    if (record->claim == claim)
        record->claimed = false;
    record_drop(record, 1);
    pthread_mutex_unlock(&mutex);
}

uint64_t oriel_claim_begin(void)
{
    static _Atomic uint64_t claims;
    oriel_begun.claim = atomic_fetch_add_explicit(&claims, 1, memory_order_relaxed) + 1;
    return oriel_begun.claim;
}

void oriel_claim_end(void)
{
    oriel_begun.claim = 0;
}

bool oriel_request_is_over(MPI_Request request, const struct oriel_request_record *record,
                           int class)
{
    if (request == MPI_REQUEST_NULL)
        return true;
    if (record == NULL)
        return false;
    return record->startable == NULL ? record->over : class == MPI_ERR_TRUNCATE;
}

/* Of a claimed record. */
static bool record_has_ended(const struct oriel_request_record *record, int class)
{
    /* of a persistent request only its status shows whether it has ended */
    bool in_status = record->startable != NULL && class == MPI_ERR_IN_STATUS;
    return in_status || oriel_request_is_over(*record->at, record, class);
}

static void record_buffers_release(const struct oriel_request_record *record)
{
    if (record->active && record->kind->release != NULL)
        record->kind->release(record->closure);
}

void oriel_claimed_requests_failed(uint64_t claim, int code)
{
    if (claim == 0)
        return;
    int class = oriel_class_of(code);
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct oriel_request_record *record = buckets[i]; record != NULL;
             record = record->next) {
            if (record->claim != claim)
                continue;
            record->over = record_has_ended(record, class);
            record->claimed =
                record->over &&
                record->startable == NULL; /* else the handler may complete it, or start it */
            if (record->over && oriel_check_one_thread)
                record_buffers_release(record);
        }
    pthread_mutex_unlock(&mutex);
}

void oriel_claimed_requests_release(uint64_t claim)
{
    if (claim == 0)
        return;
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct oriel_request_record *record = buckets[i]; record != NULL;
             record = record->next)
            if (record->claim == claim && record->over)
                record_buffers_release(record);
    pthread_mutex_unlock(&mutex);
}

void oriel_request_freed(struct oriel_request_record *record, uint64_t claim)
{
    pthread_mutex_lock(&mutex);
    bool is_own = record->claim == claim;
    if (is_own)
        record_remove(record);
    else
        record_drop(record, 1);
    pthread_mutex_unlock(&mutex);
    if (is_own)
        record_end_unseen(record, 2);
}

/* --- persistent requests --- */

struct oriel_startable *oriel_request_restart(MPI_Request request, struct oriel_site *last)
{
    pthread_mutex_lock(&mutex);
    struct oriel_request_record *record = record_find(request_key(request));
    struct oriel_startable *startable = record == NULL ? NULL : record->startable;
    const bool is_active = startable != NULL && record->active;
    const bool has_ended = is_active && startable->win == NULL;
    *last = is_active && !has_ended ? record->started : (struct oriel_site){.call = 0};
    if (has_ended) {
        record->active = false;
        record->claim = 0;
    }
    pthread_mutex_unlock(&mutex);
    if (has_ended)
        startable->kind->done(startable, NULL);
    return startable;
}

void oriel_request_activate(MPI_Request request, const struct oriel_site *site)
{
    pthread_mutex_lock(&mutex);
    struct oriel_request_record *record = record_find(request_key(request));
    if (record != NULL && record->startable != NULL) {
        record->active = true;
        record->started = *site;
        record->serial = ++serials;
    }
    pthread_mutex_unlock(&mutex);
}
