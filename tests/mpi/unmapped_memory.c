/* The program unmaps memory under an open window, which MPI forbids and programs do. Peers get an
 * error or continue with the old pages. No process crashes, MPI_Win_free succeeds, and Oriel leaves
 * the program's new mapping alone. unmapped_memory.py runs it and reads the messages to the user:
 * each window here has the name of its case. */
#define _GNU_SOURCE
#include "memory_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { AREA_BYTES = 8 * PAGE, GUARD = 0x6b };

static MPI_Win named_window(void *base, size_t len_bytes, const char *name)
{
    MPI_Win win = window_over(base, len_bytes);
    MPI_Win_set_name(win, name);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    return win;
}

/* Later windows are not affected. */
static void next_windows_work(void)
{
    char *area = pages_map(AREA_BYTES), *block = malloc(50000);
    MPI_Win first = window_over(area + 100, AREA_BYTES - 100), second = window_over(block, 50000);
    check_promoted(first, area + 100, AREA_BYTES - 100);
    window_exercise(first, area + 100, AREA_BYTES - 100);
    window_exercise(second, block, 50000);
    MPI_Win_free(&first);
    MPI_Win_free(&second);
    munmap(area, AREA_BYTES);
    free(block);
}

static int class_of(int code)
{
    int class = MPI_SUCCESS;
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    return class;
}

static void message_check(const char *call, const char *name, int target)
{
    char rank[32];
    const char *text = oriel_error_text();
    snprintf(rank, sizeof rank, "rank %d", target);
    CHECK(strstr(text, call) && strstr(text, name) && strstr(text, rank),
          "the message names not all of %s, %s, %s: %s", call, name, rank, text);
}

/* Each operation on a word that is no longer mapped. */
static void every_operation_fails(MPI_Win win, int target, MPI_Aint disp, const char *name)
{
    int64_t value = 1, seen = 2, wanted = 3;
    char *block = calloc(2, PAGE);
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    CHECK_CLASS(MPI_ERR_RMA_RANGE,
                MPI_Put(block, 2 * PAGE, MPI_BYTE, target, disp, 2 * PAGE, MPI_BYTE, win));
    message_check("MPI_Put", name, target);
    CHECK_CLASS(MPI_ERR_RMA_RANGE,
                MPI_Get(block, 2 * PAGE, MPI_BYTE, target, disp, 2 * PAGE, MPI_BYTE, win));
    message_check("MPI_Get", name, target);
    CHECK_CLASS(MPI_ERR_RMA_RANGE, MPI_Accumulate(block, PAGE, MPI_BYTE, target, disp, PAGE,
                                                  MPI_BYTE, MPI_REPLACE, win));
    message_check("MPI_Accumulate", name, target);
    CHECK_OK(MPI_Put(&value, 1, MPI_INT64_T, target, disp, 1, MPI_INT64_T,
                     win)); /* short ones may wait until they are completed */
    CHECK_CLASS(MPI_ERR_RMA_RANGE, MPI_Win_flush(target, win));
    message_check("MPI_Win_flush", name, target);
    CHECK_OK(MPI_Accumulate(&value, 1, MPI_INT64_T, target, disp, 1, MPI_INT64_T, MPI_SUM, win));
    CHECK_CLASS(MPI_ERR_RMA_RANGE,
                MPI_Fetch_and_op(&value, &seen, MPI_INT64_T, target, disp, MPI_SUM, win));
    message_check("MPI_Fetch_and_op", name, target);
    CHECK_CLASS(MPI_ERR_RMA_RANGE,
                MPI_Compare_and_swap(&value, &wanted, &seen, MPI_INT64_T, target, disp, win));
    message_check("MPI_Compare_and_swap", name, target);
    CHECK_CLASS(MPI_ERR_RMA_RANGE, MPI_Win_unlock(target, win));
    message_check("MPI_Win_unlock", name, target);
    free(block);
}

static void unmapped_copied_memory_is_an_error_at_the_origin(enum window_kind kind)
{
    const char *name = "unmapped-copied";
    (void)kind;
    char *area = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MPI_Win win = named_window(area, AREA_BYTES, name);
    check_copied(win, "already shared");
    window_exercise(win, area, AREA_BYTES);
    munmap(area + 2 * PAGE, AREA_BYTES - 2 * PAGE);
    barrier(MPI_COMM_WORLD);
    for (int distance = 1; distance < world_size; distance++) {
        int target = (world_rank + distance) % world_size;
        int64_t value = 5, seen = 0;
        every_operation_fails(win, target, 2 * PAGE + 64, name);
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
        CHECK_OK(MPI_Put(&value, 1, MPI_INT64_T, target, 8, 1, MPI_INT64_T, win));
        CHECK_OK(MPI_Win_flush(target, win));
        CHECK_OK(MPI_Get(&seen, 1, MPI_INT64_T, target, 8, 1, MPI_INT64_T, win));
        CHECK_OK(MPI_Win_unlock(target, win));
        CHECK_EQUAL(seen, 5);
    }
    barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_free(&win));
    munmap(area, 2 * PAGE);
    next_windows_work();
}

/* A transfer that begins in mapped memory and ends in unmapped memory. */
static void a_transfer_into_a_hole_is_an_error(enum window_kind kind)
{
    char *block = calloc(AREA_BYTES, 1);
    (void)kind;
    char *area = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MPI_Win win = named_window(area, AREA_BYTES, "unmapped-in-part");
    munmap(area + 3 * PAGE, PAGE);
    barrier(MPI_COMM_WORLD);
    int target = (world_rank + 1) % world_size;
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    CHECK_CLASS(MPI_ERR_RMA_RANGE,
                MPI_Put(block, AREA_BYTES, MPI_BYTE, target, 0, AREA_BYTES, MPI_BYTE, win));
    message_check("MPI_Put", "unmapped-in-part", target);
    CHECK_CLASS(MPI_ERR_RMA_RANGE,
                MPI_Get(block, AREA_BYTES, MPI_BYTE, target, 0, AREA_BYTES, MPI_BYTE, win));
    CHECK_OK(MPI_Get(block, 3 * PAGE, MPI_BYTE, target, 4 * PAGE, 3 * PAGE, MPI_BYTE, win));
    CHECK_OK(MPI_Win_unlock(target, win));
    barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_free(&win));
    munmap(area, AREA_BYTES);
    free(block);
    next_windows_work();
}

/* Peers put into promoted memory: each put reaches the file's pages, or is an error. */
static void peers_continue(MPI_Win win, size_t len_bytes)
{
    for (int distance = 1; distance < world_size; distance++) {
        int target = (world_rank + distance) % world_size;
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
        for (size_t disp = 0; disp + 8 <= len_bytes; disp += 1000) {
            int64_t value = 77 + world_rank, seen = 0;
            int put = class_of(
                MPI_Put(&value, 1, MPI_INT64_T, target, (MPI_Aint)disp, 1, MPI_INT64_T, win));
            int flushed = class_of(MPI_Win_flush(target, win));
            int got = class_of(
                MPI_Get(&seen, 1, MPI_INT64_T, target, (MPI_Aint)disp, 1, MPI_INT64_T, win));
            CHECK(put == MPI_SUCCESS || put == MPI_ERR_RMA_RANGE, "MPI_Put gave class %d", put);
            CHECK(got == MPI_SUCCESS || got == MPI_ERR_RMA_RANGE, "MPI_Get gave class %d", got);
            CHECK(put != MPI_SUCCESS || got != MPI_SUCCESS || seen == value,
                  "the data put at %zu is not returned", disp);
            CHECK_EQUAL(flushed, MPI_SUCCESS);
        }
        CHECK_OK(MPI_Win_unlock(target, win));
        barrier(MPI_COMM_WORLD);
    }
}

static void unmapped_promoted_memory_is_harmless(enum window_kind kind)
{
    (void)kind;
    for (size_t skipped = 0; skipped < 400; skipped += 200) {
        char *area = pages_map(AREA_BYTES);
        MPI_Win win = named_window(area + skipped, AREA_BYTES - 2 * skipped, "vanished");
        check_promoted(win, area + skipped, AREA_BYTES - 2 * skipped);
        window_exercise(win, area + skipped, AREA_BYTES - 2 * skipped);
        munmap(area, AREA_BYTES);
        barrier(MPI_COMM_WORLD);
        peers_continue(win, AREA_BYTES - 2 * skipped);
        CHECK_OK(MPI_Win_free(&win));
        CHECK(win == MPI_WIN_NULL, "the handle is not MPI_WIN_NULL");
    }
    next_windows_work();
}

static void the_rest_of_memory_with_a_hole_is_private_again(enum window_kind kind)
{
    (void)kind;
    char *area = pages_map(AREA_BYTES);
    memset(area, GUARD, AREA_BYTES);
    MPI_Win win = named_window(area, AREA_BYTES, "hole");
    munmap(area + 3 * PAGE, 2 * PAGE);
    barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_free(&win));
    for (int i = 0; i < AREA_BYTES; i++)
        if ((i < 3 * PAGE || i >= 5 * PAGE) &&
            !CHECK(area[i] == GUARD, "byte %d is %d", i, area[i]))
            break;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    char *filled = mmap(area + 3 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    CHECK(filled == area + 3 * PAGE, "the hole is in use");
    win = window_over(area, AREA_BYTES);
    check_promoted(win, area, AREA_BYTES);
    window_exercise(win, area, AREA_BYTES);
    MPI_Win_free(&win);
    CHECK(madvise(area, AREA_BYTES, MADV_DONTNEED) == 0 && area[0] == 0 &&
              area[AREA_BYTES - 1] == 0,
          "MADV_DONTNEED");
    munmap(area, AREA_BYTES);
    next_windows_work();
}

static void a_new_mapping_over_it_is_left_alone(enum window_kind kind)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    (void)kind;
    char *area = pages_map(AREA_BYTES);
    MPI_Win win = named_window(area, AREA_BYTES, "mapped-over");
    window_exercise(win, area, AREA_BYTES);
    CHECK(mmap(area, AREA_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0) == area, "mmap");
    memset(area, GUARD, AREA_BYTES);
    barrier(MPI_COMM_WORLD);
    if (is_promoted(win)) /* else the peers reach the new mapping */
        peers_continue(win, AREA_BYTES);
    CHECK_OK(MPI_Win_free(&win));
    for (int i = 0; i < AREA_BYTES; i++)
        if (!CHECK(area[i] == GUARD, "byte %d of the program's new memory is %d", i, area[i]))
            break;
    win = window_over(area, AREA_BYTES);
    check_promoted(win, area, AREA_BYTES);
    window_exercise(win, area, AREA_BYTES);
    MPI_Win_free(&win);
    munmap(area, AREA_BYTES);
    next_windows_work();
}

static void moved_mapping_preserves_its_contents(enum window_kind kind)
{
    (void)kind;
    char *area = pages_map(AREA_BYTES), *destination = pages_map(2 * AREA_BYTES);
    memset(area, GUARD, AREA_BYTES);
    MPI_Win win = named_window(area, AREA_BYTES, "moved");
    /* not libc's function: a host's hook for it loses the fifth argument */
    long moved_to = syscall(SYS_mremap, area, AREA_BYTES, AREA_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED,
                            destination);
    char *moved = (char *)moved_to;
    if (!CHECK(moved == destination, "mremap gave %p", (void *)moved))
        moved = area;
    barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_free(&win));
    next_windows_work();
    next_windows_work();
    for (int i = 0; i < AREA_BYTES; i++)
        if (!CHECK(moved[i] == GUARD, "byte %d of the memory that was moved is %d", i, moved[i]))
            break;
    munmap(moved, AREA_BYTES);
}

/* True if the kernel lets this process write there; writes nothing. */
static bool is_writable(char *address)
{
    int ends[2];
    char byte = *address;
    bool written =
        pipe(ends) == 0 && write(ends[1], &byte, 1) == 1 && read(ends[0], address, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return written;
}

static void memory_made_readonly_stays_so(enum window_kind kind)
{
    (void)kind;
    char *area = pages_map(AREA_BYTES);
    memset(area, GUARD, AREA_BYTES);
    MPI_Win win = named_window(area, AREA_BYTES, "readonly");
    CHECK(mprotect(area + PAGE, 3 * PAGE, PROT_READ) == 0, "mprotect");
    barrier(MPI_COMM_WORLD);
    peers_continue(win, AREA_BYTES);
    char saved[AREA_BYTES];
    memcpy(saved, area, sizeof saved);
    CHECK_OK(MPI_Win_free(&win));
    CHECK(memcmp(saved, area, sizeof saved) == 0, "MPI_Win_free changes the contents");
    CHECK(!is_writable(area + PAGE) && !is_writable(area + 4 * PAGE - 1),
          "the pages are writable again");
    CHECK(is_writable(area) && is_writable(area + 4 * PAGE),
          "the pages next to them are not writable");
    CHECK(mprotect(area + PAGE, 3 * PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
    munmap(area, AREA_BYTES);
    next_windows_work();
}

static const struct test_case cases[] = {
    CASE(unmapped_copied_memory_is_an_error_at_the_origin, KIND_ANY, 2),
    CASE(a_transfer_into_a_hole_is_an_error, KIND_ANY, 2),
    CASE(unmapped_promoted_memory_is_harmless, KIND_ANY, 2),
    CASE(the_rest_of_memory_with_a_hole_is_private_again, KIND_ANY, 2),
    CASE(a_new_mapping_over_it_is_left_alone, KIND_ANY, 2),
    CASE(moved_mapping_preserves_its_contents, KIND_ANY, 2),
    CASE(memory_made_readonly_stays_so, KIND_ANY, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
