/* Composes LD_PRELOAD. A linked library that defines MPI functions (a tool between the program and
 * its MPI) must stay before Oriel. A preload alone would put Oriel before it, so the tool is
 * preloaded too. */
#include "cli/run/preload.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/elf_file.h"
#include "cli/program_host.h"

/* Oriel writes colons between entries; the loader also accepts spaces. */
static const char separators[] = ": ";

static bool list_has(const char *list, const char *entry, size_t entry_len)
{
    while (*list != '\0') {
        size_t len = strcspn(list, separators);
        if (len == entry_len && memcmp(list, entry, len) == 0)
            return true;
        list += len;
        list += strspn(list, separators);
    }
    return false;
}

static void list_append(char **list, const char *entry, size_t entry_len)
{
    char *longer =
        oriel_format("%s%s%.*s", *list, **list == '\0' ? "" : ":", (int)entry_len, entry);
    free(*list);
    *list = longer;
}

/* The entries of list that are not in without. */
static char *list_subtract(const char *list, const char *without)
{
    char *rest = oriel_format("%s", "");
    while (*list != '\0') {
        size_t len = strcspn(list, separators);
        if (len > 0 && !list_has(without, list, len))
            list_append(&rest, list, len);
        list += len;
        list += strspn(list, separators);
    }
    return rest;
}

/* The MPI_ functions that Oriel defines, sorted. */
struct names {
    char **names;
    size_t count;
};

static bool is_mpi_name(const char *name)
{
    return strncmp(name, "MPI_", 4) == 0;
}

static bool mpi_name_collect(const char *name, const GElf_Sym *symbol, void *context)
{
    (void)symbol;
    struct names *names = context;
    if (!is_mpi_name(name))
        return true;
    names->names =
        oriel_alloc_checked(realloc(names->names, (names->count + 1) * sizeof *names->names));
    names->names[names->count++] = oriel_format("%s", name);
    return true;
}

static int names_compare(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

struct tool_search {
    const struct names *names;
    bool found;
};

static bool tool_match(const char *name, const GElf_Sym *symbol, void *context)
{
    (void)symbol;
    struct tool_search *search = context;
    search->found =
        is_mpi_name(name) && bsearch(&name, search->names->names, search->names->count,
                                     sizeof *search->names->names, names_compare) != NULL;
    return !search->found;
}

static bool is_tool(const struct oriel_library *library, const struct names *names)
{
    struct oriel_elf_file file;
    if (library->path == NULL || oriel_host_owns(library->soname) ||
        strncmp(library->soname, "liboriel", 8) == 0 || names->count == 0 ||
        !oriel_elf_open(library->path, &file))
        return false;
    struct tool_search search = {.names = names};
    oriel_elf_exports_visit(&file, tool_match, &search);
    oriel_elf_close(&file);
    return search.found;
}

static void mpi_names_read(const char *liboriel, struct names *out)
{
    struct oriel_elf_file file;
    memset(out, 0, sizeof *out);
    if (!oriel_elf_open(liboriel, &file))
        oriel_die("%s is not a library", liboriel);
    oriel_elf_exports_visit(&file, mpi_name_collect, out);
    oriel_elf_close(&file);
    if (out->count > 0)
        qsort(out->names, out->count, sizeof *out->names, names_compare);
}

static void preload_entry_add(const char *path, char **preload, char **added)
{
    if (strpbrk(path, separators) != NULL)
        oriel_die("%s cannot be preloaded: its path contains a space or a colon [O11]", path);
    if (list_has(*preload, path, strlen(path)))
        return;
    list_append(preload, path, strlen(path));
    list_append(added, path, strlen(path));
}

void oriel_preload_set(const struct oriel_program *program, const struct oriel_preload *libraries)
{
    const char *before = getenv("LD_PRELOAD");
    const char *outer = getenv("ORIEL_PRELOADED");
    char *users = list_subtract(before == NULL ? "" : before, outer == NULL ? "" : outer);
    char *preload = oriel_format("%s", "");
    char *added = oriel_format("%s", "");
    struct names names;
    mpi_names_read(libraries->liboriel, &names);
    if (libraries->asan_runtime != NULL &&
        !list_has(users, libraries->asan_runtime, strlen(libraries->asan_runtime)))
        preload_entry_add(libraries->asan_runtime, &preload, &added);
    if (users[0] != '\0')
        list_append(&preload, users, strlen(users));
    if (libraries->tsan_runtime != NULL)
        preload_entry_add(libraries->tsan_runtime, &preload, &added);
    for (size_t i = 0; i < program->libraries_count; i++)
        if (is_tool(&program->libraries[i], &names))
            preload_entry_add(program->libraries[i].path, &preload, &added);
    if (libraries->checker != NULL)
        preload_entry_add(libraries->checker, &preload, &added);
    preload_entry_add(libraries->liboriel, &preload, &added);
    oriel_env_set("LD_PRELOAD", preload);
    oriel_env_set("ORIEL_PRELOADED", added);
    /* Nothing is freed: the process is about to be replaced. */
}
