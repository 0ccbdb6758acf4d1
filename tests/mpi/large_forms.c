/* The functions whose counts and sizes are MPI_Count: found at run time, since an older host's
 * header does not declare them. Each behaves like its short form; large_transfers.c has counts
 * beyond an int. A plain MPI program, run by the test rows; skipped where no library defines the
 * functions. */
#include "harness.h"

#include <dlfcn.h>
#include <string.h>

typedef int put_function(const void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count,
                         MPI_Datatype, MPI_Win);
typedef int get_function(void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype,
                         MPI_Win);
typedef int accumulate_function(const void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count,
                                MPI_Datatype, MPI_Op, MPI_Win);
typedef int get_accumulate_function(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count,
                                    MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype, MPI_Op,
                                    MPI_Win);
typedef int rget_function(void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype,
                          MPI_Win, MPI_Request *);
typedef int create_function(void *, MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, MPI_Win *);
typedef int allocate_function(MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, void *, MPI_Win *);
typedef int query_function(MPI_Win, int, MPI_Aint *, MPI_Aint *, void *);

/* Stores the function's address in the pointer; records the skip and returns false when it does not
 * exist. */
static bool find(const char *name, void *pointer)
{
    void *address = dlsym(RTLD_DEFAULT, name);
    memcpy(pointer, &address, sizeof address);
    if (!address)
        harness_skip("no library defines the functions with large counts");
    return address != NULL;
}

static void operations_with_large_counts_move_data(enum window_kind kind)
{
    put_function *put;
    get_function *get;
    accumulate_function *accumulate;
    get_accumulate_function *get_accumulate;
    rget_function *rget;
    if (!find("MPI_Put_c", &put) || !find("MPI_Get_c", &get) ||
        !find("MPI_Accumulate_c", &accumulate) || !find("MPI_Get_accumulate_c", &get_accumulate) ||
        !find("MPI_Rget_c", &rget))
        return;
    struct window window = window_make(kind, (MPI_Aint)32 * world_size, 8, MPI_COMM_WORLD);
    int target = (world_rank + 1) % world_size;
    MPI_Aint disp = 4 * world_rank;
    int64_t sent[4] = {1, 2, 3, 4}, got[4] = {0}, old[4] = {0};
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Win_lock_all(0, window.win);
    CHECK_OK(put(sent, 4, MPI_INT64_T, target, disp, 4, MPI_INT64_T, window.win));
    MPI_Win_flush(target, window.win);
    CHECK_OK(accumulate(sent, 4, MPI_INT64_T, target, disp, 4, MPI_INT64_T, MPI_SUM, window.win));
    CHECK_OK(get_accumulate(sent, 4, MPI_INT64_T, old, 4, MPI_INT64_T, target, disp, 4, MPI_INT64_T,
                            MPI_SUM, window.win));
    MPI_Win_flush(target, window.win);
    CHECK_OK(get(got, 4, MPI_INT64_T, target, disp, 4, MPI_INT64_T, window.win));
    MPI_Win_flush(target, window.win);
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(old[i], 2 * sent[i]);
        CHECK_EQUAL(got[i], 3 * sent[i]);
    }
    memset(got, 0, sizeof got);
    CHECK_OK(rget(got, 4, MPI_INT64_T, target, disp, 4, MPI_INT64_T, window.win, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQUAL(got[3], 12);
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

static void window_check(MPI_Win win, const int64_t *words)
{
    int64_t value = 40 + world_rank;
    window_watch(win);
    MPI_Win_fence(0, win);
    MPI_Put(&value, 1, MPI_INT64_T, (world_rank + 1) % world_size, 1, 1, MPI_INT64_T, win);
    MPI_Win_fence(0, win);
    CHECK_EQUAL(words[1], 40 + (world_rank + world_size - 1) % world_size);
}

static void windows_with_wide_displacement_units_work(enum window_kind kind)
{
    create_function *create;
    allocate_function *allocate, *allocate_shared;
    query_function *query;
    MPI_Win win;
    MPI_Aint size_bytes = -1, unit = -1;
    int64_t memory[4] = {0}, *words = NULL, *seen = NULL;
    (void)kind;
    if (!find("MPI_Win_create_c", &create) || !find("MPI_Win_allocate_c", &allocate) ||
        !find("MPI_Win_allocate_shared_c", &allocate_shared) ||
        !find("MPI_Win_shared_query_c", &query))
        return;
    CHECK_OK(create(memory, sizeof memory, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    window_check(win, memory);
    MPI_Win_free(&win);
    CHECK_OK(allocate(32, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &words, &win));
    window_check(win, words);
    MPI_Win_free(&win);
    if (!ranks_share_memory())
        return;
    CHECK_OK(allocate_shared(32, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &words, &win));
    window_check(win, words);
    CHECK_OK(query(win, world_rank, &size_bytes, &unit, &seen));
    CHECK(size_bytes == 32 && unit == 8 && seen == words, "size %ld, unit %ld", (long)size_bytes,
          (long)unit);
    MPI_Win_free(&win);
}

static const struct test_case cases[] = {
    CASE(operations_with_large_counts_move_data, KINDS_BOTH, 1),
    CASE(windows_with_wide_displacement_units_work, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
