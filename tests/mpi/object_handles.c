/* State of a window's handle: callbacks at its end, names, error handlers, Fortran handles, the
 * initial state of a new one. The host owns all of it, and it must work with Oriel's windows as
 * with the host's own. A plain MPI program, run by the test rows. */
#include "errors.h"

#include <stdio.h>
#include <stdlib.h>

enum { NOTES = 8, WORDS = 8 };

static struct {
    int calls;
    int keyvals[NOTES];
    bool in_order;
    int64_t first_words[NOTES];
} deleted;

static void *attribute(MPI_Win win, int keyval)
{
    void *value = NULL;
    int found = 0;
    CHECK_OK(MPI_Win_get_attr(win, keyval, &value, &found));
    return found ? value : NULL;
}

/* All attributes of the window are still available, and its memory is readable and writable; the
 * extra state is the window's base. */
static int look_around(MPI_Win win, int keyval, void *value, void *extra)
{
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = 0, class = 0;
    MPI_Group group;
    int64_t *words = value;
    MPI_Win_get_name(win, name, &length);
    CHECK(strcmp(name, "ending") == 0, "the callback finds the name \"%s\"", name);
    CHECK(attribute(win, MPI_WIN_BASE) == value, "the callback finds another base");
    CHECK_EQUAL(*(MPI_Aint *)attribute(win, MPI_WIN_SIZE), 8 * WORDS);
    CHECK_EQUAL(*(int *)attribute(win, MPI_WIN_DISP_UNIT), 8);
    MPI_Error_class(MPI_Win_get_group(win, &group), &class);
    if (CHECK_EQUAL(class, MPI_SUCCESS))
        MPI_Group_free(&group);
    deleted.first_words[deleted.calls % NOTES] = words[1];
    deleted.keyvals[deleted.calls++ % NOTES] = keyval;
    for (int i = 0; i < WORDS; i++)
        words[i] += 1;
    ++*(int *)extra;
    return MPI_SUCCESS;
}

static void callbacks_of_free_can_use_the_whole_window(enum window_kind kind)
{
    enum { KEYS = 3 };
    struct window window = window_make(kind, 8 * WORDS, 8, MPI_COMM_WORLD);
    int keys[KEYS], extra = 0, target = (world_rank + 1) % world_size;
    int64_t value = 60 + world_rank, *words = (int64_t *)window.base;
    MPI_Win_set_name(window.win, "ending");
    deleted.calls = 0;
    for (int i = 0; i < KEYS; i++) {
        MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, look_around, &keys[i], &extra);
        CHECK_OK(MPI_Win_set_attr(window.win, keys[i], window.base));
    }
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win);
    MPI_Put(&value, 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, window.win);
    MPI_Win_unlock(target, window.win);
    MPI_Win_free(&window.win);
    CHECK_EQUAL(deleted.calls, KEYS);
    CHECK_EQUAL(extra, KEYS);
    for (int i = 0; i < KEYS; i++)
        CHECK_EQUAL(deleted.first_words[i], 60 + (world_rank + world_size - 1) % world_size + i);
    if (kind == KIND_HEAP || kind == KIND_ARENA)
        CHECK(words[0] == KEYS && words[WORDS - 1] == KEYS,
              "data written by the callbacks is lost");
    if (kind == KIND_HEAP)
        free(window.base);
    else if (kind == KIND_ARENA)
        MPI_Free_mem(window.base);
    for (int i = 0; i < KEYS; i++)
        MPI_Win_free_keyval(&keys[i]);
}

/* Delays on the last rank while the others have long left MPI_Win_free. */
static int write_late(MPI_Win win, int keyval, void *value, void *extra)
{
    int64_t *words = value;
    (void)win;
    (void)keyval;
    (void)extra;
    if (world_rank == world_size - 1)
        sleep_us(50000);
    deleted.in_order = true;
    for (int i = 0; i < WORDS; i++) {
        deleted.in_order = deleted.in_order && words[i] == 300 + world_rank;
        words[i] = -1;
    }
    deleted.calls++;
    return MPI_SUCCESS;
}

/* The parts of a shared window may be in the memory of one rank: it must not reuse them before the
 * last callback. */
static void the_memory_lasts_until_the_last_ranks_callback(enum window_kind kind)
{
    enum { BLOCKS = 16, LEN_BYTES = 8 * WORDS };
    struct window window = window_make(kind, LEN_BYTES, 8, MPI_COMM_WORLD);
    int64_t *words = (int64_t *)window.base, *blocks[BLOCKS];
    int keyval;
    for (int i = 0; i < WORDS; i++)
        words[i] = 300 + world_rank;
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, write_late, &keyval, NULL);
    MPI_Win_set_attr(window.win, keyval, window.base);
    deleted.calls = 0;
    barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_free(&window.win));
    for (int i = 0; i < BLOCKS; i++) {
        MPI_Alloc_mem(LEN_BYTES * (i % 2 ? 1 : world_size), MPI_INFO_NULL, &blocks[i]);
        memset(blocks[i], 0x33, (size_t)LEN_BYTES * (size_t)(i % 2 ? 1 : world_size));
    }
    barrier(MPI_COMM_WORLD);
    CHECK_EQUAL(deleted.calls, 1);
    CHECK(deleted.in_order, "the window's memory changed before the callback");
    for (int i = 0; i < BLOCKS; i++) {
        const char *byte = (const char *)blocks[i];
        for (int j = 0; j < LEN_BYTES * (i % 2 ? 1 : world_size); j++)
            if (!CHECK(byte[j] == 0x33, "byte %d of a later allocation was written by a callback",
                       j))
                break;
        MPI_Free_mem(blocks[i]);
    }
    if (kind == KIND_HEAP)
        free(window.base);
    else if (kind == KIND_ARENA)
        MPI_Free_mem(window.base);
    MPI_Win_free_keyval(&keyval);
}

static int refuse(MPI_Win win, int keyval, void *value, void *extra)
{
    (void)win;
    (void)keyval;
    (void)value;
    (void)extra;
    deleted.calls++;
    return deleted.calls > 1 ? MPI_SUCCESS : MPI_ERR_OTHER;
}

/* A callback that fails once, on all ranks: the host may free the window anyway, or report the
 * error and keep the window for a second try. */
static void a_callback_that_fails_does_no_harm(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    MPI_Errhandler world_handler, self_handler;
    int keyval;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &world_handler);
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &self_handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, refuse, &keyval, NULL);
    MPI_Win_set_attr(window.win, keyval, &deleted);
    deleted.calls = 0;
    int code = MPI_Win_free(&window.win);
    CHECK(code != MPI_SUCCESS || window.win == MPI_WIN_NULL,
          "success, but the window is still there");
    CHECK_EQUAL(deleted.calls, 1);
    if (window.win != MPI_WIN_NULL)
        CHECK_OK(MPI_Win_free(&window.win));
    if (kind == KIND_HEAP)
        free(window.base);
    MPI_Win_free_keyval(&keyval);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, world_handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, self_handler);
    MPI_Errhandler_free(&world_handler);
    MPI_Errhandler_free(&self_handler);
    struct window next = window_make(kind, 64, 8, MPI_COMM_WORLD);
    MPI_Win_fence(0, next.win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, next.win);
    window_free(&next);
}

static void names_are_empty_then_as_long_as_the_host_allows(enum window_kind kind)
{
    struct window window = window_make(kind, 8, 1, MPI_COMM_WORLD);
    char name[MPI_MAX_OBJECT_NAME] = "before", long_name[MPI_MAX_OBJECT_NAME];
    int length = -1;
    CHECK_OK(MPI_Win_get_name(window.win, name, &length));
    CHECK(length == 0 && name[0] == '\0', "a new window is called \"%s\"", name);
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    CHECK_OK(MPI_Win_set_name(window.win, long_name));
    CHECK_OK(MPI_Win_get_name(window.win, name, &length));
    CHECK_EQUAL(length, MPI_MAX_OBJECT_NAME - 1);
    CHECK(strcmp(name, long_name) == 0, "the long name is returned as \"%s\"", name);
    CHECK_OK(MPI_Win_set_name(window.win, "shorter"));
    CHECK_OK(MPI_Win_get_name(window.win, name, &length));
    CHECK(strcmp(name, "shorter") == 0 && length == 7, "the name is \"%s\"", name);
    window_free(&window);
}

/* A window's handler is MPI_ERRORS_ARE_FATAL at first, whatever the communicator's is, and a change
 * stays with the window. */
static void error_handlers_are_not_inherited(enum window_kind kind)
{
    MPI_Comm comm;
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    char memory[8], *base;
    MPI_Win win;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (kind == KIND_ALLOCATE)
        MPI_Win_allocate(8, 1, MPI_INFO_NULL, comm, &base, &win);
    else if (kind == KIND_SHARED)
        MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, comm, &base, &win);
    else
        MPI_Win_create(memory, 8, 1, MPI_INFO_NULL, comm, &win);
    CHECK_OK(MPI_Win_get_errhandler(win, &handler));
    CHECK(handler == MPI_ERRORS_ARE_FATAL, "a new window's handler is not MPI_ERRORS_ARE_FATAL");
    MPI_Errhandler_free(&handler);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
    CHECK_OK(MPI_Win_get_errhandler(win, &handler));
    CHECK(handler == MPI_ERRORS_RETURN, "the window's handler changed with the communicator's");
    MPI_Errhandler_free(&handler);
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(world_rank, win));
    CHECK_OK(MPI_Win_free(&win));
    MPI_Comm_free(&comm);
}

static void fortran_handles_work_after_conversion_back(enum window_kind kind)
{
    struct window windows[3];
    MPI_Fint handles[3];
    int target = (world_rank + 1) % world_size, origin = (world_rank + world_size - 1) % world_size;
    for (int i = 0; i < 3; i++) {
        windows[i] = window_make(kind, 16, 8, MPI_COMM_WORLD);
        handles[i] = MPI_Win_c2f(windows[i].win);
    }
    for (int i = 2; i >= 0; i--) {
        int64_t value = 10 * world_rank + i;
        MPI_Win win = MPI_Win_f2c(handles[i]);
        CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
        CHECK_OK(MPI_Put(&value, 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, win));
        CHECK_OK(MPI_Win_unlock(target, win));
    }
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(((int64_t *)windows[i].base)[1], 10 * origin + i);
        CHECK(MPI_Win_c2f(windows[i].win) == handles[i], "the Fortran handle changed");
    }
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 3; i++) {
        windows[i].win = MPI_Win_f2c(handles[i]);
        window_free(&windows[i]);
    }
}

/* The host reuses a freed window's handle for the next window: it refers to the new memory
 * alone. */
static void a_reused_handle_denotes_the_new_window(enum window_kind kind)
{
    int target = (world_rank + 1) % world_size, origin = (world_rank + world_size - 1) % world_size;
    for (int64_t round = 0; round < 200; round++) {
        struct window window = window_make(kind, 8 * (1 + round % 5), 8, MPI_COMM_WORLD);
        int64_t value = 1000 * round + world_rank;
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win);
        MPI_Put(&value, 1, MPI_INT64_T, target, round % 5, 1, MPI_INT64_T, window.win);
        MPI_Win_unlock(target, window.win);
        barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, window.win);
        CHECK_EQUAL(((int64_t *)window.base)[round % 5], 1000 * round + origin);
        MPI_Win_unlock(world_rank, window.win);
        barrier(MPI_COMM_WORLD);
        window_free(&window);
    }
}

static const struct test_case cases[] = {
    CASE(callbacks_of_free_can_use_the_whole_window, KINDS_ALL, 1),
    CASE(the_memory_lasts_until_the_last_ranks_callback, KINDS_ALL, 1),
    CASE(a_callback_that_fails_does_no_harm, KIND_ALLOCATE | KIND_SHARED | KIND_HEAP, 1),
    CASE(names_are_empty_then_as_long_as_the_host_allows, KINDS_ALL, 1),
    CASE(error_handlers_are_not_inherited, KIND_ALLOCATE | KIND_SHARED | KIND_HEAP, 1),
    CASE(fortran_handles_work_after_conversion_back, KINDS_ALL, 1),
    CASE(a_reused_handle_denotes_the_new_window, KINDS_ALL, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
