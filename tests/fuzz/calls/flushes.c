/* Order, flushes of several ranks and windows, and flushes with requests, against the epochs of the
 * caller. A list with several wrong entries reports the first of them. */
#include "epochs.h"

enum { LIST = 5 };

static int rank_draw(const struct epochs *epochs, struct random *random)
{
    return one_in(random, 8)    ? fuzz_bad_rank(random, epochs->n)
           : one_in(random, 10) ? MPI_PROC_NULL
                                : below(random, epochs->n);
}

static bool is_passive(const struct epochs *epochs)
{
    bool passive = epochs->lock_all;
    for (int i = 0; i < epochs->n; i++)
        passive = passive || epochs->locked[i];
    return passive;
}

/* What a flush of this rank must return. A wrong rank outside of epochs has two faults. */
static struct verdict flush_verdict(const struct epochs *epochs, int rank)
{
    if (rank == MPI_PROC_NULL)
        return (struct verdict){0, 0};
    if (rank < 0 || rank >= epochs->n)
        return (struct verdict){FAULT_RANK, is_passive(epochs) ? 0 : FAULT_SYNC};
    return (struct verdict){epochs->lock_all || epochs->locked[rank] ? 0 : FAULT_SYNC, 0};
}

static struct verdict flush_all_verdict(const struct epochs *epochs)
{
    return (struct verdict){is_passive(epochs) ? 0 : FAULT_SYNC, 0};
}

static void call_order(const struct epochs *epochs, MPI_Win win, struct random *random,
                       bool errors_only)
{
    const int rank = rank_draw(epochs, random);
    struct verdict verdict = {FAULT_RANK, 0};
    if (rank == MPI_PROC_NULL)
        verdict.must = 0;
    else if (rank >= 0 && rank < epochs->n)
        verdict = epochs_allow(epochs, rank);
    if (errors_only && verdict.must == 0)
        return;
    fuzz_describe("Win_order(rank %d)", rank);
    fuzz_judge(verdict, FUZZX(Win_order, rank, win));
}

/* A length, sometimes negative. */
static int length_draw(struct random *random)
{
    return one_in(random, 10) ? -1 - (fuzz_bad_int(random) & 0xff) : below(random, LIST + 1);
}

static struct verdict list_verdict(int n, bool no_list)
{
    return (struct verdict){n < 0 || (no_list && n > 0) ? FAULT_ARG : 0, 0};
}

static void call_list(const struct epochs *epochs, MPI_Win win, struct random *random,
                      bool errors_only)
{
    int ranks[LIST];
    const int n = length_draw(random);
    const bool no_list = one_in(random, 12);
    struct verdict verdict = list_verdict(n, no_list);
    for (int i = 0; i < n; i++) {
        ranks[i] = rank_draw(epochs, random);
        if (verdict.must == 0)
            verdict = flush_verdict(epochs, ranks[i]);
    }
    if (errors_only && verdict.must == 0)
        return;
    fuzz_describe("Win_flush_list(%d ranks%s, the first %d)", n, no_list ? ", NULL" : "",
                  n > 0 ? ranks[0] : -1);
    fuzz_judge(verdict, FUZZX(Win_flush_list, n, no_list ? NULL : ranks, win));
}

/* The window, again and again, and MPI_WIN_NULL. */
static void call_windows(const struct epochs *epochs, MPI_Win win, struct random *random,
                         bool errors_only)
{
    MPI_Win wins[LIST];
    const int n = length_draw(random);
    const bool no_list = one_in(random, 12);
    struct verdict verdict = list_verdict(n, no_list);
    unsigned faults = 0;
    for (int i = 0; i < n; i++) {
        wins[i] = one_in(random, 12) ? MPI_WIN_NULL : win;
        faults |= wins[i] == win ? flush_all_verdict(epochs).must : FAULT_WIN;
    }
    if (verdict.must == 0)
        verdict.must = faults;
    if (errors_only && verdict.must == 0)
        return;
    fuzz_describe("Win_flush_windows(%d windows%s)", n, no_list ? ", NULL" : "");
    fuzz_judge(verdict, FUZZX(Win_flush_windows, n, no_list ? NULL : wins));
}

static void call_with_request(const struct epochs *epochs, MPI_Win win, struct random *random,
                              bool errors_only)
{
    const bool all = one_in(random, 2), no_request = one_in(random, 12);
    const int rank = rank_draw(epochs, random);
    MPI_Request request = MPI_REQUEST_NULL, *out = no_request ? NULL : &request;
    struct verdict verdict = all ? flush_all_verdict(epochs) : flush_verdict(epochs, rank);
    verdict.must |= no_request ? FAULT_ARG : 0;
    if (errors_only && verdict.must == 0)
        return;
    if (all)
        fuzz_describe("Win_iflush_all(%s)", no_request ? "no request" : "");
    else
        fuzz_describe("Win_iflush(rank %d%s)", rank, no_request ? ", no request" : "");
    if (!fuzz_judge(verdict,
                    all ? FUZZX(Win_iflush_all, win, out) : FUZZX(Win_iflush, rank, win, out)))
        CHECK(request == MPI_REQUEST_NULL, "%.250s: it failed and made a request",
              fuzz_description());
    else if (one_in(random, 8))
        CHECK_OK(FUZZ(Request_free, &request));
    else
        CHECK(fuzz_complete(request), "%.250s: its request failed", fuzz_description());
}

void flushes_call(const struct epochs *epochs, MPI_Win win, struct random *random, bool errors_only)
{
    switch (random_below(random, 5)) {
    case 0: call_order(epochs, win, random, errors_only); return;
    case 1: call_list(epochs, win, random, errors_only); return;
    case 2: call_windows(epochs, win, random, errors_only); return;
    default: call_with_request(epochs, win, random, errors_only); return;
    }
}
