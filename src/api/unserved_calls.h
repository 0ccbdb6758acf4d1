/* Warns about MPI calls that bypass Oriel: one line per job. */
#ifndef ORIEL_API_UNSERVED_CALLS_H
#define ORIEL_API_UNSERVED_CALLS_H

/* Before a window is created. Costs about 100 ns if no library was loaded since the last call. */
void oriel_unserved_calls_check(void);

#endif
