/* Where extensions are not served: MPIX_Query_oriel() is 0 on the bare host and with ORIEL_BYPASS;
 * a window of the host, and a handle that is no window, are clear errors. TEST_SERVED is 1
 * where Oriel serves windows, 2 where the host does, 0 where there are no extensions. */
#include "harness.h"
#include "oriel/ext.h"
#define ORIEL_WEAK
#include "oriel/oriel.h"

#include <stdlib.h>
#include <string.h>

static int served(void)
{
    const char *text = getenv("TEST_SERVED");
    return text == NULL ? 0 : atoi(text);
}

static void query_says_whether_extensions_are_served(enum window_kind kind)
{
    (void)kind;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    CHECK_EQUAL(MPIX_Query_oriel(), served() != 0);
    MPI_Get_library_version(text, &length);
    if (oriel_version != NULL)
        CHECK(strstr(text, oriel_version()) != NULL, "%s is not in %s", oriel_version(), text);
}

/* Errors without a window go to one of these handlers, depending on MPI's version. */
static void return_errors_of_no_object(MPI_Errhandler *self, MPI_Errhandler *world)
{
    MPI_Comm_get_errhandler(MPI_COMM_SELF, self);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, world);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

static void restore_handlers(MPI_Errhandler *self, MPI_Errhandler *world)
{
    MPI_Comm_set_errhandler(MPI_COMM_SELF, *self);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, *world);
    MPI_Errhandler_free(self);
    MPI_Errhandler_free(world);
}

static void check_refused(MPI_Win win, int wanted)
{
    int64_t value = 1;
    int flag, index;
    static const int numbers[] = {0};
    CHECK_CLASS(wanted, MPIX_Put_notify(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, 0, win));
    CHECK_CLASS(wanted, MPIX_Get_notify(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, 0, win));
    CHECK_CLASS(wanted, MPIX_Accumulate_notify(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T,
                                               MPI_SUM, 0, win));
    CHECK_CLASS(wanted, MPIX_Win_notify_wait(win, 0, 1));
    CHECK_CLASS(wanted, MPIX_Win_notify_test(win, 0, 1, &flag));
    CHECK_CLASS(wanted, MPIX_Win_notify_wait_any(win, 1, numbers, &index));
    MPIX_Memory_handle handle;
    CHECK_CLASS(wanted, MPIX_Win_memory_handle_create(win, 0, 8, &handle));
}

static void a_handle_that_is_no_window_is_an_error(enum window_kind kind)
{
    (void)kind;
    MPI_Errhandler self, world;
    if (served() == 0) {
        harness_skip("no extensions here");
        return;
    }
    struct window window = window_make(KIND_ALLOCATE, 8, 8, MPI_COMM_WORLD);
    MPI_Win gone = window.win;
    window_free(&window);
    return_errors_of_no_object(&self, &world);
    check_refused(MPI_WIN_NULL, MPI_ERR_WIN);
    check_refused(gone, MPI_ERR_WIN);
    restore_handlers(&self, &world);
}

static void a_window_of_the_host_has_no_extensions(enum window_kind kind)
{
    MPI_Errhandler self, world;
    if (served() != 2) {
        harness_skip("needs windows of the host");
        return;
    }
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    return_errors_of_no_object(&self, &world);
    check_refused(window.win, MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK(strstr(oriel_error_text(), "the host serves this window") != NULL, "%s",
          oriel_error_text());
    restore_handlers(&self, &world);
    MPI_Win_fence(0, window.win);
    MPI_Win_fence(0, window.win);
    window_free(&window);
}

static const struct test_case cases[] = {
    CASE(query_says_whether_extensions_are_served, KIND_ANY, 1),
    CASE(a_handle_that_is_no_window_is_an_error, KIND_ANY, 1),
    CASE(a_window_of_the_host_has_no_extensions, KIND_HEAP, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
