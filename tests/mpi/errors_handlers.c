/* Routing of errors: a window's handler receives errors of calls on it, a communicator's handler
 * those of creation. Errors without an object go to the handler of MPI_COMM_WORLD or MPI_COMM_SELF.
 * Each handler is called once, with its own handle and the class that the call returns;
 * MPI_ERRORS_RETURN gives the same class. A plain MPI program, run by the test rows. */
#include "errors.h"
#include "operation_forms.h"

static struct {
    int win_calls;
    int comm_calls;
    int other_calls; /* of an unrelated communicator */
    int class;
    MPI_Win win;
    MPI_Comm comm;
} handled_calls;

static void note_win(MPI_Win *win, int *code, ...)
{
    handled_calls.win_calls++;
    handled_calls.win = *win;
    MPI_Error_class(*code, &handled_calls.class);
}

static void note_comm(MPI_Comm *comm, int *code, ...)
{
    handled_calls.comm_calls++;
    handled_calls.comm = *comm;
    MPI_Error_class(*code, &handled_calls.class);
}

static void note_other(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    handled_calls.other_calls++;
}

/* MPI_COMM_WORLD's and MPI_COMM_SELF's handlers, changed during a case. */
static struct {
    MPI_Errhandler world, self, mine;
} saved;

static void worlds_set(void (*note)(MPI_Comm *, int *, ...))
{
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &saved.world);
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &saved.self);
    MPI_Comm_create_errhandler(note, &saved.mine);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, saved.mine);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, saved.mine);
}

static void worlds_restore(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, saved.world);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, saved.self);
    MPI_Errhandler_free(&saved.world);
    MPI_Errhandler_free(&saved.self);
    MPI_Errhandler_free(&saved.mine);
}

static int flag;
static char bytes[64];

/* Calls that are wrong whenever no epoch is open. */
static int unlock(MPI_Win win)
{
    return MPI_Win_unlock(guarded_target(), win);
}
static int flush(MPI_Win win)
{
    return MPI_Win_flush(guarded_target(), win);
}
static int flush_local(MPI_Win win)
{
    return MPI_Win_flush_local(guarded_target(), win);
}
static int test(MPI_Win win)
{
    return MPI_Win_test(win, &flag);
}
static int unlock_no_rank(MPI_Win win)
{
    return MPI_Win_unlock(world_size, win);
}
static int lock_no_rank(MPI_Win win)
{
    return MPI_Win_lock(MPI_LOCK_SHARED, world_size, 0, win);
}
static int lock_below(MPI_Win win)
{
    return MPI_Win_lock(MPI_LOCK_EXCLUSIVE, -100, 0, win);
}
static int flush_no_rank(MPI_Win win)
{
    return MPI_Win_flush(world_size, win);
}
static int flush_local_nobody(MPI_Win win)
{
    return MPI_Win_flush_local(-100, win);
}
static int lock_otherwise(MPI_Win win)
{
    return MPI_Win_lock(4711, guarded_target(), 0, win);
}
static int lock_assert(MPI_Win win)
{
    return MPI_Win_lock(MPI_LOCK_SHARED, guarded_target(), 1 << 28, win);
}
static int lock_all_assert(MPI_Win win)
{
    return MPI_Win_lock_all(1 << 28, win);
}
static int fence_assert(MPI_Win win)
{
    return MPI_Win_fence(1 << 28, win);
}
static int start_assert(MPI_Win win)
{
    return MPI_Win_start(MPI_GROUP_EMPTY, 1 << 28, win);
}
static int post_assert(MPI_Win win)
{
    return MPI_Win_post(MPI_GROUP_EMPTY, 1 << 28, win);
}
static int start_null(MPI_Win win)
{
    return MPI_Win_start(MPI_GROUP_NULL, 0, win);
}
static int post_null(MPI_Win win)
{
    return MPI_Win_post(MPI_GROUP_NULL, 0, win);
}
static int attach(MPI_Win win)
{
    return MPI_Win_attach(win, bytes, sizeof bytes);
}
static int detach(MPI_Win win)
{
    return MPI_Win_detach(win, bytes);
}
static int query_no_rank(MPI_Win win)
{
    MPI_Aint size_bytes;
    int unit;
    void *base;
    return MPI_Win_shared_query(win, world_size, &size_bytes, &unit, &base);
}

struct wrong_call {
    const char *name;
    int (*call)(MPI_Win win);
    int class;
};
#define WRONG(function, class)                                                                     \
    {                                                                                              \
#function, function, class                                                                 \
    }

/* A handler that returns changes nothing: MPI_ERRORS_RETURN gives the same class. */
static void calls_fail(MPI_Win win, const struct wrong_call *calls, size_t count)
{
    MPI_Errhandler handler;
    MPI_Win_create_errhandler(note_win, &handler);
    for (size_t i = 0; i < count; i++)
        for (int handled = 0; handled < 2; handled++) {
            int class = MPI_SUCCESS;
            handled_calls.win_calls = 0;
            MPI_Win_set_errhandler(win, handled ? handler : MPI_ERRORS_RETURN);
            MPI_Error_class(calls[i].call(win), &class);
            CHECK(class == calls[i].class, "%s returns class %d, not %d", calls[i].name, class,
                  calls[i].class);
            CHECK(handled_calls.win_calls == handled, "%s: %d calls of the handler", calls[i].name,
                  handled_calls.win_calls);
            if (handled)
                CHECK(handled_calls.class == class && handled_calls.win == win,
                      "%s: the handler hears class %d", calls[i].name, handled_calls.class);
        }
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
}

static void wrong_calls_outside_epochs_reach_the_handler(enum window_kind kind)
{
    static const struct wrong_call calls[] = {
        WRONG(unlock, MPI_ERR_RMA_SYNC),
        WRONG(MPI_Win_unlock_all, MPI_ERR_RMA_SYNC),
        WRONG(flush, MPI_ERR_RMA_SYNC),
        WRONG(flush_local, MPI_ERR_RMA_SYNC),
        WRONG(MPI_Win_flush_all, MPI_ERR_RMA_SYNC),
        WRONG(MPI_Win_flush_local_all, MPI_ERR_RMA_SYNC),
        WRONG(MPI_Win_complete, MPI_ERR_RMA_SYNC),
        WRONG(MPI_Win_wait, MPI_ERR_RMA_SYNC),
        WRONG(test, MPI_ERR_RMA_SYNC),
        WRONG(unlock_no_rank, MPI_ERR_RANK),
        WRONG(lock_no_rank, MPI_ERR_RANK),
        WRONG(lock_below, MPI_ERR_RANK),
        WRONG(flush_no_rank, MPI_ERR_RANK),
        WRONG(flush_local_nobody, MPI_ERR_RANK),
        WRONG(query_no_rank, MPI_ERR_RANK),
        WRONG(lock_otherwise, MPI_ERR_LOCKTYPE),
        WRONG(lock_assert, MPI_ERR_ASSERT),
        WRONG(lock_all_assert, MPI_ERR_ASSERT),
        WRONG(fence_assert, MPI_ERR_ASSERT),
        WRONG(start_assert, MPI_ERR_ASSERT),
        WRONG(post_assert, MPI_ERR_ASSERT),
        WRONG(start_null, MPI_ERR_GROUP),
        WRONG(post_null, MPI_ERR_GROUP),
        WRONG(attach, MPI_ERR_RMA_FLAVOR),
        WRONG(detach, MPI_ERR_RMA_FLAVOR),
    };
    struct window window = guarded_make(kind);
    calls_fail(window.win, calls, COUNT_OF(calls));
    guarded_free(&window);
}

static int lock_shared(MPI_Win win)
{
    return MPI_Win_lock(MPI_LOCK_SHARED, guarded_target(), 0, win);
}
static int lock_exclusive(MPI_Win win)
{
    return MPI_Win_lock(MPI_LOCK_EXCLUSIVE, guarded_target(), 0, win);
}
static int lock_all(MPI_Win win)
{
    return MPI_Win_lock_all(0, win);
}
static int fence(MPI_Win win)
{
    return MPI_Win_fence(0, win);
}
static int start(MPI_Win win)
{
    return MPI_Win_start(MPI_GROUP_EMPTY, 0, win);
}
static int post(MPI_Win win)
{
    return MPI_Win_post(MPI_GROUP_EMPTY, 0, win);
}
static int end(MPI_Win win)
{
    MPI_Win copy = win;
    return MPI_Win_free(&copy);
}

/* Each kind of epoch with the calls that it excludes; afterwards the epoch is closed normally. */
static void wrong_calls_inside_epochs_reach_the_handler(enum window_kind kind)
{
    static const struct wrong_call locked[] = {
        WRONG(lock_shared, MPI_ERR_RMA_SYNC),
        WRONG(lock_exclusive, MPI_ERR_RMA_SYNC),
        WRONG(lock_all, MPI_ERR_RMA_SYNC),
        WRONG(fence, MPI_ERR_RMA_SYNC),
        WRONG(start, MPI_ERR_RMA_SYNC),
        WRONG(end, MPI_ERR_RMA_SYNC),
        WRONG(MPI_Win_complete, MPI_ERR_RMA_SYNC),
        WRONG(MPI_Win_wait, MPI_ERR_RMA_SYNC),
    };
    static const struct wrong_call started[] = {
        WRONG(lock_shared, MPI_ERR_RMA_SYNC),
        WRONG(lock_all, MPI_ERR_RMA_SYNC),
        WRONG(fence, MPI_ERR_RMA_SYNC),
        WRONG(start, MPI_ERR_RMA_SYNC),
        WRONG(end, MPI_ERR_RMA_SYNC),
        WRONG(flush, MPI_ERR_RMA_SYNC),
        WRONG(MPI_Win_unlock_all, MPI_ERR_RMA_SYNC),
    };
    static const struct wrong_call posted[] = {
        WRONG(post, MPI_ERR_RMA_SYNC),
        WRONG(fence, MPI_ERR_RMA_SYNC),
        WRONG(end, MPI_ERR_RMA_SYNC),
        WRONG(MPI_Win_complete, MPI_ERR_RMA_SYNC),
    };
    struct window window = guarded_make(kind);
    CHECK_OK(lock_shared(window.win));
    calls_fail(window.win, locked, COUNT_OF(locked));
    CHECK_OK(MPI_Win_unlock(guarded_target(), window.win));
    CHECK_OK(MPI_Win_lock_all(0, window.win));
    calls_fail(window.win, locked, COUNT_OF(locked));
    CHECK_OK(MPI_Win_unlock_all(window.win));
    CHECK_OK(start(window.win));
    calls_fail(window.win, started, COUNT_OF(started));
    CHECK_OK(MPI_Win_complete(window.win));
    CHECK_OK(post(window.win));
    calls_fail(window.win, posted, COUNT_OF(posted));
    CHECK_OK(MPI_Win_wait(window.win));
    guarded_free(&window);
}

/* Creation in the form with an int displacement unit and in the large one. */
static struct {
    int (*create)(void *, MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, MPI_Win *);
    int (*allocate)(MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, void *, MPI_Win *);
    int (*allocate_shared)(MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, void *, MPI_Win *);
} large;

static bool large_creation_exists(void)
{
    return large_find("MPI_Win_create_c", &large.create) &&
           large_find("MPI_Win_allocate_c", &large.allocate) &&
           large_find("MPI_Win_allocate_shared_c", &large.allocate_shared);
}

struct creation {
    void *memory; /* of MPI_Win_create */
    MPI_Aint size_bytes;
    MPI_Aint unit;
};
enum { CREATE, ALLOCATE, ALLOCATE_SHARED, FLAVOURS };

static int flavour_count(void)
{
    return ranks_share_memory() ? FLAVOURS : ALLOCATE_SHARED;
}

static int create(int flavour, bool wide, const struct creation *c, MPI_Comm comm, MPI_Win *win)
{
    void *base;
    switch (flavour) {
    case CREATE:
        return wide ? large.create(c->memory, c->size_bytes, c->unit, MPI_INFO_NULL, comm, win)
                    : MPI_Win_create(c->memory, c->size_bytes, (int)c->unit, MPI_INFO_NULL, comm,
                                     win);
    case ALLOCATE:
        return wide
                   ? large.allocate(c->size_bytes, c->unit, MPI_INFO_NULL, comm, &base, win)
                   : MPI_Win_allocate(c->size_bytes, (int)c->unit, MPI_INFO_NULL, comm, &base, win);
    default:
        return wide ? large.allocate_shared(c->size_bytes, c->unit, MPI_INFO_NULL, comm, &base, win)
                    : MPI_Win_allocate_shared(c->size_bytes, (int)c->unit, MPI_INFO_NULL, comm,
                                              &base, win);
    }
}

static const struct creation right = {bytes, sizeof bytes, 4};

/* Wrong on the ranks from first to last: the handler of every rank of the communicator is called,
 * once. */
static void creation_fails(int flavour, bool wide, const struct creation *wrong, int first,
                           int last, int class)
{
    const struct creation *mine = world_rank >= first && world_rank <= last ? wrong : &right;
    MPI_Comm comm;
    MPI_Errhandler handler;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(note_comm, &handler);
    for (int handled = 0; handled < 2; handled++) {
        MPI_Win win = MPI_WIN_NULL;
        MPI_Comm_set_errhandler(comm, handled ? handler : MPI_ERRORS_RETURN);
        handled_calls.comm_calls = handled_calls.other_calls = 0;
        CHECK_CLASS(class, create(flavour, wide, mine, comm, &win));
        CHECK(handled_calls.comm_calls == handled && handled_calls.other_calls == 0,
              "flavour %d: %d calls of the handler, %d of another", flavour,
              handled_calls.comm_calls, handled_calls.other_calls);
        if (handled)
            CHECK(handled_calls.class == class && handled_calls.comm == comm,
                  "flavour %d: the handler hears class %d", flavour, handled_calls.class);
    }
    MPI_Win win = MPI_WIN_NULL;
    CHECK_OK(create(flavour, wide, &right, comm, &win));
    CHECK_OK(MPI_Win_free(&win));
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
}

static void creation_errors_reach_the_communicators_handler(enum window_kind kind)
{
    static const struct {
        struct creation creation;
        int class;
    } wrong[] = {
        {{bytes, -1, 4}, MPI_ERR_SIZE},         {{bytes, PTRDIFF_MIN, 4}, MPI_ERR_SIZE},
        {{bytes, 64, 0}, MPI_ERR_DISP},         {{bytes, 64, -1}, MPI_ERR_DISP},
        {{bytes, 64, INT32_MIN}, MPI_ERR_DISP},
    };
    static const struct creation no_base = {NULL, 64, 4};
    int forms = large_creation_exists() ? 2 : 1;
    (void)kind;
    worlds_set(note_other);
    for (int wide = 0; wide < forms; wide++) {
        for (int flavour = 0; flavour < flavour_count(); flavour++)
            for (size_t i = 0; i < COUNT_OF(wrong); i++) {
                creation_fails(flavour, wide, &wrong[i].creation, 0, world_size - 1,
                               wrong[i].class);
                creation_fails(flavour, wide, &wrong[i].creation, 0, 0, wrong[i].class);
                creation_fails(flavour, wide, &wrong[i].creation, world_size - 1, world_size - 1,
                               wrong[i].class);
            }
        creation_fails(CREATE, wide, &no_base, 0, 0, MPI_ERR_BASE);
        creation_fails(CREATE, wide, &no_base, world_size - 1, world_size - 1, MPI_ERR_BASE);
    }
    worlds_restore();
}

/* The first rank makes one mistake, the last another: all ranks get the same one of the two
 * classes. */
static void different_mistakes_have_one_class(enum window_kind kind)
{
    static const struct creation first = {bytes, -1, 4}, last = {bytes, 64, 0};
    MPI_Comm comm;
    (void)kind;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int flavour = 0; flavour < flavour_count(); flavour++) {
        MPI_Win win = MPI_WIN_NULL;
        int class = MPI_SUCCESS, lowest, highest;
        const struct creation *mine = world_rank == 0                ? &first
                                      : world_rank == world_size - 1 ? &last
                                                                     : &right;
        MPI_Error_class(create(flavour, false, mine, comm, &win), &class);
        MPI_Allreduce(&class, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(&class, &highest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        CHECK(lowest == highest && (class == MPI_ERR_SIZE || class == MPI_ERR_DISP),
              "classes from %d to %d", lowest, highest);
    }
    MPI_Comm_free(&comm);
}

static void window_is_refused(MPI_Win win, const char *what)
{
    int forms = forms_available();
    int64_t word = 1, old = 2;
    for (int operation = 0; operation < OPERATIONS; operation++)
        for (int form = 0; form < forms; form++) {
            struct arguments a = {&word, 1, MPI_INT64_T, &old,        1,      MPI_INT64_T,
                                  0,     0, 1,           MPI_INT64_T, MPI_SUM};
            MPI_Request request = MPI_REQUEST_NULL;
            int class = MPI_SUCCESS;
            handled_calls.comm_calls = 0;
            MPI_Error_class(form_call((enum operation)operation, form, &a, win, &request), &class);
            CHECK(class == MPI_ERR_WIN && handled_calls.class == MPI_ERR_WIN,
                  "%s on %s returns class %d", form_name((enum operation)operation, form), what,
                  class);
            CHECK(handled_calls.comm_calls == 1, "%s on %s: %d calls of the handler",
                  form_name((enum operation)operation, form), what, handled_calls.comm_calls);
        }
    CHECK(word == 1 && old == 2, "an operation on %s brought data", what);
}

static void operations_without_a_window_fail_in_every_form(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 1, MPI_COMM_WORLD), copy = window;
    window_free(&window);
    worlds_set(note_comm);
    window_is_refused(MPI_WIN_NULL, "MPI_WIN_NULL");
    window_is_refused(copy.win, "a freed window");
    worlds_restore();
}

static void freeing_the_middle_of_memory_or_twice_is_a_base_error(enum window_kind kind)
{
    char *memory = NULL;
    (void)kind;
    worlds_set(note_comm);
    handled_calls.comm_calls = 0;
    CHECK_OK(MPI_Alloc_mem(4096, MPI_INFO_NULL, &memory));
    CHECK_CLASS(MPI_ERR_BASE, MPI_Free_mem(memory + 64));
    CHECK_EQUAL(handled_calls.comm_calls, 1);
    CHECK_OK(MPI_Free_mem(memory));
    CHECK_CLASS(MPI_ERR_BASE, MPI_Free_mem(memory));
    worlds_restore();
}

static const struct test_case cases[] = {
    CASE(wrong_calls_outside_epochs_reach_the_handler, KINDS_ALL, 1),
    CASE(wrong_calls_inside_epochs_reach_the_handler, KINDS_ALL, 1),
    CASE(creation_errors_reach_the_communicators_handler, KIND_ANY, 1),
    CASE(different_mistakes_have_one_class, KIND_ANY, 2),
    CASE(operations_without_a_window_fail_in_every_form, KINDS_BOTH, 1),
    CASE(freeing_the_middle_of_memory_or_twice_is_a_base_error, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
