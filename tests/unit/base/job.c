/* Which of several launchers' variables count: those of the nearest launcher. */
#include "base/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmocka_all.h"

static void variables_clear(void)
{
    static const char *const names[] = {"PMI_FD",         "PMI_RANK",     "PMIX_RANK",
                                        "PMIX_NAMESPACE", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
}

static void a_pmi_socket_counts_before_inherited_variables(void **state)
{
    int ends[2];
    char number[16];
    (void)state;
    variables_clear();
    setenv("PMIX_RANK", "0", 1);
    setenv("PMIX_NAMESPACE", "other", 1);
    const uint64_t other = oriel_job_find();
    assert_int_equal(oriel_job_rank(), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    snprintf(number, sizeof number, "%d", ends[0]);
    setenv("PMI_FD", number, 1);
    setenv("PMI_RANK", "3", 1);
    assert_int_equal(oriel_job_rank(), 3);
    assert_true(oriel_job_find() != other);
    close(ends[0]);
    close(ends[1]);
    /* the socket of a job around this one is closed */
    assert_int_equal(oriel_job_rank(), 0);
    assert_true(oriel_job_find() == other);
}

static void jobs_of_pmix_have_their_names(void **state)
{
    (void)state;
    variables_clear();
    setenv("PMIX_RANK", "1", 1);
    setenv("PMIX_NAMESPACE", "a", 1);
    const uint64_t first = oriel_job_find();
    setenv("PMIX_NAMESPACE", "b", 1);
    assert_true(oriel_job_find() != first);
}

static void a_script_of_slurm_is_no_rank(void **state)
{
    (void)state;
    variables_clear();
    setenv("SLURM_PROCID", "0", 1); /* its parent is not Slurm's daemon */
    assert_int_equal(oriel_job_rank(), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pmi_socket_counts_before_inherited_variables),
        cmocka_unit_test(jobs_of_pmix_have_their_names),
        cmocka_unit_test(a_script_of_slurm_is_no_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
