/* Promotion while threads come and go: the kernel's list of threads may end with one that ends, and who is behind it loses no
 * write nevertheless.  Pages stay copied and not yet moved for longer than they would, so that such writes meet that time. */
#include "promote_common.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

enum { CROWD = 3, ADDS = 3000, SECONDS = 8, LONGER_US = 200 };

static atomic_bool stop;

long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (number == SYS_mremap)
        usleep(LONGER_US);
    return __real_syscall(number, a, b, c, d, e, f);
}

static void *add_and_end(void *word)
{
    for (int i = 0; i < ADDS; i++)
        atomic_fetch_add((_Atomic uint64_t *)word, 1);
    return NULL;
}

static void *come_and_go(void *word)
{
    uint64_t turns = 0;
    for (; !atomic_load(&stop); turns++) {
        pthread_t crowd[CROWD];
        for (int i = 0; i < CROWD; i++)
            assert_int_equal(pthread_create(&crowd[i], NULL, add_and_end, word), 0);
        for (int i = 0; i < CROWD; i++)
            pthread_join(crowd[i], NULL);
        sched_yield();
    }
    return (void *)(uintptr_t)turns;
}

static void a_thread_loses_no_write_though_others_end(void **state)
{
    char *memory = map_private(PAGE);
    pthread_t thread;
    void *turns;
    int moved = 0;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, come_and_go, memory), 0);
    for (time_t end = time(NULL) + SECONDS; time(NULL) < end;) {
        struct oriel_promoted promoted;
        if (oriel_promote((uintptr_t)memory, PAGE, &quiesce, &promoted) == ORIEL_OK) {
            moved++;
            oriel_promote_release(&promoted);
        }
    }
    atomic_store(&stop, true);
    pthread_join(thread, &turns);
    print_message("%d promotions\n", moved);
    assert_true(moved > 100);
    assert_int_equal(atomic_load((_Atomic uint64_t *)memory), CROWD * ADDS * (uint64_t)(uintptr_t)turns);
    munmap(memory, PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_thread_loses_no_write_though_others_end)};
    return cmocka_run_group_tests(tests, promote_setup, NULL);
}
