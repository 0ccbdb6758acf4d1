/* Limits on memory and address space.  Each question is asked in a child of its own, because the options and the resource
 * limits that it depends on are read or set once in a process. */
#include "memory/limit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka_all.h"

/* Whose own memory takes most of any address space. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* oriel_limit_reserve() of a process with this address space (0: as it is) and this ORIEL_RESERVE (NULL: none). */
static uint64_t reserve_with(uint64_t space_bytes, const char *option)
{
    int told[2];
    uint64_t reserve_bytes = 0;
    assert_int_equal(pipe(told), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rlimit space = {space_bytes, space_bytes};
        if (space_bytes > 0 && setrlimit(RLIMIT_AS, &space) != 0)
            _exit(1);
        if (option != NULL)
            setenv("ORIEL_RESERVE", option, 1);
        else
            unsetenv("ORIEL_RESERVE");
        reserve_bytes = oriel_limit_reserve();
        _exit(write(told[1], &reserve_bytes, sizeof reserve_bytes) == (ssize_t)sizeof reserve_bytes ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(read(told[0], &reserve_bytes, sizeof reserve_bytes), sizeof reserve_bytes);
    close(told[0]);
    close(told[1]);
    return reserve_bytes;
}

static void reserve_holds_the_physical_memory(void **state)
{
    (void)state;
    uint64_t physical = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    struct rlimit space;
    assert_int_equal(getrlimit(RLIMIT_AS, &space), 0);
    if (space.rlim_cur != RLIM_INFINITY || sysconf(_SC_NPROCESSORS_CONF) > 16 || physical > UINT64_C(1) << 41) {
        print_message("skipped: the machine is too large, or this process limited\n");
        skip();
    }
    uint64_t reserve_bytes = reserve_with(0, NULL);
    assert_true(reserve_bytes >= physical);
    assert_int_equal(reserve_bytes % 4096, 0);
}

static void limited_address_space_makes_the_reserve_smaller(void **state)
{
    (void)state;
    if (SANITIZED) {
        print_message("skipped: a sanitizer takes the address space\n");
        skip();
    }
    uint64_t free_bytes = reserve_with(0, NULL);
    uint64_t large = reserve_with(UINT64_C(16) << 30, NULL);
    uint64_t small = reserve_with(UINT64_C(2) << 30, NULL);
    assert_true(small < large);
    assert_true(large <= free_bytes);
    assert_in_range(small, UINT64_C(4) << 20, UINT64_C(2) << 25); /* room for many peers' files */
    assert_int_equal(small % 4096, 0);
}

static void nothing_is_reserved_where_the_host_would_miss_it(void **state)
{
    (void)state;
    if (SANITIZED) {
        print_message("skipped: a sanitizer takes the address space\n");
        skip();
    }
    assert_int_equal(reserve_with(UINT64_C(24) << 20, NULL), 0);
    assert_int_equal(reserve_with(UINT64_C(24) << 20, "4M"), UINT64_C(4) << 20); /* who says so means it */
}

static void option_decides_the_reserve(void **state)
{
    (void)state;
    assert_int_equal(reserve_with(0, "64M"), UINT64_C(64) << 20);
    assert_int_equal(reserve_with(0, "1G"), UINT64_C(1) << 30);
    assert_int_equal(reserve_with(0, "1"), UINT64_C(4) << 20);
    assert_int_equal(reserve_with(0, "8193K"), (UINT64_C(8193) << 10) & ~UINT64_C(4095));
}

static void available_is_no_more_than_the_machine_has(void **state)
{
    (void)state;
    uint64_t available = oriel_limit_available();
    uint64_t physical = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    assert_true(available > 0);
    assert_true(available <= physical);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reserve_holds_the_physical_memory),
        cmocka_unit_test(limited_address_space_makes_the_reserve_smaller),
        cmocka_unit_test(nothing_is_reserved_where_the_host_would_miss_it),
        cmocka_unit_test(option_decides_the_reserve),
        cmocka_unit_test(available_is_no_more_than_the_machine_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
