/* MPI that the program reaches past Oriel: one line for a job.  creation.c calls. */
#ifndef ORIEL_API_UNSERVED_CALLS_H
#define ORIEL_API_UNSERVED_CALLS_H

/* Before a window is made.  Costs some 100 ns where no library was loaded since the last call. */
void oriel_past_look(void);

#endif
