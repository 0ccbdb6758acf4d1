/* The pages of blocks: huge if the system grants them, near the named NUMA nodes, all freed. The
 * setting for huge pages is system-wide: only root may change it, and a separate process restores
 * it however the test ends. */
#include "memory/pages.h"

#include "memory/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka_all.h"

#define MIB     (UINT64_C(1) << 20)
#define SETTING "/sys/kernel/mm/transparent_hugepage/shmem_enabled"

/* --- a system with more NUMA nodes: the linker redirects the library's system calls here --- */

enum { CALLS = 32 };

static bool two_nodes;  /* the kernel reports NUMA nodes 0 and 1 as allowed */
static bool is_refused; /* and refuses policies */
static int call_count;
static struct {
    int mode;
    unsigned long nodes;
} calls[CALLS];

long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (two_nodes && number == SYS_get_mempolicy && e == MPOL_F_MEMS_ALLOWED) {
        *(unsigned long *)b = 3;
        return 0;
    }
    if (two_nodes && is_refused &&
        (number == SYS_set_mempolicy || number == SYS_get_mempolicy || number == SYS_mbind)) {
        errno = EPERM;
        return -1;
    }
    if (two_nodes && number == SYS_set_mempolicy && call_count < CALLS) {
        calls[call_count].mode = (int)a;
        calls[call_count++].nodes = b != 0 ? *(const unsigned long *)b : 0;
        if (b != 0 && *(const unsigned long *)b > 1)
            return 0; /* there is no such NUMA node here */
    }
    return __real_syscall(number, a, b, c, d, e, f);
}

/* --- the setting --- */

static bool write_setting(const char *value)
{
    int fd = open(SETTING, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool done = write(fd, value, strlen(value)) > 0;
    close(fd);
    return done;
}

static int guarded = -1; /* closed at any end of this process */
static pid_t guard;

/* The process that restores the setting. */
static void guard_setting(const char *value)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    guard = fork();
    assert_true(guard >= 0);
    if (guard == 0) {
        char byte;
        setsid();
        close(ends[1]);
        while (read(ends[0], &byte, 1) > 0 || errno == EINTR)
            continue;
        _exit(write_setting(value) ? 0 : 1);
    }
    close(ends[0]);
    guarded = ends[1];
}

static int file_start(void **state)
{
    (void)state;
    char line[128] = "";
    char value[16];
    int fd = open(SETTING, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t got = read(fd, line, sizeof line - 1);
        close(fd);
        const char *chosen = got > 0 ? strchr(line, '[') : NULL;
        if (chosen != NULL && sscanf(chosen, "[%15[^]]", value) == 1 && geteuid() == 0)
            guard_setting(value);
    }
    return oriel_file_start() == ORIEL_OK ? 0 : -1;
}

static int file_stop(void **state)
{
    (void)state;
    int status = 0;
    if (guarded < 0)
        return 0;
    close(guarded);
    return waitpid(guard, &status, 0) == guard && status == 0 ? 0 : -1;
}

static void choose_or_skip(const char *value, enum oriel_huge wanted)
{
    if (guarded < 0 || !write_setting(value)) {
        print_message("skipped: only root may choose huge pages for shared memory, where the "
                      "kernel has them\n");
        skip();
    }
    if (oriel_pages_huge() != wanted) {
        print_message("skipped: the setting for pages of 2 MiB is not the general one\n");
        skip();
    }
}

/* Huge pages of the mappings in a range, in bytes. */
static uint64_t in_huge_pages(const char *start, uint64_t len_bytes)
{
    char line[512];
    unsigned long low = 0, high, kib; /* a mapping, and its part */
    uint64_t bytes = 0;
    FILE *smaps = fopen("/proc/self/smaps", "re");
    assert_non_null(smaps);
    while (fgets(line, sizeof line, smaps) != NULL) {
        unsigned long from;
        if (sscanf(line, "%lx-%lx ", &from, &high) == 2)
            low = from;
        else if (sscanf(line, "ShmemPmdMapped: %lu", &kib) == 1 && low >= (uintptr_t)start &&
                 low < (uintptr_t)start + len_bytes)
            bytes += kib * 1024;
    }
    fclose(smaps);
    return bytes;
}

static int mappings(void)
{
    char line[512];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps) != NULL)
        count += strstr(line, "memfd:oriel") != NULL;
    fclose(maps);
    return count;
}

static uint64_t held_bytes(void)
{
    struct stat info;
    assert_int_equal(fstat(oriel_file_identity()->memory_fd, &info), 0);
    return (uint64_t)info.st_blocks * 512;
}

/* Whether the system has huge pages free at all, without Oriel. */
static bool has_huge_pages(void)
{
    uint64_t len_bytes = 8 * MIB;
    int fd = memfd_create("control", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, (off_t)len_bytes), 0);
    char *base = oriel_file_map(fd, len_bytes);
    assert_true(base != MAP_FAILED);
    madvise(base, len_bytes, MADV_HUGEPAGE);
    memset(base, 1, len_bytes);
    bool huge = in_huge_pages(base, len_bytes) > 0;
    munmap(base, len_bytes);
    close(fd);
    return huge;
}

static void use_block(const char *setting, enum oriel_huge wanted, bool expected)
{
    uint64_t offset;
    const uint64_t len_bytes = 8 * MIB + 12 * 1024;
    choose_or_skip(setting, wanted);
    if (expected && !has_huge_pages()) {
        print_message("skipped: no huge page is free\n");
        skip();
    }
    uint64_t before_bytes = held_bytes();
    uint64_t before_huge = in_huge_pages(oriel_file_base(), oriel_file_reserve());
    int before = mappings();
    for (int round = 0; round < 3; round++) {
        assert_int_equal(oriel_file_alloc(len_bytes, 64, &offset), ORIEL_OK);
        char *block = oriel_file_base() + offset;
        assert_true(held_bytes() >= before_bytes + len_bytes); /* before the first access to it */
        assert_true(block[0] == 0 && memcmp(block, block + 1, len_bytes - 1) == 0);
        memset(block, 7, len_bytes);
        uint64_t huge_bytes = in_huge_pages(oriel_file_base(), oriel_file_reserve()) - before_huge;
        if (expected) {
            assert_int_equal(offset % ORIEL_HUGE_BYTES, 0);
            assert_true(huge_bytes >= 2 * MIB);
            char *peer = oriel_file_map(oriel_file_identity()->memory_fd, oriel_file_reserve());
            assert_true(peer != MAP_FAILED);
            assert_int_equal(peer[offset], 7); /* and the page with it */
            assert_true(in_huge_pages(peer, oriel_file_reserve()) >= 2 * MIB);
            munmap(peer, oriel_file_reserve());
        } else {
            assert_int_equal(huge_bytes, 0);
        }
        assert_true(oriel_file_free(offset));
        assert_in_range(held_bytes(), 0,
                        before_bytes + 4 * MIB - 1); /* a neighbour may be in a huge page */
        assert_int_equal(mappings(), before);
    }
}

static void large_blocks_are_small_pages_where_huge_ones_are_not_granted(void **state)
{
    (void)state;
    use_block("never", ORIEL_HUGE_NONE, false);
}

static void large_blocks_are_huge_pages_where_advice_is_heeded(void **state)
{
    (void)state;
    use_block("advise", ORIEL_HUGE_ON_ADVICE, true);
}

static void large_blocks_are_huge_pages_where_they_are_always(void **state)
{
    (void)state;
    use_block("within_size", ORIEL_HUGE_BY_FILE, true);
    use_block("always", ORIEL_HUGE_BY_FILE, true);
}

/* --- parts --- */

static int policy(unsigned long *nodes)
{
    int mode = -1;
    unsigned long words[16] = {0};
    assert_int_equal(__real_syscall(SYS_get_mempolicy, (long)&mode, (long)words, 1024, 0, 0, 0), 0);
    *nodes = words[0];
    return mode;
}

static void parts_follow_each_other_in_one_block(void **state)
{
    (void)state;
    uint64_t offset;
    uint64_t before_bytes = held_bytes();
    const struct oriel_file_part parts[] = {{100000, 0}, {0, 0}, {3, -1}, {200000, 0}, {4096, 77}};
    assert_int_equal(oriel_file_alloc_parts(parts, 5, 4096, &offset), ORIEL_OK);
    assert_int_equal(offset % 4096, 0);
    assert_true(held_bytes() >= before_bytes + 304099);
    memset(oriel_file_base() + offset, 9, 304099);
    assert_true(oriel_file_free(offset));
    assert_int_equal(held_bytes(), before_bytes);
    const struct oriel_file_part huge[] = {{UINT64_MAX - 10, 0}, {100, 0}};
    assert_int_equal(oriel_file_alloc_parts(huge, 2, 64, &offset), ORIEL_E_NO_MEM);
    assert_int_equal(oriel_file_alloc_parts(parts, 0, 64, &offset),
                     ORIEL_OK); /* size 0 has its own offset */
    assert_true(oriel_file_free(offset));
}

static void parts_are_reserved_near_their_nodes(void **state)
{
    (void)state;
    uint64_t offset;
    unsigned long nodes_before, nodes_after;
    const struct oriel_file_part parts[] = {{100000, 1}, {100000, 0}, {100000, -1}, {100000, 1}};
    int before = policy(&nodes_before);
    two_nodes = true;
    call_count = 0;
    enum oriel_status status = oriel_file_alloc_parts(parts, 4, 64, &offset);
    two_nodes = false;
    assert_int_equal(status, ORIEL_OK);
    assert_int_equal(call_count, 6); /* set and restored for each part that has a NUMA node */
    static const unsigned long wanted[] = {2, 1, 2};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(calls[2 * i].mode, MPOL_PREFERRED);
        assert_int_equal(calls[2 * i].nodes, wanted[i]);
        assert_int_equal(calls[2 * i + 1].mode, before);
        assert_int_equal(calls[2 * i + 1].nodes, nodes_before);
    }
    assert_int_equal(policy(&nodes_after), before);
    assert_int_equal(nodes_after, nodes_before);
    assert_true(oriel_file_free(offset));
}

/* The program's own policy is restored. */
static void a_rule_of_the_program_is_put_back(void **state)
{
    (void)state;
    uint64_t offset;
    unsigned long nodes = 1, nodes_after;
    const struct oriel_file_part parts[] = {{100000, 1}, {100000, 0}};
    if (__real_syscall(SYS_set_mempolicy, MPOL_BIND, (long)&nodes, 64, 0, 0, 0) != 0) {
        print_message("skipped: the kernel has no memory policies\n");
        skip();
    }
    two_nodes = true;
    enum oriel_status status = oriel_file_alloc_parts(parts, 2, 64, &offset);
    two_nodes = false;
    int mode = policy(&nodes_after);
    __real_syscall(SYS_set_mempolicy, MPOL_DEFAULT, 0, 0, 0, 0, 0);
    assert_int_equal(status, ORIEL_OK);
    assert_int_equal(mode, MPOL_BIND);
    assert_int_equal(nodes_after, 1);
    assert_true(oriel_file_free(offset));
}

static void refused_placement_is_no_error(void **state)
{
    (void)state;
    uint64_t offset;
    const struct oriel_file_part parts[] = {{100000, 1}, {100000, 0}};
    two_nodes = true;
    is_refused = true;
    call_count = 0;
    enum oriel_status status = oriel_file_alloc_parts(parts, 2, 64, &offset);
    two_nodes = false;
    is_refused = false;
    assert_int_equal(status, ORIEL_OK);
    assert_int_equal(call_count, 0);
    assert_true(oriel_file_free(offset));
}

static int policy_at(uint64_t offset)
{
    int mode = -1;
    __real_syscall(SYS_get_mempolicy, (long)&mode, 0, 0, (long)(oriel_file_base() + offset),
                   MPOL_F_ADDR, 0);
    return mode;
}

/* Pages of a placed block are zero and reserved, and their policy ends with it. The first pages of
 * a part belong to what precedes them. */
static void a_placement_ends_with_its_block(void **state)
{
    (void)state;
    uint64_t offset, again;
    const uint64_t before_bytes = held_bytes();
    const struct oriel_pages_placement on_node = {ORIEL_PAGES_ON_NODE, 0};
    if (!oriel_pages_can_place(on_node)) {
        print_message("skipped: the kernel has no memory policies\n");
        skip();
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(oriel_file_alloc_mem(MIB, 64, &offset), ORIEL_OK);
        memset(oriel_file_base() + offset, 7, MIB);
        assert_true(oriel_file_place(offset, offset + 100, MIB / 2, on_node));
        assert_int_equal(policy_at(offset), MPOL_DEFAULT);
        assert_int_equal(policy_at(offset + 4096), MPOL_PREFERRED);
        assert_int_equal(policy_at(offset + MIB / 2), MPOL_PREFERRED);
        assert_int_equal(policy_at(offset + MIB / 2 + 4096), MPOL_DEFAULT);
        assert_int_equal(oriel_file_base()[offset], 7);
        assert_int_equal(oriel_file_base()[offset + 4096], 0);
        assert_true(held_bytes() >= before_bytes + MIB);
        assert_true(oriel_file_free(offset));
        assert_int_equal(held_bytes(), before_bytes); /* it is not cached */
        assert_int_equal(oriel_file_alloc_mem(MIB, 64, &again), ORIEL_OK);
        assert_int_equal(again, offset);
        assert_int_equal(policy_at(again + 4096), MPOL_DEFAULT);
        assert_true(oriel_file_free(again));
        assert_int_equal(oriel_file_alloc_shared(8 * MIB, 64, &again), ORIEL_OK);
        assert_true(oriel_file_free(again));
    }
}

static void what_cannot_be_placed_stays(void **state)
{
    (void)state;
    uint64_t small, large;
    const struct oriel_pages_placement absent = {ORIEL_PAGES_ON_NODE, 1000};
    const struct oriel_pages_placement on_node = {ORIEL_PAGES_ON_NODE, 0};
    assert_false(oriel_pages_can_place(absent));
    assert_int_equal(oriel_file_alloc(100, 64, &small), ORIEL_OK);
    assert_int_equal(oriel_file_alloc(100000, 64, &large), ORIEL_OK);
    memset(oriel_file_base() + large, 7, 100000);
    assert_false(oriel_file_place(small, small, 100, on_node));
    assert_false(oriel_file_place(small + 64, small + 64, 100, on_node)); /* no block */
    assert_false(oriel_file_place(large, large, 100000, absent));
    assert_false(oriel_file_place(large, large + 1, 1000, on_node)); /* no page starts there */
    assert_false(oriel_file_place(large, large, 200000, on_node));
    two_nodes = is_refused = true;
    assert_false(oriel_file_place(large, large, 100000,
                                  (struct oriel_pages_placement){ORIEL_PAGES_INTERLEAVED, -1}));
    two_nodes = is_refused = false;
    assert_int_equal(oriel_file_base()[large + 99999], 7);
    assert_true(oriel_file_has_page(oriel_file_base() + large, 1));
    assert_false(oriel_file_has_page(oriel_file_base() + large + 1, 4095));
    assert_false(oriel_file_has_page(oriel_file_base() + large, 0));
    assert_true(oriel_file_free(small));
    assert_true(oriel_file_free(large));
}

/* Memory that the owner reserves is near the owner without extra calls. */
static void pages_lie_near_the_thread_that_reserves_them(void **state)
{
    (void)state;
    uint64_t offset;
    int32_t node = oriel_pages_node();
    int where = -1;
    if (node < 0) {
        print_message("skipped: the kernel does not report the nodes of memory\n");
        skip();
    }
    assert_int_equal(oriel_file_alloc(MIB, 64, &offset), ORIEL_OK);
    oriel_file_base()[offset] = 1;
    if (__real_syscall(SYS_get_mempolicy, (long)&where, 0, 0, (long)(oriel_file_base() + offset),
                       MPOL_F_NODE | MPOL_F_ADDR, 0) == 0 &&
        oriel_pages_node() == node)
        assert_int_equal(where, node);
    assert_true(oriel_file_free(offset));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_follow_each_other_in_one_block),
        cmocka_unit_test(parts_are_reserved_near_their_nodes),
        cmocka_unit_test(a_rule_of_the_program_is_put_back),
        cmocka_unit_test(refused_placement_is_no_error),
        cmocka_unit_test(a_placement_ends_with_its_block),
        cmocka_unit_test(what_cannot_be_placed_stays),
        cmocka_unit_test(pages_lie_near_the_thread_that_reserves_them),
        cmocka_unit_test(large_blocks_are_small_pages_where_huge_ones_are_not_granted),
        cmocka_unit_test(large_blocks_are_huge_pages_where_advice_is_heeded),
        cmocka_unit_test(large_blocks_are_huge_pages_where_they_are_always),
    };
    return cmocka_run_group_tests(tests, file_start, file_stop);
}
