/* The call sites of operations: SITES of each kind, each in a function of its own, whose name
 * identifies findings.  The loops are those of the table: a row that repeats a site repeats the
 * call. */
#include "steps.h"

#define O const struct operation *o
#define EACH(X)                                                                                    \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define SITE(name, n, call)                                                                        \
    static void name##_##n(O)                                                                      \
    {                                                                                              \
        call;                                                                                      \
    }

#define PUT_(n)                                                                                    \
    SITE(put, n,                                                                                   \
         MPI_Put(o->origin, o->origin_count, o->origin_type, o->target, o->disp, o->count,         \
                 o->type, o->win))
#define GET_(n)                                                                                    \
    SITE(get, n,                                                                                   \
         MPI_Get(o->origin, o->origin_count, o->origin_type, o->target, o->disp, o->count,         \
                 o->type, o->win))
#define ACCUMULATE_(n)                                                                             \
    SITE(accumulate, n,                                                                            \
         MPI_Accumulate(o->origin, o->count, o->type, o->target, o->disp, o->count, o->type,       \
                        o->op, o->win))
#define GET_ACCUMULATE_(n)                                                                         \
    SITE(get_accumulate, n,                                                                        \
         MPI_Get_accumulate(o->origin, o->count, o->type, o->result, o->count, o->type, o->target, \
                            o->disp, o->count, o->type, o->op, o->win))
#define FETCH_AND_OP_(n)                                                                           \
    SITE(fetch_and_op, n,                                                                          \
         MPI_Fetch_and_op(o->origin, o->result, o->type, o->target, o->disp, o->op, o->win))
#define COMPARE_AND_SWAP_(n)                                                                       \
    SITE(compare_and_swap, n,                                                                      \
         MPI_Compare_and_swap(o->origin, o->compare, o->result, o->type, o->target, o->disp,       \
                              o->win))
#define RPUT_(n)                                                                                   \
    SITE(rput, n,                                                                                  \
         MPI_Rput(o->origin, o->origin_count, o->origin_type, o->target, o->disp, o->count,        \
                  o->type, o->win, o->request))
#define RGET_(n)                                                                                   \
    SITE(rget, n,                                                                                  \
         MPI_Rget(o->origin, o->origin_count, o->origin_type, o->target, o->disp, o->count,        \
                  o->type, o->win, o->request))
#define RACCUMULATE_(n)                                                                            \
    SITE(raccumulate, n,                                                                           \
         MPI_Raccumulate(o->origin, o->count, o->type, o->target, o->disp, o->count, o->type,      \
                         o->op, o->win, o->request))

EACH(PUT_)
EACH(GET_)
EACH(ACCUMULATE_)
EACH(GET_ACCUMULATE_)
EACH(FETCH_AND_OP_)
EACH(COMPARE_AND_SWAP_)
EACH(RPUT_)
EACH(RGET_)
EACH(RACCUMULATE_)

void operate(const struct operation *operation)
{
#define NAMED(name)                                                                                \
    {                                                                                              \
        name##_0, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6, name##_7, name##_8,  \
            name##_9, name##_10, name##_11, name##_12, name##_13, name##_14, name##_15             \
    }
    static void (*const sites[KINDS][SITES])(O) = {[PUT] = NAMED(put),
                                                   [GET] = NAMED(get),
                                                   [ACCUMULATE] = NAMED(accumulate),
                                                   [GET_ACCUMULATE] = NAMED(get_accumulate),
                                                   [FETCH_AND_OP] = NAMED(fetch_and_op),
                                                   [COMPARE_AND_SWAP] = NAMED(compare_and_swap),
                                                   [RPUT] = NAMED(rput),
                                                   [RGET] = NAMED(rget),
                                                   [RACCUMULATE] = NAMED(raccumulate)};
    sites[operation->kind][operation->site](operation);
}

void send_from(const void *buffer, int whom)
{
    MPI_Send(buffer, 1, MPI_INT, whom, 1, MPI_COMM_WORLD);
}

void receive_into(void *buffer, int whom)
{
    MPI_Recv(buffer, 1, MPI_INT, whom, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
