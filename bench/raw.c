/* The node's performance without MPI: times plain instructions and system calls, which are the
 * limits of the patterns. A time is printed only when the data were right after each batch;
 * otherwise the line has WRONG. Started by `oriel bench`, or by hand: `raw raw-memcpy:65536
 * raw-barrier:0:8`. Its output has the form of rma.c's. */
#define _GNU_SOURCE
#include "raw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "schedule.h"

static const struct raw_operation *const groups[] = {raw_words,  raw_bulk,     raw_pairs,
                                                     raw_shapes, raw_elements, raw_teams};
enum { GROUPS = sizeof groups / sizeof *groups, LEAST_BYTES = 4096 };

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "raw: %s\n", what);
    exit(2);
}

static char *map(size_t len_bytes, int fd)
{
    const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    char *memory = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (memory == MAP_FAILED)
        fail("out of memory");
    memset(memory, 0, len_bytes);
    return memory;
}

static void memory_map(struct raw_run *run, bool shared, size_t room_bytes)
{
    run->from = map(room_bytes, -1);
    if (!shared) {
        run->to = run->seen = map(room_bytes, -1);
        return;
    }
    int fd = memfd_create("oriel-bench", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)room_bytes) != 0)
        fail("no memory file");
    run->to = map(room_bytes, fd);
    run->seen = map(room_bytes, fd);
    close(fd);
}

static void batch_run(const struct raw_operation *operation, struct raw_run *run,
                      struct schedule *plan)
{
    run->batch++;
    run->done = 0;
    if (operation->prepare)
        operation->prepare(run);
    operation->repeat(run, 1);
    run->timed_s = 0;
    double start_s = schedule_clock_s();
    operation->repeat(run, plan->count);
    double elapsed_s = run->timed_s > 0 ? run->timed_s : schedule_clock_s() - start_s;
    if (operation->check)
        operation->check(run);
    schedule_advance(plan, elapsed_s);
}

/* As for the patterns, a batch of many processes must be longer than the scheduler's slices. */
static struct schedule_limits limits_for(const struct schedule_limits *limits, int ranks)
{
    struct schedule_limits these = *limits;
    these.batch_s = ranks > 2 ? 0.1 : 0.01;
    return these;
}

static bool run_one(const char *name, const struct raw_operation *operation, size_t len_bytes,
                    int ranks, const struct schedule_limits *given)
{
    struct raw_run run = {.operation = operation, .len_bytes = len_bytes, .ranks = ranks};
    const struct schedule_limits limits = limits_for(given, ranks);
    const size_t span_bytes = operation->span ? operation->span(&run) : 2 * len_bytes;
    const size_t room_bytes = span_bytes > LEAST_BYTES ? span_bytes : LEAST_BYTES;
    struct schedule plan;

    printf("begin %s\n", name);
    fflush(stdout);
    memory_map(&run, operation->shared, room_bytes);
    schedule_start(&plan, &limits, 1);
    while (plan.count > 0)
        batch_run(operation, &run, &plan);
    if (run.wrong)
        printf("end %s WRONG\n", name);
    else
        printf("end %s %.2f\n", name, plan.best_s * 1e9);
    fflush(stdout);
    if (run.seen != run.to)
        munmap(run.seen, room_bytes);
    munmap(run.to, room_bytes);
    munmap(run.from, room_bytes);
    return !run.wrong;
}

/* NAME is OPERATION:BYTES, or OPERATION:BYTES:PROCESSES. */
static bool name_run(const char *name, const struct schedule_limits *limits)
{
    char word[64], end;
    unsigned long len_bytes;
    int ranks = 1;
    const int words = sscanf(name, "%63[^:]:%lu:%d%c", word, &len_bytes, &ranks, &end);

    if ((words != 2 && words != 3) || len_bytes % sizeof(double) != 0 || len_bytes > 1 << 30 ||
        ranks < 1 || ranks > RAW_RANKS)
        fail("an argument is not OPERATION:BYTES or OPERATION:BYTES:PROCESSES");
    for (size_t group = 0; group < GROUPS; group++)
        for (const struct raw_operation *operation = groups[group]; operation->name; operation++)
            if (strcmp(operation->name, word) == 0 && ranks >= operation->ranks_least)
                return run_one(name, operation, len_bytes, ranks, limits);
    fail("no such operation");
}

int main(int argc, char **argv)
{
    struct schedule_limits limits = {.batch_s = 0.01, .budget_s = 1.5, .batches = 10};
    int status = 0;

    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--batches=", 10) == 0)
            limits.batches = atoi(argv[i] + 10);
        else if (strncmp(argv[i], "--budget=", 9) == 0)
            limits.budget_s = atof(argv[i] + 9);
        else if (strcmp(argv[i], "--list") == 0)
            for (size_t group = 0; group < GROUPS; group++)
                for (const struct raw_operation *operation = groups[group]; operation->name;
                     operation++)
                    printf("%s\n", operation->name);
        else
            status |= !name_run(argv[i], &limits);
    }
    return status;
}
