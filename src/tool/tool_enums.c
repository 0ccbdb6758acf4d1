/* Enumerations: the words of options that have a choice. The address of an element of `enums` is
 * the enumeration of the option at its position. */
#include "tool/tool.h"

#include "base/options.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char enums[ORIEL_CONTROL_VARIABLES];

MPI_T_enum oriel_tool_enum(int option)
{
    return (MPI_T_enum)(uintptr_t)&enums[option];
}

bool oriel_tool_word(const char *words, int at, char *out)
{
    for (; at > 0 && words != NULL; at--) {
        words = strchr(words, '|');
        words = words == NULL ? NULL : words + 1;
    }
    if (words == NULL)
        return false;
    snprintf(out, ORIEL_TOOL_WORD_BYTES, "%.*s", (int)strcspn(words, "|"), words);
    return true;
}

/* Finds the option of Oriel's enumeration; its name is NULL for an enumeration of the host. */
static int enum_find(MPI_T_enum enumtype, struct oriel_option_description *out)
{
    uintptr_t at = (uintptr_t)enumtype - (uintptr_t)enums;
    if (!oriel_tool_is_initialised())
        return MPI_T_ERR_NOT_INITIALIZED;
    if (enumtype == MPI_T_ENUM_NULL)
        return MPI_T_ERR_INVALID_HANDLE;
    if (at >= ORIEL_CONTROL_VARIABLES || !oriel_option_describe(at, oriel_options(), out))
        out->name = NULL;
    return MPI_SUCCESS;
}

ORIEL_EXPORT int PMPI_T_enum_get_info(MPI_T_enum enumtype, int *num, char *name, int *name_len)
{
    struct oriel_option_description option;
    char word[ORIEL_TOOL_WORD_BYTES];
    int words = 0;
    int code = enum_find(enumtype, &option);
    if (code != MPI_SUCCESS)
        return code;
    if (option.name == NULL)
        return oriel_tool_host.enum_get_info(enumtype, num, name, name_len);
    while (oriel_tool_word(option.words, words, word))
        words++;
    oriel_tool_int_return(words, num);
    oriel_tool_text_return(option.name, name, name_len);
    return MPI_SUCCESS;
}
ORIEL_TOOL_NAME(enum_get_info)

ORIEL_EXPORT int PMPI_T_enum_get_item(MPI_T_enum enumtype, int item, int *value, char *name,
                                      int *name_len)
{
    struct oriel_option_description option;
    char word[ORIEL_TOOL_WORD_BYTES];
    int code = enum_find(enumtype, &option);
    if (code != MPI_SUCCESS)
        return code;
    if (option.name == NULL)
        return oriel_tool_host.enum_get_item(enumtype, item, value, name, name_len);
    if (item < 0 || !oriel_tool_word(option.words, item, word))
        return MPI_T_ERR_INVALID_INDEX;
    oriel_tool_int_return(item, value);
    oriel_tool_text_return(word, name, name_len);
    return MPI_SUCCESS;
}
ORIEL_TOOL_NAME(enum_get_item)
