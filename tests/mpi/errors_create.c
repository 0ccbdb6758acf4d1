/* Errors of creation, freeing and handles: the class of the standard, through the communicator's
 * handler, the same on all ranks. After every error the communicator still makes windows. A plain
 * MPI program, run by the test rows. */
#include "errors.h"

static int handler_calls, handler_class;
static MPI_Comm handler_comm;

static void note_call(MPI_Comm *comm, int *code, ...)
{
    handler_comm = *comm;
    handler_calls++;
    MPI_Error_class(*code, &handler_class);
}

struct creation {
    int flavour;
    void *base;
    MPI_Aint size_bytes;
    int disp_unit;
};

static int create(const struct creation *creation, MPI_Comm comm, MPI_Win *win)
{
    void *base;
    switch (creation->flavour) {
    case MPI_WIN_FLAVOR_CREATE:
        return MPI_Win_create(creation->base, creation->size_bytes, creation->disp_unit,
                              MPI_INFO_NULL, comm, win);
    case MPI_WIN_FLAVOR_ALLOCATE:
        return MPI_Win_allocate(creation->size_bytes, creation->disp_unit, MPI_INFO_NULL, comm,
                                &base, win);
    default:
        return MPI_Win_allocate_shared(creation->size_bytes, creation->disp_unit, MPI_INFO_NULL,
                                       comm, &base, win);
    }
}

/* The creation fails on some ranks (all, or only the last): the handler of every rank receives the
 * class, once. */
static void creation_fails(const struct creation *wrong, const struct creation *right,
                           bool everywhere, int class)
{
    MPI_Comm comm;
    MPI_Errhandler handler;
    MPI_Win win = MPI_WIN_NULL;
    const struct creation *mine = everywhere || world_rank == world_size - 1 ? wrong : right;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(note_call, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    handler_calls = 0;
    CHECK_CLASS(class, create(mine, comm, &win));
    CHECK_EQUAL(handler_calls, 1);
    CHECK_EQUAL(handler_class, class);
    CHECK(handler_comm == comm, "the handler got another communicator");
    CHECK_OK(create(right, comm, &win));
    window_watch(win);
    MPI_Win_fence(0, win);
    MPI_Win_fence(0, win);
    CHECK_OK(MPI_Win_free(&win));
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
}

/* The last one requires that all ranks share memory. */
static const int flavours[] = {MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_ALLOCATE,
                               MPI_WIN_FLAVOR_SHARED};
static char memory[64];

static void creation_fails_in_every_flavour(MPI_Aint size_bytes, int disp_unit, int class)
{
    for (size_t i = 0; i < COUNT_OF(flavours) - !ranks_share_memory(); i++) {
        struct creation wrong = {flavours[i], memory, size_bytes, disp_unit};
        struct creation right = {flavours[i], memory, 64, 4};
        creation_fails(&wrong, &right, true, class);
        creation_fails(&wrong, &right, false, class);
    }
}

static void a_negative_size_is_refused(enum window_kind kind)
{
    (void)kind;
    creation_fails_in_every_flavour(-8, 4, MPI_ERR_SIZE);
}

static void a_displacement_unit_below_one_is_refused(enum window_kind kind)
{
    (void)kind;
    creation_fails_in_every_flavour(64, 0, MPI_ERR_DISP);
    creation_fails_in_every_flavour(64, -4, MPI_ERR_DISP);
}

static void a_null_base_with_a_size_is_refused(enum window_kind kind)
{
    struct creation wrong = {MPI_WIN_FLAVOR_CREATE, NULL, 64, 1},
                    right = {MPI_WIN_FLAVOR_CREATE, memory, 64, 1};
    (void)kind;
    creation_fails(&wrong, &right, true, MPI_ERR_BASE);
    creation_fails(&wrong, &right, false, MPI_ERR_BASE);
}

/* Errors without a window or communicator go to MPI_COMM_WORLD's handler or MPI_COMM_SELF's, by the
 * version of the standard. */
static struct {
    MPI_Errhandler world, self;
} saved;

static void both_return(void)
{
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &saved.world);
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &saved.self);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
}

static void both_as_before(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, saved.world);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, saved.self);
    MPI_Errhandler_free(&saved.world);
    MPI_Errhandler_free(&saved.self);
}

static void the_null_communicator_is_refused(enum window_kind kind)
{
    MPI_Win win;
    void *base;
    (void)kind;
    both_return();
    CHECK_CLASS(MPI_ERR_COMM, MPI_Win_create(memory, 64, 1, MPI_INFO_NULL, MPI_COMM_NULL, &win));
    CHECK_CLASS(MPI_ERR_COMM, MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_NULL, &base, &win));
    CHECK_CLASS(MPI_ERR_COMM,
                MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, MPI_COMM_NULL, &base, &win));
    both_as_before();
}

static void an_intercommunicator_is_refused(enum window_kind kind)
{
    MPI_Comm half, between;
    MPI_Win win;
    void *base;
    (void)kind;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - world_rank % 2, 0, &between);
    MPI_Comm_set_errhandler(between, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_ERR_COMM, MPI_Win_create(memory, 64, 1, MPI_INFO_NULL, between, &win));
    CHECK_CLASS(MPI_ERR_COMM, MPI_Win_allocate(64, 1, MPI_INFO_NULL, between, &base, &win));
    CHECK_CLASS(MPI_ERR_COMM, MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, between, &base, &win));
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
}

/* The host would end the job: MPI_COMM_WORLD's handler stays unchanged. */
static void an_info_never_set_is_refused(enum window_kind kind)
{
    MPI_Info unset;
    MPI_Comm own;
    MPI_Win win;
    void *base;
    (void)kind;
    memset(&unset, 0, sizeof unset);
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_ERR_INFO, MPI_Win_create(memory, 64, 1, unset, own, &win));
    CHECK_CLASS(MPI_ERR_INFO, MPI_Win_allocate(64, 1, unset, own, &base, &win));
    CHECK_OK(MPI_Win_create(memory, 64, 1, MPI_INFO_NULL, own, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_ERR_INFO, MPI_Win_set_info(win, unset));
    MPI_Win_free(&win);
    MPI_Comm_free(&own);
}

static void window_handle_fails_everywhere(MPI_Win win)
{
    int value = 1, result = 0, flag;
    MPI_Aint size_bytes;
    void *base;
    MPI_Group group;
    MPI_Info info;
    CHECK_CLASS(MPI_ERR_WIN, MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Get_accumulate(&value, 1, MPI_INT, &result, 1, MPI_INT, 0, 0, 1,
                                                MPI_INT, MPI_SUM, win));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Fetch_and_op(&value, &result, MPI_INT, 0, 0, MPI_SUM, win));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Compare_and_swap(&value, &value, &result, MPI_INT, 0, 0, win));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_fence(0, win));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_start(MPI_GROUP_EMPTY, 0, win));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_complete(win));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_post(MPI_GROUP_EMPTY, 0, win));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_wait(win));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_test(win, &flag));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_unlock(0, win));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_lock_all(0, win));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_unlock_all(win));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_flush(0, win));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_flush_all(win));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_flush_local(0, win));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_flush_local_all(win));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_sync(win));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_shared_query(win, 0, &size_bytes, &flag, &base));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_get_group(win, &group));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &flag));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_get_info(win, &info));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_set_info(win, MPI_INFO_NULL));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_free(&win));
}

static void the_null_window_is_refused(enum window_kind kind)
{
    (void)kind;
    both_return();
    window_handle_fails_everywhere(MPI_WIN_NULL);
    if (through_oriel())
        CHECK_CLASS(MPI_ERR_WIN, MPI_Win_free(NULL));
    both_as_before();
}

/* The host may have reused the handle's memory. So the case calls only operations that Oriel itself
 * looks up. */
static void a_freed_window_is_refused(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 1, MPI_COMM_WORLD), copy = window;
    int value = 1;
    window_free(&window);
    both_return();
    CHECK_CLASS(MPI_ERR_WIN, MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, copy.win));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, copy.win));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_fence(0, copy.win));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_flush_all(copy.win));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_set_name(copy.win, "late"));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_set_errhandler(copy.win, MPI_ERRORS_RETURN));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_set_attr(copy.win, MPI_KEYVAL_INVALID, &value));
    CHECK_CLASS(MPI_ERR_WIN, MPI_Win_free(&copy.win));
    both_as_before();
}

static void free_in_an_open_epoch_is_refused(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    MPI_Win copy = window.win;
    CHECK_OK(MPI_Win_lock_all(0, window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_free(&copy));
    CHECK(copy == window.win, "the handle changed although the window was not freed");
    CHECK_OK(MPI_Win_unlock_all(window.win));
    CHECK_OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_free(&copy));
    CHECK_OK(MPI_Win_wait(window.win));
    CHECK_OK(MPI_Win_start(MPI_GROUP_EMPTY, 0, window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_free(&copy));
    CHECK_OK(MPI_Win_complete(window.win));
    guarded_free(&window);
}

static void a_negative_allocation_is_refused(enum window_kind kind)
{
    void *base;
    int class = MPI_SUCCESS;
    (void)kind;
    both_return();
    MPI_Error_class(MPI_Alloc_mem(-1, MPI_INFO_NULL, &base), &class);
    CHECK(class == MPI_ERR_ARG || class == MPI_ERR_SIZE || class == MPI_ERR_NO_MEM, "class %d",
          class);
    both_as_before();
}

static const struct test_case cases[] = {
    CASE(a_negative_size_is_refused, KIND_ANY, 1),
    CASE(a_displacement_unit_below_one_is_refused, KIND_ANY, 1),
    CASE(a_null_base_with_a_size_is_refused, KIND_ANY, 1),
    CASE(the_null_communicator_is_refused, KIND_ANY, 1),
    CASE(an_intercommunicator_is_refused, KIND_ANY, 2),
    CASE(an_info_never_set_is_refused, KIND_ANY, 1),
    CASE(the_null_window_is_refused, KIND_ANY, 1),
    CASE(a_freed_window_is_refused, KINDS_BOTH, 1),
    CASE(free_in_an_open_epoch_is_refused, KINDS_BOTH, 1),
    CASE(a_negative_allocation_is_refused, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
