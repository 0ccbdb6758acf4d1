/* The contents that forked children read after the parent has demoted the inherited memory: the
 * state at demotion, for as long as they live. Then the file gets its blocks back. */
#include "promote_common.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { PAGES = 40 };
#define LEN_BYTES (PAGES * PAGE)

/* A child that reads the memory on request. */
struct child {
    pid_t pid;
    int resume[2];
    int done[2]; /* its children have the writing end, too */
};

static bool is_filled(const char *memory, uint64_t from, uint64_t to, int value)
{
    for (uint64_t i = from; i < to; i++)
        if (memory[i] != value)
            return false;
    return true;
}

static void child_pipes(struct child *child)
{
    assert_int_equal(pipe(child->resume), 0);
    assert_int_equal(pipe(child->done), 0);
}

/* In a child: the end of the test also counts as a request to end. */
static bool is_requested(const struct child *child)
{
    char word;
    close(child->resume[1]);
    return read(child->resume[0], &word, 1) == 1;
}

/* In the child: the result after the request, whether the memory has that value. */
static void look_on_request(const struct child *child, const char *memory, int value)
{
    bool requested = is_requested(child);
    _exit(!requested ? 2 : is_filled(memory, 0, LEN_BYTES, value) ? 0 : 3);
}

static struct child child_that_looks(const char *memory, int value)
{
    struct child child;
    child_pipes(&child);
    child.pid = fork();
    assert_true(child.pid >= 0);
    if (child.pid == 0)
        look_on_request(&child, memory, value);
    return child;
}

static void child_expect(const struct child *child, int wanted)
{
    int status;
    assert_int_equal(write(child->resume[1], "g", 1), 1);
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), wanted);
    for (int i = 0; i < 2; i++) {
        close(child->resume[i]);
        close(child->done[i]);
    }
}

/* LEN_BYTES of 7 in promoted pages. */
static char *promote_filled(const struct oriel_promote_options *how, struct oriel_promoted *out)
{
    char *memory = map_private(LEN_BYTES);
    memset(memory, 7, LEN_BYTES);
    promote(memory, LEN_BYTES, how, out);
    return memory;
}

/* Reuses all recently released blocks for other memory, and writes there. */
static void reuse_blocks(const struct oriel_promote_options *how)
{
    char *other = map_private(LEN_BYTES);
    memset(other, 9, LEN_BYTES);
    for (int i = 0; i < 3; i++) {
        struct oriel_promoted promoted;
        promote(other, LEN_BYTES, how, &promoted);
        memset(other, 10 + i, LEN_BYTES);
        oriel_promote_release(&promoted);
    }
    munmap(other, LEN_BYTES);
}

/* The parent ends the promotion, and continues to use the memory and the file. */
static void release_and_overwrite(char *memory, const struct oriel_promote_options *how,
                                  struct oriel_promoted *promoted)
{
    oriel_promote_release(promoted);
    memset(memory, 9, LEN_BYTES);
    reuse_blocks(how);
}

static void look_again(void)
{
    struct oriel_promoted promoted;
    char *page = map_private(PAGE);
    promote(page, PAGE, &quiesce, &promoted);
    oriel_promote_release(&promoted);
    munmap(page, PAGE);
}

/* A process that reads a child's /proc entry keeps the child's memory briefly after its end. */
static void expect_bytes(uint64_t wanted_bytes)
{
    look_again();
    for (int tries = 0; tries < 1000 && file_bytes() != wanted_bytes; tries++) {
        usleep(1000);
        look_again();
    }
    assert_int_equal(file_bytes(), wanted_bytes);
}

/* The child has kept the inherited memory, and the file has its earlier size once the child has
 * ended. */
static void expect_end(const struct child *child, char *memory, uint64_t before_bytes)
{
    child_expect(child, 0);
    expect_bytes(before_bytes);
    munmap(memory, LEN_BYTES);
}

static void a_child_preserves_memory_that_the_parent_releases(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct oriel_promoted promoted;
    uint64_t before_bytes = file_bytes();
    char *memory = promote_filled(how, &promoted);
    struct child child = child_that_looks(memory, 7);
    release_and_overwrite(memory, how, &promoted);
    assert_true(file_bytes() >= before_bytes + LEN_BYTES);
    assert_true(is_filled(memory, 0, LEN_BYTES, 9));
    expect_end(&child, memory, before_bytes);
}

/* The child sees at the latest the contents when the last promotion of the page ended. */
static void parts_that_end_at_different_times_are_preserved(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct oriel_promoted whole, half;
    uint64_t before_bytes = file_bytes();
    char *memory = promote_filled(how, &whole);
    promote(memory, LEN_BYTES / 2, how, &half);
    struct child child = child_that_looks(memory, 7);
    oriel_promote_release(&whole);
    memset(memory + LEN_BYTES / 2, 9, LEN_BYTES / 2);
    release_and_overwrite(memory, how, &half);
    expect_end(&child, memory, before_bytes);
}

static void memory_that_no_child_inherited_is_released_at_once(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct oriel_promoted seen, other;
    char *memory = map_private(LEN_BYTES);
    char *later = map_private(LEN_BYTES);
    memset(memory, 7, LEN_BYTES);
    memset(later, 7, LEN_BYTES);
    promote(memory, LEN_BYTES, how, &seen);
    struct child child = child_that_looks(memory, 7);
    uint64_t before_bytes = file_bytes();
    promote(later, LEN_BYTES, how, &other);
    oriel_promote_release(&other);
    assert_int_equal(file_bytes(), before_bytes);
    oriel_promote_release(&seen);
    promote(memory, LEN_BYTES, how, &seen); /* the child sees the earlier pages */
    memset(memory, 9, LEN_BYTES);
    oriel_promote_release(&seen);
    assert_int_equal(file_bytes(), before_bytes);
    child_expect(&child, 0);
    munmap(memory, LEN_BYTES);
    munmap(later, LEN_BYTES);
}

/* Later children do not keep blocks that were released before their fork. So a program that always
 * has one child loses nothing. */
static void overlapping_children_pin_only_inherited_memory(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct oriel_promoted first, second;
    uint64_t before_bytes = file_bytes();
    char *one = map_private(LEN_BYTES);
    char *two = map_private(LEN_BYTES);
    memset(one, 1, LEN_BYTES);
    memset(two, 2, LEN_BYTES);
    promote(one, LEN_BYTES, how, &first);
    struct child older = child_that_looks(one, 1);
    oriel_promote_release(&first);
    promote(two, LEN_BYTES, how, &second);
    struct child younger = child_that_looks(two, 2);
    child_expect(&older, 0);
    expect_bytes(before_bytes + LEN_BYTES);
    oriel_promote_release(&second);
    assert_int_equal(file_bytes(), before_bytes + LEN_BYTES);
    child_expect(&younger, 0);
    expect_bytes(before_bytes);
    munmap(one, LEN_BYTES);
    munmap(two, LEN_BYTES);
}

static void grandchildren_preserve_it_too(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct oriel_promoted promoted;
    struct child child;
    uint64_t before_bytes = file_bytes();
    int status;
    char word;
    char *memory = promote_filled(how, &promoted);
    child_pipes(&child);
    child.pid = fork();
    if (child.pid == 0) {
        pid_t grandchild = fork();
        if (grandchild != 0)
            _exit(grandchild > 0 ? 0 : 1);
        bool right = is_requested(&child) && is_filled(memory, 0, LEN_BYTES, 7);
        word = right ? 'y' : 'n';
        _exit(write(child.done[1], &word, 1) == 1 ? 0 : 1);
    }
    assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
    assert_int_equal(status, 0);
    release_and_overwrite(memory, how, &promoted);
    assert_int_equal(write(child.resume[1], "g", 1), 1);
    close(child.done[1]);
    assert_int_equal(read(child.done[0], &word, 1), 1);
    assert_int_equal(word, 'y');
    assert_int_equal(read(child.done[0], &word, 1), 0); /* it ends */
    expect_bytes(before_bytes);
    close(child.done[0]);
    close(child.resume[0]);
    close(child.resume[1]);
    munmap(memory, LEN_BYTES);
}

/* As daemons do: pages and their lease do not depend on descriptors. */
static void a_child_that_closes_all_descriptors_preserves_it(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct oriel_promoted promoted;
    struct child child;
    uint64_t before_bytes = file_bytes();
    char word;
    char *memory = promote_filled(how, &promoted);
    child_pipes(&child);
    child.pid = fork();
    if (child.pid == 0) {
        for (int fd = 3; fd < 256; fd++)
            if (fd != child.resume[0] && fd != child.done[1])
                close(fd);
        if (write(child.done[1], "c", 1) != 1)
            _exit(4);
        look_on_request(&child, memory, 7);
    }
    assert_int_equal(read(child.done[0], &word, 1), 1);
    release_and_overwrite(memory, how, &promoted);
    expect_end(&child, memory, before_bytes);
}

/* After exec the child has other memory; it may also unmap it. */
static void another_program_or_unmapping_ends_it(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    char *memory = map_private(LEN_BYTES);
    for (int turn = 0; turn < 2; turn++) {
        struct oriel_promoted promoted;
        struct child child;
        uint64_t before_bytes = file_bytes();
        char word;
        memset(memory, 7, LEN_BYTES);
        promote(memory, LEN_BYTES, how, &promoted);
        child_pipes(&child);
        child.pid = fork();
        if (child.pid == 0) {
            if (turn == 0) {
                close(child.resume[1]);
                dup2(child.resume[0], 0);
                dup2(child.done[1], 1);
                execl("/bin/sh", "sh", "-c", "echo run; read word", (char *)NULL);
                _exit(127);
            }
            munmap(memory, LEN_BYTES);
            _exit(write(child.done[1], "u", 1) == 1 && is_requested(&child) ? 0 : 2);
        }
        assert_int_equal(read(child.done[0], &word, 1), 1);
        oriel_promote_release(&promoted);
        assert_int_equal(file_bytes(), before_bytes);
        close(child.done[0]);
        assert_int_equal(write(child.resume[1], "\n", 1), 1);
        assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
        close(child.done[1]);
        close(child.resume[0]);
        close(child.resume[1]);
    }
    munmap(memory, LEN_BYTES);
}

/* Many windows and a child that lives: in the end all blocks are freed. */
static void many_blocks_wait_and_are_given_back(void **state)
{
    enum { COUNT = 100 };
    const struct oriel_promote_options *how = means_of(state);
    struct oriel_promoted promoted[COUNT];
    uint64_t before_bytes = file_bytes();
    char *memory = map_private(2 * COUNT * PAGE);
    memset(memory, 7, 2 * COUNT * PAGE);
    for (int i = 0; i < COUNT; i++)
        promote(memory + 2 * (uint64_t)i * PAGE, PAGE, how, &promoted[i]);
    struct child child = child_that_looks(memory, 7);
    for (int i = 0; i < COUNT; i++)
        oriel_promote_release(&promoted[i]);
    memset(memory, 9, 2 * COUNT * PAGE);
    assert_true(file_bytes() >= before_bytes + COUNT * PAGE);
    child_expect(&child, 0);
    for (int i = 0; i < COUNT; i++)
        expect_bytes(before_bytes);
    munmap(memory, 2 * COUNT * PAGE);
}

static struct rlimit descriptors_allowed(rlim_t most)
{
    struct rlimit before, now;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    now = (struct rlimit){most, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    return before;
}

/* Then the file keeps the block permanently. */
static void a_child_made_without_free_descriptors_preserves_it(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct oriel_promoted promoted;
    struct child child;
    uint64_t before_bytes = file_bytes();
    char *memory = promote_filled(how, &promoted);
    child_pipes(&child);
    struct rlimit limit = descriptors_allowed(3);
    child.pid = fork();
    if (child.pid == 0)
        look_on_request(&child, memory, 7);
    setrlimit(RLIMIT_NOFILE, &limit);
    release_and_overwrite(memory, how, &promoted);
    child_expect(&child, 0);
    expect_bytes(before_bytes + LEN_BYTES);
    munmap(memory, LEN_BYTES);
}

/* The memory file's descriptor number is another file's: the child must map nothing of that. */
static void a_child_maps_no_other_file(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct oriel_promoted promoted;
    char *memory = promote_filled(how, &promoted);
    int number = oriel_file_identity()->memory_fd;
    int saved = dup(number);
    int other = memfd_create("other", 0);
    assert_true(saved >= 0 && other >= 0);
    assert_int_equal(ftruncate(other, 1 << 24), 0);
    assert_int_equal(dup2(other, number), number);
    struct child child = child_that_looks(memory, 7);
    child_expect(&child, 0);
    assert_int_equal(dup2(saved, number), number);
    close(saved);
    close(other);
    oriel_promote_release(&promoted);
    assert_true(is_filled(memory, 0, LEN_BYTES, 7));
    munmap(memory, LEN_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BY_BOTH(a_child_preserves_memory_that_the_parent_releases),
        BY_BOTH(parts_that_end_at_different_times_are_preserved),
        BY_BOTH(memory_that_no_child_inherited_is_released_at_once),
        BY_BOTH(overlapping_children_pin_only_inherited_memory),
        BY_BOTH(grandchildren_preserve_it_too),
        BY_BOTH(a_child_that_closes_all_descriptors_preserves_it),
        BY_BOTH(another_program_or_unmapping_ends_it),
        BY_BOTH(many_blocks_wait_and_are_given_back),
        BY_BOTH(a_child_made_without_free_descriptors_preserves_it),
        BY_BOTH(a_child_maps_no_other_file),
    };
    return cmocka_run_group_tests(tests, promote_setup, NULL);
}
