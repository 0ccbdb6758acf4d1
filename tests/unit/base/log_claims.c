/* src/base/log_claims.c: of the processes of a job that notice the same message, one prints it, and
 * knows at its end how many others there were. */
#include "base/log_claims.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka_all.h"

/* A launcher's environment; each case is a job of its own. */
static int job_start(void **state)
{
    static int jobs;
    char name[40];
    (void)state;
    snprintf(name, sizeof name, "log-claims-%d-%d", (int)getpid(), jobs++);
    setenv("PMIX_NAMESPACE", name, 1);
    setenv("PMIX_RANK", "0", 1);
    return 0;
}

/* The claim of another process of the job, which then ends. */
static enum oriel_log_claim claim_elsewhere(uint64_t site, const char *text)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit((int)oriel_log_claim(ORIEL_LOG_WARNING, site, text));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return (enum oriel_log_claim)WEXITSTATUS(status);
}

/* Runs the case in a process that has claimed nothing and does not know the job yet. */
static void in_new_process(void (*run)(void))
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        run();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* A child may not fail by cmocka's jumps. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            print_error("line %d: %s\n", __LINE__, #condition);                                    \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* The other processes are forked before this one claims, because they would inherit its claims. */
struct other {
    pid_t pid;
    int start, end;
};

static struct other other_start(const char *rank, enum oriel_log_kind kind, const char *text)
{
    int go[2];
    int done[2];
    EXPECT(pipe(go) == 0 && pipe(done) == 0);
    struct other other = {.pid = fork(), .start = go[1], .end = done[0]};
    if (other.pid == 0) {
        char byte;
        setenv("PMIX_RANK", rank, 1);
        close(go[1]);
        EXPECT(read(go[0], &byte, 1) == 1);
        byte = (char)oriel_log_claim(kind, 0, text);
        if (byte != ORIEL_LOG_CLAIM_OWN)
            EXPECT(oriel_log_claim(kind, 0, text) == ORIEL_LOG_CLAIM_REPEATED);
        EXPECT(write(done[1], &byte, 1) == 1);
        EXPECT(read(go[0], &byte, 1) == 1); /* its own claim lives until other_end */
        _exit(0);
    }
    close(go[0]);
    close(done[1]);
    return other;
}

static enum oriel_log_claim other_claim(const struct other *other)
{
    char byte = 0;
    EXPECT(write(other->start, &byte, 1) == 1 && read(other->end, &byte, 1) == 1);
    return (enum oriel_log_claim)byte;
}

static void other_end(const struct other *other)
{
    EXPECT(write(other->start, "", 1) == 1);
    EXPECT(waitpid(other->pid, NULL, 0) == other->pid);
}

static int counted, calls;
static char counted_text[100];

static void count(int others, const char *text)
{
    counted = others;
    calls++;
    snprintf(counted_text, sizeof counted_text, "%s", text);
}

static void first_of_three(void)
{
    struct other first = other_start("1", ORIEL_LOG_WARNING, "the sky is at 0x7f01: look");
    struct other second = other_start("2", ORIEL_LOG_WARNING, "the sky is at 0x55ab: look");
    EXPECT(oriel_log_claim(ORIEL_LOG_WARNING, 0, "the sky is at 0xdeadbeef: look") ==
           ORIEL_LOG_CLAIM_OWN);
    EXPECT(oriel_log_claim(ORIEL_LOG_WARNING, 0, "the sky is at 0xd: look") ==
           ORIEL_LOG_CLAIM_REPEATED);
    EXPECT(oriel_log_claims_any());
    EXPECT(other_claim(&first) == ORIEL_LOG_CLAIM_OTHER);
    EXPECT(other_claim(&second) == ORIEL_LOG_CLAIM_OTHER);
    other_end(&first);
    other_end(&second);
    oriel_log_claims_count(count);
    EXPECT(calls == 1 && counted == 2);
    EXPECT(strcmp(counted_text, "the sky is at 0xdeadbeef: look") == 0);
    oriel_log_claims_count(count);
    EXPECT(calls == 1); /* each is counted once */
}

static void the_first_claims_and_counts_the_others(void **state)
{
    (void)state;
    in_new_process(first_of_three);
}

static void different_messages(void)
{
    struct other other = other_start("1", ORIEL_LOG_WARNING, "disk 2 is full");
    EXPECT(oriel_log_claim(ORIEL_LOG_WARNING, 0, "disk 1 is full") == ORIEL_LOG_CLAIM_OWN);
    EXPECT(oriel_log_claim(ORIEL_LOG_WARNING, 7, "disk 1 is full") == ORIEL_LOG_CLAIM_OWN);
    EXPECT(oriel_log_claim(ORIEL_LOG_WARNING, 0, "disk 3 is full") == ORIEL_LOG_CLAIM_OWN);
    EXPECT(oriel_log_claim(ORIEL_LOG_FATAL, 0, "disk 1 is full") == ORIEL_LOG_CLAIM_OWN);
    EXPECT(oriel_log_claim(ORIEL_LOG_FATAL, 0, "disk 27 is full") == ORIEL_LOG_CLAIM_REPEATED);
    EXPECT(oriel_log_claim(ORIEL_LOG_LATE, 0, "disk 27 is full") == ORIEL_LOG_CLAIM_OWN);
    EXPECT(other_claim(&other) == ORIEL_LOG_CLAIM_OWN);
    other_end(&other);
    oriel_log_claims_count(count);
    EXPECT(calls == 0);
}

static void messages_and_sites_that_differ_are_all_printed(void **state)
{
    (void)state;
    in_new_process(different_messages);
}

static void not_counted(void)
{
    struct other other = other_start("1", ORIEL_LOG_NOTE, "a note");
    EXPECT(oriel_log_claim(ORIEL_LOG_NOTE, 0, "a note") == ORIEL_LOG_CLAIM_OWN);
    EXPECT(other_claim(&other) == ORIEL_LOG_CLAIM_OTHER);
    other_end(&other);
    oriel_log_claims_count(count);
    EXPECT(calls == 0);
}

static void notes_are_not_counted(void **state)
{
    (void)state;
    in_new_process(not_counted);
}

static void owner_gone(void)
{
    EXPECT(claim_elsewhere(0, "it was me") == ORIEL_LOG_CLAIM_OWN);
    EXPECT(oriel_log_claim(ORIEL_LOG_WARNING, 0, "it was me") == ORIEL_LOG_CLAIM_OWN);
}

static void a_claim_ends_with_its_process(void **state)
{
    (void)state;
    in_new_process(owner_gone);
}

static void without_launcher(void)
{
    unsetenv("PMIX_RANK");
    unsetenv("PMI_RANK");
    unsetenv("OMPI_COMM_WORLD_RANK");
    unsetenv("SLURM_PROCID");
    struct other other = other_start("1", ORIEL_LOG_WARNING, "alone");
    int next = dup(0);
    close(next);
    EXPECT(oriel_log_claim(ORIEL_LOG_WARNING, 0, "alone") == ORIEL_LOG_CLAIM_OWN);
    EXPECT(oriel_log_claim(ORIEL_LOG_WARNING, 0, "alone") == ORIEL_LOG_CLAIM_REPEATED);
    EXPECT(dup(0) == next); /* no descriptor was opened */
    EXPECT(!oriel_log_claims_any());
    EXPECT(other_claim(&other) == ORIEL_LOG_CLAIM_OWN);
    other_end(&other);
}

static void a_process_without_launcher_opens_no_socket(void **state)
{
    (void)state;
    in_new_process(without_launcher);
}

/* Without a descriptor each process prints. */
static void no_descriptor(void)
{
    struct other other = other_start("1", ORIEL_LOG_WARNING, "none left");
    struct rlimit limit = {.rlim_cur = 3, .rlim_max = 3};
    EXPECT(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    errno = 77;
    EXPECT(oriel_log_claim(ORIEL_LOG_WARNING, 0, "none left") == ORIEL_LOG_CLAIM_OWN);
    EXPECT(errno == 77);
    EXPECT(other_claim(&other) == ORIEL_LOG_CLAIM_OWN);
    other_end(&other);
}

static void without_a_descriptor_the_message_is_printed(void **state)
{
    (void)state;
    in_new_process(no_descriptor);
}

/* The program closes all descriptors and opens others with the same numbers. */
static void descriptors_replaced(void)
{
    struct other other = other_start("1", ORIEL_LOG_WARNING, "replaced");
    int next = dup(0);
    close(next);
    EXPECT(oriel_log_claim(ORIEL_LOG_WARNING, 0, "replaced") == ORIEL_LOG_CLAIM_OWN);
    close(next);
    EXPECT(open("/dev/null", O_RDONLY | O_CLOEXEC) == next);
    EXPECT(other_claim(&other) == ORIEL_LOG_CLAIM_OWN);
    EXPECT(!oriel_log_claims_any());
    oriel_log_claims_count(count);
    EXPECT(calls == 0);
    int unused[2];
    for (int i = 0; i < 40; i++) { /* the oldest claims are dropped */
        char text[20];
        snprintf(text, sizeof text, "message %d", i);
        EXPECT(oriel_log_claim(ORIEL_LOG_WARNING, 0, text) == ORIEL_LOG_CLAIM_OWN);
        if (i % 20 == 19) {
            unused[i / 20] = dup(0);
            close(unused[i / 20]);
        }
    }
    EXPECT(unused[0] == unused[1]);    /* and closed */
    EXPECT(fcntl(next, F_GETFD) >= 0); /* but not the program's file */
    other_end(&other);
}

static void a_descriptor_of_the_program_is_left_alone(void **state)
{
    (void)state;
    in_new_process(descriptors_replaced);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_first_claims_and_counts_the_others, job_start),
        cmocka_unit_test_setup(messages_and_sites_that_differ_are_all_printed, job_start),
        cmocka_unit_test_setup(notes_are_not_counted, job_start),
        cmocka_unit_test_setup(a_claim_ends_with_its_process, job_start),
        cmocka_unit_test_setup(a_process_without_launcher_opens_no_socket, job_start),
        cmocka_unit_test_setup(without_a_descriptor_the_message_is_printed, job_start),
        cmocka_unit_test_setup(a_descriptor_of_the_program_is_left_alone, job_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
