/* Executes a program with Oriel's libraries preloaded. The process replaces itself by the program,
 * so the launcher sees the process that it started. */
#include "cli/run/exec_program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "cli/cli.h"
#include "cli/hosts.h"
#include "cli/program_host.h"
#include "cli/run/launcher.h"
#include "cli/run/preload.h"
#include "cli/run/program.h"

static _Noreturn void program_exec(const struct oriel_program *program, char **argv)
{
    execvp(program->path, argv); /* execvp also runs scripts without an interpreter line. */
    oriel_die("%s: %s", program->path, strerror(errno));
}

static const struct oriel_host *host_choose(const char *wanted, const struct oriel_program *program)
{
    const struct oriel_host *chosen = wanted == NULL ? NULL : oriel_host_named(wanted);
    if (wanted != NULL && chosen == NULL)
        oriel_die("unknown host MPI \"%s\"; Oriel supports mpich, openmpi and abi", wanted);

    const struct oriel_host *linked = oriel_host_of_program(program);
    if (chosen != NULL && linked != NULL && chosen != linked)
        oriel_die("--host %s contradicts %s, which uses %s [O7]", chosen->name, program->path,
                  linked->title);
    if (chosen == NULL)
        chosen = linked;
    if (chosen == NULL)
        chosen = oriel_host_of_launcher();
    if (chosen == NULL)
        chosen = oriel_host_only_built();
    if (chosen == NULL)
        oriel_die("cannot determine which MPI %s uses: %s; choose with --host mpich, openmpi "
                  "or abi [O3]",
                  program->path,
                  access(program->path, R_OK) == 0
                      ? "neither its libraries nor a launcher's variables identify it"
                      : "the file cannot be read, and no launcher's variables identify it");
    return chosen;
}

/* Each process would be a separate job, in which the checker could find nothing. `oriel run` is
 * allowed to continue, because such jobs may be intended; the first process prints a warning. */
static void launcher_check(const struct oriel_exec_plan *plan, const struct oriel_host *host,
                           const struct oriel_program *program)
{
    struct oriel_launcher launcher;
    if (!oriel_launcher_is_foreign(host, program, &launcher))
        return;
    char *title = host == launcher.needed
                      ? oriel_format("%s", host->title)
                      : oriel_format("%s, here of %s", host->title, launcher.needed->title);
    static const char line[] = "%s uses %s, but %s's launcher started it: each process %s a "
                               "separate job; use %s's mpiexec (on Debian mpiexec.%s) [O5]";
    if (plan->checked)
        oriel_die(line, program->path, title, launcher.host->title, "would be",
                  launcher.needed->title, launcher.needed->name);
    if (launcher.rank == 0)
        oriel_warning_print(line, program->path, title, launcher.host->title, "is",
                            launcher.needed->title, launcher.needed->name);
    free(title);
}

/* True when the program is this command, as in `oriel run oriel run app`: the inner one then does
 * the work. */
static bool is_oriel(const struct oriel_program *program)
{
    struct stat theirs;
    struct stat ours;
    return stat(program->path, &theirs) == 0 && stat(oriel_executable_path(), &ours) == 0 &&
           theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

/* The inner command decides what is preloaded. One that does not check would undo the outer `oriel
 * check`. */
static void inner_command_check(const struct oriel_exec_plan *plan, char *const *command)
{
    if (plan->checked && (command[1] == NULL || strcmp(command[1], "check") != 0))
        oriel_die("oriel check expects the program itself: remove the inner oriel%s%s",
                  command[1] == NULL ? "" : " ", command[1] == NULL ? "" : command[1]);
}

static void host_library_require(const struct oriel_host *host, const char *name,
                                 char out[PATH_MAX])
{
    if (!oriel_host_library(host, name, out))
        oriel_die("Oriel is not built for %s: %s is missing or not readable [O4]", host->title,
                  out);
}

/* The first of the program's libraries whose name begins with one of the prefixes, or NULL. */
static const struct oriel_library *library_find(const struct oriel_program *program,
                                                const char *const *beginnings)
{
    for (size_t i = 0; i < program->libraries_count; i++)
        for (const char *const *beginning = beginnings; *beginning != NULL; beginning++)
            if (strncmp(program->libraries[i].soname, *beginning, strlen(*beginning)) == 0)
                return &program->libraries[i];
    return NULL;
}

/* Finds the replacement for the -fsanitize=thread runtime, for a program that loads one: gcc's, or
 * clang's shared one (-shared-libsan). The replacement's file has the name of the original. */
static bool tsan_replacement_find(const struct oriel_program *program,
                                  const struct oriel_host *host, char out[PATH_MAX])
{
    static const char *const beginnings[] = {"libtsan.so.2", "libclang_rt.tsan-", NULL};
    const struct oriel_library *library = library_find(program, beginnings);
    return library != NULL && oriel_host_library(host, library->soname, out);
}

/* The -fsanitize=address runtime that the program loads. It ends the program when another library
 * is loaded before it. A statically linked runtime is part of the program, and therefore first. */
static const char *asan_runtime_find(const struct oriel_program *program)
{
    static const char *const beginnings[] = {"libasan.so", "libclang_rt.asan", NULL};
    const struct oriel_library *library = library_find(program, beginnings);
    return library == NULL ? NULL : library->path;
}

/* Empties a file of findings, so that findings of an earlier job are not mistaken for this job's if
 * it dies. Every rank does this, and none writes before all have reached MPI_Init. Devices and
 * pipes hold nothing from earlier. */
static void findings_file_truncate(const char *path)
{
    struct stat status;
    if (path == NULL || path[0] != '/' || stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return;
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && ftruncate(fd, 0) != 0)
        oriel_die("%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
}

/* `oriel check` does not support ORIEL_BYPASS; a program that cannot be checked must be started
 * without it. */
static const char *bypass_advice(const struct oriel_exec_plan *plan)
{
    return plan->checked ? "start the program without oriel"
                         : "ORIEL_BYPASS=1 runs the program without Oriel";
}

static _Noreturn void bypass_refuse(const struct oriel_option_origin *origin)
{
    if (origin->file == NULL)
        oriel_die("ORIEL_BYPASS=1 disables the checker; unset it to use oriel check");
    oriel_die("ORIEL_BYPASS=1 (%s:%u) disables the checker; set ORIEL_BYPASS=0 to use oriel check",
              origin->file, origin->line);
}

_Noreturn void oriel_exec_program(const struct oriel_exec_plan *plan, char **command)
{
    struct oriel_settings settings;
    struct oriel_options options;
    oriel_settings_open(&settings);
    /* quiet: the library reports errors in the program itself */
    oriel_options_read(NULL, &settings, &options);
    struct oriel_program program;
    oriel_program_find(command[0], bypass_advice(plan), &program);
    if (options.bypass && plan->checked)
        bypass_refuse(&options.origins[ORIEL_OPTION_bypass]);
    if (is_oriel(&program)) {
        inner_command_check(plan, command);
        program_exec(&program, command);
    }
    /* windows of the host can be observed too */
    bool is_observed = options.stats != NULL || options.trace != NULL || options.watch;
    if (options.bypass && !is_observed)
        program_exec(&program, command);

    oriel_program_inspect(&program);
    const struct oriel_host *host = host_choose(plan->host, &program);
    launcher_check(plan, host, &program);
    char sanitizer[PATH_MAX];
    char checker[PATH_MAX];
    char liboriel[PATH_MAX];
    struct oriel_preload preload = {.asan_runtime = asan_runtime_find(&program),
                                    .liboriel = liboriel};
    host_library_require(host, "liboriel.so", liboriel);
    if (plan->checked) {
        host_library_require(host, "liboriel_check.so", checker);
        preload.checker = checker;
        preload.tsan_runtime = tsan_replacement_find(&program, host, sanitizer) ? sanitizer : NULL;
    }
    oriel_preload_set(&program, &preload);
    if (plan->checked) {
        findings_file_truncate(options.check_json);
        findings_file_truncate(options.check_sarif);
        findings_file_truncate(options.check_junit);
    }
    program_exec(&program, command);
}
