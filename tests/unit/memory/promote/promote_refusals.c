/* A refused promotion returns its reason and changes nothing: neither the memory nor the program's
 * signals. */
#include "promote_common.h"

#include "transport/remote_writers.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static char *touched(uint64_t len_bytes)
{
    char *memory = map_private(len_bytes);
    memset(memory, 7, len_bytes);
    return memory;
}

static void advised_and_locked_memory_is_refused(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    char *memory = touched(4 * PAGE);
    assert_int_equal(syscall(SYS_mlock, memory + PAGE, PAGE), 0); /* sanitizers disable libc's */
    assert_refused(memory, 4 * PAGE, how, "locked by mlock");
    assert_int_equal(syscall(SYS_munlock, memory, 4 * PAGE), 0);
    assert_int_equal(madvise(memory, 4 * PAGE, MADV_DONTFORK), 0);
    assert_refused(memory, 4 * PAGE, how, "MADV_DONTFORK");
    assert_int_equal(madvise(memory, 4 * PAGE, MADV_DOFORK), 0);
    assert_int_equal(madvise(memory, 4 * PAGE, MADV_DONTDUMP), 0);
    assert_refused(memory, 4 * PAGE, how, "MADV_DONTDUMP");
    assert_int_equal(madvise(memory, 4 * PAGE, MADV_DODUMP), 0);
    assert_int_equal(madvise(memory, 4 * PAGE, MADV_WIPEONFORK), 0);
    assert_refused(memory, 4 * PAGE, how, "MADV_WIPEONFORK");
    assert_int_equal(madvise(memory, 4 * PAGE, MADV_KEEPONFORK), 0);
    struct oriel_promoted promoted;
    oriel_promotable_expire_cache();
    promote(memory, 4 * PAGE, how, &promoted); /* all is ordinary again */
    oriel_promote_release(&promoted);
    assert_int_equal(syscall(SYS_mlock, memory, 4 * PAGE),
                     0); /* detected even if the list is not read again */
    assert_int_not_equal(oriel_promote((uintptr_t)memory, 4 * PAGE, how, &promoted), ORIEL_OK);
    assert_non_null(strstr(oriel_fail_message(), "locked by mlock"));
    for (uint64_t i = 0; i < 4 * PAGE; i++)
        assert_int_equal(memory[i], 7);
    assert_int_equal(syscall(SYS_munlock, memory, 4 * PAGE), 0);
    munmap(memory, 4 * PAGE);
}

static void other_kinds_of_mappings_are_refused(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    char *memory = touched(4 * PAGE);
    assert_int_equal(mprotect(memory + 3 * PAGE, PAGE, PROT_READ), 0);
    assert_refused(memory, 4 * PAGE, how, "not writable");
    assert_int_equal(mprotect(memory + 3 * PAGE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
    assert_refused(memory, 4 * PAGE, how, "executable");
    munmap(memory + 3 * PAGE, PAGE);
    assert_refused(memory, 4 * PAGE, how, "");
    munmap(memory + PAGE, PAGE);
    assert_refused(memory, 3 * PAGE, how, "nothing is mapped");
    munmap(memory, 4 * PAGE);
    memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    assert_refused(memory, PAGE, how, "already shared");
    munmap(memory, PAGE);
    assert_refused(oriel_file_base() + PAGE, PAGE, how, "already in the memory file");
    assert_refused((void *)(UINTPTR_MAX - 2 * PAGE), 4 * PAGE, how, "end of the address space");
}

static void file_pages_are_refused_where_writes_are_to_be_caught(void **state)
{
    (void)state;
    means_of((void *[]){&protect});
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), PAGE), 0);
    char *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
    assert_true(memory != MAP_FAILED);
    assert_refused(memory, PAGE, &protect, "a private copy of a file");
    munmap(memory, PAGE);
    fclose(file);
}

static void own_stack_is_refused(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    char here[4 * ORIEL_PAGE_BYTES];
    memset(here, 1, sizeof here);
    assert_refused(here, sizeof here, how, "stack");
    uintptr_t error = (uintptr_t)&errno & ~(uintptr_t)(PAGE - 1);
    assert_refused((void *)error, PAGE, how, "");
}

/* Oriel's own variables, which are linked among the program's. */
static void variables_of_oriel_are_refused(void **state)
{
    extern char __bss_start[], _end[];
    assert_refused(__bss_start, (uintptr_t)_end - (uintptr_t)__bss_start, means_of(state),
                   "Oriel's own variables");
}

static void memory_of_ucx_is_refused_as_long_as_it_is_that(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    char *memory = touched(4 * PAGE);
    struct oriel_promoted promoted;
    oriel_remote_writers_add_address(memory + 3 * PAGE - 1);
    assert_refused(memory, 4 * PAGE, how, "memory of UCX");
    promote(memory + 3 * PAGE, PAGE, how, &promoted);
    oriel_promote_release(&promoted);
    oriel_remote_writers_remove_address(memory + 3 * PAGE - 1);
    promote(memory, 4 * PAGE, how, &promoted);
    oriel_promote_release(&promoted);
    munmap(memory, 4 * PAGE);
}

struct sleeper {
    pthread_t thread;
    pthread_barrier_t ready;
    atomic_bool done;
    bool blocks_all;
    char *_Atomic stack;
};

static void *sleep_until_done(void *context)
{
    struct sleeper *sleeper = context;
    _Alignas(4096) char array[4 * ORIEL_PAGE_BYTES];
    memset(array, 1, sizeof array);
    atomic_store(&sleeper->stack, array);
    prctl(PR_SET_NAME, "sleeper");
    if (sleeper->blocks_all) {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, NULL);
    }
    pthread_barrier_wait(&sleeper->ready);
    while (!atomic_load(&sleeper->done))
        usleep(1000);
    if (sleeper
            ->blocks_all) { /* no signal for this thread may remain: they would end the process */
        sigset_t none;
        sigemptyset(&none);
        pthread_sigmask(SIG_SETMASK, &none, NULL);
    }
    return NULL;
}

static void sleeper_start(struct sleeper *sleeper, const pthread_attr_t *attributes)
{
    pthread_barrier_init(&sleeper->ready, NULL, 2);
    assert_int_equal(pthread_create(&sleeper->thread, attributes, sleep_until_done, sleeper), 0);
    pthread_barrier_wait(&sleeper->ready);
}

static void sleeper_stop(struct sleeper *sleeper)
{
    atomic_store(&sleeper->done, true);
    pthread_join(sleeper->thread, NULL);
    pthread_barrier_destroy(&sleeper->ready);
}

static void *refuse_own_stack(void *context)
{
    own_stack_is_refused(context);
    return NULL;
}

/* Promotes in its own thread. */
struct neighbour {
    char *page;
    const struct oriel_promote_options *how;
    char refusal[200];
};

static void *promote_page(void *context)
{
    struct neighbour *neighbour = context;
    struct oriel_promoted promoted;
    if (oriel_promote((uintptr_t)neighbour->page, PAGE, neighbour->how, &promoted) == ORIEL_OK)
        oriel_promote_release(&promoted);
    else
        snprintf(neighbour->refusal, sizeof neighbour->refusal, "%s", oriel_fail_message());
    return NULL;
}

static void stacks_of_threads_are_refused(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct sleeper sleeper = {.blocks_all = false};
    sleeper_start(&sleeper, NULL);
    assert_refused(atomic_load(&sleeper.stack), 4 * PAGE, how,
                   "may be the stack of thread|as stacks of threads have");
    sleeper_stop(&sleeper);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, refuse_own_stack, state), 0);
    pthread_join(thread, NULL);
}

static void stacks_set_by_the_program_are_refused_but_not_the_memory_above(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct sleeper sleeper = {.blocks_all = false};
    pthread_attr_t attributes;
    char *memory = touched(272 * PAGE); /* sanitizers require large stacks */
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstack(&attributes, memory, 256 * PAGE), 0);
    sleeper_start(&sleeper, &attributes);
    assert_refused(atomic_load(&sleeper.stack), 4 * PAGE, how, "may be the stack of thread");
    struct oriel_promoted promoted;
    promote(memory + 256 * PAGE, 16 * PAGE, how, &promoted);
    oriel_promote_release(&promoted);
    sleeper_stop(&sleeper);
    pthread_attr_destroy(&attributes);
    munmap(memory, 272 * PAGE);
}

struct own_arena {
    pthread_barrier_t turn;
    char *memory;
};

static void *allocate_first(void *context)
{
    struct own_arena *arena = context;
    arena->memory = malloc(100);
    pthread_barrier_wait(&arena->turn);
    pthread_barrier_wait(&arena->turn);
    free(arena->memory);
    return NULL;
}

/* The arena's state is there, and fork changes it in the child before handlers run. */
static void page_where_a_threads_arena_begins_is_refused(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct own_arena arena = {.memory = NULL};
    pthread_t thread;
    pthread_barrier_init(&arena.turn, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, allocate_first, &arena), 0);
    pthread_barrier_wait(&arena.turn);
    uintptr_t page = (uintptr_t)arena.memory & ~(uintptr_t)(PAGE - 1);
    bool begins = page % (64 * MIB) == 0; /* not with a sanitizer's malloc */
    if (begins)
        assert_refused((void *)page, PAGE, how, "the start of a malloc arena");
    pthread_barrier_wait(&arena.turn);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&arena.turn);
    if (!begins) {
        print_message("this malloc has no arenas of glibc's\n");
        skip();
    }
}

/* Other memory at such an address is not refused. */
static void other_memory_at_such_a_place_is_promoted(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    char *whole = map_private(130 * MIB);
    char *memory = (char *)(((uintptr_t)whole + 64 * MIB - 1) & ~(uintptr_t)(64 * MIB - 1));
    memset(memory, 7, PAGE);
    struct oriel_promoted promoted;
    promote(memory, PAGE, how, &promoted);
    oriel_promote_release(&promoted);
    assert_int_equal(memory[0], 7);
    munmap(whole, 130 * MIB);
}

/* In malloc's memory, or any other: locks are searched for. */
static void page_with_the_lock_of_an_open_stream_is_refused(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    FILE *stream = fopen("/dev/null", "w");
    assert_non_null(stream);
    char *page = touched(PAGE);
    void *own = stream->_lock;
    stream->_lock = (void *)(page + PAGE - 16); /* unused */
    assert_refused(page, PAGE, how, "the lock of an open stream");
    stream->_lock = own;
    struct oriel_promoted promoted;
    promote(page, PAGE, how, &promoted);
    oriel_promote_release(&promoted);
    munmap(page, PAGE);
    fclose(stream);
}

/* It contains the thread id, which the kernel writes in a child. */
static void control_block_of_the_initial_thread_is_refused(void **state)
{
    void *block = NULL;
    size_t len_bytes = 0;
    pthread_t thread;
    assert_int_equal(syscall(SYS_get_robust_list, 0, &block, &len_bytes), 0);
    struct neighbour other = {.page = (char *)((uintptr_t)block & ~(uintptr_t)(PAGE - 1)),
                              .how = means_of(state)};
    oriel_promotable_expire_cache();
    assert_int_equal(pthread_create(&thread, NULL, promote_page, &other), 0);
    pthread_join(thread, NULL);
    assert_non_null(strstr(other.refusal, "used by the initial thread"));
}

/* An allocator may map memory directly after a thread's stack. */
static void memory_above_the_callers_stack_is_promoted(void **state)
{
    struct neighbour neighbour = {.how = means_of(state)};
    enum { STACK_PAGES = 256 };
    char *memory = touched((STACK_PAGES + 1) * PAGE);
    neighbour.page = memory + STACK_PAGES * PAGE;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstack(&attributes, memory, STACK_PAGES * PAGE), 0);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, &attributes, promote_page, &neighbour), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    assert_string_equal(neighbour.refusal, "");
    munmap(memory, (STACK_PAGES + 1) * PAGE);
}

static int default_signals(void)
{
    int count = 0;
    struct sigaction action;
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        count += sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_DFL;
    return count;
}

static void thread_that_blocks_all_signals_is_named(void **state)
{
    means_of(state);
    struct sleeper sleeper = {.blocks_all = true};
    int before = default_signals();
    char *memory = touched(2 * PAGE);
    sleeper_start(&sleeper, NULL);
    assert_refused(memory, 2 * PAGE, &quiesce, "(sleeper) blocks the signals");
    assert_refused(memory, 2 * PAGE, &quiesce, "(sleeper) blocks the signals");
    sleeper_stop(&sleeper);
    struct oriel_promoted promoted;
    promote(memory, 2 * PAGE, &quiesce, &promoted);
    oriel_promote_release(&promoted);
    assert_int_equal(default_signals(), before);
    munmap(memory, 2 * PAGE);
}

static void unused(int number)
{
    (void)number;
}

/* Including the one that Oriel used before. */
static void program_with_all_real_time_signals_in_use_is_refused(void **state)
{
    means_of(state);
    struct sigaction before[NSIG];
    const struct sigaction own = {.sa_handler = unused};
    char *memory = touched(2 * PAGE);
    struct oriel_promoted promoted;
    promote(memory, 2 * PAGE, &quiesce, &promoted);
    oriel_promote_release(&promoted);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        assert_int_equal(sigaction(number, &own, &before[number]), 0);
    assert_refused(memory, 2 * PAGE, &quiesce, "the program uses all real-time signals");
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        assert_int_equal(sigaction(number, &before[number], NULL), 0);
    promote(memory, 2 * PAGE, &quiesce, &promoted);
    oriel_promote_release(&promoted);
    munmap(memory, 2 * PAGE);
}

/* Memory whose demotion fails stays shared, and the next promotion reuses it. */
static void memory_that_cannot_be_released_stays_shared(void **state)
{
    means_of(state);
    struct sleeper sleeper = {.blocks_all = true};
    struct oriel_promoted promoted;
    char *memory = touched(4 * PAGE);
    promote(memory, 4 * PAGE, &quiesce, &promoted);
    sleeper_start(&sleeper, NULL);
    print_message("one warning about memory that stays shared is to come:\n");
    oriel_promote_release(&promoted);
    uint64_t offset, again, held_bytes;
    assert_true(oriel_promote_find((uintptr_t)memory, 1, &offset, &held_bytes));
    sleeper_stop(&sleeper);
    assert_int_equal(memory[3 * PAGE], 7);
    promote(memory + PAGE, PAGE, &quiesce, &promoted);
    assert_true(oriel_promote_find((uintptr_t)memory + PAGE, 1, &again, &held_bytes));
    assert_int_equal(again, offset + PAGE);
    oriel_promote_release(&promoted);
    assert_false(oriel_promote_find((uintptr_t)memory + PAGE, 1, &again, &held_bytes));
    assert_true(oriel_promote_find((uintptr_t)memory, 1, &again, &held_bytes));
    munmap(memory, 4 * PAGE);
    char *other = mmap(memory, 4 * PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    assert_true(other == memory);
    other[0] = 5;
    promote(other, 4 * PAGE, &quiesce,
            &promoted); /* nothing is known of the former memory any more */
    char *view = peer_view(other, 4 * PAGE);
    assert_int_equal(view[0], 5);
    assert_int_equal(view[3 * PAGE], 0);
    munmap(view, 4 * PAGE);
    oriel_promote_release(&promoted);
    munmap(other, 4 * PAGE);
}

/* The third chunk does not move into the file; the first two are demoted. */
static void failure_half_way_leaves_all_private(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    const uint64_t len_bytes = 14 * MIB;
    char *memory = touched(len_bytes);
    struct oriel_promoted promoted;
    uint64_t offset, held_bytes;
    promote(memory, len_bytes, how, &promoted); /* the next one gets the same address */
    assert_true(oriel_promote_find((uintptr_t)memory, 1, &offset, &held_bytes));
    oriel_promote_release(&promoted);
    uint64_t before_bytes = file_bytes();
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit tight = {.rlim_cur = offset + 10 * MIB, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    enum oriel_status status = oriel_promote((uintptr_t)memory, len_bytes, how, &promoted);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_not_equal(status, ORIEL_OK);
    assert_non_null(strstr(oriel_fail_message(), "into the memory file"));
    for (uint64_t i = 0; i < len_bytes; i += PAGE)
        assert_true(memory[i] == 7 && !is_promoted(memory + i));
    assert_int_equal(file_bytes(), before_bytes);
    assert_int_equal(madvise(memory, len_bytes, MADV_DONTNEED), 0);
    assert_true(memory[0] == 0 && memory[len_bytes - 1] == 0); /* really private */
    promote(memory, len_bytes, how, &promoted);
    oriel_promote_release(&promoted);
    munmap(memory, len_bytes);
}

static bool huge_pages_are_to_be_had(char *memory, uint64_t len_bytes)
{
    if (madvise(memory, len_bytes, MADV_HUGEPAGE) != 0)
        return false;
    memset(memory, 3, len_bytes);
    char line[256];
    unsigned long kib = 0;
    bool is_here = false;
    FILE *file = fopen("/proc/self/smaps", "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx", &start, &end) == 2)
            is_here = start <= (uintptr_t)memory && end > (uintptr_t)memory;
        if (is_here && sscanf(line, "AnonHugePages: %lu", &kib) == 1)
            break;
    }
    fclose(file);
    return kib > 0;
}

static void huge_pages_are_refused_unless_they_may_be_split(void **state)
{
    struct oriel_promote_options how = *means_of(state);
    const uint64_t len_bytes = 8 * MIB;
    char *memory = map_private(len_bytes);
    if (!huge_pages_are_to_be_had(memory, len_bytes)) {
        munmap(memory, len_bytes);
        print_message("no transparent huge pages here\n");
        skip();
    }
    struct oriel_promoted promoted;
    if (oriel_promote((uintptr_t)memory, len_bytes, &how, &promoted) == ORIEL_OK)
        oriel_promote_release(&promoted); /* shared memory gets huge pages, too */
    else
        assert_non_null(strstr(oriel_fail_message(), "transparent huge pages"));
    how.huge_allowed = true;
    promote(memory + PAGE, len_bytes - 2 * PAGE, &how, &promoted);
    for (uint64_t i = 0; i < len_bytes; i += PAGE)
        assert_int_equal(memory[i], 3);
    oriel_promote_release(&promoted);
    for (uint64_t i = 0; i < len_bytes; i += PAGE)
        assert_int_equal(memory[i], 3);
    munmap(memory, len_bytes);
}

static void lost_descriptor_is_refused(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    char *memory = touched(PAGE);
    int fd = oriel_file_identity()->memory_fd;
    int saved = dup(fd);
    FILE *other = tmpfile();
    assert_non_null(other);
    assert_int_equal(dup2(fileno(other), fd), fd);
    assert_refused(memory, PAGE, how, "closed the memory file's descriptor");
    assert_int_equal(dup2(saved, fd), fd);
    close(saved);
    fclose(other);
    munmap(memory, PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BY_BOTH(advised_and_locked_memory_is_refused),
        BY_BOTH(other_kinds_of_mappings_are_refused),
        cmocka_unit_test(file_pages_are_refused_where_writes_are_to_be_caught),
        BY_BOTH(own_stack_is_refused),
        BY_BOTH(variables_of_oriel_are_refused),
        BY_BOTH(memory_of_ucx_is_refused_as_long_as_it_is_that),
        BY_BOTH(stacks_of_threads_are_refused),
        BY_BOTH(stacks_set_by_the_program_are_refused_but_not_the_memory_above),
        BY_BOTH(page_where_a_threads_arena_begins_is_refused),
        BY_BOTH(other_memory_at_such_a_place_is_promoted),
        BY_BOTH(page_with_the_lock_of_an_open_stream_is_refused),
        BY_BOTH(control_block_of_the_initial_thread_is_refused),
        BY_BOTH(memory_above_the_callers_stack_is_promoted),
        {"thread_that_blocks_all_signals_is_named", thread_that_blocks_all_signals_is_named, NULL,
         NULL, &quiesce},
        {"program_with_all_real_time_signals_in_use_is_refused",
         program_with_all_real_time_signals_in_use_is_refused, NULL, NULL, &quiesce},
        {"memory_that_cannot_be_released_stays_shared", memory_that_cannot_be_released_stays_shared,
         NULL, NULL, &quiesce},
        BY_BOTH(failure_half_way_leaves_all_private),
        BY_BOTH(huge_pages_are_refused_unless_they_may_be_split),
        BY_BOTH(lost_descriptor_is_refused),
    };
    return cmocka_run_group_tests(tests, promote_setup, NULL);
}
