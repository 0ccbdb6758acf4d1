/* Advice that discards promoted memory: zeroes for its owner, its peers and its children, the same
 * errors as for private memory, and nothing else changed. */
#include "memory/promote/discard.h"

#include "promote_common.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static int calls; /* of the real madvise */
static int last_advice;

static int next(void *start, size_t len_bytes, int advice)
{
    calls++;
    last_advice = advice;
    return madvise(start, len_bytes, advice);
}

static bool is_all(const char *memory, uint64_t len_bytes, char value)
{
    for (uint64_t i = 0; i < len_bytes; i++)
        if (memory[i] != value)
            return false;
    return true;
}

/* Memory of len_bytes that is promoted and full of ones. */
static char *map_promoted(uint64_t len_bytes, const struct oriel_promote_options *how,
                          struct oriel_promoted *out)
{
    char *memory = map_private(len_bytes);
    memset(memory, 1, len_bytes);
    promote(memory, len_bytes, how, out);
    return memory;
}

static void release_and_unmap(char *memory, uint64_t len_bytes, struct oriel_promoted *promoted)
{
    oriel_promote_release(promoted);
    munmap(memory, len_bytes);
}

static void pages_that_stay_shared_become_zero_for_all(void **state)
{
    static const int advice[] = {MADV_DONTNEED, MADV_FREE, MADV_DONTNEED_LOCKED};
    struct oriel_promoted promoted;
    char *memory = map_promoted(8 * PAGE, means_of(state), &promoted);
    char *view = peer_view(memory, 8 * PAGE);
    for (int i = 0; i < 3; i++) {
        memset(memory, 1, 8 * PAGE);
        if (advice[i] == MADV_DONTNEED_LOCKED)
            assert_int_equal(mlock(memory + 2 * PAGE, PAGE), 0);
        assert_int_equal(oriel_discard(memory + 2 * PAGE, PAGE + 1, advice[i], next),
                         0); /* two pages */
        assert_true(is_all(memory, 2 * PAGE, 1) && is_all(memory + 2 * PAGE, 2 * PAGE, 0) &&
                    is_all(memory + 4 * PAGE, 4 * PAGE, 1));
        assert_true(is_all(view + 2 * PAGE, 2 * PAGE, 0) && is_all(view + 4 * PAGE, 4 * PAGE, 1));
        view[3 * PAGE] = 5;
        assert_int_equal(memory[3 * PAGE], 5);
    }
    munmap(view, 8 * PAGE);
    release_and_unmap(memory, 8 * PAGE, &promoted);
}

static void a_range_may_be_promoted_in_parts_and_have_gaps(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct oriel_promoted promoted[2];
    char *memory = map_private(12 * PAGE);
    memset(memory, 1, 12 * PAGE);
    promote(memory + 2 * PAGE, 2 * PAGE, how, &promoted[0]);
    promote(memory + 6 * PAGE, 2 * PAGE, how, &promoted[1]);
    assert_int_equal(oriel_discard(memory + PAGE, 8 * PAGE, MADV_DONTNEED, next), 0);
    assert_true(is_all(memory, PAGE, 1) && is_all(memory + PAGE, 8 * PAGE, 0) &&
                is_all(memory + 9 * PAGE, 3 * PAGE, 1));
    memset(memory, 1, 12 * PAGE);
    munmap(memory + 4 * PAGE, PAGE);
    errno = 0;
    assert_int_equal(oriel_discard(memory, 10 * PAGE, MADV_DONTNEED, next), -1);
    assert_int_equal(errno, ENOMEM);
    assert_true(is_all(memory, 4 * PAGE, 0) && is_all(memory + 5 * PAGE, 5 * PAGE, 0) &&
                is_all(memory + 10 * PAGE, 2 * PAGE, 1));
    for (int i = 0; i < 2; i++)
        oriel_promote_release(&promoted[i]);
    munmap(memory, 12 * PAGE);
}

static void refusals_equal_those_of_private_memory(void **state)
{
    struct oriel_promoted promoted;
    char *memory = map_promoted(4 * PAGE, means_of(state), &promoted);
    errno = 0;
    assert_int_equal(oriel_discard(memory, 4 * PAGE, MADV_REMOVE, next), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(oriel_discard(memory + 1, PAGE, MADV_DONTNEED, next), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(oriel_discard(memory, 0, MADV_DONTNEED, next), 0);
    assert_true(is_all(memory, 4 * PAGE, 1));
    release_and_unmap(memory, 4 * PAGE, &promoted);
}

static void other_advice_and_other_memory_are_passed_on(void **state)
{
    struct oriel_promoted promoted;
    char *other = map_private(2 * PAGE);
    char *memory = map_promoted(4 * PAGE, means_of(state), &promoted);
    memset(other, 1, 2 * PAGE);
    calls = 0;
    assert_int_equal(oriel_discard(memory, 4 * PAGE, MADV_NORMAL, next), 0);
    assert_true(calls == 1 && last_advice == MADV_NORMAL && is_all(memory, 4 * PAGE, 1));
    assert_int_equal(oriel_discard(other, PAGE, MADV_DONTNEED, next), 0);
    assert_true(calls == 2 && last_advice == MADV_DONTNEED && is_all(other, PAGE, 0) &&
                is_all(other + PAGE, PAGE, 1));
    munmap(other, 2 * PAGE);
    release_and_unmap(memory, 4 * PAGE, &promoted);
}

/* The program's own file, mapped over promoted memory, keeps its contents. */
static void memory_that_the_program_has_replaced_is_its_own(void **state)
{
    struct oriel_promoted promoted;
    char *memory = map_promoted(4 * PAGE, means_of(state), &promoted);
    int fd = memfd_create("other", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, 2 * PAGE), 0);
    assert_true(mmap(memory + PAGE, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                     0) == memory + PAGE);
    memset(memory, 1, 4 * PAGE);
    assert_int_equal(oriel_discard(memory, 4 * PAGE, MADV_DONTNEED, next), 0);
    assert_true(is_all(memory, PAGE, 0) && is_all(memory + PAGE, 2 * PAGE, 1) &&
                is_all(memory + 3 * PAGE, PAGE, 0));
    close(fd);
    release_and_unmap(memory, 4 * PAGE, &promoted);
}

/* The program's mappings cannot be checked: the call fails rather than discard nothing silently. */
static void without_a_descriptor_it_fails(void **state)
{
    struct rlimit before;
    struct oriel_promoted promoted;
    char *memory = map_promoted(4 * PAGE, means_of(state), &promoted);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int result = oriel_discard(memory, 4 * PAGE, MADV_DONTNEED, next);
    int error = errno;
    setrlimit(RLIMIT_NOFILE, &before);
    assert_true(result == -1 && error == ENOMEM && is_all(memory, 4 * PAGE, 1));
    release_and_unmap(memory, 4 * PAGE, &promoted);
}

static void before_linux_6_11_it_is_the_same(void **state)
{
    oriel_proc_maps_by_text = true;
    pages_that_stay_shared_become_zero_for_all(state);
    a_range_may_be_promoted_in_parts_and_have_gaps(state);
    memory_that_the_program_has_replaced_is_its_own(state);
    oriel_proc_maps_by_text = false;
}

static void assert_child_good(pid_t child)
{
    int status = -1;
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
}

/* 0, or the number of the failed check. */
static int discard_in_child(char *memory)
{
    if (oriel_discard(memory + PAGE, 2 * PAGE, MADV_DONTNEED, next) != 0 ||
        !is_all(memory + PAGE, 2 * PAGE, 0))
        return 1;
    memset(memory, 3, 4 * PAGE);
    if (oriel_discard(memory, 4 * PAGE, MADV_DONTNEED, next) != 0 || !is_all(memory, 4 * PAGE, 0))
        return 2;
    return 0;
}

static void a_childs_pages_become_zero_and_its_parents_stay(void **state)
{
    struct oriel_promoted promoted;
    char *memory = map_promoted(4 * PAGE, means_of(state), &promoted);
    pid_t child = fork();
    if (child == 0) {
        pid_t grandchild = fork();
        int status = 0;
        if (grandchild == 0)
            _exit(discard_in_child(memory));
        if (waitpid(grandchild, &status, 0) != grandchild || status != 0 ||
            !is_all(memory, 4 * PAGE, 1))
            _exit(9);
        _exit(discard_in_child(memory));
    }
    assert_child_good(child);
    child = _Fork(); /* runs no handlers: it shares the pages until it discards them */
    if (child == 0)
        _exit(oriel_discard(memory, 4 * PAGE, MADV_DONTNEED, next) == 0 &&
                      is_all(memory, 4 * PAGE, 0)
                  ? 0
                  : 1);
    assert_child_good(child);
    assert_true(is_all(memory, 4 * PAGE, 1));
    release_and_unmap(memory, 4 * PAGE, &promoted);
}

static int open_direct(void)
{
    char path[] = "/tmp/oriel-discard-XXXXXX";
    int plain = mkstemp(path);
    int fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
    unlink(path);
    close(plain);
    return fd;
}

/* Pages that may have been pinned stay shared. They can be discarded, and mremap never exposes the
 * memory after them in the file. */
static void memory_that_stays_shared_is_the_programs_own(void **state)
{
    struct oriel_promoted promoted[2];
    const struct oriel_promote_options *how = means_of(state);
    char *memory = map_promoted(4 * PAGE, how, &promoted[0]);
    char *other = map_promoted(16 * PAGE, how, &promoted[1]);
    int fd = open_direct();
    if (fd < 0) {
        print_message("O_DIRECT: %s\n", strerror(errno));
        release_and_unmap(memory, 4 * PAGE, &promoted[0]);
        release_and_unmap(other, 16 * PAGE, &promoted[1]);
        skip();
    }
    oriel_promote_release(&promoted[0]);
    assert_true(is_promoted(memory));
    assert_true(mremap(memory, 4 * PAGE, 64 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED);
    assert_int_equal(oriel_discard(memory, 3 * PAGE, MADV_DONTNEED, next), 0);
    assert_true(is_all(memory, 3 * PAGE, 0) && is_all(memory + 3 * PAGE, PAGE, 1));
    close(fd);
    promote(memory, 4 * PAGE, how, &promoted[0]);
    oriel_promote_release(&promoted[0]);
    assert_true(!is_promoted(memory) && is_all(memory, 3 * PAGE, 0) &&
                is_all(memory + 3 * PAGE, PAGE, 1));
    assert_int_equal(mappings_in(memory, 4 * PAGE), 1);
    munmap(memory, 4 * PAGE);
    release_and_unmap(other, 16 * PAGE, &promoted[1]);
}

/* An allocator may unmap or protect a part of it; a child still has its own pages in the rest. */
static void shared_memory_may_be_replaced_in_parts(void **state)
{
    struct oriel_promoted promoted;
    const struct oriel_promote_options *how = means_of(state);
    char *memory = map_promoted(8 * PAGE, how, &promoted);
    int fd = open_direct();
    if (fd < 0) {
        release_and_unmap(memory, 8 * PAGE, &promoted);
        skip();
    }
    oriel_promote_release(&promoted);
    munmap(memory + PAGE, PAGE);
    assert_int_equal(mprotect(memory + 4 * PAGE, PAGE, PROT_READ), 0);
    munmap(memory + 7 * PAGE, PAGE);
    for (int i = 0; i < 2; i++) { /* the first detects it */
        pid_t child = fork();
        if (child == 0) {
            memset(memory, 2, PAGE);
            memset(memory + 2 * PAGE, 2, 2 * PAGE);
            memset(memory + 5 * PAGE, 2, 2 * PAGE);
            _exit(0);
        }
        assert_child_good(child);
        assert_true(is_all(memory, PAGE, 1) && is_all(memory + 2 * PAGE, 5 * PAGE, 1));
        assert_true(is_promoted(memory) && !is_promoted(memory + PAGE) &&
                    is_promoted(memory + 2 * PAGE) && is_promoted(memory + 6 * PAGE) &&
                    !is_promoted(memory + 7 * PAGE));
    }
    close(fd);
    munmap(memory, 8 * PAGE);
}

/* Neither libc's realloc after a shrink nor mremap of any part extends it. */
static void shared_memory_cannot_be_lengthened(void **state)
{
    struct oriel_promoted promoted[2];
    const struct oriel_promote_options *how = means_of(state);
    char *memory = map_promoted(4 * PAGE, how, &promoted[0]);
    char *other = map_promoted(16 * PAGE, how, &promoted[1]);
    int fd = open_direct();
    oriel_promote_release(&promoted[0]);
    if (fd >= 0) {
        assert_true(mremap(memory, 4 * PAGE, 2 * PAGE, 0) == memory);
        assert_true(mremap(memory, 2 * PAGE, 64 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED);
        assert_false(oriel_discard_may_remap(memory, PAGE, 2 * PAGE));
        assert_int_equal(errno, EFAULT);
        assert_false(oriel_discard_may_remap(memory + PAGE, PAGE, PAGE + 1));
        assert_false(oriel_discard_may_remap(memory, 0, PAGE));
        assert_true(oriel_discard_may_remap(memory, 2 * PAGE, 2 * PAGE));
        assert_true(oriel_discard_may_remap(memory, 2 * PAGE, PAGE));
        assert_true(
            oriel_discard_may_remap(memory + 2 * PAGE, PAGE, 2 * PAGE)); /* no longer mapped */
        close(fd);
    }
    munmap(memory, 4 * PAGE);
    release_and_unmap(other, 16 * PAGE, &promoted[1]);
    if (fd < 0)
        skip();
}

static void a_child_cannot_lengthen_inherited_memory(void **state)
{
    struct oriel_promoted promoted;
    char *memory = map_promoted(4 * PAGE, means_of(state), &promoted);
    pid_t child = fork();
    if (child == 0)
        _exit(mremap(memory, 4 * PAGE, 64 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED &&
                      is_all(memory, 4 * PAGE, 1)
                  ? 0
                  : 1);
    assert_child_good(child);
    release_and_unmap(memory, 4 * PAGE, &promoted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BY_BOTH(pages_that_stay_shared_become_zero_for_all),
        BY_BOTH(a_range_may_be_promoted_in_parts_and_have_gaps),
        BY_BOTH(refusals_equal_those_of_private_memory),
        BY_BOTH(other_advice_and_other_memory_are_passed_on),
        BY_BOTH(memory_that_the_program_has_replaced_is_its_own),
        BY_BOTH(without_a_descriptor_it_fails),
        BY_BOTH(before_linux_6_11_it_is_the_same),
        BY_BOTH(a_childs_pages_become_zero_and_its_parents_stay),
        BY_BOTH(memory_that_stays_shared_is_the_programs_own),
        BY_BOTH(shared_memory_may_be_replaced_in_parts),
        BY_BOTH(shared_memory_cannot_be_lengthened),
        BY_BOTH(a_child_cannot_lengthen_inherited_memory),
    };
    return cmocka_run_group_tests(tests, promote_setup, NULL);
}
