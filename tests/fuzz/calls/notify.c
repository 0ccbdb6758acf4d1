/* Notified access: what each rank's counters must have, and random calls that take notifications.
 * Only one rank operates in a turn, and the ranks exchange their counts after it. So a rank knows
 * in its own turn exactly what has arrived. */
#include "observed_window.h"

#include <limits.h>

enum { COUNTERS = OBSERVED_COUNTERS, LIST = 4 };

int notify_number_draw(struct random *random)
{
    int number = below(random, COUNTERS);
    if (one_in(random, 12))
        number = one_in(random, 2) ? COUNTERS + below(random, 4) : fuzz_bad_int(random);
    return number;
}

unsigned notify_fault(int number)
{
    return number >= 0 && number < COUNTERS ? 0 : FAULT_ARG;
}

void notify_note(struct observed_window *observed, int rank, int number)
{
    if (rank == observed->me)
        observed->here[number]++;
    else
        observed->sent[rank][number]++;
}

void notify_exchange(struct observed_window *observed)
{
    int arrived[FUZZ_RANKS][COUNTERS];
    MPI_Alltoall(observed->sent, COUNTERS, MPI_INT, arrived, COUNTERS, MPI_INT, observed->comm);
    for (int i = 0; i < observed->n; i++)
        for (int number = 0; number < COUNTERS; number++) {
            observed->here[number] += arrived[i][number];
            observed->sent[i][number] = 0;
        }
}

void notify_settle(struct observed_window *observed)
{
    for (int number = 0; number < COUNTERS; number++) {
        int flag = 0;
        if (observed->here[number] > 0)
            CHECK_OK(FUZZX(Win_notify_wait, observed->win, number, observed->here[number]));
        CHECK_OK(FUZZX(Win_notify_test, observed->win, number, 1, &flag));
        CHECK(flag == 0, "counter %d has more notifications than operations that succeeded",
              number);
        observed->here[number] = 0;
    }
}

static MPI_Count count_draw(struct random *random)
{
    static const MPI_Count bad[] = {0, -1, (MPI_Count)INT_MAX + 1, INT64_MIN, INT64_MAX, INT_MAX};
    return one_in(random, 6) ? bad[random_below(random, COUNT_OF(bad))] : 1 + below(random, 3);
}

static unsigned count_fault(MPI_Count count)
{
    return count < 1 || count > INT_MAX ? FAULT_COUNT : 0;
}

static void call_one(struct observed_window *observed, struct random *random, bool errors_only)
{
    const int number = notify_number_draw(random);
    const MPI_Count count = count_draw(random);
    const bool waits = one_in(random, 2), no_flag = !waits && one_in(random, 10);
    int flag = 7;
    struct verdict verdict = {notify_fault(number) | count_fault(count) | (no_flag ? FAULT_ARG : 0),
                              0};
    const bool has = verdict.must == 0 && observed->here[number] >= count;
    if (verdict.must == 0 && (errors_only || (waits && !has)))
        return;
    fuzz_describe("%s(number %d, count %lld%s)", waits ? "Win_notify_wait" : "Win_notify_test",
                  number, (long long)count, no_flag ? ", no flag" : "");
    const int code =
        waits ? FUZZX(Win_notify_wait, observed->win, number, count)
              : FUZZX(Win_notify_test, observed->win, number, count, no_flag ? NULL : &flag);
    if (!fuzz_judge(verdict, code))
        return;
    if (!waits)
        CHECK(flag == has, "%.250s: flag is %d", fuzz_description(), flag);
    if (has)
        observed->here[number] -= count;
}

/* Completes an active request if its notifications are there, or cancels it; false if it is left
 * active. Only completion takes them. */
static bool request_end(struct observed_window *observed, struct random *random,
                        MPI_Request *request, int number, MPI_Count count)
{
    const bool has = observed->here[number] >= count, cancelled = one_in(random, 4);
    int done = 1;
    if (one_in(random, 4))
        return false;
    if (cancelled)
        CHECK_OK(FUZZ(Cancel, request));
    if (cancelled || (has && one_in(random, 2)))
        CHECK_OK(FUZZ(Wait, request, MPI_STATUS_IGNORE));
    else
        CHECK_OK(FUZZ(Test, request, &done, MPI_STATUS_IGNORE));
    CHECK(done == (has || cancelled), "%.250s: done is %d", fuzz_description(), done);
    observed->here[number] -= has && !cancelled ? count : 0;
    return done;
}

static void call_request(struct observed_window *observed, struct random *random, bool errors_only)
{
    const int number = notify_number_draw(random);
    const MPI_Count count = count_draw(random);
    const bool no_request = one_in(random, 12);
    MPI_Request request = MPI_REQUEST_NULL;
    struct verdict verdict = {
        notify_fault(number) | count_fault(count) | (no_request ? FAULT_ARG : 0), 0};
    if (verdict.must == 0 && errors_only)
        return;
    fuzz_describe("Win_notify_init(number %d, count %lld%s)", number, (long long)count,
                  no_request ? ", no request" : "");
    if (!fuzz_judge(verdict, FUZZX(Win_notify_init, observed->win, number, count,
                                   no_request ? NULL : &request))) {
        CHECK(request == MPI_REQUEST_NULL, "%.250s: it failed and made a request",
              fuzz_description());
        return;
    }
    for (int rounds = below(random, 3); rounds > 0; rounds--) {
        CHECK_OK(one_in(random, 3) ? FUZZ(Startall, 1, &request) : FUZZ(Start, &request));
        if (!request_end(observed, random, &request, number, count))
            break;
    }
    CHECK_OK(FUZZ(Request_free, &request));
}

/* The lowest place whose counter has a notification. */
static void call_any(struct observed_window *observed, struct random *random, bool errors_only)
{
    int numbers[LIST], index = -7, first = -1;
    const int n = one_in(random, 10) ? -below(random, 3) : 1 + below(random, LIST);
    const bool no_list = one_in(random, 20), no_index = one_in(random, 20);
    struct verdict verdict = {n < 1 || no_list || no_index ? FAULT_ARG : 0, 0};
    for (int i = 0; i < n; i++) {
        numbers[i] = notify_number_draw(random);
        verdict.must |= no_list ? 0 : notify_fault(numbers[i]);
        if (verdict.must == 0 && first < 0 && observed->here[numbers[i]] > 0)
            first = i;
    }
    if (verdict.must == 0 && (errors_only || first < 0))
        return;
    fuzz_describe("Win_notify_wait_any(%d numbers%s%s)", n, no_list ? ", NULL" : "",
                  no_index ? ", no index" : "");
    if (!fuzz_judge(verdict, FUZZX(Win_notify_wait_any, observed->win, n, no_list ? NULL : numbers,
                                   no_index ? NULL : &index)))
        return;
    if (CHECK(index == first, "%.250s: index %d, not %d", fuzz_description(), index, first))
        observed->here[numbers[index]]--;
}

void notify_call(struct observed_window *observed, struct random *random, bool errors_only)
{
    switch (random_below(random, 4)) {
    case 0: call_any(observed, random, errors_only); return;
    case 1: call_request(observed, random, errors_only); return;
    default: call_one(observed, random, errors_only); return;
    }
}
