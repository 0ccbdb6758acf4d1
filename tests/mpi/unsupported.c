/* What is not there yet says so: MPI_ERR_UNSUPPORTED_OPERATION, nothing moved, the window usable afterwards.
 * A case leaves this file when the behaviour that it names arrives.
 * A plain MPI program, run by the test rows. */
#include "errors.h"

static int64_t words[16];

static void dynamic_windows_are_not_supported_yet(enum window_kind kind)
{
    MPI_Comm comm;
    MPI_Win win = MPI_WIN_NULL;
    (void)kind;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win));
    MPI_Comm_free(&comm);
}

static void attaching_is_refused_on_other_flavours(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    const int codes[] = { MPI_Win_attach(window.win, words, sizeof words), MPI_Win_detach(window.win, words) };
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        int class = MPI_SUCCESS;
        MPI_Error_class(codes[i], &class);
        CHECK(class == MPI_ERR_UNSUPPORTED_OPERATION || class == MPI_ERR_RMA_FLAVOR, "class %d", class);
    }
    guarded_free(&window);
}

static const struct test_case cases[] = {
    CASE(dynamic_windows_are_not_supported_yet, KIND_ANY, 1),
    CASE(attaching_is_refused_on_other_flavours, KINDS_BOTH, 1),
};

int main(int argc, char **argv) { return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases)); }
