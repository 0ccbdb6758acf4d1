/* Mutual proof of both ends of a connection between the checkers of two nodes that they belong to
 * one job, without revealing the key. */
#ifndef ORIEL_CHECK_REMOTE_REMOTE_AUTH_H
#define ORIEL_CHECK_REMOTE_REMOTE_AUTH_H

#include <stdbool.h>
#include <stdint.h>

/* The three messages, in their order. */
struct oriel_check_remote_challenge { /* server to every client */
    uint64_t nonce[2];
};

struct oriel_check_remote_claim { /* client */
    uint64_t nonce[2];
    uint64_t digest;
};

struct oriel_check_remote_proof { /* server to a proven client */
    uint64_t digest;
};

/* Client: returns false, with errno, if the other end does not prove that it has the key. That end
 * has a few seconds for each message; nothing else may be sent meanwhile. */
bool oriel_check_remote_prove(int fd, const uint64_t key[2]);

/* Server: the first message, and once data arrives, the third. Neither waits. Returns false if the
 * client is not of the job. */
bool oriel_check_remote_challenge(int fd, struct oriel_check_remote_challenge *out);
bool oriel_check_remote_client_is_proven(int fd, const uint64_t key[2],
                                         const struct oriel_check_remote_challenge *challenge);

#endif
