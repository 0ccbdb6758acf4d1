/* Invalid window handles for every function that takes one: MPI_WIN_NULL, freed handles, and
 * arbitrary numbers or pointers.  Functions that Oriel resolves itself get all of them. Functions
 * that it forwards to the host get MPI_WIN_NULL only, since Open MPI dereferences any other
 * pointer.  For the same reason the tests use no invalid datatypes, communicators, groups,
 * operators or info objects. */
#include "fuzz.h"

#include <string.h>

enum { FREED = 8 };

static unsigned char buffer[256], result[256], compare[256];

#define FROM buffer, 1, MPI_INT32_T
#define BACK result, 1, MPI_INT32_T
#define INTO 0, 0, 1, MPI_INT32_T

static const enum fuzz_function looked_up[] = {
    FUZZ_Win_shared_query,
    FUZZ_Win_shared_query_c,
    FUZZ_Win_attach,
    FUZZ_Win_detach,
    FUZZ_Win_free,
    FUZZ_Win_get_group,
    FUZZ_Win_set_info,
    FUZZ_Win_get_info,
    FUZZ_Win_get_attr,
    FUZZ_Put,
    FUZZ_Put_c,
    FUZZ_Get,
    FUZZ_Get_c,
    FUZZ_Accumulate,
    FUZZ_Accumulate_c,
    FUZZ_Get_accumulate,
    FUZZ_Get_accumulate_c,
    FUZZ_Fetch_and_op,
    FUZZ_Compare_and_swap,
    FUZZ_Rput,
    FUZZ_Rput_c,
    FUZZ_Rget,
    FUZZ_Rget_c,
    FUZZ_Raccumulate,
    FUZZ_Raccumulate_c,
    FUZZ_Rget_accumulate,
    FUZZ_Rget_accumulate_c,
    FUZZ_Win_fence,
    FUZZ_Win_post,
    FUZZ_Win_start,
    FUZZ_Win_complete,
    FUZZ_Win_wait,
    FUZZ_Win_test,
    FUZZ_Win_lock,
    FUZZ_Win_unlock,
    FUZZ_Win_lock_all,
    FUZZ_Win_unlock_all,
    FUZZ_Win_flush,
    FUZZ_Win_flush_all,
    FUZZ_Win_flush_local,
    FUZZ_Win_flush_local_all,
    FUZZ_Win_sync,
    FUZZ_Put_notify,
    FUZZ_Get_notify,
    FUZZ_Accumulate_notify,
    FUZZ_Win_notify_wait,
    FUZZ_Win_notify_test,
    FUZZ_Win_notify_wait_any,
    FUZZ_Win_notify_init,
    FUZZ_Win_order,
    FUZZ_Win_flush_list,
    FUZZ_Win_flush_windows,
    FUZZ_Win_iflush,
    FUZZ_Win_iflush_all,
    FUZZ_Rfetch_and_op,
    FUZZ_Rcompare_and_swap,
    FUZZ_Fetch_and_op_list,
    FUZZ_Compare_and_swap_128,
    FUZZ_Win_wait_until,
    FUZZ_Win_test_until,
    FUZZ_Put_init,
    FUZZ_Put_notify_init,
    FUZZ_Get_init,
    FUZZ_Get_notify_init,
    FUZZ_Accumulate_init,
    FUZZ_Accumulate_notify_init,
    FUZZ_Get_accumulate_init,
    FUZZ_Fetch_and_op_init,
    FUZZ_Compare_and_swap_init,
    FUZZ_Win_memory_handle_create,
};
static const enum fuzz_function handed_on[] = {
    FUZZ_Win_set_attr,       FUZZ_Win_delete_attr,    FUZZ_Win_set_name,        FUZZ_Win_get_name,
    FUZZ_Win_set_errhandler, FUZZ_Win_get_errhandler, FUZZ_Win_call_errhandler,
};

static int call_operation(enum fuzz_function function, MPI_Win win)
{
    MPI_Request request = MPI_REQUEST_NULL;
    switch (function) {
    case FUZZ_Put: return FUZZ(Put, FROM, INTO, win);
    case FUZZ_Put_c: return FUZZ(Put_c, FROM, INTO, win);
    case FUZZ_Get: return FUZZ(Get, FROM, INTO, win);
    case FUZZ_Get_c: return FUZZ(Get_c, FROM, INTO, win);
    case FUZZ_Accumulate: return FUZZ(Accumulate, FROM, INTO, MPI_SUM, win);
    case FUZZ_Accumulate_c: return FUZZ(Accumulate_c, FROM, INTO, MPI_SUM, win);
    case FUZZ_Get_accumulate: return FUZZ(Get_accumulate, FROM, BACK, INTO, MPI_SUM, win);
    case FUZZ_Get_accumulate_c: return FUZZ(Get_accumulate_c, FROM, BACK, INTO, MPI_SUM, win);
    case FUZZ_Fetch_and_op:
        return FUZZ(Fetch_and_op, buffer, result, MPI_INT32_T, 0, 0, MPI_SUM, win);
    case FUZZ_Compare_and_swap:
        return FUZZ(Compare_and_swap, buffer, compare, result, MPI_INT32_T, 0, 0, win);
    case FUZZ_Rput: return FUZZ(Rput, FROM, INTO, win, &request);
    case FUZZ_Rput_c: return FUZZ(Rput_c, FROM, INTO, win, &request);
    case FUZZ_Rget: return FUZZ(Rget, FROM, INTO, win, &request);
    case FUZZ_Rget_c: return FUZZ(Rget_c, FROM, INTO, win, &request);
    case FUZZ_Raccumulate: return FUZZ(Raccumulate, FROM, INTO, MPI_SUM, win, &request);
    case FUZZ_Raccumulate_c: return FUZZ(Raccumulate_c, FROM, INTO, MPI_SUM, win, &request);
    case FUZZ_Rget_accumulate:
        return FUZZ(Rget_accumulate, FROM, BACK, INTO, MPI_SUM, win, &request);
    default: return FUZZ(Rget_accumulate_c, FROM, BACK, INTO, MPI_SUM, win, &request);
    }
}

static int call_synchronisation(enum fuzz_function function, MPI_Win win)
{
    int flag;
    switch (function) {
    case FUZZ_Win_fence: return FUZZ(Win_fence, 0, win);
    case FUZZ_Win_post: return FUZZ(Win_post, MPI_GROUP_EMPTY, 0, win);
    case FUZZ_Win_start: return FUZZ(Win_start, MPI_GROUP_EMPTY, 0, win);
    case FUZZ_Win_complete: return FUZZ(Win_complete, win);
    case FUZZ_Win_wait: return FUZZ(Win_wait, win);
    case FUZZ_Win_test: return FUZZ(Win_test, win, &flag);
    case FUZZ_Win_lock: return FUZZ(Win_lock, MPI_LOCK_SHARED, 0, 0, win);
    case FUZZ_Win_unlock: return FUZZ(Win_unlock, 0, win);
    case FUZZ_Win_lock_all: return FUZZ(Win_lock_all, 0, win);
    case FUZZ_Win_unlock_all: return FUZZ(Win_unlock_all, win);
    case FUZZ_Win_flush: return FUZZ(Win_flush, 0, win);
    case FUZZ_Win_flush_all: return FUZZ(Win_flush_all, win);
    case FUZZ_Win_flush_local: return FUZZ(Win_flush_local, 0, win);
    case FUZZ_Win_flush_local_all: return FUZZ(Win_flush_local_all, win);
    default: return FUZZ(Win_sync, win);
    }
}

static int call_persistent(enum fuzz_function function, MPI_Win win)
{
    MPI_Request request = MPI_REQUEST_NULL;
    switch (function) {
    case FUZZ_Put_init: return FUZZX(Put_init, FROM, INTO, win, &request);
    case FUZZ_Put_notify_init: return FUZZX(Put_notify_init, FROM, INTO, 0, win, &request);
    case FUZZ_Get_init: return FUZZX(Get_init, FROM, INTO, win, &request);
    case FUZZ_Get_notify_init: return FUZZX(Get_notify_init, FROM, INTO, 0, win, &request);
    case FUZZ_Accumulate_init: return FUZZX(Accumulate_init, FROM, INTO, MPI_SUM, win, &request);
    case FUZZ_Accumulate_notify_init:
        return FUZZX(Accumulate_notify_init, FROM, INTO, MPI_SUM, 0, win, &request);
    case FUZZ_Get_accumulate_init:
        return FUZZX(Get_accumulate_init, FROM, BACK, INTO, MPI_SUM, win, &request);
    case FUZZ_Fetch_and_op_init:
        return FUZZX(Fetch_and_op_init, buffer, result, MPI_INT32_T, 0, 0, MPI_SUM, win, &request);
    default:
        return FUZZX(Compare_and_swap_init, buffer, compare, result, MPI_INT32_T, 0, 0, win,
                     &request);
    }
}

static int call_extension(enum fuzz_function function, MPI_Win win)
{
    static const int numbers[] = {0};
    static const MPI_Aint disps[] = {0};
    static const int32_t value = 1;
    int flag, index;
    MPI_Request request = MPI_REQUEST_NULL;
    MPIX_Memory_handle handle;
    switch (function) {
    case FUZZ_Rfetch_and_op:
        return FUZZX(Rfetch_and_op, buffer, result, MPI_INT32_T, 0, 0, MPI_SUM, win, &request);
    case FUZZ_Rcompare_and_swap:
        return FUZZX(Rcompare_and_swap, buffer, compare, result, MPI_INT32_T, 0, 0, win, &request);
    case FUZZ_Fetch_and_op_list:
        return FUZZX(Fetch_and_op_list, buffer, result, 1, MPI_INT32_T, 0, disps, MPI_SUM, win);
    case FUZZ_Compare_and_swap_128:
        return FUZZX(Compare_and_swap_128, buffer, compare, result, 0, 0, win);
    case FUZZ_Put_notify: return FUZZX(Put_notify, FROM, INTO, 0, win);
    case FUZZ_Get_notify: return FUZZX(Get_notify, FROM, INTO, 0, win);
    case FUZZ_Accumulate_notify: return FUZZX(Accumulate_notify, FROM, INTO, MPI_SUM, 0, win);
    case FUZZ_Win_notify_wait: return FUZZX(Win_notify_wait, win, 0, 1);
    case FUZZ_Win_notify_test: return FUZZX(Win_notify_test, win, 0, 1, &flag);
    case FUZZ_Win_notify_wait_any: return FUZZX(Win_notify_wait_any, win, 1, numbers, &index);
    case FUZZ_Win_notify_init: return FUZZX(Win_notify_init, win, 0, 1, &request);
    case FUZZ_Win_order: return FUZZX(Win_order, 0, win);
    case FUZZ_Win_flush_list: return FUZZX(Win_flush_list, 1, numbers, win);
    case FUZZ_Win_flush_windows: return FUZZX(Win_flush_windows, 1, &win);
    case FUZZ_Win_iflush: return FUZZX(Win_iflush, 0, win, &request);
    case FUZZ_Win_iflush_all: return FUZZX(Win_iflush_all, win, &request);
    case FUZZ_Win_wait_until:
        return FUZZX(Win_wait_until, win, 0, MPI_INT32_T, MPIX_CMP_EQ, &value);
    case FUZZ_Win_test_until:
        return FUZZX(Win_test_until, win, 0, MPI_INT32_T, MPIX_CMP_EQ, &value, &flag);
    default: return FUZZX(Win_memory_handle_create, win, 0, 4, &handle);
    }
}

static int call_object(enum fuzz_function function, MPI_Win win)
{
    char name[MPI_MAX_OBJECT_NAME];
    int unit, flag, length;
    MPI_Aint size, wide_unit;
    void *value;
    MPI_Group group;
    MPI_Info info;
    MPI_Errhandler handler;
    MPI_Win copy = win;
    switch (function) {
    case FUZZ_Win_shared_query: return FUZZ(Win_shared_query, win, 0, &size, &unit, &value);
    case FUZZ_Win_shared_query_c:
        return FUZZ(Win_shared_query_c, win, 0, &size, &wide_unit, &value);
    case FUZZ_Win_attach: return FUZZ(Win_attach, win, buffer, 8);
    case FUZZ_Win_detach: return FUZZ(Win_detach, win, buffer);
    case FUZZ_Win_free: return FUZZ(Win_free, &copy);
    case FUZZ_Win_get_group: return FUZZ(Win_get_group, win, &group);
    case FUZZ_Win_set_info: return FUZZ(Win_set_info, win, MPI_INFO_NULL);
    case FUZZ_Win_get_info: return FUZZ(Win_get_info, win, &info);
    case FUZZ_Win_get_attr: return FUZZ(Win_get_attr, win, MPI_WIN_SIZE, &value, &flag);
    case FUZZ_Win_set_attr: return FUZZ(Win_set_attr, win, MPI_WIN_SIZE, buffer);
    case FUZZ_Win_delete_attr: return FUZZ(Win_delete_attr, win, MPI_WIN_SIZE);
    case FUZZ_Win_set_name: return FUZZ(Win_set_name, win, "name");
    case FUZZ_Win_get_name: return FUZZ(Win_get_name, win, name, &length);
    case FUZZ_Win_set_errhandler: return FUZZ(Win_set_errhandler, win, MPI_ERRORS_RETURN);
    case FUZZ_Win_get_errhandler: return FUZZ(Win_get_errhandler, win, &handler);
    default: return FUZZ(Win_call_errhandler, win, MPI_ERR_OTHER);
    }
}

static int call(enum fuzz_function function, MPI_Win win)
{
    if (function >= FUZZ_Put_init && function <= FUZZ_Compare_and_swap_init)
        return call_persistent(function, win);
    if (function >= FUZZ_Put_notify)
        return call_extension(function, win);
    if (function >= FUZZ_Win_fence)
        return call_synchronisation(function, win);
    if (function >= FUZZ_Put)
        return call_operation(function, win);
    return call_object(function, win);
}

/* Arbitrary bits that are no handle of these windows. */
static MPI_Win draw_handle(struct random *random, const MPI_Win *freed, MPI_Win live)
{
    for (;;) {
        MPI_Win win = MPI_WIN_NULL;
        uint64_t bits = random_next(random);
        switch (random_below(random, 6)) {
        case 0: return MPI_WIN_NULL;
        case 1: win = freed[random_below(random, FREED)]; break;
        case 2:
            bits = random_below(random, 4096);
            memcpy(&win, &bits, sizeof win);
            break;
        case 3:
            bits = UINT64_C(0xffffffff00000000) + random_below(random, 2);
            memcpy(&win, &bits, sizeof win);
            break;
        case 4: /* a neighbour of a valid handle */
            win = live;
            ((unsigned char *)&win)[random_below(random, sizeof win)] ^=
                (unsigned char)(1u << random_below(random, 8));
            break;
        default: memcpy(&win, &bits, sizeof win); break;
        }
        if (memcmp(&win, &live, sizeof win) != 0)
            return win;
    }
}

void handles_that_are_no_window(enum window_kind kind)
{
    struct random own = fuzz_own(150);
    MPI_Win freed[FREED], live;
    void *base;
    (void)kind;
    MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &live);
    for (int i = 0; i < FREED; i++)
        MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &freed[i]);
    for (int i = 0; i < FREED; i++) {
        MPI_Win copy = freed[i];
        MPI_Win_free(&copy);
    }
    MPI_Win_lock_all(0, live);
    for (int i = 0; i < fuzz_calls() / 2; i++) {
        bool host = one_in(&own, 10);
        enum fuzz_function function = host ? handed_on[random_below(&own, COUNT_OF(handed_on))]
                                           : looked_up[random_below(&own, COUNT_OF(looked_up))];
        MPI_Win win = host ? MPI_WIN_NULL : draw_handle(&own, freed, live);
        fuzz_describe("%s on a handle that is no window", fuzz_name(function));
        fuzz_judge(host && function == FUZZ_Win_get_name
                       ? (struct verdict){0, 0} /* a name of its own */
                       : (struct verdict){FAULT_WIN, host ? FAULT_ARG : 0},
                   call(function, win));
        if (one_in(&own, 8)) { /* threads cache their last window */
            CHECK_OK(FUZZ(Put, FROM, INTO, live));
            memset(buffer, 0, 4);
        }
    }
    for (size_t i = 0; i < sizeof buffer; i++)
        CHECK(buffer[i] == 0 && result[i] == 0, "byte %d of a buffer changed", (int)i);
    MPI_Win_unlock_all(live);
    MPI_Win_free(&live);
}
