/* MPI's tool information interface (MPI-4.1, 15.3), in front of the host's: Oriel's options are
 * control variables, its counters are performance variables, and both are in categories.
 *
 * Indices. MPI numbers variables and categories from 0 without gaps. An index never changes, and a
 * number only grows. The host's numbers may grow at any time, Oriel's are constant. So Oriel's come
 * first, 0 to n-1, and the host's follow, each n above the host's own index: what the host adds
 * comes at the end. Oriel's names begin with "oriel" or "ORIEL_", so no two variables have one
 * name.
 *
 * Handles and enumerations have the host's types, which are pointers. Oriel's are addresses of its
 * own objects, and no object of the host has the same address at the same time. */
#ifndef ORIEL_TOOL_TOOL_H
#define ORIEL_TOOL_TOOL_H

#include "api/api.h"

#include <mpi.h>
#include <stdbool.h>

struct oriel_tool_calls {
#define CALL(name) __typeof__(PMPI_T_##name) *name;
#include "tool/tool_functions.def"
#undef CALL
};

/* The host's functions; complete once the interface is initialised. */
extern struct oriel_tool_calls oriel_tool_host __attribute__((visibility("hidden")));

/* Defines the name MPI_T_<name> for a function PMPI_T_<name>. */
#define ORIEL_TOOL_NAME(name)                                                                      \
    ORIEL_EXPORT __typeof__(PMPI_T_##name) MPI_T_##name                                            \
        __attribute__((weak, alias("PMPI_T_" #name)));

/* Whether more calls of MPI_T_init_thread than of MPI_T_finalize have succeeded. */
bool oriel_tool_is_initialised(void);

/* Returns a string as in MPI-4.1, 15.3.3: at most *len - 1 characters and a null character go to
 * out, and *len becomes the length of the whole string plus 1. If out is NULL or *len is 0, only
 * the length is returned; if len is NULL, nothing. */
void oriel_tool_text_return(const char *text, char *out, int *len);

static inline void oriel_tool_int_return(int value, int *out)
{
    if (out != NULL)
        *out = value;
}

/* Checks that the interface is initialised and that it has the index: of Oriel's or of the host's,
 * whose number get_num returns. Some hosts read beyond their tables. */
int oriel_tool_index_check(int index, int own, int (*get_num)(int *number));

/* The number that a function of the host returned, and Oriel's on top. */
static inline int oriel_tool_number_return(int code, int own, int *number)
{
    if (code == MPI_SUCCESS)
        *number += own;
    return code;
}

/* --- tool_enums.c: the words of an option --- */

/* The enumeration of the shown option at that index. */
MPI_T_enum oriel_tool_enum(int option);

/* Writes word number `at` of "first|second" to out, which has room for ORIEL_TOOL_WORD_BYTES.
 * Returns false if there are fewer words. */
enum { ORIEL_TOOL_WORD_BYTES = 32 };
bool oriel_tool_word(const char *words, int at, char *out);

/* --- control_variables.c --- */

/* The number of shown options. */
enum {
    ORIEL_CONTROL_VARIABLES = 0
#define OPTION(kind, field, name, initial, words, shown, meaning) +(shown)
#include "base/options.def"
#undef OPTION
};

/* --- performance_handles.c --- */

/* At the end of the interface: frees what the program left. */
void oriel_performance_handles_close(void);

#endif
