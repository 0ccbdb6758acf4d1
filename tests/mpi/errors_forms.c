/* Every wrong argument in every form of every operation, under MPI_ERRORS_RETURN and under a
 * handler of the program. Each argument has its own class, the handler is called once, and no byte
 * changes: neither in nor around the target's window, nor in the origin's buffers. A plain MPI
 * program, run by the test rows. */
#include "errors.h"
#include "operation_forms.h"

#include <limits.h>
#include <stdlib.h>

enum {
    ZONE_BYTES = 128,
    WHOLE_BYTES = ZONE_BYTES + GUARD_BYTES + ZONE_BYTES,
    BUFFER_WORDS = 2 * RANGE_WORDS
};

static int64_t origin_buffer[BUFFER_WORDS];
static int64_t result_buffer[BUFFER_WORDS];
static int64_t compare_buffer[2];

static struct {
    int calls;
    int class;
    MPI_Win win;
} handled_calls;

static void note_call(MPI_Win *win, int *code, ...)
{
    handled_calls.calls++;
    handled_calls.win = *win;
    MPI_Error_class(*code, &handled_calls.class);
}

/* A window with guard bytes on either side of it, where the program supplies the memory. */
struct zoned {
    struct window window;
    unsigned char *whole; /* NULL: the library supplies the memory */
    MPI_Errhandler handler;
};

static struct zoned zoned_make(enum window_kind kind)
{
    struct zoned zoned = {.whole = NULL};
    if (kind == KIND_HEAP || kind == KIND_ARENA) {
        if (kind == KIND_ARENA)
            MPI_Alloc_mem(WHOLE_BYTES, MPI_INFO_NULL, &zoned.whole);
        else
            zoned.whole = malloc(WHOLE_BYTES);
        memset(zoned.whole, GUARD_BYTE, WHOLE_BYTES);
        zoned.window.kind = kind;
        zoned.window.base = (char *)zoned.whole + ZONE_BYTES;
        MPI_Win_create(zoned.window.base, GUARD_BYTES, 8, MPI_INFO_NULL, MPI_COMM_WORLD,
                       &zoned.window.win);
    } else {
        zoned.window = guarded_make(kind);
    }
    MPI_Win_set_errhandler(zoned.window.win, MPI_ERRORS_RETURN);
    MPI_Win_create_errhandler(note_call, &zoned.handler);
    memset(origin_buffer, GUARD_BYTE, sizeof origin_buffer);
    memset(result_buffer, GUARD_BYTE, sizeof result_buffer);
    memset(compare_buffer, GUARD_BYTE, sizeof compare_buffer);
    barrier(MPI_COMM_WORLD);
    return zoned;
}

static void buffer_check(const void *buffer, size_t len_bytes, const char *what)
{
    const unsigned char *byte = buffer;
    for (size_t i = 0; i < len_bytes; i++)
        if (!CHECK(byte[i] == GUARD_BYTE, "byte %zu of the %s changed", i, what))
            return;
}

/* As guarded_free, with the guard bytes; the origin's buffers belong to no window. */
static void zoned_free(struct zoned *zoned)
{
    barrier(MPI_COMM_WORLD);
    buffer_check(origin_buffer, sizeof origin_buffer, "origin buffer");
    buffer_check(result_buffer, sizeof result_buffer, "result buffer");
    if (zoned->whole) {
        buffer_check(zoned->whole, ZONE_BYTES, "zone before the window");
        buffer_check(zoned->whole + ZONE_BYTES + GUARD_BYTES, ZONE_BYTES, "zone after the window");
    }
    MPI_Win_set_errhandler(zoned->window.win, MPI_ERRORS_RETURN);
    bool arena = zoned->window.kind == KIND_ARENA;
    if (zoned->whole)
        zoned->window.kind = KIND_ANY; /* the memory is not of the kind that window_free expects */
    guarded_free(&zoned->window);
    if (zoned->whole)
        buffer_check(zoned->whole + ZONE_BYTES + GUARD_BYTES, ZONE_BYTES,
                     "zone after the last put");
    if (arena)
        MPI_Free_mem(zoned->whole);
    else
        free(zoned->whole);
    MPI_Errhandler_free(&zoned->handler);
}

static struct arguments right_arguments(void)
{
    return (struct arguments){origin_buffer,    1, MPI_INT64_T, result_buffer, 1,      MPI_INT64_T,
                              guarded_target(), 3, 1,           MPI_INT64_T,   MPI_SUM};
}

/* Calls once for the returned code and once for the handler. */
static void call_fails(struct zoned *zoned, enum operation operation, int form,
                       const struct arguments *a, int class, const char *what)
{
    for (int handled = 0; handled < 2; handled++) {
        MPI_Request request = MPI_REQUEST_NULL;
        int code_class = MPI_SUCCESS;
        MPI_Win_set_errhandler(zoned->window.win, handled ? zoned->handler : MPI_ERRORS_RETURN);
        handled_calls.calls = 0;
        MPI_Error_class(form_call(operation, form, a, zoned->window.win, &request), &code_class);
        CHECK(code_class == class, "%s in %s returns class %d, not %d", what,
              form_name(operation, form), code_class, class);
        CHECK(request == MPI_REQUEST_NULL, "%s in %s returns a request", what,
              form_name(operation, form));
        CHECK(handled_calls.calls == handled, "%s in %s: %d calls of the handler", what,
              form_name(operation, form), handled_calls.calls);
        if (handled)
            CHECK(handled_calls.class == class && handled_calls.win == zoned->window.win,
                  "%s in %s: the handler hears class %d", what, form_name(operation, form),
                  handled_calls.class);
    }
}

static void every_form_fails(struct zoned *zoned, int operations, const struct arguments *a,
                             int class, const char *what)
{
    int forms = forms_available();
    for (int operation = 0; operation < OPERATIONS; operation++)
        for (int form = 0; form < forms && (operations >> operation & 1); form++)
            call_fails(zoned, (enum operation)operation, form, a, class, what);
}

enum {
    MOVES = 1 << OPERATION_PUT | 1 << OPERATION_GET,
    UPDATES = 1 << OPERATION_ACCUMULATE | 1 << OPERATION_GET_ACCUMULATE,
    ALL = MOVES | UPDATES,
    FETCHES = 1 << OPERATION_GET_ACCUMULATE
};

#define FAILS(operations, class, change)                                                           \
    do {                                                                                           \
        struct arguments a = right_arguments();                                                    \
        change;                                                                                    \
        every_form_fails(zoned, operations, &a, class, #change);                                   \
    } while (0)

static void single_fails(struct zoned *zoned, MPI_Datatype type, int target, MPI_Aint disp,
                         int class)
{
    MPI_Win win = zoned->window.win;
    for (int handled = 0; handled < 2; handled++) {
        MPI_Win_set_errhandler(win, handled ? zoned->handler : MPI_ERRORS_RETURN);
        handled_calls.calls = 0;
        CHECK_CLASS(class, MPI_Fetch_and_op(origin_buffer, result_buffer, type, target, disp,
                                            MPI_SUM, win));
        CHECK_EQUAL(handled_calls.calls, handled);
        CHECK_CLASS(class, MPI_Compare_and_swap(origin_buffer, compare_buffer, result_buffer, type,
                                                target, disp, win));
        CHECK_EQUAL(handled_calls.calls, 2 * handled);
    }
}

static void wrong_ranks(struct zoned *zoned)
{
    FAILS(ALL, MPI_ERR_RANK, a.target = world_size);
    FAILS(ALL, MPI_ERR_RANK, a.target = -100);
    FAILS(ALL, MPI_ERR_RANK, a.target = INT_MAX);
    FAILS(ALL, MPI_ERR_RANK, a.target = INT_MIN);
    single_fails(zoned, MPI_INT64_T, world_size, 0, MPI_ERR_RANK);
    single_fails(zoned, MPI_INT64_T, INT_MIN, 0, MPI_ERR_RANK);
}

static void wrong_counts(struct zoned *zoned)
{
    FAILS(ALL, MPI_ERR_COUNT, a.origin_count = -1);
    FAILS(ALL, MPI_ERR_COUNT, a.target_count = -1);
    FAILS(ALL, MPI_ERR_COUNT, a.target_count = INT_MIN);
    FAILS(FETCHES, MPI_ERR_COUNT, a.result_count = -1);
}

static void wrong_types(struct zoned *zoned)
{
    MPI_Datatype raw;
    MPI_Type_contiguous(1, MPI_INT64_T, &raw);
    FAILS(ALL, MPI_ERR_TYPE, a.origin_type = MPI_DATATYPE_NULL);
    FAILS(ALL, MPI_ERR_TYPE, a.target_type = MPI_DATATYPE_NULL);
    FAILS(FETCHES, MPI_ERR_TYPE, a.result_type = MPI_DATATYPE_NULL);
    FAILS(ALL, MPI_ERR_TYPE, a.origin_type = raw);
    FAILS(ALL, MPI_ERR_TYPE, a.target_type = raw);
    FAILS(FETCHES, MPI_ERR_TYPE, a.result_type = raw);
    FAILS(UPDATES, MPI_ERR_TYPE, a.origin_type = MPI_DOUBLE);
    FAILS(UPDATES, MPI_ERR_TYPE, a.target_type = MPI_UINT64_T);
    FAILS(FETCHES, MPI_ERR_TYPE, a.result_type = MPI_DOUBLE_INT);
    single_fails(zoned, MPI_DATATYPE_NULL, guarded_target(), 3, MPI_ERR_TYPE);
    MPI_Type_free(&raw);
}

/* A computing accumulate rejects two different predefined types in one derived type. It also
 * rejects pairs with padding in a result of other types. */
static void wrong_mixtures(struct zoned *zoned)
{
    const int lengths[] = {1, 1};
    const MPI_Aint displs[] = {0, 8};
    const MPI_Datatype parts[] = {MPI_INT64_T, MPI_DOUBLE_INT};
    MPI_Datatype mixture;
    MPI_Type_create_struct(2, lengths, displs, parts, &mixture);
    MPI_Type_commit(&mixture);
    FAILS(UPDATES, MPI_ERR_TYPE, a.origin_type = mixture);
    FAILS(UPDATES, MPI_ERR_TYPE, a.target_type = mixture);
    FAILS(UPDATES, MPI_ERR_TYPE, a.origin_type = a.target_type = a.result_type = mixture);
    FAILS(FETCHES, MPI_ERR_TYPE, a.result_type = mixture);
    MPI_Type_free(&mixture);
}

static void add_up(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)in;
    (void)inout;
    (void)count;
    (void)type;
}

static void wrong_operators(struct zoned *zoned)
{
    MPI_Op user;
    MPI_Op_create(add_up, 1, &user);
    FAILS(UPDATES, MPI_ERR_OP, a.op = user);
    FAILS(UPDATES, MPI_ERR_OP, a.op = MPI_OP_NULL);
    FAILS(UPDATES, MPI_ERR_OP, a.op = MPI_MAXLOC);
    FAILS(UPDATES, MPI_ERR_OP,
          (a.op = MPI_BXOR, a.origin_type = a.target_type = a.result_type = MPI_DOUBLE));
    FAILS(1 << OPERATION_ACCUMULATE, MPI_ERR_OP, a.op = MPI_NO_OP);
    MPI_Op_free(&user);
}

static void wrong_places(struct zoned *zoned)
{
    MPI_Datatype before;
    const int length = 1;
    const MPI_Aint backwards = -8;
    MPI_Type_create_hindexed(1, &length, &backwards, MPI_INT64_T, &before);
    MPI_Type_commit(&before);
    FAILS(ALL, MPI_ERR_DISP, a.disp = -1);
    FAILS(ALL, MPI_ERR_RMA_RANGE, a.disp = RANGE_WORDS);
    FAILS(ALL, MPI_ERR_RMA_RANGE, a.disp = PTRDIFF_MAX);
    FAILS(ALL, MPI_ERR_DISP, a.disp = PTRDIFF_MIN);
    FAILS(ALL, MPI_ERR_RMA_RANGE, a.disp = PTRDIFF_MAX / 8 + 1);
    FAILS(ALL, MPI_ERR_RMA_RANGE,
          (a.disp = RANGE_WORDS - 1, a.origin_count = a.target_count = a.result_count = 2));
    FAILS(ALL, MPI_ERR_RMA_RANGE,
          (a.disp = 0, a.origin_count = a.target_count = a.result_count = RANGE_WORDS + 1));
    FAILS(ALL, MPI_ERR_RMA_RANGE, (a.disp = 0, a.target_type = before));
    single_fails(zoned, MPI_INT64_T, guarded_target(), -1, MPI_ERR_DISP);
    single_fails(zoned, MPI_INT64_T, guarded_target(), RANGE_WORDS, MPI_ERR_RMA_RANGE);
    single_fails(zoned, MPI_INT64_T, guarded_target(), PTRDIFF_MAX, MPI_ERR_RMA_RANGE);
    MPI_Type_free(&before);
}

/* The same counts as int and as MPI_Count: values that overflow 32, 63 and 64 bits. */
static void wrong_large_counts(struct zoned *zoned)
{
    static const MPI_Count counts[] = {(MPI_Count)1 << 31, ((MPI_Count)1 << 32) + 1,
                                       (MPI_Count)1 << 61, INT64_MAX};
    for (size_t i = 0; i < COUNT_OF(counts) && forms_available() == FORMS; i++)
        for (int operation = 0; operation < OPERATIONS; operation++) {
            struct arguments a = right_arguments();
            a.origin_count = a.target_count = a.result_count = counts[i];
            call_fails(zoned, (enum operation)operation, FORM_LARGE, &a, MPI_ERR_RMA_RANGE,
                       "large count");
            call_fails(zoned, (enum operation)operation, FORM_LARGE | FORM_REQUEST, &a,
                       MPI_ERR_RMA_RANGE, "large count");
            a = right_arguments();
            a.origin_count = a.target_count = a.result_count = -counts[i];
            call_fails(zoned, (enum operation)operation, FORM_LARGE, &a, MPI_ERR_COUNT,
                       "large negative count");
        }
}

static void sides_that_do_not_fit(struct zoned *zoned)
{
    FAILS(1 << OPERATION_PUT | UPDATES, MPI_ERR_TRUNCATE, a.origin_count = 2);
    FAILS(1 << OPERATION_GET, MPI_ERR_TRUNCATE, a.target_count = 2);
    FAILS(FETCHES, MPI_ERR_TRUNCATE, (a.target_count = a.origin_count = 2));
}

static void inside_a_lock(enum window_kind kind, void (*wrong)(struct zoned *zoned))
{
    struct zoned zoned = zoned_make(kind);
    CHECK_OK(MPI_Win_lock_all(0, zoned.window.win));
    wrong(&zoned);
    CHECK_OK(MPI_Win_unlock_all(zoned.window.win));
    zoned_free(&zoned);
}

static void wrong_ranks_fail_in_every_form(enum window_kind kind)
{
    inside_a_lock(kind, wrong_ranks);
}
static void wrong_counts_fail_in_every_form(enum window_kind kind)
{
    inside_a_lock(kind, wrong_counts);
}
static void wrong_types_fail_in_every_form(enum window_kind kind)
{
    inside_a_lock(kind, wrong_types);
}
static void mixtures_of_types_fail_in_every_form(enum window_kind kind)
{
    inside_a_lock(kind, wrong_mixtures);
}
static void wrong_operators_fail_in_every_form(enum window_kind kind)
{
    inside_a_lock(kind, wrong_operators);
}
static void places_outside_fail_in_every_form(enum window_kind kind)
{
    inside_a_lock(kind, wrong_places);
}
static void counts_that_overflow_fail_in_large_forms(enum window_kind kind)
{
    inside_a_lock(kind, wrong_large_counts);
}
static void sides_that_do_not_fit_fail_in_every_form(enum window_kind kind)
{
    inside_a_lock(kind, sides_that_do_not_fit);
}

static void operations_outside_an_epoch_fail_in_every_form(enum window_kind kind)
{
    struct zoned made = zoned_make(kind), *zoned = &made;
    FAILS(ALL, MPI_ERR_RMA_SYNC, a.disp = 0);
    FAILS(ALL, MPI_ERR_RMA_SYNC, a.target = world_rank);
    single_fails(zoned, MPI_INT64_T, guarded_target(), 0, MPI_ERR_RMA_SYNC);
    zoned_free(&made);
}

static void wrong_buffers(struct zoned *zoned)
{
    FAILS(ALL, MPI_ERR_BUFFER, a.origin = NULL);
    FAILS(FETCHES, MPI_ERR_BUFFER, a.result = NULL);
}

/* For each kind of refusal: after a fence with no other call, the epoch can be closed and the
 * window freed. */
static void a_refused_operation_uses_no_fence_epoch(enum window_kind kind)
{
    static void (*const wrongs[])(struct zoned * zoned) = {
        wrong_ranks,     wrong_counts, wrong_types,           wrong_mixtures,
        wrong_operators, wrong_places, sides_that_do_not_fit, wrong_buffers};
    struct zoned zoned = zoned_make(kind);
    MPI_Win win = zoned.window.win;
    for (size_t i = 0; i < COUNT_OF(wrongs); i++) {
        CHECK_OK(MPI_Win_fence(0, win));
        wrongs[i](&zoned);
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        CHECK(MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, win) == MPI_SUCCESS &&
                  MPI_Win_unlock(world_rank, win) == MPI_SUCCESS,
              "refusals of kind %zu have used the epoch", i);
    }
    CHECK_OK(MPI_Win_fence(0, win));
    wrong_operators(&zoned);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    if (kind == KIND_ALLOCATE) {
        CHECK_OK(MPI_Win_free(&win));
        MPI_Errhandler_free(&zoned.handler);
        return;
    }
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    zoned_free(&zoned);
}

/* An operation that moves nothing still counts: its epoch is used. */
static void an_operation_without_elements_uses_the_fence_epoch(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    CHECK_OK(MPI_Win_fence(0, window.win));
    CHECK_OK(
        MPI_Put(origin_buffer, 0, MPI_INT64_T, guarded_target(), 0, 0, MPI_INT64_T, window.win));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, window.win));
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
    guarded_free(&window);
}

static const struct test_case cases[] = {
    CASE(wrong_ranks_fail_in_every_form, KINDS_ALL, 1),
    CASE(wrong_counts_fail_in_every_form, KINDS_ALL, 1),
    CASE(wrong_types_fail_in_every_form, KINDS_ALL, 1),
    CASE(mixtures_of_types_fail_in_every_form, KINDS_ALL, 1),
    CASE(wrong_operators_fail_in_every_form, KINDS_ALL, 1),
    CASE(places_outside_fail_in_every_form, KINDS_ALL, 1),
    CASE(counts_that_overflow_fail_in_large_forms, KINDS_BOTH, 1),
    CASE(sides_that_do_not_fit_fail_in_every_form, KINDS_ALL, 1),
    CASE(operations_outside_an_epoch_fail_in_every_form, KINDS_ALL, 1),
    CASE(a_refused_operation_uses_no_fence_epoch, KINDS_ALL, 1),
    CASE(an_operation_without_elements_uses_the_fence_epoch, KINDS_BOTH, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
