/* A rank is killed at any moment of rows of calls that all ranks make (fault.h): the others are told, or go on and are told by
 * the fence that follows.  TEST_MOMENT says when.  Who has an error still gives back what it holds, as the others may wait
 * for it.  faults.py --rounds starts it, for many deaths in one job (fault_rounds.c). */
#include "fault.h"

#include <stdlib.h>
#include <unistd.h>

enum { INTEGERS_AT = 5000, DYNAMIC_ELEMENTS = 2000 };

static MPI_Group others;
static MPI_Win dynamic = MPI_WIN_NULL;
static double *attached;
static MPI_Aint *attached_at; /* of each rank */
static MPI_Datatype every_second; /* of 40 */

static void connect_and_group(void)
{
    MPI_Group world;
    connect_all();
    MPI_Comm_group(everybody, &world);
    MPI_Group_excl(world, 1, &world_rank, &others);
    MPI_Type_vector(20, 1, 2, MPI_DOUBLE, &every_second);
    MPI_Type_commit(&every_second);
}

static void connect_and_attach(void)
{
    MPI_Aint at;
    connect_and_group();
    attached = calloc(DYNAMIC_ELEMENTS, sizeof *attached);
    attached_at = calloc((size_t)world_size, sizeof *attached_at);
    MPI_Win_create_dynamic(MPI_INFO_NULL, everybody, &dynamic);
    MPI_Win_set_errhandler(dynamic, MPI_ERRORS_RETURN);
    MPI_Win_attach(dynamic, attached, DYNAMIC_ELEMENTS * sizeof *attached);
    MPI_Get_address(attached, &at);
    MPI_Allgather(&at, 1, MPI_AINT, attached_at, 1, MPI_AINT, everybody);
}

static int first_of(int a, int b) { return a != MPI_SUCCESS ? a : b; }

/* --- one turn of each --- */

static int put_and_fence(int turn)
{
    int target = (world_rank + turn) % world_size, count = turn % 3000; /* the first fence begins the first epoch */
    int code = turn == 0 ? MPI_SUCCESS : MPI_Put(bulk, count, MPI_DOUBLE, target, 0, count, MPI_DOUBLE, win);
    return first_of(code, MPI_Win_fence(0, win));
}

/* All with all: whoever waits waits for the victim, too. */
static int expose_and_access(int turn)
{
    int code = MPI_Win_post(others, 0, win);
    if (code != MPI_SUCCESS)
        return code;
    code = MPI_Win_start(others, 0, win);
    if (code != MPI_SUCCESS)
        return code;
    for (int rank = 0; rank < world_size; rank++)
        if (rank != world_rank)
            code = first_of(code, MPI_Put(bulk, 1 + turn % 100, MPI_DOUBLE, rank, world_rank, 1 + turn % 100, MPI_DOUBLE, win));
    code = first_of(code, MPI_Win_complete(win));
    if (turn % 2 == 0)
        return first_of(code, MPI_Win_wait(win));
    for (int over = 0; code == MPI_SUCCESS && !over;)
        code = MPI_Win_test(win, &over);
    return code;
}

static int operate(int turn, int target)
{
    double value = 1, old;
    int64_t one = 1, zero = 0, found;
    int code = MPI_SUCCESS;
    switch (turn % 8) {
    case 0: code = MPI_Put(&value, 1, MPI_DOUBLE, target, 1, 1, MPI_DOUBLE, win); break;
    case 1: code = MPI_Get(&old, 1, MPI_DOUBLE, target, 1, 1, MPI_DOUBLE, win); break;
    case 2: code = MPI_Accumulate(bulk, 500, MPI_DOUBLE, target, 0, 500, MPI_DOUBLE, MPI_SUM, win); break;
    case 3: code = MPI_Fetch_and_op(&value, &old, MPI_DOUBLE, target, 2, MPI_SUM, win); break;
    case 4: code = MPI_Compare_and_swap(&one, &zero, &found, MPI_INT64_T, target, INTEGERS_AT, win); break;
    case 5: code = MPI_Put(bulk, 1, every_second, target, 100, 1, every_second, win); break;
    case 6: code = MPI_Accumulate(bulk, 20, MPI_DOUBLE, target, 200, 1, every_second, MPI_REPLACE, win); break;
    default: code = MPI_Get_accumulate(bulk, 60, MPI_DOUBLE, bulk + 60, 60, MPI_DOUBLE, target, 9, 60, MPI_DOUBLE, MPI_MAX, win);
    }
    if (turn % 9 == 0)
        return first_of(code, MPI_Win_flush_local(target, win));
    return first_of(code, turn % 7 == 0 ? MPI_Win_flush_all(win) : MPI_Win_flush(target, win));
}

static int lock_and_operate(int turn)
{
    int target = turn / 3 % world_size;
    int code = MPI_Win_lock(turn % 3 == 0 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, win);
    if (code != MPI_SUCCESS)
        return code;
    code = operate(turn, target);
    return first_of(code, MPI_Win_unlock(target, win));
}

static int lock_all_and_operate(int turn)
{
    int code = MPI_Win_lock_all(0, win);
    if (code != MPI_SUCCESS)
        return code;
    for (int i = 0; i < 3; i++)
        code = first_of(code, operate(turn + i, (world_rank + i) % world_size));
    return first_of(code, MPI_Win_unlock_all(win));
}

static int request_and_wait(int turn)
{
    MPI_Status statuses[2];
    MPI_Request requests[2] = { MPI_REQUEST_NULL, MPI_REQUEST_NULL };
    int target = turn % world_size;
    int code = MPI_Win_lock_all(0, win);
    if (code != MPI_SUCCESS)
        return code;
    if (turn % 2 == 0) {
        code = MPI_Rput(bulk, 800, MPI_DOUBLE, target, 0, 800, MPI_DOUBLE, win, &requests[0]);
        code = first_of(code, MPI_Rget(bulk + 2000, 800, MPI_DOUBLE, target, 2000, 800, MPI_DOUBLE, win, &requests[1]));
    } else {
        code = MPI_Raccumulate(bulk, 800, MPI_DOUBLE, target, 0, 800, MPI_DOUBLE, MPI_SUM, win, &requests[0]);
        code = first_of(code, MPI_Rget_accumulate(bulk + 1000, 50, MPI_DOUBLE, bulk + 2000, 50, MPI_DOUBLE, target, 2000, 50,
                                                  MPI_DOUBLE, MPI_SUM, win, &requests[1]));
    }
    MPI_Waitall(2, requests, statuses); /* errors of requests come with unlock_all, too */
    return first_of(code, MPI_Win_unlock_all(win));
}

static int shared_and_exclusive(int turn)
{
    return turn % 4 == 0 ? lock_all_and_operate(turn) : lock_and_operate(turn);
}

/* Memory that comes and goes, but for what others use. */
static int attach_and_operate(int turn)
{
    double value = 1, old, mine[100];
    int target = turn % world_size;
    MPI_Win_attach(dynamic, mine, sizeof mine);
    int code = MPI_Win_lock_all(0, dynamic);
    if (code == MPI_SUCCESS) {
        code = MPI_Put(bulk, 1 + turn % 1000, MPI_DOUBLE, target, attached_at[target], 1 + turn % 1000, MPI_DOUBLE, dynamic);
        code = first_of(code, MPI_Fetch_and_op(&value, &old, MPI_DOUBLE, target, attached_at[target] + 8000, MPI_SUM, dynamic));
        code = first_of(code, MPI_Win_unlock_all(dynamic));
    }
    MPI_Win_detach(dynamic, mine);
    return code;
}

static int make_one(int turn, MPI_Win *made)
{
    void *base;
    switch (turn % 3) {
    case 0: return MPI_Win_allocate(64 + turn, 1, MPI_INFO_NULL, everybody, &base, made);
    case 1: return MPI_Win_create(bulk, 8000, 8, MPI_INFO_NULL, everybody, made);
    default: return MPI_Win_create_dynamic(MPI_INFO_NULL, everybody, made);
    }
}

/* One after the other, each with a fence. */
static int make_and_free(int turn)
{
    MPI_Win made = MPI_WIN_NULL;
    MPI_Comm_set_errhandler(everybody, MPI_ERRORS_RETURN);
    int code = make_one(turn, &made);
    if (code != MPI_SUCCESS)
        return code;
    MPI_Win_set_errhandler(made, MPI_ERRORS_RETURN);
    code = MPI_Win_fence(0, made);
    return first_of(code, MPI_Win_free(&made));
}

/* --- rows of turns --- */

static void repeat_until_dead(int (*turn_of)(int turn))
{
    die_as_told();
    for (int turn = 0;; turn++)
        turn_of(turn);
}

static int repeat(int (*turn_of)(int turn), double seconds)
{
    int code = MPI_SUCCESS;
    double end = seconds_now() + seconds;
    for (int turn = 0; code == MPI_SUCCESS && seconds_now() < end; turn++)
        code = turn_of(turn);
    return code;
}

/* All wait for the victim in each turn. */
static int repeat_until_error(int (*turn_of)(int turn)) { return repeat(turn_of, 10); }

/* Or nobody does, unless it is in the way. */
static int repeat_and_fence(int (*turn_of)(int turn))
{
    int code = repeat(turn_of, dead_after_seconds());
    return first_of(code, MPI_Win_fence(0, win));
}

/* The dynamic window goes as the other one does: it is freed, and says so. */
static int repeat_and_free(int (*turn_of)(int turn))
{
    int code = repeat(turn_of, dead_after_seconds());
    int freed = MPI_Win_free(&dynamic);
    free(attached);
    free(attached_at);
    return dynamic != MPI_WIN_NULL || freed == MPI_SUCCESS ? MPI_SUCCESS : first_of(code, freed);
}

#define ROW(turn_of, until) \
    static void turn_of##_until_dead(void) { repeat_until_dead(turn_of); } \
    static int turn_of##_##until(void) { return repeat_##until(turn_of); }
ROW(put_and_fence, until_error)
ROW(expose_and_access, until_error)
ROW(lock_and_operate, and_fence)
ROW(lock_all_and_operate, and_fence)
ROW(shared_and_exclusive, and_fence)
ROW(request_and_wait, and_fence)
ROW(attach_and_operate, and_free)
ROW(make_and_free, until_error)

const struct scenario scenarios[] = {
    { "fences", connect_and_group, put_and_fence_until_dead, put_and_fence_until_error, false, connect_and_group, false },
    { "epochs", connect_and_group, expose_and_access_until_dead, expose_and_access_until_error, false, connect_and_group, false },
    { "locks", connect_and_group, lock_and_operate_until_dead, lock_and_operate_and_fence, false, connect_and_group, false },
    { "lock-alls", connect_and_group, lock_all_and_operate_until_dead, lock_all_and_operate_and_fence, false, connect_and_group,
      false },
    { "locks-mixed", connect_and_group, shared_and_exclusive_until_dead, shared_and_exclusive_and_fence, false, connect_and_group,
      false },
    { "requests", connect_and_group, request_and_wait_until_dead, request_and_wait_and_fence, false, connect_and_group, false },
    { "dynamics", connect_and_attach, attach_and_operate_until_dead, attach_and_operate_and_free, false, connect_and_attach,
      false },
    { "windows", connect_and_group, make_and_free_until_dead, make_and_free_until_error, false, connect_and_group, false },
};
const size_t scenario_count = sizeof scenarios / sizeof scenarios[0];
