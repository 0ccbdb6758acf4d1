/* Control variables: the options, in the order of their table, under their names. Reading returns
 * the value in effect. A program may write an option until it calls MPI_Init or MPI_Session_init,
 * which use the values; all processes of a job must write the same value. The checker's options
 * belong to another copy of the table (check/), and ORIEL_CONFIG is read before any function of
 * this interface can run: these are constant.
 *
 * The address of an element of `handles` is the handle of the option at its position. */
#include "tool/tool.h"

#include "api/spawn_env.h"
#include "base/options.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* the characters of a string option, with its end */
enum { STRING_BYTES = 4096 };

static const char handles[ORIEL_CONTROL_VARIABLES];

/* Protects the values of options against changes by oriel_options_set. */
static pthread_mutex_t values_mutex = PTHREAD_MUTEX_INITIALIZER;

/* The position of one of Oriel's handles; ORIEL_CONTROL_VARIABLES or more for the host's. */
static uintptr_t handle_option(MPI_T_cvar_handle handle)
{
    return (uintptr_t)handle - (uintptr_t)handles;
}

static bool is_kind(const struct oriel_option_description *option, const char *kind)
{
    return strcmp(option->kind, kind) == 0;
}

static bool is_constant(const struct oriel_option_description *option)
{
    return strcmp(option->name, "ORIEL_CONFIG") == 0 ||
           strncmp(option->name, "ORIEL_CHECK_", strlen("ORIEL_CHECK_")) == 0;
}

static bool is_for_tests(const struct oriel_option_description *option)
{
    return strncmp(option->meaning, "(testing)", strlen("(testing)")) == 0;
}

ORIEL_EXPORT int PMPI_T_cvar_get_num(int *num_cvar)
{
    if (!oriel_tool_is_initialised())
        return MPI_T_ERR_NOT_INITIALIZED;
    if (num_cvar == NULL)
        return MPI_T_ERR_INVALID;
    return oriel_tool_number_return(oriel_tool_host.cvar_get_num(num_cvar), ORIEL_CONTROL_VARIABLES,
                                    num_cvar);
}
ORIEL_TOOL_NAME(cvar_get_num)

static MPI_Datatype datatype_of(const struct oriel_option_description *option)
{
    if (is_kind(option, "string"))
        return MPI_CHAR;
    return is_kind(option, "size") ? MPI_UNSIGNED_LONG_LONG : MPI_INT;
}

ORIEL_EXPORT int PMPI_T_cvar_get_info(int cvar_index, char *name, int *name_len, int *verbosity,
                                      MPI_Datatype *datatype, MPI_T_enum *enumtype, char *desc,
                                      int *desc_len, int *bind, int *scope)
{
    struct oriel_option_description option;
    int code =
        oriel_tool_index_check(cvar_index, ORIEL_CONTROL_VARIABLES, oriel_tool_host.cvar_get_num);
    if (code != MPI_SUCCESS)
        return code;
    if (!oriel_option_describe((size_t)cvar_index, oriel_options(), &option))
        return oriel_tool_host.cvar_get_info(cvar_index - ORIEL_CONTROL_VARIABLES, name, name_len,
                                             verbosity, datatype, enumtype, desc, desc_len, bind,
                                             scope);
    oriel_tool_text_return(option.name, name, name_len);
    oriel_tool_text_return(option.meaning, desc, desc_len);
    oriel_tool_int_return(is_for_tests(&option) ? MPI_T_VERBOSITY_MPIDEV_BASIC
                                                : MPI_T_VERBOSITY_USER_BASIC,
                          verbosity);
    if (datatype != NULL)
        *datatype = datatype_of(&option);
    if (enumtype != NULL)
        *enumtype = is_kind(&option, "choice") ? oriel_tool_enum(cvar_index) : MPI_T_ENUM_NULL;
    oriel_tool_int_return(MPI_T_BIND_NO_OBJECT, bind);
    oriel_tool_int_return(is_constant(&option) ? MPI_T_SCOPE_CONSTANT : MPI_T_SCOPE_ALL_EQ, scope);
    return MPI_SUCCESS;
}
ORIEL_TOOL_NAME(cvar_get_info)

ORIEL_EXPORT int PMPI_T_cvar_get_index(const char *name, int *cvar_index)
{
    struct oriel_option_description option;
    if (!oriel_tool_is_initialised())
        return MPI_T_ERR_NOT_INITIALIZED;
    if (name == NULL || cvar_index == NULL)
        return MPI_T_ERR_INVALID;
    for (int i = 0; oriel_option_describe((size_t)i, oriel_options(), &option); i++)
        if (strcmp(option.name, name) == 0) {
            *cvar_index = i;
            return MPI_SUCCESS;
        }
    return oriel_tool_number_return(oriel_tool_host.cvar_get_index(name, cvar_index),
                                    ORIEL_CONTROL_VARIABLES, cvar_index);
}
ORIEL_TOOL_NAME(cvar_get_index)

ORIEL_EXPORT int PMPI_T_cvar_handle_alloc(int cvar_index, void *obj_handle,
                                          MPI_T_cvar_handle *handle, int *count)
{
    struct oriel_option_description option;
    if (!oriel_tool_is_initialised())
        return MPI_T_ERR_NOT_INITIALIZED;
    if (handle == NULL || count == NULL)
        return MPI_T_ERR_INVALID;
    int code =
        oriel_tool_index_check(cvar_index, ORIEL_CONTROL_VARIABLES, oriel_tool_host.cvar_get_num);
    if (code != MPI_SUCCESS)
        return code;
    if (!oriel_option_describe((size_t)cvar_index, oriel_options(), &option))
        return oriel_tool_host.cvar_handle_alloc(cvar_index - ORIEL_CONTROL_VARIABLES, obj_handle,
                                                 handle, count);
    *handle = (MPI_T_cvar_handle)(uintptr_t)&handles[cvar_index];
    *count = is_kind(&option, "string") ? STRING_BYTES : 1;
    return MPI_SUCCESS;
}
ORIEL_TOOL_NAME(cvar_handle_alloc)

ORIEL_EXPORT int PMPI_T_cvar_handle_free(MPI_T_cvar_handle *handle)
{
    if (!oriel_tool_is_initialised())
        return MPI_T_ERR_NOT_INITIALIZED;
    if (handle == NULL || *handle == MPI_T_CVAR_HANDLE_NULL)
        return MPI_T_ERR_INVALID_HANDLE;
    if (handle_option(*handle) >= ORIEL_CONTROL_VARIABLES)
        return oriel_tool_host.cvar_handle_free(handle);
    *handle = MPI_T_CVAR_HANDLE_NULL;
    return MPI_SUCCESS;
}
ORIEL_TOOL_NAME(cvar_handle_free)

static void option_read(const struct oriel_option_description *option, void *buf)
{
    if (is_kind(option, "string"))
        snprintf(buf, STRING_BYTES, "%s", option->string == NULL ? "" : option->string);
    else if (is_kind(option, "size"))
        *(unsigned long long *)buf = option->number;
    else
        *(int *)buf = (int)option->number;
}

static int value_check(MPI_T_cvar_handle handle, const void *buf)
{
    if (!oriel_tool_is_initialised())
        return MPI_T_ERR_NOT_INITIALIZED;
    if (handle == MPI_T_CVAR_HANDLE_NULL)
        return MPI_T_ERR_INVALID_HANDLE;
    return buf == NULL ? MPI_T_ERR_INVALID : MPI_SUCCESS;
}

ORIEL_EXPORT int PMPI_T_cvar_read(MPI_T_cvar_handle handle, void *buf)
{
    struct oriel_option_description option;
    uintptr_t at = handle_option(handle);
    int code = value_check(handle, buf);
    if (code != MPI_SUCCESS)
        return code;
    if (at >= ORIEL_CONTROL_VARIABLES)
        return oriel_tool_host.cvar_read(handle, buf);
    pthread_mutex_lock(&values_mutex);
    oriel_option_describe(at, oriel_options(), &option);
    option_read(&option, buf);
    pthread_mutex_unlock(&values_mutex);
    return MPI_SUCCESS;
}
ORIEL_TOOL_NAME(cvar_read)

/* The value as in the environment. Returns false if the option has no such value. */
static bool option_format(const struct oriel_option_description *option, const void *buf,
                          char text[STRING_BYTES])
{
    if (is_kind(option, "choice"))
        return *(const int *)buf >= 0 && oriel_tool_word(option->words, *(const int *)buf, text);
    if (is_kind(option, "string"))
        snprintf(text, STRING_BYTES, "%.*s", STRING_BYTES - 1, (const char *)buf);
    else if (is_kind(option, "size"))
        snprintf(text, STRING_BYTES, "%llu", *(const unsigned long long *)buf);
    else
        snprintf(text, STRING_BYTES, "%d", *(const int *)buf);
    return true;
}

ORIEL_EXPORT int PMPI_T_cvar_write(MPI_T_cvar_handle handle, const void *buf)
{
    struct oriel_option_description option;
    char text[STRING_BYTES];
    uintptr_t at = handle_option(handle);
    int code = value_check(handle, buf);
    if (code != MPI_SUCCESS)
        return code;
    if (at >= ORIEL_CONTROL_VARIABLES)
        return oriel_tool_host.cvar_write(handle, buf);
    pthread_mutex_lock(&values_mutex);
    oriel_option_describe(at, oriel_options(), &option);
    if (is_constant(&option))
        code = MPI_T_ERR_CVAR_SET_NEVER;
    else if (oriel_spawn_env_has_entered())
        code = MPI_T_ERR_CVAR_SET_NOT_NOW;
    else if (!option_format(&option, buf, text) || !oriel_options_set(at, text))
        code = MPI_T_ERR_INVALID;
    pthread_mutex_unlock(&values_mutex);
    return code;
}
ORIEL_TOOL_NAME(cvar_write)
