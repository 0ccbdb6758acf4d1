/* Executes generated programs: a table of steps, one per line, of which each rank executes its own
 * in order.  The program runs in turns or freely with random delays. In turns, each line waits for
 * the line before it through memory that the checker does not see, and no order results from it.
 * generate.py writes the tables; run.py starts this program as `steps TABLE TURNS [THREADS]`. TURNS
 * is an empty file for the turns and for the addresses of the ranks' arenas. Each of THREADS
 * threads executes some of its rank's steps, one at a time in table order. */
#define _GNU_SOURCE
#include "steps.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FIELDS = 14, SPINS = 200, MOST_RANKS = 32, MOST_THREADS = 8, ARENAS_AT = 1024 };
enum kind { ALLOCATED, IN_ARENA, SHARED, DYNAMIC };

static int rank, size;
static MPI_Win windows[WINDOWS];
static MPI_Aint attached_at[WINDOWS]; /* in each rank's arena; -1: not a dynamic window */
static MPI_Aint arenas[MOST_RANKS];
static MPI_Datatype types[TYPES];
static MPI_Request requests[REQUESTS];
static _Alignas(64) char arena[ARENA_BYTES];
static _Atomic int *turn;
static bool in_turns;
static unsigned delays; /* delays per 256 steps of a free program */
static unsigned chance;

static void fail(const char *what, const char *line)
{
    fprintf(stderr, "steps: rank %d: %s: %s\n", rank, what, line);
    MPI_Abort(MPI_COMM_WORLD, 3);
    abort();
}

/* --- turns --- */

static void turn_wait(int line)
{
    int now;
    for (int i = 0; (now = atomic_load(turn)) != line; i++)
        if (i > SPINS)
            syscall(SYS_futex, turn, FUTEX_WAIT, now, NULL, NULL, 0);
}

static void turn_pass(int line)
{
    atomic_store(turn, line + 1);
    syscall(SYS_futex, turn, FUTEX_WAKE, 1 << 16, NULL, NULL, 0);
}

static void delay(void)
{
    chance = chance * 1103515245U + 12345U;
    if ((chance >> 16 & 255) < delays)
        usleep(chance >> 24 & 127);
}

/* --- steps --- */

static const MPI_Datatype *basic_types(void)
{
    static MPI_Datatype basic[8];
    basic[0] = MPI_INT;
    basic[1] = MPI_UNSIGNED;
    basic[2] = MPI_LONG;
    basic[3] = MPI_DOUBLE;
    basic[4] = MPI_FLOAT;
    basic[5] = MPI_SHORT;
    basic[6] = MPI_BYTE;
    basic[7] = MPI_LONG_LONG;
    return basic;
}

static MPI_Op op_of(int which)
{
    const MPI_Op ops[] = {MPI_SUM, MPI_REPLACE, MPI_NO_OP, MPI_MAX, MPI_MIN};
    return ops[which];
}

static MPI_Datatype type_of(int which)
{
    return which < 8 ? basic_types()[which] : types[which - 8];
}

/* shape 0: contiguous; 1: every second element */
static void make_type(int which, int shape, int count, int of)
{
    if (shape == 0)
        MPI_Type_contiguous(count, basic_types()[of], &types[which - 8]);
    else
        MPI_Type_vector(count, 1, 2, basic_types()[of], &types[which - 8]);
    MPI_Type_commit(&types[which - 8]);
}

static MPI_Group group_of(int mask)
{
    int ranks[32], count = 0;
    MPI_Group all, some;
    for (int i = 0; i < size; i++)
        if (mask >> i & 1)
            ranks[count++] = i;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, count, ranks, &some);
    MPI_Group_free(&all);
    return some;
}

static void make_window(int which, enum kind kind, int bytes, int unit, int at, int same_op)
{
    void *base = NULL;
    MPI_Info info = MPI_INFO_NULL;
    if (same_op) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "accumulate_ops", same_op == 1 ? "same_op" : "same_op_no_op");
    }
    if (kind == ALLOCATED)
        MPI_Win_allocate(bytes, unit, info, MPI_COMM_WORLD, &base, &windows[which]);
    else if (kind == SHARED)
        MPI_Win_allocate_shared(bytes, unit, info, MPI_COMM_WORLD, &base, &windows[which]);
    else if (kind == IN_ARENA)
        MPI_Win_create(arena + at, bytes, unit, info, MPI_COMM_WORLD, &windows[which]);
    else
        MPI_Win_create_dynamic(info, MPI_COMM_WORLD, &windows[which]);
    if (kind == DYNAMIC)
        MPI_Win_attach(windows[which], arena + at, bytes);
    attached_at[which] = kind == DYNAMIC ? at : -1;
    if (base != NULL)
        memset(base, 0, (size_t)bytes);
    if (same_op)
        MPI_Info_free(&info);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void name_window(int which, int program, int number)
{
    char name[64];
    snprintf(name, sizeof name, "%d.%d.%d", program, which, number);
    MPI_Win_set_name(windows[which], name);
}

static int promises_of(int drawn)
{
    const int promises[] = {MPI_MODE_NOPRECEDE, MPI_MODE_NOSUCCEED, MPI_MODE_NOPUT,
                            MPI_MODE_NOSTORE};
    int all = 0;
    for (int i = 0; i < 4; i++)
        all |= drawn >> i & 1 ? promises[i] : 0;
    return all;
}

static void with_group(char what, int which, int mask, int promises)
{
    MPI_Group group = group_of(mask);
    if (what == 'P')
        MPI_Win_post(group, promises_of(promises), windows[which]);
    else
        MPI_Win_start(group, 0, windows[which]);
    MPI_Group_free(&group);
}

/* Address in the arena of the byte offset in a row's field; -1: none. */
static char *memory(int at)
{
    return at < 0 ? NULL : arena + at;
}

static void operate_as(const int f[FIELDS])
{
    struct operation operation = {.kind = f[0],
                                  .site = f[1],
                                  .win = windows[f[2]],
                                  .target = f[3],
                                  .disp = f[4],
                                  .count = f[5],
                                  .type = type_of(f[6]),
                                  .op = op_of(f[7]),
                                  .origin = memory(f[8]),
                                  .result = memory(f[9]),
                                  .compare = memory(f[10]),
                                  .request = f[11] < 0 ? NULL : &requests[f[11]],
                                  .origin_count = f[12],
                                  .origin_type = type_of(f[13])};
    if (attached_at[f[2]] >= 0)
        operation.disp += arenas[f[3]] + attached_at[f[2]];
    operate(&operation);
}

static void perform(const char *what, const int f[FIELDS], const char *line)
{
    int none = 0, all;
    if (strcmp(what, "op") == 0)
        operate_as(f);
    else if (strcmp(what, "flush") == 0)
        MPI_Win_flush(f[1], windows[f[0]]);
    else if (strcmp(what, "flush_all") == 0)
        MPI_Win_flush_all(windows[f[0]]);
    else if (strcmp(what, "flush_local") == 0)
        MPI_Win_flush_local(f[1], windows[f[0]]);
    else if (strcmp(what, "flush_local_all") == 0)
        MPI_Win_flush_local_all(windows[f[0]]);
    else if (strcmp(what, "lock") == 0)
        MPI_Win_lock(f[2] ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, f[1], 0, windows[f[0]]);
    else if (strcmp(what, "unlock") == 0)
        MPI_Win_unlock(f[1], windows[f[0]]);
    else if (strcmp(what, "lock_all") == 0)
        MPI_Win_lock_all(0, windows[f[0]]);
    else if (strcmp(what, "unlock_all") == 0)
        MPI_Win_unlock_all(windows[f[0]]);
    else if (strcmp(what, "fence") == 0)
        MPI_Win_fence(promises_of(f[1]), windows[f[0]]);
    else if (strcmp(what, "post") == 0)
        with_group('P', f[0], f[1], f[2]);
    else if (strcmp(what, "start") == 0)
        with_group('S', f[0], f[1], 0);
    else if (strcmp(what, "complete") == 0)
        MPI_Win_complete(windows[f[0]]);
    else if (strcmp(what, "wait_posted") == 0)
        MPI_Win_wait(windows[f[0]]);
    else if (strcmp(what, "barrier") == 0)
        MPI_Barrier(MPI_COMM_WORLD);
    else if (strcmp(what, "allreduce") == 0)
        MPI_Allreduce(&none, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    else if (strcmp(what, "bcast") == 0)
        MPI_Bcast(&none, 1, MPI_INT, f[0], MPI_COMM_WORLD);
    else if (strcmp(what, "send") == 0)
        send_from(memory(f[1]), f[0]);
    else if (strcmp(what, "recv") == 0)
        receive_into(memory(f[1]), f[0]);
    else if (strcmp(what, "wait") == 0)
        MPI_Wait(&requests[f[0]], MPI_STATUS_IGNORE);
    else if (strcmp(what, "type") == 0)
        make_type(f[0], f[1], f[2], f[3]);
    else if (strcmp(what, "type_free") == 0)
        MPI_Type_free(&types[f[0] - 8]);
    else if (strcmp(what, "window") == 0)
        make_window(f[0], f[1], f[2], f[3], f[4], f[5]);
    else if (strcmp(what, "name") == 0)
        name_window(f[0], f[1], f[2]);
    else if (strcmp(what, "free") == 0)
        MPI_Win_free(&windows[f[0]]);
    else
        fail("no such step", line);
}

/* Whether a step may wait for others and must let them proceed first. */
static bool is_waiting(const char *what)
{
    const char *const waiting[] = {"fence", "barrier", "allreduce", "bcast",      "window",
                                   "free",  "start",   "complete",  "wait_posted"};
    for (size_t i = 0; i < sizeof waiting / sizeof waiting[0]; i++)
        if (strcmp(what, waiting[i]) == 0)
            return true;
    return false;
}

/* The first field is the rank of the step. */
static void read_line(const char *line, int number)
{
    char what[32];
    int whose, at = 0, f[FIELDS] = {0};
    if (sscanf(line, "%d %31s%n", &whose, what, &at) != 2)
        fail("not a step", line);
    for (int i = 0, more; i < FIELDS && sscanf(line + at, "%d%n", &f[i], &more) == 1; i++)
        at += more;
    if (whose != rank)
        return;
    if (strcmp(what, "program") == 0) { /* in turns, delays, seed */
        in_turns = f[0] != 0;
        delays = (unsigned)f[1];
        chance = (unsigned)f[2] * 2654435761U + (unsigned)rank;
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            atomic_store(turn, number + size); /* past the lines of this step */
        MPI_Barrier(MPI_COMM_WORLD);
        return;
    }
    if (!in_turns) {
        delay();
        perform(what, f, line);
        return;
    }
    turn_wait(number);
    bool waits = is_waiting(what);
    if (waits)
        turn_pass(number);
    perform(what, f, line);
    if (!waits)
        turn_pass(number);
}

/* --- threads --- */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    FILE *table;
    int number, threads;
    bool ended;
} shared = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* The thread whose turn the next line is executes it. The others wait. */
static void *perform_table(void *which)
{
    char line[256];
    pthread_mutex_lock(&shared.mutex);
    while (!shared.ended) {
        if ((shared.number * 7 + shared.number / 5) % shared.threads != *(int *)which) {
            pthread_cond_wait(&shared.changed, &shared.mutex);
            continue;
        }
        shared.ended = fgets(line, sizeof line, shared.table) == NULL;
        if (!shared.ended)
            read_line(line, shared.number++);
        pthread_cond_broadcast(&shared.changed);
    }
    pthread_mutex_unlock(&shared.mutex);
    return NULL;
}

static void perform_all(int count)
{
    pthread_t threads[MOST_THREADS];
    int numbers[MOST_THREADS] = {0};
    shared.threads = count;
    for (int i = 1; i < count; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, perform_table, &numbers[i]) != 0)
            fail("no threads", "");
    }
    perform_table(&numbers[0]);
    for (int i = 1; i < count; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    MPI_Aint own;
    int threads = argc == 4 ? atoi(argv[3]) : 0, level = MPI_THREAD_MULTIPLE;
    if (threads == 0)
        MPI_Init(&argc, &argv);
    else
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    shared.table = argc >= 3 ? fopen(argv[1], "r") : NULL;
    int turns = argc >= 3 ? open(argv[2], O_RDWR) : -1;
    if (shared.table == NULL || turns < 0 || size > MOST_RANKS || threads > MOST_THREADS ||
        level != MPI_THREAD_MULTIPLE)
        fail("usage: steps TABLE TURNS [THREADS]", argc > 1 ? argv[1] : "");
    turn = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, turns, 0);
    if (turn == MAP_FAILED)
        fail("no memory for turns", argv[2]);
    MPI_Get_address(arena, &own);
    MPI_Allgather(&own, 1, MPI_AINT, arenas, 1, MPI_AINT, MPI_COMM_WORLD);
    if (rank == 0)
        memcpy((char *)turn + ARENAS_AT, arenas, sizeof arenas);
    perform_all(threads < 1 ? 1 : threads);
    fclose(shared.table);
    MPI_Finalize();
    return 0;
}
