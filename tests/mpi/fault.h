/* A rank, the victim, dies or falls silent while the others wait for it: one scenario for each launch, chosen by name.  Every
 * survivor writes what it got into a file of its own and leaves without MPI_Finalize.  fault.c has main; a program's scenarios
 * are beside it, faults.py starts it: PROGRAM SCENARIO allocate|create FOLDER.
 *
 * TEST_VICTIM: its rank, 1 if not said.  TEST_FAULT: how it ends: kill; stop (SIGSTOP); pause (it goes on after 4 s and waits
 * like a survivor); link (it says that it is ready by a file, and whoever started the job takes its machine's link down). */
#ifndef FAULT_H
#define FAULT_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

enum { FAULT_ELEMENTS = 1 << 17 };

struct scenario {
    const char *name;
    void (*prepare)(void);  /* the victim, before all know that it is ready */
    void (*last_act)(void); /* the victim, before it ends */
    int (*wait)(void);      /* a survivor, until it gets an error */
    bool may_succeed;       /* an error is allowed and not demanded; no wait may last */
    void (*survivor)(void); /* a survivor, when the victim prepares; or NULL */
    bool far_only;          /* survivors on the victim's machine may succeed: its memory outlives it there */
};
extern const struct scenario scenarios[];
extern const size_t scenario_count;

extern int world_rank, world_size, victim;
extern bool with_victim;       /* on one machine with it */
extern MPI_Win win;            /* of FAULT_ELEMENTS doubles at each rank; errors return */
extern MPI_Group victim_group; /* the victim alone */
extern MPI_Comm fresh;         /* all ranks; has had no window */
extern double *bulk;           /* FAULT_ELEMENTS zeros */

double seconds_now(void);

/* All ranks reach all ranks; together. */
void connect_all(void);

#endif
