/* The exported names of the breaker, MPI_X and PMPI_X or MPIX_X and PMPIX_X, and the choice of the
 * fault:
 *
 *   CONFORMANCE_BREAK="function Put"              MPI_Put does nothing and returns MPI_SUCCESS
 *   CONFORMANCE_BREAK="error MPI_ERR_RMA_RANGE"   MPI_SUCCESS replaces that error class
 *   CONFORMANCE_BREAK="fault swap_always"         a row of faults_*.c
 *   CONFORMANCE_BREAK="fault info no_locks"       the same, with an argument
 *
 * The choice is made when the library is loaded. Programs call these names in place of Oriel's. */
#include "breaker.h"

#include "oriel/ext.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct oriel_api next;
struct oriel_api current;
const char *breaker_argument = "";

static const char *broken_function = "";
static int hidden_class = MPI_SUCCESS;

static const struct {
    const char *name;
    int error_class;
} classes[] = {
#define CLASS(name) {#name, name},
    CLASS(MPI_ERR_SIZE) CLASS(MPI_ERR_DISP) CLASS(MPI_ERR_RMA_RANGE) CLASS(MPI_ERR_RMA_SYNC)
        CLASS(MPI_ERR_RMA_ATTACH) CLASS(MPI_ERR_RMA_FLAVOR) CLASS(MPI_ERR_RMA_SHARED)
            CLASS(MPI_ERR_LOCKTYPE) CLASS(MPI_ERR_ASSERT) CLASS(MPI_ERR_RANK) CLASS(MPI_ERR_WIN)
                CLASS(MPI_ERR_COUNT) CLASS(MPI_ERR_TYPE) CLASS(MPI_ERR_OP) CLASS(MPI_ERR_BASE)
                    CLASS(MPI_ERR_INFO) CLASS(MPI_ERR_ARG) CLASS(MPI_ERR_COMM) CLASS(MPI_ERR_GROUP)
                        CLASS(MPI_ERR_BUFFER) CLASS(MPI_ERR_NO_MEM)
                            CLASS(MPI_ERR_UNSUPPORTED_OPERATION)
#undef CLASS
};

void *breaker_next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

bool breaker_breaks(const char *function)
{
    return strcmp(broken_function, function) == 0;
}

/* An unknown fault would change nothing, and every test would pass. */
static void die(const char *what)
{
    fprintf(stderr, "breaker: CONFORMANCE_BREAK=\"%s\" is not understood\n", what);
    _Exit(99);
}

static bool faults_select(const struct fault *faults, const char *name, size_t name_len)
{
    bool found = false;
    for (const struct fault *fault = faults; fault->name; fault++) {
        if (strlen(fault->name) != name_len || memcmp(fault->name, name, name_len) != 0)
            continue;
        *fault->slot = fault->replacement;
        found = true;
    }
    return found;
}

static bool fault_choose(const char *text)
{
    size_t name_len = strcspn(text, " ");
    breaker_argument = text[name_len] ? text + name_len + 1 : "";
    return faults_select(creation_faults, text, name_len) ||
           faults_select(synchronisation_faults, text, name_len) ||
           faults_select(operation_faults, text, name_len) ||
           faults_select(atomicity_faults, text, name_len) ||
           faults_select(info_faults, text, name_len);
}

static bool class_choose(const char *text)
{
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (strcmp(classes[i].name, text) == 0)
            hidden_class = classes[i].error_class;
    return hidden_class != MPI_SUCCESS;
}

__attribute__((constructor)) static void choose(void)
{
    const char *text = getenv("CONFORMANCE_BREAK");
#define FUNCTION(name, parameters, arguments)                                                      \
    next.name = (__typeof__(next.name))breaker_next("PMPI_" #name);
#define FORWARD FUNCTION
#define LARGE   FUNCTION
#include "host/functions.def"
#undef FUNCTION
#undef FORWARD
#undef LARGE
#define EXTENSION(name, parameters, arguments)                                                     \
    next.name = (__typeof__(next.name))breaker_next("PMPIX_" #name);
#include "host/extensions.def"
#undef EXTENSION
    current = next;
    if (!text || !*text)
        return;
    if (strncmp(text, "function ", 9) == 0)
        broken_function = text + 9;
    else if (!(strncmp(text, "error ", 6) == 0 && class_choose(text + 6)) &&
             !(strncmp(text, "fault ", 6) == 0 && fault_choose(text + 6)))
        die(text);
}

static int result(int code)
{
    int class = code;
    if (hidden_class == MPI_SUCCESS || code == MPI_SUCCESS)
        return code;
    PMPI_Error_class(code, &class);
    return class == hidden_class ? MPI_SUCCESS : code;
}

#define EXPORT(prefix, name, parameters, arguments)                                                \
    int P##prefix##name parameters                                                                 \
    {                                                                                              \
        return breaker_breaks(#name) ? MPI_SUCCESS : result(current.name arguments);               \
    }                                                                                              \
    int prefix##name parameters __attribute__((alias("P" #prefix #name)));
#define FUNCTION(name, parameters, arguments)  EXPORT(MPI_, name, parameters, arguments)
#define FORWARD                                FUNCTION
#define LARGE                                  FUNCTION
#define EXTENSION(name, parameters, arguments) EXPORT(MPIX_, name, parameters, arguments)
#include "host/extensions.def"
#include "host/functions.def"
