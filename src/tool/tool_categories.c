/* Categories: "oriel" contains one for the options, one for each kind of counters and one for
 * memory. They never change after the program starts, so the host alone answers
 * MPI_T_category_changed. */
#include "tool/performance_variables.h"
#include "tool/tool.h"

#include <string.h>

static const struct {
    const char *name;
    const char *description;
} categories[] = {
    [ORIEL_CATEGORY_ALL] = {"oriel", "Oriel: the windows of MPI"},
    [ORIEL_CATEGORY_OPTIONS] = {"oriel_options", "the options of Oriel"},
    [ORIEL_CATEGORY_OPERATIONS] = {"oriel_operations", "operations on windows, by kind"},
    [ORIEL_CATEGORY_PATHS] = {"oriel_paths", "operations on windows, by path"},
    [ORIEL_CATEGORY_CALLS] = {"oriel_calls", "synchronisation of windows, by call"},
    [ORIEL_CATEGORY_CAUSES] = {"oriel_causes", "waiting for other ranks, by cause"},
    [ORIEL_CATEGORY_MEMORY] = {"oriel_memory", "memory of this process"},
};
_Static_assert(sizeof categories / sizeof categories[0] == ORIEL_TOOL_CATEGORIES, "one row each");

/* What a category contains. */
enum member_sort { MEMBER_CVARS, MEMBER_PVARS, MEMBER_CATEGORIES, MEMBER_SORTS };

/* The number of Oriel's variables or categories: the first of the host has this index. */
static int own_count(enum member_sort sort)
{
    switch (sort) {
    case MEMBER_CVARS: return ORIEL_CONTROL_VARIABLES;
    case MEMBER_PVARS: return oriel_performance_variables_count;
    default: return ORIEL_TOOL_CATEGORIES;
    }
}

static bool is_member(enum member_sort sort, int index, int category)
{
    switch (sort) {
    case MEMBER_CVARS: return category == ORIEL_CATEGORY_OPTIONS;
    case MEMBER_PVARS: return (int)oriel_performance_variable(index)->category == category;
    default: return category == ORIEL_CATEGORY_ALL && index != ORIEL_CATEGORY_ALL;
    }
}

/* Lists the members of one of Oriel's categories in indices, which has room for len. Returns the
 * number of all. */
static int members_list(enum member_sort sort, int category, int len, int indices[])
{
    int count = 0;
    for (int i = 0; i < own_count(sort); i++)
        if (is_member(sort, i, category)) {
            if (count < len)
                indices[count] = i;
            count++;
        }
    return count;
}

ORIEL_EXPORT int PMPI_T_category_get_num(int *num_cat)
{
    if (!oriel_tool_is_initialised())
        return MPI_T_ERR_NOT_INITIALIZED;
    if (num_cat == NULL)
        return MPI_T_ERR_INVALID;
    return oriel_tool_number_return(oriel_tool_host.category_get_num(num_cat),
                                    ORIEL_TOOL_CATEGORIES, num_cat);
}
ORIEL_TOOL_NAME(category_get_num)

ORIEL_EXPORT int PMPI_T_category_get_info(int cat_index, char *name, int *name_len, char *desc,
                                          int *desc_len, int *num_cvars, int *num_pvars,
                                          int *num_categories)
{
    int code =
        oriel_tool_index_check(cat_index, ORIEL_TOOL_CATEGORIES, oriel_tool_host.category_get_num);
    if (code != MPI_SUCCESS)
        return code;
    if (cat_index >= ORIEL_TOOL_CATEGORIES)
        return oriel_tool_host.category_get_info(cat_index - ORIEL_TOOL_CATEGORIES, name, name_len,
                                                 desc, desc_len, num_cvars, num_pvars,
                                                 num_categories);
    oriel_tool_text_return(categories[cat_index].name, name, name_len);
    oriel_tool_text_return(categories[cat_index].description, desc, desc_len);
    oriel_tool_int_return(members_list(MEMBER_CVARS, cat_index, 0, NULL), num_cvars);
    oriel_tool_int_return(members_list(MEMBER_PVARS, cat_index, 0, NULL), num_pvars);
    oriel_tool_int_return(members_list(MEMBER_CATEGORIES, cat_index, 0, NULL), num_categories);
    return MPI_SUCCESS;
}
ORIEL_TOOL_NAME(category_get_info)

ORIEL_EXPORT int PMPI_T_category_get_index(const char *name, int *cat_index)
{
    if (!oriel_tool_is_initialised())
        return MPI_T_ERR_NOT_INITIALIZED;
    if (name == NULL || cat_index == NULL)
        return MPI_T_ERR_INVALID;
    for (int i = 0; i < ORIEL_TOOL_CATEGORIES; i++)
        if (strcmp(categories[i].name, name) == 0) {
            *cat_index = i;
            return MPI_SUCCESS;
        }
    return oriel_tool_number_return(oriel_tool_host.category_get_index(name, cat_index),
                                    ORIEL_TOOL_CATEGORIES, cat_index);
}
ORIEL_TOOL_NAME(category_get_index)

typedef int lister(int cat_index, int len, int indices[]);

/* The host's list with Oriel's indices. The host does not report how many it has written: no more
 * than it had members before. */
static int host_members_list(enum member_sort sort, lister *list, int cat_index, int len,
                             int indices[])
{
    int counts[MEMBER_SORTS];
    int code =
        oriel_tool_host.category_get_info(cat_index, NULL, NULL, NULL, NULL, &counts[MEMBER_CVARS],
                                          &counts[MEMBER_PVARS], &counts[MEMBER_CATEGORIES]);
    if (code != MPI_SUCCESS)
        return code;
    len = len < counts[sort] ? len : counts[sort];
    code = list(cat_index, len, indices);
    for (int i = 0; code == MPI_SUCCESS && i < len; i++)
        indices[i] += own_count(sort);
    return code;
}

static int members_return(enum member_sort sort, lister *list, int cat_index, int len,
                          int indices[])
{
    int code =
        oriel_tool_index_check(cat_index, ORIEL_TOOL_CATEGORIES, oriel_tool_host.category_get_num);
    if (code != MPI_SUCCESS)
        return code;
    if (len < 0 || (indices == NULL && len > 0))
        return MPI_T_ERR_INVALID;
    if (cat_index >= ORIEL_TOOL_CATEGORIES)
        return host_members_list(sort, list, cat_index - ORIEL_TOOL_CATEGORIES, len, indices);
    members_list(sort, cat_index, len, indices);
    return MPI_SUCCESS;
}

ORIEL_EXPORT int PMPI_T_category_get_cvars(int cat_index, int len, int indices[])
{
    return members_return(MEMBER_CVARS, oriel_tool_host.category_get_cvars, cat_index, len,
                          indices);
}
ORIEL_TOOL_NAME(category_get_cvars)

ORIEL_EXPORT int PMPI_T_category_get_pvars(int cat_index, int len, int indices[])
{
    return members_return(MEMBER_PVARS, oriel_tool_host.category_get_pvars, cat_index, len,
                          indices);
}
ORIEL_TOOL_NAME(category_get_pvars)

ORIEL_EXPORT int PMPI_T_category_get_categories(int cat_index, int len, int indices[])
{
    return members_return(MEMBER_CATEGORIES, oriel_tool_host.category_get_categories, cat_index,
                          len, indices);
}
ORIEL_TOOL_NAME(category_get_categories)
