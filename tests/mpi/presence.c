/* Signs of Oriel's presence in the program, and that it leaves no trace for the program's children.
 * With TEST_THROUGH_ORIEL set Oriel must be present; without it and without the library the cases
 * are skipped. A plain MPI program, run by the test rows. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool library_is_mapped(void)
{
    char line[1024];
    bool mapped = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        mapped |= strstr(line, "/liboriel.so") != NULL;
    fclose(maps);
    return mapped;
}

/* False when the program runs on the bare host on purpose. */
static bool oriel_expected(void)
{
    if (getenv("TEST_THROUGH_ORIEL") || library_is_mapped())
        return true;
    harness_skip("runs on the bare host");
    return false;
}

static void the_library_version_names_oriel_and_the_host(enum window_kind kind)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    (void)kind;
    if (!oriel_expected())
        return;
    CHECK(library_is_mapped(), "liboriel.so is not mapped");
    CHECK_OK(MPI_Get_library_version(version, &length));
    CHECK(strstr(version, "Oriel") != NULL, "the version is \"%.100s\"", version);
    CHECK(strstr(version, "MPICH") || strstr(version, "Open MPI"), "the version is \"%.100s\"",
          version);
    CHECK_EQUAL(length, strlen(version));
}

static void children_of_the_program_do_not_inherit_the_preload(enum window_kind kind)
{
    char line[8192];
    int lines = 0;
    (void)kind;
    if (!oriel_expected())
        return;
    FILE *child = popen("env", "r");
    if (!CHECK(child != NULL, "popen"))
        return;
    while (fgets(line, sizeof line, child)) {
        lines++;
        CHECK(!(strncmp(line, "LD_PRELOAD=", 11) == 0 && strstr(line, "liboriel")),
              "the child has %.200s", line);
        CHECK(strncmp(line, "ORIEL_PRELOADED=", 16) != 0, "the child has %.200s", line);
    }
    CHECK(pclose(child) == 0 && lines > 0, "env said nothing");
    CHECK(getenv("ORIEL_PRELOADED") == NULL, "the program itself still has ORIEL_PRELOADED");
}

static const struct test_case cases[] = {
    CASE(the_library_version_names_oriel_and_the_host, KIND_ANY, 1),
    CASE(children_of_the_program_do_not_inherit_the_preload, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
