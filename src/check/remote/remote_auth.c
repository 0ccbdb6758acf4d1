/* Who connects and who is connected to show each other that they have the key of the server's machine, which the job's ranks have
 * told each other over MPI.  Somebody else may listen at the address, connect to the port, or stand in between.  remote_auth.h says
 * who may call.
 *
 * Why that is enough.
 * P1 The key is not sent.  What is sent are random numbers and digests under the key (base/siphash.h), which nobody makes without
 *    it: a guess is right once in 2^64 connections.
 * P2 Each end draws a number for each connection, and each digest is of both.  So one that was heard before is worth nothing.
 * P3 A digest says which end's it is.  So one's own that comes back is not the other's.
 * P4 A digest says at which address and port the server is, as each end has it from its own socket.  So somebody at an address
 *    where the server is not, who passes on what both say, has neither of the two believe it.  No translation of addresses stands
 *    in between: they are those of the server's own devices.
 * P5 Who asks shows first, so that strangers get no digest of the server's.
 * P6 A message comes in one piece, within some seconds, or it is none: nobody waits for who says a byte now and then. */
#include "check/remote/remote_auth.h"

#include "base/siphash.h"
#include "check/remote/remote_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

enum end { ASKS = 1, ANSWERS = 2 };

/* What a digest is of. */
struct said {
    uint64_t end;              /* P3 */
    uint64_t challenge[2];     /* P2 */
    uint64_t claim[2];         /* P2 */
    unsigned char address[16]; /* P4: one of IPv4 as IPv6 has it */
    uint64_t port;             /* P4: as it is sent */
};

typedef int (*oriel_socket_name)(int fd, struct sockaddr *address, socklen_t *len_bytes);

static bool add_place(struct said *said, int fd, oriel_socket_name name_of)
{
    struct sockaddr_storage name = {.ss_family = AF_UNSPEC};
    const struct sockaddr_in6 *six = (const void *)&name;
    const struct sockaddr_in *four = (const void *)&name;
    socklen_t len_bytes = sizeof name;
    if (name_of(fd, (struct sockaddr *)&name, &len_bytes) != 0)
        return false;
    if (name.ss_family == AF_INET) {
        memset(said->address + 10, 0xff, 2);
        memcpy(said->address + 12, &four->sin_addr, sizeof four->sin_addr);
        said->port = four->sin_port;
        return true;
    }
    memcpy(said->address, &six->sin6_addr, sizeof said->address);
    said->port = six->sin6_port;
    return name.ss_family == AF_INET6;
}

static void add_numbers(struct said *said, const struct oriel_check_remote_challenge *challenge,
                        const struct oriel_check_remote_claim *claim)
{
    memcpy(said->challenge, challenge->nonce, sizeof said->challenge);
    memcpy(said->claim, claim->nonce, sizeof said->claim);
}

static uint64_t digest_of(struct said *said, enum end end, const uint64_t key[2])
{
    said->end = end;
    return oriel_siphash(key, said, sizeof *said);
}

static bool draw(uint64_t nonce[2])
{
    return getrandom(nonce, 2 * sizeof nonce[0], 0) == (ssize_t)(2 * sizeof nonce[0]);
}

static bool send_piece(int fd, void *piece, size_t len_bytes)
{
    return send(fd, piece, len_bytes, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len_bytes;
}

/* P6 */
static bool take_piece(int fd, void *piece, size_t len_bytes)
{
    return recv(fd, piece, len_bytes, MSG_DONTWAIT) == (ssize_t)len_bytes;
}

/* Compared as a whole, in one time whatever differs. */
static bool is_same(uint64_t digest, uint64_t expected)
{
    return (digest ^ expected) == 0;
}

bool oriel_check_remote_prove(int fd, const uint64_t key[2])
{
    struct said said = {.end = ASKS};
    struct oriel_check_remote_challenge challenge;
    struct oriel_check_remote_claim claim;
    struct oriel_check_remote_proof proof;
    bool challenged = draw(claim.nonce) && add_place(&said, fd, getpeername) &&
                      oriel_check_remote_await(fd, POLLIN) == 1 &&
                      take_piece(fd, &challenge, sizeof challenge);
    if (challenged) {
        add_numbers(&said, &challenge, &claim);
        claim.digest = digest_of(&said, ASKS, key);
    }
    bool proven = challenged && send_piece(fd, &claim, sizeof claim) &&
                  oriel_check_remote_await(fd, POLLIN) == 1 &&
                  take_piece(fd, &proof, sizeof proof) &&
                  is_same(proof.digest, digest_of(&said, ANSWERS, key));
    errno = ECONNREFUSED;
    return proven;
}

bool oriel_check_remote_challenge(int fd, struct oriel_check_remote_challenge *out)
{
    return draw(out->nonce) && send_piece(fd, out, sizeof *out);
}

bool oriel_check_remote_admits(int fd, const uint64_t key[2],
                               const struct oriel_check_remote_challenge *challenge)
{
    struct said said = {.end = ASKS};
    struct oriel_check_remote_claim claim;
    if (!take_piece(fd, &claim, sizeof claim) || !add_place(&said, fd, getsockname))
        return false;
    add_numbers(&said, challenge, &claim);
    if (!is_same(claim.digest, digest_of(&said, ASKS, key)))
        return false; /* P5 */
    struct oriel_check_remote_proof proof = {.digest = digest_of(&said, ANSWERS, key)};
    return send_piece(fd, &proof, sizeof proof);
}
