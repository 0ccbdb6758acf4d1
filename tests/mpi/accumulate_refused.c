/* Invalid accumulates: an operator on a type for which MPI does not define it, a user-defined
 * operator, MPI_NO_OP without a result. Every call that takes an operator raises MPI_ERR_OP at the
 * window's error handler and changes nothing. Three cases pass: arithmetic beyond the standard that
 * hosts tolerate, any types if no data moves, and different types that are only copied. A plain MPI
 * program, run by the test rows; hosts crash on some of these calls or accept them. */
#include "types.h"

#include <string.h>

enum { ELEMENTS = 3, BYTES = ELEMENTS * TYPE_MAX_BYTES, AT = 32, WINDOW_BYTES = 256 };

static int right_of(int rank)
{
    return (rank + 1) % world_size;
}

/* A window whose errors return. Its owner fills it with a pattern that is valid for each type. */
static struct window refusing_make(enum window_kind kind)
{
    struct window window = window_make(kind, WINDOW_BYTES, 1, MPI_COMM_WORLD);
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    memset(window.base, 1, WINDOW_BYTES);
    MPI_Win_sync(window.win);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    return window;
}

static void refusing_free(struct window *window)
{
    MPI_Win_unlock_all(window->win);
    barrier(MPI_COMM_WORLD);
    window_free(window);
}

static bool all_are(const unsigned char *bytes, size_t len_bytes, unsigned char value)
{
    for (size_t i = 0; i < len_bytes; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

struct attempt {
    MPI_Win win;
    MPI_Datatype type;
    MPI_Op op;
    const char *type_name, *op_name;
    unsigned char origin[BYTES], result[BYTES];
};

enum { CALLS = 5, FIRST_WITH_RESULT = 2 };

static int call(struct attempt *a, int which, int count)
{
    int to = right_of(world_rank);
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_SUCCESS;
    switch (which) {
    case 0: return MPI_Accumulate(a->origin, count, a->type, to, AT, count, a->type, a->op, a->win);
    case 1:
        code = MPI_Raccumulate(a->origin, count, a->type, to, AT, count, a->type, a->op, a->win,
                               &request);
        break;
    case 2:
        return MPI_Get_accumulate(a->origin, count, a->type, a->result, count, a->type, to, AT,
                                  count, a->type, a->op, a->win);
    case 3:
        code = MPI_Rget_accumulate(a->origin, count, a->type, a->result, count, a->type, to, AT,
                                   count, a->type, a->op, a->win, &request);
        break;
    default: return MPI_Fetch_and_op(a->origin, a->result, a->type, to, AT, a->op, a->win);
    }
    if (code == MPI_SUCCESS)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    return code;
}

static void target_read(const struct attempt *a, unsigned char *bytes)
{
    MPI_Get(bytes, WINDOW_BYTES, MPI_BYTE, right_of(world_rank), 0, WINDOW_BYTES, MPI_BYTE, a->win);
    MPI_Win_flush(right_of(world_rank), a->win);
}

/* Calls from the given one on, with one element and with several. */
static void all_calls_refuse(struct attempt *a, int first)
{
    unsigned char now[WINDOW_BYTES];
    for (int which = first; which < CALLS; which++) {
        for (int count = 1; count <= ELEMENTS; count += ELEMENTS - 1) {
            int code, class = MPI_SUCCESS;
            memset(a->origin, 2, sizeof a->origin);
            memset(a->result, 3, sizeof a->result);
            code = call(a, which, count);
            if (code != MPI_SUCCESS)
                MPI_Error_class(code, &class);
            CHECK(class == MPI_ERR_OP, "%s on %s by call %d gave class %d", a->op_name,
                  a->type_name, which, class);
            MPI_Win_flush(right_of(world_rank), a->win);
            CHECK(all_are(a->result, sizeof a->result, 3), "%s on %s by call %d wrote a result",
                  a->op_name, a->type_name, which);
        }
    }
    target_read(a, now);
    CHECK(all_are(now, sizeof now, 1), "%s on %s changed the target", a->op_name, a->type_name);
}

static void operators_on_types_without_them_are_refused(enum window_kind kind)
{
    struct window window = refusing_make(kind);
    for (size_t i = 0; i < test_type_count; i++) {
        for (size_t j = 0; j < test_op_count; j++) {
            struct attempt a = {.win = window.win,
                                .type = test_types[i].type,
                                .op = test_ops[j].op,
                                .type_name = test_types[i].name,
                                .op_name = test_ops[j].name};
            if (type_exists(&test_types[i]) && !type_allows(&test_types[i], a.op) &&
                !type_tolerates(&test_types[i], a.op))
                all_calls_refuse(&a, 0);
        }
    }
    refusing_free(&window);
}

/* Elements of random bytes. A change in the window's bytes before or after them is an error. */
static void tolerated_call(struct attempt *a, const struct test_type *type, int which,
                           struct random *random)
{
    unsigned char old[WINDOW_BYTES], wanted[WINDOW_BYTES], now[WINDOW_BYTES];
    const int target = right_of(world_rank), count = which == CALLS - 1 ? 1 : ELEMENTS;
    const size_t bytes = type->extent_bytes;
    for (size_t i = 0; i < WINDOW_BYTES; i++)
        old[i] = (unsigned char)random_next(random);
    for (size_t i = 0; i < BYTES; i++)
        a->origin[i] = (unsigned char)random_next(random);
    MPI_Put(old, WINDOW_BYTES, MPI_BYTE, target, 0, WINDOW_BYTES, MPI_BYTE, a->win);
    MPI_Win_flush(target, a->win);
    memcpy(wanted, old, sizeof wanted);
    for (int i = 0; i < count; i++)
        type_apply(type, a->op, wanted + AT + (size_t)i * bytes, a->origin + (size_t)i * bytes);
    CHECK_OK(call(a, which, count));
    MPI_Win_flush(target, a->win);
    target_read(a, now);
    CHECK(memcmp(now, wanted, sizeof now) == 0, "%s on %s by call %d computes otherwise",
          a->op_name, a->type_name, which);
    CHECK(which < FIRST_WITH_RESULT || memcmp(a->result, old + AT, (size_t)count * bytes) == 0,
          "%s on %s by call %d: other result", a->op_name, a->type_name, which);
}

/* MPI does not define these combinations, and hosts compute them: bytes as unsigned integers,
 * characters as signed ones. */
static void arithmetic_that_hosts_tolerate_is_computed(enum window_kind kind)
{
    struct window window = refusing_make(kind);
    struct random random = random_start((uint64_t)world_rank);
    for (size_t i = 0; i < test_type_count; i++) {
        for (size_t j = 0; j < test_op_count; j++) {
            struct attempt a = {.win = window.win,
                                .type = test_types[i].type,
                                .op = test_ops[j].op,
                                .type_name = test_types[i].name,
                                .op_name = test_ops[j].name};
            if (!type_exists(&test_types[i]) || !type_tolerates(&test_types[i], a.op))
                continue;
            for (int which = 0; which < CALLS; which++)
                tolerated_call(&a, &test_types[i], which, &random);
        }
    }
    refusing_free(&window);
}

static void letters_are_swapped(enum window_kind kind)
{
    struct window window = refusing_make(kind);
    const MPI_Datatype types[] = {MPI_CHAR, MPI_CHARACTER};
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        char expected = (char)(i + 1), new = (char)(i + 2), result = 0;
        CHECK_OK(MPI_Compare_and_swap(&new, &expected, &result, types[i], right_of(world_rank), AT,
                                      window.win));
        MPI_Win_flush(right_of(world_rank), window.win);
        CHECK_EQUAL(result, expected);
    }
    refusing_free(&window);
}

/* If a side has no elements, an undefined operator or a pair of different types is valid; invalid
 * handles and counts are errors. */
static void operations_on_nothing_may_have_any_types(enum window_kind kind)
{
    struct window window = refusing_make(kind);
    MPI_Win win = window.win;
    const int to = right_of(world_rank), lengths[] = {1, 1};
    const MPI_Aint displs[] = {0, 8};
    const MPI_Datatype parts[] = {MPI_INT, MPI_DOUBLE};
    MPI_Datatype types[] = {MPI_INT,        MPI_DOUBLE, MPI_BYTE,          MPI_WCHAR,
                            MPI_DOUBLE_INT, MPI_C_BOOL, MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
    enum { EMPTY = COUNT_OF(types) - 1, MIXED = EMPTY - 1 };
    char word[64] = {0}, old[64] = {0};
    MPI_Type_vector(0, 1, 1, MPI_DOUBLE, &types[EMPTY]);
    MPI_Type_create_struct(2, lengths, displs, parts, &types[MIXED]);
    MPI_Type_commit(&types[EMPTY]);
    MPI_Type_commit(&types[MIXED]);
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        for (size_t j = 0; j < COUNT_OF(types); j++) {
            for (size_t k = 0; k < test_op_count; k++) {
                const MPI_Op op = test_ops[k].op;
                CHECK_OK(MPI_Accumulate(word, 0, types[i], to, AT, 0, types[j], op, win));
                CHECK_OK(MPI_Accumulate(word, 0, types[i], to, AT, 1, types[j], op, win));
                CHECK_OK(MPI_Get_accumulate(word, 0, types[i], old, 0, types[j], to, AT, 0,
                                            types[i], op, win));
                CHECK_OK(MPI_Get_accumulate(word, 0, types[i], old, 0, types[i], to, AT, 0,
                                            types[j], op, win));
                CHECK_OK(MPI_Get_accumulate(word, 0, types[i], old, 1, types[j], to, AT, 1,
                                            types[j], op, win));
                CHECK_OK(MPI_Accumulate(word, 1, types[EMPTY], to, AT, 1, types[i], op, win));
            }
            CHECK_OK(MPI_Get_accumulate(NULL, 0, types[i], old, 0, types[i], to, AT, 0, types[j],
                                        MPI_NO_OP, win));
        }
        CHECK_CLASS(MPI_ERR_TYPE,
                    MPI_Accumulate(word, 0, MPI_DATATYPE_NULL, to, AT, 0, types[i], MPI_SUM, win));
        CHECK_CLASS(MPI_ERR_TYPE,
                    MPI_Accumulate(word, 0, types[i], to, AT, 0, MPI_DATATYPE_NULL, MPI_SUM, win));
        CHECK_CLASS(MPI_ERR_TYPE, MPI_Get_accumulate(word, 0, types[i], old, 0, MPI_DATATYPE_NULL,
                                                     to, AT, 0, types[i], MPI_SUM, win));
        CHECK_CLASS(MPI_ERR_OP,
                    MPI_Accumulate(word, 0, types[i], to, AT, 0, types[i], MPI_OP_NULL, win));
        CHECK_CLASS(MPI_ERR_OP,
                    MPI_Accumulate(word, 0, types[i], to, AT, 0, types[i], MPI_NO_OP, win));
        CHECK_CLASS(MPI_ERR_COUNT,
                    MPI_Accumulate(word, -1, types[i], to, AT, 0, types[i], MPI_SUM, win));
        CHECK_CLASS(MPI_ERR_COUNT, MPI_Get_accumulate(word, 0, types[i], old, -1, types[i], to, AT,
                                                      0, types[i], MPI_SUM, win));
        CHECK_CLASS(MPI_ERR_RANK,
                    MPI_Accumulate(word, 0, types[i], world_size, AT, 0, types[i], MPI_SUM, win));
    }
    MPI_Win_flush_all(win);
    CHECK(all_are((unsigned char *)old, sizeof old, 0), "the result buffer changed");
    MPI_Type_free(&types[EMPTY]);
    MPI_Type_free(&types[MIXED]);
    barrier(MPI_COMM_WORLD);
    CHECK(all_are((unsigned char *)window.base, WINDOW_BYTES, 1), "the target changed");
    refusing_free(&window);
}

/* --- types that differ --- */

enum { SIDE_BYTES = 16, SIDE_SPAN = 64, SIDES = 7 };

/* Several items of a type, SIDE_BYTES in total. */
struct unlike {
    const char *name;
    MPI_Datatype type;
    int count;
};

static void sides_make(struct unlike *sides)
{
    const int lengths[] = {1, 1, 1};
    const MPI_Aint displs[] = {4, 20, 8};
    const MPI_Datatype parts[] = {MPI_INT, MPI_FLOAT, MPI_DOUBLE};
    const struct unlike all[SIDES] = {{"bytes", MPI_BYTE, 16},
                                      {"shorts", MPI_SHORT, 8},
                                      {"ints", MPI_INT, 4},
                                      {"floats", MPI_FLOAT, 4},
                                      {"doubles", MPI_DOUBLE, 2},
                                      {"ints with holes", MPI_DATATYPE_NULL, 2},
                                      {"struct", MPI_DATATYPE_NULL, 1}};
    memcpy(sides, all, sizeof all);
    MPI_Type_vector(2, 1, 2, MPI_INT, &sides[SIDES - 2].type);
    MPI_Type_create_struct(3, lengths, displs, parts, &sides[SIDES - 1].type);
    for (int i = SIDES - 2; i < SIDES; i++)
        MPI_Type_commit(&sides[i].type);
}

/* Packs the data that moves, in the order of the type, from or to memory. */
static void side_pack(const struct unlike *side, const void *memory, unsigned char *packed)
{
    int at = 0;
    MPI_Pack(memory, side->count, side->type, packed, SIDE_BYTES, &at, MPI_COMM_SELF);
}

static void side_unpack(const struct unlike *side, const unsigned char *packed, void *memory)
{
    int at = 0;
    MPI_Unpack(packed, SIDE_BYTES, &at, memory, side->count, side->type, MPI_COMM_SELF);
}

/* Integers from first on. */
static void side_fill(bool doubles, int first, void *memory)
{
    for (int i = 0; doubles && i < SIDE_SPAN / 8; i++)
        ((double *)memory)[i] = first + i;
    for (int i = 0; !doubles && i < SIDE_SPAN / 4; i++)
        ((float *)memory)[i] = (float)(first + i);
}

/* A get_accumulate whose data is checked; for MPI_SUM the origin and the target are the same
 * reals. */
static void unlike_call(MPI_Win win, const struct unlike *origin, const struct unlike *result,
                        const struct unlike *target, MPI_Op op)
{
    const int to = right_of(world_rank);
    const bool doubles = target->type == MPI_DOUBLE;
    double added[SIDE_SPAN / 8], back[SIDE_SPAN / 8] = {0}, wanted_back[SIDE_SPAN / 8] = {0};
    unsigned char wanted[WINDOW_BYTES] __attribute__((aligned(16))), now[WINDOW_BYTES],
        packed[SIDE_BYTES];
    memset(wanted, 1, sizeof wanted);
    side_fill(doubles, 0, wanted + AT);
    side_fill(doubles, 100, added);
    MPI_Put(wanted, WINDOW_BYTES, MPI_BYTE, to, 0, WINDOW_BYTES, MPI_BYTE, win);
    MPI_Win_flush(to, win);
    side_pack(target, wanted + AT, packed);
    side_unpack(result, packed, wanted_back);
    side_pack(origin, added, packed);
    if (op == MPI_REPLACE)
        side_unpack(target, packed, wanted + AT);
    for (int i = 0; op == MPI_SUM && i < target->count; i++) {
        if (doubles)
            ((double *)(void *)(wanted + AT))[i] += added[i];
        else
            ((float *)(void *)(wanted + AT))[i] += ((float *)(void *)added)[i];
    }
    CHECK_OK(MPI_Get_accumulate(added, origin->count, origin->type, back, result->count,
                                result->type, to, AT, target->count, target->type, op, win));
    MPI_Win_flush(to, win);
    target_read(&(struct attempt){.win = win}, now);
    const char *name = op == MPI_SUM ? "MPI_SUM" : op == MPI_NO_OP ? "MPI_NO_OP" : "MPI_REPLACE";
    CHECK(memcmp(now, wanted, sizeof now) == 0, "%s of %s on %s: other contents", name,
          origin->name, target->name);
    CHECK(memcmp(back, wanted_back, sizeof back) == 0, "%s on %s into %s: other result", name,
          target->name, result->name);
}

static void unlike_types_of_the_same_bytes_are_copied(enum window_kind kind)
{
    struct window window = refusing_make(kind);
    struct unlike sides[SIDES];
    sides_make(sides);
    for (int i = 0; i < SIDES; i++) {
        for (int j = 0; j < SIDES; j++) {
            for (int k = 0; k < SIDES; k++) {
                unlike_call(window.win, &sides[i], &sides[j], &sides[k], MPI_REPLACE);
                unlike_call(window.win, &sides[i], &sides[j], &sides[k], MPI_NO_OP);
            }
            if (sides[i].type == MPI_FLOAT || sides[i].type == MPI_DOUBLE)
                unlike_call(window.win, &sides[i], &sides[j], &sides[i], MPI_SUM);
        }
    }
    for (int i = SIDES - 2; i < SIDES; i++)
        MPI_Type_free(&sides[i].type);
    refusing_free(&window);
}

static void add_up(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)in;
    (void)inout;
    (void)count;
    (void)type;
    CHECK(false, "an operator of the user's was called");
}

static void operators_of_the_user_are_refused(enum window_kind kind)
{
    struct window window = refusing_make(kind);
    for (int commutes = 0; commutes < 2; commutes++) {
        MPI_Op user;
        MPI_Op_create(add_up, commutes, &user);
        for (size_t i = 0; i < test_type_count; i++) {
            struct attempt a = {.win = window.win,
                                .type = test_types[i].type,
                                .op = user,
                                .type_name = test_types[i].name,
                                .op_name = "the user's"};
            if (type_exists(&test_types[i]))
                all_calls_refuse(&a, 0);
        }
        MPI_Op_free(&user);
    }
    struct attempt none = {.win = window.win,
                           .type = MPI_INT,
                           .op = MPI_OP_NULL,
                           .type_name = "MPI_INT",
                           .op_name = "MPI_OP_NULL"};
    all_calls_refuse(&none, 0);
    refusing_free(&window);
}

static void no_op_needs_a_result(enum window_kind kind)
{
    struct window window = refusing_make(kind);
    for (size_t i = 0; i < test_type_count; i++) {
        struct attempt a = {.win = window.win, .type = test_types[i].type, .op = MPI_NO_OP};
        if (!type_exists(&test_types[i]))
            continue;
        for (int which = 0; which < FIRST_WITH_RESULT; which++)
            CHECK_CLASS(MPI_ERR_OP, call(&a, which, 1));
    }
    refusing_free(&window);
}

/* The datatypes that a host has as an extension: their elements move, and no operator computes with
 * them. */
static void half_precision_reals_move(enum window_kind kind)
{
#ifdef MPIX_C_FLOAT16
    struct window window = refusing_make(kind);
    struct attempt a = {.win = window.win,
                        .type = MPIX_C_FLOAT16,
                        .op = MPI_REPLACE,
                        .type_name = "MPIX_C_FLOAT16"};
    unsigned char now[WINDOW_BYTES];
    for (int which = 0; which < CALLS; which++) {
        memset(a.origin, 4 + which, sizeof a.origin);
        CHECK_OK(call(&a, which, ELEMENTS));
        MPI_Win_flush(right_of(world_rank), window.win);
        target_read(&a, now);
        CHECK(now[AT] == 4 + which && now[AT + 1] == 4 + which && now[AT - 1] == 1,
              "call %d moved otherwise", which);
        CHECK(now[AT + 5] == (which < CALLS - 1 ? 4 + which : 7),
              "call %d moved another number of elements", which);
        if (which >= FIRST_WITH_RESULT)
            CHECK_EQUAL(a.result[0], 3 + which);
    }
    refusing_free(&window);
#else
    (void)kind;
    harness_skip("the host has no such type");
#endif
}

static const struct test_case cases[] = {
    CASE(operators_on_types_without_them_are_refused, KINDS_BOTH, 1),
    CASE(arithmetic_that_hosts_tolerate_is_computed, KINDS_BOTH, 1),
    CASE(letters_are_swapped, KINDS_BOTH, 1),
    CASE(operations_on_nothing_may_have_any_types, KINDS_BOTH, 1),
    CASE(unlike_types_of_the_same_bytes_are_copied, KINDS_BOTH, 1),
    CASE(operators_of_the_user_are_refused, KINDS_BOTH, 1),
    CASE(no_op_needs_a_result, KINDS_BOTH, 1),
    CASE(half_precision_reals_move, KINDS_BOTH, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
