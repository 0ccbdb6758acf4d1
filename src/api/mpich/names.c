/* Entry points that only MPICH has: its Fortran wrappers get and set attributes through
 * MPII_Win_get_attr and similar functions. Handles that are not Oriel's go to the host's own
 * functions. */
#include "api/api.h"
#include "api/query.h"
#include "api/win_attributes.h"
#include "window/handle.h"

/* The form that the Fortran wrapper requests: 0 a C pointer, 1 an address-sized integer, 3 a
 * default integer. */
enum { AS_POINTER = 0, AS_ADDRESS = 1, AS_INTEGER = 3 };

/* A predefined attribute has the C key or, from Fortran, the key above it. */
static int c_keyval(int keyval)
{
    static const int keyvals[] = {MPI_WIN_BASE, MPI_WIN_SIZE, MPI_WIN_DISP_UNIT,
                                  MPI_WIN_CREATE_FLAVOR, MPI_WIN_MODEL};
    for (unsigned i = 0; i < sizeof keyvals / sizeof keyvals[0]; i++)
        if (keyval == keyvals[i] + 1)
            return keyvals[i];
    return keyval;
}

typedef int getter(MPI_Win win, int keyval, void *value, int *flag, int kind);

ORIEL_EXPORT int MPII_Win_get_attr(MPI_Win win, int keyval, void *value, int *flag, int kind);

ORIEL_EXPORT int MPII_Win_get_attr(MPI_Win win, int keyval, void *value, int *flag, int kind)
{
    MPI_Aint integer;
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL && !oriel_handle_is_forwarded(win))
        return oriel_error_not_a_window("MPI_Win_get_attr");
    if (window == NULL || !oriel_query_attribute_integer(window, c_keyval(keyval), &integer))
        return ((getter *)oriel_host_symbol("MPII_Win_get_attr"))(win, keyval, value, flag, kind);
    *flag = 1;
    if (kind == AS_POINTER)
        oriel_query_attribute(window, c_keyval(keyval), value);
    else if (kind == AS_ADDRESS)
        *(MPI_Aint *)value = integer;
    else
        *(int *)value = (int)integer;
    return MPI_SUCCESS;
}

typedef int setter(MPI_Win win, int keyval, void *value, int kind);

ORIEL_EXPORT int MPII_Win_set_attr(MPI_Win win, int keyval, void *value, int kind);

ORIEL_EXPORT int MPII_Win_set_attr(MPI_Win win, int keyval, void *value, int kind)
{
    return oriel_win_attributes_mark(win, ORIEL_CARRIER_ATTRIBUTED)
               ? ((setter *)oriel_host_symbol("MPII_Win_set_attr"))(win, keyval, value, kind)
               : oriel_error_not_a_window("MPI_Win_set_attr");
}
