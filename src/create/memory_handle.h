/* Makes memory handles of this process's window memory, withdraws them, and opens those of other
 * processes as windows (include/oriel/ext.h). Thread-safe. */
#ifndef ORIEL_CREATE_MEMORY_HANDLE_H
#define ORIEL_CREATE_MEMORY_HANDLE_H

#include "transport/ucx/net.h"
#include "window/holders.h"

#include <mpi.h>

enum { ORIEL_HANDLE_ADDRESS_BYTES = 1200 };

/* The bytes of a handle. */
struct oriel_memory_handle {
    uint64_t magic;
    uint32_t version;
    uint32_t checksum; /* up to the end of the address, with 0 here */
    uint64_t node;     /* the owner's node */
    struct oriel_identity owner;
    uint64_t area; /* offset of struct oriel_handle_area in the owner's file */
    uint64_t key;
    uint32_t address_bytes; /* 0: only the owner's node reaches it */
    int32_t world_rank;     /* the owner's, for reports; -1: none */
    /* of the owner's net; 0 from address_bytes on */
    char address[ORIEL_HANDLE_ADDRESS_BYTES];
};
_Static_assert((int)ORIEL_NET_ADDRESS_BYTES < (int)ORIEL_HANDLE_ADDRESS_BYTES,
               "any address fits, with a byte after it");

/* A handle of the size_bytes from disp on of this rank's memory in the window. */
enum oriel_status oriel_memory_handle_make(struct oriel_window *window, int64_t disp,
                                           int64_t size_bytes, struct oriel_memory_handle *out);

/* ORIEL_E_ARG if it is none of this process, or is withdrawn; ORIEL_E_SYNC if this process has an
 * epoch open on it. */
enum oriel_status oriel_memory_handle_free(const struct oriel_memory_handle *handle);

/* ORIEL_E_SYNC if this process has an epoch open on a handle of the window. */
enum oriel_status oriel_memory_handles_closed(const struct oriel_window *window);

/* Withdraws all handles of the window and waits until no other process touches its words. Call
 * when the window ends, before its memory is released. */
void oriel_memory_handles_withdraw(struct oriel_window *window);

/* Whether the bytes are a handle, as far as they tell. */
bool oriel_memory_handle_is_valid(const struct oriel_memory_handle *handle);

/* This process's area of the handle with this key; NULL if there is none. */
struct oriel_handle_area *oriel_memory_handle_find(uint64_t area, uint64_t key);

/* Processes of other nodes may open handles from here on (memory_serve.c). */
void oriel_memory_serve(void);

/* Opens the handle as a window, with an entry in the table of windows (memory_open.c). */
enum oriel_status oriel_memory_open(const struct oriel_memory_handle *handle, MPI_Info info,
                                    struct oriel_window **out);

/* Frees such a window, with its carrier. *gone: the window is gone, whatever the status. */
enum oriel_status oriel_memory_close(struct oriel_window *window, bool *gone);

#endif
