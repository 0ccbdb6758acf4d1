/* The scenarios in which a rank dies while the others wait for it (fault.h), on any division of the
 * ranks into nodes. faults.py starts each in a launch of its own. */
#include "fault.h"
#include "oriel/ext.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static void nothing(void)
{
}

/* An operation inside the epoch must complete before an internode target is really locked. */
static void use_target(void)
{
    double value;
    MPI_Get(&value, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win);
    MPI_Win_flush(0, win);
}

static void hold_exclusive(void)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    use_target();
}

static void hold_shared(void)
{
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    use_target();
}

static void hold_all(void)
{
    MPI_Win_lock_all(0, win);
    use_target();
}

static void free_window(void)
{
    MPI_Win_free(&win);
}

static void connect_and_post(void)
{
    connect_all();
    post_to_survivors(win);
}

static int wait_fence(void)
{
    return MPI_Win_fence(0, win);
}

/* A lock may return before it acquires the target; its unlock needs the target if operations are
 * outstanding. */
static int wait_lock(int kind)
{
    double value;
    int code = MPI_Win_lock(kind, 0, 0, win);
    if (code == MPI_SUCCESS)
        code = MPI_Get(&value, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win);
    return code != MPI_SUCCESS ? code : MPI_Win_unlock(0, win);
}

static int wait_exclusive(void)
{
    return wait_lock(MPI_LOCK_EXCLUSIVE);
}
static int wait_shared(void)
{
    return wait_lock(MPI_LOCK_SHARED);
}
static int wait_free(void)
{
    return MPI_Win_free(&win);
}

static int wait_fence_twice(void)
{
    int code = MPI_Win_fence(0, win);
    return code == MPI_SUCCESS ? code : MPI_Win_fence(0, win);
}

static int wait_creation(void)
{
    MPI_Win another;
    void *base;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    return MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &another);
}

/* No window identifies the other ranks any more. */
static int wait_creation_without_windows(void)
{
    int code = MPI_Win_free(&win);
    return code == MPI_SUCCESS ? wait_creation() : code;
}

/* True if a local array of this rank stays unchanged while a host continues the operations that it
 * was given. */
static bool local_memory_stays(double seconds)
{
    volatile unsigned char local[60000];
    bool whole = true;
    int flag;
    for (size_t i = 0; i < sizeof local; i++)
        local[i] = 0xab;
    for (double end = seconds_now() + seconds; seconds_now() < end; usleep(1000))
        MPI_Iprobe(2, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    for (size_t i = 0; i < sizeof local; i++)
        whole = whole && local[i] == 0xab;
    return whole;
}

/* The last survivor is late, after the first has given up: the host then ends the abandoned
 * collective. */
static int wait_creation_late(void)
{
    MPI_Win another;
    void *base;
    MPI_Comm_set_errhandler(fresh, MPI_ERRORS_RETURN);
    if (world_rank == 2)
        usleep(1500000);
    int code = MPI_Win_allocate(64, 1, MPI_INFO_NULL, fresh, &base, &another);
    return world_rank == 0 && !local_memory_stays(2.5) ? MPI_SUCCESS : code;
}

/* lock_all may return before it acquires each target; the operation needs it. */
static int wait_lock_all(void)
{
    double value = 1;
    int code = MPI_Win_lock_all(0, win);
    if (code == MPI_SUCCESS)
        code = MPI_Put(&value, 1, MPI_DOUBLE, 0, world_rank, 1, MPI_DOUBLE, win);
    return code != MPI_SUCCESS ? code : MPI_Win_flush(0, win);
}

/* start may return before the post arrives; complete needs it. */
static int wait_start(void)
{
    int code = MPI_Win_start(victim_group, 0, win);
    return code != MPI_SUCCESS ? code : MPI_Win_complete(win);
}

static int wait_wait(void)
{
    int code = MPI_Win_post(victim_group, 0, win);
    return code != MPI_SUCCESS ? code : MPI_Win_wait(win);
}

static int wait_test(void)
{
    int done = 0, code = MPI_Win_post(victim_group, 0, win);
    while (code == MPI_SUCCESS && !done) {
        code = MPI_Win_test(win, &done);
        usleep(100);
    }
    return code;
}

/* The victim posted and died in its exposure epoch: the survivors' access may succeed or fail, but
 * it ends. */
static int use_posted(void)
{
    double value = 1;
    int code = MPI_Win_start(victim_group, 0, win);
    if (code == MPI_SUCCESS)
        code = MPI_Put(&value, 1, MPI_DOUBLE, victim, 0, 1, MPI_DOUBLE, win);
    int end = MPI_Win_complete(win);
    return code != MPI_SUCCESS ? code : end;
}

/* A rank without free descriptors also gets the error. */
static int wait_without_descriptors(void)
{
    enum { MOST = 600 };
    static int taken[MOST];
    struct rlimit limit;
    int count = 0;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = MOST;
    setrlimit(RLIMIT_NOFILE, &limit);
    while (count < MOST && (taken[count] = open("/dev/null", O_RDONLY)) >= 0)
        count++;
    int code = MPI_Win_fence(0, win);
    while (count > 0)
        close(taken[--count]);
    return code;
}

static int accumulate_once(void)
{
    int code = MPI_Accumulate(bulk, FAULT_ELEMENTS, MPI_DOUBLE, 0, 0, FAULT_ELEMENTS, MPI_DOUBLE,
                              MPI_SUM, win);
    return code != MPI_SUCCESS ? code : MPI_Win_flush(0, win);
}

/* Nothing waits for the victim: the calls that complete operations report its death, each of them
 * from the moment on at which the process has ended. */
static int flush_victim(int how)
{
    double value = 1;
    int code = how == 0 ? MPI_Get(&value, 1, MPI_DOUBLE, victim, 0, 1, MPI_DOUBLE, win)
                        : MPI_Put(&value, 1, MPI_DOUBLE, victim, 0, 1, MPI_DOUBLE, win);
    if (code != MPI_SUCCESS)
        return code;
    return how == 2   ? MPI_Win_flush_all(win)
           : how == 3 ? MPIX_Win_flush_list(1, &victim, win)
                      : MPI_Win_flush(victim, win);
}

static int flush_until_error(void)
{
    int code = MPI_Win_lock_all(0, win);
    for (int how = 0; how < 4; how++) {
        for (double end = seconds_now() + 2; code == MPI_SUCCESS && seconds_now() < end;)
            code = flush_victim(how);
        if (code == MPI_SUCCESS || how == 3)
            return code;
        code = MPI_SUCCESS;
    }
    return code;
}

/* A part of the victim's memory, which the survivors have open. */
static MPI_Win lent;

static void lend(void)
{
    MPIX_Memory_handle handle;
    MPIX_Win_memory_handle_create(win, 0, 64, &handle);
    MPI_Bcast(&handle, (int)sizeof handle, MPI_BYTE, victim, MPI_COMM_WORLD);
}

static void open_lent(void)
{
    MPIX_Memory_handle handle;
    MPI_Bcast(&handle, (int)sizeof handle, MPI_BYTE, victim, MPI_COMM_WORLD);
    MPIX_Win_memory_open(&handle, MPI_INFO_NULL, &lent);
    MPI_Win_set_errhandler(lent, MPI_ERRORS_RETURN);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, lent);
}

/* A put to another node may itself report the death. */
static int put_lent_and(int (*complete)(void))
{
    const double value = 1;
    int code = MPI_Put(&value, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, lent);
    int completed = complete();
    return completed == MPI_SUCCESS ? code : completed;
}

static int flush_lent(void)
{
    return MPI_Win_flush_all(lent);
}

static int unlock_lent(void)
{
    return MPI_Win_unlock(0, lent);
}

/* From the first flush on that reports the death, every call does; the unlock ends its epoch. The
 * result is that of a call that names the rank. */
static int use_lent_until_error(void)
{
    int code = MPI_Win_lock_all(0, win);
    for (double end = seconds_now() + 4; code == MPI_SUCCESS && seconds_now() < end;)
        code = put_lent_and(flush_lent);
    if (code != MPI_SUCCESS)
        code = put_lent_and(unlock_lent);
    for (int how = 0; how < 4 && code != MPI_SUCCESS; how++)
        code = how == 3 ? MPI_Win_lock_all(0, lent)
                        : MPI_Win_lock(how == 0 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0,
                                       how == 2 ? MPI_MODE_NOCHECK : 0, lent);
    if (code == MPI_SUCCESS || MPI_Win_free(&lent) != MPI_SUCCESS)
        return MPI_SUCCESS;
    return flush_victim(0);
}

/* A part of rank 0's memory, which all ranks have open. The victim has its lock. */
static MPIX_Memory_handle lent_by_0;

static void open_of_0(void)
{
    if (world_rank == 0)
        MPIX_Win_memory_handle_create(win, 0, 64, &lent_by_0);
    MPI_Bcast(&lent_by_0, (int)sizeof lent_by_0, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPIX_Win_memory_open(&lent_by_0, MPI_INFO_NULL, &lent);
    MPI_Win_set_errhandler(lent, MPI_ERRORS_RETURN);
}

static void hold_of_0(void)
{
    open_of_0();
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, lent);
}

/* Locks of both windows fail, and the owner can withdraw the handle. The result is that of a call
 * that names the rank. */
static int wait_for_holder(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (wait_exclusive() == MPI_SUCCESS || MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, lent) == MPI_SUCCESS)
        return MPI_SUCCESS;
    if (world_rank == 0 && MPIX_Win_memory_handle_free(&lent_by_0) != MPI_SUCCESS)
        return MPI_SUCCESS;
    int code = MPI_Win_lock(MPI_LOCK_SHARED, victim, 0, win);
    return code == MPI_SUCCESS ? flush_victim(0) : code;
}

static int wait_memory(void)
{
    const int64_t never = 77;
    return MPIX_Win_wait_until(win, 0, MPI_INT64_T, MPIX_CMP_EQ, &never);
}

/* A window with counters of notifications, of which none arrives. */
static MPI_Win counted;

static void make_counted(void)
{
    double *memory;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "oriel_notifications", "1");
    MPI_Win_allocate(8, 8, info, MPI_COMM_WORLD, &memory, &counted);
    MPI_Info_free(&info);
    MPI_Win_set_errhandler(counted, MPI_ERRORS_RETURN);
}

static int wait_requested_notification(void)
{
    MPI_Request request;
    int code = MPIX_Win_notify_init(counted, 0, 1, &request);
    if (code == MPI_SUCCESS)
        code = MPI_Start(&request);
    return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

static long some_us(void)
{
    return 5000 + (long)(seconds_now() * 1e9) % 20000;
}

/* Dies at a random time in a long series of bulk accumulates, most of them under the target's
 * accumulate lock. */
static void accumulate_until_dead(void)
{
    MPI_Win_lock_all(0, win);
    die_after_us(some_us());
    for (;;)
        accumulate_once();
}

static int accumulate_for_a_while(void)
{
    double end = seconds_now() + 0.5;
    int code = MPI_Win_lock_all(0, win);
    while (code == MPI_SUCCESS && seconds_now() < end)
        code = accumulate_once();
    return code;
}

static int create_and_free(void)
{
    MPI_Win another;
    void *base;
    int code = MPI_Win_allocate(64, 1, MPI_INFO_NULL, fresh, &base, &another);
    if (code != MPI_SUCCESS)
        return code;
    MPI_Win_set_errhandler(another, MPI_ERRORS_RETURN);
    return MPI_Win_free(&another);
}

/* Dies at one of the instructions of a call in which the others already wait. */
static void die_inside(int (*call)(void))
{
    usleep(50000);
    die_on_request();
    call();
    live_on();
}

/* The first may complete before the death. */
static int wait_one_fence_or_two(void)
{
    int code = wait_fence();
    return code != MPI_SUCCESS ? code : wait_fence();
}

static void die_while_fencing(void)
{
    die_inside(wait_fence);
}
static void die_while_freeing(void)
{
    die_inside(wait_free);
}
static void die_while_creating(void)
{
    die_inside(wait_creation);
}

/* Dies at a random time of a creation, or of a window's end. */
static void create_until_dead(void)
{
    MPI_Comm_set_errhandler(fresh, MPI_ERRORS_RETURN);
    die_after_us(some_us());
    for (;;)
        create_and_free();
}

static int create_until_error(void)
{
    int code = MPI_SUCCESS;
    MPI_Comm_set_errhandler(fresh, MPI_ERRORS_RETURN);
    for (double end = seconds_now() + 15; code == MPI_SUCCESS && seconds_now() < end;)
        code = create_and_free();
    return code;
}

/* --- unshared memory of a victim whose main thread has ended while another thread lives on --- */

enum { UNSHARED_BYTES = 1 << 16, ENDING_US = 300000, ENDED_US = 3000000 };

static MPI_Win unshared;

static void make_unshared(void)
{
    void *base =
        mmap(NULL, UNSHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MPI_Win_create(base, UNSHARED_BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &unshared);
    MPI_Win_set_errhandler(unshared, MPI_ERRORS_RETURN);
}

static void make_unshared_and_post(void)
{
    make_unshared();
    post_to_survivors(unshared);
}

static void end_main_thread(long before_death_us)
{
    die_after_us(before_death_us);
    syscall(SYS_exit, 0);
}

static void end_slowly(void)
{
    end_main_thread(ENDING_US);
}
static void end_main_thread_alone(void)
{
    end_main_thread(ENDED_US);
}

/* A short put may wait in the origin until a later call sends it. */
static int put_until_error(void)
{
    int code = MPI_Win_start(victim_group, 0, unshared);
    for (double end = seconds_now() + 2.5; code == MPI_SUCCESS && seconds_now() < end;) {
        code = MPI_Put(bulk, 8, MPI_BYTE, victim, 0, 8, MPI_BYTE, unshared);
        if (code == MPI_SUCCESS)
            code = MPI_Get(bulk, 8, MPI_BYTE, victim, 8, 8, MPI_BYTE, unshared);
    }
    return code;
}

/* After the error, a survivor may free the window in any epoch. */
static int put_until_error_and_free(void)
{
    int code = put_until_error();
    int freed = MPI_Win_free(&unshared);
    return unshared != MPI_WIN_NULL || freed == MPI_SUCCESS ? MPI_SUCCESS : code;
}

const struct scenario scenarios[] = {
    {"fence", nothing, nothing, wait_fence, false, NULL, false},
    {"exclusive-held", hold_exclusive, nothing, wait_exclusive, false, NULL, false},
    {"exclusive-held-shared-wanted", hold_exclusive, nothing, wait_shared, false, NULL, false},
    {"exclusive-held-all-wanted", hold_exclusive, nothing, wait_lock_all, false, NULL, false},
    {"shared-held", hold_shared, nothing, wait_exclusive, false, NULL, false},
    {"all-held", hold_all, nothing, wait_exclusive, false, NULL, false},
    {"start", nothing, nothing, wait_start, false, NULL, false},
    {"posted", connect_and_post, nothing, use_posted, true, connect_all, false},
    {"wait", nothing, nothing, wait_wait, false, NULL, false},
    {"test", nothing, nothing, wait_test, false, NULL, false},
    {"free", nothing, nothing, wait_free, false, NULL, false},
    {"fencing", nothing, die_while_fencing, wait_one_fence_or_two, false, NULL, false},
    {"freeing", nothing, die_while_freeing, wait_free, true, NULL, false},
    {"creating", nothing, die_while_creating, wait_creation, true, NULL, false},
    {"without-descriptors", nothing, nothing, wait_without_descriptors, false, NULL, false},
    {"fence-twice", nothing, nothing, wait_fence_twice, false, NULL, false},
    {"creation", nothing, nothing, wait_creation, false, NULL, false},
    {"creation-again", nothing, free_window, wait_creation_without_windows, false, NULL, false},
    {"creation-late", nothing, nothing, wait_creation_late, false, NULL, false},
    {"creations", connect_all, create_until_dead, create_until_error, false, connect_all, false},
    {"accumulate", connect_all, accumulate_until_dead, accumulate_for_a_while, true, connect_all,
     false},
    {"flushed", connect_all, nothing, flush_until_error, false, connect_all, false},
    {"lent", lend, nothing, use_lent_until_error, false, open_lent, false},
    {"lent-held", hold_of_0, nothing, wait_for_holder, false, open_of_0, false},
    {"awaited", nothing, nothing, wait_memory, false, NULL, false},
    {"notification", make_counted, nothing, wait_requested_notification, false, make_counted,
     false},
    {"ending", make_unshared_and_post, end_slowly, put_until_error_and_free, false, make_unshared,
     false},
    {"main-ended", make_unshared_and_post, end_main_thread_alone, put_until_error, false,
     make_unshared, false},
};
const size_t scenario_count = sizeof scenarios / sizeof scenarios[0];
