/* Waiting for a word: the three conditions, the sleep after the spin, the results of the watch, and
 * the published wait state. A second thread changes the words; no other process is involved. */
#include "base/wait.h"

#include <pthread.h>
#include <unistd.h>

#include "cmocka_all.h"

enum { WATCHED_US = 350000 }; /* long enough for more than one call of the watch */

struct word {
    struct oriel_event event;
    uint32_t next; /* the other thread stores it */
    int asked;
    uint32_t late; /* the watch itself stores it */
    enum oriel_status answer;
};

static struct {
    unsigned lasted, renewed, over;
    bool refuses;
} published;

/* Ends the wait only after its state has been published a second time, however seldom this process
 * runs. */
static enum oriel_status ask(void *context)
{
    enum { ASKED_MOST = 50 };
    struct word *word = context;
    word->asked++;
    if (word->late != 0 && (published.lasted + published.renewed != 1 || word->asked == ASKED_MOST))
        oriel_store_release(&word->event.value, word->late);
    return word->answer;
}

static void *change_later(void *argument)
{
    struct word *word = argument;
    usleep(WATCHED_US);
    atomic_exchange(&word->event.value, word->next);
    oriel_wake(&word->event.value, &word->event.sleepers);
    return NULL;
}

/* Waits while another thread changes the word from `from` to `to`, late enough for a sleep. */
static void wait_through(enum oriel_wait_for what, uint32_t from, uint32_t to, uint32_t wanted)
{
    struct word word = {.event = {.value = from}, .next = to};
    struct oriel_watch watch = {.check = ask, .context = &word};
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, change_later, &word), 0);
    assert_int_equal(oriel_wait(&word.event.value, &word.event.sleepers, what, wanted, &watch),
                     ORIEL_OK);
    assert_int_equal(oriel_load_acquire(&word.event.value), to);
    pthread_join(other, NULL);
    assert_int_equal(word.event.sleepers, 0);
    assert_true(word.asked >= 1);
}

static void conditions_that_hold_return_at_once(void **state)
{
    (void)state;
    struct word word = {.event = {.value = 7}, .answer = ORIEL_E_PEER};
    struct oriel_watch watch = {.check = ask, .context = &word};
    _Atomic uint32_t *value = &word.event.value;
    _Atomic uint32_t *sleepers = &word.event.sleepers;
    assert_int_equal(oriel_wait(value, sleepers, ORIEL_WAIT_EQUAL, 7, &watch), ORIEL_OK);
    assert_int_equal(oriel_wait(value, sleepers, ORIEL_WAIT_NOT_EQUAL, 6, &watch), ORIEL_OK);
    assert_int_equal(oriel_wait(value, sleepers, ORIEL_WAIT_AT_LEAST, 7, &watch), ORIEL_OK);
    assert_int_equal(oriel_wait(value, sleepers, ORIEL_WAIT_AT_LEAST, 6, NULL), ORIEL_OK);
    assert_int_equal(word.asked, 0);
}

static void at_least_counts_modulo_two_to_32(void **state)
{
    (void)state;
    assert_true(oriel_wait_reached(0, ORIEL_WAIT_AT_LEAST, UINT32_MAX));
    assert_true(oriel_wait_reached(5, ORIEL_WAIT_AT_LEAST, UINT32_MAX - 5));
    assert_false(oriel_wait_reached(UINT32_MAX, ORIEL_WAIT_AT_LEAST, 0));
    assert_false(oriel_wait_reached(UINT32_MAX - 5, ORIEL_WAIT_AT_LEAST, 5));
    assert_true(oriel_wait_reached(UINT32_MAX, ORIEL_WAIT_NOT_EQUAL, 0));
    assert_false(oriel_wait_reached(UINT32_MAX, ORIEL_WAIT_EQUAL, 0));
}

static void sleeps_until_equal(void **state)
{
    (void)state;
    wait_through(ORIEL_WAIT_EQUAL, 3, 4, 4);
}

static void sleeps_until_not_equal(void **state)
{
    (void)state;
    wait_through(ORIEL_WAIT_NOT_EQUAL, 3, 9, 3);
}

static void sleeps_until_at_least_across_the_wrap(void **state)
{
    (void)state;
    wait_through(ORIEL_WAIT_AT_LEAST, UINT32_MAX - 1, 1, 0);
}

static void watch_ends_the_wait_with_its_status(void **state)
{
    (void)state;
    struct word word = {.answer = ORIEL_E_PEER};
    struct oriel_watch watch = {.check = ask, .context = &word};
    assert_int_equal(oriel_event_wait(&word.event, 1, &watch), ORIEL_E_PEER);
    assert_int_equal(word.asked, 1);
    assert_int_equal(word.event.sleepers, 0);
}

/* The peer signalled and then ended cleanly, all during the watch. */
static void value_that_arrives_during_the_watch_wins(void **state)
{
    (void)state;
    struct word word = {.answer = ORIEL_E_PEER, .late = 1};
    struct oriel_watch watch = {.check = ask, .context = &word};
    assert_int_equal(oriel_event_wait(&word.event, 1, &watch), ORIEL_OK);
    assert_int_equal(word.asked, 1);
    assert_int_equal(word.event.sleepers, 0);
}

static bool note_lasting(const struct oriel_watch *watch, uint64_t since_ns, bool was)
{
    assert_true(watch->what == ORIEL_WAITING_POST && oriel_now_ns() >= since_ns + 1000000);
    if (was)
        published.renewed++;
    else
        published.lasted++;
    return !published.refuses;
}

static void note_over(void)
{
    published.over++;
}

/* Waits until the watch runs for the first time, after 100 ms, or again (ask). */
static void wait_and_publish(enum oriel_waiting what)
{
    struct word word = {.late = 1};
    struct oriel_watch watch = {.check = ask, .context = &word, .what = what};
    published.lasted = published.renewed = published.over = 0;
    assert_int_equal(oriel_event_wait(&word.event, 1, &watch), ORIEL_OK);
}

static void long_wait_is_published_until_it_ends(void **state)
{
    static const struct oriel_wait_publisher teller = {note_lasting, note_over};
    (void)state;
    oriel_wait_set_publisher(&teller);
    wait_and_publish(ORIEL_WAITING_POST);
    assert_int_equal(published.lasted, 1);
    assert_int_equal(published.renewed, 1);
    assert_int_equal(published.over, 1);
    wait_and_publish(ORIEL_WAITING_NOTHING);
    assert_int_equal(published.lasted + published.over, 0);
    oriel_wait_is_internal = true;
    wait_and_publish(ORIEL_WAITING_POST);
    assert_int_equal(published.lasted + published.over, 0);
    oriel_wait_is_internal = false;
    published.refuses = true;
    wait_and_publish(ORIEL_WAITING_POST);
    assert_true(published.lasted > 1); /* checked repeatedly */
    assert_int_equal(published.over, 0);
    oriel_wait_set_publisher(NULL);
}

static unsigned host_calls;

static void call_host(void)
{
    host_calls++;
}

static void host_progresses_only_in_waits_of_the_program(void **state)
{
    (void)state;
    oriel_wait_set_progress(call_host);
    wait_and_publish(ORIEL_WAITING_POST);
    assert_true(host_calls > 0);
    host_calls = 0;
    oriel_wait_is_internal = true;
    wait_and_publish(ORIEL_WAITING_POST);
    assert_int_equal(host_calls, 0);
    oriel_wait_is_internal = false;
    oriel_wait_set_progress(NULL);
}

struct ping_pong {
    struct oriel_event ping;
    struct oriel_event pong;
};

enum { RALLIES = 2000 };

static void a_program_that_pauses_between_polls_is_told_in_time(void **state)
{
    (void)state;
    struct oriel_polling polling = {0};
    assert_false(oriel_polling_missed(&polling));
    for (int round = 0; round < 3; round++) {
        usleep(150000);
        assert_true(oriel_polling_missed(&polling));
    }
}

static void *answer(void *argument)
{
    struct ping_pong *game = argument;
    for (uint32_t i = 1; i <= RALLIES; i++) {
        oriel_event_wait(&game->ping, UINT32_MAX - 100 + i, NULL);
        oriel_event_signal(&game->pong);
    }
    return NULL;
}

static void events_signal_back_and_forth_across_the_wrap(void **state)
{
    (void)state;
    struct ping_pong game = {.ping = {.value = UINT32_MAX - 100}};
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, answer, &game), 0);
    for (uint32_t i = 1; i <= RALLIES; i++) {
        oriel_event_signal(&game.ping);
        assert_int_equal(oriel_event_wait(&game.pong, i, NULL), ORIEL_OK);
        assert_int_equal(game.pong.value, i);
    }
    pthread_join(other, NULL);
    assert_int_equal(game.ping.value, RALLIES - 101);
    assert_int_equal(game.ping.sleepers, 0);
    assert_int_equal(game.pong.sleepers, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_that_hold_return_at_once),
        cmocka_unit_test(at_least_counts_modulo_two_to_32),
        cmocka_unit_test(sleeps_until_equal),
        cmocka_unit_test(sleeps_until_not_equal),
        cmocka_unit_test(sleeps_until_at_least_across_the_wrap),
        cmocka_unit_test(watch_ends_the_wait_with_its_status),
        cmocka_unit_test(value_that_arrives_during_the_watch_wins),
        cmocka_unit_test(long_wait_is_published_until_it_ends),
        cmocka_unit_test(host_progresses_only_in_waits_of_the_program),
        cmocka_unit_test(a_program_that_pauses_between_polls_is_told_in_time),
        cmocka_unit_test(events_signal_back_and_forth_across_the_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
