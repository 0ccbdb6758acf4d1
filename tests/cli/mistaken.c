/* A program of one rank with a mistake, which checks that the report has no effect on it: `mistaken
 * [right] [abort | exit N | leave | chdir FOLDER | file | post | many N]...`.  Prints NAME=value
 * lines. */
#include <dirent.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../mpi/file_size_limit.h"

static volatile sig_atomic_t children_ended;

static void child_ended(int number)
{
    (void)number;
    children_ended = children_ended + 1;
}

static int descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder != NULL && readdir(folder) != NULL)
        count++;
    if (folder != NULL)
        closedir(folder);
    return count;
}

static void mistake(int right, MPI_Win win)
{
    int value = 42;
    if (right)
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win); /* the mistake */
    if (right)
        MPI_Win_unlock(0, win);
}

/* Makes the mistake, and prints its observable effects. */
static void look(int right, MPI_Win win)
{
    int before = descriptors();
    pid_t child = waitpid(-1, NULL, WNOHANG); /* a host may have a child of its own */
    mistake(right, win);
    printf("descriptors=%d\n", descriptors() - before);
    struct timespec some = {.tv_nsec = 200000000};
    nanosleep(&some, NULL); /* the helper has ended by then */
    printf("children=%d\n", (int)children_ended);
    printf("wait=%s\n", waitpid(-1, NULL, WNOHANG) == child ? "same" : "changed");
    fflush(stdout);
}

/* One finding each, since the window's name changes. */
static void repeat(MPI_Win win, int times)
{
    char name[32];
    for (int i = 0; i < times; i++) {
        snprintf(name, sizeof name, "halo %d", i);
        MPI_Win_set_name(win, name);
        mistake(0, win);
    }
}

int main(int argc, char **argv)
{
    int *memory;
    MPI_Win win;
    int right = argc > 1 && strcmp(argv[1], "right") == 0;
    signal(SIGCHLD, child_ended);
    MPI_Init(&argc, &argv);
    limit_file_bytes();
    MPI_Win_allocate(4096, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_set_name(win, "halo");
    children_ended = 0;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "named") == 0)
            MPI_Win_set_name(win, "ha\nlo\033[31m\302\233H");
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "chdir") == 0 && chdir(argv[i + 1]) != 0)
            return 9;
    look(right, win);
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "post") == 0) { /* no rank starts: no host could free the window */
            MPI_Group group;
            MPI_Comm_group(MPI_COMM_WORLD, &group);
            MPI_Win_post(group, 0, win);
            MPI_Group_free(&group);
        }
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "many") == 0)
            repeat(win, atoi(argv[i + 1]));
    MPI_Win_free(&win);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "abort") == 0)
            MPI_Abort(MPI_COMM_WORLD, 3);
        if (strcmp(argv[i], "leave") == 0)
            exit(0);
        if (strcmp(argv[i], "file") == 0) /* calls that the checker does not model */
            for (int opened = 0; opened < 3; opened++) {
                MPI_File file;
                if (MPI_File_open(MPI_COMM_WORLD, argv[0], MPI_MODE_RDONLY, MPI_INFO_NULL, &file) ==
                    MPI_SUCCESS)
                    MPI_File_close(&file);
            }
    }
    MPI_Finalize();
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "exit") == 0)
            return atoi(argv[i + 1]);
    printf("unfinished line=1"); /* unflushed output, which exit must write */
    return 0;
}
