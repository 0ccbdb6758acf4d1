/* cli/program_host.c: which host's interface a library of each name has. */
#include "cli/program_host.h"

#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

struct row {
    const char *soname;
    const char *host; /* NULL: none */
    bool is_tested;
};

static void libraries_name_the_interface(void **state)
{
    static const struct row rows[] = {
        {"libmpich.so.12", "mpich", true},
        {"libmpi.so.12", "mpich", false}, /* MPICH's own name, too, in its releases */
        {"libmpi_cray.so.12", "mpich", false},
        {"libmpi_gnu_123.so.12", "mpich", false},
        {"libmpi_gnu.so.12", "mpich", false},
        {"libmpi_intel.so.12", "mpich", false},
        {"libmpi_amd.so.12", "mpich", false},
        {"libmpi_aocc.so.12", "mpich", false},
        {"libmpi_nvidia.so.12", "mpich", false},
        {"libmpi_pgi.so.12", "mpich", false},
        {"libmpi.so.40", "openmpi", true},
        {"libmpi_abi.so.1", "abi", true},
        {"libmpi_abi.so.0", NULL, false}, /* from before the standard */
        {"libmpi_abi.so.2", NULL, false},
        {"libmpi.so.1", NULL, false},
        {"libmpi.so.20", NULL, false},
        {"libmpi.so.0", NULL, false},
        {"libmpi_mt.so.4", NULL, false},
        {"libmpi_cray.so.3", NULL, false},
        {"libmpi_cxx.so.40", NULL, false}, /* beside libmpi.so.40 */
        {"libmpifort.so.12", NULL, false},
        {"libmpip.so.12", NULL, false},
        {"libc.so.6", NULL, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct oriel_interface *interface = oriel_interface_of(rows[i].soname);
        assert_true((interface != NULL) == (rows[i].host != NULL));
        if (interface != NULL) {
            assert_string_equal(interface->host, rows[i].host);
            assert_non_null(oriel_host_named(interface->host));
            assert_true(interface->is_tested == rows[i].is_tested);
        }
    }
}

static void program_of(const char *const *sonames, struct oriel_program_host *out)
{
    struct oriel_library libraries[4];
    struct oriel_program program = {.path = "./app", .advice = "x", .libraries = libraries};
    for (; *sonames != NULL; sonames++)
        libraries[program.libraries_count++] = (struct oriel_library){*sonames, NULL};
    oriel_program_host_find(&program, out);
}

static void several_libraries_decide_together(void **state)
{
    struct oriel_program_host found;
    (void)state;
    program_of((const char *[]){"libc.so.6", NULL}, &found);
    assert_null(found.host);
    assert_null(found.problem);
    /* two of Cray's are one MPI, and so are two names of MPICH */
    program_of((const char *[]){"libmpi_cray.so.12", "libmpi_gnu.so.12", NULL}, &found);
    assert_string_equal(found.host->name, "mpich");
    assert_null(found.problem);
    program_of((const char *[]){"libmpi.so.12", "libmpich.so.12", NULL}, &found);
    assert_true(found.interface->is_tested);
    assert_null(found.problem);
    program_of((const char *[]){"libmpich.so.12", "libmpi.so.12", NULL}, &found);
    assert_true(found.interface->is_tested);
    assert_null(found.problem);
    program_of((const char *[]){"libmpi_abi.so.1", "libopen_mpi.so.40", NULL}, &found);
    assert_string_equal(found.host->name, "abi");
    assert_null(found.problem);
    program_of((const char *[]){"libmpi_abi.so.1", "libmpi.so.40", NULL}, &found);
    assert_non_null(strstr(found.problem, "libmpi_abi.so.1 and libmpi.so.40;"));
    free(found.problem);
    program_of((const char *[]){"libmympi.so.1", NULL}, &found); /* a file that was not found */
    assert_null(found.host);
    assert_null(found.problem);
    program_of((const char *[]){"libmpi_abi.so.2", NULL}, &found);
    assert_non_null(strstr(found.problem, "libmpi_abi.so.2"));
    assert_non_null(strstr(found.problem, "[O1]"));
    free(found.problem);
}

static void functions_that_a_library_lacks_are_named(void **state)
{
    struct oriel_library library = {"libmpi.so.12", "/proc/self/exe"}; /* with no MPI function */
    const struct oriel_program program = {
        .path = "./app", .advice = "x", .libraries = &library, .libraries_count = 1};
    struct oriel_program_host found;
    (void)state;
    oriel_program_host_find(&program, &found);
    const char *lacks = strstr(found.problem, "lacks functions that Oriel calls: PMPI_");
    assert_non_null(lacks);
    const char *more = strstr(lacks, " and ");
    assert_non_null(more);
    assert_true(strtol(more + strlen(" and "), NULL, 10) > 50); /* beyond three names */
    assert_non_null(strstr(more, " more; x [O1]"));
    free(found.problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libraries_name_the_interface),
        cmocka_unit_test(several_libraries_decide_together),
        cmocka_unit_test(functions_that_a_library_lacks_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
