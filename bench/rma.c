/* The benchmark's MPI program: times one-sided patterns, each in its own window, and verifies their
 * data. A time is printed only when every rank had the right data after each batch; otherwise the
 * line has WRONG. Started by `oriel bench`, or by hand: `mpiexec -n 2 rma put:allocate:8:1
 * fence:create:0:1`. It does not depend on Oriel.
 *
 * Output of rank 0, one line each: `library TEXT`, then for each argument NAME `begin NAME`; `path
 * NAME WORD` and `reason NAME TEXT` when the window's info has them; and `end NAME NANOSECONDS` (or
 * WRONG): the time of one operation in the best batch. */
#define _POSIX_C_SOURCE 200809L
#include "rma.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const memory_names[RMA_MEMORIES] = {"allocate", "create", "dynamic", "shared"};
static const struct rma_pattern *const groups[] = {
    rma_contiguous, rma_atomics,  rma_datatypes, rma_elements, rma_epochs,
    rma_active,     rma_requests, rma_creation,  rma_short,    rma_notified};
static const struct rma_place places[] = {
    {"huge-page", 0}, {"page", 4096},        {"line", 64},           {"element", 8},
    {"odd-byte", 1},  {"line-crossing", 60}, {"page-crossing", 4092}};
static const char at[] = "-at-";
enum { GROUPS = sizeof groups / sizeof *groups, PLACES = sizeof places / sizeof *places };

void rma_fail(const char *what)
{
    fprintf(stderr, "rma: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 2);
    abort();
}

static const struct rma_place *place_find(const char *name)
{
    for (size_t place = 0; place < PLACES; place++)
        if (strcmp(places[place].name, name) == 0)
            return &places[place];
    return NULL;
}

static const struct rma_pattern *pattern_find(const char *name)
{
    for (size_t group = 0; group < GROUPS; group++)
        for (const struct rma_pattern *pattern = groups[group]; pattern->name; pattern++)
            if (strcmp(pattern->name, name) == 0)
                return pattern;
    return NULL;
}

/* NAME is PATTERN:MEMORY:BYTES:IN_FLIGHT, or PATTERN-at-PLACE:... with an alignment; returns false
 * for an invalid name. */
static bool name_parse(const char *name, struct rma_run *run)
{
    char pattern[64], memory[16], end;
    unsigned long len_bytes;

    if (sscanf(name, "%63[^:]:%15[^:]:%lu:%d%c", pattern, memory, &len_bytes, &run->in_flight,
               &end) != 4)
        return false;
    char *place = strstr(pattern, at);
    if (place) {
        *place = '\0';
        run->place = place_find(place + sizeof at - 1);
    }
    run->pattern = pattern_find(pattern);
    run->len_bytes = len_bytes;
    for (run->memory = 0; run->memory < RMA_MEMORIES; run->memory++)
        if (strcmp(memory, memory_names[run->memory]) == 0)
            break;
    if (place && !(run->pattern && run->pattern->placeable && run->place && run->in_flight == 1))
        return false;
    return run->pattern && run->memory < RMA_MEMORIES &&
           (run->in_flight == 1 || run->in_flight == RMA_SLOTS) &&
           len_bytes % sizeof(double) == 0 && len_bytes <= 1 << 30;
}

/* True when the last line shows that Oriel is active: then a window's info has the path to its
 * memory. */
static bool print_library(int rank)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int len;

    MPI_Get_library_version(text, &len);
    for (char *c = text; *c; c++)
        if (*c == '\n' || *c == '\t')
            *c = ' ';
    if (rank == 0)
        printf("library %s\n", text);
    return strstr(text, "Oriel") != NULL;
}

static bool run_one(const char *name, const struct schedule_limits *limits, bool tells_way)
{
    struct rma_run run = {.batch = 0};
    double best_s;

    MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
    if (!name_parse(name, &run)) { /* not with MPI_Abort, after which launchers may lose output */
        if (run.rank == 0)
            fprintf(stderr, "rma: no such pattern, memory or size: %s\n", name);
        return false;
    }
    MPI_Comm_size(MPI_COMM_WORLD, &run.ranks);
    if (run.rank == 0) {
        printf("begin %s\n", name);
        fflush(stdout);
    }
    rma_run_open(&run);
    bool good = rma_measure(&run, limits, &best_s);
    if (tells_way)
        rma_path_print(&run, name);
    if (run.rank == 0 && good)
        printf("end %s %.2f\n", name, best_s * 1e9);
    else if (run.rank == 0)
        printf("end %s WRONG\n", name);
    fflush(stdout);
    rma_run_close(&run);
    return good;
}

static void list_print(void)
{
    for (size_t group = 0; group < GROUPS; group++)
        for (const struct rma_pattern *pattern = groups[group]; pattern->name; pattern++) {
            printf("%s\n", pattern->name);
            for (size_t place = 0; pattern->placeable && place < PLACES; place++)
                printf("%s%s%s\n", pattern->name, at, places[place].name);
        }
}

/* With more ranks than processors, a batch must be longer than the scheduler's slices, so that
 * order returns after a wait. */
static struct schedule_limits limits_usual(int ranks)
{
    return (struct schedule_limits){
        .batch_s = ranks > 2 ? 0.1 : 0.01, .budget_s = 1.5, .batches = 10, .least = 1};
}

/* For MPICH versions that hang in MPI_Finalize (--leaves): all output is done, and the launcher
 * must see a normal exit, which it learns through PMI 1.1. */
_Noreturn static void exit_without_finalize(int status)
{
    const char *pmi = getenv("PMI_FD");
    FILE *launcher = pmi ? fdopen(atoi(pmi), "r+") : NULL;

    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    if (launcher && (setvbuf(launcher, NULL, _IONBF, 0) != 0 ||
                     /* cppcheck-suppress IOWithoutPositioning; it is an unbuffered socket */
                     fputs("cmd=finalize\n", launcher) < 0 || fgetc(launcher) == EOF))
        fprintf(stderr, "rma: the launcher did not answer\n");
    _exit(status);
}

int main(int argc, char **argv)
{
    int rank, ranks, status = 0;
    bool leaves = false;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        list_print();
        MPI_Finalize();
        return 0;
    }
    if (ranks < 2 || ranks > RMA_RANKS)
        rma_fail("from 2 to 64 ranks are needed");
    struct schedule_limits limits = limits_usual(ranks);
    bool tells_way = print_library(rank);
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--batches=", 10) == 0)
            limits.batches = atoi(argv[i] + 10);
        else if (strncmp(argv[i], "--budget=", 9) == 0)
            limits.budget_s = atof(argv[i] + 9);
        else if (strncmp(argv[i], "--least=", 8) == 0)
            limits.least = strtoull(argv[i] + 8, NULL, 10);
        else if (strcmp(argv[i], "--leaves") == 0)
            leaves = true;
        else
            status |= !run_one(argv[i], &limits, tells_way);
    }
    if (leaves)
        exit_without_finalize(status);
    MPI_Finalize();
    return status;
}
