// The MPI::Win of <oriel/mpi_win.hpp>: the members of MPI-2.2, those of MPI-3, and errors as
// exceptions. The macros of the header disable the host's own class, if it has one.
#define MPICH_SKIP_MPICXX 1
#define OMPI_SKIP_MPICXX 1
#include "mpi2_cases.hpp"

#if !ORIEL_MPI_WIN
#error "the host's own class has not been switched off"
#endif

static MPI::Win allocated(long **memory)
{
    MPI::Win win =
        MPI::Win::Allocate(4 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, memory);
    win.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
    std::memset(*memory, 0, 4 * sizeof(long));
    barrier(MPI_COMM_WORLD);
    return win;
}

static void allocated_memory_is_the_windows_base()
{
    long *memory = nullptr, *base = nullptr;
    int *flavour = nullptr, *model = nullptr;
    MPI::Win win = allocated(&memory);
    CHECK(win.Get_attr(MPI::WIN_BASE, &base) && base == memory, "WIN_BASE");
    CHECK(win.Get_attr(MPI::WIN_CREATE_FLAVOR, &flavour) && *flavour == MPI::WIN_FLAVOR_ALLOCATE,
          "WIN_CREATE_FLAVOR");
    CHECK(win.Get_attr(MPI::WIN_MODEL, &model) && *model == MPI::WIN_UNIFIED, "WIN_MODEL");
    win.Free();
}

static void locks_of_all_with_every_flush()
{
    long *memory = nullptr;
    const long value = 30 + world_rank;
    long seen = -1;
    MPI::Win win = allocated(&memory);
    const int right = right_of_me();
    win.Lock_all(0);
    win.Put(&value, 1, MPI_LONG, right, 0, 1, MPI_LONG);
    win.Flush(right);
    win.Get(&seen, 1, MPI_LONG, right, 0, 1, MPI_LONG);
    win.Flush_local(right);
    CHECK_EQUAL(seen, value);
    win.Put(&value, 1, MPI_LONG, right, 1, 1, MPI_LONG);
    win.Flush_all();
    win.Get(&seen, 1, MPI_LONG, right, 1, 1, MPI_LONG);
    win.Flush_local_all();
    CHECK_EQUAL(seen, value);
    barrier(MPI_COMM_WORLD);
    win.Sync();
    CHECK_EQUAL(memory[0], 30 + left_of_me());
    CHECK_EQUAL(memory[1], 30 + left_of_me());
    win.Unlock_all();
    win.Free();
}

static void atomics_return_the_previous_value()
{
    long *memory = nullptr;
    const long one = 1, expected = 4, swapped = 9;
    long old = -1, result = -1;
    MPI::Win win = allocated(&memory);
    const int right = right_of_me(); // no other rank accesses it
    win.Lock(MPI::LOCK_SHARED, right, 0);
    win.Fetch_and_op(&one, &old, MPI_LONG, right, 2, MPI_SUM);
    win.Flush(right);
    CHECK_EQUAL(old, 0);
    const long three = 3;
    win.Get_accumulate(&three, 1, MPI_LONG, &result, 1, MPI_LONG, right, 2, 1, MPI_LONG, MPI_SUM);
    win.Flush(right);
    CHECK_EQUAL(result, 1);
    win.Compare_and_swap(&swapped, &expected, &old, MPI_LONG, right, 2);
    win.Flush(right);
    CHECK_EQUAL(old, 4);
    win.Unlock(right);
    barrier(MPI_COMM_WORLD);
    win.Lock(MPI::LOCK_SHARED, world_rank, 0);
    CHECK_EQUAL(memory[2], 9);
    win.Unlock(world_rank);
    win.Free();
}

static void complete(MPI_Request request)
{
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static void requests_complete()
{
    long *memory = nullptr;
    const long value = 70 + world_rank, one = 1;
    long seen = -1;
    MPI::Win win = allocated(&memory);
    const int right = right_of_me();
    win.Lock_all(MPI::MODE_NOCHECK);
    complete(win.Rput(&value, 1, MPI_LONG, right, 3, 1, MPI_LONG));
    win.Flush(right);
    complete(win.Raccumulate(&one, 1, MPI_LONG, right, 3, 1, MPI_LONG, MPI_SUM));
    win.Flush(right);
    complete(
        win.Rget_accumulate(&one, 1, MPI_LONG, &seen, 1, MPI_LONG, right, 3, 1, MPI_LONG, MPI_SUM));
    CHECK_EQUAL(seen, value + 1);
    win.Flush(right);
    complete(win.Rget(&seen, 1, MPI_LONG, right, 3, 1, MPI_LONG));
    CHECK_EQUAL(seen, value + 2);
    win.Unlock_all();
    win.Free();
}

static void shared_memory_is_queried()
{
    int *mine = nullptr, *theirs = nullptr, unit = 0, here, next;
    MPI::Aint size = 0;
    MPI_Comm node = node_comm();
    MPI_Comm_rank(node, &here);
    MPI_Comm_size(node, &next);
    next = (here + 1) % next;
    MPI::Win win =
        MPI::Win::Allocate_shared(2 * sizeof(int), sizeof(int), MPI_INFO_NULL, node, &mine);
    MPI_Comm_free(&node);
    win.Fence(0);
    mine[1] = 40 + here;
    win.Fence(0);
    win.Shared_query(next, size, unit, &theirs);
    CHECK(size == 8 && unit == 4, "%ld bytes in units of %d", static_cast<long>(size), unit);
    CHECK_EQUAL(theirs[1], 40 + next);
    win.Fence(0);
    win.Free();
}

static void hints_are_set_and_returned()
{
    long *memory = nullptr;
    char value[32] = "";
    int found = 0;
    MPI::Win win = allocated(&memory);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "no_locks", "true");
    win.Set_info(info);
    MPI_Info_free(&info);
    info = win.Get_info();
    MPI_Info_get(info, "no_locks", 31, value, &found);
    CHECK(found && std::strcmp(value, "true") == 0, "no_locks is \"%s\"", value);
    MPI_Info_free(&info);
    win.Free();
}

static void attached_memory_is_reached_by_its_address()
{
    MPI::Win win = MPI::Win::Create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD);
    win.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
    std::vector<long> memory(4, 0);
    std::vector<MPI_Aint> addresses(static_cast<unsigned>(world_size));
    MPI_Aint address;
    win.Attach(memory.data(), 4 * sizeof(long));
    MPI_Get_address(&memory[2], &address);
    MPI_Allgather(&address, 1, MPI_AINT, addresses.data(), 1, MPI_AINT, MPI_COMM_WORLD);
    const long value = 80 + world_rank;
    win.Fence(0);
    win.Put(&value, 1, MPI_LONG, right_of_me(), addresses[static_cast<unsigned>(right_of_me())], 1,
            MPI_LONG);
    win.Fence(0);
    CHECK_EQUAL(memory[2], 80 + left_of_me());
    win.Detach(memory.data());
    win.Free();
}

// The error class of the exception from the call; MPI_SUCCESS if it returns.
template <class Call> static int thrown(const Call &call)
{
    try {
        call();
    } catch (const MPI::Exception &error) {
        CHECK(error.Get_error_string()[0] != '\0', "an exception without words");
        CHECK(std::strcmp(error.what(), error.Get_error_string()) == 0,
              "what() differs from Get_error_string()");
        int error_class = MPI_SUCCESS;
        MPI_Error_class(error.Get_error_code(), &error_class);
        CHECK_EQUAL(error_class, error.Get_error_class());
        return error_class;
    }
    return MPI_SUCCESS;
}

// The harness evaluates its operands twice; this macro evaluates the call once.
#define CHECK_THROWN(wanted, call)                     \
    do {                                               \
        const int got_class = thrown([&] { call; });   \
        CHECK_EQUAL(got_class, wanted);                \
    } while (0)

static void errors_are_thrown_and_leave_the_window_usable()
{
    long *memory = nullptr;
    const long value = 1;
    long seen = -1;
    MPI::Win win = allocated(&memory);
    const int right = right_of_me();
    CHECK_THROWN(MPI::ERR_RMA_SYNC, win.Put(&value, 1, MPI_LONG, right, 0, 1, MPI_LONG));
    CHECK_THROWN(MPI::ERR_RMA_SYNC, win.Unlock(right));
    CHECK_THROWN(MPI::ERR_LOCKTYPE, win.Lock(12345, right, 0));
    win.Lock(MPI::LOCK_EXCLUSIVE, right, 0);
    CHECK_THROWN(MPI::ERR_RMA_RANGE, win.Put(&value, 1, MPI_LONG, right, 4, 1, MPI_LONG));
    CHECK_THROWN(MPI::ERR_DISP, win.Rget(&seen, 1, MPI_LONG, right, -1, 1, MPI_LONG));
    CHECK_THROWN(MPI::ERR_RMA_SYNC, win.Free());
    CHECK(win != MPI::WIN_NULL, "a failed Free took the handle");
    win.Get(&seen, 1, MPI_LONG, right, 0, 1, MPI_LONG);
    win.Unlock(right);
    CHECK_EQUAL(seen, 0);
    win.Set_errhandler(MPI::ERRORS_RETURN);
    CHECK_THROWN(MPI::ERR_RMA_SYNC, win.Complete());
    CHECK_THROWN(MPI_ERR_OTHER, win.Call_errhandler(MPI_ERR_OTHER));
    win.Free();
}

static void the_handler_is_called_before_the_exception()
{
    long *memory = nullptr;
    MPI::Win win = allocated(&memory);
    MPI::Errhandler handler = MPI::Win::Create_errhandler(first_handler);
    win.Set_errhandler(handler);
    handler.Free();
    CHECK(handler == MPI_ERRHANDLER_NULL, "Free leaves a handle");
    first_calls = 0;
    last_code = MPI_SUCCESS;
    CHECK_THROWN(MPI::ERR_RMA_SYNC, win.Wait());
    int last_class = MPI_SUCCESS;
    MPI_Error_class(last_code, &last_class);
    CHECK(first_calls == 1 && last_class == MPI_ERR_RMA_SYNC, "%d calls, class %d", first_calls,
          last_class);
    CHECK_THROWN(MPI_SUCCESS, win.Call_errhandler(MPI_ERR_OTHER)); // it returned: no error
    CHECK_EQUAL(first_calls, 2);
    win.Free();
}

static void errors_of_creation_are_thrown()
{
    MPI_Comm comm;
    long *memory = nullptr;
    int word = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI::ERRORS_THROW_EXCEPTIONS);
    CHECK_THROWN(MPI::ERR_DISP, MPI::Win::Create(&word, 4, 0, MPI_INFO_NULL, comm));
    CHECK_THROWN(MPI::ERR_SIZE, MPI::Win::Allocate(-1, 1, MPI_INFO_NULL, comm, &memory));
    CHECK_THROWN(MPI::ERR_SIZE, MPI::Win::Allocate_shared(-1, 1, MPI_INFO_NULL, comm, &memory));
    MPI_Comm_free(&comm);
}

static void misuse_of_a_flavour_is_thrown()
{
    long *memory = nullptr;
    MPI::Win win = allocated(&memory);
    long other = 0;
    CHECK_THROWN(MPI::ERR_RMA_FLAVOR, win.Attach(&other, sizeof other));
    CHECK_THROWN(MPI::ERR_RMA_FLAVOR, win.Detach(&other));
    win.Free();
}

static int note_removal_in_c(MPI_Win win, int keyval, void *value, void *extra_state)
{
    MPI::Win wrapped(win);
    return note_removal(wrapped, keyval, value, extra_state);
}

static void note_error_in_c(MPI_Win *win, int *code, ...)
{
    MPI::Win wrapped(*win);
    first_handler(wrapped, code);
}

static void callbacks_may_be_functions_of_c()
{
    long *memory = nullptr;
    int extra = 0;
    MPI::Win win = allocated(&memory);
    int keyval = MPI::Win::Create_keyval(MPI_WIN_NULL_COPY_FN, note_removal_in_c, &extra);
    int other = MPI::Win::Create_keyval(MPI::Win::NULL_COPY_FN, MPI::Win::NULL_DELETE_FN, nullptr);
    int third = MPI::Win::Create_keyval(MPI::Win::DUP_FN, MPI::Win::NULL_DELETE_FN, nullptr);
    removed = {};
    for (int key : { keyval, other, third })
        win.Set_attr(key, &extra);
    for (int key : { keyval, other, third })
        win.Delete_attr(key);
    CHECK(removed.calls == 1 && removed.value == &extra && removed.extra_state == &extra,
          "%d calls", removed.calls);
    MPI::Win::Free_keyval(keyval);
    MPI::Win::Free_keyval(other);
    MPI::Win::Free_keyval(third);
    MPI::Errhandler handler = MPI::Win::Create_errhandler(note_error_in_c);
    win.Set_errhandler(handler);
    handler.Free();
    first_calls = 0;
    win.Call_errhandler(MPI_ERR_OTHER);
    CHECK_EQUAL(first_calls, 1);
    win.Free();
}

static const struct test_case cases[] = {
    MPI2_CASES,
    GUARDED(allocated_memory_is_the_windows_base),
    GUARDED(locks_of_all_with_every_flush),
    GUARDED(atomics_return_the_previous_value),
    GUARDED(requests_complete),
    GUARDED(shared_memory_is_queried),
    GUARDED(hints_are_set_and_returned),
    GUARDED(attached_memory_is_reached_by_its_address),
    GUARDED(errors_are_thrown_and_leave_the_window_usable),
    GUARDED(the_handler_is_called_before_the_exception),
    GUARDED(errors_of_creation_are_thrown),
    GUARDED(misuse_of_a_flavour_is_thrown),
    GUARDED(callbacks_may_be_functions_of_c),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
