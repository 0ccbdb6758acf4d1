/* The own memory file: allocations are zero, aligned and disjoint. Freed memory leaves no trace,
 * except pages cached for the program's next allocation. The file is started once for all tests, as
 * in a program. */
#include "memory/file.h"

#include "base/valgrind.h"
#include "memory/memory_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "cmocka_all.h"

#define MIB (UINT64_C(1) << 20)

enum { BLOCKS = 200, ROUNDS = 4000 };

struct block {
    uint64_t offset;
    uint64_t len_bytes;
    uint8_t fill;
};

/* Older kernels interrupt a reservation at a signal. Here every other reservation is interrupted,
 * starting with the process's first. The linker's --wrap. */
static bool is_interrupted(void)
{
    static unsigned calls;
    return calls++ % 2 == 0;
}

int __real_fallocate(int fd, int mode, off_t offset, off_t len_bytes);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t len_bytes);

int __wrap_fallocate(int fd, int mode, off_t offset, off_t len_bytes)
{
    if (mode == 0 && is_interrupted()) {
        errno = EINTR;
        return -1;
    }
    return __real_fallocate(fd, mode, offset, len_bytes);
}

int __real_posix_fallocate(int fd, off_t offset, off_t len_bytes);
int __wrap_posix_fallocate(int fd, off_t offset, off_t len_bytes);

int __wrap_posix_fallocate(int fd, off_t offset, off_t len_bytes)
{
    return is_interrupted() ? EINTR : __real_posix_fallocate(fd, offset, len_bytes);
}

static int file_start(void **state)
{
    (void)state;
    return oriel_file_start() == ORIEL_OK ? 0 : -1;
}

static int file_stop(void **state)
{
    (void)state;
    oriel_file_finalise();
    return 0;
}

static uint64_t next_random(void)
{
    static uint64_t random = 0x9876543210fedcu;
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return random >> 16;
}

/* Physical memory of the file. */
static uint64_t held_bytes(void)
{
    struct stat info;
    assert_int_equal(fstat(oriel_file_identity()->memory_fd, &info), 0);
    return (uint64_t)info.st_blocks * 512;
}

static bool all_are(const struct block *block, uint8_t value)
{
    const uint8_t *bytes = (const uint8_t *)oriel_file_base() + block->offset;
    return block->len_bytes == 0 ||
           (bytes[0] == value && memcmp(bytes, bytes + 1, block->len_bytes - 1) == 0);
}

static void header_names_the_owner_of_the_file(void **state)
{
    (void)state;
    const struct oriel_file_header *header = (const struct oriel_file_header *)oriel_file_base();
    assert_true(header->magic == ORIEL_FILE_MAGIC);
    assert_int_equal(header->version, ORIEL_FILE_VERSION);
    assert_int_equal(header->state, ORIEL_FILE_RUNNING);
    assert_int_equal(header->identity.pid, getpid());
    assert_true(oriel_identity_equal(&header->identity, oriel_file_identity()));
    assert_int_equal(header->reserve_bytes, oriel_file_reserve());
    assert_int_equal(header->owner_address, (uintptr_t)oriel_file_base());
    assert_int_equal(fcntl(header->identity.memory_fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(oriel_file_start(), ORIEL_OK); /* a second start changes nothing */
    assert_true(oriel_identity_equal(&header->identity, oriel_file_identity()));
}

/* Sizes on both sides of every limit between the allocation methods. */
static uint64_t random_length(void)
{
    static const uint64_t around[] = {1, 64, 4096, 32 << 10, 64 << 10, 256 << 10};
    uint64_t from = around[next_random() % (sizeof around / sizeof around[0])];
    return from - (from > 64 ? 64 : 0) + next_random() % 130;
}

static void blocks_are_zero_aligned_and_apart(void **state)
{
    (void)state;
    static struct block blocks[BLOCKS];
    for (int round = 0; round < ROUNDS; round++) {
        struct block *block = &blocks[next_random() % BLOCKS];
        if (block->len_bytes > 0) {
            assert_true(all_are(block, block->fill)); /* no other block has been written here */
            assert_true(oriel_file_free(block->offset));
            assert_false(oriel_file_free(block->offset));
            block->len_bytes = 0;
            continue;
        }
        uint64_t align_bytes = UINT64_C(1) << (next_random() % 17);
        block->len_bytes = random_length();
        block->fill = (uint8_t)(1 + next_random() % 255);
        assert_int_equal(oriel_file_alloc(block->len_bytes, align_bytes, &block->offset), ORIEL_OK);
        assert_int_equal(block->offset % (align_bytes > 64 ? align_bytes : 64), 0);
        assert_true(block->offset >= ORIEL_PAGE_BYTES); /* the header's page is never allocated */
        assert_true(all_are(block, 0));
        memset(oriel_file_base() + block->offset, block->fill, block->len_bytes);
    }
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].len_bytes > 0)
            assert_true(oriel_file_free(blocks[i].offset));
}

static void sparse_blocks_are_zero_and_hold_nothing(void **state)
{
    (void)state;
    struct block block = {.len_bytes = 8 * MIB};
    uint64_t before_bytes = held_bytes();
    assert_int_equal(oriel_file_alloc_sparse(block.len_bytes, &block.offset), ORIEL_OK);
    assert_in_range(held_bytes(), 0, before_bytes + MIB);
    oriel_file_base()[block.offset + 4 * MIB] = 1;
    assert_in_range(held_bytes(), before_bytes + 1, before_bytes + MIB);
    assert_true(oriel_file_free(block.offset));
    assert_int_equal(held_bytes(), before_bytes);
}

/* Replaces libc's function, as libraries do that register memory with a device, to detect when its
 * pages are removed. */
static uint64_t removed_bytes;

int madvise(void *start, size_t len_bytes, int advice)
{
    int result = (int)syscall(SYS_madvise, start, len_bytes, advice);
    removed_bytes += result == 0 && advice == MADV_REMOVE ? len_bytes : 0;
    return result;
}

static void removed_pages_are_reported_to_hooks_of_libc(void **state)
{
    (void)state;
    uint64_t offset;
    assert_int_equal(oriel_file_alloc(24 * MIB, 64, &offset), ORIEL_OK);
    removed_bytes = 0;
    assert_true(oriel_file_free(offset));
    assert_true(removed_bytes >= 24 * MIB);
}

static void large_blocks_are_reserved_and_punched_out(void **state)
{
    (void)state;
    struct block block = {.len_bytes = 24 * MIB};
    uint64_t before_bytes = held_bytes();
    assert_int_equal(oriel_file_alloc(block.len_bytes, 64, &block.offset), ORIEL_OK);
    assert_true(held_bytes() >= before_bytes + block.len_bytes); /* before the first access to it */
    memset(oriel_file_base() + block.offset, 7, block.len_bytes);
    assert_true(oriel_file_free(block.offset));
    assert_int_equal(held_bytes(), before_bytes);
    uint64_t again;
    assert_int_equal(oriel_file_alloc(block.len_bytes, 64, &again), ORIEL_OK);
    block.offset = again;
    assert_true(all_are(&block, 0));
    assert_true(oriel_file_free(again));
}

/* --- cached pages --- */

/* The linker redirects the library's queries of the time and of available memory here. */
static time_t later_s;
static uint64_t available_bytes; /* 0: the real value */

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = __real_clock_gettime(clock, now);
    now->tv_sec += later_s;
    return result;
}

uint64_t __real_oriel_memory_limits_available(void);
uint64_t __wrap_oriel_memory_limits_available(void);

uint64_t __wrap_oriel_memory_limits_available(void)
{
    return available_bytes > 0 ? available_bytes : __real_oriel_memory_limits_available();
}

/* Allocates a block as MPI_Alloc_mem does, fills its first pages, and frees it. */
static uint64_t given_and_freed(uint64_t len_bytes)
{
    uint64_t offset;
    assert_int_equal(oriel_file_alloc_mem(len_bytes, 64, &offset), ORIEL_OK);
    memset(oriel_file_base() + offset, 5, len_bytes < 4 * MIB ? len_bytes : 4 * MIB);
    assert_true(oriel_file_free_mem(offset));
    assert_false(oriel_file_free_mem(offset));
    return offset;
}

static void some_memory_or_skip(void)
{
    if (oriel_memory_limits_available() < 4096 * MIB) {
        print_message("skipped: too little memory is free\n");
        skip();
    }
    later_s += 2; /* a check is due */
}

static void freed_program_memory_is_cached_for_the_next_alone(void **state)
{
    (void)state;
    enum { SMALL = 20 };
    static struct block small[SMALL];
    struct block zero = {.len_bytes = 2 * MIB}, window = {.len_bytes = 2 * MIB};
    uint64_t again;
    some_memory_or_skip();
    uint64_t offset = given_and_freed(4 * MIB);
    uint64_t used_bytes = held_bytes();
    assert_int_equal(oriel_file_alloc(zero.len_bytes, 64, &zero.offset), ORIEL_OK);
    assert_true(zero.offset >= offset + 4 * MIB || zero.offset + zero.len_bytes <= offset);
    assert_true(all_are(&zero, 0));
    for (int i = 0; i < SMALL;
         i++) { /* nor is it made into a slab: small blocks are zero for every caller */
        small[i].len_bytes = 31 << 10;
        assert_int_equal(oriel_file_alloc_mem(small[i].len_bytes, 64, &small[i].offset), ORIEL_OK);
        assert_true(all_are(&small[i], 0));
    }
    for (int i = 0; i < SMALL; i++) {
        memset(oriel_file_base() + small[i].offset, 5, small[i].len_bytes);
        assert_true(oriel_file_free_mem(small[i].offset));
    }
    for (int i = 0; i < 2;
         i++) { /* they are left to the program's next small block; a window's is cleared */
        assert_int_equal((i == 0 ? oriel_file_alloc : oriel_file_alloc_window)(
                             small[i].len_bytes, 64, &small[i].offset),
                         ORIEL_OK);
        assert_true(all_are(&small[i], 0));
        assert_true(oriel_file_free(small[i].offset));
    }
    assert_int_equal(oriel_file_alloc_window(window.len_bytes, 64, &window.offset), ORIEL_OK);
    assert_int_equal(window.offset, offset);
    assert_true(all_are(&window, 0));
    assert_int_equal(oriel_file_alloc_mem(2 * MIB, 64, &again), ORIEL_OK);
    assert_int_equal(again, offset + 2 * MIB);
    assert_true(all_are(&(struct block){again, 2 * MIB, 0}, 5)); /* no write has reached it */
    assert_false(oriel_file_free_mem(window.offset));
    assert_true(oriel_file_free(window.offset));
    assert_true(oriel_file_free_mem(again));
    assert_true(oriel_file_free(zero.offset));
    later_s += 2; /* used since the last check */
    given_and_freed(MIB);
    oriel_file_finalise();
    assert_in_range(held_bytes(), 0, used_bytes - 4 * MIB + 4 * (256 << 10));
    assert_int_equal(oriel_file_start(), ORIEL_OK);
}

static void unused_cached_pages_are_released(void **state)
{
    (void)state;
    uint64_t offset, before_bytes = held_bytes();
    some_memory_or_skip();
    given_and_freed(4 * MIB);
    for (int i = 0; i < 2; i++) {
        later_s += 11;
        assert_int_equal(oriel_file_alloc(64, 64, &offset), ORIEL_OK);
        assert_true(oriel_file_free(offset));
    }
    assert_int_equal(held_bytes(), before_bytes);
}

static void cached_pages_are_bounded(void **state)
{
    (void)state;
    uint64_t before_bytes = held_bytes();
    some_memory_or_skip();
    given_and_freed(257 * MIB);
    assert_int_equal(held_bytes(), before_bytes);
    available_bytes = 64 * MIB; /* other programs have taken the rest */
    later_s += 2;
    given_and_freed(5 * MIB);
    assert_int_equal(held_bytes(), before_bytes);
    given_and_freed(2 * MIB);
    assert_int_equal(held_bytes(), before_bytes + 2 * MIB);
    given_and_freed(3 * MIB);
    assert_int_equal(held_bytes(), before_bytes + 3 * MIB);
    available_bytes = 16 * MIB;
    later_s += 2;
    given_and_freed(32 << 10);
    assert_int_equal(held_bytes(), before_bytes + (32 << 10));
    available_bytes = 0;
    oriel_file_finalise();
    assert_int_equal(oriel_file_start(), ORIEL_OK);
}

static void cached_pages_make_room_for_allocations(void **state)
{
    (void)state;
    struct rlimit limit;
    struct stat info;
    uint64_t offset;
    some_memory_or_skip();
    given_and_freed(128 * MIB);
    assert_int_equal(fstat(oriel_file_identity()->memory_fd, &info), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    struct rlimit tight = {.rlim_cur = (rlim_t)info.st_size + 100, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    enum oriel_status status = oriel_file_alloc_sparse((uint64_t)info.st_size - 32 * MIB, &offset);
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_int_equal(status, ORIEL_OK);
    assert_true(oriel_file_free(offset));
}

/* Its leak search has no bytes after the end, each of which would cost a signal. */
static void under_valgrind_the_file_has_its_full_length(void **state)
{
    (void)state;
    struct stat info;
    uint64_t offset;
    if (!oriel_is_under_valgrind()) {
        print_message("skipped: the file grows as needed\n");
        skip();
    }
    assert_int_equal(oriel_file_alloc(64, 64, &offset), ORIEL_OK);
    assert_int_equal(fstat(oriel_file_identity()->memory_fd, &info), 0);
    assert_int_equal(info.st_size, oriel_file_reserve());
    assert_true(oriel_file_free(offset));
}

static void turnover_holds_no_more_memory(void **state)
{
    (void)state;
    uint64_t offset;
    uint64_t before_bytes = held_bytes();
    for (int i = 0; i < 20000; i++) {
        assert_int_equal(oriel_file_alloc(i % 2 == 0 ? 700 : 40000, 64, &offset), ORIEL_OK);
        assert_true(oriel_file_free(offset));
    }
    assert_in_range(held_bytes(), 0, before_bytes + MIB);
}

static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    static const uint64_t impossible[] = {UINT64_MAX, UINT64_MAX - 63, UINT64_MAX - 4095, INT64_MAX,
                                          UINT64_C(1) << 60};
    uint64_t offset = 5;
    uint64_t before_bytes = held_bytes();
    for (size_t i = 0; i < sizeof impossible / sizeof impossible[0]; i++) {
        assert_int_equal(oriel_file_alloc(impossible[i], 64, &offset), ORIEL_E_NO_MEM);
        assert_int_equal(oriel_file_alloc_sparse(impossible[i], &offset), ORIEL_E_NO_MEM);
    }
    assert_int_not_equal(oriel_file_alloc(oriel_file_reserve(), 64, &offset), ORIEL_OK);
    assert_int_equal(oriel_file_alloc(64, UINT64_C(1) << 62, &offset),
                     ORIEL_E_OTHER); /* only this file cannot */
    assert_true(strlen(oriel_fail_message()) > 0);
    assert_int_equal(offset, 5);
    assert_int_equal(held_bytes(), before_bytes);
    assert_int_equal(oriel_file_alloc(0, 1, &offset), ORIEL_OK); /* size 0 has its own offset */
    assert_true(oriel_file_free(offset));
}

/* Growth beyond the limit would raise a signal. */
static void file_size_limit_is_an_error(void **state)
{
    (void)state;
    struct rlimit limit;
    struct stat info;
    uint64_t offset;
    assert_int_equal(fstat(oriel_file_identity()->memory_fd, &info), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    struct rlimit tight = {.rlim_cur = (rlim_t)info.st_size + 100, .rlim_max = limit.rlim_max};
    uint64_t more_bytes = (uint64_t)info.st_size + MIB;
    if (oriel_memory_limits_available() < 2 * more_bytes) {
        print_message("skipped: too little memory is free\n");
        skip();
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    enum oriel_status status = oriel_file_alloc(more_bytes, 64, &offset);
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_int_equal(status, ORIEL_E_OTHER); /* the host may have memory */
    assert_int_equal(oriel_file_alloc(more_bytes, 64, &offset), ORIEL_OK);
    assert_true(oriel_file_free(offset));
}

static void an_abandoned_file_is_started_again(void **state)
{
    (void)state;
    const struct oriel_file_header *header = (const struct oriel_file_header *)oriel_file_base();
    uint64_t offset;
    assert_int_equal(oriel_file_alloc(1000, 64, &offset), ORIEL_OK);
    oriel_file_base()[offset] = 3;
    oriel_file_finalise();
    assert_int_equal(header->state, ORIEL_FILE_FINALISED);
    assert_int_equal(oriel_file_base()[offset],
                     3); /* programs read their memory after MPI_Finalize */
    assert_int_equal(oriel_file_start(), ORIEL_OK);
    assert_int_equal(header->state, ORIEL_FILE_RUNNING);
    assert_int_equal(oriel_file_base()[offset], 3);
    assert_true(oriel_file_free(offset));
}

static void free_accepts_only_starts(void **state)
{
    (void)state;
    uint64_t offset;
    assert_int_equal(oriel_file_alloc(1000, 64, &offset), ORIEL_OK);
    assert_false(oriel_file_free(offset + 64));
    assert_false(oriel_file_free(0));
    assert_true(oriel_file_free(offset));
}

static void find_knows_its_own_addresses(void **state)
{
    (void)state;
    uint64_t offset;
    uint64_t found = 5;
    int variable = 0;
    assert_int_equal(oriel_file_alloc(1000, 64, &offset), ORIEL_OK);
    assert_true(oriel_file_find(oriel_file_base() + offset + 3, 997, &found));
    assert_int_equal(found, offset + 3);
    found = 5;
    assert_false(oriel_file_find(&variable, sizeof variable, &found));
    assert_false(oriel_file_find(NULL, 1, &found));
    assert_false(oriel_file_find(oriel_file_base() + offset, UINT64_MAX, &found));
    assert_false(oriel_file_find(oriel_file_base() + offset, oriel_file_reserve(),
                                 &found)); /* the file ends before */
    assert_false(oriel_file_find(oriel_file_base() - 1, 1, &found));
    assert_int_equal(found, 5);
    assert_true(oriel_file_free(offset));
}

static volatile sig_atomic_t alarms;

static void on_alarm(int signal_number)
{
    (void)signal_number;
    alarms++;
}

/* Timers and profilers interrupt long system calls. */
static void signals_do_not_spoil_an_allocation(void **state)
{
    (void)state;
    struct sigaction caught = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 4000}, {0, 4000}};
    struct itimerval never = {{0, 0}, {0, 0}};
    uint64_t offset;
    int refused = 0;
    if (oriel_memory_limits_available() < 512 * MIB) {
        print_message("skipped: too little memory is free\n");
        skip();
    }
    assert_int_equal(sigaction(SIGALRM, &caught, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    while (alarms < 10) {
        if (oriel_file_alloc(128 * MIB, 64, &offset) == ORIEL_OK)
            oriel_file_free(offset);
        else
            refused++;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    if (refused > 0)
        print_message("%s\n", oriel_fail_message());
    assert_int_equal(refused, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_names_the_owner_of_the_file),
        cmocka_unit_test(blocks_are_zero_aligned_and_apart),
        cmocka_unit_test(sparse_blocks_are_zero_and_hold_nothing),
        cmocka_unit_test(large_blocks_are_reserved_and_punched_out),
        cmocka_unit_test(removed_pages_are_reported_to_hooks_of_libc),
        cmocka_unit_test(freed_program_memory_is_cached_for_the_next_alone),
        cmocka_unit_test(unused_cached_pages_are_released),
        cmocka_unit_test(cached_pages_are_bounded),
        cmocka_unit_test(cached_pages_make_room_for_allocations),
        cmocka_unit_test(under_valgrind_the_file_has_its_full_length),
        cmocka_unit_test(turnover_holds_no_more_memory),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(file_size_limit_is_an_error),
        cmocka_unit_test(an_abandoned_file_is_started_again),
        cmocka_unit_test(free_accepts_only_starts),
        cmocka_unit_test(find_knows_its_own_addresses),
        cmocka_unit_test(signals_do_not_spoil_an_allocation),
    };
    return cmocka_run_group_tests(tests, file_start, file_stop);
}
