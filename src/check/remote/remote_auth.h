/* How both ends of a connection between the checkers of two machines show that they are of one job, without telling anybody the
 * key.  remote_socket.c calls for who asks, remote_serve.c for who answers. */
#ifndef ORIEL_CHECK_REMOTE_REMOTE_AUTH_H
#define ORIEL_CHECK_REMOTE_REMOTE_AUTH_H

#include <stdbool.h>
#include <stdint.h>

/* The three messages, in their order. */
struct oriel_check_remote_challenge { /* of who answers, to whoever connects */
    uint64_t nonce[2];
};

struct oriel_check_remote_claim { /* of who asks */
    uint64_t nonce[2];
    uint64_t digest;
};

struct oriel_check_remote_proof { /* of who answers, to who has shown that it may ask */
    uint64_t digest;
};

/* Who asks: false, with errno, where the other end does not show that it has the key.  That one has a few seconds for each of its
 * messages, and wants nothing else to be said meanwhile. */
bool oriel_check_remote_prove(int fd, const uint64_t key[2]);

/* Who answers: the first message, and once something comes, the third.  Neither waits.  False: this one is not of the job. */
bool oriel_check_remote_challenge(int fd, struct oriel_check_remote_challenge *out);
bool oriel_check_remote_admits(int fd, const uint64_t key[2],
                               const struct oriel_check_remote_challenge *challenge);

#endif
