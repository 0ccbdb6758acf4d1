/* Runs the cases in its arguments, or all that can share a job: `offenders [--seed N] [--tolerant]
 * [--innocent | --guilty | CASE...]`.  `offenders --list` prints the cases without MPI.  run.py
 * starts this program under `oriel check`. */
#include "offenders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GROUPS = 64, DELAY_US = 1500 };

int rank, size;

static struct offender_case *cases;
static unsigned seed;
static MPI_Group groups[GROUPS];
static int groups_count;
static char current[128];
static bool tolerant; /* without the checker, to see that an offender terminates */

void offender_enter(struct offender_case *entry)
{
    struct offender_case **at = &cases;
    while (*at != NULL && strcmp((*at)->name, entry->name) < 0)
        at = &(*at)->next;
    entry->next = *at;
    *at = entry;
}

void delay(void)
{
    unsigned drawn = (unsigned)rand_r(&seed);
    if (drawn % 2 == 0)
        return;
    struct timespec some = {.tv_nsec = (long)(drawn / 2 % DELAY_US) * 1000};
    nanosleep(&some, NULL);
}

MPI_Win named(MPI_Win win)
{
    MPI_Win_set_name(win, current);
    if (tolerant)
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    return win;
}

MPI_Win hinted_window(int count, const char *key, const char *value)
{
    int *memory;
    MPI_Win win;
    MPI_Info info = MPI_INFO_NULL;
    if (value != NULL) {
        MPI_Info_create(&info);
        MPI_Info_set(info, key, value);
    }
    MPI_Win_allocate((MPI_Aint)count * (MPI_Aint)sizeof *memory, sizeof *memory, info,
                     MPI_COMM_WORLD, &memory, &win);
    if (value != NULL)
        MPI_Info_free(&info);
    memset(memory, 0, (size_t)count * sizeof *memory);
    return named(win);
}

MPI_Win ints_window(int count)
{
    return hinted_window(count, NULL, NULL);
}

MPI_Comm comm_handled(MPI_Comm from, MPI_Comm_errhandler_function *function)
{
    MPI_Errhandler handler;
    MPI_Comm comm;
    MPI_Comm_dup(from, &comm);
    MPI_Comm_create_errhandler(function, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
    return comm;
}

void win_handled(MPI_Win win, MPI_Win_errhandler_function *function)
{
    MPI_Errhandler handler;
    MPI_Win_create_errhandler(function, &handler);
    MPI_Win_set_errhandler(win, handler);
    MPI_Errhandler_free(&handler);
}

bool calls_back(void)
{
    int level;
    MPI_Query_thread(&level);
    return level < MPI_THREAD_MULTIPLE;
}

void fence_and_free(MPI_Win win)
{
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_free(&win);
}

static MPI_Group group_remember(MPI_Group group)
{
    if (groups_count == GROUPS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    groups[groups_count++] = group;
    return group;
}

MPI_Group group_of_first(int count)
{
    MPI_Group world, group;
    int range[1][3] = {{0, count - 1, 1}};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, range, &group);
    MPI_Group_free(&world);
    return group_remember(group);
}

MPI_Group group_of(int member)
{
    MPI_Group world, group;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &member, &group);
    MPI_Group_free(&world);
    return group_remember(group);
}

void notify(int whom)
{
    MPI_Send(NULL, 0, MPI_BYTE, whom, 7, MPI_COMM_WORLD);
}

void await_notice(int whom)
{
    MPI_Recv(NULL, 0, MPI_BYTE, whom, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static const char twin[] = "_innocent";

static int list(void)
{
    for (const struct offender_case *at = cases; at != NULL; at = at->next)
        for (int right = 0; right < 2; right++)
            printf("%s%s\t%s\t%s\t%d\t%d\t%s\t%s\n", at->name, right ? twin : "", at->rule,
                   at->file, at->line, at->ranks, right ? "innocent" : "guilty",
                   at->apart             ? "apart"
                   : at->alone           ? "alone"
                   : at->without_threads ? "without threads"
                                         : "together");
    return 0;
}

static void case_run(const struct offender_case *chosen, bool right)
{
    if (size < chosen->ranks)
        return;
    snprintf(current, sizeof current, "%s%s", chosen->name, right ? twin : "");
    delay();
    chosen->run(right);
    while (groups_count > 0)
        MPI_Group_free(&groups[--groups_count]);
    MPI_Barrier(MPI_COMM_WORLD);
}

static int named_run(const char *name)
{
    for (const struct offender_case *at = cases; at != NULL; at = at->next) {
        size_t len = strlen(at->name);
        if (strncmp(name, at->name, len) == 0 &&
            (name[len] == '\0' || strcmp(name + len, twin) == 0)) {
            case_run(at, name[len] != '\0');
            return 0;
        }
    }
    fprintf(stderr, "there is no case %s\n", name);
    return 1;
}

int main(int argc, char **argv)
{
    int status = 0;
    int first = 1;
    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list();
    bool threads = argc > 1 && strcmp(argv[1], "--threads") == 0;
    first += threads;
    if (threads || &offenders_have_threads != NULL) {
        int provided;
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    } else {
        MPI_Init(&argc, &argv);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > first + 1 && strcmp(argv[first], "--seed") == 0) {
        seed = (unsigned)atoi(argv[first + 1]) * 64U + (unsigned)rank;
        first += 2;
    }
    for (int i = first; i < argc; i++) {
        if (strcmp(argv[i], "--tolerant") == 0) {
            tolerant = true;
            continue;
        }
        if (strcmp(argv[i], "--innocent") != 0 && strcmp(argv[i], "--guilty") != 0) {
            status |= named_run(argv[i]);
            continue;
        }
        for (const struct offender_case *at = cases; at != NULL; at = at->next)
            if (!at->alone)
                case_run(at, strcmp(argv[i], "--innocent") == 0);
    }
    MPI_Finalize();
    return status;
}
