/* The table through which exported names reach Oriel's functions: one slot per row of
 * functions.def and extensions.def, defined in api/entries.c. Before the first window is created,
 * an observer may replace slots by functions that call the previous ones. */
#ifndef ORIEL_HOST_FUNCTION_TABLE_H
#define ORIEL_HOST_FUNCTION_TABLE_H

#include "oriel/ext.h"
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
#define EXTENSION(name, parameters, arguments) int(*name) parameters;
#include "host/extensions.def"
#undef EXTENSION
};

#endif
