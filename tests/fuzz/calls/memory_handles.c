/* Memory handles: each rank makes handles of random parts of its own window, opens them itself, and
 * reaches the part and no other byte until it withdraws the handle. Bytes that are no handle, and
 * handles of other ranks, are refused. */
#include "observed_window.h"

#include <string.h>

enum { HANDLES = 6, OPENED = 4 };

struct part {
    MPIX_Memory_handle handle;
    bool live; /* made, and not withdrawn */
    MPI_Aint offset, size_bytes;
};

enum epoch { EPOCH_NONE, EPOCH_ONE, EPOCH_ALL };

/* A window that was opened from a handle, which may be withdrawn since. */
struct opened {
    MPI_Win win;
    int part;
    uint32_t generation; /* of the part's handle */
    MPI_Aint size_bytes;
    enum epoch epoch;
};

struct handles {
    struct observed_window observed;
    struct part parts[HANDLES];
    uint32_t generations[HANDLES];
    struct opened opened[OPENED];
    MPIX_Memory_handle theirs; /* of another rank */
};

static bool is_current(const struct handles *handles, const struct opened *opened)
{
    return handles->parts[opened->part].live &&
           handles->generations[opened->part] == opened->generation;
}

/* Whether this process has an epoch on the part's present handle, or on any of the window. */
static bool has_epoch(const struct handles *handles, int part)
{
    for (int i = 0; i < OPENED; i++)
        if (handles->opened[i].epoch != EPOCH_NONE && (part < 0 || handles->opened[i].part == part))
            return true;
    return false;
}

/* --- the owner's calls --- */

static unsigned part_faults(const struct observed_window *observed, MPI_Aint disp, MPI_Aint size)
{
    const __int128 offset = (__int128)disp * observed->unit[0];
    unsigned faults = (disp < 0 ? FAULT_DISP : 0) | (size < 0 ? FAULT_SIZE : 0);
    if (faults == 0 && offset + size > observed->size[0])
        faults = FAULT_RANGE;
    return faults;
}

static void call_create(struct handles *handles, struct random *random)
{
    const struct observed_window *observed = &handles->observed;
    const int chosen = below(random, HANDLES);
    struct part *part = &handles->parts[chosen];
    MPI_Aint disp = below(random, (int)(observed->size[0] / observed->unit[0]) + 2);
    MPI_Aint size = one_in(random, 3) ? observed->size[0] - disp * observed->unit[0]
                                      : below(random, (int)observed->size[0] + 2);
    const bool no_handle = one_in(random, 16);
    disp = one_in(random, 16) ? fuzz_bad_aint(random) : disp;
    size = one_in(random, 16) ? fuzz_bad_aint(random) : size;
    if (part->live)
        return;
    struct verdict verdict = {part_faults(observed, disp, size) | (no_handle ? FAULT_ARG : 0), 0};
    fuzz_describe("Win_memory_handle_create(disp %ld, size %ld%s) of %ld bytes, unit %ld",
                  (long)disp, (long)size, no_handle ? ", no handle" : "", (long)observed->size[0],
                  (long)observed->unit[0]);
    if (!fuzz_judge(verdict, FUZZX(Win_memory_handle_create, observed->win, disp, size,
                                   no_handle ? NULL : &part->handle)) ||
        no_handle)
        return;
    part->live = true;
    part->offset = disp * observed->unit[0];
    part->size_bytes = size;
    handles->generations[chosen]++;
}

/* Bytes that are no handle, from a valid one where there is one; NULL for none. */
static MPIX_Memory_handle *garbage_draw(const struct handles *handles, MPIX_Memory_handle *out,
                                        struct random *random)
{
    const struct part *part = &handles->parts[below(random, HANDLES)];
    memset(out, below(random, 256), sizeof *out);
    if (one_in(random, 8))
        return NULL;
    if (one_in(random, 2))
        for (size_t i = 0; i < sizeof out->bytes; i++)
            out->bytes[i] = (unsigned char)random_next(random);
    else if (part->live) {
        *out = part->handle;
        out->bytes[below(random, (int)sizeof out->bytes)] ^=
            (unsigned char)(1u << below(random, 8));
    }
    return out;
}

static void call_free(struct handles *handles, struct random *random)
{
    MPIX_Memory_handle garbage, *handle = &garbage;
    const int chosen = below(random, HANDLES);
    struct part *part = &handles->parts[chosen];
    struct verdict verdict = {FAULT_ARG, 0};
    const char *what = "garbage";
    if (one_in(random, 6)) {
        handle = garbage_draw(handles, &garbage, random);
    } else if (one_in(random, 8)) {
        garbage = handles->theirs;
        what = "of another rank";
    } else {
        garbage = part->handle;
        what = part->live ? "live" : "withdrawn";
        verdict.must = !part->live ? FAULT_ARG : has_epoch(handles, chosen) ? FAULT_SYNC : 0;
    }
    fuzz_describe("Win_memory_handle_free(%s)", handle == NULL ? "NULL" : what);
    if (fuzz_judge(verdict, FUZZX(Win_memory_handle_free, handle)) && verdict.must == 0)
        part->live = false;
}

/* --- the opened window --- */

static void call_open(struct handles *handles, struct random *random)
{
    MPIX_Memory_handle garbage, *handle = &garbage;
    struct opened *opened = &handles->opened[below(random, OPENED)];
    const int chosen = below(random, HANDLES);
    const struct part *part = &handles->parts[chosen];
    const bool no_win = one_in(random, 16);
    MPI_Win win = MPI_WIN_NULL;
    struct verdict verdict = {part->live ? 0 : FAULT_ATTACH, 0};
    if (opened->win != MPI_WIN_NULL)
        return;
    if (one_in(random, 6) || handles->generations[chosen] == 0) {
        handle = garbage_draw(handles, &garbage, random);
        verdict.must = FAULT_ARG;
    } else {
        garbage = part->handle;
    }
    verdict.must |= no_win ? FAULT_ARG : 0;
    fuzz_describe("Win_memory_open(%s)", handle == NULL ? "NULL"
                                         : verdict.must ? "no live handle"
                                                        : "live");
    if (!fuzz_judge(verdict, FUZZX(Win_memory_open, handle, MPI_INFO_NULL, no_win ? NULL : &win))) {
        CHECK(win == MPI_WIN_NULL, "%.250s: it failed and set the window", fuzz_description());
        return;
    }
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    *opened =
        (struct opened){win, chosen, handles->generations[chosen], part->size_bytes, EPOCH_NONE};
}

static void call_close(struct opened *opened)
{
    MPI_Win copy = opened->win;
    fuzz_describe("Win_free of an opened handle, epoch %d", (int)opened->epoch);
    if (fuzz_judge((struct verdict){opened->epoch != EPOCH_NONE ? FAULT_SYNC : 0, 0},
                   FUZZ(Win_free, &copy)))
        opened->win = MPI_WIN_NULL;
}

/* Two epochs of this process, one of them exclusive, would wait for each other. */
static void call_lock(struct handles *handles, struct opened *opened, struct random *random)
{
    const bool all = one_in(random, 2);
    const int type = one_in(random, 2) ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE;
    struct verdict verdict = {opened->epoch != EPOCH_NONE    ? FAULT_SYNC
                              : !is_current(handles, opened) ? FAULT_ATTACH
                                                             : 0,
                              0};
    if (verdict.must == 0 && has_epoch(handles, -1))
        return;
    fuzz_describe("%s of an opened handle", all ? "Win_lock_all" : "Win_lock");
    if (fuzz_judge(verdict, all ? FUZZ(Win_lock_all, 0, opened->win)
                                : FUZZ(Win_lock, type, 0, 0, opened->win)))
        opened->epoch = all ? EPOCH_ALL : EPOCH_ONE;
}

static void call_unlock(struct opened *opened, struct random *random)
{
    const bool all = one_in(random, 2);
    struct verdict verdict = {opened->epoch == (all ? EPOCH_ALL : EPOCH_ONE) ? 0 : FAULT_SYNC, 0};
    fuzz_describe("%s of an opened handle", all ? "Win_unlock_all" : "Win_unlock");
    if (fuzz_judge(verdict,
                   all ? FUZZ(Win_unlock_all, opened->win) : FUZZ(Win_unlock, 0, opened->win)))
        opened->epoch = EPOCH_NONE;
}

/* A put of bytes, or a get. */
static void call_transfer(struct handles *handles, const struct opened *opened,
                          struct random *random)
{
    enum { MOST_BYTES = 64 };
    unsigned char bytes[MOST_BYTES];
    struct observed_window *observed = &handles->observed;
    const struct part *part = &handles->parts[opened->part];
    const MPI_Aint unit = observed->unit[0];
    const bool puts = one_in(random, 2);
    const int rank = one_in(random, 16) ? fuzz_bad_rank(random, 1) : 0;
    const int count = below(random, MOST_BYTES);
    const MPI_Aint disp = one_in(random, 8) ? fuzz_bad_aint(random)
                                            : below(random, (int)(opened->size_bytes / unit) + 2);
    const __int128 offset = (__int128)disp * unit;
    struct verdict verdict = {rank == 0 ? 0 : FAULT_RANK, 0};
    if (opened->epoch == EPOCH_NONE)
        *(rank == 0 ? &verdict.must : &verdict.may) |= FAULT_SYNC;
    if (count > 0 && disp < 0)
        verdict.must |= FAULT_DISP;
    else if (count > 0 && offset + count > opened->size_bytes)
        verdict.must |= FAULT_RANGE;
    memset(bytes, (int)(random_next(random) & 0xff), sizeof bytes);
    fuzz_describe("%s(%d bytes, rank %d, disp %ld, unit %ld) of a handle of %ld bytes",
                  puts ? "Put" : "Get", count, rank, (long)disp, (long)unit,
                  (long)opened->size_bytes);
    if (!fuzz_judge(
            verdict,
            puts ? FUZZ(Put, bytes, count, MPI_BYTE, rank, disp, count, MPI_BYTE, opened->win)
                 : FUZZ(Get, bytes, count, MPI_BYTE, rank, disp, count, MPI_BYTE, opened->win)))
        return;
    CHECK_OK(FUZZ(Win_flush, 0, opened->win));
    if (count == 0)
        return;
    unsigned char *expected = observed_expected(observed, 0) + part->offset + (ptrdiff_t)offset;
    if (puts)
        memcpy(expected, bytes, (size_t)count);
    else
        CHECK(memcmp(expected, bytes, (size_t)count) == 0, "%.250s: other bytes than the owner's",
              fuzz_description());
}

/* Only the owner's window has handles, and only passive-target epochs are for the opened one. */
static void call_wrongly(struct opened *opened, struct random *random)
{
    MPIX_Memory_handle handle;
    const int which = below(random, 3);
    fuzz_describe("call %d that an opened handle has not", which);
    switch (which) {
    case 0:
        fuzz_judge((struct verdict){FAULT_UNSUPPORTED, 0},
                   FUZZX(Win_memory_handle_create, opened->win, 0, 0, &handle));
        return;
    case 1: fuzz_judge((struct verdict){FAULT_SYNC, 0}, FUZZ(Win_fence, 0, opened->win)); return;
    default:
        fuzz_judge((struct verdict){FAULT_SYNC, 0},
                   FUZZ(Win_post, MPI_GROUP_EMPTY, 0, opened->win));
        return;
    }
}

static void call_opened(struct handles *handles, struct random *random)
{
    struct opened *opened = &handles->opened[below(random, OPENED)];
    if (opened->win == MPI_WIN_NULL)
        return;
    switch (random_below(random, 12)) {
    case 0: call_close(opened); return;
    case 1:
    case 2: call_lock(handles, opened, random); return;
    case 3: call_unlock(opened, random); return;
    case 4: call_wrongly(opened, random); return;
    default: call_transfer(handles, opened, random); return;
    }
}

/* --- the case --- */

static void close_all(struct handles *handles)
{
    for (int i = 0; i < OPENED; i++) {
        struct opened *opened = &handles->opened[i];
        if (opened->epoch == EPOCH_ALL)
            CHECK_OK(FUZZ(Win_unlock_all, opened->win));
        else if (opened->epoch == EPOCH_ONE)
            CHECK_OK(FUZZ(Win_unlock, 0, opened->win));
        if (opened->win != MPI_WIN_NULL)
            CHECK_OK(FUZZ(Win_free, &opened->win));
    }
}

/* Handles that are live at the end are withdrawn by the end of the window. */
static void window_of_handles(struct handles *handles, const MPIX_Memory_handle *theirs,
                              enum window_kind kind, struct random *random)
{
    enum { CALLS_PER_WINDOW = 500 };
    *handles = (struct handles){.theirs = *theirs};
    for (int i = 0; i < OPENED; i++)
        handles->opened[i].win = MPI_WIN_NULL;
    observed_open(&handles->observed, kind, MPI_COMM_SELF, random);
    for (int i = 0; i < CALLS_PER_WINDOW && !harness_failed(); i++) {
        switch (random_below(random, 10)) {
        case 0: call_create(handles, random); break;
        case 1: call_free(handles, random); break;
        case 2: call_open(handles, random); break;
        default: call_opened(handles, random); break;
        }
        observed_check(&handles->observed);
    }
    close_all(handles);
    observed_close(&handles->observed);
}

void memory_handles_with_random_arguments(enum window_kind kind)
{
    static struct handles handles;
    struct random own = fuzz_own(170 + (uint64_t)kind);
    MPIX_Memory_handle one, theirs;
    MPI_Win win;
    void *base;
    MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    CHECK_OK(FUZZX(Win_memory_handle_create, win, 0, 64, &one));
    MPI_Sendrecv(&one, sizeof one, MPI_BYTE, (world_rank + 1) % world_size, 0, &theirs,
                 sizeof theirs, MPI_BYTE, (world_rank + world_size - 1) % world_size, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (world_size == 1)
        memset(&theirs, 0, sizeof theirs);
    for (int i = 0; i < fuzz_calls() / 500 && !harness_failed(); i++)
        window_of_handles(&handles, &theirs, kind, &own);
    barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
}
