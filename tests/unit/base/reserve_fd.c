/* The library's own descriptors: they stay out of the program's range. A reserved descriptor is
 * used when no other is free, by the thread that has it. */
#include "base/reserve_fd.h"

#include "base/checked_open.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "use_up_descriptors.h"

enum { PROGRAMS = 100, FEW = 300 };

static struct rlimit limit_to(rlim_t most)
{
    struct rlimit before, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){.rlim_cur = most, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    return before;
}

static void descriptors_lie_high_or_stay(void **state)
{
    (void)state;
    int low = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int high = oriel_reserve_fd_move_high(low);
    assert_true(high > PROGRAMS);
    assert_int_equal(fcntl(high, F_GETFD), FD_CLOEXEC);
    assert_int_equal(fcntl(low, F_GETFD), -1);
    close(high);
    struct rlimit before = limit_to(PROGRAMS);
    low = open("/dev/null", O_RDONLY | O_CLOEXEC);
    high = oriel_reserve_fd_move_high(low);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(high, low);
    close(low);
    errno = EXDEV;
    assert_int_equal(oriel_reserve_fd_move_high(-1), -1);
    assert_int_equal(errno, EXDEV);
}

/* Opening briefly needs two at once; if that fails, the reserve is replenished. */
static void memory_is_opened_with_the_last_descriptor(void **state)
{
    char link[64];
    (void)state;
    int fd = memfd_create("some", MFD_CLOEXEC);
    snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)getpid(), fd);
    struct rlimit before = limit_to(FEW);
    oriel_reserve_fd_reserve();
    int last = descriptors_use_up();
    int none = oriel_checked_memory_open(link, geteuid());
    int reason = errno;
    bool is_reserved = oriel_reserve_fd_release(EMFILE);
    oriel_reserve_fd_restore();
    close(last);
    int opened = oriel_checked_memory_open(link, geteuid());
    close(opened);
    oriel_reserve_fd_restore();
    bool is_reserved_again = oriel_reserve_fd_release(EMFILE);
    closefrom(fd);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(none, -1);
    assert_int_equal(reason, EMFILE);
    assert_true(is_reserved);
    assert_true(opened >= 0);
    assert_true(is_reserved_again);
}

/* A program that works at its limit keeps its last descriptors. */
static void none_is_put_by_where_few_are_free(void **state)
{
    int fds[FEW];
    (void)state;
    struct rlimit before = limit_to(FEW);
    int last = descriptors_use_up();
    int few = last - 10;
    closefrom(few);
    oriel_reserve_fd_reserve();
    bool is_put_by = oriel_reserve_fd_release(EMFILE);
    int count = 0;
    while (count < FEW && (fds[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        count++;
    closefrom(few);
    setrlimit(RLIMIT_NOFILE, &before);
    oriel_reserve_fd_reserve();
    bool is_put_by_later = oriel_reserve_fd_release(EMFILE);
    for (int fd = few - 1; fd > STDERR_FILENO; fd--)
        close(fd);
    assert_false(is_put_by);
    assert_int_equal(count, FEW - few);
    assert_true(is_put_by_later);
}

static void *use_other_descriptors(void *spent)
{
    oriel_reserve_fd_detach_thread();
    oriel_reserve_fd_reserve();
    *(bool *)spent = oriel_reserve_fd_release(EMFILE);
    return NULL;
}

static void spare_one_is_not_among_those_of_another_table(void **state)
{
    pthread_t thread;
    bool is_spent = true;
    (void)state;
    oriel_reserve_fd_reserve();
    assert_int_equal(pthread_create(&thread, NULL, use_other_descriptors, &is_spent), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(is_spent);
    assert_false(oriel_reserve_fd_release(EACCES));
    assert_int_equal(errno, EACCES);
    assert_true(oriel_reserve_fd_release(ENFILE));
    assert_false(oriel_reserve_fd_release(ENFILE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptors_lie_high_or_stay),
        cmocka_unit_test(none_is_put_by_where_few_are_free),
        cmocka_unit_test(memory_is_opened_with_the_last_descriptor),
        cmocka_unit_test(spare_one_is_not_among_those_of_another_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
