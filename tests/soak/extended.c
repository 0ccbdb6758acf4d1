/* Extensions of Oriel as other forms of planned operations: persistent requests, atomic operations
 * with a request, and waits for a flag. notify.c has notified operations, handle.c memory
 * handles. */
#include "step.h"

#include "../mpi/operation_forms.h"

void extended_draw(struct plan *plan, struct op *op)
{
    if (!plan->window->extended || op->kind > OP_SWAP)
        return;
    op->persists = one_in(&plan->random, 6);
    if (op->persists)
        op->form &= ~FORM_REQUEST;
    else if (op->kind >= OP_FETCH && epoch_is_passive(plan->epoch) && one_in(&plan->random, 3))
        op->form = FORM_REQUEST;
}

#define FROM a->origin, a->origin_count, a->origin_type
#define BACK a->result, a->result_count, a->result_type
#define INTO a->target, a->disp, a->target_count, a->target_type

static MPI_Request notified_make(const struct op *op, const struct arguments *a, MPI_Win win)
{
    MPI_Request request;
    const int number = op->counter - 1;
    count_one(COUNT_NOTIFIED);
    if (op->kind == OP_PUT)
        MPIX_Put_notify_init(FROM, INTO, number, win, &request);
    else if (op->kind == OP_GET)
        MPIX_Get_notify_init(FROM, INTO, number, win, &request);
    else
        MPIX_Accumulate_notify_init(FROM, INTO, a->op, number, win, &request);
    return request;
}

static MPI_Request persistent_make(const struct op *op, const struct arguments *a,
                                   const void *compare, MPI_Win win)
{
    MPI_Request request;
    if (op_notifies(op))
        return notified_make(op, a, win);
    switch (op->kind) {
    case OP_PUT: MPIX_Put_init(FROM, INTO, win, &request); break;
    case OP_GET: MPIX_Get_init(FROM, INTO, win, &request); break;
    case OP_ACCUMULATE: MPIX_Accumulate_init(FROM, INTO, a->op, win, &request); break;
    case OP_GET_ACCUMULATE: MPIX_Get_accumulate_init(FROM, BACK, INTO, a->op, win, &request); break;
    case OP_FETCH:
        MPIX_Fetch_and_op_init(a->origin, a->result, a->target_type, a->target, a->disp, a->op, win,
                               &request);
        break;
    default:
        MPIX_Compare_and_swap_init(a->origin, compare, a->result, a->target_type, a->target,
                                   a->disp, win, &request);
    }
    return request;
}

/* A get reads the same bytes again. Others are started once. A flush or the epoch's end completes
 * what was started, also after its request is freed. */
void persistent_call(const struct op *op, const struct arguments *arguments, const void *compare,
                     MPI_Win win, struct random *random)
{
    MPI_Request request = persistent_make(op, arguments, compare, win);
    const bool frees_early = one_in(random, 3), repeats = op->kind == OP_GET && !op_notifies(op);
    count_one(COUNT_PERSISTENT);
    for (int starts = repeats ? between(random, 1, 3) : 1; starts > 0; starts--) {
        if (one_in(random, 2))
            MPI_Start(&request);
        else
            MPI_Startall(1, &request);
        if (frees_early && starts == 1)
            count_one(COUNT_PERSISTENT_FREED);
        else
            MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
}

MPI_Request fetch_requested(const struct op *op, const struct arguments *a, const void *compare,
                            MPI_Win win)
{
    MPI_Request request;
    count_one(COUNT_ATOMIC_REQUEST);
    if (op->kind == OP_FETCH)
        MPIX_Rfetch_and_op(a->origin, a->result, a->target_type, a->target, a->disp, a->op, win,
                           &request);
    else
        MPIX_Rcompare_and_swap(a->origin, compare, a->result, a->target_type, a->target, a->disp,
                               win, &request);
    return request;
}

bool flag_await(const struct plan *plan, const struct op *op, MPI_Aint disp, struct random *random)
{
    const struct soak_window *window = plan->window;
    const MPI_Aint at = op->disp * op_region(plan, op)->unit;
    if (!window->extended || op->target != window->group->me || one_in(random, 3) ||
        ((uintptr_t)op_region(plan, op)->at + (uintptr_t)at) % sizeof op->value != 0)
        return false;
    MPIX_Win_wait_until(window->win, disp, op->to.type->type, MPIX_CMP_EQ, &op->value);
    count_one(COUNT_AWAIT_SLEEPS);
    return true;
}
