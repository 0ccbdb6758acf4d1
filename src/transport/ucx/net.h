/* Messages between processes of different nodes, over UCX. The net handles processes and messages;
 * the service interprets the messages. Each process has two workers. The origin's worker sends the
 * requests of the program's threads and receives the answers. The agent's worker is served by the
 * agent's thread while the program computes or sleeps. libucp is loaded at the first start.
 *
 * Order. The messages from one process to another are served one after the other in sending order,
 * each exactly once, by any thread (N1). An answer to a message means that all earlier messages
 * have been served (N2). Answers arrive in any order.
 *
 * Progress. Messages are served by the agent's thread, or by a waiting thread of the program
 * (waiter_progress.c). Messages that are not deferred (_later) leave without further calls of the
 * program: if none of its threads is in a call, the agent's thread sends what UCX has not sent yet
 * (N3). Answers are received in any thread's calls of await, check and progress.
 *
 * Death. A process is lost permanently if its connection breaks, in either direction, or if it is
 * silent for ORIEL_TIMEOUT seconds while a thread waits for it. All outstanding and later
 * operations then return ORIEL_E_PEER (N4). While a thread waits for a process, the net pings it
 * regularly; the agent's thread there answers.
 *
 * Thread-safe. */
#ifndef ORIEL_TRANSPORT_UCX_NET_H
#define ORIEL_TRANSPORT_UCX_NET_H

#include "base/identity.h"
#include "base/status.h"
#include "base/wait.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
    ORIEL_NET_ADDRESS_BYTES = 1024, /* maximum size of a process's address */
    ORIEL_NET_KEY_BYTES = 2048,     /* maximum size of the text that opens a key */
    ORIEL_NET_HEAD_BYTES = 192,     /* maximum size of the head of a message or an answer */
    /* maximum size of the data of a message or an answer: one piece for UCX (library.c) */
    ORIEL_NET_DATA_BYTES = 63 << 10,
};

struct oriel_remote_writers;
struct oriel_net_peer; /* a process on another node; valid until the net stops */

/* The bytes of a message. All of them are copied before the sending call returns. */
struct oriel_net_bytes {
    const void *head;
    size_t head_bytes;
    const struct iovec *data; /* pieces, to be concatenated */
    unsigned pieces;
};

/* A received message. Valid during the call that passes it. */
struct oriel_net_received {
    const void *head; /* aligned to 8 */
    size_t head_bytes;
    const char *data; /* aligned to 8 */
    size_t len_bytes;
};

/* --- at the receiver --- */

/* The sender of a request. May be copied and stored, to answer later. An answer to a dead sender
 * does nothing. */
struct oriel_net_requester {
    uint64_t words[2];
};

struct oriel_net_service {
    /* Serves one message; in the agent's thread or a helping one. One at a time; it must not serve
     * other messages meanwhile. It may answer at once or later, or never if the message came from
     * oriel_net_tell. from: the identity of the sending process. */
    void (*serve)(const struct oriel_net_requester *asker, const struct oriel_identity *from,
                  const struct oriel_net_received *message);
    /* For work that depends on more than messages: called after every turn of the agent's thread
     * until it returns false. The interval is first 50 us, then a 32nd of the time since a message
     * was last served, at most a millisecond. Runs after serve. */
    bool (*look)(void);
    /* The process is lost (N4); in the agent's thread. All messages that arrived before have been
     * served. */
    void (*lost)(const struct oriel_identity *identity);
    /* several threads of the program may be in calls concurrently: none of them serves, see
     * oriel_net_help_begin */
    bool has_threads;
};

/* Answers a request: once for each asker, in any thread. */
void oriel_net_answer(const struct oriel_net_requester *asker,
                      const struct oriel_net_bytes *answer);

/* --- start and stop --- */

/* Creates the workers and starts the agent's thread; does nothing if it runs. Returns ORIEL_E_OTHER
 * with the reason: no libucp, no device, ORIEL_NET=off, or an address longer than
 * ORIEL_NET_ADDRESS_BYTES. self: this process's identity for its peers. writers: of this process,
 * or NULL if none of its pages move. */
enum oriel_status oriel_net_start(const struct oriel_identity *self,
                                  struct oriel_remote_writers *writers,
                                  const struct oriel_net_service *service);
bool oriel_net_is_started(void);

/* Sends outstanding messages, and ends the thread and all connections. Called when no window is
 * left. */
void oriel_net_stop(void);

/* Brackets calls in which a thread of the program waits or sends a request. Between them
 * oriel_net_help serves incoming messages, for which otherwise the agent's thread is woken. The
 * thread must hold no lock that serving acquires. Does nothing if the net does not run, or if
 * several threads of the program may be in calls concurrently: a thread that moves pages stops the
 * others anywhere, also while they hold locks for serving. */
enum oriel_net_helper {
    ORIEL_NET_ASKS,   /* and continues: the agent's thread does not step aside */
    ORIEL_NET_WAITS,  /* and will call oriel_net_help if the host allows it */
    ORIEL_NET_SERVES, /* calls oriel_net_help continuously */
};
void oriel_net_help_begin(enum oriel_net_helper helper);
void oriel_net_help(void);
void oriel_net_help_end(void);

/* This process's address, for oriel_net_open on other nodes. The same from start to stop. */
const void *oriel_net_address(size_t *len_bytes);

/* --- at the sender --- */

/* The peer with this identity at an address, or the one opened before. The connection is
 * established at the first use. */
enum oriel_status oriel_net_open(const struct oriel_identity *identity, const void *address,
                                 size_t len_bytes, struct oriel_net_peer **out);

/* The peer if it was opened before; else NULL. */
struct oriel_net_peer *oriel_net_find(const struct oriel_identity *identity);

/* Sends a message without an answer. May wait for flow control, but not in the agent's thread. */
enum oriel_status oriel_net_tell(struct oriel_net_peer *peer,
                                 const struct oriel_net_bytes *message);

/* The same for small messages that no thread awaits yet. They are coalesced and leave at the latest
 * with the next message to any peer, or in the next call of await, check or progress. */
enum oriel_status oriel_net_tell_later(struct oriel_net_peer *peer,
                                       const struct oriel_net_bytes *message);

/* A message that is answered. Owned by the caller until done; then status is the result. */
struct oriel_net_request {
    /* The answer has arrived. Runs in any thread of the process, one at a time, with the origin's
     * worker locked: it may copy, and must not call any function of this file. Not called if the
     * peer is lost. May be NULL. */
    void (*take)(struct oriel_net_request *request, const struct oriel_net_received *answer);
    /* Called last, also if the peer is lost, with done set: it may free the request. May be
     * NULL. */
    void (*end)(struct oriel_net_request *request);
    /* ORIEL_OK, ORIEL_E_PEER, or ORIEL_E_NO_MEM if it was not sent; written before done */
    enum oriel_status status;
    _Atomic bool done; /* release */
    struct oriel_net_peer *peer;
    struct oriel_net_request *next; /* used by the net until done */
    uint64_t number;                /* used by the net until done */
};

/* If it fails, the request is done with that status, and neither take nor end is called. */
enum oriel_status oriel_net_ask(struct oriel_net_peer *peer, const struct oriel_net_bytes *message,
                                struct oriel_net_request *request);

/* Deferred, like oriel_net_tell_later. */
enum oriel_status oriel_net_ask_later(struct oriel_net_peer *peer,
                                      const struct oriel_net_bytes *message,
                                      struct oriel_net_request *request);

/* Waits until the request is done. Returns its status, with a message unless it is ORIEL_OK. watch
 * (or NULL) is called as in base/wait.h, and may end the wait while the net still uses the request.
 */
enum oriel_status oriel_net_await(struct oriel_net_request *request,
                                  const struct oriel_watch *watch);

/* oriel_wait (ORIEL_WAIT_SIGNALLED) for a word that messages of other nodes change. This thread may
 * serve them. */
enum oriel_status oriel_net_await_word(_Atomic uint32_t *word, _Atomic uint32_t *sleepers,
                                       uint32_t at_least, const struct oriel_watch *watch);

/* For waits by other means: this thread serves messages of other nodes until the condition holds,
 * or for the time that is worth it. */
void oriel_net_serve_until(bool (*holds)(const void *context), const void *context);

/* For threads that wait for the peer by other means: returns ORIEL_E_PEER if it is lost. Checks
 * whether it lives (N4). */
enum oriel_status oriel_net_check(struct oriel_net_peer *peer);

/* --- RDMA (rdma.c) --- */

/* True if this process has devices with RDMA put and get. */
bool oriel_net_has_devices(void);

/* At the target: memory that other processes' devices can access from now on, and that does not
 * move. NULL if the registration fails. In the agent's thread. */
struct oriel_net_exposed;
struct oriel_net_exposed *oriel_net_expose(void *base, size_t len_bytes);
/* The text with which other processes open a key. */
const void *oriel_net_exposed_key(const struct oriel_net_exposed *exposed, size_t *len_bytes);
/* Called after the last put or get; the stop withdraws the remaining ones. */
void oriel_net_unexpose(struct oriel_net_exposed *exposed);

/* At the origin: access to memory that a peer exposes. NULL if there is none. The owner of the
 * memory sends the text, which is validated only as far as it concerns this process. */
struct oriel_net_key;
struct oriel_net_key *oriel_net_key_open(struct oriel_net_peer *peer, const void *text,
                                         size_t len_bytes);
void oriel_net_key_close(struct oriel_net_key *key);

/* len_bytes are at most ORIEL_NET_DATA_BYTES, within the exposed memory. Put data are copied before
 * the return. Neither operation is ordered with messages. A get ends the request, whose take
 * receives the data with an empty head. */
enum oriel_status oriel_net_put(struct oriel_net_key *key, uint64_t offset_bytes, const void *from,
                                size_t len_bytes);
enum oriel_status oriel_net_get(struct oriel_net_key *key, uint64_t offset_bytes, size_t len_bytes,
                                struct oriel_net_request *request);
/* Ends the request when all puts to the peer have arrived there. */
enum oriel_status oriel_net_request_arrival(struct oriel_net_peer *peer,
                                            struct oriel_net_request *request);

/* Progresses outstanding communication; for loops that wait by other means. */
void oriel_net_progress(void);

#endif
