/* A descriptor's link is opened only if it still leads to the expected file. */
#include "base/checked_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cmocka_all.h"
#include "open_watch.h"

enum { NOBODY = 65534 };

static int made_file(char *path)
{
    strcpy(path, "/tmp/oriel-seen.XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    return fd;
}

/* Opens memory by its link, whose descriptor is then closed; returns whether it was opened. */
static bool memory_opens(int fd, int *reason)
{
    char link[64];
    int watch = opened_watch(getpid(), fd);
    assert_true(watch >= 0);
    snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)getpid(), fd);
    int opened = oriel_checked_memory_open(link, geteuid());
    *reason = errno;
    bool was_opened = opened_since(watch);
    assert_int_equal(was_opened, opened >= 0);
    if (opened >= 0)
        close(opened);
    int again = open(link, O_RDWR | O_NONBLOCK | O_CLOEXEC); /* the watch detects a real open */
    assert_true(again >= 0 && opened_since(watch));
    close(again);
    close(watch);
    close(fd);
    return opened >= 0;
}

static void own_memory_is_opened_for_reading_and_writing(void **state)
{
    char link[64], byte = 0;
    (void)state;
    int fd = memfd_create("some", MFD_CLOEXEC);
    snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)getpid(), fd);
    int opened = oriel_checked_memory_open(link, geteuid());
    assert_true(opened >= 0);
    assert_true(fcntl(opened, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(write(opened, "a", 1), 1);
    assert_int_equal(pread(fd, &byte, 1, 0), 1);
    assert_int_equal(byte, 'a');
    close(opened);
    int reason;
    assert_true(memory_opens(fd, &reason));
}

static void other_files_than_memory_files_are_not_opened(void **state)
{
    char path[64];
    int ends[2], reason = 0;
    (void)state;
    int file = made_file(path);
    assert_false(memory_opens(file, &reason));
    assert_int_equal(reason, 0);
    unlink(path);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_false(memory_opens(ends[0], &reason));
    assert_int_equal(reason, 0);
    close(ends[1]);
}

static void memory_of_another_user_is_not_opened(void **state)
{
    int reason = 0;
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: only root can change a file's owner\n");
        skip();
    }
    int fd = memfd_create("some", MFD_CLOEXEC);
    assert_int_equal(fchown(fd, NOBODY, NOBODY), 0);
    assert_false(memory_opens(fd, &reason));
    assert_int_equal(reason, 0);
}

static void missing_files_have_a_reason(void **state)
{
    struct stat about;
    (void)state;
    assert_int_equal(oriel_checked_memory_open("/proc/self/fd/1000000", geteuid()), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(oriel_checked_path_open(AT_FDCWD, "/proc/self/status/no", &about), -1);
    assert_int_equal(errno, ENOTDIR);
    assert_int_equal(oriel_checked_path_open(AT_FDCWD, "/tmp", &about), -1);
    assert_int_equal(errno, 0);
}

/* The file that was checked is opened, even if the name denotes another file by then. */
static void the_checked_file_is_opened(void **state)
{
    char path[64], byte = 0;
    struct stat about;
    (void)state;
    int file = made_file(path);
    assert_int_equal(write(file, "a", 1), 1);
    int seen = oriel_checked_path_open(AT_FDCWD, path, &about);
    assert_true(seen >= 0);
    assert_int_equal(about.st_size, 1);
    assert_int_equal(read(seen, &byte, 1), -1);
    assert_int_equal(unlink(path), 0);
    int opened = oriel_checked_reopen(seen, O_RDONLY);
    assert_true(opened >= 0);
    assert_int_equal(fcntl(seen, F_GETFD), -1);
    assert_int_equal(read(opened, &byte, 1), 1);
    assert_int_equal(byte, 'a');
    close(opened);
    close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_memory_is_opened_for_reading_and_writing),
        cmocka_unit_test(other_files_than_memory_files_are_not_opened),
        cmocka_unit_test(memory_of_another_user_is_not_opened),
        cmocka_unit_test(missing_files_have_a_reason),
        cmocka_unit_test(the_checked_file_is_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
