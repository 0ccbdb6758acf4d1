/* The breaker: a library above Oriel that makes one mistake on purpose. The test that claims to
 * prove the behaviour must then fail. The variable CONFORMANCE_BREAK names the mistake; without it
 * the breaker passes every call on unchanged. breaker.c owns the exported names, faults_*.c the
 * faults. */
#ifndef ORIEL_TESTS_BREAKER_H
#define ORIEL_TESTS_BREAKER_H

/* with the macros for parameter lists of functions.def (ORIGIN, TARGET, ...) */
#include "host/function_table.h"

#include <stdbool.h>
#include <stddef.h>

/* The functions that the breaker calls: Oriel's. Filled when the library is loaded, constant
 * afterwards. */
extern struct oriel_api next;
/* The targets of the exported names: next, except for the functions that the chosen fault
 * replaces. */
extern struct oriel_api current;

/* One function that a fault replaces; a fault consists of all rows with its name. */
struct fault {
    const char *name;
    void (**slot)(void);
    void (*replacement)(void);
};
#define FAULT(fault, function)                                                                     \
    {                                                                                              \
#fault, (void (**)(void)) & current.function, (void (*)(void))fault##_##function           \
    }

/* Each list ends in a row without a name. */
extern const struct fault creation_faults[];
extern const struct fault synchronisation_faults[];
extern const struct fault operation_faults[];
extern const struct fault atomicity_faults[];
extern const struct fault info_faults[];

/* The word after the fault's name: the info key or the operator. */
extern const char *breaker_argument;

/* True if CONFORMANCE_BREAK is "function NAME"; for the names that only one host has. */
bool breaker_breaks(const char *function);
/* The function of that name after the breaker in the loader's search order. */
void *breaker_next(const char *name);

#endif
