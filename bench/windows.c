/* The cost of windows: the time to create and free them, and the memory of a process for the first
 * window, for each more, and for each peer that it has accessed.  Prints a line "name value value"
 * for each figure, with the values of rank 0 and rank 1, whose windows share no words. Run by
 * bench/scaling: `mpiexec -n 2 windows BATCHES COUNT LIVE`. Of Oriel it uses only the memory file's
 * name. */
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BYTES = 64, FIGURES = 6 };

/* Of this process, in KiB except for the last two. */
struct footprint {
    long anonymous, file, tables, space, mappings, descriptors;
};

static int rank, ranks;
static char *memory; /* given to MPI_Win_create */

static long status_field(const char *field)
{
    char line[256];
    long value = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, field, strlen(field)) == 0)
            value = atol(line + strlen(field));
    if (status != NULL)
        fclose(status);
    return value;
}

static long count_lines(const char *path)
{
    long lines = 0;
    FILE *file = fopen(path, "r");
    for (int c; file != NULL && (c = fgetc(file)) != EOF;)
        lines += c == '\n';
    if (file != NULL)
        fclose(file);
    return lines;
}

/* Counts the descriptors; *file receives the allocated size of the process's own memory file. */
static long descriptors_count(long *file)
{
    long count = 0;
    DIR *folder = opendir("/proc/self/fd");
    *file = 0;
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL; count++) {
        char name[64] = "";
        struct stat info;
        if (readlinkat(dirfd(folder), entry->d_name, name, sizeof name - 1) > 0 &&
            strcmp(name, "/memfd:oriel (deleted)") == 0 && fstat(atoi(entry->d_name), &info) == 0)
            *file += info.st_blocks / 2;
    }
    if (folder != NULL)
        closedir(folder);
    return count;
}

static struct footprint footprint_read(void)
{
    struct footprint now;
    now.descriptors = descriptors_count(&now.file);
    now.anonymous = status_field("RssAnon:");
    now.tables = status_field("VmPTE:");
    now.space = status_field("VmSize:");
    now.mappings = count_lines("/proc/self/maps");
    return now;
}

static void say(const char *name, double value)
{
    double all[2] = {value, value};
    if (ranks > 1 && rank == 1)
        MPI_Send(&value, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
    if (ranks > 1 && rank == 0)
        MPI_Recv(&all[1], 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0)
        printf("%s %.4f %.4f\n", name, all[0], all[1]);
}

static void say_growth(const char *when, const struct footprint *before,
                       const struct footprint *after, int windows)
{
    static const char *const names[FIGURES] = {"anonymous-kib", "file-kib", "tables-kib",
                                               "space-kib",     "mappings", "descriptors"};
    const long growth[FIGURES] = {
        after->anonymous - before->anonymous, after->file - before->file,
        after->tables - before->tables,       after->space - before->space,
        after->mappings - before->mappings,   after->descriptors - before->descriptors};
    for (int i = 0; i < FIGURES; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.%s", when, names[i]);
        say(name, (double)growth[i] / windows);
    }
}

static MPI_Win open_window(int given)
{
    MPI_Win win;
    void *base;
    if (given)
        MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    else
        MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    return win;
}

/* Microseconds for each, in the best batch. */
static double time_pairs(int given, int batches, int count)
{
    double best = 1e30;
    for (int batch = 0; batch < batches; batch++) {
        double begin = MPI_Wtime();
        for (int i = 0; i < count; i++) {
            MPI_Win win = open_window(given);
            MPI_Win_free(&win);
        }
        double took = (MPI_Wtime() - begin) / count * 1e6;
        best = took < best ? took : best;
    }
    return best;
}

/* Puts one word to every rank: verifies the window, and uses the mappings of all peers. */
static void reach_all(void)
{
    int *words;
    MPI_Win win;
    /* one host loses puts to odd sizes */
    MPI_Aint size_bytes = ((MPI_Aint)sizeof *words * ranks + 63) / 64 * 64;
    MPI_Win_allocate(size_bytes, sizeof *words, MPI_INFO_NULL, MPI_COMM_WORLD, &words, &win);
    MPI_Win_lock_all(0, win);
    for (int to = 0; to < ranks; to++)
        MPI_Put(&rank, 1, MPI_INT, to, rank, 1, MPI_INT, win);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    for (int from = 0; from < ranks; from++)
        if (words[from] != from)
            MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
}

static void measure(int batches, int count, int live)
{
    MPI_Win *wins = malloc((size_t)(live + 1) * sizeof *wins);
    struct footprint none = footprint_read();
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    MPI_Win first = open_window(0);
    say("first-us", (MPI_Wtime() - begin) * 1e6);
    struct footprint one = footprint_read();
    say_growth("first", &none, &one, 1);
    say("allocate-us", time_pairs(0, batches, count));
    say("create-us", time_pairs(1, batches, count));
    struct footprint before = footprint_read();
    for (int i = 0; i < live; i++)
        wins[i] = open_window(0);
    struct footprint after = footprint_read();
    if (live > 0)
        say_growth("more", &before, &after, live);
    for (int i = 0; i < live; i++)
        MPI_Win_free(&wins[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    before = footprint_read();
    reach_all();
    after = footprint_read();
    say_growth("reached", &before, &after, 1);
    MPI_Win_free(&first);
    free(wins);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    memory = malloc(BYTES);
    if (argc != 4 || memory == NULL) {
        fprintf(stderr, "usage: windows BATCHES COUNT LIVE\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    measure(atoi(argv[1]), atoi(argv[2]), atoi(argv[3]));
    free(memory);
    MPI_Finalize();
    return 0;
}
