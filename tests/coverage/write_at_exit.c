/* Programs write their coverage counts at exit. This file writes them also at _exit, at a signal
 * that the program raises, and at exec. It is linked into each program and library of the build for
 * make coverage, each with its own counts. Each one's function writes its counts and calls the next
 * one's; the last is the C library's. */
#include <dlfcn.h>
#include <gcov.h>
#include <signal.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* Counting restarts: the ending process may share its memory with its parent, a signal may be
 * handled, and exec may fail. */
static void write_counts(void)
{
    __gcov_dump();
    __gcov_reset();
}

EXPORT void _exit(int status)
{
    void (*next)(int) = (void (*)(int))dlsym(RTLD_NEXT, "_exit");
    write_counts();
    next(status);
    __builtin_unreachable();
}

EXPORT int raise(int signal)
{
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "raise");
    write_counts();
    return next(signal);
}

static int execute(const char *function, const char *path, char *const argv[])
{
    int (*next)(const char *, char *const[]) =
        (int (*)(const char *, char *const[]))dlsym(RTLD_NEXT, function);
    write_counts();
    return next(path, argv);
}

EXPORT int execv(const char *path, char *const argv[])
{
    return execute("execv", path, argv);
}

EXPORT int execvp(const char *path, char *const argv[])
{
    return execute("execvp", path, argv);
}
