/* Shared state of the net's files: the process's two workers with their locks, its peers and its
 * senders. Everything except atomic words is accessed with the mutex of its worker held. A thread
 * that holds both mutexes locked the agent's first. */
#ifndef ORIEL_TRANSPORT_UCX_INTERNAL_H
#define ORIEL_TRANSPORT_UCX_INTERNAL_H

#include "base/hash_table.h"
#include "transport/remote_writers.h"
#include "transport/ucx/coalesce.h"
#include "transport/ucx/library.h"

struct oriel_net_worker {
    pthread_mutex_t mutex;
    ucp_worker_h ucp;
    ucp_worker_h devices; /* second worker for devices with RDMA put and get; or NULL */
    int fd;               /* readable if an armed worker has something to do */
    bool owns_fd;         /* an epoll descriptor over both, else UCX's */
    struct oriel_pool pool;
    struct oriel_coalesce coalesce; /* coalesced messages for one peer or sender */
    /* sends that UCX has not completed yet; changed with the mutex held */
    _Atomic uint32_t pending;
    uint32_t closing;   /* endpoints that UCX has not closed yet */
    uint32_t left_open; /* endpoints that must not be closed: send.c */
};

/* This process's end of a connection. */
struct oriel_net_end {
    ucp_ep_h ep;
    bool is_up;       /* something has been sent over it: the connection is established */
    bool stays_open;  /* a previous endpoint is still open; it may break at any time */
    uint32_t pending; /* messages that refer to this struct */
};

/* A process to which this one sends; belongs to the origin's worker. */
struct oriel_net_peer {
    struct oriel_identity identity;
    struct oriel_net_peer *next; /* list of all peers, newest first */
    struct oriel_net_peer *same; /* older ones with the same key in the table */
    uint64_t session;
    uint64_t sent;          /* number of ordered messages so far */
    uint32_t open;          /* number of requests */
    uint32_t half_messages; /* since the last sync, see flow control in send_peers.c */
    uint64_t half_bytes;
    struct oriel_net_request sync; /* done if none is outstanding */
    uint64_t silence_ns;           /* waiting time without a sign of life */
    uint64_t judged_ns;            /* time of the last update of silence_ns */
    uint64_t pinged_ns;
    struct oriel_net_end end;        /* ep is NULL before the first use, and when lost */
    struct oriel_net_end device_end; /* the same, for the devices' worker */
    uint64_t device_bytes;           /* outstanding bytes over it, in both directions */
    bool is_broken;                  /* reported by UCX: to be lost at the end of this progress */
    bool has_left; /* it has sent its BYE: it waits for nothing and need not answer */
    _Atomic bool is_lost;
    _Atomic bool is_shunned; /* set after is_lost: the agent's thread no longer uses this struct */
    struct oriel_net_peer *next_lost;
    char why[200];     /* written before is_lost */
    size_t room_bytes; /* for addresses */
    char address[];
};

/* A process that sends to this one; belongs to the agent's worker. */
struct oriel_net_sender {
    uint64_t session;
    struct oriel_identity identity; /* from its hello */
    struct oriel_net_sender *next;
    /* to its origin's worker; ep is NULL before its hello and after its end */
    struct oriel_net_end end;
    uint64_t expected;               /* number of the next message in order */
    struct oriel_net_message *early; /* sorted by sequence */
    unsigned early_count;
    bool says_bye;  /* BYE is ready or has been served: no later message is */
    bool is_broken; /* reported by UCX */
    /* BYE received, or lost: late messages are dropped, until the same process starts another
     * session */
    bool has_ended;
    bool is_lost; /* lost without BYE */
};

/* A received message until it is served. Located in its buffer, before its data. */
struct oriel_net_message {
    struct oriel_net_message *next;
    struct oriel_net_sender *sender;
    struct oriel_wire wire;
    size_t len_bytes;
    struct oriel_ucx_buffer *buffer;
    _Alignas(16) char data[];
};

struct oriel_net {
    struct oriel_net_worker origin;
    struct oriel_net_worker agent;
    struct oriel_net_service service; /* this and all fields below are reset at a start */
    ucp_context_h context;
    struct oriel_identity self;
    struct oriel_remote_writers *writers; /* of this process; or NULL */
    uint64_t session;
    char address[ORIEL_NET_ADDRESS_BYTES];
    size_t address_bytes;
    bool has_verbs; /* some of its devices are RDMA devices */
    /* context for devices with RDMA put and get; NULL if there are none */
    ucp_context_h devices;
    ucp_address_t *devices_address; /* of the agent's worker for them */
    size_t devices_address_bytes;
    struct oriel_net_exposed *exposed; /* accessed with the agent's mutex held */
    ucp_address_t *origin_address;     /* for hello */
    size_t origin_address_bytes;
    struct oriel_net_peer *peers;
    struct oriel_hash_table by_identity; /* peers */
    /* outstanding requests, by the lower bits of their numbers */
    struct oriel_net_request **requests;
    uint32_t request_room; /* a power of two */
    uint32_t request_count;
    uint64_t request_turn;
    uint64_t answered; /* number of answered requests */
    uint64_t timeout_ns;
    bool any_broken; /* any broken peer */
    /* turns of the origin's worker by the program's threads: meanwhile the agent's thread leaves it
     * to them */
    uint64_t turns;
    struct oriel_net_sender *senders;
    struct oriel_net_sender *forgotten; /* other senders, to which UCX may still refer */
    /* for a new sender when memory is exhausted: by_session has room for it */
    struct oriel_net_sender *spare_sender;
    struct oriel_hash_table by_session; /* senders */
    struct oriel_net_message *ready;    /* messages to be served, in order */
    struct oriel_net_message **ready_end;
    bool any_sender_broken;
    bool any_ended; /* any ended sender */
    /* peers whose senders must be lost as well, newest first */
    _Atomic(struct oriel_net_peer *) lost;
    int wake_fd; /* eventfd: wakes the agent's thread */
    /* epoll: signals messages to the agent's thread while a thread may help (waiter_progress.c) */
    int gate_fd;
    _Atomic bool looks;     /* the service wants another look; changed by the serving thread */
    _Atomic bool is_minded; /* the agent's thread completes the sends of the origin's worker (N3) */
    _Atomic bool is_ending;
    bool has_joined; /* the thread has ended */
    pthread_t thread;
};
extern struct oriel_net oriel_net;
extern _Thread_local bool oriel_net_in_agent; /* true in the agent's thread */

/* --- workers.c --- */

/* Locks a worker for a thread that may run after the net has stopped: returns false then. */
bool oriel_net_enter(struct oriel_net_worker *worker);

/* Executes all current work of a worker, with its mutex held. Returns true if there was any. */
bool oriel_net_turn(struct oriel_net_worker *worker);

/* The same, but stops when is_enough returns true: another poll costs a system call, and the
 * received messages would wait for it. */
bool oriel_net_turn_until(struct oriel_net_worker *worker, bool (*is_enough)(void));

/* Returns true if the descriptor will signal all later events. False if an event has already
 * arrived, or may have; the caller then handles it. */
bool oriel_net_arm(struct oriel_net_worker *worker);

/* Sends a buffer and takes ownership of it. Returns UCX's error if the endpoint is no longer
 * usable. */
ucs_status_t oriel_net_send(struct oriel_net_worker *worker, struct oriel_net_end *end,
                            struct oriel_ucx_buffer *buffer);

/* A buffer with wire, head and data of a message. NULL if there is no memory. */
struct oriel_ucx_buffer *oriel_net_pack(struct oriel_net_worker *worker,
                                        const struct oriel_wire *wire,
                                        const struct oriel_net_bytes *bytes);

/* A message as received from UCX. */
struct oriel_net_raw {
    const void *header; /* wire and head; empty for coalesced messages */
    size_t header_bytes;
    const void *data;
    size_t len_bytes;
    const ucp_am_recv_param_t *parameters;
};

/* Checks that the received bytes may be a message for this process, and returns its wire. For
 * coalesced messages that is the wire of the first one with another kind. Prints a warning if not.
 */
bool oriel_net_unpack(const struct oriel_net_raw *raw, struct oriel_wire *out);

ucp_ep_h oriel_net_connect(ucp_worker_h worker, const void *address, ucp_err_handler_cb_t broken,
                           void *user_data, ucs_status_t *status);
/* True if UCX no longer refers to the struct. */
bool oriel_net_is_free(const struct oriel_net_end *end);
/* Closes the connection at once; UCX may take some turns to complete that. Returns
 * oriel_net_is_free. */
bool oriel_net_disconnect(struct oriel_net_worker *worker, struct oriel_net_end *end);

void oriel_net_wake_agent(void);

/* --- devices.c --- */
/* The network transports of a context with their devices, as in "tcp on eth0 lo". Returns
 * ORIEL_E_OTHER if there are none. */
enum oriel_status oriel_net_list_devices(ucp_context_h context, char *text, size_t text_bytes);

/* --- send_peers.c --- */
ucs_status_t oriel_net_receive_reply(void *unused, const void *header, size_t header_bytes,
                                     void *data, size_t len_bytes,
                                     const ucp_am_recv_param_t *parameters);
/* With the origin's mutex held. oriel_net_note_broken stores UCX's reason why the connection to
 * this peer failed. oriel_net_lose_broken_peers runs after every turn and loses such peers. */
void oriel_net_note_broken(struct oriel_net_peer *peer, const char *what, ucs_status_t status);
void oriel_net_lose_broken_peers(void);
void oriel_net_lose_peer(struct oriel_net_peer *peer, const char *why);
/* This process no longer accepts messages of the process with this session. So threads that wait
 * for that process lose it as well (N4), although it may live and answer. Call without any mutex.
 */
void oriel_net_lose_session(uint64_t session);
/* True if that has happened, possibly before this process had anything to send there. Call without
 * the agent's mutex. */
bool oriel_net_is_session_lost(uint64_t session);
/* Closes its connections. Returns true if UCX no longer refers to it. */
bool oriel_net_disconnect_peer(struct oriel_net_peer *peer);
/* The process of this session has sent its BYE: its answer to this process's BYE is not awaited.
 * Call without any mutex. */
void oriel_net_note_bye(uint64_t session);
/* Connects a peer if needed. Returns false if it is lost, or there is no memory. */
bool oriel_net_connect_peer(struct oriel_net_peer *peer);
bool oriel_net_send_to(struct oriel_net_peer *peer, enum oriel_wire_kind kind, uint64_t number,
                       const struct oriel_net_bytes *bytes);
/* Sends the coalesced messages of a peer. */
void oriel_net_send_coalesced(void);
/* Sends a request of the net itself. */
bool oriel_net_ask_internal(struct oriel_net_peer *peer, enum oriel_wire_kind kind,
                            struct oriel_net_request *request);

/* --- reply_table.c --- */
/* Ensures room for one more request. */
bool oriel_net_has_request_room(void);
/* Assigns a number. Returns false if there is no memory. */
bool oriel_net_add_request(struct oriel_net_peer *peer, struct oriel_net_request *request);
void oriel_net_remove_request(struct oriel_net_request *request);
/* After done is set the request may be gone: without an end function, the waiting thread may free
 * it. */
void oriel_net_end_request(struct oriel_net_request *request, enum oriel_status status);

/* --- reply_wait.c --- */
/* Unlocks the origin's worker; the agent's thread completes unsent messages (N3). */
void oriel_net_leave(void);

/* --- recv_peers.c --- */
ucs_status_t oriel_net_receive_message(void *unused, const void *header, size_t header_bytes,
                                       void *data, size_t len_bytes,
                                       const ucp_am_recv_param_t *parameters);
void oriel_net_serve_one(const struct oriel_net_message *held);
/* Sends the coalesced answers. */
void oriel_net_send_answers(void);
void oriel_net_lose_broken_senders(void);
/* Loses the senders of lost peers. */
void oriel_net_lose_senders(void);
/* Call with the agent's mutex held. */
void oriel_net_free_message(struct oriel_net_message *held);
/* Allocates a spare sender if there is none. Returns false if there is no memory. */
bool oriel_net_has_spare_sender(void);
void oriel_net_drop_early(struct oriel_net_sender *sender);

/* --- progress_thread.c --- */
void *oriel_net_serve(void *unused);
/* Executes the current work of the agent's worker. Returns true if there was any; *served is true
 * if a message was served. Does nothing if another thread is doing it. */
bool oriel_net_serve_turn(bool *served);
/* oriel_net_arm for the agent's worker, without its mutex. Also false if another thread is
 * serving. */
bool oriel_net_arm_agent(void);
/* Brackets code that may write answers into the program's memory, in any thread. The agent's thread
 * is excluded while pages move (transport/remote_writers.h); other threads are stopped then. Call
 * without any mutex. */
struct oriel_remote_writers_slot *oriel_net_guard(void);
void oriel_net_unguard(struct oriel_remote_writers_slot *slot);

/* --- waiter_progress.c --- */
bool oriel_net_gate_create(void);
/* For the agent's thread. oriel_net_is_helped returns true if another thread has served since the
 * call that set *seen. oriel_net_step_aside is the sleep in that case. oriel_net_drain_wakes clears
 * the wake descriptor. */
bool oriel_net_is_helped(uint64_t *seen);
void oriel_net_step_aside(void);
void oriel_net_drain_wakes(void);

/* --- rdma.c --- */
/* Called at the stop. */
void oriel_net_unexpose_all(void);

/* --- ucx_threads.c --- */
enum { ORIEL_NET_THREADS = 4 };
/* Called before and after libucp creates its threads, and before it ends them. */
void oriel_net_threads_record(void);
void oriel_net_threads_exempt(void);
void oriel_net_threads_forget(void);

#endif
