/* Judges by names, as the dynamic linker does. The table's first match counts. */
#include "cli/program_host.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/elf_file.h"

static bool defines(const struct oriel_library *library, const char *function)
{
    struct oriel_elf_file file;
    if (library->path == NULL || !oriel_elf_open(library->path, &file))
        return false;
    const bool found = oriel_elf_defines(&file, function);
    oriel_elf_close(&file);
    return found;
}

/* True for a library with an MPI's name and a version number that is not in the table. */
static bool is_unknown_interface(const struct oriel_library *library)
{
    static const char *const patterns[] = {"libmpich.so*", "libmpi.so*", "libmpi_abi.so*",
                                           "libmpi_cray.so*"};
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        if (fnmatch(patterns[i], library->soname, 0) == 0)
            return true;
    return false;
}

/* True for a library of another name that defines MPI. Only where the program has no MPI of the
 * table: beside one, it is a tool or Oriel itself. */
static bool is_unknown_mpi(const struct oriel_library *library)
{
    return !oriel_host_owns(library->soname) && fnmatch("*mpi*", library->soname, 0) == 0 &&
           defines(library, "PMPI_Init");
}

static void unsupported(const struct oriel_program *program, const struct oriel_library *library,
                        struct oriel_program_host *out)
{
    out->problem = oriel_format(
        "%s uses %s, a host MPI that Oriel does not support (supported: MPICH from version 4 on, "
        "Open MPI from version 4 on, version 1 of MPI's standard ABI); %s [O1]",
        program->path, library->soname, program->advice);
}

bool oriel_host_owns(const char *soname)
{
    /* Exact stems, because tools often have names such as libmpi-something. */
    static const char *const stems[] = {
        "libmpi",           "libmpich",     "libmpichcxx",   "libmpichfort",
        "libmpichf90",      "libmpicxx",    "libmpifort",    "libmpi_cxx",
        "libmpi_java",      "libmpi_mpifh", "libmpi_usempi", "libmpi_usempi_ignore_tkr",
        "libmpi_usempif08", "libmpi_abi",
    };
    const char *end = strstr(soname, ".so");
    for (size_t i = 0; end != NULL && i < sizeof stems / sizeof stems[0]; i++)
        if (strlen(stems[i]) == (size_t)(end - soname) &&
            strncmp(soname, stems[i], strlen(stems[i])) == 0)
            return true;
    return oriel_interface_of(soname) != NULL;
}

/* Functions that every host has (MPI-3.1). */
static const char *const called[] = {
#define FUNCTION(name, parameters, arguments) "PMPI_" #name,
#define FORWARD                               FUNCTION
#define LARGE(name, parameters, arguments)
#define CALL(name) "PMPI_" #name,
#include "host/functions.def"
#include "host/calls.def"
#undef FUNCTION
#undef FORWARD
#undef LARGE
#undef CALL
};

enum { CALLED = sizeof called / sizeof called[0], NAMED = 3 };

static bool export_note(const char *name, const GElf_Sym *symbol, void *context)
{
    bool *found = context;
    (void)symbol;
    if (strncmp(name, "PMPI_", strlen("PMPI_")) == 0)
        for (size_t i = 0; i < CALLED; i++)
            found[i] = found[i] || strcmp(called[i], name) == 0;
    return true;
}

/* Writes what the library lacks of the functions that Oriel calls: up to three names, and how many
 * more; "" if nothing. A library that cannot be read is trusted. */
static void library_lacks(const struct oriel_library *library, char *out, size_t room)
{
    struct oriel_elf_file file;
    bool found[CALLED] = {false};
    size_t used = 0;
    int count = 0;
    out[0] = '\0';
    if (library->path == NULL || !oriel_elf_open(library->path, &file))
        return;
    oriel_elf_exports_visit(&file, export_note, found);
    oriel_elf_close(&file);
    for (size_t i = 0; i < CALLED; i++)
        if (!found[i] && count++ < NAMED && used < room)
            used +=
                (size_t)snprintf(out + used, room - used, "%s%s", used == 0 ? "" : ", ", called[i]);
    if (count > NAMED && used < room)
        snprintf(out + used, room - used, " and %d more", count - NAMED);
}

/* Whether the loader finds what Oriel's library needs: the MPI that it was built with, next to the
 * program's. */
static bool liboriel_loads(const struct oriel_host *host)
{
    char path[PATH_MAX];
    struct oriel_program liboriel = {.is_unlisted = false};
    if (oriel_host_library(host, "liboriel.so", path))
        oriel_liboriel_inspect(path, &liboriel);
    return !liboriel.is_unlisted;
}

/* A host that Oriel is not tested with must have what Oriel calls: one of its libraries, if the
 * program has several. */
static void untested_judge(const struct oriel_program *program, struct oriel_program_host *out)
{
    char lacks[256];
    library_lacks(out->library, lacks, sizeof lacks);
    for (size_t i = 0; lacks[0] != '\0' && i < program->libraries_count; i++) {
        const struct oriel_library *library = &program->libraries[i];
        const struct oriel_interface *interface = oriel_interface_of(library->soname);
        char others[256] = "";
        if (interface == NULL || library == out->library)
            continue;
        library_lacks(library, others, sizeof others);
        if (others[0] == '\0') {
            out->library = library;
            out->interface = interface;
            lacks[0] = '\0';
        }
    }
    if (lacks[0] != '\0')
        out->problem =
            oriel_format("%s uses %s, which lacks functions that Oriel calls: %s; %s [O1]",
                         program->path, out->library->path, lacks, program->advice);
    else if (!liboriel_loads(out->host))
        out->problem =
            oriel_format("%s uses %s, and Oriel's library for %s needs another MPI "
                         "library that is not here: build Oriel with the compiler "
                         "wrapper of the program's MPI (-DORIEL_MPICC=); %s [O1]",
                         program->path, out->library->soname, out->host->title, program->advice);
}

/* Finds the host by the names in the table. */
static void named_host_find(const struct oriel_program *program, struct oriel_program_host *out)
{
    for (size_t i = 0; i < program->libraries_count; i++) {
        const struct oriel_library *library = &program->libraries[i];
        const struct oriel_interface *interface = oriel_interface_of(library->soname);
        if (interface == NULL && is_unknown_interface(library)) {
            unsupported(program, library, out);
            return;
        }
        if (interface == NULL)
            continue;
        const struct oriel_host *host = oriel_host_named(interface->host);
        if (out->host != NULL && out->host != host) {
            out->problem =
                oriel_format("%s uses two host MPIs, through %s and %s; %s [O7]", program->path,
                             out->library->soname, library->soname, program->advice);
            return;
        }
        if (out->host != NULL && out->interface->is_tested)
            continue;
        out->host = host;
        out->library = library;
        out->interface = interface;
    }
}

void oriel_program_host_find(const struct oriel_program *program, struct oriel_program_host *out)
{
    *out = (struct oriel_program_host){.host = NULL};
    if (program->problem != NULL) {
        out->problem = oriel_format("%s", program->problem);
        return;
    }
    named_host_find(program, out);
    for (size_t i = 0; out->host == NULL && out->problem == NULL && i < program->libraries_count;
         i++)
        if (is_unknown_mpi(&program->libraries[i]))
            unsupported(program, &program->libraries[i], out);
    if (out->problem == NULL && out->host != NULL && !out->interface->is_tested)
        untested_judge(program, out);
}

const struct oriel_host *oriel_host_of_program(const struct oriel_program *program)
{
    struct oriel_program_host found;
    oriel_program_host_find(program, &found);
    if (found.problem != NULL)
        oriel_die("%s", found.problem);
    return found.host;
}
