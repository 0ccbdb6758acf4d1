/* The life word: the kernel marks the death of the thread that owns it, also by exit and SIGKILL of
 * the process; a thread that returns leaves no mark. */
#include "memory/life.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka_all.h"

static struct oriel_life *life_make(void)
{
    struct oriel_life *life =
        mmap(NULL, sizeof *life, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(life, MAP_FAILED);
    return life;
}

static void *start_and_return(void *life)
{
    oriel_life_start(life);
    return oriel_load_relaxed(&((struct oriel_life *)life)->word) == (uint32_t)syscall(SYS_gettid)
               ? life
               : NULL;
}

static atomic_bool dies;

static void *start_and_die(void *life)
{
    oriel_life_start(life);
    atomic_fetch_or(&((struct oriel_life *)life)->word, ORIEL_LIFE_SLEEPS);
    atomic_store(&dies, true);
    syscall(SYS_exit, 0); /* without the C library's end of a thread */
    return NULL;
}

static void a_thread_that_returns_leaves_no_mark(void **state)
{
    pthread_t thread;
    void *result;
    struct oriel_life *life = life_make();
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, start_and_return, life), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, life);
    assert_int_equal(oriel_load_relaxed(&life->word), 0);
    munmap(life, sizeof *life);
}

/* The kernel keeps the other bit. The thread is not joined: ThreadSanitizer would wait for its end
 * in the C library. */
static void a_thread_that_dies_is_marked(void **state)
{
    pthread_t thread;
    struct oriel_life *life = life_make();
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, start_and_die, life), 0);
    assert_int_equal(pthread_detach(thread), 0);
    while (!atomic_load(&dies) || !(oriel_load_relaxed(&life->word) & ORIEL_LIFE_DIED))
        usleep(100);
    assert_int_equal(oriel_load_relaxed(&life->word), ORIEL_LIFE_DIED | ORIEL_LIFE_SLEEPS);
    munmap(life, sizeof *life);
}

static void process_end(bool is_killed)
{
    struct oriel_life *life = life_make();
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        oriel_life_start(life);
        if (is_killed)
            kill(getpid(), SIGKILL);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(oriel_load_relaxed(&life->word), ORIEL_LIFE_DIED);
    munmap(life, sizeof *life);
}

static void a_process_that_ends_is_marked(void **state)
{
    (void)state;
    process_end(false);
    process_end(true);
}

/* It has the parent's word and key, and does not own the mutex. */
static void a_forked_child_leaves_no_mark(void **state)
{
    struct oriel_life *life = life_make();
    (void)state;
    oriel_life_start(life);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        pthread_exit(NULL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(oriel_load_relaxed(&life->word), (uint32_t)getpid());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_that_returns_leaves_no_mark),
        cmocka_unit_test(a_thread_that_dies_is_marked),
        cmocka_unit_test(a_process_that_ends_is_marked),
        cmocka_unit_test(a_forked_child_leaves_no_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
