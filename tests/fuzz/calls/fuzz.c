/* Counts calls by function and checks answers against verdicts.  Each row of functions.def and
 * extensions.def needs a minimum number of calls, except the ones listed here with a reason. */
#include "fuzz.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS_LEAST = 8 };

static const char *const names[] = {
#define FUNCTION(name, parameters, arguments) "MPI_" #name,
#define FORWARD                               FUNCTION
#define LARGE                                 FUNCTION
#include "../../../src/host/functions.def"
#undef FUNCTION
#undef FORWARD
#undef LARGE
#define EXTENSION(name, parameters, arguments) "MPIX_" #name,
#include "../../../src/host/extensions.def"
#undef EXTENSION
};

static const int classes[] = {
#define FAULT(name, class) class,
#include "error_classes.def"
#undef FAULT
};

/* Functions called rarely, or never. */
static const struct {
    enum fuzz_function function;
    const char *reason;
} left_out[] = {
    {FUZZ_Init, "a process calls it once, or MPI_Init_thread, which starts each of these programs"},
    {FUZZ_Init_thread, "a process calls it once: at the start of each of these programs"},
    {FUZZ_Group_free, "the host checks groups"},
    {FUZZ_Comm_free, "the host checks communicators"},
    {FUZZ_Comm_disconnect, "as Comm_free"},
    {FUZZ_Comm_spawn,
     "random arguments end the job on both hosts, and MPICH cannot spawn everywhere"},
    {FUZZ_Comm_spawn_multiple, "as Comm_spawn"},
    {FUZZ_Type_float16, "it has no arguments"},
    {FUZZ_Type_float16_complex, "it has no arguments"},
};

/* Per function, on this rank: calls, and the numbers of checked answers with success and with an
 * error. */
enum { CALLED, SUCCEEDED, REFUSED, COUNTS };
static long long counts[COUNTS][FUZZ_FUNCTIONS];
static enum fuzz_function last;
static char description[400];

void fuzz_count(enum fuzz_function function)
{
    if (function < FUZZ_Wait ||
        function > FUZZ_Request_get_status) /* the check applies to the completed operation */
        last = function;
    counts[CALLED][function]++;
}

const char *fuzz_name(enum fuzz_function function)
{
    return names[function];
}
const char *fuzz_description(void)
{
    return description;
}

static bool is_traced(void)
{
    static int traced = -1;
    if (traced < 0)
        traced = getenv("FUZZ_TRACE") != NULL;
    return traced > 0;
}

static bool is_left_out(int function)
{
    for (size_t i = 0; i < COUNT_OF(left_out); i++)
        if ((int)left_out[i].function == function)
            return true;
    return false;
}

static bool is_operation(int function)
{
    return (function >= FUZZ_Put && function <= FUZZ_Rget_accumulate_c) ||
           (function >= FUZZ_Put_notify && function <= FUZZ_Accumulate_notify) ||
           (function >= FUZZ_Rfetch_and_op && function <= FUZZ_Compare_and_swap_128);
}

void every_function_of_the_table_was_called(enum window_kind kind)
{
    long long sums[COUNTS][FUZZ_FUNCTIONS], totals[COUNTS] = {0};
    (void)kind;
    MPI_Allreduce(counts, sums, COUNTS * FUZZ_FUNCTIONS, MPI_LONG_LONG_INT, MPI_SUM,
                  MPI_COMM_WORLD);
    for (int i = 0; i < COUNTS * FUZZ_FUNCTIONS; i++)
        totals[i / FUZZ_FUNCTIONS] += sums[i / FUZZ_FUNCTIONS][i % FUZZ_FUNCTIONS];
    if (totals[CALLED] == 0) {
        harness_skip("no other case has run");
        return;
    }
    for (int i = 0; i < FUZZ_FUNCTIONS; i++) {
        bool enough = sums[CALLED][i] >= CALLS_LEAST;
        if (is_operation(i)) /* both results, or the model is useless */
            enough = sums[SUCCEEDED][i] >= CALLS_LEAST && sums[REFUSED][i] >= CALLS_LEAST;
        CHECK(is_left_out(i) || enough, "%s was called %lld times: %lld successes, %lld errors",
              names[i], sums[CALLED][i], sums[SUCCEEDED][i], sums[REFUSED][i]);
        if (world_rank == 0 && is_traced())
            printf("# %-24s %8lld calls, %8lld successes, %8lld errors\n", names[i],
                   sums[CALLED][i], sums[SUCCEEDED][i], sums[REFUSED][i]);
    }
    if (world_rank == 0)
        printf("# %lld calls of %d functions; of those judged %lld succeeded, %lld failed as they "
               "must\n",
               totals[CALLED], FUZZ_FUNCTIONS - (int)COUNT_OF(left_out), totals[SUCCEEDED],
               totals[REFUSED]);
}

void fuzz_describe(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(description, sizeof description, format, arguments);
    va_end(arguments);
    if (is_traced())
        fprintf(stderr, "[%d] %s\n", world_rank, description);
}

unsigned fuzz_fault_of(int code)
{
    int class = code;
    if (code == MPI_SUCCESS)
        return 0;
    MPI_Error_class(code, &class);
    for (unsigned i = 0; i < FUZZ_FAULTS; i++)
        if (classes[i] == class)
            return 1u << i;
    return 1u << FUZZ_FAULTS; /* a class that no model allows */
}

static const char *faults_text(unsigned faults, char *text, size_t len_bytes)
{
    static const char *const texts[] = {
#define FAULT(name, class) #name,
#include "error_classes.def"
#undef FAULT
        "another",
    };
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i <= FUZZ_FAULTS && used < len_bytes; i++)
        if (faults & (1u << i))
            used +=
                (size_t)snprintf(text + used, len_bytes - used, "%s%s", used ? "|" : "", texts[i]);
    return used ? text : "success";
}

bool fuzz_judge(struct verdict verdict, int code)
{
    char got[80], must[80], may[80];
    unsigned fault = fuzz_fault_of(code);
    bool right = fault == 0 ? verdict.must == 0 : (fault & (verdict.must | verdict.may)) != 0;
    if (!right && !harness_failed()) /* at once: the ranks may never reach a verdict otherwise */
        fprintf(stderr, "rank %d: %s: the answer is %s\n", world_rank, description,
                faults_text(fault, got, sizeof got));
    CHECK(right, "%.230s: got %s, must be %s%s%s", description, faults_text(fault, got, sizeof got),
          faults_text(verdict.must, must, sizeof must), verdict.may ? ", may be " : "",
          verdict.may ? faults_text(verdict.may, may, sizeof may) : "");
    counts[fault == 0 ? SUCCEEDED : REFUSED][last]++;
    if (is_traced())
        fprintf(stderr, "[%d]  -> %s\n", world_rank, faults_text(fault, got, sizeof got));
    return fault == 0;
}

int fuzz_calls(void)
{
    const char *text = getenv("FUZZ_CALLS");
    return text ? atoi(text) : 6000;
}

struct random fuzz_own(uint64_t stream)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD,
                            /* errors without a window go to one of these communicators */
                            MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    return random_start(stream * 1000 + 1 + (uint64_t)world_rank);
}

int fuzz_bad_int(struct random *random)
{
    static const int bad[] = {-1,      -2,          -3,      INT_MIN, INT_MIN + 1,
                              INT_MAX, INT_MAX - 1, 1 << 30, 0x10000, -0x10000};
    return one_in(random, 3) ? (int)random_next(random) : bad[random_below(random, COUNT_OF(bad))];
}

MPI_Aint fuzz_bad_aint(struct random *random)
{
    switch (random_below(random, 5)) {
    case 0: return fuzz_bad_int(random);
    case 1: {
        int shift = below(random, 63);
        return (MPI_Aint)((UINT64_C(1) << shift) - random_below(random, 3));
    }
    case 2: return (MPI_Aint)random_next(random);
    case 3: return INT64_MAX - (MPI_Aint)random_below(random, 20);
    default: return INT64_MIN + (MPI_Aint)random_below(random, 20);
    }
}

int fuzz_bad_rank(struct random *random, int n)
{
    int rank = one_in(random, 3) ? n : fuzz_bad_int(random);
    return (rank >= 0 && rank < n) || rank == MPI_PROC_NULL ? n + 1 : rank;
}

int fuzz_assert(struct random *random, int taken, bool *known)
{
    static const int bits[] = {MPI_MODE_NOCHECK, MPI_MODE_NOSTORE, MPI_MODE_NOPUT,
                               MPI_MODE_NOPRECEDE, MPI_MODE_NOSUCCEED};
    int chosen = 0;
    for (size_t i = 0; i < COUNT_OF(bits); i++)
        chosen |= one_in(random, (bits[i] & taken) != 0 ? 4 : 24) ? bits[i] : 0;
    if (one_in(random, 12))
        chosen = fuzz_bad_int(random);
    *known = (chosen & ~taken) == 0;
    return chosen;
}
