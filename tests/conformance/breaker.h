/* The breaker: a library above Oriel that does one thing wrong, so that the test which is said to prove it must fail.
 * Which thing, the variable CONFORMANCE_BREAK says; without it every call is passed on unchanged.
 * Called by the files of this folder: breaker.c owns the exported names, faults_*.c what is done wrong. */
#ifndef ORIEL_TESTS_BREAKER_H
#define ORIEL_TESTS_BREAKER_H

#include "host/function_table.h" /* and the macros for parameter lists of functions.def (ORIGIN, TARGET, ...) */

#include <stdbool.h>
#include <stddef.h>

/* Where calls go after the breaker: Oriel. Filled when the library is loaded, constant from then on. */
extern struct oriel_api next;
/* Where the exported names jump to: next, but for the functions that the chosen fault replaces. */
extern struct oriel_api current;

/* One function that a fault replaces; a fault is all rows of its name. */
struct fault {
    const char *name;
    void (**slot)(void);
    void (*replacement)(void);
};
#define FAULT(fault, function)                                                                     \
    {                                                                                              \
#fault, (void (**)(void)) & current.function, (void (*)(void))fault##_##function           \
    }

/* The lists end in a row without a name. */
extern const struct fault creation_faults[];
extern const struct fault synchronisation_faults[];
extern const struct fault operation_faults[];
extern const struct fault atomicity_faults[];
extern const struct fault info_faults[];

/* What follows the fault's name after a blank: the info key, the operator. */
extern const char *breaker_argument;

/* Whether CONFORMANCE_BREAK is "function NAME"; for the names that only one host has. */
bool breaker_takes(const char *function);
/* The function of that name behind the breaker. */
void *breaker_next(const char *name);

#endif
