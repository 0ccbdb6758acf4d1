/* src/base/log.c: a line arrives whole even if a signal interrupts the write or a pipe accepts it
 * in parts. Run by the test rows. */
#include "base/log.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "many_signals.h"

enum { PIPE_BYTES = 4096, LINE_BYTES = 900, READ_MOST = 1 << 20 };

static char text[READ_MOST];
static size_t text_bytes;

/* The pipe is not read for a while; signals go to the initial thread. */
static void *read_late(void *closure)
{
    const int *fd = closure;
    usleep(100000);
    for (ssize_t got = 1; got > 0; text_bytes += got > 0 ? (size_t)got : 0)
        got = read(*fd, text + text_bytes, sizeof text - text_bytes);
    return NULL;
}

/* Writes while the pipe is full; checks all that arrived. */
static void write_into_full_pipe(void (*write_all)(void))
{
    static const char filling[PIPE_BYTES];
    int ends[2];
    pthread_t reader;
    sigset_t signals;
    sigset_t before;
    text_bytes = 0;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES), PIPE_BYTES);
    assert_int_equal(write(ends[1], filling, sizeof filling), sizeof filling);
    sigfillset(&signals);
    pthread_sigmask(SIG_SETMASK, &signals, &before);
    assert_int_equal(pthread_create(&reader, NULL, read_late, &ends[0]), 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    int saved = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    many_signals_begin(500, 100000);
    write_all();
    (void)many_signals_end();
    dup2(saved, STDERR_FILENO);
    close(saved);
    pthread_join(reader, NULL);
    close(ends[0]);
}

static void warn(void)
{
    oriel_warn("%.*s", LINE_BYTES, "a line that is not read at once");
}

static void line_arrives_despite_signals(void **state)
{
    (void)state;
    write_into_full_pipe(warn);
    assert_int_equal(text[text_bytes - 1], '\n');
    assert_non_null(memmem(text, text_bytes, "a line that is not read at once\n", 32));
}

static void warn_of_much(void)
{
    char words[2000];
    memset(words, 'w', sizeof words);
    oriel_warn("%.*s", (int)sizeof words, words);
}

static void note_and_name_a_call(void)
{
    char words[2000];
    memset(words, 'c', sizeof words);
    words[sizeof words - 1] = '\0';
    oriel_note("a note of rank %d", 0);
    oriel_log_call(ORIEL_LOG_WARNING, "MPI_Put", words);
}

static void line_that_is_too_long_is_cut_visibly(void **state)
{
    (void)state;
    write_into_full_pipe(warn_of_much);
    assert_non_null(memmem(text, text_bytes, "w...\n", 5));
    write_into_full_pipe(note_and_name_a_call);
    assert_non_null(memmem(text, text_bytes, "a note of rank 0\n", 17));
    assert_non_null(memmem(text, text_bytes, "MPI_Put", 7));
    assert_non_null(memmem(text, text_bytes, "c...\n", 5));
}

static char much[10 * PIPE_BYTES];

static void write_much(void)
{
    oriel_log_write(much, sizeof much);
}

static void text_longer_than_the_pipe_arrives_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof much; i++)
        much[i] = (char)('a' + i % 23);
    write_into_full_pipe(write_much);
    assert_int_equal(text_bytes, PIPE_BYTES + sizeof much);
    assert_memory_equal(text + PIPE_BYTES, much, sizeof much);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(line_arrives_despite_signals),
        cmocka_unit_test(line_that_is_too_long_is_cut_visibly),
        cmocka_unit_test(text_longer_than_the_pipe_arrives_whole),
    };
    setenv("ORIEL_VERBOSE", "1", 1); /* for notes; read once */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
