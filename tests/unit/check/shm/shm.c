/* The checker's shared memory: blocks are exclusive, a key leads all processes to one entry, locks
 * survive the death of their holders, and the memory may be full. Each test has its own shared
 * memory. */
#include "check/shm/shm.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>

#include "check_team.h"
#include "open_watch.h"

#define MIB (UINT64_C(1) << 20)

static void with_shm(uint64_t bytes, void (*body)(void))
{
    char path[64];
    assert_int_equal(oriel_shm_make_sized(3, bytes, path, sizeof path), ORIEL_OK);
    assert_int_equal(oriel_shm_world_size(), 3);
    body();
    oriel_shm_leave();
    assert_false(oriel_shm_is_open());
}

/* --- blocks --- */

struct block {
    oriel_shm_offset offset;
    size_t len_bytes;
    unsigned char fill;
};

static uint64_t seed = 1;

static uint64_t chance(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

static void expect_filled(const struct block *block)
{
    const unsigned char *at = oriel_shm_at(block->offset);
    for (size_t i = 0; i < block->len_bytes; i++)
        assert_int_equal(at[i], block->fill);
}

static void fill_anew(struct block *block)
{
    block->len_bytes = chance() % 5 == 0 ? chance() % 40000 : chance() % 300;
    block->fill = (unsigned char)(chance() % 255 + 1);
    block->offset = oriel_shm_allocate(block->len_bytes);
    assert_true(block->offset != 0 && block->offset % 16 == 0);
    unsigned char *at = oriel_shm_at(block->offset);
    assert_int_equal(oriel_shm_place(at), block->offset);
    for (size_t i = 0; i < block->len_bytes; i++)
        assert_int_equal(at[i], 0);
    memset(at, block->fill, block->len_bytes);
}

static void churn(void)
{
    enum { BLOCKS = 400, ROUNDS = 20000 };
    static struct block blocks[BLOCKS];
    memset(blocks, 0, sizeof blocks);
    for (int i = 0; i < ROUNDS; i++) {
        struct block *block = &blocks[chance() % BLOCKS];
        if (block->offset != 0) {
            expect_filled(block);
            oriel_shm_free(block->offset, block->len_bytes);
        }
        fill_anew(block);
    }
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].offset != 0)
            expect_filled(&blocks[i]);
}

static void blocks_are_zero_and_do_not_overlap(void **state)
{
    (void)state;
    with_shm(64 * MIB, churn);
}

static void use_over_and_over(void)
{
    for (int i = 0; i < 2000000; i++) {
        size_t len_bytes = 16 + (size_t)(i % 7) * 100;
        oriel_shm_offset offset = oriel_shm_allocate(len_bytes);
        assert_true(offset != 0);
        oriel_shm_free(offset, len_bytes);
    }
    for (int i = 0; i < 2000; i++) {
        oriel_shm_offset offset = oriel_shm_allocate(MIB);
        assert_true(offset != 0);
        oriel_shm_free(offset, MIB);
    }
}

static void freed_blocks_are_used_again(void **state)
{
    (void)state;
    with_shm(4 * MIB, use_over_and_over);
}

static void fill_up(void)
{
    uint64_t given = 0;
    oriel_shm_offset last = 0;
    for (;;) {
        oriel_shm_offset offset = oriel_shm_allocate(1000);
        if (offset == 0)
            break;
        last = offset;
        given += 1000;
    }
    assert_true(given > 5 * MIB);
    assert_int_equal(oriel_shm_refused(), 1);
    struct oriel_key key = {{1, 2, 3, 4}};
    assert_int_equal(oriel_shm_find(&key, 2000, NULL), 0);
    assert_int_equal(oriel_shm_allocate(UINT64_C(1) << 60), 0);
    assert_int_equal(oriel_shm_refused(), 3);
    oriel_shm_free(last, 1000);
    assert_int_equal(oriel_shm_allocate(1000), last);
}

static void full_memory_refuses_and_counts(void **state)
{
    (void)state;
    with_shm(8 * MIB, fill_up);
}

/* --- keys --- */

static void init_to_seven(void *at)
{
    *(uint64_t *)at = 7;
}

static void find_and_drop(void)
{
    enum { KEYS = 20000 };
    static oriel_shm_offset offsets[KEYS];
    for (uint64_t i = 0; i < KEYS; i++) {
        struct oriel_key key = {{1, i, i << 32, 0}};
        offsets[i] = oriel_shm_find(&key, 24, init_to_seven);
        uint64_t *at = oriel_shm_at(offsets[i]);
        assert_true(at != NULL && offsets[i] % 16 == 0);
        assert_int_equal(at[0], 7);
        assert_int_equal(at[1], 0);
        at[0] = i;
    }
    for (uint64_t i = 0; i < KEYS; i++) {
        struct oriel_key key = {{1, i, i << 32, 0}};
        assert_int_equal(oriel_shm_find(&key, 24, init_to_seven), offsets[i]);
        assert_int_equal(*(uint64_t *)oriel_shm_at(offsets[i]), i);
        if (i % 3 == 0)
            oriel_shm_drop(&key);
    }
    for (uint64_t i = 0; i < KEYS; i++) {
        struct oriel_key key = {{1, i, i << 32, 0}};
        assert_int_equal(*(uint64_t *)oriel_shm_at(oriel_shm_find(&key, 24, init_to_seven)),
                         i % 3 == 0 ? 7 : i);
    }
}

static void keys_lead_to_their_entries(void **state)
{
    (void)state;
    with_shm(64 * MIB, find_and_drop);
}

static bool count_down(void *at, bool made, void *closure)
{
    int *count = at;
    if (made)
        *count = *(int *)closure;
    return --*count > 0;
}

static void work_until_dropped(void)
{
    struct oriel_key key = {{9, 9, 9, 9}};
    int three = 3;
    assert_false(oriel_shm_work(&key, 0, count_down, &three));
    for (int i = 0; i < 3; i++)
        assert_true(oriel_shm_work(&key, i == 0 ? 4 : 0, count_down, &three));
    assert_false(oriel_shm_work(&key, 0, count_down, &three));
}

static void work_makes_and_drops(void **state)
{
    (void)state;
    with_shm(64 * MIB, work_until_dropped);
}

/* --- processes --- */

/* All count in the same entries and pass blocks to each other; nothing is lost. */
static void count_together(int rank)
{
    enum { ROUNDS = 20000, COUNTERS = 50 };
    for (int i = 0; i < ROUNDS; i++) {
        struct oriel_key key = {{2, (uint64_t)(i % COUNTERS), 0, 0}};
        struct oriel_key other = {{3, (uint64_t)rank, (uint64_t)i, 0}};
        struct oriel_key before = {{3, (uint64_t)((rank + 1) % team->n), (uint64_t)i, 0}};
        _Atomic uint64_t *at = oriel_shm_at(oriel_shm_find(&key, 8, NULL));
        EXPECT(at != NULL);
        atomic_fetch_add(at, 1);
        EXPECT(oriel_shm_find(&other, 200, NULL) != 0);
        oriel_shm_drop(&before);
    }
    team_barrier();
    uint64_t sum = 0;
    for (uint64_t i = 0; i < COUNTERS; i++) {
        struct oriel_key key = {{2, i, 0, 0}};
        sum += *(uint64_t *)oriel_shm_at(oriel_shm_find(&key, 8, NULL));
    }
    EXPECT(sum == (uint64_t)ROUNDS * (uint64_t)team->n);
}

static void processes_find_the_same_places(void **state)
{
    (void)state;
    team_run(4, 64 * MIB, 0, count_together);
}

/* One process's blocks are freed by another, continuously. */
static void produce_and_consume(int rank)
{
    enum { ROUNDS = 60000, BLOCK = 400 };
    for (int i = 0; i < ROUNDS; i++) {
        _Atomic uint64_t *slot = &team->words[rank / 2];
        if (rank % 2 == 0) {
            oriel_shm_offset offset = oriel_shm_allocate(BLOCK);
            EXPECT(offset != 0);
            while (atomic_load(slot) != 0)
                sched_yield();
            atomic_store(slot, offset);
        } else {
            uint64_t offset;
            while ((offset = atomic_load(slot)) == 0)
                sched_yield();
            atomic_store(slot, 0);
            oriel_shm_free(offset, BLOCK);
        }
    }
}

static void blocks_are_freed_by_other_processes(void **state)
{
    (void)state;
    team_run(4, 8 * MIB, 0, produce_and_consume);
}

struct guarded {
    struct oriel_shm_lock lock;
    uint64_t count, twin;
};

static void init_guarded(void *at)
{
    oriel_shm_lock_init(&((struct guarded *)at)->lock);
}

static struct guarded *guarded(void)
{
    struct oriel_key key = {{4, 0, 0, 0}};
    return oriel_shm_at(oriel_shm_find(&key, sizeof(struct guarded), init_guarded));
}

static void count_under_the_lock(int rank)
{
    enum { ROUNDS = 100000 };
    (void)rank;
    struct guarded *at = guarded();
    for (int i = 0; i < ROUNDS; i++) {
        oriel_shm_lock(&at->lock);
        EXPECT(at->count == at->twin);
        at->count++;
        at->twin++;
        oriel_shm_unlock(&at->lock);
    }
    team_barrier();
    EXPECT(at->count == (uint64_t)ROUNDS * (uint64_t)team->n);
}

static void lock_lets_one_in_at_a_time(void **state)
{
    (void)state;
    team_run(4, 64 * MIB, 0, count_under_the_lock);
}

static void die_with_the_lock(int rank)
{
    struct guarded *at = guarded();
    if (rank == 0) {
        oriel_shm_lock(&at->lock);
        team_step(1);
        usleep(20000); /* most of the others should be waiting by now */
        team_die();
    }
    team_await(1);
    oriel_shm_lock(&at->lock);
    at->count++;
    oriel_shm_unlock(&at->lock);
    oriel_shm_lock(&at->lock);
    oriel_shm_unlock(&at->lock);
}

static void lock_of_a_dead_process_is_acquired(void **state)
{
    (void)state;
    team_run(3, 64 * MIB, 1, die_with_the_lock);
}

static bool die_at_work(void *at, bool made, void *closure)
{
    (void)at, (void)made, (void)closure;
    team_step(1);
    team_die();
    return true;
}

/* In the middle of its work on a key, and with cached blocks of its own. */
static void die_in_the_table(int rank)
{
    struct oriel_key key = {{5, 0, 0, 0}};
    if (rank == 0) {
        for (int i = 0; i < 100; i++)
            oriel_shm_allocate(64);
        oriel_shm_work(&key, 64, die_at_work, NULL);
    }
    team_await(1);
    EXPECT(oriel_shm_find(&key, 64, NULL) != 0);
    oriel_shm_drop(&key);
    for (uint64_t i = 0; i < 20000; i++) {
        struct oriel_key some = {{6, (uint64_t)rank, i, 0}};
        EXPECT(oriel_shm_find(&some, 64, NULL) != 0);
        oriel_shm_drop(&some);
    }
}

static void table_survives_its_last_user(void **state)
{
    (void)state;
    team_run(3, 64 * MIB, 1, die_in_the_table);
}

/* --- creating and joining --- */

static void chosen_size_is_sparse(void **state)
{
    (void)state;
    char path[64];
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    assert_int_equal(oriel_shm_make(5, path, sizeof path), ORIEL_OK);
    assert_true(oriel_shm_allocate(32 * MIB) != 0);
    getrusage(RUSAGE_SELF, &after);
    assert_true(after.ru_maxrss - before.ru_maxrss < 8192); /* KiB */
    oriel_shm_leave();
}

static void only_the_checkers_memory_is_joined(void **state)
{
    (void)state;
    char path[64];
    int fd = memfd_create("no board", MFD_CLOEXEC);
    assert_true(fd >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_int_not_equal(oriel_shm_join(path), ORIEL_OK);
    assert_int_equal(ftruncate(fd, 1 << 20), 0);
    assert_int_not_equal(oriel_shm_join(path), ORIEL_OK);
    close(fd);
    assert_int_not_equal(oriel_shm_join(path), ORIEL_OK);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    int watch = opened_watch(getpid(), ends[0]);
    assert_true(watch >= 0);
    assert_int_not_equal(oriel_shm_join(path), ORIEL_OK);
    assert_false(opened_since(watch)); /* opening alone has effects on devices and pipes */
    close(watch);
    close(ends[0]);
    close(ends[1]);
    assert_false(oriel_shm_is_open());
}

static void forked_child_leaves_the_memory_alone(void **state)
{
    (void)state;
    char path[64];
    assert_int_equal(oriel_shm_make_sized(1, 64 * MIB, path, sizeof path), ORIEL_OK);
    struct oriel_key key = {{1, 1, 1, 1}};
    oriel_shm_offset offset = oriel_shm_find(&key, 16, init_to_seven);
    pid_t pid = fork();
    if (pid == 0) {
        EXPECT(!oriel_shm_is_open());
        EXPECT(*(uint64_t *)oriel_shm_at(offset) == 7);
        EXPECT(oriel_shm_allocate(16) == 0 && oriel_shm_find(&key, 16, NULL) == 0);
        oriel_shm_drop(&key);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(oriel_shm_find(&key, 16, NULL), offset);
    oriel_shm_leave();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_zero_and_do_not_overlap),
        cmocka_unit_test(freed_blocks_are_used_again),
        cmocka_unit_test(full_memory_refuses_and_counts),
        cmocka_unit_test(keys_lead_to_their_entries),
        cmocka_unit_test(work_makes_and_drops),
        cmocka_unit_test(processes_find_the_same_places),
        cmocka_unit_test(blocks_are_freed_by_other_processes),
        cmocka_unit_test(lock_lets_one_in_at_a_time),
        cmocka_unit_test(lock_of_a_dead_process_is_acquired),
        cmocka_unit_test(table_survives_its_last_user),
        cmocka_unit_test(chosen_size_is_sparse),
        cmocka_unit_test(only_the_checkers_memory_is_joined),
        cmocka_unit_test(forked_child_leaves_the_memory_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
