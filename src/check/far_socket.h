/* Connections between processes of a job: listening, connecting, whole messages.  far.c and far_serve.c call. */
#ifndef ORIEL_CHECK_FAR_SOCKET_H
#define ORIEL_CHECK_FAR_SOCKET_H

#include "check/far.h"

/* What is sent when a connection is made, and answered with the other half. */
struct oriel_far_hello {
    uint64_t proof;
};

/* A socket that listens on every address of this machine; -1 with a reason.  port: where. */
int oriel_far_listen(uint16_t *port);

/* The addresses by which others may reach this machine, its own loopback last. */
void oriel_far_addresses(struct oriel_far_address *out);

/* A connection to one of a server's two threads, proven; -1 with a reason. */
int oriel_far_connect(const struct oriel_far_address *to, int thread);

/* Out of the way of programs that count their descriptors. */
int oriel_far_high(int fd);

/* All of it, or false. */
bool oriel_far_write(int fd, struct iovec *parts, int count);
bool oriel_far_read(int fd, void *data, size_t len_bytes);
bool oriel_far_skip(int fd, size_t len_bytes);

#endif
