/* Operations as persistent ones: created, started, completed and freed. The same
 * verdicts apply to the creation or the start. */
#include "operate.h"

/* In dynamic windows the start checks the range, after all other faults. */
static bool is_dynamic(MPI_Win win)
{
    const int *flavour;
    int flag;
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavour, &flag);
    return flag && *flavour == MPI_WIN_FLAVOR_DYNAMIC;
}

bool persistent_is_due(enum fuzz_function function, MPI_Win win)
{
    static int calls;
    return (function == FUZZ_Rput_c || function == FUZZ_Rget_c || function == FUZZ_Raccumulate_c ||
            function == FUZZ_Rget_accumulate_c || function == FUZZ_Fetch_and_op ||
            function == FUZZ_Compare_and_swap || function == FUZZ_Put_notify ||
            function == FUZZ_Get_notify || function == FUZZ_Accumulate_notify) &&
           !is_dynamic(win) && calls++ % 2 == 0;
}

static int persistent_make(const struct operation *op, const void *compare, MPI_Win win,
                           MPI_Request *request)
{
    const struct side *o = &op->origin, *r = &op->result, *t = &op->target;
    switch (op->function) {
    case FUZZ_Rput_c:
        return FUZZX(Put_init, o->addr, o->count, o->type->type, op->rank, op->disp, t->count,
                     t->type->type, win, request);
    case FUZZ_Rget_c:
        return FUZZX(Get_init, o->addr, o->count, o->type->type, op->rank, op->disp, t->count,
                     t->type->type, win, request);
    case FUZZ_Raccumulate_c:
        return FUZZX(Accumulate_init, o->addr, o->count, o->type->type, op->rank, op->disp,
                     t->count, t->type->type, op->op, win, request);
    case FUZZ_Put_notify:
        return FUZZX(Put_notify_init, o->addr, o->count, o->type->type, op->rank, op->disp,
                     t->count, t->type->type, op->number, win, request);
    case FUZZ_Get_notify:
        return FUZZX(Get_notify_init, o->addr, o->count, o->type->type, op->rank, op->disp,
                     t->count, t->type->type, op->number, win, request);
    case FUZZ_Accumulate_notify:
        return FUZZX(Accumulate_notify_init, o->addr, o->count, o->type->type, op->rank, op->disp,
                     t->count, t->type->type, op->op, op->number, win, request);
    case FUZZ_Compare_and_swap:
        return FUZZX(Compare_and_swap_init, o->addr, compare, r->addr, t->type->type, op->rank,
                     op->disp, win, request);
    case FUZZ_Fetch_and_op:
        return FUZZX(Fetch_and_op_init, o->addr, r->addr, t->type->type, op->rank, op->disp, op->op,
                     win, request);
    default:
        return FUZZX(Get_accumulate_init, o->addr, o->count, o->type->type, r->addr, r->count,
                     r->type->type, op->rank, op->disp, t->count, t->type->type, op->op, win,
                     request);
    }
}

int persistent_call(const struct operation *op, const void *compare, MPI_Win win)
{
    static int calls;
    MPI_Request request = MPI_REQUEST_NULL;
    const int turn = calls++;
    int code = persistent_make(op, compare, win, &request);
    if (code != MPI_SUCCESS) {
        CHECK(request == MPI_REQUEST_NULL, "%.250s: it failed and made a request",
              fuzz_description());
        return code;
    }
    code = turn % 3 == 0 ? FUZZ(Startall, 1, &request) : FUZZ(Start, &request);
    if (turn % 5 == 0)
        CHECK_OK(FUZZ(Cancel, &request));
    for (int done = 0; turn % 2 == 0 && code == MPI_SUCCESS && !done;)
        CHECK_OK(FUZZ(Test, &request, &done, MPI_STATUS_IGNORE));
    CHECK_OK(FUZZ(Wait, &request, MPI_STATUS_IGNORE));
    CHECK_OK(FUZZ(Request_free, &request));
    return code;
}
