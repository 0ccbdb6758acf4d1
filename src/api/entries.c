/* The exported names, generated from functions.def: each function as PMPI_X with MPI_X as a weak
 * alias, as in an MPI library, and the extensions as PMPIX_X and MPIX_X. They only jump through the
 * table.
 *
 * Another thread may replace an entry meanwhile (observe/observe.h). The load of one aligned word
 * finds the previous entry or the new one. An atomic load would cost an instruction, because
 * compilers do not make it part of the jump. So ThreadSanitizer does not see this load. */
#include "api/api.h"

#define FUNCTION(name, parameters, arguments)
#define FORWARD(name, parameters, arguments)                                                       \
    static int forward_##name parameters                                                           \
    {                                                                                              \
        return oriel_host()->name arguments;                                                       \
    }
#define LARGE FUNCTION
#include "host/functions.def"
#undef FUNCTION
#undef FORWARD
#undef LARGE

struct oriel_api oriel_api = {
#define FUNCTION(name, parameters, arguments) .name = oriel_entry_##name,
#define FORWARD(name, parameters, arguments)  .name = forward_##name,
#define LARGE                                 FUNCTION
#define EXTENSION                             FUNCTION
#include "host/extensions.def"
#include "host/functions.def"
#undef FUNCTION
#undef FORWARD
#undef LARGE
#undef EXTENSION
};

#define EXPORT(prefix, name, parameters, arguments)                                                \
    ORIEL_EXPORT __attribute__((no_sanitize("thread"))) int P##prefix##name parameters             \
    {                                                                                              \
        return oriel_api.name arguments;                                                           \
    }                                                                                              \
    ORIEL_EXPORT int prefix##name parameters                                                       \
        __attribute__((weak, alias("P" #prefix #name)));
#define FUNCTION(name, parameters, arguments)  EXPORT(MPI_, name, parameters, arguments)
#define EXTENSION(name, parameters, arguments) EXPORT(MPIX_, name, parameters, arguments)
#define FORWARD                                FUNCTION
#define LARGE                                  FUNCTION
#include "host/extensions.def"
#include "host/functions.def"
