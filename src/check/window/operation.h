/* An operation on a window in progress. The exported functions fill in the first half, the checks
 * of arguments, promises and accesses the second. On the caller's stack. */
#ifndef ORIEL_CHECK_WINDOW_OPERATION_H
#define ORIEL_CHECK_WINDOW_OPERATION_H

#include "check/window/window_steps.h"
#include "datatype/datatype.h"

struct oriel_operation {
    enum oriel_access_kind kind;
    enum oriel_call call;
    const void *address; /* of the call */
    MPI_Win win;
    const void *origin_addr; /* read, except by a get */
    MPI_Count origin_count;
    MPI_Datatype origin_datatype;
    const void *compare_addr; /* of compare_and_swap */
    const void *result_addr;  /* of fetching accumulates */
    MPI_Count result_count;
    MPI_Datatype result_datatype;
    int target_rank;
    MPI_Aint target_disp;
    MPI_Count target_count;
    MPI_Datatype target_datatype;
    MPI_Op op;
    bool accumulates; /* op is used, or it is compare_and_swap */
    bool swaps;
    bool is_wide; /* a swap of bytes that are atomic with all accumulates on parts of them */
    MPI_Request *request; /* NULL: none */
    bool notifies;        /* the target, by the counter of that number */
    int number;
    bool persists; /* request is a persistent one, which every epoch allows to start */
    uint16_t init; /* of a persistent one: number of the call that made it (oriel_site_number) */

    struct oriel_checked *window; /* NULL: unknown window */
    struct oriel_site site;
    struct oriel_quiet quiet;
    const struct oriel_type *origin_type; /* NULL: no origin buffer */
    const struct oriel_type *target_type;
    const struct oriel_type *result_type; /* of fetching accumulates */
    enum oriel_operator applied;
    int64_t offset; /* at the target: a byte of the window, or an address */
    uint64_t items; /* of the target's datatype; 0 where they have no bytes */
    /* bytes that are accessed on each side, which may have room for more */
    uint64_t moving_bytes;
    uint64_t ticket;                    /* of an operation with a request */
    oriel_local_group buffers;          /* likewise */
    struct oriel_window_request *asked; /* of a persistent request; NULL: it has ended */
    uint64_t group;                     /* of a notified operation (oriel_notified_group) */
    bool accessed;                      /* it is in the history */
    bool allowed;                       /* arguments and epoch are right */
    /* wrong, and not passed on: it would be refused at completion only, which would end the job */
    bool withheld;
};

/* --- windows_operate.c --- */

/* Before the call: reports everything that is wrong with it; records the access of a correct one.
 * Returns the target to pass on: MPI_PROC_NULL to withhold the call. */
int oriel_operation_check(struct oriel_operation *operation);

/* After the call, with its code; returns the program's code. */
int oriel_operation_finish(struct oriel_operation *operation, int code);

/* --- windows_access.c: order and history of a correct operation --- */

void oriel_access_begin(struct oriel_operation *operation);
void oriel_access_end(struct oriel_operation *operation, int code);

/* The access as the history has it if the operation is issued now; whether the operation gives to
 * words, and whether it takes from them. */
struct oriel_access oriel_access_of(const struct oriel_operation *operation);
bool oriel_access_writes_words(const struct oriel_operation *operation);
bool oriel_access_fetches(const struct oriel_operation *operation);

/* Gives this process's clock to the word of the target's memory. */
void oriel_window_give_word(const struct oriel_checked *window, int32_t target, int64_t offset,
                            bool fetches);

/* Takes the clock of an element's word, and the clock of all accumulates of many elements. */
void oriel_window_take_element(const struct oriel_checked *window, int32_t target, int64_t offset);

/* Whether there were such accumulates. */
static inline bool oriel_window_has_bulk(const struct oriel_checked *window)
{
    return window->common == NULL ||
           atomic_load_explicit(&window->common->bulk, memory_order_acquire) != 0;
}

/* --- windows_requests.c --- */

/* If the call's code is MPI_SUCCESS, the operation has a request from now on. Of a persistent one
 * the end must be reported by the caller: operation->asked. */
void oriel_window_requested(struct oriel_operation *operation, int code);
void oriel_window_request_end(struct oriel_window_request *asked);
void oriel_window_request_release(const struct oriel_window_request *asked);

#endif
