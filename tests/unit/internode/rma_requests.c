/* src/internode/origin/rma_requests.c: when an operation of several messages has ended, which side
 * frees a message's request, and how failures are reported. This file simulates the net: answers
 * arrive when a case delivers them. Run by the test rows. */
#include "internode/origin/rma_requests.h"

#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"

static unsigned turns, checks;

void oriel_net_progress(void)
{
    turns++;
}

enum oriel_status oriel_net_check(struct oriel_net_peer *peer)
{
    assert_non_null(peer);
    checks++;
    return ORIEL_OK;
}

static struct oriel_net_peer *some_peer(void)
{
    static long dummy;
    return (struct oriel_net_peer *)(void *)&dummy;
}

/* Sends a message as internode/origin/origin_sync.c does. */
static struct oriel_internode_request *ask(void)
{
    struct oriel_internode_request *request = calloc(1, sizeof *request);
    request->target = 3;
    oriel_rma_request_attach(request, some_peer());
    return request;
}

/* Its answer. */
static void answer(struct oriel_internode_request *request, enum oriel_status status)
{
    request->net.status = status;
    request->net.end(&request->net);
}

static void an_answer_between_two_messages_ends_nothing(void **state)
{
    (void)state;
    struct oriel_rma_request pending;
    oriel_rma_request_begin(&pending, 3);
    struct oriel_internode_request *first = ask();
    oriel_rma_request_release(first); /* by a flush, before its answer has ended */
    answer(first, ORIEL_OK);
    assert_null(oriel_rma_request_take_ended());
    struct oriel_internode_request *second = ask();
    oriel_rma_request_sent(&pending);
    assert_null(oriel_rma_request_take_ended());
    answer(second, ORIEL_OK);
    oriel_rma_request_release(second); /* after it */
    assert_ptr_equal(oriel_rma_request_take_ended(), &pending);
    assert_null(pending.next_ended);
    assert_null(oriel_rma_request_take_ended());
    assert_int_equal(pending.status, ORIEL_OK);
}

static void an_operation_without_messages_has_ended_when_it_is_sent(void **state)
{
    (void)state;
    struct oriel_rma_request pending;
    oriel_rma_request_begin(&pending, 3);
    oriel_rma_request_sent(&pending);
    assert_ptr_equal(oriel_rma_request_take_ended(), &pending);
}

static void messages_of_other_operations_belong_to_none(void **state)
{
    (void)state;
    struct oriel_internode_request *request = ask();
    assert_null(request->pending);
    assert_null(request->net.end);
    oriel_rma_request_release(request);
}

static void a_message_that_was_not_sent_counts_for_nothing(void **state)
{
    (void)state;
    struct oriel_rma_request pending;
    oriel_rma_request_begin(&pending, 3);
    oriel_rma_request_detach(ask());
    assert_null(oriel_rma_request_take_ended());
    oriel_rma_request_sent(&pending);
    assert_ptr_equal(oriel_rma_request_take_ended(), &pending);
}

static void all_ended_requests_are_returned_once(void **state)
{
    (void)state;
    enum { MANY = 5 };
    struct oriel_rma_request pending[MANY];
    struct oriel_internode_request *requests[MANY];
    unsigned seen = 0;
    for (int i = 0; i < MANY; i++) {
        oriel_rma_request_begin(&pending[i], 3);
        requests[i] = ask();
        oriel_rma_request_sent(&pending[i]);
    }
    for (int i = 0; i < MANY; i += 2) {
        answer(requests[i], ORIEL_OK);
        oriel_rma_request_release(requests[i]);
    }
    for (struct oriel_rma_request *taken = oriel_rma_request_take_ended(); taken != NULL;
         taken = taken->next_ended)
        seen |= 1u << (taken - pending);
    assert_int_equal(seen, 1 + 4 + 16);
    for (int i = 1; i < MANY; i += 2) {
        oriel_rma_request_release(requests[i]);
        answer(requests[i], ORIEL_OK);
    }
    for (struct oriel_rma_request *taken = oriel_rma_request_take_ended(); taken != NULL;
         taken = taken->next_ended)
        seen |= 1u << (taken - pending);
    assert_int_equal(seen, 31);
}

static void a_lost_target_is_the_operations_failure(void **state)
{
    (void)state;
    struct oriel_rma_request pending;
    oriel_rma_request_begin(&pending, 3);
    struct oriel_internode_request *request = ask();
    oriel_rma_request_sent(&pending);
    answer(request, ORIEL_E_PEER);
    oriel_rma_request_release(request);
    assert_ptr_equal(oriel_rma_request_take_ended(), &pending);
    assert_int_equal(oriel_rma_request_tell(&pending, NULL), ORIEL_E_PEER);
    assert_non_null(strstr(oriel_fail_message(), "rank 3"));
}

static void a_reported_failure_is_not_reported_by_the_flush(void **state)
{
    (void)state;
    struct oriel_internode far = {.mutex = PTHREAD_MUTEX_INITIALIZER, .failure = ORIEL_E_RANGE};
    struct oriel_window window = {.internode = &far};
    struct oriel_rma_request pending;
    oriel_rma_request_begin(&pending, 3);
    oriel_rma_request_sent(&pending);
    assert_ptr_equal(oriel_rma_request_take_ended(), &pending);
    pending.status = ORIEL_E_RANGE;
    strcpy(pending.text, "beyond the end");
    far.failure_number = pending.number + 1;
    assert_int_equal(oriel_rma_request_tell(&pending, &window), ORIEL_E_RANGE);
    assert_int_equal(far.failure, ORIEL_E_RANGE);
    far.failure_number = pending.number;
    assert_int_equal(oriel_rma_request_tell(&pending, &window), ORIEL_E_RANGE);
    assert_int_equal(far.failure, ORIEL_OK);
}

static void targets_are_looked_at_while_answers_are_missing(void **state)
{
    (void)state;
    struct oriel_rma_request pending[2];
    struct oriel_internode_request *requests[2];
    turns = checks = 0;
    oriel_rma_request_progress();
    assert_int_equal(turns, 0);
    for (int i = 0; i < 2; i++) {
        oriel_rma_request_begin(&pending[i], 3);
        requests[i] = ask();
        oriel_rma_request_sent(&pending[i]);
    }
    for (uint64_t begin_ns = oriel_now_ns(); oriel_now_ns() - begin_ns < 250000000;)
        oriel_rma_request_progress();
    assert_true(turns > checks);
    assert_in_range(checks, 1, 4); /* one target */
    for (int i = 0; i < 2; i++) {
        answer(requests[i], ORIEL_OK);
        oriel_rma_request_release(requests[i]);
    }
    turns = 0;
    oriel_rma_request_progress();
    assert_int_equal(turns, 0);
    assert_non_null(oriel_rma_request_take_ended());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_between_two_messages_ends_nothing),
        cmocka_unit_test(an_operation_without_messages_has_ended_when_it_is_sent),
        cmocka_unit_test(messages_of_other_operations_belong_to_none),
        cmocka_unit_test(a_message_that_was_not_sent_counts_for_nothing),
        cmocka_unit_test(all_ended_requests_are_returned_once),
        cmocka_unit_test(a_lost_target_is_the_operations_failure),
        cmocka_unit_test(a_reported_failure_is_not_reported_by_the_flush),
        cmocka_unit_test(targets_are_looked_at_while_answers_are_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
