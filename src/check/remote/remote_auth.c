/* Both ends of a connection prove that they have the key of the server's node. The ranks of the job
 * exchange the key over MPI. A foreign process may listen at the address, connect to the port, or
 * relay between the two.
 *
 * Why that is enough:
 * P1: The key is not sent. The messages contain random numbers and digests under the key
 *     (base/siphash.h), which cannot be made without the key: a guess succeeds once in 2^64
 *     connections.
 * P2: Each end draws a number for each connection, and each digest covers both. So a digest of an
 *     earlier connection is useless.
 * P3: A digest names its end. So an end that gets its own digest back does not accept it.
 * P4: A digest covers the server's address and port, as each end reads them from its own socket. So
 *     neither end accepts a relay at an address where the server is not. No address translation
 *     interferes: the addresses are those of the server's own devices.
 * P5: The client proves first, so strangers get no digest of the server's.
 * P6: A message arrives in one piece within some seconds, or it is invalid: no end waits for single
 *     bytes. */
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

enum end { CLIENT = 1, SERVER = 2 };

/* The contents of a digest. */
struct input {
    uint64_t end;              /* P3 */
    uint64_t challenge[2];     /* P2 */
    uint64_t claim[2];         /* P2 */
    unsigned char address[16]; /* P4: an IPv4 address in its IPv6 form */
    uint64_t port;             /* P4: in network byte order */
};

typedef int (*oriel_socket_name)(int fd, struct sockaddr *address, socklen_t *len_bytes);

static bool server_address_set(struct input *input, int fd, oriel_socket_name name_of)
{
    struct sockaddr_storage name = {.ss_family = AF_UNSPEC};
    const struct sockaddr_in6 *six = (const void *)&name;
    const struct sockaddr_in *four = (const void *)&name;
    socklen_t len_bytes = sizeof name;
    if (name_of(fd, (struct sockaddr *)&name, &len_bytes) != 0)
        return false;
    if (name.ss_family == AF_INET) {
        memset(input->address + 10, 0xff, 2);
        memcpy(input->address + 12, &four->sin_addr, sizeof four->sin_addr);
        input->port = four->sin_port;
        return true;
    }
    memcpy(input->address, &six->sin6_addr, sizeof input->address);
    input->port = six->sin6_port;
    return name.ss_family == AF_INET6;
}

static void digest_nonces_set(struct input *input,
                              const struct oriel_check_remote_challenge *challenge,
                              const struct oriel_check_remote_claim *claim)
{
    memcpy(input->challenge, challenge->nonce, sizeof input->challenge);
    memcpy(input->claim, claim->nonce, sizeof input->claim);
}

static uint64_t digest_make(struct input *input, enum end end, const uint64_t key[2])
{
    input->end = end;
    return oriel_siphash(key, input, sizeof *input);
}

static bool nonce_draw(uint64_t nonce[2])
{
    return getrandom(nonce, 2 * sizeof nonce[0], 0) == (ssize_t)(2 * sizeof nonce[0]);
}

static bool piece_send(int fd, void *piece, size_t len_bytes)
{
    return send(fd, piece, len_bytes, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len_bytes;
}

/* P6 */
static bool piece_receive(int fd, void *piece, size_t len_bytes)
{
    return recv(fd, piece, len_bytes, MSG_DONTWAIT) == (ssize_t)len_bytes;
}

/* Compares whole digests in constant time. */
static bool digest_is_same(uint64_t digest, uint64_t expected)
{
    return (digest ^ expected) == 0;
}

bool oriel_check_remote_prove(int fd, const uint64_t key[2])
{
    struct input input = {.end = CLIENT};
    struct oriel_check_remote_challenge challenge;
    struct oriel_check_remote_claim claim;
    struct oriel_check_remote_proof proof;
    bool challenged = nonce_draw(claim.nonce) && server_address_set(&input, fd, getpeername) &&
                      oriel_check_remote_await(fd, POLLIN) == 1 &&
                      piece_receive(fd, &challenge, sizeof challenge);
    if (challenged) {
        digest_nonces_set(&input, &challenge, &claim);
        claim.digest = digest_make(&input, CLIENT, key);
    }
    bool proven = challenged && piece_send(fd, &claim, sizeof claim) &&
                  oriel_check_remote_await(fd, POLLIN) == 1 &&
                  piece_receive(fd, &proof, sizeof proof) &&
                  digest_is_same(proof.digest, digest_make(&input, SERVER, key));
    errno = ECONNREFUSED;
    return proven;
}

bool oriel_check_remote_challenge(int fd, struct oriel_check_remote_challenge *out)
{
    return nonce_draw(out->nonce) && piece_send(fd, out, sizeof *out);
}

bool oriel_check_remote_client_is_proven(int fd, const uint64_t key[2],
                                         const struct oriel_check_remote_challenge *challenge)
{
    struct input input = {.end = CLIENT};
    struct oriel_check_remote_claim claim;
    if (!piece_receive(fd, &claim, sizeof claim) || !server_address_set(&input, fd, getsockname))
        return false;
    digest_nonces_set(&input, challenge, &claim);
    if (!digest_is_same(claim.digest, digest_make(&input, CLIENT, key)))
        return false; /* P5 */
    struct oriel_check_remote_proof proof = {.digest = digest_make(&input, SERVER, key)};
    return piece_send(fd, &proof, sizeof proof);
}
