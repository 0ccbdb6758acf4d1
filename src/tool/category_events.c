/* Events in categories, of hosts that have events (MPI-4.0). All events are the host's, and keep
 * its indices; its categories have Oriel's. */
#include <mpi.h>

#if MPI_VERSION >= 4
#include "tool/performance_variables.h"
#include "tool/tool.h"

typedef __typeof__(PMPI_T_category_get_num_events) events_counter;
typedef __typeof__(PMPI_T_category_get_events) events_lister;

ORIEL_EXPORT int PMPI_T_category_get_num_events(int cat_index, int *num_events)
{
    int code =
        oriel_tool_index_check(cat_index, ORIEL_TOOL_CATEGORIES, oriel_tool_host.category_get_num);
    if (code != MPI_SUCCESS)
        return code;
    if (cat_index >= ORIEL_TOOL_CATEGORIES)
        return ((events_counter *)oriel_host_symbol("PMPI_T_category_get_num_events"))(
            cat_index - ORIEL_TOOL_CATEGORIES, num_events);
    oriel_tool_int_return(0, num_events);
    return MPI_SUCCESS;
}
ORIEL_TOOL_NAME(category_get_num_events)

ORIEL_EXPORT int PMPI_T_category_get_events(int cat_index, int len, int indices[])
{
    int code =
        oriel_tool_index_check(cat_index, ORIEL_TOOL_CATEGORIES, oriel_tool_host.category_get_num);
    if (code != MPI_SUCCESS)
        return code;
    return cat_index >= ORIEL_TOOL_CATEGORIES
               ? ((events_lister *)oriel_host_symbol("PMPI_T_category_get_events"))(
                     cat_index - ORIEL_TOOL_CATEGORIES, len, indices)
               : MPI_SUCCESS;
}
ORIEL_TOOL_NAME(category_get_events)
#endif
