/* Connections between processes of a job: listening, connecting, whole messages. */
#ifndef ORIEL_CHECK_REMOTE_REMOTE_SOCKET_H
#define ORIEL_CHECK_REMOTE_REMOTE_SOCKET_H

#include "check/remote/remote.h"

/* Returns a socket that listens on every address of this node, and its port; -1 with a reason. */
int oriel_check_remote_listen(uint16_t *port);

/* Lists the addresses by which other nodes may reach this one, the loopback addresses last. */
void oriel_check_remote_addresses(struct oriel_check_remote_address *out);

/* Returns an authenticated connection to one of a server's two threads; -1 with a reason. */
int oriel_check_remote_connect(const struct oriel_check_remote_address *to, int thread);

/* Like poll of one descriptor, for a few seconds. */
int oriel_check_remote_await(int fd, short events);

/* Limits how long reads and writes wait for the other side. */
void oriel_check_remote_limit(int fd, int seconds);

/* Transfers everything, or returns false. */
bool oriel_check_remote_write(int fd, struct iovec *parts, int count);
bool oriel_check_remote_read(int fd, void *data, size_t len_bytes);

#endif
