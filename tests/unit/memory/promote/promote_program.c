/* Operations of the program on promoted memory: it forks, unmaps, moves and protects it. */
#include "promote_common.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>

static atomic_bool stop;

static void child_reads_the_memory_and_writes_its_own(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct oriel_promoted promoted;
    char *memory = map_private(4 * PAGE);
    fill(memory, 4 * PAGE, 8);
    promote(memory, 4 * PAGE, how, &promoted);
    pid_t child = fork();
    if (child == 0) {
        bool right = memory[512] == 9 && !is_promoted(memory);
        memset(memory, 77, 4 * PAGE);
        oriel_promote_release(&promoted); /* nothing: the promotion is the parent's */
        right = right && memory[0] == 77;
        struct oriel_promoted again;
        right = right && oriel_promote((uintptr_t)memory, PAGE, how, &again) != ORIEL_OK;
        _exit(right ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    expect_data(memory, 4 * PAGE, 8);
    char *view = peer_view(memory, 4 * PAGE);
    memory[0] = 55;
    assert_int_equal(view[0], 55); /* the parent shares as before */
    munmap(view, 4 * PAGE);
    oriel_promote_release(&promoted);
    munmap(memory, 4 * PAGE);
}

/* Next to the window's bytes are others of the program, even the allocator's: the child has their
 * state at fork. */
static void partly_covered_pages_are_a_snapshot_in_the_child(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct oriel_promoted promoted;
    int ends[2];
    char *memory = map_private(5 * PAGE);
    memset(memory, 1, 5 * PAGE);
    promote(memory + 100, 4 * PAGE, how, &promoted);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        char resume;
        bool right =
            read(ends[0], &resume, 1) == 1 && memory[50] == 1 && memory[4 * PAGE + 200] == 1;
        memory[50] = 3;
        memory[2 * PAGE] = 3;
        _exit(right ? 0 : 1);
    }
    memset(memory, 2, 5 * PAGE);
    assert_int_equal(write(ends[1], "g", 1), 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(memory[50] == 2 && memory[2 * PAGE] == 2);
    close(ends[0]);
    close(ends[1]);
    oriel_promote_release(&promoted);
    munmap(memory, 5 * PAGE);
}

/* Children are forked while pages move: writes stay private, in both directions. */
static void *fork_always(void *context)
{
    _Atomic uint64_t *word = context;
    for (uint64_t made = 1; !atomic_load(&stop); made++) {
        int status;
        atomic_store(word, made);
        pid_t child = fork();
        if (child == 0) {
            atomic_store(word, 0);
            for (int i = 0; i < 10; i++)
                sched_yield();
            _exit(atomic_load(word) == 0 ? 0 : 1);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0 ||
            atomic_load(word) != made)
            return word;
    }
    return NULL;
}

static void children_made_meanwhile_are_isolated(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    char *memory = map_private(4 * PAGE);
    pthread_t forker;
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&forker, NULL, fork_always, memory), 0);
    for (int round = 0; round < 300; round++) {
        struct oriel_promoted promoted;
        promote(memory, 4 * PAGE, how, &promoted);
        oriel_promote_release(&promoted);
        usleep(500);
    }
    atomic_store(&stop, true);
    void *failed;
    pthread_join(forker, &failed);
    assert_null(failed);
    munmap(memory, 4 * PAGE);
}

static void replaced_memory_is_left_alone(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct oriel_promoted promoted;
    char *memory = map_private(8 * PAGE);
    fill(memory, 8 * PAGE, 1);
    promote(memory, 8 * PAGE, how, &promoted);
    munmap(memory + 2 * PAGE, 3 * PAGE);
    char *other = mmap(memory + 3 * PAGE, PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    assert_true(other == memory + 3 * PAGE);
    other[0] = 42;
    print_message("one warning about three pages is to come:\n");
    oriel_promote_release(&promoted);
    assert_int_equal(other[0], 42);
    unsigned char present;
    assert_int_equal(mincore(memory + 2 * PAGE, PAGE, &present), -1); /* not mapped again */
    expect_data(memory, 2 * PAGE, 1);
    expect_data(memory + 5 * PAGE, 3 * PAGE, 1 + 5 * 8);
    assert_false(is_promoted(memory) || is_promoted(other) || is_promoted(memory + 7 * PAGE));
    munmap(memory, 8 * PAGE);
}

static void moved_memory_preserves_its_contents(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct oriel_promoted promoted;
    char *memory = map_private(8 * PAGE);
    fill(memory, 8 * PAGE, 1);
    promote(memory, 8 * PAGE, how, &promoted);
    char *moved = mremap(memory, 8 * PAGE, 16 * PAGE, MREMAP_MAYMOVE);
    assert_true(moved != MAP_FAILED && moved != memory);
    print_message("one warning about eight pages is to come:\n");
    oriel_promote_release(&promoted);
    uint64_t offset;
    assert_int_equal(oriel_file_alloc(64 * PAGE, 64, &offset), ORIEL_OK);
    memset(oriel_file_base() + offset, 0xff, 64 * PAGE); /* no other memory changes */
    expect_data(moved, 8 * PAGE, 1);
    oriel_file_free(offset);
    munmap(moved, 16 * PAGE);
}

static void final_access_rights_are_preserved(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct oriel_promoted promoted;
    char *memory = map_private(4 * PAGE);
    fill(memory, 4 * PAGE, 1);
    promote(memory, 4 * PAGE, how, &promoted);
    assert_int_equal(mprotect(memory + PAGE, PAGE, PROT_READ), 0);
    oriel_promote_release(&promoted);
    expect_data(memory, 4 * PAGE, 1);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "xy", 2), 2);
    assert_int_equal(read(ends[0], memory + PAGE, 1), -1);
    assert_int_equal(errno, EFAULT);
    assert_int_equal(read(ends[0], memory, 1), 1);
    close(ends[0]);
    close(ends[1]);
    munmap(memory, 4 * PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BY_BOTH(child_reads_the_memory_and_writes_its_own),
        BY_BOTH(partly_covered_pages_are_a_snapshot_in_the_child),
        BY_BOTH(children_made_meanwhile_are_isolated),
        BY_BOTH(replaced_memory_is_left_alone),
        BY_BOTH(moved_memory_preserves_its_contents),
        BY_BOTH(final_access_rights_are_preserved),
    };
    return cmocka_run_group_tests(tests, promote_setup, NULL);
}
