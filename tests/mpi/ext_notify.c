/* Notified access: who sees a notification sees the operation and those before it, on every path
 * and in every kind of epoch; each notification is taken once; errors send none and leave the
 * window usable. */
#include "errors.h"
#include "oriel/ext.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNTERS = 8 };

static int right_of(int rank)
{
    return (rank + 1) % world_size;
}

static int left_of(int rank)
{
    return (rank + world_size - 1) % world_size;
}

static struct window notified_make(enum window_kind kind, MPI_Aint size_bytes, int disp_unit,
                                   int counters)
{
    char text[16];
    MPI_Info info;
    MPI_Info_create(&info);
    snprintf(text, sizeof text, "%d", counters);
    MPI_Info_set(info, "oriel_notifications", text);
    struct window window = window_make_with(info, kind, size_bytes, disp_unit, MPI_COMM_WORLD);
    MPI_Info_free(&info);
    return window;
}

static bool lacks_extensions(void)
{
    if (!MPIX_Query_oriel())
        harness_skip("extensions are Oriel's");
    return !MPIX_Query_oriel();
}

/* Fills with values that depend on the round and the place. */
static void words_fill(int64_t *words, int count, int64_t round)
{
    for (int i = 0; i < count; i++)
        words[i] = round * 1000003 + i;
}

static bool words_are(const int64_t *words, int count, int64_t round)
{
    for (int i = 0; i < count; i++)
        if (!CHECK(words[i] == round * 1000003 + i, "round %lld: word %d is %lld", (long long)round,
                   i, (long long)words[i]))
            return false;
    return true;
}

/* Each rank puts to its right, in turn with a notification back that the place is free. */
static void a_put_is_visible_with_its_notification(enum window_kind kind)
{
    enum { WORDS = 40000, SIZES = 6 };
    static const int sizes[SIZES] = {1, 2, 17, 64, 1000, WORDS};
    if (lacks_extensions())
        return;
    struct window window = notified_make(kind, 8 * WORDS, 8, COUNTERS);
    int64_t *sent = malloc(8 * WORDS);
    const int64_t *words = (const int64_t *)window.base;
    int rounds = scaled_rounds(200);
    MPI_Win_lock_all(0, window.win);
    for (int round = 1; round <= rounds && !harness_failed(); round++) {
        int count = sizes[round % SIZES];
        words_fill(sent, count, round + world_rank);
        if (round > 1)
            CHECK_OK(MPIX_Win_notify_wait(window.win, 1, 1));
        CHECK_OK(MPIX_Put_notify(sent, count, MPI_INT64_T, right_of(world_rank), 0, count,
                                 MPI_INT64_T, 0, window.win));
        memset(sent, 0xff, (size_t)count * 8);
        CHECK_OK(MPIX_Win_notify_wait(window.win, 0, 1));
        words_are(words, count, round + left_of(world_rank));
        CHECK_OK(
            MPIX_Put_notify(NULL, 0, MPI_BYTE, left_of(world_rank), 0, 0, MPI_BYTE, 1, window.win));
    }
    MPI_Win_unlock_all(window.win);
    free(sent);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* Only the last operation notifies. Short puts to copied memory are queued at the origin. */
static void earlier_operations_are_visible_too(enum window_kind kind)
{
    enum { WORDS = 32 };
    if (lacks_extensions())
        return;
    struct window window = notified_make(kind, 8 * (WORDS + 2), 8, COUNTERS);
    int64_t *words = (int64_t *)window.base;
    int target = right_of(world_rank);
    int rounds = scaled_rounds(100);
    for (int round = 1; round <= rounds && !harness_failed(); round++) {
        int64_t sent[WORDS], one = 1;
        words_fill(sent, WORDS, round + world_rank);
        CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win));
        for (int i = 0; i < WORDS; i++)
            MPI_Put(&sent[i], 1, MPI_INT64_T, target, i, 1, MPI_INT64_T, window.win);
        MPI_Accumulate(&one, 1, MPI_INT64_T, target, WORDS, 1, MPI_INT64_T, MPI_SUM, window.win);
        if (round % 2)
            CHECK_OK(MPIX_Accumulate_notify(&one, 1, MPI_INT64_T, target, WORDS + 1, 1, MPI_INT64_T,
                                            MPI_SUM, 3, window.win));
        else
            CHECK_OK(
                MPIX_Put_notify(sent, 0, MPI_INT64_T, target, 0, 0, MPI_INT64_T, 3, window.win));
        CHECK_OK(MPIX_Win_notify_wait(window.win, 3, 1));
        words_are(words, WORDS, round + left_of(world_rank));
        CHECK_EQUAL(words[WORDS], round);
        CHECK_EQUAL(words[WORDS + 1], (round + 1) / 2);
        CHECK_OK(MPI_Win_unlock(target, window.win));
        barrier(MPI_COMM_WORLD);
    }
    window_free(&window);
}

/* After the notification of a get its target may change the memory. */
static void a_get_has_read_when_it_notifies(enum window_kind kind)
{
    enum { WORDS = 9000 };
    if (lacks_extensions())
        return;
    struct window window = notified_make(kind, 8 * WORDS, 8, COUNTERS);
    int64_t *words = (int64_t *)window.base;
    int64_t *got = malloc(8 * WORDS);
    int target = right_of(world_rank);
    int rounds = scaled_rounds(60);
    for (int round = 1; round <= rounds && !harness_failed(); round++) {
        int count = round % 3 == 0 ? WORDS : round % 3 == 1 ? 1 : 300;
        words_fill(words, count, round + world_rank);
        MPI_Win_sync(window.win);
        barrier(MPI_COMM_WORLD);
        MPI_Win_lock_all(0, window.win);
        CHECK_OK(
            MPIX_Get_notify(got, count, MPI_INT64_T, target, 0, count, MPI_INT64_T, 7, window.win));
        CHECK_OK(MPIX_Win_notify_wait(window.win, 7, 1));
        memset(words, 0xee, (size_t)count * 8);
        MPI_Win_flush_all(window.win);
        words_are(got, count, round + target);
        MPI_Win_unlock_all(window.win);
        barrier(MPI_COMM_WORLD);
    }
    free(got);
    window_free(&window);
}

/* A derived type, a datatype of elements, and all of them in one counter. */
static void every_rank_notifies_one_counter(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window window = notified_make(kind, 64 * (MPI_Aint)world_size + 64, 8, COUNTERS);
    const int64_t *words = (const int64_t *)window.base;
    MPI_Datatype pairs;
    MPI_Type_vector(2, 1, 4, MPI_INT64_T, &pairs);
    MPI_Type_commit(&pairs);
    MPI_Win_lock_all(0, window.win);
    for (int round = 1; round <= 20 && !harness_failed(); round++) {
        int64_t sent[2] = {100 * round + world_rank, -world_rank - round}, one = 1;
        for (int i = 0; i < world_size; i++)
            CHECK_OK(MPIX_Put_notify(sent, 2, MPI_INT64_T, i, 8 * (MPI_Aint)world_rank, 1, pairs, 2,
                                     window.win));
        for (int i = 0; i < world_size; i++)
            CHECK_OK(MPIX_Accumulate_notify(&one, 1, MPI_INT64_T, i, 8 * (MPI_Aint)world_size, 1,
                                            MPI_INT64_T, MPI_SUM, 2, window.win));
        CHECK_OK(MPIX_Win_notify_wait(window.win, 2, 2 * (MPI_Count)world_size));
        CHECK_EQUAL(load_word(&words[8 * world_size]), (int64_t)round * world_size);
        for (int i = 0; i < world_size; i++) {
            CHECK_EQUAL(words[8 * i], 100 * round + i);
            CHECK_EQUAL(words[8 * i + 4], -i - round);
        }
        barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(window.win);
    MPI_Type_free(&pairs);
    window_free(&window);
}

static void test_takes_all_or_nothing(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window window = notified_make(kind, 8, 8, COUNTERS);
    int flag = -1;
    CHECK_OK(MPIX_Win_notify_test(window.win, 0, 1, &flag));
    CHECK_EQUAL(flag, 0);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < 3; i++)
        CHECK_OK(MPIX_Put_notify(NULL, 0, MPI_BYTE, right_of(world_rank), 0, 0, MPI_BYTE, 0,
                                 window.win));
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    CHECK_OK(MPIX_Win_notify_test(window.win, 0, 4, &flag));
    CHECK_EQUAL(flag, 0);
    CHECK_OK(MPIX_Win_notify_test(window.win, 0, 2, &flag));
    CHECK_EQUAL(flag, 1);
    CHECK_OK(MPIX_Win_notify_test(window.win, 0, 2, &flag));
    CHECK_EQUAL(flag, 0);
    CHECK_OK(MPIX_Win_notify_wait(window.win, 0, 1));
    CHECK_OK(MPIX_Win_notify_test(window.win, 0, 1, &flag));
    CHECK_EQUAL(flag, 0);
    window_free(&window);
}

/* Each rank serves as many notifications of random numbers as its left rank sends. */
static void wait_any_finds_what_arrives(enum window_kind kind)
{
    enum { SENT = 300 };
    static const int numbers[] = {6, 1, 4};
    if (lacks_extensions())
        return;
    struct window window = notified_make(kind, 8 * COUNTERS, 8, COUNTERS);
    struct random random = random_start((uint64_t)world_rank);
    int64_t *words = (int64_t *)window.base;
    int64_t taken[COUNTERS] = {0}, sent[COUNTERS] = {0};
    int rounds = scaled_rounds(SENT);
    MPI_Win_lock_all(0, window.win);
    for (int round = 1; round <= rounds && !harness_failed(); round++) {
        int number = numbers[random_below(&random, 3)], index = -1;
        sent[number]++;
        random_pause(&random, 200);
        CHECK_OK(MPIX_Put_notify(&sent[number], 1, MPI_INT64_T, right_of(world_rank), number, 1,
                                 MPI_INT64_T, number, window.win));
        CHECK_OK(MPIX_Win_notify_wait_any(window.win, 3, numbers, &index));
        if (!CHECK(index >= 0 && index < 3, "index %d", index))
            break;
        number = numbers[index];
        taken[number]++;
        CHECK(load_word(&words[number]) >= taken[number], "notification %lld of %d, word %lld",
              (long long)taken[number], number, (long long)words[number]);
    }
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < COUNTERS; i++)
        CHECK_EQUAL(words[i], taken[i]);
    window_free(&window);
}

/* The lowest place in the list, not the lowest number. */
static void wait_any_prefers_the_first_of_its_list(enum window_kind kind)
{
    static const int numbers[] = {5, 0};
    int index = -1;
    if (lacks_extensions())
        return;
    struct window window = notified_make(kind, 8, 8, COUNTERS);
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < 2; i++)
        CHECK_OK(MPIX_Put_notify(NULL, 0, MPI_BYTE, right_of(world_rank), 0, 0, MPI_BYTE,
                                 numbers[i], window.win));
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(MPIX_Win_notify_wait_any(window.win, 2, numbers, &index));
        CHECK_EQUAL(index, i);
    }
    window_free(&window);
}

static void every_kind_of_epoch_notifies(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window window = notified_make(kind, 16, 8, COUNTERS);
    const int64_t *words = (const int64_t *)window.base;
    MPI_Group world, left, right;
    int origin = left_of(world_rank), target = right_of(world_rank);
    int64_t value;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &origin, &left);
    MPI_Group_incl(world, 1, &target, &right);
    for (int round = 1; round <= 12; round++) {
        value = 10 * round + world_rank;
        switch (round % 4) {
        case 0: MPI_Win_fence(0, window.win); break;
        case 1:
            MPI_Win_post(left, 0, window.win);
            MPI_Win_start(right, 0, window.win);
            break;
        case 2: MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win); break;
        default: MPI_Win_lock_all(0, window.win); break;
        }
        CHECK_OK(MPIX_Put_notify(&value, 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, 0, window.win));
        CHECK_OK(MPIX_Win_notify_wait(window.win, 0, 1));
        CHECK_EQUAL(load_word(&words[1]), 10 * round + origin);
        switch (round % 4) {
        case 0: MPI_Win_fence(0, window.win); break;
        case 1:
            MPI_Win_complete(window.win);
            MPI_Win_wait(window.win);
            break;
        case 2: MPI_Win_unlock(target, window.win); break;
        default: MPI_Win_unlock_all(window.win); break;
        }
        barrier(MPI_COMM_WORLD);
    }
    MPI_Group_free(&left);
    MPI_Group_free(&right);
    MPI_Group_free(&world);
    window_free(&window);
}

/* Where the error of an operation on another node is raised. */
static void check_refused(int wanted, int code, int target, MPI_Win win)
{
    if (code == MPI_SUCCESS)
        code = MPI_Win_flush(target, win);
    CHECK_CLASS(wanted, code);
}

/* Mixed with requests of messages; the same request again in each round. */
static void requests_take_notifications(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window window = notified_make(kind, 16, 8, COUNTERS);
    const int64_t *words = (const int64_t *)window.base;
    MPI_Request requests[4];
    MPI_Status statuses[4];
    int rounds = scaled_rounds(40);
    CHECK_OK(MPIX_Win_notify_init(window.win, 2, 2, &requests[0]));
    CHECK_OK(MPIX_Win_notify_init(window.win, 5, 1, &requests[1]));
    MPI_Win_lock_all(0, window.win);
    for (int round = 1; round <= rounds && !harness_failed(); round++) {
        int64_t value = 10 * round + world_rank, sent = round, got = -1;
        int done = 0, index = -1, many = -1, indices[4];
        CHECK_OK(MPI_Startall(2, requests));
        MPI_Irecv(&got, 1, MPI_INT64_T, left_of(world_rank), 0, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(&sent, 1, MPI_INT64_T, right_of(world_rank), 0, MPI_COMM_WORLD, &requests[3]);
        CHECK_OK(MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE));
        barrier(MPI_COMM_WORLD); /* the test is before the notifications */
        CHECK(!done, "round %d: the request has completed before its notifications", round);
        for (int i = 0; i < 2; i++)
            CHECK_OK(MPIX_Put_notify(&value, 1, MPI_INT64_T, right_of(world_rank), i, 1,
                                     MPI_INT64_T, 2, window.win));
        CHECK_OK(MPIX_Put_notify(NULL, 0, MPI_BYTE, right_of(world_rank), 0, 0, MPI_BYTE, 5,
                                 window.win));
        switch (round % 4) {
        case 0: CHECK_OK(MPI_Waitall(4, requests, statuses)); break;
        case 1:
            for (int i = 0; i < 4; i++)
                CHECK_OK(MPI_Waitany(4, requests, &index, MPI_STATUS_IGNORE));
            CHECK_OK(MPI_Waitany(4, requests, &index, MPI_STATUS_IGNORE));
            CHECK_EQUAL(index, MPI_UNDEFINED);
            break;
        case 2:
            for (int i = 0; i < 4; i += many)
                CHECK_OK(MPI_Waitsome(4, requests, &many, indices, statuses));
            break;
        default:
            for (int i = 3; i >= 0; i--)
                CHECK_OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
            break;
        }
        CHECK_EQUAL(got, round);
        CHECK_EQUAL(words[0], 10 * round + left_of(world_rank));
        CHECK_EQUAL(words[1], 10 * round + left_of(world_rank));
        barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(window.win);
    for (int i = 0; i < 2; i++)
        CHECK_OK(MPI_Request_free(&requests[i]));
    window_free(&window);
}

static void a_cancelled_request_takes_nothing(enum window_kind kind)
{
    MPI_Request request, other = MPI_REQUEST_NULL;
    MPI_Status status;
    int cancelled = 0, flag = -1;
    if (lacks_extensions())
        return;
    struct window window = notified_make(kind, 8, 8, COUNTERS);
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    CHECK_OK(MPIX_Win_notify_init(window.win, 0, 1, &request));
    CHECK_OK(MPI_Start(&request));
    CHECK_OK(MPI_Cancel(&request));
    CHECK_OK(MPI_Wait(&request, &status));
    MPI_Test_cancelled(&status, &cancelled);
    CHECK(cancelled, "the status does not say that the request was cancelled");
    CHECK_OK(MPI_Start(&request));
    CHECK_OK(MPI_Request_free(&request));
    MPI_Win_lock_all(0, window.win);
    CHECK_OK(
        MPIX_Put_notify(NULL, 0, MPI_BYTE, right_of(world_rank), 0, 0, MPI_BYTE, 0, window.win));
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    CHECK_OK(MPIX_Win_notify_test(window.win, 0, 1, &flag));
    CHECK_EQUAL(flag, 1);
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_notify_init(window.win, COUNTERS, 1, &other));
    CHECK_CLASS(MPI_ERR_COUNT, MPIX_Win_notify_init(window.win, 0, 0, &other));
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_notify_init(window.win, 0, 1, NULL));
    CHECK(other == MPI_REQUEST_NULL, "a request was made in spite of an error");
    window_free(&window);
}

/* Words, a derived datatype, and nothing but the notification. */
static void persistent_puts_notify(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window window = notified_make(kind, 128, 8, COUNTERS);
    const int64_t *words = (const int64_t *)window.base;
    MPI_Request requests[4], other = MPI_REQUEST_NULL;
    MPI_Status statuses[4];
    MPI_Datatype pairs;
    int64_t sent[3] = {0};
    int target = right_of(world_rank), flag = 1;
    MPI_Win win = window.win;
    MPI_Type_vector(2, 1, 4, MPI_INT64_T, &pairs);
    MPI_Type_commit(&pairs);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    CHECK_OK(MPIX_Put_notify_init(sent, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, 1, win,
                                  &requests[0]));
    CHECK_OK(
        MPIX_Put_notify_init(&sent[1], 2, MPI_INT64_T, target, 1, 1, pairs, 1, win, &requests[1]));
    CHECK_OK(MPIX_Put_notify_init(NULL, 0, MPI_BYTE, target, 0, 0, MPI_BYTE, 1, win, &requests[2]));
    CHECK_OK(MPIX_Put_notify_init(sent, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, 1, win,
                                  &requests[3]));
    MPI_Type_free(&pairs);
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Start(&requests[0]));
    CHECK_OK(MPIX_Win_notify_test(win, 1, 1, &flag));
    CHECK_EQUAL(flag, 0);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int round = 1; round <= 30 && !harness_failed(); round++) {
        for (int i = 0; i < 3; i++)
            sent[i] = 100 * round + 10 * i + world_rank;
        CHECK_OK(MPI_Startall(4, requests));
        CHECK_OK(MPI_Waitall(4, requests, statuses));
        CHECK_OK(MPIX_Win_notify_wait(win, 1, 3));
        for (int i = 0; i < 3; i++)
            CHECK_EQUAL(words[i == 2 ? 5 : i], 100 * round + 10 * i + left_of(world_rank));
        barrier(MPI_COMM_WORLD);
    }
    check_refused(MPI_ERR_ARG,
                  MPIX_Put_notify_init(sent, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T,
                                       MPIX_NOTIFICATIONS_MOST, win, &other),
                  target, win);
    MPI_Win_unlock_all(win);
    for (int i = 0; i < 4; i++)
        CHECK_OK(MPI_Request_free(&requests[i]));
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* The origin's gets have read what the target writes after their notification. Elements that the
 * CPU updates, a derived datatype, and nothing but the notification. */
static void persistent_gets_and_accumulates_notify(enum window_kind kind)
{
    enum { STARTED = 6, ROUNDS = 30 };
    if (lacks_extensions())
        return;
    struct window window = notified_make(kind, 128, 8, COUNTERS);
    int64_t *words = (int64_t *)window.base;
    MPI_Request requests[STARTED], other = MPI_REQUEST_NULL;
    MPI_Status statuses[STARTED];
    MPI_Datatype pairs;
    int64_t got[3] = {0}, two = 2, many[2] = {3, 4};
    int target = right_of(world_rank), flag = 1;
    MPI_Win win = window.win;
    MPI_Type_vector(2, 1, 4, MPI_INT64_T, &pairs);
    MPI_Type_commit(&pairs);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    CHECK_OK(
        MPIX_Get_notify_init(got, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, 1, win, &requests[0]));
    CHECK_OK(
        MPIX_Get_notify_init(&got[1], 2, MPI_INT64_T, target, 1, 1, pairs, 1, win, &requests[1]));
    CHECK_OK(MPIX_Get_notify_init(NULL, 0, MPI_BYTE, target, 0, 0, MPI_BYTE, 1, win, &requests[2]));
    CHECK_OK(MPIX_Accumulate_notify_init(&two, 1, MPI_INT64_T, target, 8, 1, MPI_INT64_T, MPI_SUM,
                                         2, win, &requests[3]));
    CHECK_OK(MPIX_Accumulate_notify_init(many, 2, MPI_INT64_T, target, 9, 1, pairs, MPI_SUM, 2, win,
                                         &requests[4]));
    CHECK_OK(MPIX_Accumulate_notify_init(&two, 1, MPI_INT64_T, MPI_PROC_NULL, 8, 1, MPI_INT64_T,
                                         MPI_SUM, 2, win, &requests[5]));
    MPI_Type_free(&pairs);
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Start(&requests[0]));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Start(&requests[3]));
    CHECK_OK(MPIX_Win_notify_test(win, 1, 1, &flag));
    CHECK_EQUAL(flag, 0);
    memset(words, 0, 128);
    for (int round = 1; round <= ROUNDS && !harness_failed(); round++) {
        for (int i = 0; i < 3; i++)
            words[i == 2 ? 5 : i] = 100 * round + 10 * i + world_rank;
        MPI_Win_sync(win);
        barrier(MPI_COMM_WORLD);
        MPI_Win_lock_all(0, win);
        CHECK_OK(MPI_Startall(STARTED, requests));
        CHECK_OK(MPIX_Win_notify_wait(win, 1, 3));
        memset(words, 0xee, 48);
        CHECK_OK(MPIX_Win_notify_wait(win, 2, 2));
        CHECK_EQUAL(words[8], 2 * round);
        CHECK_EQUAL(words[9], 3 * round);
        CHECK_EQUAL(words[13], 4 * round);
        CHECK_OK(MPI_Waitall(STARTED, requests, statuses));
        for (int i = 0; i < 3; i++)
            CHECK_EQUAL(got[i], 100 * round + 10 * i + target);
        MPI_Win_unlock_all(win);
        barrier(MPI_COMM_WORLD);
    }
    MPI_Win_lock_all(0, win);
    check_refused(MPI_ERR_ARG,
                  MPIX_Get_notify_init(got, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T,
                                       MPIX_NOTIFICATIONS_MOST, win, &other),
                  target, win);
    check_refused(MPI_ERR_ARG,
                  MPIX_Accumulate_notify_init(&two, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T,
                                              MPI_SUM, -1, win, &other),
                  target, win);
    CHECK(other == MPI_REQUEST_NULL, "a creation that failed made a request");
    MPI_Win_unlock_all(win);
    for (int i = 0; i < STARTED; i++)
        CHECK_OK(MPI_Request_free(&requests[i]));
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static void operations_that_fail_do_not_notify(enum window_kind kind)
{
    int64_t value = 5;
    int target = guarded_target(), flag = 1;
    if (lacks_extensions())
        return;
    struct window window = notified_make(kind, GUARD_BYTES, 8, 2);
    memset(window.base, GUARD_BYTE, GUARD_BYTES);
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    barrier(MPI_COMM_WORLD);
    MPI_Win win = window.win;
    CHECK_CLASS(MPI_ERR_RMA_SYNC,
                MPIX_Put_notify(&value, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, 0, win));
    MPI_Win_lock_all(0, win);
    check_refused(MPI_ERR_ARG,
                  MPIX_Put_notify(&value, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, 2, win),
                  target, win);
    check_refused(MPI_ERR_ARG,
                  MPIX_Put_notify(&value, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, -1, win),
                  target, win);
    check_refused(MPI_ERR_ARG,
                  MPIX_Get_notify(&value, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, 70000, win),
                  target, win);
    check_refused(MPI_ERR_ARG,
                  MPIX_Accumulate_notify(&value, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM,
                                         INT_MAX, win),
                  target, win);
    CHECK_CLASS(MPI_ERR_RMA_RANGE, MPIX_Put_notify(&value, 1, MPI_INT64_T, target, RANGE_WORDS, 1,
                                                   MPI_INT64_T, 0, win));
    CHECK_CLASS(MPI_ERR_RMA_RANGE, MPIX_Get_notify(&value, 1, MPI_INT64_T, target, RANGE_WORDS, 1,
                                                   MPI_INT64_T, 0, win));
    CHECK_CLASS(MPI_ERR_DISP,
                MPIX_Put_notify(&value, 1, MPI_INT64_T, target, -1, 1, MPI_INT64_T, 0, win));
    CHECK_CLASS(MPI_ERR_RANK,
                MPIX_Put_notify(&value, 1, MPI_INT64_T, world_size, 0, 1, MPI_INT64_T, 0, win));
    CHECK_CLASS(MPI_ERR_COUNT,
                MPIX_Put_notify(&value, -1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, 0, win));
    CHECK_CLASS(MPI_ERR_TYPE, MPIX_Accumulate_notify(&value, 1, MPI_INT64_T, target, 0, 1,
                                                     MPI_DOUBLE, MPI_SUM, 0, win));
    CHECK_CLASS(MPI_ERR_OP, MPIX_Accumulate_notify(&value, 1, MPI_INT64_T, target, 0, 1,
                                                   MPI_INT64_T, MPI_NO_OP, 0, win));
    CHECK_CLASS(MPI_ERR_BUFFER,
                MPIX_Put_notify(NULL, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, 0, win));
    CHECK_OK(MPIX_Put_notify(&value, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, 99, win));
    CHECK_OK(MPIX_Get_notify(&value, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, 99, win));
    CHECK_OK(MPIX_Accumulate_notify(&value, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T,
                                    MPI_SUM, 99, win));
    MPI_Win_unlock_all(win);
    barrier(MPI_COMM_WORLD);
    for (int number = 0; number < 2; number++) {
        CHECK_OK(MPIX_Win_notify_test(win, number, 1, &flag));
        CHECK_EQUAL(flag, 0);
    }
    guarded_free(&window);
}

static void calls_that_take_check_their_arguments(enum window_kind kind)
{
    static const int right[] = {1, 0}, wrong[] = {1, 2};
    int flag = 7, index = 7;
    if (lacks_extensions())
        return;
    struct window window = notified_make(kind, GUARD_BYTES, 8, 2);
    memset(window.base, GUARD_BYTE, GUARD_BYTES);
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    MPI_Win win = window.win;
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_notify_wait(win, 2, 1));
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_notify_wait(win, -1, 1));
    CHECK(strstr(oriel_error_text(), "numbers 0 to 1") != NULL, "%s", oriel_error_text());
    CHECK_CLASS(MPI_ERR_COUNT, MPIX_Win_notify_wait(win, 0, 0));
    CHECK_CLASS(MPI_ERR_COUNT, MPIX_Win_notify_wait(win, 0, -1));
    CHECK_CLASS(MPI_ERR_COUNT, MPIX_Win_notify_wait(win, 0, (MPI_Count)INT_MAX + 1));
    CHECK_CLASS(MPI_ERR_COUNT, MPIX_Win_notify_test(win, 0, (MPI_Count)INT_MAX + 1, &flag));
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_notify_test(win, 0, 1, NULL));
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_notify_test(win, 2, 1, &flag));
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_notify_wait_any(win, 0, right, &index));
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_notify_wait_any(win, 2, wrong, &index));
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_notify_wait_any(win, 2, NULL, &index));
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_notify_wait_any(win, 2, right, NULL));
    CHECK_EQUAL(flag, 7);
    CHECK_EQUAL(index, 7);
    CHECK_OK(MPIX_Win_notify_test(win, 0, INT_MAX, &flag));
    CHECK_EQUAL(flag, 0);
    guarded_free(&window);
}

static void a_window_has_no_counters_unless_it_asks(enum window_kind kind)
{
    int64_t value = 5;
    char text[MPI_MAX_INFO_VAL + 1] = "";
    int target = guarded_target(), found = 0;
    MPI_Info info;
    if (lacks_extensions())
        return;
    struct window window = guarded_make(kind);
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_notify_wait(window.win, 0, 1));
    CHECK(strstr(oriel_error_text(), "oriel_notifications") != NULL, "%s", oriel_error_text());
    MPI_Win_lock_all(0, window.win);
    check_refused(MPI_ERR_ARG,
                  MPIX_Put_notify(&value, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, 0, window.win),
                  target, window.win);
    MPI_Win_unlock_all(window.win);
    CHECK_OK(MPI_Win_get_info(window.win, &info));
    MPI_Info_get(info, "oriel_notifications", MPI_MAX_INFO_VAL, text, &found);
    CHECK(found && strcmp(text, "0") == 0, "oriel_notifications is %s", text);
    MPI_Info_set(info, "oriel_notifications", "4");
    CHECK_OK(MPI_Win_set_info(window.win, info));
    MPI_Info_free(&info);
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_notify_wait(window.win, 0, 1));
    guarded_free(&window);
}

/* The key's limit, values that are none, and a number of its own for each rank. */
static void counters_are_those_of_each_rank(enum window_kind kind)
{
    static const struct {
        const char *value;
        int counters;
    } cases[] = {{"65536", 65536}, {"65537", 0}, {"-1", 0}, {"many", 0}, {"", 0}, {"1", 1}};
    if (lacks_extensions())
        return;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        MPI_Info info;
        MPI_Info_create(&info);
        if (cases[i].value[0] != '\0')
            MPI_Info_set(info, "oriel_notifications", cases[i].value);
        struct window window = window_make_with(info, kind, 8, 8, MPI_COMM_WORLD);
        MPI_Info_free(&info);
        MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
        int flag;
        CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_notify_test(window.win, cases[i].counters, 1, &flag));
        if (cases[i].counters > 0)
            CHECK_OK(MPIX_Win_notify_test(window.win, cases[i].counters - 1, 1, &flag));
        window_free(&window);
    }
    struct window window = notified_make(kind, 8, 8, world_rank + 1);
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < world_size; i++) {
        CHECK_OK(MPIX_Put_notify(NULL, 0, MPI_BYTE, i, 0, 0, MPI_BYTE, i, window.win));
        CHECK_OK(MPI_Win_flush(i, window.win));
        check_refused(MPI_ERR_ARG,
                      MPIX_Put_notify(NULL, 0, MPI_BYTE, i, 0, 0, MPI_BYTE, i + 1, window.win), i,
                      window.win);
    }
    CHECK_OK(MPIX_Win_notify_wait(window.win, world_rank, world_size));
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* Addresses as displacements, in memory that is attached. */
static void dynamic_windows_notify(enum window_kind kind)
{
    (void)kind;
    if (lacks_extensions())
        return;
    static int64_t words[2];
    MPI_Info info;
    MPI_Win win;
    MPI_Aint own, there;
    int64_t value = 40 + world_rank;
    MPI_Info_create(&info);
    MPI_Info_set(info, "oriel_notifications", "1");
    MPI_Win_create_dynamic(info, MPI_COMM_WORLD, &win);
    window_watch(win);
    MPI_Info_free(&info);
    CHECK_OK(MPI_Win_attach(win, words, sizeof words));
    MPI_Get_address(&words[1], &own);
    MPI_Sendrecv(&own, 1, MPI_AINT, left_of(world_rank), 0, &there, 1, MPI_AINT,
                 right_of(world_rank), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_lock_all(0, win);
    CHECK_OK(MPIX_Put_notify(&value, 1, MPI_INT64_T, right_of(world_rank), there, 1, MPI_INT64_T, 0,
                             win));
    CHECK_OK(MPIX_Win_notify_wait(win, 0, 1));
    CHECK_EQUAL(load_word(&words[1]), 40 + left_of(world_rank));
    MPI_Win_unlock_all(win);
    barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_detach(win, words));
    MPI_Win_free(&win);
}

static const struct test_case cases[] = {
    CASE(a_put_is_visible_with_its_notification, KINDS_ALL, 1),
    CASE(earlier_operations_are_visible_too, KINDS_ALL, 1),
    CASE(a_get_has_read_when_it_notifies, KINDS_ALL, 1),
    CASE(every_rank_notifies_one_counter, KINDS_BOTH, 1),
    CASE(test_takes_all_or_nothing, KINDS_BOTH, 1),
    CASE(wait_any_finds_what_arrives, KINDS_BOTH, 1),
    CASE(wait_any_prefers_the_first_of_its_list, KIND_ALLOCATE, 1),
    CASE(every_kind_of_epoch_notifies, KINDS_ALL, 1),
    CASE(operations_that_fail_do_not_notify, KINDS_ALL, 1),
    CASE(calls_that_take_check_their_arguments, KIND_ALLOCATE, 1),
    CASE(a_window_has_no_counters_unless_it_asks, KINDS_BOTH, 1),
    CASE(counters_are_those_of_each_rank, KIND_ALLOCATE, 1),
    CASE(dynamic_windows_notify, KIND_ANY, 1),
    CASE(requests_take_notifications, KINDS_BOTH, 1),
    CASE(a_cancelled_request_takes_nothing, KIND_ALLOCATE, 1),
    CASE(persistent_puts_notify, KINDS_ALL, 1),
    CASE(persistent_gets_and_accumulates_notify, KINDS_ALL, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
