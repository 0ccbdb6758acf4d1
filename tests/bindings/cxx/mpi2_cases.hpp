// Cases for the members of MPI::Win in MPI-2.2, called with C handles. They compile with the class
// of <oriel/mpi_win.hpp> and with a host's own. Every case frees its windows; an escaping exception
// is a failure. Each program includes this header once.
#ifndef ORIEL_TESTS_MPI2_CASES_HPP
#define ORIEL_TESTS_MPI2_CASES_HPP

#include "../../../include/oriel/mpi_win.hpp"

#include <cstring>
#include <vector>

extern "C" {
#include "../../mpi/harness.h"
}

static int right_of_me() { return (world_rank + 1) % world_size; }
static int left_of_me() { return (world_rank + world_size - 1) % world_size; }

// Adapts a case to the harness and reports its exceptions.
template <void (*body)()> static void guarded(enum window_kind)
{
    try {
        body();
    } catch (const MPI::Exception &error) {
        CHECK(false, "an exception: %s", const_cast<MPI::Exception &>(error).Get_error_string());
    }
}
#define GUARDED(function) { #function, guarded<function>, KIND_ANY, 1 }

static MPI::Win window_over(std::vector<int> &memory)
{
    MPI::Win win =
        MPI::Win::Create(memory.data(), static_cast<MPI_Aint>(memory.size() * sizeof(int)),
                         sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD);
    win.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
    return win;
}

static void put_get_accumulate_between_fences()
{
    std::vector<int> memory(8, 0);
    MPI::Win win = window_over(memory);
    const int value = 10 + world_rank, one = 1;
    int seen = -1;
    win.Fence(MPI::MODE_NOPRECEDE);
    win.Put(&value, 1, MPI_INT, right_of_me(), 2, 1, MPI_INT);
    win.Accumulate(&one, 1, MPI_INT, 0, 3, 1, MPI_INT, MPI_SUM);
    win.Fence(0);
    CHECK_EQUAL(memory[2], 10 + left_of_me());
    win.Get(&seen, 1, MPI_INT, 0, 3, 1, MPI_INT);
    win.Fence(MPI::MODE_NOSUCCEED | MPI::MODE_NOPUT | MPI::MODE_NOSTORE);
    CHECK_EQUAL(seen, world_size);
    win.Free();
    CHECK(win == MPI::WIN_NULL, "Free leaves a handle");
}

static void post_start_complete_wait_or_test()
{
    std::vector<int> memory(2, 0);
    MPI::Win win = window_over(memory);
    MPI_Group all = win.Get_group(), to, from;
    const int right = right_of_me(), left = left_of_me(), value = 5 + world_rank;
    MPI_Group_incl(all, 1, &right, &to);
    MPI_Group_incl(all, 1, &left, &from);
    for (int round = 0; round < 2; round++) {
        win.Post(from, 0);
        win.Start(to, 0);
        win.Put(&value, 1, MPI_INT, right, round, 1, MPI_INT);
        win.Complete();
        if (round == 0)
            win.Wait();
        else
            while (!win.Test())
                ;
        CHECK_EQUAL(memory[static_cast<unsigned>(round)], 5 + left);
    }
    MPI_Group_free(&to);
    MPI_Group_free(&from);
    MPI_Group_free(&all);
    win.Free();
}

static void lock_and_unlock_with_both_types()
{
    int *memory = static_cast<int *>(MPI::Alloc_mem(sizeof(int), MPI_INFO_NULL));
    *memory = 0;
    MPI::Win win =
        MPI::Win::Create(memory, sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD);
    win.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
    barrier(MPI_COMM_WORLD);
    const int one = 1;
    int seen = -1;
    for (int target = 0; target < world_size; target++) {
        win.Lock(MPI::LOCK_EXCLUSIVE, target, 0);
        win.Accumulate(&one, 1, MPI_INT, target, 0, 1, MPI_INT, MPI_SUM);
        win.Unlock(target);
    }
    barrier(MPI_COMM_WORLD);
    win.Lock(MPI::LOCK_SHARED, right_of_me(), MPI::MODE_NOCHECK);
    win.Get(&seen, 1, MPI_INT, right_of_me(), 0, 1, MPI_INT);
    win.Unlock(right_of_me());
    CHECK_EQUAL(seen, world_size);
    win.Free();
    MPI::Free_mem(memory);
}

static void names_and_groups_are_the_windows()
{
    std::vector<int> memory(1);
    MPI::Win win = window_over(memory);
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = -1, same = MPI_UNEQUAL;
    win.Set_name("class");
    win.Get_name(name, length);
    CHECK(std::strcmp(name, "class") == 0 && length == 5, "the name is \"%s\"", name);
    MPI_Group of_win = win.Get_group(), of_comm;
    MPI_Comm_group(MPI_COMM_WORLD, &of_comm);
    MPI_Group_compare(of_win, of_comm, &same);
    CHECK_EQUAL(same, MPI_IDENT);
    MPI_Group_free(&of_win);
    MPI_Group_free(&of_comm);
    win.Free();
}

static void a_copy_is_the_same_window()
{
    std::vector<int> memory(1, world_rank);
    MPI::Win win = window_over(memory), copy = win, assigned;
    CHECK(assigned == MPI::WIN_NULL, "a window of nothing is no null handle");
    assigned = win;
    MPI_Win handle = win, of_copy = copy, of_assigned = assigned;
    CHECK(handle == of_copy && handle == of_assigned, "a copy has another handle");
    MPI::Win again(handle);
    int seen = -1;
    copy.Fence(0);
    again.Get(&seen, 1, MPI_INT, right_of_me(), 0, 1, MPI_INT);
    assigned.Fence(0);
    CHECK_EQUAL(seen, right_of_me());
    win.Free();
}

static void predefined_attributes_of_the_window()
{
    std::vector<int> memory(3);
    MPI::Win win = window_over(memory);
    void *base = nullptr;
    MPI_Aint *size = nullptr;
    int *unit = nullptr;
    CHECK(win.Get_attr(MPI::WIN_BASE, &base) && base == memory.data(), "WIN_BASE");
    CHECK(win.Get_attr(MPI::WIN_SIZE, &size) && *size == 12, "WIN_SIZE");
    CHECK(win.Get_attr(MPI::WIN_DISP_UNIT, &unit) && *unit == 4, "WIN_DISP_UNIT");
    win.Free();
}

static struct {
    int calls;
    void *value;
    void *extra_state;
    MPI_Win win;
} removed;

static int note_removal(MPI::Win &win, int, void *value, void *extra_state)
{
    removed.calls++;
    removed.value = value;
    removed.extra_state = extra_state;
    removed.win = win;
    return MPI_SUCCESS;
}

static int copy_nothing(const MPI::Win &, int, void *, void *, void *, bool &flag)
{
    flag = false;
    return MPI_SUCCESS;
}

static void user_attributes_call_back()
{
    std::vector<int> memory(1);
    int first = 1, second = 2, extra = 3;
    void *seen = nullptr;
    MPI::Win win = window_over(memory);
    MPI_Win handle = win;
    removed = {};
    int keyval = MPI::Win::Create_keyval(copy_nothing, note_removal, &extra);
    CHECK(!win.Get_attr(keyval, &seen), "an attribute before it was set");
    win.Set_attr(keyval, &first);
    CHECK(win.Get_attr(keyval, &seen) && seen == &first, "another attribute than was set");
    win.Delete_attr(keyval);
    CHECK(removed.calls == 1 && removed.value == &first && removed.extra_state == &extra &&
              removed.win == handle,
          "the callback of Delete_attr: %d calls", removed.calls);
    CHECK(!win.Get_attr(keyval, &seen), "an attribute after it was deleted");
    win.Set_attr(keyval, &second);
    MPI::Win::Free_keyval(keyval);
    CHECK(keyval == MPI::KEYVAL_INVALID, "Free_keyval leaves a key");
    win.Free();
    CHECK(removed.calls == 2 && removed.value == &second, "the callback of Free: %d calls",
          removed.calls);
}

static int first_calls, second_calls, last_code;
static MPI_Win last_win;

static void first_handler(MPI::Win &win, int *code, ...)
{
    first_calls++;
    last_code = *code;
    last_win = win;
}

static void second_handler(MPI::Win &, int *code, ...)
{
    second_calls++;
    last_code = *code;
}

static void each_window_calls_its_own_handler()
{
    std::vector<int> memory(1), other_memory(1);
    MPI::Win one = window_over(memory), two = window_over(other_memory);
    MPI_Errhandler first = MPI::Win::Create_errhandler(first_handler),
                   second = MPI::Win::Create_errhandler(second_handler);
    one.Set_errhandler(first);
    two.Set_errhandler(second);
    MPI_Errhandler got = one.Get_errhandler();
    CHECK(got == first, "Get_errhandler returns another handler");
    MPI_Errhandler_free(&got);
    MPI_Errhandler_free(&first); // the window keeps it
    MPI_Win handle = one;
    first_calls = second_calls = 0;
    one.Call_errhandler(MPI_ERR_OTHER);
    CHECK(first_calls == 1 && second_calls == 0 && last_code == MPI_ERR_OTHER, "%d and %d calls",
          first_calls, second_calls);
    CHECK(last_win == handle, "the handler got another window");
    two.Call_errhandler(MPI_ERR_ARG);
    CHECK(first_calls == 1 && second_calls == 1 && last_code == MPI_ERR_ARG, "%d and %d calls",
          first_calls, second_calls);
    MPI_Errhandler_free(&second);
    one.Free();
    two.Free();
}

#define MPI2_CASES                                                                                 \
    GUARDED(put_get_accumulate_between_fences), GUARDED(post_start_complete_wait_or_test),         \
        GUARDED(lock_and_unlock_with_both_types), GUARDED(names_and_groups_are_the_windows),       \
        GUARDED(a_copy_is_the_same_window), GUARDED(predefined_attributes_of_the_window),          \
        GUARDED(user_attributes_call_back), GUARDED(each_window_calls_its_own_handler)

#endif
