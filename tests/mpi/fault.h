/* A rank, the victim, dies or falls silent while the others wait for it: one scenario for each
 * launch, chosen by name.  Every survivor writes what it got into a file of its own and leaves
 * without MPI_Finalize.  fault.c has main; a program's scenarios are beside it, faults.py starts
 * it: PROGRAM SCENARIO allocate|create FOLDER.  fault_rounds.c has another, for many deaths.
 *
 * TEST_VICTIM: its rank, 1 if not said.  TEST_FAULT: how it ends: kill; stop (SIGSTOP); pause (it
 * goes on after 4 s and waits like a survivor); link (it says that it is ready by a file, and
 * whoever started the job takes its machine's link down). */
#ifndef FAULT_H
#define FAULT_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { FAULT_ELEMENTS = 1 << 17 };

struct scenario {
    const char *name;
    void (*prepare)(void);  /* the victim, before all know that it is ready */
    void (*last_act)(void); /* the victim, before it ends */
    int (*wait)(void);      /* a survivor, until it gets an error */
    bool may_succeed;       /* an error is allowed and not demanded; no wait may last */
    void (*survivor)(void); /* a survivor, when the victim prepares; or NULL */
    bool far_only; /* survivors on the victim's machine may succeed: its memory outlives it there */
};
extern const struct scenario scenarios[];
extern const size_t scenario_count;

extern int world_rank, world_size, victim;
extern bool with_victim;       /* on one machine with it */
extern MPI_Win win;            /* of FAULT_ELEMENTS doubles at each rank; errors return */
extern MPI_Group victim_group; /* the victim alone */
extern MPI_Comm everybody;     /* all ranks that live */
extern MPI_Comm fresh;         /* the same; has had no window */
extern double *bulk;           /* FAULT_ELEMENTS zeros */

double seconds_now(void);

/* All ranks reach all ranks; together. */
void connect_all(void);

/* Exposes the caller's memory of a window to all but the victim. */
void post_to_survivors(MPI_Win posted);

/* --- fault_moment.c: the process kills itself soon, while its calling thread goes on --- */

void die_after_us(long delay_us);

/* After so many instructions of the calling thread, the main thread, of which each takes many us
 * from now on: calls that wait for others are a small part of it, what is a few instructions long
 * as much as they are. */
void die_after_steps(long steps);

/* The tracer lets the process go: what follows does not belong to what was to be cut short. */
void live_on(void);

/* As TEST_MOMENT says: 5000 for us, or 5000steps. */
void die_as_told(void);

/* By when that has surely happened, if no call waited. */
double dead_after_seconds(void);

/* --- fault_window.c, for the programs' ends --- */

/* MPICH's launcher kills all when the connection of one process closes without a farewell, whatever
 * it was told about cleaning up.  Before MPI starts: a copy of each victim keeps the victim's
 * connection open until outlast, which gets the number of ranks and the victim's process, returns;
 * and ends a victim that only stopped. */
void keep_connection_open(const char *folder, bool (*dies)(int rank),
                          void (*outlast)(const char *folder, int size, pid_t process));

enum { VERDICT_BYTES = MPI_MAX_ERROR_STRING + 100 };

/* Of everybody; on memory of its own or of the program. */
void window_make(bool allocate);

/* What it took, when MPI_Win_free has returned. */
void window_forget(void);

/* What a survivor says of the error that it waited for. */
void verdict_of(const struct scenario *scenario, int code, double seconds,
                char line[VERDICT_BYTES]);

const struct scenario *scenario_find(const char *name);

/* FOLDER/NAME.RANK, whole or not there. */
void file_write(const char *folder, const char *name, int rank, const char *text);
bool file_is_there(const char *folder, const char *name, int rank);

#endif
