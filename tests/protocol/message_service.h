/* Shared by the tests of messages: a service that checks order and bytes, questions that check
 * their answers, and streams of messages, one for each sending thread. A team of processes, not
 * threads: a process has one net. */
#ifndef ORIEL_TESTS_PROTOCOL_MESSAGE_SERVICE_H
#define ORIEL_TESTS_PROTOCOL_MESSAGE_SERVICE_H

#include "transport/ucx/net.h"

#include "team.h"

enum { STREAMS = TEAM_MOST * 2, ASKERS_MOST = 256 };

enum op { PASS, ECHO, STORE, SLOWLY, VERY_SLOWLY, HELD, SIGNAL };

/* The head of every message. */
struct note {
    uint32_t op;
    uint32_t stream; /* of one sending thread */
    uint64_t index;  /* counted per stream */
    uint64_t seed;   /* of the data */
};

struct addresses {
    size_t len_bytes[TEAM_MOST];
    char bytes[TEAM_MOST][ORIEL_NET_ADDRESS_BYTES];
    _Atomic uint64_t served[TEAM_MOST]; /* messages */
    _Atomic uint64_t helped[TEAM_MOST]; /* those of them that the program's main thread served */
    _Atomic uint64_t lost[TEAM_MOST];
    _Atomic bool was_undisturbed[TEAM_MOST]; /* net_waiter_progress.c */
};

struct question {
    struct oriel_net_request net; /* first */
    struct note note;
    size_t len_bytes;
    int taken;
    int ended;
};

/* One stream of messages to one process. */
struct stream {
    struct oriel_net_peer *peer;
    uint32_t number;
    uint64_t index;
    uint64_t random;
    char *data;
};

extern struct addresses *service_shared;
extern struct oriel_net_peer *service_peers[TEAM_MOST];
extern struct oriel_net_requester service_stored[ASKERS_MOST]; /* origins of STORE */
extern struct note service_stored_notes[ASKERS_MOST];
extern _Atomic uint32_t service_stored_count;
extern _Atomic int service_polls_left;
extern _Atomic uint32_t service_polls;
extern _Atomic bool service_lets_go;       /* the service of HELD ends */
extern struct oriel_event service_signals; /* set by SIGNAL; from 0 at each start */
extern bool service_has_threads;      /* the service reports that several threads may be in calls */
extern _Atomic uint32_t service_naps; /* of threads other than the main one */
extern _Atomic uint32_t service_main_naps;
extern const struct oriel_net_service service_functions;

/* Whether the network delivers some messages late and some twice. */
extern bool service_is_unreliable;
/* otherwise the agent's thread that is aside sleeps until it is woken */
extern bool service_has_limit;
extern bool service_coalesces; /* most messages and questions are sent coalesced */

/* Called by all ranks: starts the net and connects all to all; with no peer it only starts.
 * Stops. */
void service_start(struct oriel_window *window);
void service_begin(struct oriel_window *window);
void service_open(int32_t rank);
void service_stop(void);

/* How often threads of the net and of UCX have gone to sleep so far. */
unsigned long service_sleeps(void);

/* half: 0 or 1, for two threads. */
struct stream service_stream(int32_t rank, uint32_t half);
void service_send(struct stream *stream, enum op op, size_t len_bytes, struct question *question);
size_t service_size(uint64_t random);
void service_await(struct question *question);
void service_fill(char *bytes, size_t len_bytes, uint64_t seed);
void service_answer(const struct oriel_net_requester *asker, const struct note *note,
                    const char *data, size_t len_bytes);
void service_receive(struct oriel_net_request *request, const struct oriel_net_received *answer);
void service_end(struct oriel_net_request *request);

/* All ranks start, send to all at random, with an echo now and then, and stop; the last echo of
 * each stream ends it. between (or NULL) is called after each message. */
void service_send_all(struct oriel_window *window, void (*between)(uint64_t random));

/* team_prepare, plus what all processes share. Ends the program if ranks are threads. */
void service_prepare(int argc, char **argv);

#endif
