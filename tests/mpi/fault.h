/* A rank, the victim, dies or stops responding while the others wait for it: one scenario for each
 * launch, chosen by name. Every survivor writes its result into a file of its own and exits without
 * MPI_Finalize. fault.c has main; each program defines its scenarios in its own file. faults.py
 * starts it: PROGRAM SCENARIO allocate|create FOLDER. fault_rounds.c has another main, for many
 * deaths.
 *
 * TEST_VICTIM: the victim's rank, 1 by default. TEST_FAULT: its fault: kill; stop (SIGSTOP); pause
 * (it resumes after 4 s and waits like a survivor); link (it reports by a file that it is ready,
 * and the driver takes its node's link down). */
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
    void (*last_act)(void); /* the victim, before its fault */
    int (*wait)(void);      /* a survivor, until it gets an error */
    bool may_succeed;       /* an error is allowed and not required; each wait must end */
    void (*survivor)(void); /* a survivor, while the victim prepares; or NULL */
    bool remote_only; /* survivors on the victim's node may succeed: its memory outlives it there */
};
extern const struct scenario scenarios[];
extern const size_t scenario_count;

extern int world_rank, world_size, victim;
extern bool with_victim;       /* on one node with it */
extern MPI_Win win;            /* of FAULT_ELEMENTS doubles at each rank; errors return */
extern MPI_Group victim_group; /* the victim alone */
extern MPI_Comm living_ranks;  /* all live ranks */
extern MPI_Comm fresh;         /* the same; has had no window */
extern double *bulk;           /* FAULT_ELEMENTS zeros */

double seconds_now(void);

/* Connects all ranks to all ranks; collective. */
void connect_all(void);

/* Exposes the caller's memory of a window to all but the victim. */
void post_to_survivors(MPI_Win posted);

/* --- fault_time.c: the process kills itself while its calling thread continues --- */

void die_after_us(long delay_us);

/* Kills the process after this number of instructions of the calling thread, the main thread. From
 * now on each takes many us. Waits are therefore a small part of the call, and short code sequences
 * count as much as waits. */
void die_after_steps(long steps);

/* The tracer detaches: the instructions that follow are outside the interrupted part. */
void live_on(void);

/* By TEST_DEATH_TIME: 5000 for us, or 5000steps. */
void die_on_request(void);

/* The time by which the process has surely died, if no call waited. */
double dead_after_seconds(void);

/* --- fault_window.c, for the programs' ends --- */

/* MPICH's launcher kills all processes when the connection of one closes without its farewell
 * message, even with its cleanup switched off. Before MPI starts, a copy of each victim is forked.
 * It keeps the victim's connection open until outlast returns, which gets the number of ranks and
 * the victim's process. It also ends a victim that only stopped. */
void hold_connection_open(const char *folder, bool (*dies)(int rank),
                          void (*outlast)(const char *folder, int size, pid_t process));

enum { VERDICT_BYTES = MPI_MAX_ERROR_STRING + 100 };

/* Over all ranks; on memory of its own or of the program. */
void window_make(bool allocate);

/* Releases the window's memory after MPI_Win_free has returned. */
void window_forget(void);

/* A survivor's report on the error that it waited for. */
void verdict_of(const struct scenario *scenario, int code, double seconds,
                char line[VERDICT_BYTES]);

const struct scenario *scenario_find(const char *name);

/* Writes FOLDER/NAME.RANK atomically. */
void file_write(const char *folder, const char *name, int rank, const char *text);
bool file_exists(const char *folder, const char *name, int rank);

#endif
