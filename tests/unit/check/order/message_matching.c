/* The numbering of messages against a model of MPI's matching, for any order of posting, wildcards,
 * completion and cancelling. A receive acquires at least the clock of its own message, and exactly
 * that if no wildcard is in doubt. No state remains. order.h is simulated: a clock is the number of
 * sends of its process. */
#include "check/order/message_matching.h"

#include "check/order/order.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"

enum { SENDERS = 3, TAGS = 2, RECEIVER = 9, KEYS = 100000, MESSAGES = 4000, COMMUNICATOR = 77 };

/* --- order --- */

static struct {
    struct oriel_key key[KEYS];
    uint64_t clock[KEYS]; /* 0: empty */
    int used, standing;
    uint64_t sent[SENDERS];  /* clocks */
    uint64_t known[SENDERS]; /* to the receiver, from its acquires since the reset */
    int sender;              /* the releasing process */
    bool doubtful;
    bool took_all;
} order;

static int find(const struct oriel_key *key)
{
    for (int i = order.used; i-- > 0;)
        if (order.clock[i] != 0 && memcmp(&order.key[i], key, sizeof *key) == 0)
            return i;
    return -1;
}

uint64_t oriel_order_home(int world_rank)
{
    (void)world_rank;
    return 0;
}

void oriel_order_give(const struct oriel_key *key, int takers)
{
    assert_int_equal(takers, 1);
    assert_true(find(key) < 0 && order.used < KEYS);
    order.key[order.used] = *key;
    order.clock[order.used++] = order.sent[order.sender];
    order.standing++;
}

void oriel_order_give_again(const struct oriel_key *key)
{
    int at = find(key);
    if (at >= 0)
        order.clock[at] = order.sent[order.sender];
}

static bool know(const struct oriel_key *key, bool goes)
{
    int at = find(key), source = (int)(key->words[2] >> 32);
    if (at < 0)
        return false;
    if (order.clock[at] > order.known[source])
        order.known[source] = order.clock[at];
    if (goes) {
        order.clock[at] = 0;
        order.standing--;
    }
    return true;
}

bool oriel_order_take(const struct oriel_key *key)
{
    return know(key, true);
}

bool oriel_order_peek(const struct oriel_key *key)
{
    return know(key, false);
}

void oriel_order_forget(const struct oriel_key *key)
{
    int at = find(key);
    if (at >= 0) {
        order.clock[at] = 0;
        order.standing--;
    }
}

bool oriel_order_take_rank(int world_rank)
{
    order.known[world_rank] = order.sent[world_rank];
    order.took_all = true;
    return true;
}

void oriel_order_set_doubtful(void)
{
    order.doubtful = true;
}

bool oriel_order_is_doubtful(void)
{
    return order.doubtful;
}

/* --- MPI --- */

struct message {
    struct oriel_envelope envelope;
    uint64_t clock;
};

struct posted {
    struct oriel_envelope wanted;
    struct oriel_receiving *receiving;
    int message; /* -1: not matched */
    bool over;
};

static struct {
    struct oriel_matching senders[SENDERS];
    struct oriel_matching receiver;
    struct message messages[MESSAGES];
    bool matched[MESSAGES];
    int sent;
    struct posted posted[MESSAGES];
    int posts;
} world;

static uint64_t seed;

static int chance(int n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (int)(seed % (uint64_t)n);
}

static bool fits(struct oriel_envelope wanted, struct oriel_envelope envelope)
{
    return (wanted.peer == ORIEL_ANY || wanted.peer == envelope.peer) &&
           (wanted.tag == ORIEL_ANY || wanted.tag == envelope.tag);
}

static void begin(uint64_t of)
{
    memset(&order, 0, sizeof order);
    memset(&world, 0, sizeof world);
    seed = of * 7919 + 1;
    for (int i = 0; i < SENDERS; i++)
        oriel_matching_open(&world.senders[i], COMMUNICATOR, i);
    oriel_matching_open(&world.receiver, COMMUNICATOR, RECEIVER);
}

static void end(void)
{
    for (int i = 0; i < SENDERS; i++)
        oriel_matching_close(&world.senders[i]);
    oriel_matching_close(&world.receiver);
}

static void send_from(int sender, int tag)
{
    struct message *message = &world.messages[world.sent];
    order.sent[sender]++;
    order.sender = sender;
    struct oriel_sending *sending =
        oriel_send_begin(&world.senders[sender], (struct oriel_envelope){RECEIVER, tag});
    *message = (struct message){{sender, tag}, order.sent[sender]};
    for (int i = 0; i < world.posts; i++) {
        struct posted *posted = &world.posted[i];
        if (posted->message < 0 && !posted->over && fits(posted->wanted, message->envelope)) {
            posted->message = world.sent;
            world.matched[world.sent] = true;
            break;
        }
    }
    world.sent++;
    oriel_send_end(&world.senders[sender], sending, false);
}

static struct posted *post(int source, int tag)
{
    struct posted *posted = &world.posted[world.posts++];
    *posted = (struct posted){.wanted = {source, tag}, .message = -1};
    posted->receiving = oriel_receive_post(&world.receiver, posted->wanted);
    for (int i = 0; i < world.sent && posted->message < 0; i++)
        if (!world.matched[i] && fits(posted->wanted, world.messages[i].envelope)) {
            posted->message = i;
            world.matched[i] = true;
        }
    oriel_receive_posted(&world.receiver, posted->receiving);
    return posted;
}

static void complete(struct posted *posted, bool exactly)
{
    const struct message *message = &world.messages[posted->message];
    memset(order.known, 0, sizeof order.known);
    oriel_receive_got(&world.receiver, posted->receiving, message->envelope);
    posted->over = true;
    uint64_t known = order.known[message->envelope.peer];
    assert_true(known >= message->clock);
    if (exactly)
        assert_int_equal(known, message->clock);
}

static void cancel(struct posted *posted)
{
    oriel_receive_cancelled(&world.receiver, posted->receiving);
    posted->over = true;
}

/* A message that a probe finds, or none. */
static void probe(struct oriel_envelope wanted)
{
    for (int i = 0; i < world.sent; i++)
        if (!world.matched[i] && fits(wanted, world.messages[i].envelope)) {
            const struct message *message = &world.messages[i];
            memset(order.known, 0, sizeof order.known);
            oriel_message_seen(&world.receiver, message->envelope);
            assert_true(order.known[message->envelope.peer] >= message->clock);
            return;
        }
}

/* --- tests --- */

enum { WILDCARDS = 1, CANCELS = 2, ANY_ORDER = 4, PROBES = 8 };

static int choose(int n, unsigned how)
{
    return (how & WILDCARDS) && chance(3) == 0 ? ORIEL_ANY : chance(n);
}

static void one_step(unsigned how, int first)
{
    int what = chance(10);
    if (what < 4) {
        send_from(chance(SENDERS), chance(TAGS));
    } else if (what < 7) {
        int source = choose(SENDERS, how);
        post(source, choose(TAGS, how));
    } else if (world.posts > first) {
        struct posted *posted = &world.posted[first + chance(world.posts - first)];
        if (posted->over)
            return;
        if (posted->message >= 0)
            complete(posted, !(how & WILDCARDS));
        else if ((how & CANCELS) && chance(4) == 0)
            cancel(posted);
    }
    if ((how & PROBES) && chance(4) == 0) {
        int source = choose(SENDERS, how);
        probe((struct oriel_envelope){source, choose(TAGS, how)});
    }
}

static void at_random(uint64_t of, unsigned how)
{
    begin(of);
    int first = 0;
    for (int i = 0; i < 400; i++) {
        one_step(how, first);
        while (first < world.posts && world.posted[first].over)
            first++;
    }
    for (int i = first; i < world.posts; i++) {
        struct posted *posted = &world.posted[i];
        if (!posted->over && posted->message >= 0)
            complete(posted, !(how & WILDCARDS));
        else if (!posted->over)
            cancel(posted);
    }
    int unmatched = 0;
    for (int i = 0; i < world.sent; i++)
        unmatched += !world.matched[i];
    assert_int_equal(order.standing, unmatched);
    assert_false(order.took_all);
    end();
}

static void named_receives_match_their_own_message(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 300; i++)
        at_random(i, ANY_ORDER | CANCELS | PROBES);
}

static void wildcards_acquire_their_own_message_or_more(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 1000; i++)
        at_random(i, ANY_ORDER | CANCELS | PROBES | WILDCARDS);
}

static void wildcards_in_order_acquire_their_own_message(void **state)
{
    (void)state;
    begin(1);
    for (int i = 0; i < 50; i++)
        send_from(i % SENDERS, i % TAGS);
    for (int i = 0; i < 50; i++)
        complete(post(ORIEL_ANY, ORIEL_ANY), true);
    for (int i = 0; i < 20; i++)
        post(i % 2 ? ORIEL_ANY : i % SENDERS, ORIEL_ANY);
    for (int i = 0; i < 60; i++)
        send_from(i % SENDERS, i % TAGS);
    for (int i = 50; i < 70; i++)
        complete(&world.posted[i], true);
    end();
}

static void wildcard_before_a_named_receive_may_have_its_message(void **state)
{
    (void)state;
    begin(1);
    struct posted *any = post(ORIEL_ANY, 0), *named = post(1, 0);
    send_from(1, 0); /* from any source */
    send_from(1, 0); /* from the named source */
    complete(named, false);
    assert_int_equal(order.known[1], 2);
    complete(any, true);
    assert_int_equal(order.standing, 0);
    end();
}

/* Two threads' sends of one envelope may arrive in either order: each gets both clocks. */
static void overlapping_sends_are_given_each_others_clocks(void **state)
{
    (void)state;
    begin(1);
    struct oriel_envelope to = {RECEIVER, 0};
    order.sent[0] = 1;
    struct oriel_sending *first = oriel_send_begin(&world.senders[0], to);
    order.sent[0] = 2;
    struct oriel_sending *second = oriel_send_begin(&world.senders[0], to);
    oriel_send_end(&world.senders[0], first, false);
    oriel_send_end(&world.senders[0], second, false);
    world.messages[0] = (struct message){{0, 0}, 2};
    struct posted posted = {.receiving =
                                oriel_receive_post(&world.receiver, (struct oriel_envelope){0, 0})};
    complete(&posted, true);
    end();
}

/* Two sends overtake the first, and one of them has returned: the second position may have the
 * third message. */
static void overtaken_send_shifts_all_after_it(void **state)
{
    (void)state;
    begin(1);
    struct oriel_envelope to = {RECEIVER, 0};
    order.sent[0] = 1;
    struct oriel_sending *slow = oriel_send_begin(&world.senders[0], to);
    order.sent[0] = 2;
    struct oriel_sending *second = oriel_send_begin(&world.senders[0], to);
    oriel_send_end(&world.senders[0], second, false);
    order.sent[0] = 3;
    struct oriel_sending *third = oriel_send_begin(&world.senders[0], to);
    oriel_send_end(&world.senders[0], third, false);
    world.messages[0] = (struct message){{0, 0}, 2};
    world.messages[1] = (struct message){{0, 0}, 3};
    for (int i = 0; i < 2; i++) {
        struct posted posted = {
            .receiving = oriel_receive_post(&world.receiver, (struct oriel_envelope){0, 0}),
            .message = i};
        oriel_receive_posted(&world.receiver, posted.receiving);
        complete(&posted, false);
    }
    oriel_send_end(&world.senders[0], slow, false);
    end();
}

static void overlapping_receives_acquire_all_of_the_sender(void **state)
{
    (void)state;
    begin(1);
    send_from(0, 0);
    send_from(0, 0);
    struct oriel_receiving *one =
        oriel_receive_post(&world.receiver, (struct oriel_envelope){0, 0});
    struct oriel_receiving *two =
        oriel_receive_post(&world.receiver, (struct oriel_envelope){ORIEL_ANY, 0});
    oriel_receive_got(&world.receiver, one, (struct oriel_envelope){0, 0});
    assert_int_equal(order.known[0], 2);
    assert_true(order.took_all);
    order.known[0] = 0;
    oriel_receive_got(&world.receiver, two, (struct oriel_envelope){0, 0});
    assert_int_equal(order.known[0], 2);
    end();
}

/* A receive whose completion is never seen keeps its number: later receives still match their own
 * messages. */
static void abandoned_receive_retains_its_number(void **state)
{
    (void)state;
    begin(1);
    oriel_receive_abandoned(&world.receiver, post(0, 0)->receiving);
    assert_null(world.receiver.numbered);
    send_from(0, 0); /* its message */
    send_from(0, 0);
    complete(post(0, 0), true);
    assert_int_equal(order.standing, 1);
    assert_false(order.took_all);
    end();
}

/* A receive without a number stays: a later one has got this message or the next. */
static void abandoned_wildcard_may_have_any_message(void **state)
{
    (void)state;
    begin(1);
    oriel_receive_abandoned(&world.receiver, post(ORIEL_ANY, 0)->receiving);
    for (int i = 0; i < 3; i++)
        send_from(0, 0);
    complete(post(0, 0), true);
    assert_int_equal(order.known[0], 2);
    assert_int_equal(order.standing, 3);
    assert_false(order.took_all);
    end();
}

static void leave_receives_open(void)
{
    struct oriel_matching matching;
    oriel_matching_open(&matching, COMMUNICATOR, RECEIVER);
    for (int tag = 0; tag < TAGS; tag++) {
        oriel_receive_abandoned(&matching,
                                oriel_receive_post(&matching, (struct oriel_envelope){0, tag}));
        assert_non_null(oriel_receive_post(&matching, (struct oriel_envelope){1, tag}));
        oriel_receive_abandoned(
            &matching, oriel_receive_post(&matching, (struct oriel_envelope){ORIEL_ANY, tag}));
        assert_non_null(oriel_receive_post(&matching, (struct oriel_envelope){2, tag}));
    }
    oriel_matching_close(&matching);
}

/* A sanitizer's heap does not report its size, and detects leaks itself. */
static void endless_operations_are_freed_with_their_communicator(void **state)
{
    enum { ROUNDS = 1000 };
    (void)state;
    leave_receives_open();
    size_t before_bytes = mallinfo2().uordblks;
    for (int i = 0; i < ROUNDS; i++)
        leave_receives_open();
    assert_true(mallinfo2().uordblks < before_bytes + ROUNDS * sizeof(struct oriel_receiving));
}

static void failed_send_has_no_number(void **state)
{
    (void)state;
    begin(1);
    order.sent[0] = 1;
    oriel_send_end(&world.senders[0],
                   oriel_send_begin(&world.senders[0], (struct oriel_envelope){RECEIVER, 0}), true);
    assert_int_equal(order.standing, 0);
    send_from(0, 0);
    complete(post(0, 0), true);
    assert_false(order.doubtful);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(named_receives_match_their_own_message),
        cmocka_unit_test(wildcards_acquire_their_own_message_or_more),
        cmocka_unit_test(wildcards_in_order_acquire_their_own_message),
        cmocka_unit_test(wildcard_before_a_named_receive_may_have_its_message),
        cmocka_unit_test(overlapping_sends_are_given_each_others_clocks),
        cmocka_unit_test(overtaken_send_shifts_all_after_it),
        cmocka_unit_test(overlapping_receives_acquire_all_of_the_sender),
        cmocka_unit_test(abandoned_receive_retains_its_number),
        cmocka_unit_test(abandoned_wildcard_may_have_any_message),
        cmocka_unit_test(endless_operations_are_freed_with_their_communicator),
        cmocka_unit_test(failed_send_has_no_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
