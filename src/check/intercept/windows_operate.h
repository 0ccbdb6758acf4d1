/* An operation on a window while it is looked at: what the program gave, and what was found out.  The exported functions
 * (windows_operate.c) fill in the first half; arguments.c, promises.c and windows_access.c the second one.  Lives on the caller's
 * stack. */
#ifndef ORIEL_CHECK_INTERCEPT_WINDOWS_OPERATE_H
#define ORIEL_CHECK_INTERCEPT_WINDOWS_OPERATE_H

#include "check/intercept/windows_table.h"
#include "datatype/datatype.h"

struct oriel_operation {
    enum oriel_access_kind kind;
    enum oriel_call call;
    const void *address; /* of the call */
    MPI_Win win;
    const void *origin_addr; /* read, but for a get */
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
    bool accumulates; /* op counts, or it is compare_and_swap */
    bool swaps;
    MPI_Request *request; /* NULL: has none */

    struct oriel_checked *window; /* NULL: nothing to look at */
    struct oriel_site site;
    struct oriel_quiet quiet;
    const struct oriel_type *origin_type; /* NULL: there is no origin */
    const struct oriel_type *target_type;
    const struct oriel_type *result_type; /* of fetching accumulates */
    enum oriel_operator applied;
    int64_t offset; /* at the target: a window's byte, or an address */
    uint64_t items; /* of the target's datatype that the call names; 0 where they have no bytes */
    uint64_t moving_bytes;     /* so many are accessed on each side, which may have room for more */
    uint64_t ticket;           /* of an operation with a request */
    oriel_local_group buffers; /* likewise */
    bool accessed;             /* it stands in the history */
    bool allowed;              /* nothing is wrong with arguments and epoch */
    bool withheld; /* wrong, and refused with its completion only, where that would end the job */
};

/* --- windows_access.c: order and history of an operation that is right --- */

void oriel_access_begin(struct oriel_operation *operation);
void oriel_access_end(struct oriel_operation *operation, int code);

/* As it stands in the history if it is issued now; and whether it gives to a word and takes from it. */
struct oriel_access oriel_access_of(const struct oriel_operation *operation);
bool oriel_access_writes_words(const struct oriel_operation *operation);
bool oriel_access_fetches(const struct oriel_operation *operation);

/* This process's clock goes to the word of the target's memory. */
void oriel_window_give_word(const struct oriel_checked *window, int32_t target, int64_t offset,
                            bool fetches);

/* What was given to the word of an element is taken, and whatever accumulates of many elements gave. */
void oriel_window_take_element(const struct oriel_checked *window, int32_t target, int64_t offset);

/* Whether there were such accumulates. */
static inline bool oriel_window_has_bulk(const struct oriel_checked *window)
{
    return window->common == NULL ||
           atomic_load_explicit(&window->common->bulk, memory_order_acquire) != 0;
}

/* --- windows_requests.c --- */

/* The operation has a request now, if the call's code is MPI_SUCCESS. */
void oriel_window_requested(struct oriel_operation *operation, int code);

#endif
