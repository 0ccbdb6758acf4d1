/* Windows over communicators during their free: delete callbacks of attributes make windows, or
 * refuse, in which case the communicator stays and gets windows again. On some ranks the attribute
 * is older than the first window, on others younger, since hosts differ in the order in which they
 * delete attributes. A plain MPI program, run by the test rows. */
#include "harness.h"

#include <setjmp.h>
#include <stdlib.h>

enum { ROUNDS = 3, ORDERS = 4, NESTS = 12 };

/* An object cached on a communicator, and the behaviour of its delete callback. */
struct cached {
    int windows;  /* that the callback makes over the communicator */
    int refusals; /* before it returns success */
    int calls;
};

static int early_keyval; /* made before any window */
static int late_keyval;

/* Collective over comm: each rank puts a word to its right neighbour. */
static void use_a_window(MPI_Comm comm, int64_t mark)
{
    int64_t *base;
    MPI_Win win;
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int64_t value = 100 * mark + rank;
    if (!CHECK_OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, comm, &base, &win)))
        return;
    base[0] = -1;
    CHECK_OK(MPI_Win_fence(0, win));
    CHECK_OK(MPI_Put(&value, 1, MPI_INT64_T, (rank + 1) % size, 0, 1, MPI_INT64_T, win));
    CHECK_OK(MPI_Win_fence(0, win));
    CHECK_EQUAL(base[0], 100 * mark + (rank + size - 1) % size);
    CHECK_OK(MPI_Win_free(&win));
}

static int comm_deleted(MPI_Comm comm, int keyval, void *value, void *extra)
{
    struct cached *cached = value;
    (void)keyval;
    (void)extra;
    cached->calls++;
    for (int i = 0; i < cached->windows; i++)
        use_a_window(comm, 10 + i);
    return cached->refusals-- > 0 ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* This rank's choice in this order: 0 and 1 are the same on all ranks, in 2 and 3 even and odd
 * ranks differ. */
static bool is_first(int order)
{
    return order < 2 ? order == 0 : world_rank % 2 == order % 2;
}

static void make_keyvals(void)
{
    static bool made;
    if (made)
        return;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, comm_deleted, &early_keyval, NULL);
    use_a_window(MPI_COMM_WORLD, 0);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, comm_deleted, &late_keyval, NULL);
    made = true;
}

/* A communicator with a shared rendezvous table, where Oriel has one, and with cached. */
static MPI_Comm make_communicator(int order, int keyval, struct cached *cached)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(
        MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* one host reports there that MPI_Comm_free failed */
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (is_first(order))
        MPI_Comm_set_attr(comm, keyval, cached);
    use_a_window(comm, 1);
    use_a_window(comm, 2);
    if (!is_first(order))
        MPI_Comm_set_attr(comm, keyval, cached);
    return comm;
}

/* In some orders the keyvals differ too: one host deletes in their order. */
static int keyval_of(int order, int round)
{
    return round % 2 == 0 || is_first(order) ? early_keyval : late_keyval;
}

static void delete_callbacks_make_windows(enum window_kind kind)
{
    (void)kind;
    make_keyvals();
    for (int round = 0; round < ROUNDS; round++) {
        for (int order = 0; order < ORDERS; order++) {
            struct cached cached = {.windows = 1 + round % 3};
            MPI_Comm comm = make_communicator(order, keyval_of(order, round), &cached);
            if (round % 3 == 2)
                CHECK_OK(MPI_Comm_disconnect(&comm));
            else
                CHECK_OK(MPI_Comm_free(&comm));
            CHECK(comm == MPI_COMM_NULL, "the communicator is still there");
            CHECK_EQUAL(cached.calls, 1);
        }
    }
}

/* On one rank the callback runs in MPI_Comm_free, on the others when they delete the attribute. */
static void callbacks_of_different_calls_make_one_window(enum window_kind kind)
{
    (void)kind;
    make_keyvals();
    for (int order = 0; order < ORDERS; order++) {
        struct cached cached = {.windows = 2};
        int keyval = keyval_of(order, 1);
        MPI_Comm comm = make_communicator(order, keyval, &cached);
        if (world_rank != order % world_size)
            CHECK_OK(MPI_Comm_delete_attr(comm, keyval));
        CHECK_OK(MPI_Comm_free(&comm));
        CHECK_EQUAL(cached.calls, 1);
    }
}

/* The communicator has had no window before. */
static void a_callback_makes_the_first_window(enum window_kind kind)
{
    (void)kind;
    make_keyvals();
    for (int order = 0; order < ORDERS; order++) {
        struct cached cached = {.windows = 2};
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_attr(comm, early_keyval, &cached);
        MPI_Comm_set_attr(comm, late_keyval, &cached);
        if (order % 2 == 0)
            CHECK_OK(MPI_Comm_delete_attr(comm, order == 0 ? early_keyval : late_keyval));
        if (order == 2)
            use_a_window(comm, 3);
        CHECK_OK(MPI_Comm_free(&comm));
        CHECK_EQUAL(cached.calls, 2);
    }
}

static void a_communicator_that_could_not_be_freed_has_windows_again(enum window_kind kind)
{
    (void)kind;
    make_keyvals();
    for (int round = 0; round < ROUNDS; round++) {
        for (int order = 0; order < ORDERS; order++) {
            struct cached cached = {.refusals = 1, .windows = round % 2};
            MPI_Comm comm = make_communicator(order, keyval_of(order, round), &cached);
            CHECK(MPI_Comm_free(&comm) != MPI_SUCCESS, "MPI_Comm_free went through");
            cached.windows = 0;
            if (!CHECK(comm != MPI_COMM_NULL, "the communicator was freed"))
                return;
            for (int i = 0; i < 4; i++)
                use_a_window(comm, 20 + i);
            CHECK_OK(MPI_Comm_free(&comm));
        }
    }
}

/* The hosts allow this, since their MPI_Comm_free does not wait. */
static void one_rank_alone_could_not_free_it(enum window_kind kind)
{
    (void)kind;
    make_keyvals();
    for (int round = 0; round < ROUNDS; round++) {
        for (int order = 0; order < ORDERS; order++) {
            struct cached cached = {.refusals = world_rank == round % world_size};
            MPI_Comm comm = make_communicator(order, keyval_of(order, round), &cached);
            if (cached.refusals > 0)
                CHECK(MPI_Comm_free(&comm) != MPI_SUCCESS, "MPI_Comm_free went through");
            for (int i = 0; i < 4; i++)
                use_a_window(comm, 30 + i);
            CHECK_OK(MPI_Comm_free(&comm));
        }
    }
}

/* A communicator whose callback frees a second one; the second one's callback makes windows over
 * both. */
struct nest {
    MPI_Comm outer, inner;
    int calls;
};

static int use_both(MPI_Comm comm, int keyval, void *value, void *extra)
{
    struct nest *nest = value;
    (void)keyval;
    (void)extra;
    nest->calls++;
    use_a_window(nest->outer, 40);
    use_a_window(comm, 41);
    use_a_window(nest->outer, 42);
    return MPI_SUCCESS;
}

static int free_the_inner(MPI_Comm comm, int keyval, void *value, void *extra)
{
    struct nest *nest = value;
    (void)keyval;
    (void)extra;
    nest->calls++;
    nest->outer = comm;
    use_a_window(comm, 43);
    CHECK_OK(nest->calls % 4 == 1 ? MPI_Comm_free(&nest->inner)
                                  : MPI_Comm_disconnect(&nest->inner));
    use_a_window(comm, 44);
    return MPI_SUCCESS;
}

/* Many rounds, so the hosts reuse the handles. Errors end the program: most have no other
 * handler. */
static void callbacks_that_free_other_communicators_make_windows(enum window_kind kind)
{
    (void)kind;
    int outer_keyval, inner_keyval;
    struct nest nest = {.calls = 0};
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_the_inner, &outer_keyval, NULL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, use_both, &inner_keyval, NULL);
    for (int round = 0; round < NESTS; round++) {
        MPI_Comm outer;
        MPI_Comm_dup(MPI_COMM_WORLD, &outer);
        MPI_Comm_dup(MPI_COMM_WORLD, &nest.inner);
        MPI_Comm_set_errhandler(outer, MPI_ERRORS_ARE_FATAL);
        MPI_Comm_set_errhandler(nest.inner, MPI_ERRORS_ARE_FATAL);
        if (round % 2 == 1)
            use_a_window(outer, 45);
        MPI_Comm_set_attr(outer, outer_keyval, &nest);
        use_a_window(nest.inner, 46);
        MPI_Comm_set_attr(nest.inner, inner_keyval, &nest);
        CHECK_OK(MPI_Comm_free(&outer));
        CHECK(outer == MPI_COMM_NULL && nest.inner == MPI_COMM_NULL,
              "a communicator is still there");
        CHECK_EQUAL(nest.calls, 2 * (round + 1));
        use_a_window(MPI_COMM_WORLD, 47);
    }
    MPI_Comm_free_keyval(&outer_keyval);
    MPI_Comm_free_keyval(&inner_keyval);
}

static jmp_buf before_free;

static void jump_back(MPI_Comm *failed, int *code, ...)
{
    (void)failed;
    (void)code;
    longjmp(before_free, 1);
}

/* Whether an error handler left the call. Communicator and MPI_COMM_WORLD have the handler: hosts
 * differ in which one they call. */
static bool is_left_by_a_jump(MPI_Comm *comm)
{
    struct cached refusing = {.refusals = 1};
    MPI_Errhandler jumping, of_comm, of_world;
    volatile bool was_left = true;
    MPI_Comm_create_errhandler(jump_back, &jumping);
    MPI_Comm_get_errhandler(*comm, &of_comm);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &of_world);
    MPI_Comm_set_errhandler(*comm, jumping);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, jumping);
    MPI_Comm_set_attr(*comm, late_keyval, &refusing);
    if (setjmp(before_free) == 0) {
        MPI_Comm_free(comm);
        was_left = false;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, of_world);
    if (*comm != MPI_COMM_NULL)
        MPI_Comm_set_errhandler(*comm, of_comm);
    refusing.refusals = 0;
    MPI_Comm_delete_attr(*comm, late_keyval); /* one host has lost it */
    MPI_Errhandler_free(&jumping);
    return was_left;
}

static int leave_the_inner(MPI_Comm comm, int keyval, void *value, void *extra)
{
    struct nest *nest = value;
    (void)keyval;
    (void)extra;
    nest->calls++;
    CHECK(is_left_by_a_jump(&nest->inner), "the inner MPI_Comm_free returned");
    use_a_window(comm, 50);
    return MPI_SUCCESS;
}

/* The stack below the calls is used again, by the windows and by the frees that follow. */
static void error_handlers_leave_the_free_by_a_jump(enum window_kind kind)
{
    (void)kind;
    int outer_keyval;
    make_keyvals();
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, leave_the_inner, &outer_keyval, NULL);
    for (int round = 0; round < NESTS; round++) {
        struct nest nest = {.calls = 0};
        MPI_Comm outer;
        MPI_Comm_dup(MPI_COMM_WORLD, &outer);
        MPI_Comm_dup(MPI_COMM_WORLD, &nest.inner);
        MPI_Comm_set_errhandler(nest.inner, MPI_ERRORS_RETURN);
        if (round % 2 == 1)
            use_a_window(nest.inner, 54);
        MPI_Comm_set_attr(outer, outer_keyval, &nest);
        CHECK(is_left_by_a_jump(&nest.inner), "MPI_Comm_free returned");
        use_a_window(nest.inner, 51);
        CHECK_OK(MPI_Comm_free(&outer));
        CHECK_EQUAL(nest.calls, 1);
        use_a_window(nest.inner, 52);
        CHECK_OK(MPI_Comm_free(&nest.inner));
        use_a_window(MPI_COMM_WORLD, 53);
    }
    MPI_Comm_free_keyval(&outer_keyval);
}

static const struct test_case cases[] = {
    CASE(delete_callbacks_make_windows, KIND_ANY, 1),
    CASE(callbacks_of_different_calls_make_one_window, KIND_ANY, 1),
    CASE(a_callback_makes_the_first_window, KIND_ANY, 1),
    CASE(a_communicator_that_could_not_be_freed_has_windows_again, KIND_ANY, 1),
    CASE(one_rank_alone_could_not_free_it, KIND_ANY, 1),
    CASE(callbacks_that_free_other_communicators_make_windows, KIND_ANY, 1),
    CASE(error_handlers_leave_the_free_by_a_jump, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
