/* Oriel's public header: version, state, last error and regions, for programs in C or C++.
 *
 * A program that also runs without Oriel defines ORIEL_WEAK before it includes this file. Each
 * function is then NULL if Oriel is not loaded.
 *
 * The numbers are the version that a program is compiled against. The build reads them from this
 * file, which alone defines the version. docs/reference/stability.md lists what stays compatible.
 */
#ifndef ORIEL_ORIEL_H
#define ORIEL_ORIEL_H

#define ORIEL_VERSION_MAJOR 0
#define ORIEL_VERSION_MINOR 2
#define ORIEL_VERSION_PATCH 0

#define ORIEL_VERSION_TEXT_(number) #number
#define ORIEL_VERSION_TEXT(number)  ORIEL_VERSION_TEXT_(number)

/* "major.minor.patch" as a string literal. */
#define ORIEL_VERSION                                                                              \
    ORIEL_VERSION_TEXT(ORIEL_VERSION_MAJOR)                                                        \
    "." ORIEL_VERSION_TEXT(ORIEL_VERSION_MINOR) "." ORIEL_VERSION_TEXT(ORIEL_VERSION_PATCH)

#ifdef ORIEL_WEAK
#define ORIEL_WEAK_ __attribute__((weak))
#else
#define ORIEL_WEAK_
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the version of the loaded library, as "major.minor.patch". The string is constant. */
ORIEL_WEAK_ const char *oriel_version(void);

/* Returns 1 if Oriel handles this process's window calls, 0 if they go to the host because of
 * ORIEL_BYPASS=1. May be called at any time, also before MPI_Init. The host may still serve a
 * single window; the info keys of MPI_Win_get_info report the path of each window. */
ORIEL_WEAK_ int oriel_active(void);

/* Returns the message of the last error that Oriel raised in the calling thread, for example
 * "MPI_Put by rank 0 on window w: ...". It names the function, the window, the peer and the reason,
 * where MPI returns an error class only. Empty if there was none; errors of the host are not
 * included. The string is valid until the thread's next error. Do not free it. */
ORIEL_WEAK_ const char *oriel_last_error(void);

/* Name a part of the program in the calling thread, for statistics and traces: the time in it, and
 * how much of that was in calls on windows, waiting, and with how many operations and bytes.
 * Regions nest. Names have at most 63 bytes, and a process has at most 255. end names the innermost
 * region of that name, and ends those in it; NULL is the innermost of all. A mistake is one warning
 * on standard error. Without statistics and traces they return at once, also before MPI_Init and
 * after MPI_Finalize. */
ORIEL_WEAK_ void oriel_region_begin(const char *name);
ORIEL_WEAK_ void oriel_region_end(const char *name);

#ifdef __cplusplus
}
#endif

#endif
