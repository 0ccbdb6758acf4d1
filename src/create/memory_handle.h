/* Makes memory handles of this process's window memory, withdraws them, and opens those of other
 * processes as windows (include/oriel/ext.h). Thread-safe. */
#ifndef ORIEL_CREATE_MEMORY_HANDLE_H
#define ORIEL_CREATE_MEMORY_HANDLE_H

#include "window/holders.h"

#include <mpi.h>

/* The bytes of a handle. */
struct oriel_memory_handle {
    uint64_t magic;
    uint32_t version;
    uint32_t checksum; /* of the whole struct with 0 here */
    uint64_t node;     /* the owner's node */
    struct oriel_identity owner;
    uint64_t area; /* offset of struct oriel_handle_area in the owner's file */
    uint64_t key;
};

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

/* Opens the handle as a window, with an entry in the table of windows (memory_open.c). */
enum oriel_status oriel_memory_open(const struct oriel_memory_handle *handle, MPI_Info info,
                                    struct oriel_window **out);

/* Frees such a window, with its carrier. *gone: the window is gone, whatever the status. */
enum oriel_status oriel_memory_close(struct oriel_window *window, bool *gone);

#endif
