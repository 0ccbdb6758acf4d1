/* The table through which the exported names reach Oriel's functions: a slot for each row of functions.def.  entries.c has it;
 * who observes replaces slots, before the first window is made, by functions that call the ones before. */
#ifndef ORIEL_HOST_FUNCTION_TABLE_H
#define ORIEL_HOST_FUNCTION_TABLE_H

#include "oriel/mpi_rma.h"

#include <mpi.h>

struct oriel_api {
#define FUNCTION(name, parameters, arguments) int(*name) parameters;
#define FORWARD                               FUNCTION
#define LARGE                                 FUNCTION
#include "host/functions.def"
#undef FUNCTION
#undef FORWARD
#undef LARGE
};

#endif
