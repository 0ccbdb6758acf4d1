/* Limits on memory and address space. Each case runs in its own child, because its options and
 * resource limits are read or set once per process. */
#include "memory/memory_limits.h"

#include "base/valgrind.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka_all.h"

/* A sanitizer's own memory uses most of any address space. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* oriel_memory_limits_reserve() of a process with this address space (0: unchanged) and this
 * ORIEL_RESERVE (NULL: none). */
static uint64_t reserve_with(uint64_t space_bytes, const char *option)
{
    int channel[2];
    uint64_t reserve_bytes = 0;
    assert_int_equal(pipe(channel), 0);
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
        reserve_bytes = oriel_memory_limits_reserve();
        _exit(write(channel[1], &reserve_bytes, sizeof reserve_bytes) ==
                      (ssize_t)sizeof reserve_bytes
                  ? 0
                  : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(read(channel[0], &reserve_bytes, sizeof reserve_bytes), sizeof reserve_bytes);
    close(channel[0]);
    close(channel[1]);
    return reserve_bytes;
}

static void reserve_holds_the_physical_memory(void **state)
{
    (void)state;
    uint64_t physical = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    struct rlimit space;
    assert_int_equal(getrlimit(RLIMIT_AS, &space), 0);
    if (space.rlim_cur != RLIM_INFINITY || sysconf(_SC_NPROCESSORS_CONF) > 16 ||
        physical > UINT64_C(1) << 41) {
        print_message("skipped: the node is too large, or this process limited\n");
        skip();
    }
    uint64_t reserve_bytes = reserve_with(0, NULL);
    if (oriel_is_under_valgrind())
        assert_int_equal(reserve_bytes, ORIEL_VALGRIND_RESERVE); /* valgrind reads all of it */
    else
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
    assert_in_range(small, UINT64_C(4) << 20, UINT64_C(2) << 25); /* space for many peers' files */
    assert_int_equal(small % 4096, 0);
}

static void nothing_is_reserved_where_the_host_would_miss_it(void **state)
{
    (void)state;
    if (SANITIZED) {
        print_message("skipped: a sanitizer takes the address space\n");
        skip();
    }
    if (oriel_is_under_valgrind()) {
        print_message("skipped: valgrind takes more than this address space\n");
        skip();
    }
    assert_int_equal(reserve_with(UINT64_C(24) << 20, NULL), 0);
    assert_int_equal(reserve_with(UINT64_C(24) << 20, "4M"), UINT64_C(4)
                                                                 /* an explicit value is obeyed */
                                                                 << 20);
}

static void option_decides_the_reserve(void **state)
{
    (void)state;
    assert_int_equal(reserve_with(0, "64M"), UINT64_C(64) << 20);
    assert_int_equal(reserve_with(0, "1G"), UINT64_C(1) << 30);
    assert_int_equal(reserve_with(0, "1"), UINT64_C(4) << 20);
    assert_int_equal(reserve_with(0, "8193K"), (UINT64_C(8193) << 10) & ~UINT64_C(4095));
}

static void available_is_no_more_than_the_node_has(void **state)
{
    (void)state;
    uint64_t available = oriel_memory_limits_available();
    struct sysinfo system;
    assert_int_equal(sysinfo(&system), 0);
    assert_true(available > 0);
    assert_true(available <= ((uint64_t)system.totalram + system.totalswap) * system.mem_unit);
}

/* --- memory cgroups, in a folder that replaces the root folder --- */

struct fake_file {
    const char *path; /* NULL ends a list */
    const char *text;
};

#define MIB       (UINT64_C(1) << 20)
#define OWN_GROUP "/proc/self/cgroup"
#define MOUNTS    "/proc/self/mountinfo"
#define FIRST                                                                                      \
    "30 22 0:27 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n34 30 0:31 / /sys/fs/cgroup/memory rw - "    \
    "cgroup cgroup rw,memory\n"
#define UNIFIED "40 30 0:37 / /sys/fs/cgroup/unified rw shared:3 - cgroup2 cgroup2 rw\n"
#define SECOND  "40 30 0:37 / /sys/fs/cgroup rw shared:3 - cgroup2 cgroup2 rw\n"
#define NEVER   "9223372036854771712\n" /* version 1 shows this without a limit */

static void make_file(const char *root, const struct fake_file *file)
{
    char path[300];
    snprintf(path, sizeof path, "%s%s", root, file->path);
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(path, 0700);
        *at = '/';
    }
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fputs(file->text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info, (void)kind, (void)where;
    return remove(path);
}

struct question {
    uint64_t (*answer)(const struct question *question);
    uint64_t len_mib;
    uint32_t ranks;
    bool of_all;
};

/* The result on a node with these files. */
static uint64_t ask(const struct fake_file *files, const struct question *question)
{
    char root[] = "/tmp/oriel-limit-XXXXXX";
    uint64_t answer = 0;
    int channel[2];
    assert_non_null(mkdtemp(root));
    for (const struct fake_file *file = files; file->path != NULL; file++)
        make_file(root, file);
    assert_int_equal(pipe(channel), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        oriel_memory_limits_root = root;
        answer = question->answer(question);
        _exit(write(channel[1], &answer, sizeof answer) == (ssize_t)sizeof answer ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(read(channel[0], &answer, sizeof answer), sizeof answer);
    close(channel[0]);
    close(channel[1]);
    nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return answer;
}

static uint64_t find_most(const struct question *question)
{
    uint64_t most = 0;
    oriel_memory_limits_set_ranks(question->ranks);
    if (oriel_memory_limits_room(MIB << 40, question->of_all) == ORIEL_ROOM_RESERVED)
        return UINT64_MAX;
    while (oriel_memory_limits_room((most + 1) * MIB, question->of_all) == ORIEL_ROOM_RESERVED)
        most++;
    return most;
}

/* The maximum in MiB that is reserved for each of that many ranks, or for all; UINT64_MAX: no
 * limit. */
static uint64_t most_mib(const struct fake_file *files, uint32_t ranks, bool of_all)
{
    const struct question question = {.answer = find_most, .ranks = ranks, .of_all = of_all};
    return ask(files, &question);
}

static uint64_t find_room(const struct question *question)
{
    return oriel_memory_limits_room(question->len_mib * MIB, false);
}

static uint64_t find_available(const struct question *question)
{
    (void)question;
    return oriel_memory_limits_available();
}

static void nothing_limits_without_a_limit(void **state)
{
    const struct fake_file files[] = {{NULL, NULL}};
    (void)state;
    assert_int_equal(most_mib(files, 1, false), UINT64_MAX);
}

static void ranks_share_half_of_the_node(void **state)
{
    const struct fake_file files[] = {
        {"/proc/meminfo", "MemTotal: 9999999 kB\nMemAvailable:   819200 kB\nSwapFree: 204800 kB\n"},
        {NULL, NULL}};
    (void)state;
    assert_int_equal(most_mib(files, 1, false), 400);
    assert_int_equal(most_mib(files, 4, false), 100);
    assert_int_equal(most_mib(files, 4, true), 400); /* the memory of all ranks in one block */
    assert_int_equal(most_mib(files, 0, false), 400 / sysconf(_SC_NPROCESSORS_ONLN));
}

/* Swap counts, too: hosts without Oriel would use it. */
static void only_memory_that_the_node_lacks_is_refused(void **state)
{
    const struct fake_file files[] = {
        {"/proc/meminfo", "MemAvailable:   819200 kB\nSwapFree: 204800 kB\n"}, {NULL, NULL}};
    const struct question fits = {.answer = find_room, .len_mib = 1000};
    const struct question passes = {.answer = find_room, .len_mib = 1001};
    const struct question available = {.answer = find_available};
    (void)state;
    assert_int_equal(ask(files, &fits), ORIEL_ROOM_AT_TOUCH);
    assert_int_equal(ask(files, &passes), ORIEL_ROOM_NONE);
    assert_int_equal(ask(files, &available), 1000 * MIB);
}

static void each_group_above_limits_in_version_1(void **state)
{
    const struct fake_file files[] = {
        {MOUNTS, FIRST UNIFIED},
        {OWN_GROUP, "9:name=systemd:/x\n4:cpu,memory:/job/step\n0::/\n"},
        {"/sys/fs/cgroup/memory/job/step/memory.limit_in_bytes", NEVER},
        {"/sys/fs/cgroup/memory/job/step/memory.usage_in_bytes", "1048576\n"},
        {"/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "314572800\n"},
        {"/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "104857600\n"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes", NEVER},
        {NULL, NULL}};
    (void)state;
    assert_int_equal(most_mib(files, 1, false), 100);
    assert_int_equal(most_mib(files, 2, false), 50);
}

static void the_tightest_group_counts_in_version_2(void **state)
{
    const struct fake_file files[] = {{MOUNTS, SECOND},
                                      {OWN_GROUP, "0::/job/step\n"},
                                      {"/sys/fs/cgroup/job/step/memory.max", "209715200\n"},
                                      {"/sys/fs/cgroup/job/step/memory.current", "0\n"},
                                      {"/sys/fs/cgroup/job/memory.max", "314572800\n"},
                                      {"/sys/fs/cgroup/job/memory.current", "209715200\n"},
                                      {NULL, NULL}};
    (void)state;
    assert_int_equal(most_mib(files, 1, false), 50);
}

static void the_page_cache_counts_as_available(void **state)
{
    const struct fake_file files[] = {
        {MOUNTS, SECOND},
        {OWN_GROUP, "0::/job\n"},
        {"/sys/fs/cgroup/job/memory.max", "209715200\n"},
        {"/sys/fs/cgroup/job/memory.current", "209715200\n"},
        {"/sys/fs/cgroup/job/memory.stat", "anon 5\ninactive_file 104857600\nactive_file 7\n"},
        {NULL, NULL}};
    (void)state;
    assert_int_equal(most_mib(files, 1, false), 50);
}

/* A container sees its own group as the root, with or without a cgroup namespace. */
static void the_own_group_may_be_the_root(void **state)
{
    const struct fake_file mounted[] = {
        {MOUNTS, "34 30 0:31 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"},
        {OWN_GROUP, "4:memory:/docker/abc\n"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "209715200\n"},
        {"/sys/fs/cgroup/memory/memory.usage_in_bytes", "0\n"},
        {NULL, NULL}};
    const struct fake_file other_folder[] = {
        {MOUNTS, "34 30 0:31 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"},
        {OWN_GROUP, "4:memory:/docker/abc\n"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "209715200\n"},
        {"/sys/fs/cgroup/memory/memory.usage_in_bytes", "0\n"},
        {NULL, NULL}};
    (void)state;
    assert_int_equal(most_mib(mounted, 1, false), 100);
    assert_int_equal(most_mib(other_folder, 1, false), 100);
}

static void a_full_group_gets_nothing_reserved(void **state)
{
    const struct fake_file files[] = {{MOUNTS, SECOND},
                                      {OWN_GROUP, "0::/job\n"},
                                      {"/sys/fs/cgroup/job/memory.max", "104857600\n"},
                                      {"/sys/fs/cgroup/job/memory.current", "209715200\n"},
                                      {NULL, NULL}};
    (void)state;
    assert_int_equal(most_mib(files, 1, false), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reserve_holds_the_physical_memory),
        cmocka_unit_test(limited_address_space_makes_the_reserve_smaller),
        cmocka_unit_test(nothing_is_reserved_where_the_host_would_miss_it),
        cmocka_unit_test(option_decides_the_reserve),
        cmocka_unit_test(available_is_no_more_than_the_node_has),
        cmocka_unit_test(nothing_limits_without_a_limit),
        cmocka_unit_test(ranks_share_half_of_the_node),
        cmocka_unit_test(only_memory_that_the_node_lacks_is_refused),
        cmocka_unit_test(each_group_above_limits_in_version_1),
        cmocka_unit_test(the_tightest_group_counts_in_version_2),
        cmocka_unit_test(the_page_cache_counts_as_available),
        cmocka_unit_test(the_own_group_may_be_the_root),
        cmocka_unit_test(a_full_group_gets_nothing_reserved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
