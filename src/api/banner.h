/* The line of ORIEL_VERBOSE about the whole job. */
#ifndef ORIEL_API_BANNER_H
#define ORIEL_API_BANNER_H

/* Call after MPI has been started, in any way. Rank 0 prints it, once. Without ORIEL_VERBOSE it has
 * no effect. */
void oriel_banner_print(void);

#endif
