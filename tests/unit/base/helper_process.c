/* The cached helper process: a process of another user that has taken the name of an ended helper
 * gets no data. There is no `oriel` command next to this program, so no helper replaces it. Run by
 * CTest. */
#include "base/helper_process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { NOBODY = 65534, WITH_RECEIVE = 3, CANNOT = 4 };

/* Returns whether a client sends anything. */
static int listen_as(uid_t user, uint64_t name, int ready)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int len = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "oriel-helper-%016llx",
                       (unsigned long long)name);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    char byte = 0;
    if (setresuid(user, user, user) != 0 ||
        bind(fd, (struct sockaddr *)&address,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) != 0 ||
        listen(fd, 8) != 0 || write(ready, &byte, 1) != 1)
        return CANNOT;
    int asker = accept(fd, NULL, NULL);
    return asker >= 0 && read(asker, &byte, 1) == 1 ? WITH_RECEIVE : 0;
}

/* Returns the listener's status; sends a request to the process with that name. */
static int ask(uid_t user, _Atomic uint64_t *cached)
{
    int ready[2], status;
    char byte;
    void *answer;
    size_t answer_bytes;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(listen_as(user, *cached, ready[1]));
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_false(oriel_helper_request_persistent(cached, ORIEL_HELPER_PLACES, "secret", 6, &answer,
                                                 &answer_bytes));
    assert_null(answer);
    close(ready[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_process_of_another_user_with_the_name_gets_nothing(void **state)
{
    _Atomic uint64_t cached = 0x1000000000000000u + (uint64_t)getpid();
    uint64_t before = cached;
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: only root can become another user\n");
        skip();
    }
    assert_int_equal(ask(NOBODY, &cached), 0);
    assert_true(cached != before); /* no client asks that process again */
}

static void a_process_of_the_same_user_with_the_name_is_asked(void **state)
{
    _Atomic uint64_t cached = 0x2000000000000000u + (uint64_t)getpid();
    (void)state;
    assert_int_equal(ask(geteuid(), &cached), WITH_RECEIVE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_of_another_user_with_the_name_gets_nothing),
        cmocka_unit_test(a_process_of_the_same_user_with_the_name_is_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
