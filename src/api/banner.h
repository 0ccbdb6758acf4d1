/* Lines about the whole job: that of ORIEL_VERBOSE, and a warning about an untested host. */
#ifndef ORIEL_API_BANNER_H
#define ORIEL_API_BANNER_H

/* Call after MPI has been started, in any way. Rank 0 prints them, once. */
void oriel_banner_print(void);

#endif
