/* Windows that were opened from a memory handle. Their epochs and accesses are not checked, since
 * no rank of the window that has the memory takes part. The summary names them. */
#include "check/intercept/wrap.h"
#include "check/report/finding.h"

#include "oriel/ext.h"

ORIEL_CHECK_WRAP_X(Win_memory_open, (const MPIX_Memory_handle *handle, MPI_Info info, MPI_Win *win))
{
    int code = NEXT_X(Win_memory_open)(handle, info, win);
    if (code == MPI_SUCCESS)
        oriel_finding_count("windows opened from memory handles: not checked");
    return code;
}
