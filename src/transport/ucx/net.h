/* Messages between processes of different machines, by UCX.  It knows processes and messages; what a message means is its
 * service's.  Each process has two workers: the origin's, which sends what the program's threads ask for and takes the answers,
 * and the agent's, which a thread of its own serves while the program computes or sleeps.  libucp is loaded at the first start.
 *
 * Order.  The messages of one process to another are served one after the other in the order in which they were sent, by any
 * thread (N1), each once.  An answer to a message tells that all before it have been served (N2).  Answers come in any order.
 * Progress.  Messages are served by the agent's thread, or by one of the program that waits (caller_progress.c).  What
 * was told or asked, but not later, leaves without further calls of the program: where none of its threads is in a call, the
 * agent's thread sends what UCX has not sent yet (N3).  Answers are taken in the calls of any of the program's threads to await,
 * check and progress.
 * Death.  A process whose connection breaks, in either direction, or that says nothing for ORIEL_TIMEOUT seconds while it is waited
 * for, is lost for good: ORIEL_E_PEER for all that is outstanding and all that comes later (N4).  A process that is waited for is
 * asked now and then whether it lives, which its agent's thread answers.
 *
 * Thread-safe.  memory/ starts and stops; sync/, rma/ and window/ use it. */
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
    ORIEL_NET_ADDRESS_BYTES = 1024, /* at most, of a process's address */
    ORIEL_NET_KEY_BYTES = 2048,     /* at most, of what a key is opened with */
    ORIEL_NET_HEAD_BYTES = 192,     /* at most, of a message's or an answer's head */
    ORIEL_NET_DATA_BYTES =
        63 << 10, /* at most, of a message's or an answer's data: one piece for UCX (library.c) */
};

struct oriel_remote_writers;
struct oriel_net_peer; /* a process elsewhere; lives until the net stops */

/* Bytes of a message: all of them are copied before the call that takes them returns. */
struct oriel_net_bytes {
    const void *head;
    size_t head_bytes;
    const struct iovec *data; /* pieces, one after the other */
    unsigned pieces;
};

/* What has come.  Valid during the call that gives it. */
struct oriel_net_arrived {
    const void *head; /* aligned to 8 */
    size_t head_bytes;
    const char *data; /* aligned to 8 */
    size_t len_bytes;
};

/* --- at the receiver --- */

/* Who asked.  May be copied and kept, to answer later; dead ones may be answered, which does nothing. */
struct oriel_net_asker {
    uint64_t words[2];
};

struct oriel_net_service {
    /* One message; in the agent's thread, or one that helps: one at a time, which serves nobody else meanwhile.  It may answer
     * at once or later, or never if it was told and not asked.  from: the identity of the process that sent it. */
    void (*serve)(const struct oriel_net_asker *asker, const struct oriel_identity *from,
                  const struct oriel_net_arrived *message);
    /* Where something waits here for more than messages: called after every turn of the agent's thread until it returns false,
     * first every 50 us, then in a 32nd of the time since a message was served last, at least each millisecond.  After serve. */
    bool (*look)(void);
    /* The process is lost (N4); in the agent's thread.  Its messages that came before have been served. */
    void (*lost)(const struct oriel_identity *who);
    bool
        has_threads; /* several of the program may be in calls at once: none of them serves, see oriel_net_help_begin */
};

/* Once for each asker, in any thread. */
void oriel_net_answer(const struct oriel_net_asker *asker, const struct oriel_net_bytes *answer);

/* --- start and stop --- */

/* Makes the workers and starts the agent's thread; nothing where it runs.  ORIEL_E_OTHER with the reason: no libucp, no
 * device, ORIEL_NET=off, or an address longer than ORIEL_NET_ADDRESS_BYTES.  self: what peers are told of this process.
 * writers: of this process, or NULL where none of its pages move. */
enum oriel_status oriel_net_start(const struct oriel_identity *self,
                                  struct oriel_remote_writers *writers,
                                  const struct oriel_net_service *service);
bool oriel_net_is_started(void);

/* Sends what is left, and ends the thread and all connections.  When no window is left. */
void oriel_net_stop(void);

/* Around calls in which a thread of the program waits or asks for something: in between oriel_net_help serves what has come,
 * which else the agent's thread is woken for.  The thread must hold nothing that serving takes.  Nothing where the net does not
 * run, or where several threads of the program may be in calls at once: one that moves pages stops the others wherever they are,
 * and what serving holds then would be held for so long. */
enum oriel_net_helper {
    ORIEL_NET_ASKS,   /* and goes on: the agent's thread stays where it is */
    ORIEL_NET_WAITS,  /* and will call oriel_net_help if the host is one that lets it */
    ORIEL_NET_SERVES, /* calls oriel_net_help all the time */
};
void oriel_net_help_begin(enum oriel_net_helper helper);
void oriel_net_help(void);
void oriel_net_help_end(void);

/* This process's address, for oriel_net_open elsewhere; the same from start to stop. */
const void *oriel_net_address(size_t *len_bytes);

/* --- at the sender --- */

/* The process with this identity at an address, or as it was opened before; the connection is made when first used. */
enum oriel_status oriel_net_open(const struct oriel_identity *who, const void *address,
                                 size_t len_bytes, struct oriel_net_peer **out);

/* The same, where it was opened before; else NULL. */
struct oriel_net_peer *oriel_net_find(const struct oriel_identity *who);

/* A message without an answer.  May wait while too much is on its way, but not in the agent's thread. */
enum oriel_status oriel_net_tell(struct oriel_net_peer *peer,
                                 const struct oriel_net_bytes *message);

/* The same for small messages that nobody waits for yet: they leave together, at the latest with what is next told or asked of
 * anybody, or in the next call to await, check or progress. */
enum oriel_status oriel_net_tell_later(struct oriel_net_peer *peer,
                                       const struct oriel_net_bytes *message);

/* A message that is answered.  The caller's until done; then status says how it went. */
struct oriel_net_request {
    /* The answer has come; in any thread of the process, one at a time, which holds the origin's worker: it may copy, and must
     * not call anything of this file.  Not called when the peer is lost.  May be NULL. */
    void (*take)(struct oriel_net_request *request, const struct oriel_net_arrived *answer);
    /* Called last, also when the peer is lost, with done set: the request may be freed here.  May be NULL. */
    void (*end)(struct oriel_net_request *request);
    enum oriel_status
        status; /* ORIEL_OK, ORIEL_E_PEER, or ORIEL_E_NO_MEM where it was not sent; before done */
    _Atomic bool done; /* release */
    struct oriel_net_peer *peer;
    struct oriel_net_request *next; /* the net's own, until done */
    uint64_t number;                /* likewise */
};

/* Where it fails, the request is done with that status, and neither take nor end is called. */
enum oriel_status oriel_net_ask(struct oriel_net_peer *peer, const struct oriel_net_bytes *message,
                                struct oriel_net_request *request);

/* As oriel_net_tell_later. */
enum oriel_status oriel_net_ask_later(struct oriel_net_peer *peer,
                                      const struct oriel_net_bytes *message,
                                      struct oriel_net_request *request);

/* Until it is done; its status, with a message when it is not ORIEL_OK.  watch (or NULL) is asked as in base/wait.h, and may end
 * the wait while the request is still the net's. */
enum oriel_status oriel_net_await(struct oriel_net_request *request,
                                  const struct oriel_watch *watch);

/* As oriel_event_wait, for what messages from other machines signal, which this thread may serve by itself. */
enum oriel_status oriel_net_await_event(struct oriel_event *event, uint32_t at_least,
                                        const struct oriel_watch *watch);

/* For those who wait by other means for what the peer will do: ORIEL_E_PEER if it is lost.  Asks whether it lives (N4). */
enum oriel_status oriel_net_check(struct oriel_net_peer *peer);

/* --- what devices do by themselves (rdma.c) --- */

/* Whether this process has devices that put and get. */
bool oriel_net_has_devices(void);

/* At the target: memory that others' devices reach from here on, which stays where it is; NULL where that is refused.  In the
 * agent's thread. */
struct oriel_net_exposed;
struct oriel_net_exposed *oriel_net_expose(void *base, size_t len_bytes);
/* What others open a key with. */
const void *oriel_net_exposed_text(const struct oriel_net_exposed *exposed, size_t *len_bytes);
/* When nobody puts or gets any more; what is not withdrawn is at the stop. */
void oriel_net_withdraw(struct oriel_net_exposed *exposed);

/* At the origin: a way to what a peer exposes; NULL where there is none.  The text is believed only as far as it concerns this
 * process: it comes from who owns the memory. */
struct oriel_net_key;
struct oriel_net_key *oriel_net_key_open(struct oriel_net_peer *peer, const void *text,
                                         size_t len_bytes);
void oriel_net_key_close(struct oriel_net_key *key);

/* len_bytes are at most ORIEL_NET_DATA_BYTES, and inside of what is exposed.  What is put has been copied; neither is in any
 * order with messages.  What is got ends the request, whose take gets it with an empty head. */
enum oriel_status oriel_net_put(struct oriel_net_key *key, uint64_t offset_bytes, const void *from,
                                size_t len_bytes);
enum oriel_status oriel_net_get(struct oriel_net_key *key, uint64_t offset_bytes, size_t len_bytes,
                                struct oriel_net_request *request);
/* Ends the request when all that was put to the peer has arrived there. */
enum oriel_status oriel_net_ask_arrival(struct oriel_net_peer *peer,
                                        struct oriel_net_request *request);

/* Lets what is on its way go on; for loops that wait by themselves. */
void oriel_net_progress(void);

#endif
