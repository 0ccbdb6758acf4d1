/* What the parts of the net share: the process's two workers with their locks, its peers and its callers.  All but words that
 * are atomic is touched with the mutex of the worker held to which it belongs; who holds both took the agent's first.
 * transport/ucx/ alone uses it. */
#ifndef ORIEL_TRANSPORT_UCX_INTERNAL_H
#define ORIEL_TRANSPORT_UCX_INTERNAL_H

#include "base/hash_table.h"
#include "transport/remote_writers.h"
#include "transport/ucx/coalesce.h"
#include "transport/ucx/library.h"

struct oriel_net_worker {
    pthread_mutex_t mutex;
    ucp_worker_h ucp;
    ucp_worker_h
        devices;  /* what goes along with it over devices that put and get by themselves; or NULL */
    int fd;       /* readable when an armed worker has something to do */
    bool owns_fd; /* an epoll descriptor over both, else UCX's */
    struct oriel_pool pool;
    struct oriel_gather gather; /* what is to go to one peer, or caller, next */
    _Atomic uint32_t pending;   /* sends that UCX has not ended yet; changed with the mutex held */
    uint32_t closing;           /* endpoints that UCX has not ended yet */
    uint32_t left_open;         /* that are not to be ended: send.c */
};

/* Of a connection, this one. */
struct oriel_net_end {
    ucp_ep_h ep;
    bool is_up;       /* something has gone over it: the connection is made */
    bool stays_open;  /* one that was here before; it may break at any time */
    uint32_t pending; /* messages that refer to this struct */
};

/* A process to which this one sends; of the origin's worker. */
struct oriel_net_peer {
    struct oriel_identity identity;
    struct oriel_net_peer *next; /* of all, newest first */
    struct oriel_net_peer *same; /* older ones with the same key in the table */
    uint64_t session;
    uint64_t sent;          /* messages in order so far */
    uint32_t open;          /* requests */
    uint32_t half_messages; /* since the last sync, see flow control in send_peers.c */
    uint64_t half_bytes;
    struct oriel_net_request sync; /* done when none is open */
    uint64_t silence_ns;           /* waited for without a sign of life */
    uint64_t judged_ns;            /* when silence_ns was counted last */
    uint64_t pinged_ns;
    struct oriel_net_end end;        /* ep NULL before it is first used, and when lost */
    struct oriel_net_end device_end; /* likewise, of the worker for devices */
    uint64_t device_bytes;           /* on their way by it, there or back */
    bool is_broken;                  /* UCX says so: to be lost at the end of this progress */
    bool has_left; /* it has said goodbye: it waits for nothing any more, and need not answer */
    _Atomic bool is_lost;
    _Atomic bool
        is_shunned; /* once lost: by the agent's thread, which has no use for this any more */
    struct oriel_net_peer *next_lost;
    char why[200];     /* before is_lost */
    size_t room_bytes; /* for addresses */
    char address[];
};

/* A process that sends to this one; of the agent's worker. */
struct oriel_net_caller {
    uint64_t session;
    struct oriel_identity identity; /* as its hello says */
    struct oriel_net_caller *next;
    struct oriel_net_end
        end;           /* to its origin's worker; ep NULL before its hello and when it has ended */
    uint64_t expected; /* the number of the next message in order */
    struct oriel_net_held *early; /* by sequence */
    unsigned early_count;
    bool says_bye;  /* which is ready or has been served: nothing behind it is */
    bool is_broken; /* UCX says so */
    bool
        has_ended; /* bye, or lost: late messages are dropped, until the same process comes with another session */
    bool is_lost; /* and no bye */
};

/* A message that has come, until it is served: in its buffer, before its data. */
struct oriel_net_held {
    struct oriel_net_held *next;
    struct oriel_net_caller *caller;
    struct oriel_wire wire;
    size_t len_bytes;
    struct oriel_ucx_buffer *buffer;
    _Alignas(16) char data[];
};

struct oriel_net {
    struct oriel_net_worker origin;
    struct oriel_net_worker agent;
    struct oriel_net_service service; /* this and all below is forgotten at a start */
    ucp_context_h context;
    struct oriel_identity self;
    struct oriel_remote_writers *writers; /* of this process; or NULL */
    uint64_t session;
    char address[ORIEL_NET_ADDRESS_BYTES];
    size_t address_bytes;
    bool has_verbs;                 /* some of its devices are RDMA devices */
    ucp_context_h devices;          /* that put and get by themselves; NULL where there are none */
    ucp_address_t *devices_address; /* of the agent's worker for them */
    size_t devices_address_bytes;
    struct oriel_net_exposed *exposed; /* with the agent's mutex */
    ucp_address_t *origin_address;     /* for hello */
    size_t origin_address_bytes;
    struct oriel_net_peer *peers;
    struct oriel_hash_table by_identity; /* peers */
    struct oriel_net_request **requests; /* open ones, by the lower bits of their numbers */
    uint32_t request_room;               /* a power of two */
    uint32_t request_count;
    uint64_t request_turn;
    uint64_t answered; /* requests */
    uint64_t timeout_ns;
    bool any_broken; /* peers */
    uint64_t
        turns; /* of the origin's worker by the program's threads: the agent's thread leaves it to them meanwhile */
    struct oriel_net_caller *callers;
    struct oriel_net_caller *forgotten; /* others, to which UCX may still refer */
    struct oriel_net_caller
        *spare_caller; /* for one that comes where there is no memory: by_session has room for it */
    struct oriel_hash_table by_session; /* callers */
    struct oriel_net_held *ready;       /* to be served, in order */
    struct oriel_net_held **ready_end;
    bool any_caller_broken;
    bool any_ended; /* callers */
    _Atomic(struct oriel_net_peer *)
        lost;    /* peers whose callers are to be given up as well, newest first */
    int wake_fd; /* eventfd: wakes the agent's thread */
    int gate_fd; /* epoll: tells of messages for it while somebody may help (caller_progress.c) */
    _Atomic bool looks;     /* the service wants its look again; changed by who serves */
    _Atomic bool is_minded; /* the agent's thread looks after sends of the origin's worker (N3) */
    _Atomic bool is_ending;
    pthread_t thread;
};
extern struct oriel_net oriel_net;
extern _Thread_local bool oriel_net_in_agent; /* this is the agent's thread */

/* --- workers.c --- */

/* Locks a worker for a thread that may come when the net has stopped: false then. */
bool oriel_net_enter(struct oriel_net_worker *worker);

/* All that a worker has to do now, with its mutex held; whether there was anything. */
bool oriel_net_turn(struct oriel_net_worker *worker);

/* The same, but no more once there is enough: another look costs a system call, for which what has come would wait. */
bool oriel_net_turn_until(struct oriel_net_worker *worker, bool (*is_enough)(void));

/* Whether its descriptor will tell of whatever comes from now on; false where something has come already, which the caller looks
 * after, or may have. */
bool oriel_net_arm(struct oriel_net_worker *worker);

/* Sends a buffer, which is the net's from here on; UCX's reason when the endpoint is of no use any more. */
ucs_status_t oriel_net_send(struct oriel_net_worker *worker, struct oriel_net_end *end,
                            struct oriel_ucx_buffer *buffer);

/* A buffer with wire, head and data of a message; NULL without memory. */
struct oriel_ucx_buffer *oriel_net_pack(struct oriel_net_worker *worker,
                                        const struct oriel_wire *wire,
                                        const struct oriel_net_bytes *bytes);

/* What UCX has brought. */
struct oriel_net_raw {
    const void *header; /* wire and head; nothing in front of gathered messages */
    size_t header_bytes;
    const void *data;
    size_t len_bytes;
    const ucp_am_recv_param_t *parameters;
};

/* Whether it can be a message for this process; its wire, of gathered ones the first one's but for the kind.  Says so where
 * not. */
bool oriel_net_unpack(const struct oriel_net_raw *raw, struct oriel_wire *out);

ucp_ep_h oriel_net_connect(ucp_worker_h worker, const void *address, ucp_err_handler_cb_t broken,
                           void *whose, ucs_status_t *status);
/* Whether UCX refers to the struct no more. */
bool oriel_net_is_free(const struct oriel_net_end *end);
/* Ends the connection at once; UCX may take some turns until it is gone.  As oriel_net_is_free. */
bool oriel_net_disconnect(struct oriel_net_worker *worker, struct oriel_net_end *end);

void oriel_net_wake_agent(void);

/* --- devices.c --- */
/* Transports of a context with their devices on the network, as in "tcp on eth0 lo"; ORIEL_E_OTHER where there are none. */
enum oriel_status oriel_net_list(ucp_context_h context, char *text, size_t text_bytes);

/* --- send_peers.c --- */
ucs_status_t oriel_net_take_reply(void *unused, const void *header, size_t header_bytes, void *data,
                                  size_t len_bytes, const ucp_am_recv_param_t *parameters);
/* With the origin's mutex: UCX's reason why nothing comes to this peer or from it any more; then, after every turn, ends what
 * such peers leave open. */
void oriel_net_note_broken(struct oriel_net_peer *peer, const char *what, ucs_status_t status);
void oriel_net_bury_peers(void);
void oriel_net_lose(struct oriel_net_peer *peer, const char *why);
/* What the process of this session sends is not heard any more: it is lost for who waits for that as well (N4), though it may live
 * and answer.  Without any mutex. */
void oriel_net_lose_unheard(uint64_t session);
/* Whether that has happened, maybe before this process had anything to send there.  Without the agent's mutex. */
bool oriel_net_is_unheard(uint64_t session);
/* Ends its connections; whether UCX refers to it no more. */
bool oriel_net_disconnect_peer(struct oriel_net_peer *peer);
/* The process of this session has said goodbye: nobody waits for its own answer to one.  Without any mutex. */
void oriel_net_note_left(uint64_t session);
/* Connects a peer if it is not; false when it is lost, or without memory. */
bool oriel_net_reach(struct oriel_net_peer *peer);
bool oriel_net_send_to(struct oriel_net_peer *peer, enum oriel_wire_kind kind, uint64_t number,
                       const struct oriel_net_bytes *bytes);
/* Sends what was gathered for a peer. */
void oriel_net_send_gathered(void);
/* Asks by the net itself. */
bool oriel_net_ask_own(struct oriel_net_peer *peer, enum oriel_wire_kind kind,
                       struct oriel_net_request *request);

/* --- reply_table.c --- */
/* Room for one more. */
bool oriel_net_has_request_room(void);
/* Gives it a number; false without memory. */
bool oriel_net_add_request(struct oriel_net_peer *peer, struct oriel_net_request *request);
void oriel_net_remove_request(struct oriel_net_request *request);
/* Once it is done, it may be gone: where nobody is called, whoever waits for it may free it. */
void oriel_net_end_request(struct oriel_net_request *request, enum oriel_status status);

/* --- reply_wait.c --- */
/* Unlocks the origin's worker; the agent's thread goes on with what is not sent (N3). */
void oriel_net_leave(void);

/* --- recv_peers.c --- */
ucs_status_t oriel_net_take_message(void *unused, const void *header, size_t header_bytes,
                                    void *data, size_t len_bytes,
                                    const ucp_am_recv_param_t *parameters);
void oriel_net_serve_one(const struct oriel_net_held *held);
/* The answers that were gathered meanwhile. */
void oriel_net_send_answers(void);
void oriel_net_bury_callers(void);
/* Gives up what lost peers send. */
void oriel_net_shun_lost(void);
/* With the agent's mutex held. */
void oriel_net_release(struct oriel_net_held *held);
/* Makes one where there is none; false without memory. */
bool oriel_net_has_spare_caller(void);
void oriel_net_drop_early(struct oriel_net_caller *caller);

/* --- progress_thread.c --- */
void *oriel_net_serve(void *unused);
/* What the agent's worker has to do now: whether there was anything; *served: a message.  Nothing where another thread is at it. */
bool oriel_net_serve_turn(bool *served);
/* As oriel_net_arm, of the agent's worker; without its mutex.  False, too, where another thread is at it. */
bool oriel_net_arm_agent(void);
/* Around what may bring answers into memory of the program, in any thread: the agent's keeps out while pages move
 * (transport/remote_writers.h); others are stopped then.  Without any mutex. */
struct oriel_remote_writers_slot *oriel_net_guard(void);
void oriel_net_unguard(struct oriel_remote_writers_slot *slot);

/* --- caller_progress.c --- */
bool oriel_net_make_gate(void);
/* For the agent's thread: whether another one has served since it asked last, which *seen is of; its sleep then; and the end of
 * a wake. */
bool oriel_net_is_helped(uint64_t *seen);
void oriel_net_step_aside(void);
void oriel_net_drain_wakes(void);

/* --- rdma.c --- */
/* At the stop. */
void oriel_net_withdraw_all(void);

/* --- ucx_threads.c --- */
enum { ORIEL_NET_THREADS = 4 };
/* Before and after libucp makes its threads, and before it ends them. */
void oriel_net_threads_note(void);
void oriel_net_threads_exempt(void);
void oriel_net_threads_forget(void);

#endif
