/* Notified operations. All ranks know from the plan how many notifications each rank gets in a
 * phase. It takes exactly these before it ends its epochs: all ranks have made their calls of the
 * phase before they wait, and none needs more for its notifications. Then the data of notified puts
 * is there, although their epoch is still open. */
#include "step.h"

#include "../mpi/operation_forms.h"

enum { COUNTERS = SOAK_COUNTERS };

void notified_draw(struct plan *plan, struct op *op)
{
    if (plan->window->notifies && plan->epoch != EPOCH_PSCW && one_in(&plan->random, 3))
        op->counter = 1 + below(&plan->random, COUNTERS);
}

void notified_call(const struct op *op, const struct arguments *a, MPI_Win win)
{
    const int number = op->counter - 1;
    count_one(COUNT_NOTIFIED);
    if (op->kind == OP_PUT)
        MPIX_Put_notify(a->origin, a->origin_count, a->origin_type, a->target, a->disp,
                        a->target_count, a->target_type, number, win);
    else if (op->kind == OP_GET)
        MPIX_Get_notify(a->origin, a->origin_count, a->origin_type, a->target, a->disp,
                        a->target_count, a->target_type, number, win);
    else
        MPIX_Accumulate_notify(a->origin, a->origin_count, a->origin_type, a->target, a->disp,
                               a->target_count, a->target_type, a->op, number, win);
}

static bool notifies_here(const struct plan *plan, const struct op *op, int phase)
{
    return op_notifies(op) && op->phase == phase && op->target == plan->window->group->me;
}

/* In one of the ways that the functions offer; one more is not there. */
static void counter_take(struct plan *plan, int number, int count)
{
    MPI_Win win = plan->window->win;
    int flag = 0, index = -1;
    switch (below(&plan->random, 3)) {
    case 0:
        if (count > 0)
            MPIX_Win_notify_wait(win, number, count);
        break;
    case 1:
        while (count > 0 && !flag)
            MPIX_Win_notify_test(win, number, count, &flag);
        break;
    default:
        for (int i = 0; i < count; i++)
            MPIX_Win_notify_wait_any(win, 1, &number, &index);
    }
    MPIX_Win_notify_test(win, number, 1, &flag);
    if (flag)
        fail("window %d: more than %d notifications of counter %d", plan->window->number, count,
             number);
    for (int i = 0; i < count; i++)
        count_one(COUNT_NOTIFICATION);
}

/* The bytes that no later operation of the step writes. */
static void put_compare(const struct plan *plan, int number)
{
    const struct op *op = &plan->ops[number];
    const struct region *region = op_region(plan, op);
    const struct random_type *type = op->to.type;
    const MPI_Aint at = op->disp * region->unit;
    for (int i = 0; i < op->to.count * type->size_bytes; i++) {
        const size_t byte =
            (size_t)(at + i / type->size_bytes * type->extent + type->map[i % type->size_bytes]);
        if (region->writers[byte] == number + 1 && region->at[byte] != region->model[byte])
            fail("byte %zu is not there with its notification: %s", byte, op_text(plan, op));
    }
}

void notifications_take(struct plan *plan, int phase)
{
    int counts[COUNTERS] = {0};
    if (!plan->window->notifies || plan->epoch == EPOCH_PSCW)
        return;
    for (int i = 0; i < plan->op_count; i++)
        if (notifies_here(plan, &plan->ops[i], phase))
            counts[plan->ops[i].counter - 1]++;
    for (int number = 0; number < COUNTERS; number++)
        counter_take(plan, number, counts[number]);
    for (int i = 0; i < plan->op_count && plan->window->unified; i++)
        if (plan->ops[i].kind == OP_PUT && plan->ops[i].area < 0 &&
            notifies_here(plan, &plan->ops[i], phase))
            put_compare(plan, i);
}
