/* What a thread keeps of its innermost callback.  callback_scope.h has the rules. */
#include "check/intercept/callback_scope.h"

#include "check/intercept/request_table.h"
#include "check/order/order.h"
#include "check/report/call_sites.h"
#include "check/report/finding.h"

#include <pthread.h>
#include <unwind.h>

/* valid while the thread's count of functions is not 0 */
static _Thread_local struct oriel_callback innermost;

bool oriel_callback_scope_handler(void)
{
    return oriel_check_where.in.functions != 0 && innermost.handlers != 0;
}

/* --- left by a jump --- */

/* A pending access moves to the histories first, where other ranks can recall it. */
static void rank_stop_checking(struct oriel_check_call left)
{
    enum { BEHIND_P = 1 }; /* "PMPI_Send" */
    static atomic_flag stopped = ATOMIC_FLAG_INIT;
    if (!oriel_check_running || atomic_flag_test_and_set(&stopped))
        return;
    oriel_wait_interrupt();
    oriel_check_look();
    oriel_check_left = true;
    oriel_check_running = false;
    oriel_order_leave();
    struct oriel_site site =
        oriel_site_here(left.address, ORIEL_CALL_load, (uint32_t)oriel_order_rank(), 0);
    oriel_finding_left(left.function == NULL ? NULL : left.function + BEHIND_P, &site);
    oriel_check_where.any = 0;
    oriel_begun = (struct oriel_begun){0};
}

/* A thread that ends in a call makes no next call. */
static pthread_key_t key;
static bool has_key;

static void thread_ends(void *unused)
{
    (void)unused;
    if (oriel_check_where.in.depth != 0)
        rank_stop_checking(oriel_check_call);
    else if (oriel_check_where.in.functions != 0)
        rank_stop_checking(innermost.call);
}

static void thread_key_make(void)
{
    has_key = pthread_key_create(&key, thread_ends) == 0;
}

struct walk {
    const struct oriel_callback_position *position;
    bool is_gone;
};

/* Visits frames from the innermost: compares each one's return address and end with the
 * callback's. */
static _Unwind_Reason_Code frame_compare(struct _Unwind_Context *frame, void *closure)
{
    struct walk *walk = closure;
    uintptr_t end = (uintptr_t)_Unwind_GetCFA(frame);
    if (end < walk->position->end)
        return _URC_NO_REASON;
    walk->is_gone =
        end != walk->position->end || (const void *)_Unwind_GetIP(frame) != walk->position->address;
    return _URC_NORMAL_STOP;
}

/* A walk that ends early, at a function without unwind information, shows nothing: the callback
 * counts as running. */
static bool callback_is_gone(uintptr_t frame)
{
    struct walk walk = {&innermost.position, frame > innermost.position.end};
    if (!walk.is_gone)
        (void)_Unwind_Backtrace(frame_compare, &walk);
    return walk.is_gone;
}

bool oriel_callback_scope_look(uintptr_t frame)
{
    if (oriel_check_where.in.depth != 0) {
        if (frame > oriel_check_call.stack)
            rank_stop_checking(oriel_check_call);
    } else if (callback_is_gone(frame)) {
        rank_stop_checking(innermost.call);
    } else {
        oriel_claimed_requests_release(innermost.claim);
        innermost.claim = 0;
    }
    return oriel_check_running;
}

/* --- in and out --- */

static void scope_enter(struct oriel_callback_scope *scope, struct oriel_callback_position position,
                        bool is_handler, struct oriel_wait_suspended *wait)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, thread_key_make);
    if (has_key)
        pthread_setspecific(key, &innermost);
    *scope = (struct oriel_callback_scope){.depth = oriel_check_where.in.depth,
                                           .functions = oriel_check_where.in.functions,
                                           .call = oriel_check_call,
                                           .outer = innermost,
                                           .begun = oriel_begun,
                                           .wait = wait};
    if (scope->depth > 0) { /* else no wrapper is around it */
        uint32_t handlers = scope->functions == 0 ? 0 : innermost.handlers;
        innermost = (struct oriel_callback){.position = position,
                                            .call = oriel_check_call,
                                            .claim = is_handler ? oriel_begun.claim : 0,
                                            .handlers = handlers + is_handler};
        oriel_check_where.in.functions++;
    }
    oriel_begun = (struct oriel_begun){0};
    oriel_check_where.in.depth = 0;
}

void oriel_callback_scope_begin(struct oriel_callback_scope *scope,
                                struct oriel_callback_position position)
{
    scope_enter(scope, position, false, oriel_wait_suspend());
}

/* The call does not wait. It may have met no member, and then the others' next call has its number.
 * In a program with several threads others may reach the same number before this one goes on. */
void oriel_callback_scope_handler_begin(struct oriel_callback_scope *scope,
                                        struct oriel_callback_position position, bool may_lose,
                                        int code)
{
    if (oriel_check_where.in.depth > 0) {
        oriel_wait_interrupt();
        if (may_lose && (oriel_begun.is_collective || !oriel_check_one_thread))
            oriel_order_set_doubtful();
        oriel_claimed_requests_failed(oriel_begun.claim, code);
    }
    scope_enter(scope, position, true, NULL);
}

void oriel_callback_scope_end(struct oriel_callback_scope *scope)
{
    if (oriel_check_where.in.depth != 0)
        rank_stop_checking(oriel_check_call);
    else if (oriel_check_where.in.functions != scope->functions + (scope->depth > 0))
        rank_stop_checking(innermost.call);
    oriel_check_where.in.depth = scope->depth;
    oriel_check_where.in.functions = scope->functions;
    oriel_check_call = scope->call;
    innermost = scope->outer;
    oriel_begun = scope->begun;
    if (oriel_check_left)
        oriel_wait_forget(scope->wait);
    else
        oriel_wait_resume(scope->wait);
}
