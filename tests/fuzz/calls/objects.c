/* A window as an object, and memory: queries, info, attributes, names, error handlers,
 * MPI_Alloc_mem and MPI_Free_mem, attach and detach on the wrong windows.  The tests omit pointers
 * that MPI_Alloc_mem did not return: they go to the host, which may crash. They also omit invalid
 * info objects, keyvals and handlers. */
#include "observed_window.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 12 };

static bool is_reached(const struct observed_window *observed, int rank)
{
    return observed->kind != KIND_HEAP || rank == observed->me;
}

/* The lowest rank whose memory this rank can load from. */
static int lowest(const struct observed_window *observed)
{
    for (int i = 0; i < observed->n; i++)
        if (observed->size[i] > 0 && is_reached(observed, i))
            return i;
    return 0;
}

static void query(const struct observed_window *observed, struct random *random)
{
    int rank = one_in(random, 3)   ? fuzz_bad_rank(random, observed->n)
               : one_in(random, 4) ? MPI_PROC_NULL
                                   : below(random, observed->n);
    MPI_Aint size = -77, wide_unit = -77;
    int unit = -77;
    void *base = &base;
    bool wide = one_in(random, 2);
    int real = rank == MPI_PROC_NULL ? lowest(observed) : rank;
    struct verdict verdict = {real < 0 || real >= observed->n ? FAULT_RANK : 0, 0};
    fuzz_describe("Win_shared_query(rank %d)", rank);
    int code = wide ? FUZZ(Win_shared_query_c, observed->win, rank, &size, &wide_unit, &base)
                    : FUZZ(Win_shared_query, observed->win, rank, &size, &unit, &base);
    if (!fuzz_judge(verdict, code))
        return;
    MPI_Aint expected = is_reached(observed, real) ? observed->size[real] : 0;
    CHECK(size == expected, "%.200s: size %ld, not %ld", fuzz_description(), (long)size,
          (long)expected);
    CHECK(size > 0 || base == NULL || observed->kind == KIND_SHARED,
          "%.200s: an address without memory", fuzz_description());
    CHECK(size == 0 || (wide ? wide_unit : unit) == observed->unit[real], "%.200s: another unit",
          fuzz_description());
    CHECK(size == 0 || memcmp(base, observed_memory(observed, real), (size_t)size) == 0,
          "%.200s: other memory", fuzz_description());
}

static void hint(const struct observed_window *observed, struct random *random)
{
    static const char *const keys[] = {"no_locks",
                                       "same_size",
                                       "accumulate_ordering",
                                       "accumulate_ops",
                                       "nonsense",
                                       "mpi_accumulate_granularity",
                                       "alloc_shared_noncontig"};
    char value[MPI_MAX_INFO_VAL];
    MPI_Info info = MPI_INFO_NULL;
    int found;
    if (!one_in(random, 4)) {
        MPI_Info_create(&info);
        for (int i = below(random, 4); i > 0; i--) {
            int length = 1 + below(random, one_in(random, 4) ? MPI_MAX_INFO_VAL - 2 : 20);
            for (int c = 0; c < length; c++)
                value[c] = "true,falseraw0123456789-_"[random_below(random, 25)];
            value[length] = '\0';
            MPI_Info_set(info, keys[random_below(random, COUNT_OF(keys))], value);
        }
    }
    fuzz_describe("Win_set_info(%s)", info == MPI_INFO_NULL ? "null" : "set");
    fuzz_judge((struct verdict){0, info == MPI_INFO_NULL ? FAULT_INFO : 0},
               FUZZ(Win_set_info, observed->win, info));
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
    fuzz_describe("Win_get_info");
    if (!fuzz_judge((struct verdict){0, 0}, FUZZ(Win_get_info, observed->win, &info)))
        return;
    MPI_Info_get(info, "same_size", MPI_MAX_INFO_VAL - 1, value, &found);
    CHECK(found && (strcmp(value, "true") == 0 || strcmp(value, "false") == 0),
          "same_size has the value %.40s", value);
    MPI_Info_free(&info);
}

static int copy_attribute(MPI_Win win, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)win;
    (void)keyval;
    (void)extra;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete_attribute(MPI_Win win, int keyval, void *value, void *extra)
{
    (void)win;
    (void)keyval;
    (void)value;
    ++*(int *)extra;
    return MPI_SUCCESS;
}

static void attribute(const struct observed_window *observed, struct random *random)
{
    static const int predefined[] = {MPI_WIN_BASE, MPI_WIN_SIZE, MPI_WIN_DISP_UNIT,
                                     MPI_WIN_CREATE_FLAVOR, MPI_WIN_MODEL};
    struct verdict good = {0, 0}, bad = {FAULT_KEYVAL | FAULT_ARG | FAULT_OTHER, 0};
    int keyval, flag = 0, deleted = 0, stored;
    void *value = NULL;
    fuzz_describe("Win_get_attr(predefined)");
    fuzz_judge(good, FUZZ(Win_get_attr, observed->win,
                          predefined[random_below(random, COUNT_OF(predefined))], &value, &flag));
    CHECK(flag == 1, "a predefined attribute is not there");
    fuzz_describe("Win_create_keyval");
    if (!fuzz_judge(good,
                    FUZZ(Win_create_keyval, copy_attribute, delete_attribute, &keyval, &deleted)))
        return;
    fuzz_describe("attribute of the user's");
    fuzz_judge(good, FUZZ(Win_get_attr, observed->win, keyval, &value, &flag));
    CHECK(flag == 0, "an attribute that was not set is there");
    fuzz_judge(good, FUZZ(Win_set_attr, observed->win, keyval, &stored));
    fuzz_judge(good, FUZZ(Win_get_attr, observed->win, keyval, &value, &flag));
    CHECK(flag == 1 && value == &stored, "an attribute has another value than the one set");
    fuzz_judge(good, FUZZ(Win_delete_attr, observed->win, keyval));
    CHECK(deleted == 1, "the delete callback ran %d times", deleted);
    fuzz_judge(good, FUZZ(Win_free_keyval, &keyval));
    fuzz_describe("attribute of MPI_KEYVAL_INVALID");
    fuzz_judge(bad, FUZZ(Win_get_attr, observed->win, MPI_KEYVAL_INVALID, &value, &flag));
    fuzz_judge(bad, FUZZ(Win_set_attr, observed->win, MPI_KEYVAL_INVALID, &stored));
    fuzz_judge(bad, FUZZ(Win_delete_attr, observed->win, MPI_KEYVAL_INVALID));
}

static int handled_class;
static void note_error(MPI_Win *win, int *code, ...)
{
    (void)win;
    MPI_Error_class(*code, &handled_class);
}

static void handler(const struct observed_window *observed, struct random *random)
{
    struct verdict good = {0, 0};
    MPI_Errhandler own, seen;
    char name[MPI_MAX_OBJECT_NAME] = "", got[MPI_MAX_OBJECT_NAME + 1] = "";
    int length = below(random, MPI_MAX_OBJECT_NAME), got_length = -1;
    int class = one_in(random, 2) ? MPI_ERR_RMA_RANGE : MPI_ERR_OTHER;
    memset(name, 'a' + below(random, 26), (size_t)length);
    fuzz_describe("Win_set_name(%d characters)", length);
    fuzz_judge(good, FUZZ(Win_set_name, observed->win, name));
    fuzz_judge(good, FUZZ(Win_get_name, observed->win, got, &got_length));
    CHECK(strncmp(got, name, MPI_MAX_OBJECT_NAME - 1) == 0, "%.200s: another name was returned",
          fuzz_description());
    fuzz_describe("error handlers");
    fuzz_judge(good, FUZZ(Win_create_errhandler, note_error, &own));
    fuzz_judge(good, FUZZ(Win_set_errhandler, observed->win, own));
    fuzz_judge(good, FUZZ(Win_get_errhandler, observed->win, &seen));
    CHECK(seen == own, "another error handler was returned");
    handled_class = MPI_SUCCESS;
    FUZZ(Win_call_errhandler, observed->win, class);
    CHECK(handled_class == class, "the handler saw class %d, not %d", handled_class, class);
    handled_class = MPI_SUCCESS; /* the message must fit with a window name of any length */
    CHECK_CLASS(MPI_ERR_RANK, FUZZ(Win_flush, observed->n, observed->win));
    CHECK(handled_class == MPI_ERR_RANK, "the handler saw class %d", handled_class);
    MPI_Win_set_errhandler(observed->win, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&seen);
    MPI_Errhandler_free(&own);
}

static void version(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = -1;
    CHECK_OK(FUZZ(Get_library_version, text, &length));
    CHECK(length >= 0 && length < MPI_MAX_LIBRARY_VERSION_STRING && strstr(text, "Oriel") != NULL,
          "a version without Oriel");
}

/* Any level is fine. */
static void level(struct random *random)
{
    int chosen = (int)below(random, 5) - 1;
    fuzz_describe("Pcontrol(%d)", chosen);
    CHECK_OK(FUZZ(Pcontrol, chosen));
}

static void misfit(const struct observed_window *observed, struct random *random)
{
    MPI_Aint size = one_in(random, 2) ? fuzz_bad_aint(random) : below(random, 100);
    void *base = one_in(random, 4) ? NULL : observed_memory(observed, observed->me);
    MPI_Group group;
    int n;
    fuzz_describe("Win_attach(%ld) to a window that is not dynamic", (long)size);
    fuzz_judge((struct verdict){FAULT_FLAVOR, 0}, FUZZ(Win_attach, observed->win, base, size));
    fuzz_describe("Win_detach from a window that is not dynamic");
    fuzz_judge((struct verdict){FAULT_FLAVOR, 0}, FUZZ(Win_detach, observed->win, base));
    if (one_in(random, 8))
        version();
    if (one_in(random, 8))
        level(random);
    fuzz_describe("Win_get_group");
    if (fuzz_judge((struct verdict){0, 0}, FUZZ(Win_get_group, observed->win, &group))) {
        MPI_Group_size(group, &n);
        CHECK_EQUAL(n, observed->n);
        MPI_Group_free(&group);
    }
}

struct block {
    unsigned char *at;
    MPI_Aint size;
    unsigned char byte;
};

/* Blocks in use at the same time keep their bytes. A freed pointer, or one inside a block, is
 * refused. */
static void block(struct block *blocks, struct random *random)
{
    struct block *chosen = &blocks[random_below(random, BLOCKS)];
    void *at = NULL;
    if (chosen->at == NULL) {
        MPI_Aint size = one_in(random, 3) ? fuzz_bad_aint(random)
                                          : below(random, one_in(random, 4) ? 200000 : 500);
        if (size > 200000 && size < (MPI_Aint)1 << 52)
            return; /* an allocation of this size may succeed or fail */
        fuzz_describe("Alloc_mem(%ld)", (long)size);
        struct verdict verdict = {size < 0        ? FAULT_SIZE | FAULT_ARG
                                  : size > 200000 ? FAULT_NO_MEM
                                                  : 0,
                                  0};
        if (!fuzz_judge(verdict, FUZZ(Alloc_mem, size, MPI_INFO_NULL, &at)))
            return;
        *chosen = (struct block){at, size, (unsigned char)random_next(random)};
        memset(at, chosen->byte, (size_t)size);
        return;
    }
    for (MPI_Aint i = 0; i < chosen->size; i++)
        if (!CHECK(chosen->at[i] == chosen->byte, "byte %ld of a block of %ld changed", (long)i,
                   (long)chosen->size))
            break;
    if (chosen->size > 64 && one_in(random, 3)) {
        fuzz_describe("Free_mem(the inside of a block)");
        fuzz_judge((struct verdict){FAULT_BASE, 0},
                   FUZZ(Free_mem, chosen->at + 1 + random_below(random, 63)));
        return;
    }
    fuzz_describe("Free_mem");
    fuzz_judge((struct verdict){0, 0}, FUZZ(Free_mem, chosen->at));
    fuzz_describe("Free_mem(a block that is free)");
    fuzz_judge((struct verdict){FAULT_BASE, 0}, FUZZ(Free_mem, chosen->at));
    chosen->at = NULL;
}

void objects_and_memory_with_random_arguments(enum window_kind kind)
{
    struct random shared = random_start(110 + (uint64_t)kind), own = fuzz_own(110 + (uint64_t)kind);
    struct observed_window observed;
    struct block blocks[BLOCKS] = {{NULL, 0, 0}};
    observed_open(&observed, kind, MPI_COMM_WORLD, &shared);
    for (int i = 0; i < fuzz_calls() / 6 && !harness_failed(); i++) {
        switch (random_below(&own, 8)) {
        case 0: query(&observed, &own); break;
        case 1: hint(&observed, &own); break;
        case 2: attribute(&observed, &own); break;
        case 3: handler(&observed, &own); break;
        case 4: misfit(&observed, &own); break;
        default: block(blocks, &own); break;
        }
        observed_check(&observed);
    }
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].at != NULL)
            CHECK_OK(FUZZ(Free_mem, blocks[i].at));
    barrier(MPI_COMM_WORLD);
    observed_close(&observed);
}
