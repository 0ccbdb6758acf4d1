/* Inspects a program before it is started. The program's own loader lists the libraries, because it
 * knows every path and rule. */
#include "cli/run/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/elf_file.h"

/* Returns 0, or the errno of executing path. */
static int executable_check(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return errno;
    if (!S_ISREG(status.st_mode))
        return S_ISDIR(status.st_mode) ? EISDIR : EACCES;
    return access(path, X_OK) == 0 ? 0 : errno;
}

/* Returns 0 and the path, or the errno. */
static int program_search(const char *name, char out[PATH_MAX])
{
    const char *search = strchr(name, '/') != NULL ? "" : getenv("PATH");
    if (search == NULL)
        search = "/bin:/usr/bin";
    int reason = ENOENT;
    for (const char *folder = search;; folder++) {
        size_t len = strcspn(folder, ":");
        const char *slash = len == 0 ? "" : "/"; /* an empty entry means the current folder */
        int used = snprintf(out, PATH_MAX, "%.*s%s%s", (int)len, folder, slash, name);
        int refusal = used < PATH_MAX ? executable_check(out) : ENAMETOOLONG;
        if (refusal == 0)
            return 0;
        bool is_passed_over =
            refusal == ENOENT || refusal == ENOTDIR || (refusal == EISDIR && search[0] != '\0');
        if (!is_passed_over)
            reason = refusal;
        folder += len;
        if (*folder == '\0')
            return reason;
    }
}

bool oriel_program_exists(const char *name)
{
    char path[PATH_MAX];
    return name[0] != '\0' && program_search(name, path) == 0;
}

bool oriel_file_is_program(const char *path)
{
    return executable_check(path) == 0;
}

enum { SCRIPTS_MAX = 4 }; /* the kernel's limit */

/* The interpreter in the first line of a script, as the kernel reads it; false for a file that is
 * not a script. */
static bool script_interpreter(const char *path, char out[PATH_MAX])
{
    char line[PATH_MAX] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t len = read(fd, line, sizeof line - 1);
    close(fd);
    if (len < 2 || line[0] != '#' || line[1] != '!')
        return false;
    const char *start = line + 2 + strspn(line + 2, " \t");
    snprintf(out, PATH_MAX, "%.*s", (int)strcspn(start, " \t\n"), start);
    return out[0] != '\0';
}

/* The kernel's error for a missing interpreter would name the script. */
static void interpreters_check(const char *path)
{
    char script[PATH_MAX];
    char next[PATH_MAX];
    snprintf(script, sizeof script, "%s", path);
    for (int i = 0; i < SCRIPTS_MAX && script_interpreter(script, next); i++) {
        int refusal = executable_check(next);
        if (refusal != 0 && strchr(next, '\r') != NULL)
            oriel_die("%s: the first line ends in a carriage return, which becomes part of the "
                      "interpreter's name; remove it: sed -i 's/\\r$//' %s",
                      script, script);
        if (refusal != 0)
            oriel_die("%s: the interpreter in its first line, %s, %s", script, next,
                      refusal == ENOENT ? "does not exist" : strerror(refusal));
        memcpy(script, next, sizeof script);
    }
}

void oriel_program_find(const char *name, const char *advice, struct oriel_program *out)
{
    memset(out, 0, sizeof *out);
    out->advice = advice;
    if (name[0] == '\0')
        oriel_die("the program's name is empty");
    int refusal = program_search(name, out->path);
    if (refusal != 0)
        oriel_die("%s: %s", name, refusal == ENOENT ? "program not found" : strerror(refusal));
    interpreters_check(out->path);
}

/* The problem of a program with privileges of its own, or NULL. */
static char *privileges_problem(const char *path, const char *advice)
{
    struct stat status;
    if (stat(path, &status) == 0 && (status.st_mode & (S_ISUID | S_ISGID)) != 0)
        return oriel_format("%s is a %s program: the loader ignores LD_PRELOAD for it; %s [O9]",
                            path, (status.st_mode & S_ISUID) != 0 ? "setuid" : "setgid", advice);
    if (getxattr(path, "security.capability", NULL, 0) > 0)
        return oriel_format("%s has file capabilities: the loader ignores LD_PRELOAD for it; %s "
                            "[O9]",
                            path, advice);
    return NULL;
}

/* The problem of a program without a loader (NULL), or with one that is not glibc's. */
static char *loader_problem(const char *path, const char *loader, const char *advice)
{
    if (loader == NULL)
        return oriel_format("%s is a static program and loads no libraries; %s [O8]", path, advice);
    const bool exists = access(loader, F_OK) == 0;
    if (exists && strstr(loader, "/ld-musl") == NULL)
        return NULL;
    return oriel_format("%s: its loader %s %s: the program is for another C library, and Oriel is "
                        "for glibc; %s [O8]",
                        path, loader, exists ? "is musl's" : "does not exist here", advice);
}

static bool is_this_architecture(const struct oriel_elf_file *file)
{
    struct oriel_elf_file self;
    if (!oriel_elf_open(oriel_executable_path(), &self))
        oriel_die("%s cannot be read: %s", oriel_executable_path(), strerror(errno));
    bool same = oriel_elf_same_machine(file, &self);
    oriel_elf_close(&self);
    return same;
}

/* Adds the library of one line of the loader's list, "soname => path (address)" or "path
 * (address)". */
static void library_add(struct oriel_program *program, char *line)
{
    line += strspn(line, " \t");
    char *arrow = strstr(line, " => ");
    char *path = arrow == NULL ? line : arrow + strlen(" => ");
    path[strcspn(path, "(")] = '\0';
    for (size_t len = strlen(path); len > 0 && path[len - 1] == ' '; len--)
        path[len - 1] = '\0';
    if (arrow != NULL)
        *arrow = '\0';

    struct oriel_library *library = &program->libraries[program->libraries_count];
    const char *base = strrchr(line, '/');
    library->soname = base == NULL ? line : base + 1;
    if (path[0] == '/')
        library->path = path;
    else /* "not found", or relative as LD_LIBRARY_PATH is */
        library->path = strchr(path, '/') == NULL ? NULL : realpath(path, NULL);
    program->libraries_count += library->soname[0] != '\0';
}

/* The listing is not freed: the libraries point into it. */
static void libraries_list(struct oriel_program *program, const char *loader, const char *path)
{
    char *const listing_command[] = {(char *)loader, "--list", (char *)path, NULL};
    char *listing = oriel_command_output(listing_command);
    program->is_unlisted = listing == NULL;
    if (listing == NULL)
        return; /* a library is missing, for example; the host is then found by other means */
    size_t lines = 1;
    for (const char *at = listing; *at != '\0'; at++)
        lines += *at == '\n';
    program->libraries = oriel_alloc(lines * sizeof *program->libraries);
    for (char *save = NULL, *line = strtok_r(listing, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save))
        library_add(program, line);
}

void oriel_liboriel_inspect(const char *path, struct oriel_program *out)
{
    char loader[PATH_MAX];
    struct oriel_elf_file self;
    memset(out, 0, sizeof *out);
    if (!oriel_elf_open(oriel_executable_path(), &self))
        return;
    const bool has_loader = oriel_elf_interpreter(&self, loader);
    oriel_elf_close(&self);
    if (has_loader)
        libraries_list(out, loader, path);
}

void oriel_program_inspect(struct oriel_program *program)
{
    char path[PATH_MAX];
    char next[PATH_MAX];
    snprintf(path, sizeof path, "%s", program->path);
    for (int i = 0; i < SCRIPTS_MAX && script_interpreter(path, next); i++)
        memcpy(path, next, sizeof path);

    struct oriel_elf_file file;
    if (!oriel_elf_open(path, &file)) {
        /* a script without an interpreter line, which execvp gives to the shell */
        program->is_unlisted = access(path, R_OK) != 0;
        return;
    }
    char loader[PATH_MAX];
    const bool is_ours = is_this_architecture(&file);
    const bool is_dynamic = oriel_elf_interpreter(&file, loader);
    /* Not MPI_Init, which a program may define as a wrapper. */
    const bool has_mpi = oriel_elf_defines(&file, "PMPI_Init");
    oriel_elf_close(&file);
    const char *advice = program->advice;
    if (!is_ours)
        program->problem =
            oriel_format("%s is for another architecture than this oriel; %s [O10]", path, advice);
    else
        program->problem = privileges_problem(path, advice);
    if (program->problem == NULL)
        program->problem = loader_problem(path, is_dynamic ? loader : NULL, advice);
    if (program->problem == NULL && has_mpi)
        program->problem = oriel_format(
            "%s has MPI linked into it, where a preload has no effect; %s [O8]", path, advice);
    if (program->problem == NULL)
        libraries_list(program, loader, path);
}
