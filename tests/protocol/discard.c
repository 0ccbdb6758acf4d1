/* The list of promoted ranges (src/memory/promote/discard.c) is read consistently while it changes.
 * A page in all lists is found; a page in no list is not. Rank 0 publishes lists; other threads of
 * it read. */
#include "team.h"

#include "memory/promote/discard.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { READERS = 3, ROUNDS = 20000, SPREAD = 40, PAGES = 4 * SPREAD + 16 };

static char *never;  /* a page in no list */
static char *always; /* in all lists, at different positions */
static _Atomic bool is_over;

static int pass(void *start, size_t len_bytes, int advice)
{
    (void)start;
    (void)len_bytes;
    (void)advice;
    return 0;
}

/* The mapping of a listed page cannot be read without a descriptor, so the advice fails. */
static void *ask(void *unused)
{
    (void)unused;
    while (!atomic_load(&is_over)) {
        team_expect(oriel_discard(always, ORIEL_PAGE_BYTES, MADV_DONTNEED, pass) != 0);
        team_expect(oriel_discard(never, ORIEL_PAGE_BYTES, MADV_DONTNEED, pass) == 0);
    }
    return NULL;
}

static struct oriel_promoted_range run_at(uintptr_t start)
{
    return (struct oriel_promoted_range){.start = start, .end = start + ORIEL_PAGE_BYTES};
}

static void publish(uint64_t round)
{
    struct oriel_promoted_range list[2 * SPREAD + 1];
    struct oriel_promoted_ranges runs = {.list = list};
    uintptr_t first = (uintptr_t)never + (1 + round % 3) * ORIEL_PAGE_BYTES;
    for (uint64_t i = 0; i < round * 7 % SPREAD; i++)
        list[runs.count++] = run_at(first + 2 * i * ORIEL_PAGE_BYTES);
    list[runs.count++] = run_at((uintptr_t)always);
    for (uint64_t i = 1; i <= round * 3 % SPREAD; i++)
        list[runs.count++] = run_at((uintptr_t)always + 2 * i * ORIEL_PAGE_BYTES);
    oriel_discard_publish(&runs);
}

static struct rlimit before;

static void prepare(void)
{
    never = mmap(NULL, PAGES * ORIEL_PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    team_expect(never != MAP_FAILED && getrlimit(RLIMIT_NOFILE, &before) == 0);
    always = never + (2 * SPREAD + 8) * ORIEL_PAGE_BYTES;
    struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    team_expect(setrlimit(RLIMIT_NOFILE, &none) == 0);
    publish(0);
}

static void finish(void)
{
    oriel_discard_publish(&(struct oriel_promoted_ranges){.count = 0});
    setrlimit(RLIMIT_NOFILE, &before);
    munmap(never, PAGES * ORIEL_PAGE_BYTES);
}

static void publish_and_read(struct oriel_window *window)
{
    pthread_t readers[READERS];
    if (window->rank != 0)
        return;
    prepare();
    for (int i = 0; i < READERS; i++)
        team_expect(pthread_create(&readers[i], NULL, ask, NULL) == 0);
    for (int round = 1; round <= ROUNDS && (round == 1 || !team_time_is_up()); round++)
        publish((uint64_t)round);
    atomic_store(&is_over, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    finish();
}

/* As from a signal handler or an allocator whose locks the writer holds. */
static void ask_in_between(void)
{
    static bool is_inside;
    if (is_inside)
        return;
    is_inside = true;
    team_expect(oriel_discard(always, ORIEL_PAGE_BYTES, MADV_DONTNEED, pass) != 0);
    team_expect(oriel_discard(never, ORIEL_PAGE_BYTES, MADV_DONTNEED, pass) == 0);
    is_inside = false;
}

static void publish_and_be_interrupted(struct oriel_window *window)
{
    if (window->rank != 0)
        return;
    prepare();
    team_at_delay = ask_in_between;
    for (uint64_t round = 1; round <= SPREAD; round++)
        publish(round);
    team_at_delay = NULL;
    finish();
}

static void a_list_is_read_consistently_while_it_changes(void **state)
{
    (void)state;
    team_run(2, publish_and_read);
}

static void a_reader_waits_for_no_writer(void **state)
{
    (void)state;
    team_run(1, publish_and_be_interrupted);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_read_consistently_while_it_changes),
        cmocka_unit_test(a_reader_waits_for_no_writer),
    };
    return team_main(tests, argc, argv);
}
