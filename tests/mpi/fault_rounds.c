/* Runs scenarios of fault.h one after the other in one job: each round has a victim of its own, and
 * the survivors make the next round's window. faults.py starts it: PROGRAM FOLDER
 * SCENARIO:MEMORY:VICTIM:TIME..., the victims by their ranks in MPI_COMM_WORLD, no rank twice.
 *
 * A survivor reports each round in a file of its own, FOLDER/round-K.RANK: the verdict (fault.c)
 * and the KiB of its memory file while the window lives. MPI_Win_free then fails and still frees
 * the window. The report adds counts after it: mappings except the hosts' own, sockets, other
 * descriptors and KiB of the memory file. FOLDER/rank.RANK marks that the rank has finished. */
#include "fault.h"

#include "footprint.h"
#include "memory_file.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ROUNDS_MOST = 16 };

static struct round {
    const struct scenario *scenario;
    bool allocate;
    int victim; /* in MPI_COMM_WORLD */
    char time[16];
    MPI_Comm living;
} rounds[ROUNDS_MOST];
static int round_count;

static void read_rounds(int count, char **words)
{
    char name[32], memory[16];
    for (int i = 0; i < count && i < ROUNDS_MOST; i++) {
        struct round *round = &rounds[round_count++];
        if (sscanf(words[i], "%31[^:]:%15[^:]:%d:%15s", name, memory, &round->victim,
                   round->time) != 4) {
            fprintf(stderr, "no round: %s\n", words[i]);
            exit(2);
        }
        round->scenario = scenario_find(name);
        round->allocate = strcmp(memory, "allocate") == 0;
    }
}

/* The round in which a rank dies, or round_count. */
static int dies_in(int rank)
{
    int round = 0;
    while (round < round_count && rounds[round].victim != rank)
        round++;
    return round;
}

static bool is_victim(int rank)
{
    return dies_in(rank) < round_count;
}

/* Waits until all survivors have finished, or a generous time has passed. */
static void await_survivors(const char *folder, int size, double most_seconds)
{
    double end = seconds_now() + most_seconds;
    for (int rank = 0; rank < size; rank++)
        while (!is_victim(rank) && !file_exists(folder, "rank", rank) && seconds_now() < end)
            usleep(5000);
}

static void outlast_survivors(const char *folder, int size, pid_t process)
{
    (void)process;
    await_survivors(folder, size, 60);
}

/* Each round's communicator, while all ranks live. */
static void make_communicators(int rank)
{
    for (int i = 0; i < round_count; i++)
        MPI_Comm_split(MPI_COMM_WORLD, dies_in(rank) < i ? MPI_UNDEFINED : 0, rank,
                       &rounds[i].living);
}

static void begin_round(const struct round *round)
{
    MPI_Group all, living;
    living_ranks = round->living;
    MPI_Comm_rank(living_ranks, &world_rank);
    MPI_Comm_size(living_ranks, &world_size);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Comm_group(living_ranks, &living);
    MPI_Group_translate_ranks(all, 1, &round->victim, living, &victim);
    MPI_Group_free(&all);
    MPI_Group_free(&living);
    setenv("TEST_DEATH_TIME", round->time, 1);
    window_make(round->allocate);
}

/* The level that the scenarios need: a higher one would make the library lock where it need not. */
static int thread_level(void)
{
    for (int i = 0; i < round_count; i++)
        if (strcmp(rounds[i].scenario->name, "threads") == 0)
            return MPI_THREAD_MULTIPLE;
    return MPI_THREAD_SINGLE;
}

/* Mappings of the hosts' own shared memory, which they make as their ranks connect. */
static long hosts_mappings(void)
{
    char line[512];
    long count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        count += strstr(line, " /SYSV") != NULL || strstr(line, " /dev/shm/") != NULL;
    fclose(maps);
    return count;
}

/* Connections between nodes: those to a dead rank close. */
static long sockets(void)
{
    long count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        struct stat info;
        count += fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode);
    }
    return count;
}

static void play(const char *folder, int number, int rank)
{
    const struct round *round = &rounds[number];
    char name[32], line[VERDICT_BYTES], text[VERDICT_BYTES + 200];
    begin_round(round);
    long lives_kib = memory_file_kib();
    if (world_rank == victim)
        round->scenario->prepare();
    else if (round->scenario->survivor)
        round->scenario->survivor();
    MPI_Barrier(living_ranks);
    if (world_rank == victim)
        round->scenario->last_act();
    double begin = seconds_now();
    int code = round->scenario->wait();
    verdict_of(round->scenario, code, seconds_now() - begin, line);
    begin = seconds_now();
    code = MPI_Win_free(&win);
    window_forget();
    struct footprint print = footprint_read();
    long socket_count = sockets();
    bool is_right = code != MPI_SUCCESS && win == MPI_WIN_NULL;
    snprintf(text, sizeof text, "%.3f %d %ld %ld %ld %ld %ld %d %s", seconds_now() - begin,
             is_right, lives_kib, print.mappings - hosts_mappings(), socket_count,
             print.descriptors - socket_count, memory_file_kib(), victim, line);
    snprintf(name, sizeof name, "round-%d", number);
    file_write(folder, name, rank, text);
}

int main(int argc, char **argv)
{
    int rank, size, level;
    if (argc < 3) {
        fprintf(stderr, "usage: %s FOLDER SCENARIO:MEMORY:VICTIM:TIME...\n", argv[0]);
        return 2;
    }
    read_rounds(argc - 2, argv + 2);
    signal(SIGUSR1, SIG_IGN);
    hold_connection_open(argv[1], is_victim, outlast_survivors);
    MPI_Init_thread(&argc, &argv, thread_level(), &level);
    signal(SIGUSR1, SIG_IGN); /* MPICH's launcher notifies survivors of a death by this signal */
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    make_communicators(rank);
    for (int i = 0; i < round_count; i++)
        play(argv[1], i, rank);
    file_write(argv[1], "rank", rank, "through");
    await_survivors(argv[1], size, 20);
    _exit(0);
}
