/* Oriel's public header: version, state and last error. C and C++ programs may include it.
 *
 * The numbers are the version that a program is compiled against, and the only place where the
 * version is written: the build reads them. docs/reference/stability.md says what stays compatible. */
#ifndef ORIEL_ORIEL_H
#define ORIEL_ORIEL_H

#define ORIEL_VERSION_MAJOR 0
#define ORIEL_VERSION_MINOR 2
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

/* The version of the library that is loaded, as "major.minor.patch". */
const char *oriel_version(void);

/* 1 if Oriel handles this process's window calls, 0 if they go to the host because of
 * ORIEL_BYPASS=1. May be called at any time, before MPI_Init too. The host may still serve a
 * single window: the info keys of MPI_Win_get_info say so. */
int oriel_active(void);

/* The calling thread's last error that Oriel raised, as "MPI_Put by rank 0 on window w: ..."; empty when there was none.  The error
 * class that MPI returned cannot say as much. */
const char *oriel_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
