/* The datatypes of 16-bit reals (include/oriel/ext.h). */
#include "api/api.h"
#include "create/create.h"
#include "datatype/datatype.h"

static int type_half(const char *call, int parts, MPI_Datatype *type)
{
    enum oriel_status status = ORIEL_OK;
    if (type == NULL)
        status = oriel_fail(ORIEL_E_ARG, "the type argument is NULL");
    else if (oriel_window_start() != ORIEL_OK)
        status = oriel_fail(ORIEL_E_UNSUPPORTED, "Oriel cannot start: %s", oriel_fail_message());
    else
        status = oriel_type_half(parts, type);
    return status == ORIEL_OK ? MPI_SUCCESS : oriel_error_raise_nowhere(call, status);
}

int oriel_entry_Type_float16(MPI_Datatype *type)
{
    return type_half("MPIX_Type_float16", 1, type);
}

int oriel_entry_Type_float16_complex(MPI_Datatype *type)
{
    return type_half("MPIX_Type_float16_complex", 2, type);
}
