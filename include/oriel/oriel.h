/* Oriel's version and its own functions, for programs in C or C++. The build reads the version from
 * this file, which alone defines it. */
#ifndef ORIEL_ORIEL_H
#define ORIEL_ORIEL_H

#define ORIEL_VERSION_MAJOR 0
#define ORIEL_VERSION_MINOR 1
#define ORIEL_VERSION_PATCH 0

#define ORIEL_VERSION_TEXT_(number) #number
#define ORIEL_VERSION_TEXT(number)  ORIEL_VERSION_TEXT_(number)

/* "major.minor.patch" as a string literal. */
#define ORIEL_VERSION                                                                              \
    ORIEL_VERSION_TEXT(ORIEL_VERSION_MAJOR)                                                        \
    "." ORIEL_VERSION_TEXT(ORIEL_VERSION_MINOR) "." ORIEL_VERSION_TEXT(ORIEL_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the message of the last error that Oriel raised in the calling thread, for example
 * "MPI_Put by rank 0 on window w: ...". It names the function, the window, the peer and the reason,
 * where MPI returns an error class only. Empty if there was none; errors of the host are not
 * included. The string is valid until the thread's next error. Do not free it. */
const char *oriel_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
