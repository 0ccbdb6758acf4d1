/* Waits on the caller's own memory: the element as this process loads it says whether the
 * comparison holds. Waits that would not end are not called. */
#include "operate.h"

#include <string.h>

struct awaited {
    MPI_Aint disp;
    MPI_Datatype type;
    int size_bytes; /* 0: no integer */
    bool is_signed, derived;
    int comparison;
    bool no_value;
    unsigned char value[8];
};

static void type_draw(struct awaited *awaited, struct random *random)
{
    const struct {
        MPI_Datatype type;
        int size_bytes;
        bool is_signed;
    } types[] = {
        {MPI_INT8_T, 1, true},         {MPI_UINT8_T, 1, false},  {MPI_INT16_T, 2, true},
        {MPI_UINT16_T, 2, false},      {MPI_INT, 4, true},       {MPI_UINT32_T, 4, false},
        {MPI_INT64_T, 8, true},        {MPI_UINT64_T, 8, false}, {MPI_LONG, sizeof(long), true},
        {MPI_DOUBLE, 0, false},        {MPI_C_BOOL, 0, false},   {MPI_DOUBLE_INT, 0, false},
        {MPI_DATATYPE_NULL, 0, false},
    };
    const size_t chosen =
        one_in(random, 10) ? random_below(random, COUNT_OF(types)) : random_below(random, 9);
    awaited->type = types[chosen].type;
    awaited->size_bytes = types[chosen].size_bytes;
    awaited->is_signed = types[chosen].is_signed;
    awaited->derived = one_in(random, 20);
    if (!awaited->derived)
        return;
    MPI_Type_contiguous(1, MPI_INT, &awaited->type);
    MPI_Type_commit(&awaited->type);
    awaited->size_bytes = 0;
}

/* -1, 0 or 1. */
static int order_of(const unsigned char *left, const unsigned char *right, int size_bytes,
                    bool is_signed)
{
    for (int i = size_bytes - 1; i >= 0; i--) {
        const int flip = is_signed && i == size_bytes - 1 ? 0x80 : 0;
        if (left[i] != right[i])
            return (left[i] ^ flip) < (right[i] ^ flip) ? -1 : 1;
    }
    return 0;
}

static bool holds(const struct awaited *awaited, const unsigned char *at)
{
    const int order = order_of(at, awaited->value, awaited->size_bytes, awaited->is_signed);
    switch (awaited->comparison) {
    case MPIX_CMP_EQ: return order == 0;
    case MPIX_CMP_NE: return order != 0;
    case MPIX_CMP_LT: return order < 0;
    case MPIX_CMP_LE: return order <= 0;
    case MPIX_CMP_GT: return order > 0;
    default: return order >= 0;
    }
}

/* Of an integer; *at is its place if it is in the window. */
static unsigned place_faults(const struct observed_window *observed, const struct awaited *awaited,
                             const unsigned char **at)
{
    const __int128 offset = observed_offset(observed, observed->me, awaited->disp);
    if (observed->attached == NULL && awaited->disp < 0)
        return FAULT_DISP;
    if (observed->attached != NULL
            ? !observed_is_attached(observed, observed->me, offset, awaited->size_bytes)
            : offset + awaited->size_bytes > observed->size[observed->me])
        return FAULT_RANGE;
    *at = observed_memory(observed, observed->me) + (ptrdiff_t)offset;
    return (uintptr_t)*at % (unsigned)awaited->size_bytes != 0 ? FAULT_ARG : 0;
}

static void draw(struct awaited *awaited, const struct observed_window *observed,
                 struct random *random)
{
    *awaited = (struct awaited){.disp = operation_disp_draw(observed, observed->me, random),
                                .comparison = MPIX_CMP_EQ + below(random, MPIX_CMP_GE),
                                .no_value = one_in(random, 20)};
    if (one_in(random, 20))
        awaited->comparison = one_in(random, 2) ? MPIX_CMP_GE + 1 : MPIX_CMP_EQ - 1;
    type_draw(awaited, random);
    if (awaited->size_bytes > 0 && !one_in(random, 8)) /* aligned, where the units allow it */
        awaited->disp -= awaited->disp % awaited->size_bytes;
}

/* The element itself, a neighbour, or any. */
static void value_draw(struct awaited *awaited, const unsigned char *at, struct random *random)
{
    const uint64_t any = random_next(random);
    memcpy(awaited->value, &any, sizeof any);
    if (at != NULL && !one_in(random, 3))
        memcpy(awaited->value, at, (size_t)awaited->size_bytes);
    if (one_in(random, 2))
        awaited->value[0] ^= (unsigned char)(1u << below(random, 8));
}

void wait_call(struct observed_window *observed, struct random *random, bool errors_only)
{
    struct awaited awaited;
    const bool waits = one_in(random, 2), no_flag = !waits && one_in(random, 12);
    const unsigned char *at = NULL;
    int flag = 7;
    draw(&awaited, observed, random);
    unsigned faults = awaited.no_value || no_flag || awaited.comparison < MPIX_CMP_EQ ||
                              awaited.comparison > MPIX_CMP_GE
                          ? FAULT_ARG
                          : 0;
    faults |= awaited.size_bytes > 0 ? place_faults(observed, &awaited, &at) : FAULT_TYPE;
    value_draw(&awaited, at, random);
    const bool is_true = faults == 0 && holds(&awaited, at);
    const void *value = awaited.no_value ? NULL : awaited.value;
    if (faults != 0 || (!errors_only && (is_true || !waits))) {
        fuzz_describe("%s(disp %ld, %d bytes, comparison %d%s%s)",
                      waits ? "Win_wait_until" : "Win_test_until", (long)awaited.disp,
                      awaited.size_bytes, awaited.comparison, awaited.no_value ? ", no value" : "",
                      no_flag ? ", no flag" : "");
        const int code = waits ? FUZZX(Win_wait_until, observed->win, awaited.disp, awaited.type,
                                       awaited.comparison, value)
                               : FUZZX(Win_test_until, observed->win, awaited.disp, awaited.type,
                                       awaited.comparison, value, no_flag ? NULL : &flag);
        if (fuzz_judge((struct verdict){faults, 0}, code) && !waits)
            CHECK(flag == is_true, "%.250s: flag is %d", fuzz_description(), flag);
    }
    if (awaited.derived)
        MPI_Type_free(&awaited.type);
}
