/* Gets the version of a host's library in a child process. The child writes one record of fixed
 * size to a pipe. If it ends without one, its exit is reported. */
#include "cli/info/installed.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/run/program.h"

/* Size of the version buffer: larger than MPI_MAX_LIBRARY_VERSION_STRING of every host. */
enum { VERSION_BYTES_MAX = 16384, CHILD_TIMEOUT_S = 10 };

/* The child's report. */
struct record {
    bool found;
    char library[PIPE_BUF - 512];
    char text[256]; /* the version, or why there is none */
};
_Static_assert(sizeof(struct record) <= PIPE_BUF, "writes of a record to a pipe are atomic");

static void record_set_error(struct record *record, const char *reason)
{
    snprintf(record->text, sizeof record->text, "%s", reason);
}

static void library_version_read(const char *soname, struct record *out)
{
    static char version[VERSION_BYTES_MAX];
    void *library = dlopen(soname, RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) {
        record_set_error(out, dlerror());
        return;
    }
    struct link_map *map = NULL;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0)
        snprintf(out->library, sizeof out->library, "%s", map->l_name);
    int (*get_version)(char *, int *) = NULL;
    void *symbol = dlsym(library, "MPI_Get_library_version");
    /* ISO C has no cast from an object pointer to a function pointer. */
    memcpy(&get_version, &symbol, sizeof get_version);
    int len = 0;
    if (get_version == NULL || get_version(version, &len) != 0) {
        record_set_error(out, "the library does not return its version");
        return;
    }
    snprintf(out->text, sizeof out->text, "%.*s", (int)strcspn(version, "\r\n"), version);
    for (char *at = out->text; *at != '\0'; at++)
        if (*at == '\t')
            *at = ' ';
    out->found = true;
}

/* Runs in the child: silent, and ended by an alarm when the library hangs. */
static _Noreturn void child_main(const char *soname, int fd)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nothing, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
    alarm(CHILD_TIMEOUT_S);
    struct record record = {.found = false};
    library_version_read(soname, &record);
    ssize_t written = write(fd, &record, sizeof record);
    _exit(written == (ssize_t)sizeof record ? 0 : 1);
}

static void child_version_read(const char *soname, struct record *out)
{
    memset(out, 0, sizeof *out);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        record_set_error(out, strerror(errno));
        return;
    }
    pid_t child = fork();
    if (child == 0)
        child_main(soname, ends[1]);
    close(ends[1]);
    bool reported = child > 0 && read(ends[0], out, sizeof *out) == (ssize_t)sizeof *out;
    close(ends[0]);
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (reported)
        return;
    memset(out, 0, sizeof *out);
    if (child < 0)
        snprintf(out->text, sizeof out->text, "%s could not be queried: no child process", soname);
    else if (WIFSIGNALED(status))
        snprintf(out->text, sizeof out->text, "%s could not be queried: %s", soname,
                 strsignal(WTERMSIG(status)));
    else
        snprintf(out->text, sizeof out->text,
                 "%s could not be queried: it ended the process that loaded it", soname);
}

/* The MPI that liboriel loads: it may be in a folder that the loader does not search by itself. */
static void loaded_version_read(const struct oriel_host *host, const char *liboriel,
                                struct record *out)
{
    struct oriel_program program;
    oriel_liboriel_inspect(liboriel, &program);
    for (size_t i = 0; i < program.libraries_count && !out->found; i++) {
        const struct oriel_library *library = &program.libraries[i];
        const struct oriel_interface *interface = oriel_interface_of(library->soname);
        if (library->path != NULL && interface != NULL && strcmp(interface->host, host->name) == 0)
            child_version_read(library->path, out);
    }
}

void oriel_installed_find(const struct oriel_host *host, struct oriel_installed *out)
{
    memset(out, 0, sizeof *out);
    struct record record = {.found = false};
    out->served = oriel_host_library(host, "liboriel.so", out->liboriel);
    if (out->served)
        loaded_version_read(host, out->liboriel, &record);
    for (size_t i = 0; i < oriel_interfaces_count && !record.found; i++) {
        const struct oriel_interface *interface = &oriel_interfaces[i];
        const bool is_name = strpbrk(interface->soname, "*?[") == NULL;
        if (!is_name || strcmp(interface->host, host->name) != 0)
            continue;
        child_version_read(interface->soname, &record);
        /* The first is the host's own library; the others belong to relatives. */
        if (out->refused[0] == '\0')
            snprintf(out->refused, sizeof out->refused, "%s", record.text);
    }
    out->found = record.found;
    if (record.found) {
        snprintf(out->library, sizeof out->library, "%s", record.library);
        snprintf(out->version, sizeof out->version, "%s", record.text);
        out->refused[0] = '\0';
    }
}

void oriel_library_version_find(const char *library, char out[256])
{
    struct record record = {.found = false};
    child_version_read(library, &record);
    snprintf(out, sizeof record.text, "%s", record.found ? record.text : "");
}
