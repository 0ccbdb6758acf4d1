/* Counts are written when a program ends; this writes them when it ends by _exit or by a signal that it raises, or becomes
 * another program, too.
 * It is linked into each program and library of the build for make coverage, each of which has counts of its own: each one's
 * function writes these and goes on to the next one's, the last of which is the C library's. */
#include <dlfcn.h>
#include <gcov.h>
#include <signal.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* Counting begins anew: what ends may share its memory with the process that made it, a signal may be handled, and another
 * program may not be there. */
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
