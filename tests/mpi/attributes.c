/* The state of a window: predefined attributes, group, names, the user's attributes, Fortran
 * handles, error handlers, info. Every flavour returns the same answers, whatever its memory. A
 * plain MPI program, run by the test rows. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *attribute(MPI_Win win, int keyval)
{
    void *value = NULL;
    int found = 0;
    CHECK_OK(MPI_Win_get_attr(win, keyval, &value, &found));
    CHECK(found && value, "predefined attribute %d is not there", keyval);
    return value;
}

static void predefined_attributes_describe_the_window(enum window_kind kind)
{
    static const int flavours[] = {[KIND_ALLOCATE] = MPI_WIN_FLAVOR_ALLOCATE,
                                   [KIND_SHARED] = MPI_WIN_FLAVOR_SHARED,
                                   [KIND_ARENA] = MPI_WIN_FLAVOR_CREATE,
                                   [KIND_HEAP] = MPI_WIN_FLAVOR_CREATE};
    struct window one = window_make(kind, 100 + world_rank, 1 + world_rank % 3, MPI_COMM_WORLD);
    struct window two = window_make(kind, 20, 4, MPI_COMM_WORLD);
    CHECK(attribute(one.win, MPI_WIN_BASE) == one.base, "MPI_WIN_BASE");
    CHECK(attribute(two.win, MPI_WIN_BASE) == two.base, "MPI_WIN_BASE of the second window");
    CHECK_EQUAL(*(MPI_Aint *)attribute(one.win, MPI_WIN_SIZE), 100 + world_rank);
    CHECK_EQUAL(*(MPI_Aint *)attribute(two.win, MPI_WIN_SIZE), 20);
    CHECK_EQUAL(*(int *)attribute(one.win, MPI_WIN_DISP_UNIT), 1 + world_rank % 3);
    CHECK_EQUAL(*(int *)attribute(two.win, MPI_WIN_DISP_UNIT), 4);
    CHECK_EQUAL(*(int *)attribute(one.win, MPI_WIN_CREATE_FLAVOR), flavours[kind]);
    CHECK_EQUAL(*(int *)attribute(one.win, MPI_WIN_MODEL), MPI_WIN_UNIFIED);
    window_free(&two);
    CHECK_EQUAL(*(MPI_Aint *)attribute(one.win, MPI_WIN_SIZE), 100 + world_rank);
    window_free(&one);
}

static void attributes_of_an_empty_window(enum window_kind kind)
{
    struct window window = window_make(kind, 0, 8, MPI_COMM_WORLD);
    int found = 0;
    void *base = &found;
    CHECK_OK(MPI_Win_get_attr(window.win, MPI_WIN_BASE, &base, &found));
    CHECK(found, "MPI_WIN_BASE is not there");
    if (kind == KIND_HEAP)
        CHECK(base == NULL, "MPI_WIN_BASE is %p, not the given NULL", base);
    CHECK_EQUAL(*(MPI_Aint *)attribute(window.win, MPI_WIN_SIZE), 0);
    CHECK_EQUAL(*(int *)attribute(window.win, MPI_WIN_DISP_UNIT), 8);
    window_free(&window);
}

static void the_group_is_the_communicators(enum window_kind kind)
{
    MPI_Comm reversed;
    MPI_Group of_comm, of_win;
    int same = MPI_UNEQUAL;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &reversed);
    struct window window = window_make(kind, 8, 1, reversed);
    MPI_Comm_group(reversed, &of_comm);
    MPI_Comm_free(&reversed);
    CHECK_OK(MPI_Win_get_group(window.win, &of_win));
    MPI_Group_compare(of_comm, of_win, &same);
    CHECK_EQUAL(same, MPI_IDENT);
    MPI_Group_free(&of_win);
    MPI_Group_free(&of_comm);
    window_free(&window);
}

static void names_belong_to_one_window(enum window_kind kind)
{
    struct window one = window_make(kind, 8, 1, MPI_COMM_WORLD),
                  two = window_make(kind, 8, 1, MPI_COMM_WORLD);
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = -1;
    CHECK_OK(MPI_Win_set_name(one.win, "first"));
    CHECK_OK(MPI_Win_set_name(two.win, "second"));
    CHECK_OK(MPI_Win_get_name(one.win, name, &length));
    CHECK(strcmp(name, "first") == 0 && length == 5, "the name is \"%s\"", name);
    CHECK_OK(MPI_Win_get_name(two.win, name, &length));
    CHECK(strcmp(name, "second") == 0, "the name is \"%s\"", name);
    CHECK_OK(MPI_Win_get_name(MPI_WIN_NULL, name, &length));
    CHECK(strcmp(name, "MPI_WIN_NULL") == 0 && length == 12, "the name is \"%s\"", name);
    window_free(&one);
    window_free(&two);
}

static struct {
    int calls;
    MPI_Win win;
    char *base;
    bool intact;
} deleted;

/* Runs inside MPI_Win_free, while the window's memory is still valid. */
static int touch_memory(MPI_Win win, int keyval, void *value, void *extra)
{
    (void)keyval;
    (void)extra;
    deleted.calls++;
    deleted.win = win;
    deleted.intact = memcmp(value, "window memory", 14) == 0;
    memset(value, 0, 64);
    return MPI_SUCCESS;
}

static void delete_callbacks_run_while_the_memory_is_valid(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 1, MPI_COMM_WORLD);
    MPI_Win before = window.win;
    int keyval, found = 0;
    void *value = NULL;
    deleted.calls = 0;
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, touch_memory, &keyval, NULL);
    memcpy(window.base, "window memory", 14);
    CHECK_OK(MPI_Win_set_attr(window.win, keyval, window.base));
    CHECK_OK(MPI_Win_get_attr(window.win, keyval, &value, &found));
    CHECK(found && value == window.base, "the attribute is not returned");
    MPI_Win_free_keyval(&keyval);
    window_free(&window);
    CHECK_EQUAL(deleted.calls, 1);
    CHECK(deleted.win == before, "the callback got another handle");
    CHECK(deleted.intact, "the memory had changed before the callback");
}

static void user_attributes_can_be_removed(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 1, MPI_COMM_WORLD);
    int keyval, found = 1;
    void *value = NULL;
    deleted.calls = 0;
    memcpy(window.base, "window memory", 14);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, touch_memory, &keyval, NULL);
    MPI_Win_set_attr(window.win, keyval, window.base);
    CHECK_OK(MPI_Win_delete_attr(window.win, keyval));
    CHECK_EQUAL(deleted.calls, 1);
    MPI_Win_get_attr(window.win, keyval, &value, &found);
    CHECK_EQUAL(found, 0);
    MPI_Win_free_keyval(&keyval);
    window_free(&window);
    CHECK_EQUAL(deleted.calls, 1);
}

static void fortran_handles_convert_back(enum window_kind kind)
{
    struct window one = window_make(kind, 8, 1, MPI_COMM_WORLD),
                  two = window_make(kind, 8, 1, MPI_COMM_WORLD);
    MPI_Fint first = MPI_Win_c2f(one.win), second = MPI_Win_c2f(two.win);
    CHECK(first != second, "two windows have one Fortran handle");
    CHECK(MPI_Win_f2c(first) == one.win && MPI_Win_f2c(second) == two.win,
          "the handles do not convert back");
    CHECK(MPI_Win_f2c(MPI_Win_c2f(MPI_WIN_NULL)) == MPI_WIN_NULL,
          "MPI_WIN_NULL does not convert back");
    window_free(&one);
    window_free(&two);
}

static MPI_Win handler_win;
static int handler_calls, handler_code;

static void note_call(MPI_Win *win, int *code, ...)
{
    handler_win = *win;
    handler_code = *code;
    handler_calls++;
}

static void error_handlers_belong_to_one_window(enum window_kind kind)
{
    struct window window = window_make(kind, 8, 1, MPI_COMM_WORLD);
    MPI_Errhandler mine, got = MPI_ERRHANDLER_NULL;
    MPI_Win fresh;
    MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &fresh);
    CHECK_OK(MPI_Win_get_errhandler(fresh, &got));
    CHECK(got == MPI_ERRORS_ARE_FATAL, "a new window's handler is not MPI_ERRORS_ARE_FATAL");
    MPI_Errhandler_free(&got);
    MPI_Win_create_errhandler(note_call, &mine);
    CHECK_OK(MPI_Win_set_errhandler(window.win, mine));
    CHECK_OK(MPI_Win_get_errhandler(window.win, &got));
    CHECK(got == mine, "another handler is returned");
    MPI_Errhandler_free(&got);
    handler_calls = 0;
    CHECK_OK(MPI_Win_call_errhandler(window.win, MPI_ERR_OTHER));
    CHECK_EQUAL(handler_calls, 1);
    CHECK_EQUAL(handler_code, MPI_ERR_OTHER);
    CHECK(handler_win == window.win, "the handler got another window");
    MPI_Errhandler_free(&mine);
    window_watch(window.win);
    MPI_Win_free(&fresh);
    window_free(&window);
}

static int removals;

static int count_removal(MPI_Win win, int keyval, void *value, void *extra)
{
    (void)win;
    (void)keyval;
    (void)value;
    (void)extra;
    removals++;
    return MPI_SUCCESS;
}

/* Puts one of the three alone on a window, since one would mask the others. */
static void hang_on(MPI_Win win, int what, int keyval, MPI_Errhandler handler)
{
    static int value;
    if (what == 1)
        CHECK_OK(MPI_Win_set_name(win, "mine"));
    if (what == 2)
        CHECK_OK(MPI_Win_set_attr(win, keyval, &value));
    if (what == 3)
        CHECK_OK(MPI_Win_set_errhandler(win, handler));
}

/* Makes one window after the other; their handles may be equal. */
static void attributes_of_a_window_end_with_it(enum window_kind kind)
{
    MPI_Errhandler mine, got;
    MPI_Win win;
    int *base, keyval, found, length, expected = 0;
    char name[MPI_MAX_OBJECT_NAME];
    void *value;
    (void)kind;
    MPI_Win_create_errhandler(note_call, &mine);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, count_removal, &keyval, NULL);
    removals = 0;
    for (int round = 0; round < 40; round++) {
        CHECK_OK(MPI_Win_allocate(sizeof *base, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        CHECK_OK(MPI_Win_get_name(win, name, &length));
        CHECK(length == 0 && name[0] == '\0', "a new window is called \"%s\"", name);
        CHECK_OK(MPI_Win_get_attr(win, keyval, &value, &found));
        CHECK_EQUAL(found, 0);
        CHECK_OK(MPI_Win_get_errhandler(win, &got));
        CHECK(got == MPI_ERRORS_ARE_FATAL, "a new window's handler is not MPI_ERRORS_ARE_FATAL");
        MPI_Errhandler_free(&got);
        hang_on(win, round % 4, keyval, mine);
        CHECK_OK(MPI_Win_free(&win));
        expected += round % 4 == 2;
        CHECK_EQUAL(removals, expected);
    }
    MPI_Win_free_keyval(&keyval);
    MPI_Errhandler_free(&mine);
}

static void info_expect(MPI_Win win, const char *key, const char *wanted)
{
    MPI_Info info = MPI_INFO_NULL;
    char value[MPI_MAX_INFO_VAL + 1] = "";
    int found = 0;
    CHECK_OK(MPI_Win_get_info(win, &info));
    if (info == MPI_INFO_NULL)
        return;
    MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &found);
    CHECK(found && strcmp(value, wanted) == 0, "%s is \"%s\", not \"%s\"", key,
          found ? value : "(absent)", wanted);
    MPI_Info_free(&info);
}

static void info_returns_the_values_in_use(enum window_kind kind)
{
    struct window window = window_make(kind, 8, 1, MPI_COMM_WORLD);
    info_expect(window.win, "no_locks", "false");
    info_expect(window.win, "accumulate_ordering", "rar,raw,war,waw");
    info_expect(window.win, "accumulate_ops", "same_op_no_op");
    info_expect(window.win, "same_size", "false");
    info_expect(window.win, "same_disp_unit", "false");
    window_free(&window);
}

static void given_info_is_stored_and_unknown_keys_are_ignored(enum window_kind kind)
{
    MPI_Info info;
    MPI_Win win;
    char *base;
    (void)kind;
    MPI_Info_create(&info);
    MPI_Info_set(info, "accumulate_ordering", "none");
    MPI_Info_set(info, "same_size", "true");
    MPI_Info_set(info, "nobody_knows_this_key", "true");
    CHECK_OK(MPI_Win_allocate(64, 1, info, MPI_COMM_WORLD, &base, &win));
    info_expect(win, "accumulate_ordering", "none");
    info_expect(win, "same_size", "true");
    info_expect(win, "same_disp_unit", "false");
    MPI_Info_set(info, "accumulate_ops", "same_op");
    CHECK_OK(MPI_Win_set_info(win, info));
    MPI_Win_free(&win);
    MPI_Info_free(&info);
}

static int copies;

static int count_copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)keyval, (void)extra, (void)in, (void)out;
    copies++;
    *flag = 0;
    return MPI_SUCCESS;
}

/* Oriel's setup at a program's first window copies no attribute of the program: so this is the
 * first case. */
static void the_first_window_copies_no_attributes(enum window_kind kind)
{
    struct window window;
    int keyval;
    CHECK_OK(MPI_Comm_create_keyval(count_copy, MPI_COMM_NULL_DELETE_FN, &keyval, NULL));
    CHECK_OK(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, &copies));
    window = window_make(kind, 8, 1, MPI_COMM_WORLD);
    window_free(&window);
    CHECK_OK(MPI_Comm_delete_attr(MPI_COMM_SELF, keyval));
    CHECK_OK(MPI_Comm_free_keyval(&keyval));
    CHECK_EQUAL(copies, 0);
}

static const struct test_case cases[] = {
    CASE(the_first_window_copies_no_attributes, KIND_ANY, 1),
    CASE(predefined_attributes_describe_the_window, KINDS_ALL, 1),
    CASE(attributes_of_an_empty_window, KINDS_ALL, 1),
    CASE(the_group_is_the_communicators, KINDS_ALL, 1),
    CASE(names_belong_to_one_window, KINDS_ALL, 1),
    CASE(delete_callbacks_run_while_the_memory_is_valid, KINDS_ALL, 1),
    CASE(user_attributes_can_be_removed, KINDS_ALL, 1),
    CASE(fortran_handles_convert_back, KINDS_ALL, 1),
    CASE(error_handlers_belong_to_one_window, KINDS_ALL, 1),
    CASE(attributes_of_a_window_end_with_it, KIND_ANY, 1),
    CASE(info_returns_the_values_in_use, KINDS_ALL, 1),
    CASE(given_info_is_stored_and_unknown_keys_are_ignored, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
