/* What calls of messages, collectives and completions wait for. Each function records a wait that
 * oriel_wait_done ends, or none. The call has given all its clocks before. */
#ifndef ORIEL_CHECK_INTERCEPT_MESSAGES_WAITS_H
#define ORIEL_CHECK_INTERCEPT_MESSAGES_WAITS_H

#include "check/deadlock/wait_records.h"
#include "check/intercept/messages.h"
#include "check/intercept/request_table.h"

struct oriel_send_half;
struct oriel_receive_half;

/* A blocking send, a receive or a probe (half NULL: from a rank of comm, which may be
 * MPI_ANY_SOURCE), or both at once. */
bool oriel_wait_message(const struct oriel_site *site, const struct oriel_send_half *send,
                        const struct oriel_receive_half *receive);
bool oriel_wait_probe(const struct oriel_site *site, MPI_Comm comm, int source, int tag);

/* This process enters a collective call that has begun, and waits in it. arrived: a call with a
 * request. */
bool oriel_wait_collective(const struct oriel_site *site, struct oriel_collective *collective);
void oriel_collective_arrived(const struct oriel_site *site, struct oriel_collective *collective);

/* The same for a call on a communicator that messages*.c do not track: the creation of windows. */
bool oriel_wait_creation(const struct oriel_site *site, MPI_Comm comm, uint16_t call);

/* What an active request waits for; at most two needs. 0: not known. */
int oriel_message_needs(const struct oriel_request_record *record, struct oriel_wait_need *needs);
int oriel_collective_request_needs(const struct oriel_request_record *record,
                                   struct oriel_wait_need *needs);

int oriel_notify_request_needs(const struct oriel_request_record *record,
                               struct oriel_wait_need *need);

int oriel_half_needs(const struct oriel_send_half *send, const struct oriel_receive_half *receive,
                     struct oriel_wait_need *needs);
int oriel_collective_needs(const struct oriel_collective *collective, struct oriel_wait_need *need);

/* A call that waits for requests: those of the records, and untracked ones where a record is NULL
 * and the request is not. */
bool oriel_wait_requests(const struct oriel_site *site, const MPI_Request *requests,
                         struct oriel_request_record *const *records, int count,
                         enum oriel_wait_mode mode);

#endif
