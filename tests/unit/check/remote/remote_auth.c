/* Both ends of a connection between checkers prove that they have the key. An end with another key
 * is refused, and so is one that sends too little, replays another connection, reflects messages,
 * relays two others, or is silent. The key is never sent. */
#include "check/remote/remote_auth.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../busy.h"
#include "cmocka_all.h"

enum { LIMIT_S = 30, END_S = 10 };

static const uint64_t key[2] = {UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210)};
static const uint64_t other_key[2] = {UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543211)};

/* --- sockets --- */

/* Both ends of a connection to a port; 0: the system selects one, which is returned. Nothing
 * listens there any more. */
static uint16_t connect_ends(uint16_t port, int *from, int *to)
{
    struct sockaddr_in name = {
        .sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_port = port};
    socklen_t len_bytes = sizeof name;
    int yes = 1;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&name, sizeof name), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&name, &len_bytes), 0);
    *from = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(*from, (struct sockaddr *)&name, sizeof name), 0);
    *to = accept(listener, NULL, NULL);
    assert_true(*to >= 0);
    close(listener);
    return name.sin_port;
}

static void send_all(int fd, const void *bytes, size_t len_bytes)
{
    assert_int_equal(send(fd, bytes, len_bytes, MSG_NOSIGNAL), len_bytes);
}

static void receive_all(int fd, void *bytes, size_t len_bytes)
{
    assert_int_equal(recv(fd, bytes, len_bytes, MSG_WAITALL), len_bytes);
}

static void await_something(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, -1), 1);
}

/* --- the client, in its own thread --- */

struct asker {
    pthread_t thread;
    const uint64_t *key;
    int fd;
    int other_end; /* of its connection */
    uint16_t port; /* the presumed port of the server */
    bool proven;
};

static void *ask(void *closure)
{
    struct asker *asker = closure;
    asker->proven = oriel_check_remote_prove(asker->fd, asker->key);
    return NULL;
}

static void begin(struct asker *asker, const uint64_t *with, uint16_t port)
{
    *asker = (struct asker){.key = with};
    asker->port = connect_ends(port, &asker->fd, &asker->other_end);
    assert_int_equal(pthread_create(&asker->thread, NULL, ask, asker), 0);
}

/* An impostor of the server has sent a challenge, and got the answer of a client with the key. */
static void begin_with(struct asker *asker, uint16_t port,
                       const struct oriel_check_remote_challenge *challenge,
                       struct oriel_check_remote_claim *claim)
{
    begin(asker, key, port);
    send_all(asker->other_end, challenge, sizeof *challenge);
    receive_all(asker->other_end, claim, sizeof *claim);
}

/* Whether the client accepts the other end as one of the job's. It waits a few seconds at most. */
static bool end(struct asker *asker)
{
    unsigned left_s = alarm(busy_limit_s(END_S));
    pthread_join(asker->thread, NULL);
    alarm(left_s);
    close(asker->fd);
    close(asker->other_end);
    return asker->proven;
}

static bool serve(int fd, const uint64_t with[2])
{
    struct oriel_check_remote_challenge challenge;
    assert_true(oriel_check_remote_challenge(fd, &challenge));
    await_something(fd);
    bool admits = oriel_check_remote_client_is_proven(fd, with, &challenge);
    if (!admits)
        shutdown(fd, SHUT_RDWR);
    return admits;
}

/* --- a relay between both ends --- */

struct relayed {
    struct oriel_check_remote_challenge challenge;
    struct oriel_check_remote_claim claim;
    struct oriel_check_remote_proof proof;
};

/* All messages between the client and a server at port are relayed. Returns whether both
 * accepted. */
static bool relay(struct asker *asker, uint16_t port, struct relayed *relayed)
{
    struct oriel_check_remote_challenge challenge;
    int from;
    int server;
    connect_ends(port, &from, &server);
    assert_true(oriel_check_remote_challenge(server, &challenge));
    receive_all(from, &relayed->challenge, sizeof relayed->challenge);
    send_all(asker->other_end, &relayed->challenge, sizeof relayed->challenge);
    receive_all(asker->other_end, &relayed->claim, sizeof relayed->claim);
    send_all(from, &relayed->claim, sizeof relayed->claim);
    await_something(server);
    bool admits = oriel_check_remote_client_is_proven(server, key, &challenge);
    if (admits) {
        receive_all(from, &relayed->proof, sizeof relayed->proof);
        send_all(asker->other_end, &relayed->proof, sizeof relayed->proof);
    }
    shutdown(asker->other_end, SHUT_RDWR);
    close(from);
    close(server);
    return end(asker) && admits;
}

/* Records a session of two ends with the key; returns the client's port. */
static uint16_t listen_in(struct relayed *relayed)
{
    struct asker asker;
    begin(&asker, key, 0);
    assert_true(relay(&asker, asker.port, relayed));
    return asker.port;
}

/* --- tests --- */

static void proof_p1_both_have_the_key(void **state)
{
    struct asker asker;
    (void)state;
    begin(&asker, key, 0);
    assert_true(serve(asker.other_end, key));
    assert_true(end(&asker));
}

static void proof_p1_another_key_is_refused(void **state)
{
    struct asker asker;
    (void)state;
    begin(&asker, other_key, 0);
    assert_false(serve(asker.other_end, key));
    assert_false(end(&asker));
}

static void proof_p1_an_answer_without_the_key_is_refused(void **state)
{
    const struct oriel_check_remote_challenge challenge = {{1, 2}};
    const struct oriel_check_remote_proof proof = {3};
    struct oriel_check_remote_claim claim;
    struct asker asker;
    (void)state;
    begin_with(&asker, 0, &challenge, &claim);
    send_all(asker.other_end, &proof, sizeof proof);
    assert_false(end(&asker));
}

static void proof_p1_key_is_not_sent(void **state)
{
    struct relayed relayed;
    (void)state;
    listen_in(&relayed);
    for (int i = 0; i < 2; i++)
        assert_null(memmem(&relayed, sizeof relayed, &key[i], sizeof key[i]));
}

static void proof_p2_claim_of_another_connection_is_refused(void **state)
{
    struct oriel_check_remote_challenge challenge;
    struct relayed relayed;
    int from;
    int server;
    (void)state;
    connect_ends(listen_in(&relayed), &from, &server);
    assert_true(oriel_check_remote_challenge(server, &challenge));
    send_all(from, &relayed.claim, sizeof relayed.claim);
    await_something(server);
    assert_false(oriel_check_remote_client_is_proven(server, key, &challenge));
    close(from);
    close(server);
}

static void proof_p2_answer_of_another_connection_is_refused(void **state)
{
    struct oriel_check_remote_claim claim;
    struct relayed relayed;
    struct asker asker;
    (void)state;
    begin_with(&asker, listen_in(&relayed), &relayed.challenge, &claim);
    send_all(asker.other_end, &relayed.proof, sizeof relayed.proof);
    assert_false(end(&asker));
}

static void proof_p3_a_reflected_proof_is_refused(void **state)
{
    const struct oriel_check_remote_challenge challenge = {{1, 2}};
    struct oriel_check_remote_claim claim;
    struct asker asker;
    (void)state;
    begin_with(&asker, 0, &challenge, &claim);
    send_all(asker.other_end, &claim.digest, sizeof claim.digest);
    assert_false(end(&asker));
}

static void proof_p3_a_reflected_challenge_is_refused(void **state)
{
    struct oriel_check_remote_challenge challenge;
    struct oriel_check_remote_claim claim;
    int from;
    int server;
    (void)state;
    connect_ends(0, &from, &server);
    assert_true(oriel_check_remote_challenge(server, &challenge));
    receive_all(from, &challenge, sizeof challenge);
    claim = (struct oriel_check_remote_claim){{challenge.nonce[0], challenge.nonce[1]},
                                              challenge.nonce[0]};
    send_all(from, &claim, sizeof claim);
    await_something(server);
    assert_false(oriel_check_remote_client_is_proven(server, key, &challenge));
    close(from);
    close(server);
}

static void proof_p4_a_relay_is_refused(void **state)
{
    struct relayed relayed;
    struct asker asker;
    (void)state;
    begin(&asker, key, 0);
    assert_false(relay(&asker, 0, &relayed));
}

static void proof_p5_strangers_get_no_answer(void **state)
{
    const struct oriel_check_remote_claim claim = {{1, 2}, 3};
    struct oriel_check_remote_challenge challenge;
    char byte;
    int from;
    int server;
    (void)state;
    connect_ends(0, &from, &server);
    assert_true(oriel_check_remote_challenge(server, &challenge));
    receive_all(from, &challenge, sizeof challenge);
    send_all(from, &claim, sizeof claim);
    await_something(server);
    assert_false(oriel_check_remote_client_is_proven(server, key, &challenge));
    close(server);
    assert_int_equal(recv(from, &byte, 1, 0), 0);
    close(from);
}

/* The rest never arrives. */
static void proof_p6_half_a_challenge_is_refused(void **state)
{
    const struct oriel_check_remote_challenge challenge = {{1, 2}};
    struct asker asker;
    (void)state;
    begin(&asker, key, 0);
    send_all(asker.other_end, &challenge, sizeof challenge - 1);
    assert_false(end(&asker));
}

static void proof_p6_half_an_answer_is_refused(void **state)
{
    struct oriel_check_remote_challenge challenge = {{1, 2}};
    struct oriel_check_remote_claim claim;
    struct asker asker;
    (void)state;
    begin_with(&asker, 0, &challenge, &claim);
    send_all(asker.other_end, &claim.digest, sizeof claim.digest - 1);
    assert_false(end(&asker));
}

static void proof_p6_half_a_claim_is_refused(void **state)
{
    struct relayed relayed;
    int from;
    int server;
    (void)state;
    const uint16_t port = listen_in(&relayed);
    for (size_t missing = 0; missing < 2;
         missing++) { /* with all of it, its own challenge would be accepted */
        connect_ends(port, &from, &server);
        send_all(from, &relayed.claim, sizeof relayed.claim - missing);
        await_something(server);
        assert_int_equal(oriel_check_remote_client_is_proven(server, key, &relayed.challenge),
                         missing == 0);
        close(from);
        close(server);
    }
}

static void proof_p6_silence_is_refused(void **state)
{
    const struct oriel_check_remote_challenge challenge = {{1, 2}};
    struct oriel_check_remote_claim claim;
    struct asker asker;
    (void)state;
    begin(&asker, key, 0);
    assert_false(end(&asker));
    begin_with(&asker, 0, &challenge, &claim);
    assert_false(end(&asker));
}

static void proof_p6_a_closed_connection_is_refused(void **state)
{
    struct oriel_check_remote_challenge challenge;
    struct asker asker;
    int from;
    int server;
    (void)state;
    begin(&asker, key, 0);
    shutdown(asker.other_end, SHUT_RDWR);
    assert_false(end(&asker));
    connect_ends(0, &from, &server);
    assert_true(oriel_check_remote_challenge(server, &challenge));
    close(from);
    await_something(server);
    assert_false(oriel_check_remote_client_is_proven(server, key, &challenge));
    close(server);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(proof_p1_both_have_the_key),
        cmocka_unit_test(proof_p1_another_key_is_refused),
        cmocka_unit_test(proof_p1_an_answer_without_the_key_is_refused),
        cmocka_unit_test(proof_p1_key_is_not_sent),
        cmocka_unit_test(proof_p2_claim_of_another_connection_is_refused),
        cmocka_unit_test(proof_p2_answer_of_another_connection_is_refused),
        cmocka_unit_test(proof_p3_a_reflected_proof_is_refused),
        cmocka_unit_test(proof_p3_a_reflected_challenge_is_refused),
        cmocka_unit_test(proof_p4_a_relay_is_refused),
        cmocka_unit_test(proof_p5_strangers_get_no_answer),
        cmocka_unit_test(proof_p6_half_a_challenge_is_refused),
        cmocka_unit_test(proof_p6_half_an_answer_is_refused),
        cmocka_unit_test(proof_p6_half_a_claim_is_refused),
        cmocka_unit_test(proof_p6_silence_is_refused),
        cmocka_unit_test(proof_p6_a_closed_connection_is_refused),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    alarm(busy_limit_s(LIMIT_S)); /* an endless wait is a failure */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
