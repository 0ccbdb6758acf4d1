/* Starts the `oriel` command as a helper and talks to it.
 *
 * The program must not notice.  A child of its own would end its wait(), and its end would raise SIGCHLD; so the helper is the
 * child of a child that ends at once and tells nobody (no exit signal: neither SIGCHLD nor wait() without __WCLONE know of
 * it), and belongs to init from then on.  It holds none of the program's descriptors, none of its signals' settings, and no
 * preload.  A socket, since a pipe without a reader would raise SIGPIPE.  Any thread; a forked child of the program may ask
 * too. */
#include "base/helper.h"

#include "base/wait.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK_BYTES = 1 << 18, PATIENCE_S = 20, ENVIRONMENT_MAX = 4096 };

/* <prefix>/lib/oriel/<host>/liboriel_check.so and <prefix>/bin/oriel are installed together. */
static bool command_find(char out[PATH_MAX])
{
    static const char command[] = "/bin/oriel";
    Dl_info library;
    if (dladdr((void *)(uintptr_t)command_find, &library) == 0 || realpath(library.dli_fname, out) == NULL)
        return false;
    for (int level = 0; level < 4; level++) { /* file, host, oriel, lib */
        char *slash = strrchr(out, '/');
        if (slash == NULL)
            return false;
        *slash = '\0';
    }
    if (strlen(out) + sizeof command > PATH_MAX)
        return false;
    strcat(out, command);
    return access(out, X_OK) == 0;
}

/* What would change the helper, or have it ask the network for debug information. */
static bool is_kept_back(const char *entry)
{
    static const char *const names[] = {"LD_", "ORIEL_", "DEBUGINFOD_", "ASAN_", "TSAN_", "UBSAN_"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(entry, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

struct start {
    const char *command;
    char *const *argv;
    char **environment;
    int socket;
    int error;
};

/* In the child that ends at once; it shares the memory of the process, whose thread stands still meanwhile. */
static int spawn_and_end(void *context)
{
    struct start *start = context;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t signals;
    pid_t pid;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, start->socket, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, start->socket, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    start->error = posix_spawn(&pid, start->command, &actions, &attributes, start->argv, start->environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    _exit(0);
}

static bool helper_start(struct start *start)
{
    void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return false;
    /* No handler of the program may run in the child, on the program's memory. */
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    start->error = EAGAIN;
    pid_t child = clone(spawn_and_end, (char *)stack + STACK_BYTES, CLONE_VM | CLONE_VFORK, start);
    while (child > 0 && waitpid(child, NULL, __WCLONE) < 0 && errno == EINTR)
        ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    munmap(stack, STACK_BYTES);
    return child > 0 && start->error == 0;
}

/* The other end: -1 when there is no helper. */
static int helper_open(const char *what)
{
    char command[PATH_MAX];
    char *environment[ENVIRONMENT_MAX];
    size_t kept = 0;
    int ends[2];
    if (!command_find(command) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return -1;
    for (char **entry = environ; entry != NULL && *entry != NULL && kept + 1 < ENVIRONMENT_MAX; entry++)
        if (!is_kept_back(*entry))
            environment[kept++] = *entry;
    environment[kept] = NULL;
    char name[] = "oriel";
    char check[] = "check";
    char option[] = ORIEL_HELPER_OPTION;
    char *argv[] = {name, check, option, (char *)(uintptr_t)what, NULL};
    /* Above the standard descriptors, of which the program may have closed some: there dup2 would do nothing about CLOEXEC. */
    int theirs = fcntl(ends[1], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    struct start start = {.command = command, .argv = argv, .environment = environment, .socket = theirs};
    bool started = theirs >= 0 && helper_start(&start);
    close(ends[1]);
    if (theirs >= 0)
        close(theirs);
    if (started)
        return ends[0];
    close(ends[0]);
    return -1;
}

/* Moves all of it one way; false when the other side has gone or is too late. */
static bool transfer(int fd, void *bytes, size_t len_bytes, bool out, uint64_t until_ns)
{
    for (size_t done = 0; done < len_bytes;) {
        uint64_t now_ns = oriel_now_ns();
        struct pollfd ready = {.fd = fd, .events = out ? POLLOUT : POLLIN};
        if (now_ns >= until_ns)
            return false;
        int count = poll(&ready, 1, (int)((until_ns - now_ns) / 1000000) + 1);
        if (count < 0 && errno != EINTR)
            return false;
        if (count <= 0)
            continue;
        char *at = (char *)bytes + done;
        ssize_t moved = out ? send(fd, at, len_bytes - done, MSG_NOSIGNAL | MSG_DONTWAIT)
                            : recv(fd, at, len_bytes - done, MSG_DONTWAIT);
        if (moved == 0 || (moved < 0 && errno != EINTR && errno != EAGAIN))
            return false;
        done += moved > 0 ? (size_t)moved : 0;
    }
    return true;
}

bool oriel_helper_ask(const char *what, const void *request, size_t len_bytes, void **answer, size_t *answer_bytes)
{
    int error = errno;
    int fd = len_bytes > ORIEL_HELPER_LEN_MAX ? -1 : helper_open(what);
    bool done = false;
    *answer = NULL;
    if (fd >= 0) {
        uint64_t until_ns = oriel_now_ns() + PATIENCE_S * UINT64_C(1000000000);
        struct oriel_helper_head head = {.magic = ORIEL_HELPER_MAGIC, .len_bytes = (uint32_t)len_bytes};
        done = transfer(fd, &head, sizeof head, true, until_ns) &&
               transfer(fd, (void *)(uintptr_t)request, len_bytes, true, until_ns) &&
               transfer(fd, &head, sizeof head, false, until_ns) && head.magic == ORIEL_HELPER_MAGIC &&
               head.len_bytes <= ORIEL_HELPER_LEN_MAX && (*answer = malloc(head.len_bytes + 1)) != NULL &&
               transfer(fd, *answer, head.len_bytes, false, until_ns);
        *answer_bytes = head.len_bytes;
        close(fd);
    }
    if (!done) {
        free(*answer);
        *answer = NULL;
    }
    errno = error;
    return done;
}
