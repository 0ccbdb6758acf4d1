/* The table of performance variables, most generated from the counters, and the functions that
 * describe them. */
#include "tool/performance_variables.h"

#include "observe/stats/record.h"
#include "observe/trace/trace_format.h"
#include "tool/tool.h"

#include <string.h>

#define VARIABLE(name_, description_, verbosity_, class_, category_, quantity_, item_)             \
    {.name = name_,                                                                                \
     .description = description_,                                                                  \
     .verbosity = MPI_T_VERBOSITY_##verbosity_,                                                    \
     .class = MPI_T_PVAR_CLASS_##class_,                                                           \
     .category = ORIEL_CATEGORY_##category_,                                                       \
     .quantity = quantity_,                                                                        \
     .item = item_,                                                                                \
     .of_window = IS_OF_WINDOW},

#define LEVEL(name_, description_, level_)                                                         \
    {                                                                                              \
        .name = name_, .description = description_, .verbosity = MPI_T_VERBOSITY_USER_BASIC,       \
        .class = MPI_T_PVAR_CLASS_LEVEL, .category = ORIEL_CATEGORY_MEMORY, .level = level_        \
    }

static const struct oriel_performance_variable variables[] = {
#define PREFIX       "oriel_"
#define SCOPE        "all windows of this process"
#define IS_OF_WINDOW false
#include "tool/performance_variables.def"
#undef PREFIX
#undef SCOPE
#undef IS_OF_WINDOW
#define PREFIX       "oriel_win_"
#define SCOPE        "the window"
#define IS_OF_WINDOW true
#include "tool/performance_variables.def"
    VARIABLE(PREFIX "target_count", "number of operations on " SCOPE ", by target rank",
             USER_DETAIL, COUNTER, OPERATIONS, ORIEL_QUANTITY_TARGET_OPERATIONS, 0)
        VARIABLE(PREFIX "target_bytes", "bytes moved on " SCOPE ", by target rank", USER_DETAIL,
                 AGGREGATE, OPERATIONS, ORIEL_QUANTITY_TARGET_BYTES, 0)
            LEVEL("oriel_memory_windows", "bytes of this process's memory in windows",
                  oriel_memory_of_windows),
    LEVEL("oriel_memory_file",
          "bytes of the shared memory that this process has created, free parts included",
          oriel_memory_of_file),
    LEVEL("oriel_memory_used",
          "bytes of it in use: memory of windows and of MPI_Alloc_mem, and Oriel's own",
          oriel_memory_of_blocks),
};

enum { VARIABLES = sizeof variables / sizeof variables[0] };
const int oriel_performance_variables_count = VARIABLES;

const struct oriel_performance_variable *oriel_performance_variable(int index)
{
    return &variables[index];
}

ORIEL_EXPORT int PMPI_T_pvar_get_num(int *num_pvar)
{
    if (!oriel_tool_is_initialised())
        return MPI_T_ERR_NOT_INITIALIZED;
    if (num_pvar == NULL)
        return MPI_T_ERR_INVALID;
    return oriel_tool_number_return(oriel_tool_host.pvar_get_num(num_pvar), VARIABLES, num_pvar);
}
ORIEL_TOOL_NAME(pvar_get_num)

ORIEL_EXPORT int PMPI_T_pvar_get_info(int pvar_index, char *name, int *name_len, int *verbosity,
                                      int *var_class, MPI_Datatype *datatype, MPI_T_enum *enumtype,
                                      char *desc, int *desc_len, int *bind, int *readonly,
                                      int *continuous, int *atomic)
{
    int code = oriel_tool_index_check(pvar_index, VARIABLES, oriel_tool_host.pvar_get_num);
    if (code != MPI_SUCCESS)
        return code;
    if (pvar_index >= VARIABLES)
        return oriel_tool_host.pvar_get_info(pvar_index - VARIABLES, name, name_len, verbosity,
                                             var_class, datatype, enumtype, desc, desc_len, bind,
                                             readonly, continuous, atomic);
    const struct oriel_performance_variable *variable = &variables[pvar_index];
    oriel_tool_text_return(variable->name, name, name_len);
    oriel_tool_text_return(variable->description, desc, desc_len);
    oriel_tool_int_return(variable->verbosity, verbosity);
    oriel_tool_int_return(variable->class, var_class);
    if (datatype != NULL)
        *datatype = MPI_UNSIGNED_LONG_LONG;
    if (enumtype != NULL)
        *enumtype = MPI_T_ENUM_NULL;
    oriel_tool_int_return(variable->of_window ? MPI_T_BIND_MPI_WIN : MPI_T_BIND_NO_OBJECT, bind);
    oriel_tool_int_return(variable->level != NULL, readonly);
    oriel_tool_int_return(variable->level != NULL, continuous);
    oriel_tool_int_return(variable->level == NULL, atomic);
    return MPI_SUCCESS;
}
ORIEL_TOOL_NAME(pvar_get_info)

ORIEL_EXPORT int PMPI_T_pvar_get_index(const char *name, int var_class, int *pvar_index)
{
    if (!oriel_tool_is_initialised())
        return MPI_T_ERR_NOT_INITIALIZED;
    if (name == NULL || pvar_index == NULL)
        return MPI_T_ERR_INVALID;
    for (int i = 0; i < VARIABLES; i++)
        if (variables[i].class == var_class && strcmp(variables[i].name, name) == 0) {
            *pvar_index = i;
            return MPI_SUCCESS;
        }
    return oriel_tool_number_return(oriel_tool_host.pvar_get_index(name, var_class, pvar_index),
                                    VARIABLES, pvar_index);
}
ORIEL_TOOL_NAME(pvar_get_index)
