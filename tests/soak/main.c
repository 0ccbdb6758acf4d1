/* A random RMA program with a known result: soak --seed S [--steps N]. It creates and frees windows
 * of all flavours. In between it runs steps: epochs of every kind with operations whose results a
 * model knows (plan.c), executed and compared (run.c).  The exit status is 0, or 1 after one line
 * that describes the error. Rank 0 prints how often each kind of action was done. */
#include "step.h"

#include "../busy.h"
#include "../mpi/skip_finalize.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEP_SECONDS = 90, ALARM_SECONDS = 30, STACK_BYTES = 256 << 10 };

struct soak soak = {.steps = 12};

struct random stream(uint64_t purpose, uint64_t number)
{
    struct random random = {soak.seed * 0x9E3779B97F4A7C15u ^ (purpose + 1) * 0xD1B54A32D192ED03u ^
                            (number + 1) * 0x8CB92BA72F3D8DD7u};
    random_next(&random);
    return random;
}

int between(struct random *random, int least, int most)
{
    return least + below(random, most - least + 1);
}

void bytes_draw(unsigned char *bytes, size_t len_bytes, struct random *random)
{
    size_t i = 0;
    for (; i + 8 <= len_bytes; i += 8) {
        uint64_t word = random_next(random);
        memcpy(bytes + i, &word, 8);
    }
    for (; i < len_bytes; i++)
        bytes[i] = (unsigned char)(random_next(random) >> 13);
}

static void write_text(const char *text)
{
    ssize_t written = write(STDOUT_FILENO, text, strlen(text));
    (void)written;
}

static void print_position(const char *what)
{
    char text[400];
    snprintf(text, sizeof text, "not ok: %s; seed %llu, step %d, rank %d: %s\n", what,
             (unsigned long long)soak.seed, soak.step, world_rank, soak.doing);
    write_text(text);
}

void fail(const char *format, ...)
{
    char text[1800];
    va_list arguments;
    int used = snprintf(text, sizeof text,
                        "not ok: seed %llu, step %d, rank %d: ", (unsigned long long)soak.seed,
                        soak.step, world_rank);
    va_start(arguments, format);
    used += vsnprintf(text + used, sizeof text - (size_t)used - 1, format, arguments);
    va_end(arguments);
    if ((size_t)used > sizeof text - 2)
        used = (int)sizeof text - 2;
    memcpy(text + used, "\n", 2);
    fflush(stdout);
    write_text(text);
    sleep_us(300000); /* time for the launcher to forward it, and for the other ranks' output */
    MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

void doing(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(soak.doing, sizeof soak.doing, format, arguments);
    va_end(arguments);
    if (getenv("SOAK_TRACE") != NULL)
        fprintf(stderr, "rank %d, step %d: %s\n", world_rank, soak.step, soak.doing);
}

static volatile sig_atomic_t alarms; /* of this step, still to come */

/* In slices: a virtual machine that stops for longer than a step may run is not a hang. */
static void begin_step_time(void)
{
    alarms = (sig_atomic_t)(busy_limit_s(STEP_SECONDS) / ALARM_SECONDS);
    alarm(ALARM_SECONDS);
}

static void on_signal(int number)
{
    if (number == SIGALRM && --alarms > 0) {
        alarm(ALARM_SECONDS);
        return;
    }
    print_position(number == SIGALRM ? "no end after 90 s" : "killed by a signal");
    if (number == SIGALRM)
        _exit(1);
    signal(number, SIG_DFL);
    raise(number);
}

static void on_error(MPI_Comm *comm, int *code, ...)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    (void)comm;
    MPI_Error_string(*code, text, &length);
    fail("unexpected error: %s: %s", soak.doing, text);
}

/* All ranks draw the next action alike, including ranks outside it. */
static void act(struct random *shared)
{
    int choice = below(shared, 20), live = 0;
    for (int i = 0; i < WINDOWS_MOST; i++)
        live += windows[i].live;
    if (live == 0 || choice < 3) {
        window_make_random(shared);
    } else if (choice == 3 && live > 1) {
        window_free_random(shared);
    } else if (choice < 6) {
        struct soak_window *window = &windows[below(shared, WINDOWS_MOST)];
        if (window->live && window->flavour == FLAVOUR_DYNAMIC && window->group->me >= 0)
            window_attach_random(window);
        else if (window->live && window->group->me >= 0)
            window_change_random(window);
    } else if (choice < 9) {
        int index = below(shared, WINDOWS_MOST);
        while (!windows[index].live)
            index = (index + 1) % WINDOWS_MOST;
        if (windows[index].group->me >= 0)
            window_lend_random(&windows[index]);
    }
    step_random(shared);
}

static void program(void)
{
    unsigned char stack[STACK_BYTES]; /* windows use it as memory, too */
    struct random shared = stream(1, 0);
    memory_start(stack, sizeof stack);
    for (soak.step = 1; soak.step <= soak.steps; soak.step++) {
        begin_step_time();
        act(&shared);
    }
    begin_step_time();
    windows_free();
}

static bool arguments_parse(int argc, char **argv)
{
    bool seeded = false;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0) {
            soak.seed = strtoull(argv[i + 1], NULL, 0);
            seeded = true;
        } else if (strcmp(argv[i], "--steps") == 0) {
            soak.steps = atoi(argv[i + 1]);
        } else {
            return false;
        }
    }
    return seeded && soak.steps > 0 && argc % 2 == 1;
}

/* Half of the programs use threads, if the host supports them. */
static void begin(int *argc, char ***argv)
{
    struct random random = stream(0, 0);
    MPI_Errhandler handler;
    int level, wanted = one_in(&random, 2) ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    MPI_Init_thread(argc, argv, wanted, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    soak.threads =
        level == MPI_THREAD_MULTIPLE && wanted == level ? between(&random, 2, THREADS_MOST) : 1;
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Errhandler_free(&handler);
    signal(SIGALRM, on_signal);
    signal(SIGSEGV, on_signal);
    signal(SIGBUS, on_signal);
    random_leaves_start();
    groups_start();
}

int main(int argc, char **argv)
{
    if (!arguments_parse(argc, argv)) {
        fprintf(stderr, "soak --seed S [--steps N]\n");
        return 2;
    }
    begin(&argc, &argv);
    if (world_size > RANKS_MOST)
        fail("at most %d ranks", RANKS_MOST);
    if (world_rank == 0)
        printf("# %d ranks, %d threads each, --seed %llu --steps %d\n", world_size, soak.threads,
               (unsigned long long)soak.seed, soak.steps);
    program();
    if (world_rank == 0)
        count_one(COUNT_PROGRAM);
    counts_print();
    groups_stop();
    doing("ends");
    begin_step_time();
    leave_without_finalize(0);
    MPI_Finalize();
    return 0;
}
