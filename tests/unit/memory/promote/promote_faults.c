/* Any system call of a promotion or demotion fails, alone or with the next ones: the program's
 * memory keeps its contents and is writable, the reported state matches the real one, and the next
 * promotion succeeds. */
#include "promote_common.h"

#include <errno.h>
#include <linux/userfaultfd.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

enum { LEN_BYTES = 5 << 20 }; /* two chunks */

static struct {
    bool counts;
    int calls;
    int first; /* the number of the first that fails */
    int most;  /* the number of failures */
} refusing;

long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
int __real_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);

static bool is_refused(void)
{
    refusing.calls += refusing.counts;
    return refusing.counts && refusing.calls >= refusing.first &&
           refusing.calls < refusing.first + refusing.most;
}

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    bool counts = number == SYS_mmap || number == SYS_mremap || number == SYS_mprotect ||
                  number == SYS_pread64 || number == SYS_pwrite64;
    if (counts && is_refused()) {
        errno = ENOMEM;
        return -1;
    }
    return __real_syscall(number, a, b, c, d, e, f);
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if ((request == UFFDIO_REGISTER || request == UFFDIO_WRITEPROTECT) && is_refused()) {
        errno = ENOMEM;
        return -1;
    }
    return __real_ioctl(fd, request, argument);
}

/* The calls from this number on fail; a later query returns whether there were that many. */
static void refuse(int first, int most)
{
    refusing.first = first;
    refusing.most = most;
    refusing.calls = 0;
    refusing.counts = true;
}

static bool refused_any(void)
{
    refusing.counts = false;
    return refusing.calls >= refusing.first;
}

static void expect_complete(char *memory, int *salt)
{
    expect_data(memory, LEN_BYTES, *salt);
    fill(memory, LEN_BYTES, ++*salt);
    expect_data(memory, LEN_BYTES, *salt);
}

static void expect_ordinary(const struct oriel_promote_options *how)
{
    struct oriel_promoted promoted;
    char *memory = map_private(LEN_BYTES);
    fill(memory, LEN_BYTES, 5);
    promote(memory, LEN_BYTES, how, &promoted);
    char *view = peer_view(memory, LEN_BYTES);
    expect_data(view, LEN_BYTES, 5);
    munmap(view, LEN_BYTES);
    oriel_promote_release(&promoted);
    assert_false(is_promoted(memory));
    expect_data(memory, LEN_BYTES, 5);
    munmap(memory, LEN_BYTES);
}

/* False if there were fewer calls. */
typedef bool attempt(char *memory, const struct oriel_promote_options *how, int first, int most,
                     int *salt);

static bool promote_and_end(char *memory, const struct oriel_promote_options *how, int first,
                            int most, int *salt)
{
    struct oriel_promoted promoted;
    refuse(first, most);
    enum oriel_status status = oriel_promote((uintptr_t)memory, LEN_BYTES, how, &promoted);
    bool any = refused_any();
    expect_complete(memory, salt);
    if (status != ORIEL_OK)
        assert_true(promoted.start == promoted.end && oriel_fail_message()[0] != '\0');
    else
        expect_data(peer_view(memory, LEN_BYTES), LEN_BYTES, *salt);
    oriel_promote_release(&promoted);
    return any;
}

static bool end_promoted(char *memory, const struct oriel_promote_options *how, int first, int most,
                         int *salt)
{
    struct oriel_promoted promoted;
    (void)salt;
    promote(memory, LEN_BYTES, how, &promoted);
    refuse(first, most);
    oriel_promote_release(&promoted);
    return refused_any();
}

static void try_each(void **state, attempt *try_one)
{
    const struct oriel_promote_options *how = means_of(state);
    for (int most = 1; most <= 3; most++) {
        bool any = true;
        for (int first = 1; any; first++) {
            int salt = first;
            char *memory = map_private(LEN_BYTES);
            fill(memory, LEN_BYTES, salt);
            any = try_one(memory, how, first, most, &salt);
            expect_complete(memory, &salt);
            munmap(memory, LEN_BYTES);
        }
    }
    expect_ordinary(how);
}

static void refused_calls_leave_memory_private(void **state)
{
    try_each(state, promote_and_end);
}

static void refused_calls_leave_memory_promoted(void **state)
{
    try_each(state, end_promoted);
}

/* Pages that are meanwhile read-only get their protection back. */
static void refused_calls_leave_protections(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    bool any = true;
    for (int first = 1; any; first++) {
        struct oriel_promoted promoted;
        char *memory = map_private(LEN_BYTES);
        fill(memory, LEN_BYTES, first);
        promote(memory, LEN_BYTES, how, &promoted);
        assert_int_equal(mprotect(memory, LEN_BYTES, PROT_READ), 0);
        refuse(first, 1);
        oriel_promote_release(&promoted);
        any = refused_any();
        expect_data(memory, LEN_BYTES, first);
        assert_int_equal(mprotect(memory, LEN_BYTES, PROT_READ | PROT_WRITE), 0);
        fill(memory, LEN_BYTES, first + 1);
        expect_data(memory, LEN_BYTES, first + 1);
        munmap(memory, LEN_BYTES);
    }
    expect_ordinary(how);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BY_BOTH(refused_calls_leave_memory_private),
        BY_BOTH(refused_calls_leave_memory_promoted),
        BY_BOTH(refused_calls_leave_protections),
    };
    return cmocka_run_group_tests(tests, promote_setup, NULL);
}
