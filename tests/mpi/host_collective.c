/* The exchange between ranks during creation of a window (src/host/collective.c, linked in), where
 * one of them has no memory for it. All ranks get the error, in small and large jobs, and none
 * waits for ever. A rank that waits long for a late one prints a warning. Run by the test rows on
 * the bare host. */
#include "harness.h"

#include "base/log.h"
#include "base/status.h"
#include "base/wait.h"
#include "host/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
uint64_t __real_oriel_now_ns(void);
uint64_t __wrap_oriel_now_ns(void);
void __wrap_oriel_log_call(enum oriel_log_kind kind, const char *call, const char *rest);

static bool lacks;
static bool hurries;

void *__wrap_malloc(size_t size)
{
    return lacks ? NULL : __real_malloc(size);
}

enum { FEW_BYTES = 24, MANY_BYTES = 40000 }; /* the second is the contribution of a hundred ranks */

static char own[MANY_BYTES];
static char *all;

static void fill(void)
{
    memset(own, world_rank + 1, sizeof own);
    if (all == NULL)
        all = malloc((size_t)world_size * MANY_BYTES);
    CHECK(all != NULL, "no memory for the test");
}

static int gather(int len_bytes)
{
    return (int)oriel_host_allgather(MPI_COMM_WORLD, "the test", own, (size_t)len_bytes, all, NULL);
}

/* The last rank contributes nothing, like ranks that do not lead a node. */
static int gather_some(int len_bytes)
{
    int *spans = calloc((size_t)world_size, 2 * sizeof *spans);
    for (int i = 0; i < world_size; i++) {
        spans[i] = i + 1 < world_size ? len_bytes : 0;
        spans[world_size + i] = i * len_bytes;
    }
    int status = (int)oriel_host_allgatherv(MPI_COMM_WORLD, "the test", own, spans,
                                            spans + world_size, all, NULL);
    free(spans);
    return status;
}

static void check_all(int ranks, int len_bytes)
{
    for (int i = 0; i < ranks; i++)
        for (int at = 0; at < len_bytes; at += len_bytes - 1)
            CHECK_EQUAL(all[(ptrdiff_t)i * len_bytes + at], i + 1);
}

/* Each rank in turn is without memory. */
static void without(int (*exchange)(int len_bytes), int len_bytes, int ranks)
{
    fill();
    for (int who = 0; who < world_size; who++) {
        memset(all, 0, (size_t)world_size * MANY_BYTES);
        lacks = who == world_rank;
        int status = exchange(len_bytes);
        lacks = false;
        if (len_bytes == FEW_BYTES) {
            CHECK_EQUAL(status, ORIEL_OK);
            check_all(ranks, len_bytes);
        } else {
            CHECK_EQUAL(status, ORIEL_E_NO_MEM);
        }
        CHECK_EQUAL(exchange(len_bytes), ORIEL_OK);
        check_all(ranks, len_bytes);
    }
}

static void few_ranks_learn_of_one_without_memory(enum window_kind kind)
{
    (void)kind;
    without(gather, FEW_BYTES, world_size);
}

static void many_ranks_learn_of_one_without_memory(enum window_kind kind)
{
    (void)kind;
    without(gather, MANY_BYTES, world_size);
}

static void few_ranks_learn_of_some_without_memory(enum window_kind kind)
{
    (void)kind;
    without(gather_some, FEW_BYTES, world_size - 1);
}

static void many_ranks_learn_of_some_without_memory(enum window_kind kind)
{
    (void)kind;
    without(gather_some, MANY_BYTES, world_size - 1);
}

/* --- long waits --- */

enum { LATE = 1 }; /* the rank that others wait for */

static int warnings;
static char warning[200];

/* Time passes quickly for the first rank while it waits: a second at each call. */
uint64_t __wrap_oriel_now_ns(void)
{
    static uint64_t passed_ns;
    if (hurries)
        passed_ns += UINT64_C(1000000000);
    return __real_oriel_now_ns() + passed_ns;
}

/* The late rank waits for this. */
void __wrap_oriel_log_call(enum oriel_log_kind kind, const char *call, const char *rest)
{
    CHECK_EQUAL(kind, ORIEL_LOG_WARNING);
    snprintf(warning, sizeof warning, "%s%s", call, rest);
    if (warnings++ == 0)
        MPI_Send(NULL, 0, MPI_BYTE, LATE, 0, MPI_COMM_WORLD);
}

static void a_wait_of_ten_seconds_is_reported_once(enum window_kind kind)
{
    (void)kind;
    uint32_t agreed = 0;
    warnings = 0;
    hurries = world_rank == 0;
    if (world_rank == LATE) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sleep_us(20000); /* time for others to warn again, if they did */
    }
    int status = (int)oriel_host_agree(MPI_COMM_WORLD, "the test", world_rank == LATE ? 6 : 3,
                                       &agreed, NULL);
    hurries = false;
    CHECK_EQUAL(status, ORIEL_OK);
    CHECK_EQUAL(agreed, 2);
    CHECK_EQUAL(warnings, world_rank == 0);
    CHECK(world_rank != 0 || strstr(warning, "the test has waited 10 s") != NULL, "printed: %s",
          warning);
}

static const struct test_case cases[] = {
    CASE(a_wait_of_ten_seconds_is_reported_once, KIND_ANY, 2),
    CASE(few_ranks_learn_of_one_without_memory, KIND_ANY, 1),
    CASE(many_ranks_learn_of_one_without_memory, KIND_ANY, 1),
    CASE(few_ranks_learn_of_some_without_memory, KIND_ANY, 2),
    CASE(many_ranks_learn_of_some_without_memory, KIND_ANY, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
