/* Window creation with bad arguments on no, one or all ranks. Every rank gets the same error class,
 * one that some rank's arguments deserve, and no window. No rank waits forever.  The communicator
 * works as before. */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>

enum { HUGE_SHIFT = 52 }; /* more memory than any node has */

struct request {
    enum fuzz_function function;
    MPI_Aint size, unit;
    void *base;
    MPI_Info info;
};

/* The last two only where all ranks share memory: creator_count. */
static const enum fuzz_function creators[] = {FUZZ_Win_create,           FUZZ_Win_create_c,
                                              FUZZ_Win_allocate,         FUZZ_Win_allocate_c,
                                              FUZZ_Win_create_dynamic,   FUZZ_Win_allocate_shared,
                                              FUZZ_Win_allocate_shared_c};
static unsigned char memory[4096];

static size_t creator_count(void)
{
    return COUNT_OF(creators) - (ranks_share_memory() ? 0 : 2);
}

static bool is_create(enum fuzz_function function)
{
    return function == FUZZ_Win_create || function == FUZZ_Win_create_c;
}

static bool is_wide(enum fuzz_function function)
{
    return function == FUZZ_Win_create_c || function == FUZZ_Win_allocate_c ||
           function == FUZZ_Win_allocate_shared_c;
}

/* Keys that creation reads, with valid and invalid values. */
static void draw_info(struct request *request, struct random *random)
{
    static const char *const keys[] = {"alloc_shared_noncontig",
                                       "mpi_minimum_memory_alignment",
                                       "same_size",
                                       "no_locks",
                                       "accumulate_ordering",
                                       "accumulate_ops",
                                       "mpi_accumulate_granularity",
                                       "unheard_of"};
    static const char *const values[] = {
        "true",      "false", "",
        "4096",      "128",   "0",
        "-1",        "65536", "rar,waw",
        ",,,",       "none",  "same_op",
        "truefalse", "0x40",  "a value that is much longer than that of any hint"};
    request->info = MPI_INFO_NULL;
    if (one_in(random, 2))
        return;
    MPI_Info_create(&request->info);
    for (int i = below(random, 5); i > 0; i--) {
        const char *value = values[random_below(random, COUNT_OF(values))];
        MPI_Info_set(request->info, keys[random_below(random, COUNT_OF(keys))],
                     value[0] ? value : " ");
    }
}

static void draw_good(struct request *request, struct random *random)
{
    static const MPI_Aint units[] = {1, 2, 3, 8, 4096, 0x7fffffff};
    request->size = one_in(random, 4) ? 0 : below(random, 4096);
    request->unit = units[random_below(random, COUNT_OF(units))];
    request->base = one_in(random, 4) && request->size == 0 ? NULL : memory;
    if (one_in(random, 6) && is_wide(request->function))
        request->unit = ((MPI_Aint)1 << 40) + 1;
}

/* Returns the fault that it introduces. */
static unsigned spoil(struct request *request, struct random *random)
{
    unsigned faults = 0;
    while (faults == 0) {
        if (one_in(random, 2)) {
            request->unit = one_in(random, 3)            ? 0
                            : is_wide(request->function) ? fuzz_bad_aint(random)
                                                         : fuzz_bad_int(random);
            faults |= request->unit <= 0 ? FAULT_DISP : 0;
        }
        if (one_in(random, 2)) {
            request->size = fuzz_bad_aint(random);
            if (request->size >= 0)
                request->size = -1 - below(random, 5);
            faults |= FAULT_SIZE;
        } else if (!is_create(request->function) && one_in(random, 2)) {
            request->size =
                ((MPI_Aint)1 << (HUGE_SHIFT + below(random, 63 - HUGE_SHIFT))) - below(random, 2);
            faults |= FAULT_NO_MEM;
        } else if (is_create(request->function) && one_in(random, 2)) {
            request->size = 1 + below(random, 100);
            request->base = NULL;
            faults |= FAULT_BASE;
        }
    }
    return faults;
}

static int create(const struct request *request, MPI_Comm comm, MPI_Win *win, void **base)
{
    const struct request *r = request;
    switch (request->function) {
    case FUZZ_Win_create:
        return FUZZ(Win_create, r->base, r->size, (int)r->unit, r->info, comm, win);
    case FUZZ_Win_create_c:
        return FUZZ(Win_create_c, r->base, r->size, r->unit, r->info, comm, win);
    case FUZZ_Win_allocate:
        return FUZZ(Win_allocate, r->size, (int)r->unit, r->info, comm, base, win);
    case FUZZ_Win_allocate_c:
        return FUZZ(Win_allocate_c, r->size, r->unit, r->info, comm, base, win);
    case FUZZ_Win_allocate_shared:
        return FUZZ(Win_allocate_shared, r->size, (int)r->unit, r->info, comm, base, win);
    case FUZZ_Win_allocate_shared_c:
        return FUZZ(Win_allocate_shared_c, r->size, r->unit, r->info, comm, base, win);
    default: return FUZZ(Win_create_dynamic, r->info, comm, win);
    }
}

static void describe(const struct request *request, MPI_Comm comm)
{
    fuzz_describe("%s(base %s, size %ld, unit %ld, info %s, %s)", fuzz_name(request->function),
                  request->base ? "set" : "NULL", (long)request->size, (long)request->unit,
                  request->info == MPI_INFO_NULL ? "null" : "set",
                  comm == MPI_COMM_WORLD ? "world" : "comm");
}

/* All ranks agree on the fault, or on success. */
static bool agree(MPI_Comm comm, unsigned fault)
{
    unsigned pair[2] = {fault, ~fault}, most[2];
    MPI_Allreduce(pair, most, 2, MPI_UNSIGNED, MPI_MAX, comm);
    return CHECK(most[0] == fault && ~most[1] == fault, "%.250s: not the same answer on all ranks",
                 fuzz_description());
}

/* A new window has the requested size and unit, and its first and last bytes are writable. */
static void look_at(const struct request *request, MPI_Win win, unsigned char *base)
{
    void *value;
    int flag = 0;
    CHECK_OK(FUZZ(Win_get_attr, win, MPI_WIN_SIZE, &value, &flag));
    if (request->function == FUZZ_Win_create_dynamic)
        return;
    CHECK(flag && *(MPI_Aint *)value == request->size, "%.250s: another size", fuzz_description());
    if (!is_create(request->function) && request->size > 0)
        base[0] = base[request->size - 1] = 1;
}

static void create_once(MPI_Comm comm, struct random *shared, struct random *own)
{
    struct request request = {.function = creators[random_below(shared, creator_count())]};
    int n, me;
    MPI_Win win = MPI_WIN_NULL;
    void *base = NULL;
    unsigned fault = 0, faults;
    MPI_Comm_size(comm, &n);
    MPI_Comm_rank(comm, &me);
    int who = one_in(shared, 2)   ? below(shared, n)
              : one_in(shared, 2) ? n
                                  : -1; /* one, all or no ranks */
    draw_info(&request, own);
    draw_good(&request, own);
    if ((who == me || who == n) && request.function != FUZZ_Win_create_dynamic)
        fault = spoil(&request, own);
    MPI_Allreduce(&fault, &faults, 1, MPI_UNSIGNED, MPI_BOR, comm);
    describe(&request, comm);
    int code = create(&request, comm, &win, &base);
    bool made = fuzz_judge((struct verdict){faults, 0}, code);
    if (agree(comm, fuzz_fault_of(code)) && made) {
        look_at(&request, win, base);
        CHECK_OK(FUZZ(Win_free, &win));
        CHECK(win == MPI_WIN_NULL, "MPI_Win_free leaves the handle");
    }
    if (request.info != MPI_INFO_NULL)
        MPI_Info_free(&request.info);
}

/* Faults that a rank detects alone. */
static void create_alone(MPI_Comm comm, struct random *own)
{
    struct request request = {.function = creators[random_below(own, creator_count())],
                              .info = MPI_INFO_NULL};
    MPI_Win win = MPI_WIN_NULL;
    void *base = NULL;
    draw_good(&request, own);
    describe(&request, comm);
    fuzz_judge((struct verdict){FAULT_COMM, 0}, create(&request, comm, &win, &base));
    CHECK(win == MPI_WIN_NULL, "%.250s: a handle of a window that was not made",
          fuzz_description());
}

/* Between the even and the odd ranks; MPI_COMM_NULL with a single rank. */
static MPI_Comm make_intercomm(void)
{
    MPI_Comm half, inter = MPI_COMM_NULL;
    if (world_size < 2)
        return inter;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - world_rank % 2, 0, &inter);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    MPI_Comm_free(&half);
    return inter;
}

void creation_with_random_arguments(enum window_kind kind)
{
    struct random shared = random_start(130), own = fuzz_own(130);
    MPI_Comm comm, inter = make_intercomm();
    (void)kind;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < fuzz_calls() / 20; i++) {
        create_once(comm, &shared, &own);
        if (one_in(&own, 4))
            create_alone(MPI_COMM_NULL, &own);
        if (inter != MPI_COMM_NULL && one_in(&own, 8))
            create_alone(inter, &own);
    }
    MPI_Comm_free(&comm);
    if (inter != MPI_COMM_NULL)
        MPI_Comm_free(&inter);
}
