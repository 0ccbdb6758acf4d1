/* Connections between processes of a job: listening, connecting, whole messages.  remote.c and remote_serve.c call. */
#ifndef ORIEL_CHECK_REMOTE_REMOTE_SOCKET_H
#define ORIEL_CHECK_REMOTE_REMOTE_SOCKET_H

#include "check/remote/remote.h"

/* A socket that listens on every address of this machine; -1 with a reason.  port: where. */
int oriel_check_remote_listen(uint16_t *port);

/* The addresses by which others may reach this machine, its own loopback last. */
void oriel_check_remote_addresses(struct oriel_check_remote_address *out);

/* A connection to one of a server's two threads, proven; -1 with a reason. */
int oriel_check_remote_connect(const struct oriel_check_remote_address *to, int thread);

/* As poll of one for some seconds. */
int oriel_check_remote_await(int fd, short events);

/* Neither reads nor writes wait for the other side for longer. */
void oriel_check_remote_limit(int fd, int seconds);

/* All of it, or false. */
bool oriel_check_remote_write(int fd, struct iovec *parts, int count);
bool oriel_check_remote_read(int fd, void *data, size_t len_bytes);

#endif
