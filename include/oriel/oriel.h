/* Oriel's public header: the version of the library that a program is built against.
 * The numbers here are the only place where the version is written; the build reads them.
 * Any program may include it, from C or C++. */
#ifndef ORIEL_ORIEL_H
#define ORIEL_ORIEL_H

#define ORIEL_VERSION_MAJOR 0
#define ORIEL_VERSION_MINOR 1
#define ORIEL_VERSION_PATCH 0

#define ORIEL_VERSION_TEXT_(number) #number
#define ORIEL_VERSION_TEXT(number) ORIEL_VERSION_TEXT_(number)

/* "major.minor.patch" as a string literal. */
#define ORIEL_VERSION                                                          \
    ORIEL_VERSION_TEXT(ORIEL_VERSION_MAJOR)                                    \
    "." ORIEL_VERSION_TEXT(ORIEL_VERSION_MINOR) "." ORIEL_VERSION_TEXT(        \
        ORIEL_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

/* The calling thread's last error that Oriel raised, as "MPI_Put by rank 0 on window w: ..."; empty when there was none.  The error
 * class that MPI returned cannot say as much. */
const char *oriel_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
