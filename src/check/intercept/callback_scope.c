/* The functions that a thread is in, the innermost last: not in their own frames, which may be gone.  callback_scope.h says who calls. */
#include "check/intercept/callback_scope.h"

#include "check/intercept/request_table.h"
#include "check/local/local_accesses.h"
#include "check/order/order.h"

#include <pthread.h>
#include <unwind.h>

enum { LEVELS = 32 };

/* Of this thread, as many as oriel_check_where says.  Those that are entered inside so many are not remembered. */
static _Thread_local struct running {
    uint64_t serial; /* of its beginning, in this thread */
    struct oriel_callback_position place;
    bool is_handler;
    bool has_released; /* a handler: the buffers of what its call has completed */
    bool may_lose;     /* of a call that has to do with messages and requests, or meets others */
    struct oriel_begun begun; /* by the call around it, */
    struct oriel_wait_suspended *wait;
} running[LEVELS];

bool oriel_callback_scope_handler(void)
{
    uint32_t at = 0;
    while (at < oriel_check_where.in.functions && !running[at].is_handler)
        at++;
    return at < oriel_check_where.in.functions;
}

/* --- left --- */

static void let_go(const struct oriel_begun *begun, bool is_known)
{
    oriel_claimed_requests_let_go(begun->claim, is_known);
    if (begun->buffers != 0)
        oriel_local_complete(begun->buffers);
}

static void count_one(const char *words)
{
    oriel_order_unknown_begin(words);
    oriel_order_unknown_end();
}

/* Functions inside so many have been left, and their calls. */
static void leave_above(uint32_t around)
{
    bool may_lose = false, is_handler = false;
    if (oriel_check_where.in.functions <= around)
        return;
    while (oriel_check_where.in.functions > around) {
        const struct running *left = &running[--oriel_check_where.in.functions];
        may_lose |= left->may_lose;
        is_handler = left->is_handler;
        let_go(&left->begun, left->is_handler);
        oriel_wait_forget(left->wait);
    }
    if (may_lose)
        oriel_order_doubt();
    count_one(is_handler ? "one that failed, whose error handler did not return"
                         : "one that a function of its own left by a jump");
}

void oriel_callback_scope_call_left(void)
{
    oriel_wait_interrupt();
    let_go(&oriel_begun, false);
    oriel_begun = (struct oriel_begun){0};
    oriel_check_where.in.depth = 0;
    oriel_order_doubt();
    count_one("one that was left by a jump");
}

/* A thread that ends in such a function makes no next call. */
static pthread_key_t key;
static bool has_key;

static void leave_all(void *unused)
{
    (void)unused;
    if (!oriel_check_running)
        return;
    if (oriel_check_where.in.depth != 0)
        oriel_callback_scope_call_left();
    leave_above(0);
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, leave_all) == 0;
}

/* --- in and out --- */

static _Thread_local uint64_t serials;

static void enter(struct oriel_callback_scope *inside, struct running function)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_key);
    if (has_key)
        pthread_setspecific(key, running);
    function.serial = inside->serial = ++serials;
    if (inside->depth > 0 &&
        inside->functions < LEVELS) /* else no wrapper is left behind, or nobody will know */
        running[oriel_check_where.in.functions++] = function;
    oriel_begun = (struct oriel_begun){0};
    oriel_check_where.in.depth = 0;
}

static void note_inside(struct oriel_callback_scope *inside, struct oriel_wait_suspended *wait)
{
    *inside = (struct oriel_callback_scope){.depth = oriel_check_where.in.depth,
                                            .functions = oriel_check_where.in.functions,
                                            .stack = oriel_check_stack,
                                            .begun = oriel_begun,
                                            .wait = wait};
}

void oriel_callback_scope_begin(struct oriel_callback_scope *inside,
                                struct oriel_callback_position place)
{
    note_inside(inside, oriel_wait_suspend());
    enter(inside, (struct running){.place = place,
                                   .may_lose = oriel_begun.is_collective,
                                   .begun = oriel_begun,
                                   .wait = inside->wait});
}

/* The call does not wait; it may have met nobody, and then has a number that the others' next call has; and of a program with
 * several threads others may come to the same before this one goes on. */
void oriel_callback_scope_handler_begin(struct oriel_callback_scope *inside,
                                        struct oriel_callback_position place, bool may_lose,
                                        int code)
{
    note_inside(inside, NULL);
    if (inside->depth > 0) {
        oriel_wait_interrupt();
        if (may_lose &&
            (oriel_begun.is_collective || !oriel_check_alone || inside->functions == LEVELS))
            oriel_order_doubt();
        oriel_claimed_requests_failed(oriel_begun.claim, code);
    }
    enter(inside,
          (struct running){
              .place = place, .is_handler = true, .may_lose = may_lose, .begun = oriel_begun});
}

/* One that made calls on another stack has been taken for left, as those around it may have been; its place may be another's. */
void oriel_callback_scope_end(struct oriel_callback_scope *inside)
{
    uint32_t at = inside->functions;
    if (oriel_check_where.in.depth != 0)
        oriel_callback_scope_call_left();
    bool is_remembered = inside->depth > 0 && at < LEVELS;
    bool is_there = is_remembered && oriel_check_where.in.functions > at &&
                    running[at].serial == inside->serial;
    leave_above(at + is_there);
    if (is_there)
        oriel_check_where.in.functions = at;
    if (is_remembered && !is_there)
        inside->wait = NULL;
    oriel_check_where.in.depth = inside->depth;
    oriel_check_stack = inside->stack;
    oriel_begun = inside->begun;
    oriel_wait_resume(inside->wait);
}

/* --- looking --- */

struct walk {
    const struct oriel_callback_position *place;
    bool is_left;
};

/* From the innermost frame on: each one's address, and where the frame ends that it has called. */
static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *frame, void *closure)
{
    struct walk *walk = closure;
    uintptr_t end = (uintptr_t)_Unwind_GetCFA(frame);
    if (end < walk->place->end)
        return _URC_NO_REASON;
    walk->is_left =
        end != walk->place->end || (const void *)_Unwind_GetIP(frame) != walk->place->address;
    return _URC_NORMAL_STOP;
}

/* One that a walk through the stack does not come to, since functions on the way do not say how, runs still. */
static bool is_left(const struct running *function)
{
    struct walk walk = {&function->place, false};
    (void)_Unwind_Backtrace(look_at_frame, &walk);
    return walk.is_left;
}

void oriel_callback_scope_look(void)
{
    uint32_t around = oriel_check_where.in.functions;
    while (around > 0 && is_left(&running[around - 1]))
        around--;
    leave_above(around);
    for (uint32_t i = 0; i < around; i++) {
        if (running[i].is_handler && !running[i].has_released)
            oriel_claimed_requests_release(running[i].begun.claim);
        running[i].has_released = true;
    }
}
