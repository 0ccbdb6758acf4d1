/* A rank is killed at a random time in a series of calls that all ranks make (fault.h). The others
 * get an error in the call or in the fence that follows. TEST_DEATH_TIME sets the time. A rank with
 * an error still releases its locks, since the others may wait for them. faults.py --rounds starts
 * it, for many deaths in one job (fault_rounds.c). */
#include "fault.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    INTEGERS_AT = 5000,
    DYNAMIC_ELEMENTS = 2000,
    SHARED_ELEMENTS = 6000,
    COMPLETION_FUNCTIONS = 9
};

static MPI_Group others;
static MPI_Win second = MPI_WIN_NULL; /* for scenarios that want another kind than win */
static double *attached;
static MPI_Aint *attached_at;     /* of each rank */
static MPI_Datatype every_second; /* of 40 */

static void connect_and_group(void)
{
    MPI_Group world;
    connect_all();
    MPI_Comm_group(living_ranks, &world);
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
    MPI_Win_create_dynamic(MPI_INFO_NULL, living_ranks, &second);
    MPI_Win_set_errhandler(second, MPI_ERRORS_RETURN);
    MPI_Win_attach(second, attached, DYNAMIC_ELEMENTS * sizeof *attached);
    MPI_Get_address(attached, &at);
    MPI_Allgather(&at, 1, MPI_AINT, attached_at, 1, MPI_AINT, living_ranks);
}

static void connect_and_share(void)
{
    double *base;
    connect_and_group();
    MPI_Win_allocate_shared(SHARED_ELEMENTS * sizeof *base, sizeof *base, MPI_INFO_NULL,
                            living_ranks, &base, &second);
    MPI_Win_set_errhandler(second, MPI_ERRORS_RETURN);
}

static int first_of(int a, int b)
{
    return a != MPI_SUCCESS ? a : b;
}

/* --- one turn of each --- */

static int put_and_fence(int turn)
{
    int target = (world_rank + turn) % world_size,
        count = turn % 3000; /* the first fence begins the first epoch */
    int code = turn == 0 ? MPI_SUCCESS
                         : MPI_Put(bulk, count, MPI_DOUBLE, target, 0, count, MPI_DOUBLE, win);
    return first_of(code, MPI_Win_fence(0, win));
}

/* All with all: each waiting rank also waits for the victim. */
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
            code = first_of(code, MPI_Put(bulk, 1 + turn % 100, MPI_DOUBLE, rank, world_rank,
                                          1 + turn % 100, MPI_DOUBLE, win));
    code = first_of(code, MPI_Win_complete(win));
    if (turn % 2 == 0)
        return first_of(code, MPI_Win_wait(win));
    for (int over = 0; code == MPI_SUCCESS && !over;)
        code = MPI_Win_test(win, &over);
    return code;
}

static int operate(MPI_Win on, int turn, int target)
{
    double value = 1, old, most[60];
    int64_t one = 1, zero = 0, found;
    int code = MPI_SUCCESS;
    switch (turn % 8) {
    case 0: code = MPI_Put(&value, 1, MPI_DOUBLE, target, 1, 1, MPI_DOUBLE, on); break;
    case 1: code = MPI_Get(&old, 1, MPI_DOUBLE, target, 1, 1, MPI_DOUBLE, on); break;
    case 2:
        code = MPI_Accumulate(bulk, 500, MPI_DOUBLE, target, 0, 500, MPI_DOUBLE, MPI_SUM, on);
        break;
    case 3: code = MPI_Fetch_and_op(&value, &old, MPI_DOUBLE, target, 2, MPI_SUM, on); break;
    case 4:
        code = MPI_Compare_and_swap(&one, &zero, &found, MPI_INT64_T, target, INTEGERS_AT, on);
        break;
    case 5: code = MPI_Put(bulk, 1, every_second, target, 100, 1, every_second, on); break;
    case 6:
        code = MPI_Accumulate(bulk, 20, MPI_DOUBLE, target, 200, 1, every_second, MPI_REPLACE, on);
        break;
    default:
        code = MPI_Get_accumulate(bulk, 60, MPI_DOUBLE, most, 60, MPI_DOUBLE, target, 9, 60,
                                  MPI_DOUBLE, MPI_MAX, on);
    }
    if (turn % 9 == 0)
        return first_of(code, MPI_Win_flush_local(target, on));
    return first_of(code, turn % 7 == 0 ? MPI_Win_flush_all(on) : MPI_Win_flush(target, on));
}

static int lock_and_operate(int turn)
{
    int target = turn / 3 % world_size;
    int code = MPI_Win_lock(turn % 3 == 0 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, win);
    if (code != MPI_SUCCESS)
        return code;
    code = operate(win, turn, target);
    return first_of(code, MPI_Win_unlock(target, win));
}

static int lock_all_and_operate(int turn)
{
    int code = MPI_Win_lock_all(0, win);
    if (code != MPI_SUCCESS)
        return code;
    for (int i = 0; i < 3; i++)
        code = first_of(code, operate(win, turn + i, (world_rank + i) % world_size));
    return first_of(code, MPI_Win_unlock_all(win));
}

#ifdef __SANITIZE_THREAD__
enum { SANITIZES_THREADS = true };
#else
enum { SANITIZES_THREADS = false };
#endif

struct few {
    int first, end; /* turns */
    int code;
};

static void *operate_few(void *which)
{
    struct few *few = which;
    few->code = MPI_SUCCESS;
    for (int turn = few->first; turn < few->end; turn++)
        few->code = first_of(few->code, operate(win, turn, (world_rank + turn) % world_size));
    return NULL;
}

/* Two threads at a time, where the host allows it. They access the same words, whose contents are
 * then undefined: ThreadSanitizer would report it. */
static int lock_all_and_operate_by_two(int turn)
{
    pthread_t thread;
    int level;
    struct few own = {turn, turn + 4, MPI_SUCCESS}, the_others = {turn + 4, turn + 8, MPI_SUCCESS};
    MPI_Query_thread(&level);
    int code = MPI_Win_lock_all(0, win);
    if (code != MPI_SUCCESS)
        return code;
    bool by_two = level == MPI_THREAD_MULTIPLE && !SANITIZES_THREADS &&
                  pthread_create(&thread, NULL, operate_few, &the_others) == 0;
    operate_few(&own);
    if (by_two)
        pthread_join(thread, NULL);
    return first_of(first_of(own.code, the_others.code), MPI_Win_unlock_all(win));
}

/* Functions with several statuses store the errors in them. */
static int error_of(int code, int count, const MPI_Status statuses[])
{
    for (int i = 0; code == MPI_ERR_IN_STATUS && i < count; i++)
        if (statuses[i].MPI_ERROR != MPI_SUCCESS)
            return statuses[i].MPI_ERROR;
    return code;
}

/* Completes one of two requests, or both, or none yet. */
static int complete_some(int function, MPI_Request requests[2])
{
    MPI_Status statuses[2];
    MPI_Request *next = &requests[requests[0] == MPI_REQUEST_NULL];
    int code, count = 0, done = 0, indices[2];
    switch (function) {
    case 0: return MPI_Wait(next, statuses);
    case 1: return MPI_Test(next, &done, statuses);
    case 2: return MPI_Waitany(2, requests, indices, statuses);
    case 3: return MPI_Testany(2, requests, indices, &done, statuses);
    case 4:
        code = MPI_Waitsome(2, requests, &count, indices, statuses);
        return error_of(code, count, statuses);
    case 5:
        code = MPI_Testsome(2, requests, &count, indices, statuses);
        return error_of(code, count, statuses);
    case 6: return error_of(MPI_Waitall(2, requests, statuses), 2, statuses);
    case 7: return error_of(MPI_Testall(2, requests, &done, statuses), 2, statuses);
    default: code = MPI_Request_get_status(*next, &done, statuses);
    }
    return done ? first_of(code, MPI_Wait(next, statuses)) : code;
}

/* A failed request is complete, too. */
static int complete(int function, MPI_Request requests[2])
{
    int code = MPI_SUCCESS;
    while (requests[0] != MPI_REQUEST_NULL || requests[1] != MPI_REQUEST_NULL) {
        code = first_of(code, complete_some(function, requests));
        sched_yield();
    }
    return code;
}

static int request_and_complete(int turn)
{
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int target = turn % world_size;
    int code = MPI_Win_lock_all(0, win);
    if (code != MPI_SUCCESS)
        return code;
    if (turn % 2 == 0) {
        code = MPI_Rput(bulk, 800, MPI_DOUBLE, target, 0, 800, MPI_DOUBLE, win, &requests[0]);
        code = first_of(code, MPI_Rget(bulk + 2000, 800, MPI_DOUBLE, target, 2000, 800, MPI_DOUBLE,
                                       win, &requests[1]));
    } else {
        code = MPI_Raccumulate(bulk, 800, MPI_DOUBLE, target, 0, 800, MPI_DOUBLE, MPI_SUM, win,
                               &requests[0]);
        code = first_of(code, MPI_Rget_accumulate(bulk + 1000, 50, MPI_DOUBLE, bulk + 2000, 50,
                                                  MPI_DOUBLE, target, 2000, 50, MPI_DOUBLE, MPI_SUM,
                                                  win, &requests[1]));
    }
    code = first_of(code, complete(turn / 2 % COMPLETION_FUNCTIONS, requests));
    return first_of(code, MPI_Win_unlock_all(win));
}

static int shared_and_exclusive(int turn)
{
    return turn % 4 == 0 ? lock_all_and_operate(turn) : lock_and_operate(turn);
}

static int operate_on_attached(int turn, int target)
{
    double value = 1, old, got[300];
    int64_t one = 1, zero = 0, found;
    MPI_Aint at = attached_at[target];
    switch (turn % 5) {
    case 0:
        return MPI_Put(bulk, 1 + turn % 1000, MPI_DOUBLE, target, at, 1 + turn % 1000, MPI_DOUBLE,
                       second);
    case 1: return MPI_Fetch_and_op(&value, &old, MPI_DOUBLE, target, at + 8000, MPI_SUM, second);
    case 2:
        return first_of(MPI_Get(got, 300, MPI_DOUBLE, target, at, 300, MPI_DOUBLE, second),
                        MPI_Win_flush_local(target, second));
    case 3:
        return MPI_Accumulate(bulk, 300, MPI_DOUBLE, target, at + 8000, 300, MPI_DOUBLE, MPI_SUM,
                              second);
    default:
        return first_of(
            MPI_Compare_and_swap(&one, &zero, &found, MPI_INT64_T, target, at + 12000, second),
            MPI_Win_flush(target, second));
    }
}

/* Attaches and detaches memory, except memory in use by others. */
static int attach_and_operate(int turn)
{
    double mine[100];
    MPI_Win_attach(second, mine, sizeof mine);
    int code = MPI_Win_lock_all(0, second);
    if (code == MPI_SUCCESS) {
        for (int i = 0; i < 3; i++)
            code = first_of(code, operate_on_attached(turn + i, (turn + i) % world_size));
        code = first_of(code, MPI_Win_unlock_all(second));
    }
    MPI_Win_detach(second, mine);
    return code;
}

/* Loads and stores concurrent with operations: each rank has an element of each rank's memory. */
static int share_and_operate(int turn)
{
    MPI_Aint size_bytes;
    double *theirs;
    int unit, target = turn / 2 % world_size;
    int code = MPI_Win_shared_query(second, target, &size_bytes, &unit, &theirs);
    if (code == MPI_SUCCESS)
        code = turn % 2 == 0 ? MPI_Win_lock_all(0, second)
                             : MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, second);
    if (code != MPI_SUCCESS)
        return code;
    theirs[SHARED_ELEMENTS - 1 - world_rank] += 1;
    code = first_of(MPI_Win_sync(second), operate(second, turn, target));
    return first_of(code,
                    turn % 2 == 0 ? MPI_Win_unlock_all(second) : MPI_Win_unlock(target, second));
}

static int make_one(int turn, MPI_Win *made)
{
    void *base;
    switch (turn % 3) {
    case 0: return MPI_Win_allocate(64 + turn, 1, MPI_INFO_NULL, living_ranks, &base, made);
    case 1: return MPI_Win_create(bulk, 8000, 8, MPI_INFO_NULL, living_ranks, made);
    default: return MPI_Win_create_dynamic(MPI_INFO_NULL, living_ranks, made);
    }
}

/* One window after the other, each with a fence. */
static int make_and_free(int turn)
{
    MPI_Win made = MPI_WIN_NULL;
    MPI_Comm_set_errhandler(living_ranks, MPI_ERRORS_RETURN);
    int code = make_one(turn, &made);
    if (code != MPI_SUCCESS)
        return code;
    MPI_Win_set_errhandler(made, MPI_ERRORS_RETURN);
    code = MPI_Win_fence(0, made);
    return first_of(code, MPI_Win_free(&made));
}

/* --- series of turns --- */

static void repeat_until_dead(int (*turn_of)(int turn))
{
    die_on_request();
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
static int repeat_until_error(int (*turn_of)(int turn))
{
    return repeat(turn_of, 10);
}

/* No rank waits for the victim, unless the victim is in the way. */
static int repeat_and_fence(int (*turn_of)(int turn))
{
    int code = repeat(turn_of, dead_after_seconds());
    return first_of(code, MPI_Win_fence(0, win));
}

/* Frees the second window like the first, and the free reports the error. */
static int repeat_and_free(int (*turn_of)(int turn))
{
    int code = repeat(turn_of, dead_after_seconds());
    int freed = MPI_Win_free(&second);
    free(attached);
    free(attached_at);
    attached = NULL;
    attached_at = NULL;
    return second != MPI_WIN_NULL || freed == MPI_SUCCESS ? MPI_SUCCESS : first_of(code, freed);
}

#define ROW(turn_of, until)                                                                        \
    static void turn_of##_until_dead(void)                                                         \
    {                                                                                              \
        repeat_until_dead(turn_of);                                                                \
    }                                                                                              \
    static int turn_of##_##until(void)                                                             \
    {                                                                                              \
        return repeat_##until(turn_of);                                                            \
    }
ROW(put_and_fence, until_error)
ROW(expose_and_access, until_error)
ROW(lock_and_operate, and_fence)
ROW(lock_all_and_operate, and_fence)
ROW(shared_and_exclusive, and_fence)
ROW(request_and_complete, and_fence)
ROW(lock_all_and_operate_by_two, and_fence)
ROW(attach_and_operate, and_free)
ROW(share_and_operate, and_free)
ROW(make_and_free, until_error)

const struct scenario scenarios[] = {
    {"fences", connect_and_group, put_and_fence_until_dead, put_and_fence_until_error, false,
     connect_and_group, false},
    {"epochs", connect_and_group, expose_and_access_until_dead, expose_and_access_until_error,
     false, connect_and_group, false},
    {"locks", connect_and_group, lock_and_operate_until_dead, lock_and_operate_and_fence, false,
     connect_and_group, false},
    {"lock-alls", connect_and_group, lock_all_and_operate_until_dead,
     lock_all_and_operate_and_fence, false, connect_and_group, false},
    {"locks-mixed", connect_and_group, shared_and_exclusive_until_dead,
     shared_and_exclusive_and_fence, false, connect_and_group, false},
    {"requests", connect_and_group, request_and_complete_until_dead, request_and_complete_and_fence,
     false, connect_and_group, false},
    {"threads", connect_and_group, lock_all_and_operate_by_two_until_dead,
     lock_all_and_operate_by_two_and_fence, false, connect_and_group, false},
    {"dynamics", connect_and_attach, attach_and_operate_until_dead, attach_and_operate_and_free,
     false, connect_and_attach, false},
    {"shared", connect_and_share, share_and_operate_until_dead, share_and_operate_and_free, false,
     connect_and_share, false},
    {"windows", connect_and_group, make_and_free_until_dead, make_and_free_until_error, false,
     connect_and_group, false},
};
const size_t scenario_count = sizeof scenarios / sizeof scenarios[0];
