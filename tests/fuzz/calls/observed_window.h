/* A window whose every byte is observable: this rank compares all ranks' memory and the guards
 * around it with a copy of the expected bytes.  Only one rank makes calls at a time. A difference
 * is therefore an effect of the last call. */
#ifndef ORIEL_TESTS_FUZZ_OBSERVED_WINDOW_H
#define ORIEL_TESTS_FUZZ_OBSERVED_WINDOW_H

#include "epochs.h"

enum { OBSERVED_REGIONS = 3 * FUZZ_RANKS, OBSERVED_GUARD_BYTES = 256, OBSERVED_MOST_BYTES = 600 };
enum { OBSERVED_COUNTERS = 3 }; /* of notifications, per rank */
enum { OBSERVED_SPAN_BYTES = OBSERVED_MOST_BYTES + 2 * OBSERVED_GUARD_BYTES };

struct region {
    unsigned char *at;       /* in this process's address space */
    unsigned char *expected; /* expected bytes */
    size_t len_bytes;
};

struct observed_window {
    MPI_Win win;
    enum window_kind kind;
    MPI_Comm comm;
    int n, me;
    MPI_Aint size[FUZZ_RANKS], unit[FUZZ_RANKS];
    /* the first n: windows, with their guards where the kind lets them touch */
    struct region regions[OBSERVED_REGIONS];
    int region_count;
    size_t before[FUZZ_RANKS]; /* bytes of guard before the window's memory */
    struct epochs epochs;
    int sent[FUZZ_RANKS]
            [OBSERVED_COUNTERS];       /* notifications by this rank since the last exchange */
    MPI_Count here[OBSERVED_COUNTERS]; /* arrived at this rank, and not taken */
    struct attached *attached;         /* of a dynamic window, else NULL */
    /* owners of the memory */
    MPI_Win backing, guards[2];
    int file;
};

/* The attached memory of a dynamic window, byte by byte of the regions above. */
struct attached {
    MPI_Win fixed;                /* the window that supplied the memory */
    MPI_Aint address[FUZZ_RANKS]; /* of observed_memory in each rank's own address space */
    unsigned char bytes[FUZZ_RANKS][OBSERVED_SPAN_BYTES];
    int count, empty_count; /* of this rank */
    int from[OBSERVED_SPAN_BYTES], to[OBSERVED_SPAN_BYTES];
    unsigned char *empty[OBSERVED_SPAN_BYTES];
};

/* Collective over comm; all ranks draw the same sizes from shared. */
void observed_open(struct observed_window *observed, enum window_kind kind, MPI_Comm comm,
                   struct random *shared);
void observed_close(struct observed_window *observed);

/* Replaces the window by a dynamic window over the same memory. */
void observed_make_dynamic(struct observed_window *observed);
void observed_end_dynamic(struct observed_window *observed);

/* An info object that gives a window its counters. */
MPI_Info observed_info(void);

/* notify.c: a counter's number, its fault as an argument, and the notice that an operation has
 * notified a rank. */
int notify_number_draw(struct random *random);
unsigned notify_fault(int number);
void notify_note(struct observed_window *observed, int rank, int number);

/* Collective, after a turn. The second before the window is freed: all that has arrived is there,
 * and no more. */
void notify_exchange(struct observed_window *observed);
void notify_settle(struct observed_window *observed);

/* One random call that takes notifications. With errors_only, it cannot succeed. */
void notify_call(struct observed_window *observed, struct random *random, bool errors_only);

/* waits.c: one wait or test of an element of this rank's memory. With errors_only, it cannot
 * succeed. */
void wait_call(struct observed_window *observed, struct random *random, bool errors_only);

/* One valid or invalid attach or detach by this rank; and the exchange of attached regions between
 * all ranks. */
void observed_attach_once(struct observed_window *observed, struct random *random);
void observed_share_attached(struct observed_window *observed);

/* Start of an access, in bytes from observed_memory. */
static inline __int128 observed_offset(const struct observed_window *observed, int rank,
                                       MPI_Aint disp)
{
    return observed->attached != NULL ? (__int128)disp - observed->attached->address[rank]
                                      : (__int128)disp * observed->unit[rank];
}

/* Whether len_bytes from offset are attached. */
bool observed_is_attached(const struct observed_window *observed, int rank, __int128 offset,
                          __int128 len_bytes);

/* Before a turn: records the current bytes as expected. */
void observed_expect_current(struct observed_window *observed);

/* After each call: all bytes are as expected. */
void observed_check(struct observed_window *observed);

static inline unsigned char *observed_memory(const struct observed_window *observed, int rank)
{
    return observed->regions[rank].at + observed->before[rank];
}

static inline unsigned char *observed_expected(const struct observed_window *observed, int rank)
{
    return observed->regions[rank].expected + observed->before[rank];
}

#endif
