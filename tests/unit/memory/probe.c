/* The probes: each returns a name and a reason, leaves nothing open, and is right if it can be
 * checked independently. */
#include "memory/probe.h"

#include <dirent.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka_all.h"

static int descriptors_count(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static void every_probe_names_itself_and_its_reason(void **state)
{
    (void)state;
    static const char *const names[] = {"memfd", "cma", "userfaultfd", "xpmem", "ucx"};
    assert_int_equal(oriel_probes_count, sizeof names / sizeof names[0]);
    for (size_t i = 0; i < oriel_probes_count; i++) {
        struct oriel_probe probe;
        memset(&probe, 0xff, sizeof probe);
        oriel_probes[i](&probe);
        assert_string_equal(probe.name, names[i]);
        assert_non_null(memchr(probe.detail, '\0', sizeof probe.detail));
        assert_true(strlen(probe.detail) > 0);
    }
}

static void probes_leave_nothing(void **state)
{
    (void)state;
    struct oriel_probe probe;
    oriel_probe_ucx(&probe); /* libraries that it loads may stay */
    int before = descriptors_count();
    for (size_t i = 0; i < oriel_probes_count; i++)
        oriel_probes[i](&probe);
    assert_int_equal(descriptors_count(), before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left, not even a zombie */
}

static void memfd_is_available(void **state)
{
    (void)state;
    struct oriel_probe probe;
    oriel_probe_memfd(&probe);
    assert_true(probe.available); /* Oriel does not work without it */
}

static void xpmem_agrees_with_its_device(void **state)
{
    (void)state;
    struct oriel_probe probe;
    oriel_probe_xpmem(&probe);
    assert_int_equal(probe.available, access("/dev/xpmem", R_OK | W_OK) == 0);
}

/* Without a free descriptor, memfd and userfaultfd must report that, and cma must not wait for a
 * child forever. */
static void refusal_has_a_reason(void **state)
{
    (void)state;
    struct rlimit limit;
    struct oriel_probe memfd;
    struct oriel_probe cma;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    struct rlimit none = {.rlim_cur = 0, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    oriel_probe_memfd(&memfd);
    oriel_probe_cma(&cma);
    setrlimit(RLIMIT_NOFILE, &limit);
    assert_false(memfd.available);
    assert_string_equal(memfd.detail, "memfd_create: Too many open files");
    assert_false(cma.available);
    assert_string_equal(cma.detail, "cannot create a child process: Too many open files");
}

/* Its signal would end the process. */
static void file_size_limit_is_a_reason(void **state)
{
    (void)state;
    struct rlimit limit;
    struct oriel_probe memfd;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    struct rlimit tight = {.rlim_cur = 100, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    oriel_probe_memfd(&memfd);
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_false(memfd.available);
    assert_string_equal(memfd.detail, "size and map one page: File too large");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_probe_names_itself_and_its_reason),
        cmocka_unit_test(probes_leave_nothing),
        cmocka_unit_test(memfd_is_available),
        cmocka_unit_test(xpmem_agrees_with_its_device),
        cmocka_unit_test(refusal_has_a_reason),
        cmocka_unit_test(file_size_limit_is_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
