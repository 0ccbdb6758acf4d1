/* Starts the `oriel` command as a helper process and exchanges requests and answers with it.
 *
 * The program must not notice the helper. A direct child would end the program's wait(), and its
 * exit would raise SIGCHLD. So the helper is the child of an intermediate child that exits at once
 * and becomes a child of init. The intermediate child has no exit signal, so it causes no SIGCHLD,
 * and only wait() with __WCLONE finds it. The helper inherits none of the program's descriptors,
 * signal settings or preloaded libraries. The connection is a socket because a pipe without a
 * reader would raise SIGPIPE. Any thread may send a request, and so may a forked child of the
 * program.
 *
 * A persistent helper is found by a name, and each request uses a connection of its own. The
 * program could count, close or reuse a descriptor that stayed open, and its forked children would
 * inherit it. The process that starts a helper listens on its socket before it publishes the name.
 * Other processes then queue there at once and start no helper of their own. The helper exits with
 * the process that started it, or when it has received no request for a while. A process that finds
 * no helper under the name starts another. */
#include "base/helper_process.h"

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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    STACK_BYTES = 1 << 18,
    TIMEOUT_S = 20,
    ENVIRONMENT_MAX = 4096,
    BACKLOG = 1024,
    ATTEMPTS = 3
};

/* <prefix>/lib/oriel/<host>/liboriel_check.so and <prefix>/bin/oriel are installed together. */
static bool command_find(char out[PATH_MAX])
{
    static const char command[] = "/bin/oriel";
    Dl_info library;
    if (dladdr((void *)(uintptr_t)command_find, &library) == 0 ||
        realpath(library.dli_fname, out) == NULL)
        return false;
    for (int level = 0; level < 4; level++) { /* removes: file, host, oriel, lib */
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

/* Variables that would change the helper, or make it search the network for debug information. */
static bool is_withheld_variable(const char *entry)
{
    static const char *const names[] = {"LD_", "ORIEL_", "DEBUGINFOD_", "ASAN_", "TSAN_", "UBSAN_"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(entry, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

struct helper_start_args {
    const char *command;
    char *const *argv;
    char **environment;
    int socket;
    int listener; /* -1 for a helper that answers one request */
    int error;
};

/* Runs in the intermediate child. It shares the memory of the process, whose calling thread is
 * suspended meanwhile. */
static int helper_spawn(void *context)
{
    struct helper_start_args *start = context;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t signals;
    pid_t pid;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, start->socket, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, start->socket, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (start->listener >= 0)
        posix_spawn_file_actions_adddup2(&actions, start->listener, ORIEL_HELPER_LISTENS);
    posix_spawn_file_actions_addclosefrom_np(
        &actions, start->listener >= 0 ? ORIEL_HELPER_LISTENS + 1 : ORIEL_HELPER_LISTENS);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    start->error =
        posix_spawn(&pid, start->command, &actions, &attributes, start->argv, start->environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return 0; /* the child exits here, without exit handlers */
}

typedef int child_fn(void *context);

/* The C library's other name of clone. Thread sanitisers replace clone, and count the child as one
 * that has memory of its own. */
int __clone(child_fn *child, void *stack, int flags, void *context, ...); /* NOLINT(*reserved*) */

static bool helper_start(struct helper_start_args *start)
{
    void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return false;
    /* No signal handler of the program may run in the child, because the child shares the program's
     * memory. */
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    start->error = EAGAIN;
    pid_t child = __clone(helper_spawn, (char *)stack + STACK_BYTES, CLONE_VM | CLONE_VFORK, start);
    while (child > 0 && waitpid(child, NULL, __WCLONE) < 0 && errno == EINTR)
        ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    munmap(stack, STACK_BYTES);
    return child > 0 && start->error == 0;
}

/* Moves fd above the helper's own descriptors. The program may have closed some of those; on an
 * equal number dup2 would not clear CLOEXEC. */
static int fd_move_high(int fd)
{
    int other = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, ORIEL_HELPER_LISTENS + 1);
    if (fd >= 0)
        close(fd);
    return other;
}

/* Starts a helper. Returns this process's end of the connection, or -1 if there is no helper. */
static int helper_connect(const char *service, int listener)
{
    char command[PATH_MAX];
    char *environment[ENVIRONMENT_MAX];
    size_t variables = 0;
    int ends[2];
    if (!command_find(command) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return -1;
    for (char **entry = environ; entry != NULL && *entry != NULL && variables + 1 < ENVIRONMENT_MAX;
         entry++)
        if (!is_withheld_variable(*entry))
            environment[variables++] = *entry;
    environment[variables] = NULL;
    char name[] = "oriel";
    char check[] = "check";
    char option[] = ORIEL_HELPER_OPTION;
    char *argv[] = {name, check, option, (char *)(uintptr_t)service, NULL};
    int helper_end = fd_move_high(ends[1]);
    struct helper_start_args start = {.command = command,
                                      .argv = argv,
                                      .environment = environment,
                                      .socket = helper_end,
                                      .listener = listener};
    bool started = helper_end >= 0 && helper_start(&start);
    if (helper_end >= 0)
        close(helper_end);
    if (started)
        return ends[0];
    close(ends[0]);
    return -1;
}

/* Sends or receives all bytes. Returns false if the peer has closed the connection or the deadline
 * has passed. */
static bool socket_transfer(int fd, void *bytes, size_t len_bytes, bool out, uint64_t until_ns)
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

/* Sends one request and receives the answer; *answer is from malloc, or NULL. Closes fd. */
static bool helper_exchange(int fd, const void *request, size_t len_bytes, uint64_t until_ns,
                            void **answer, size_t *answer_bytes)
{
    struct oriel_helper_head head = {.magic = ORIEL_HELPER_MAGIC, .len_bytes = (uint32_t)len_bytes};
    bool done = fd >= 0 && socket_transfer(fd, &head, sizeof head, true, until_ns) &&
                socket_transfer(fd, (void *)(uintptr_t)request, len_bytes, true, until_ns) &&
                socket_transfer(fd, &head, sizeof head, false, until_ns) &&
                head.magic == ORIEL_HELPER_MAGIC && head.len_bytes <= ORIEL_HELPER_LEN_MAX &&
                (*answer = malloc(head.len_bytes + 1)) != NULL &&
                socket_transfer(fd, *answer, head.len_bytes, false, until_ns);
    if (fd >= 0)
        close(fd);
    *answer_bytes = head.len_bytes;
    if (!done) {
        free(*answer);
        *answer = NULL;
    }
    return done;
}

static uint64_t deadline_ns(void)
{
    return oriel_now_ns() + TIMEOUT_S * UINT64_C(1000000000);
}

bool oriel_helper_request(const char *service, const void *request, size_t len_bytes, void **answer,
                          size_t *answer_bytes)
{
    int error = errno;
    int fd = len_bytes > ORIEL_HELPER_LEN_MAX ? -1 : helper_connect(service, -1);
    *answer = NULL;
    bool done = helper_exchange(fd, request, len_bytes, deadline_ns(), answer, answer_bytes);
    errno = error;
    return done;
}

/* --- persistent helper --- */

/* Returns a socket of that name, listening or connected, or -1. */
static int helper_socket_open(uint64_t name, bool listens)
{
    /* A name that begins with a zero byte is in no folder and disappears with its socket. */
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int len = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "oriel-helper-%016llx",
                       (unsigned long long)name);
    socklen_t len_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
    struct timeval patience = {.tv_sec = TIMEOUT_S};
    struct ucred peer_credentials;
    socklen_t credentials_bytes = sizeof peer_credentials;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (listens ? bind(fd, (struct sockaddr *)&address, len_bytes) == 0 && listen(fd, BACKLOG) == 0
                : setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0 &&
                      connect(fd, (struct sockaddr *)&address, len_bytes) == 0 &&
                      getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer_credentials,
                                 &credentials_bytes) == 0 &&
                      peer_credentials.uid == geteuid())
        return fd;
    close(fd);
    return -1;
}

/* Replaces the name of a helper that has exited by the name of a new helper. If another process was
 * faster, connects to that helper. If no socket can be created, starts a helper for this request
 * only. */
static int persistent_helper_start(_Atomic uint64_t *shared_name, uint64_t old_name,
                                   const char *service, bool *is_owner)
{
    uint64_t name;
    int listener = -1;
    if (getrandom(&name, sizeof name, 0) == (ssize_t)sizeof name && name != 0)
        listener = fd_move_high(helper_socket_open(name, true));
    *is_owner = listener < 0 || atomic_compare_exchange_strong(shared_name, &old_name, name);
    int fd = *is_owner ? helper_connect(service, listener) : helper_socket_open(old_name, false);
    if (listener >= 0)
        close(listener);
    return fd;
}

bool oriel_helper_request_persistent(_Atomic uint64_t *shared_name, const char *service,
                                     const void *request, size_t len_bytes, void **answer,
                                     size_t *answer_bytes)
{
    int error = errno;
    uint64_t until_ns = deadline_ns();
    bool started = len_bytes > ORIEL_HELPER_LEN_MAX;
    bool done = false;
    *answer = NULL;
    for (int tries = 0; !done && !started && tries < ATTEMPTS && oriel_now_ns() < until_ns;
         tries++) {
        uint64_t name = atomic_load(shared_name);
        int fd = name == 0 ? -1 : helper_socket_open(name, false);
        if (fd < 0)
            fd = persistent_helper_start(shared_name, name, service, &started);
        done = helper_exchange(fd, request, len_bytes, until_ns, answer, answer_bytes);
        /* the helper has exited or hangs; clear its name so no process uses it again */
        if (!done && !started)
            atomic_compare_exchange_strong(shared_name, &name, 0);
    }
    errno = error;
    return done;
}
