/* base/host_version.c: names and versions in the texts of MPIs. */
#include "base/host_version.h"

#include "cmocka_all.h"

static void texts_become_a_name_and_a_version(void **state)
{
    static const struct {
        const char *text, *version;
    } rows[] = {
        {"MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7", "MPICH 4.0.2"},
        {"MPICH Version:      5.0.2\nMPICH Release date: unreleased", "MPICH 5.0.2"},
        {"Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4", "Open MPI v4.1.4"},
        {"MVAPICH2 Version      :\t2.3.7\nMVAPICH2 Release date :\tWed", "MVAPICH2 2.3.7"},
        {"MPI VERSION    : CRAY MPICH version 8.1.28.2 (ANL base 3.4a2)\nMPI BUILD INFO : Wed",
         "CRAY MPICH version 8.1.28.2 (ANL base 3.4a2)"},
        {"Intel(R) MPI Library 2021.6 for Linux* OS\n",
         "Intel(R) MPI Library 2021.6 for Linux* OS"},
        {"Some MPI\nMPICH Version:\t4.0.2\n", "Some MPI"},
        {"Some Version\n: 1", "Some Version"},
        {"MPI VERSION", "MPI VERSION"},
        {"", ""},
    };
    char version[80];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        oriel_host_version_format(rows[i].text, version, sizeof version);
        assert_string_equal(version, rows[i].version);
    }
    oriel_host_version_format(rows[0].text, version, sizeof "MPICH");
    assert_string_equal(version, "MPICH");
}

static void versions_of_hosts_are_judged_and_those_of_relatives_are_not(void **state)
{
    static const struct {
        const char *version;
        bool is_tested;
    } rows[] = {
        {"MPICH 3.4.3", false},   {"MPICH 4.0.2", true},    {"MPICH 5.0.2", true},
        {"MPICH 6.0", false},     {"Open MPI v3.1", false}, {"Open MPI v6.0.0rc2", true},
        {"Open MPI v7.0", false}, {"MVAPICH2 2.3.7", true}, {"CRAY MPICH version 8.1", true},
    };
    char tested[40];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(oriel_host_version_is_tested(rows[i].version, tested, sizeof tested),
                         rows[i].is_tested);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_become_a_name_and_a_version),
        cmocka_unit_test(versions_of_hosts_are_judged_and_those_of_relatives_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
