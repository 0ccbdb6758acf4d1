/* Entry points that only Open MPI has: its Fortran attribute getters and setters, which use its own
 * objects, MPI_Win_get_name of `use mpi_f08`, and the handle conversions, which are macros in other
 * hosts. Handles that are not Oriel's go to the host's own functions. */
#include "api/api.h"
#include "api/query.h"
#include "api/win_attributes.h"
#include "window/handle.h"

#include <stddef.h>

typedef void getter(const MPI_Fint *win, const MPI_Fint *keyval, MPI_Aint *value, MPI_Fint *flag,
                    MPI_Fint *code);

ORIEL_EXPORT void ompi_win_get_attr_f(const MPI_Fint *win, const MPI_Fint *keyval, MPI_Aint *value,
                                      MPI_Fint *flag, MPI_Fint *code);

ORIEL_EXPORT void ompi_win_get_attr_f(const MPI_Fint *win, const MPI_Fint *keyval, MPI_Aint *value,
                                      MPI_Fint *flag, MPI_Fint *code)
{
    MPI_Win handle = PMPI_Win_f2c(*win);
    struct oriel_window *window = oriel_handle_find(handle);
    if (window != NULL && oriel_query_attribute_integer(window, *keyval, value)) {
        *flag = 1;
        *code = MPI_SUCCESS;
    } else if (window == NULL && !oriel_handle_is_forwarded(handle)) {
        *code = oriel_error_not_a_window("MPI_Win_get_attr");
    } else {
        ((getter *)oriel_host_symbol("ompi_win_get_attr_f"))(win, keyval, value, flag, code);
    }
}

/* The compilers' symbol names of MPI_WIN_GET_ATTR, and those of `use mpi_f08`. */
#define GETTER(name)                                                                               \
    ORIEL_EXPORT __typeof__(getter) name __attribute__((alias("ompi_win_get_attr_f")));
GETTER(MPI_WIN_GET_ATTR)
GETTER(PMPI_WIN_GET_ATTR)
GETTER(mpi_win_get_attr)
GETTER(pmpi_win_get_attr)
GETTER(mpi_win_get_attr_)
GETTER(pmpi_win_get_attr_)
GETTER(mpi_win_get_attr__)
GETTER(pmpi_win_get_attr__)
GETTER(MPI_Win_get_attr_f)
GETTER(PMPI_Win_get_attr_f)
GETTER(MPI_Win_get_attr_f08)
GETTER(PMPI_Win_get_attr_f08)

typedef void setter(const MPI_Fint *win, const MPI_Fint *keyval, const MPI_Aint *value,
                    MPI_Fint *code);

ORIEL_EXPORT void ompi_win_set_attr_f(const MPI_Fint *win, const MPI_Fint *keyval,
                                      const MPI_Aint *value, MPI_Fint *code);

ORIEL_EXPORT void ompi_win_set_attr_f(const MPI_Fint *win, const MPI_Fint *keyval,
                                      const MPI_Aint *value, MPI_Fint *code)
{
    int refused = oriel_win_attributes_mark(PMPI_Win_f2c(*win), ORIEL_CARRIER_ATTRIBUTED)
                      ? MPI_SUCCESS
                      : oriel_error_not_a_window("MPI_Win_set_attr");
    if (refused == MPI_SUCCESS)
        ((setter *)oriel_host_symbol("ompi_win_set_attr_f"))(win, keyval, value, code);
    else if (code != NULL)
        *code = refused;
}

#define SETTER(name)                                                                               \
    ORIEL_EXPORT __typeof__(setter) name __attribute__((alias("ompi_win_set_attr_f")));
SETTER(MPI_WIN_SET_ATTR)
SETTER(PMPI_WIN_SET_ATTR)
SETTER(mpi_win_set_attr)
SETTER(pmpi_win_set_attr)
SETTER(mpi_win_set_attr_)
SETTER(pmpi_win_set_attr_)
SETTER(mpi_win_set_attr__)
SETTER(pmpi_win_set_attr__)
SETTER(MPI_Win_set_attr_f)
SETTER(PMPI_Win_set_attr_f)
SETTER(MPI_Win_set_attr_f08)
SETTER(PMPI_Win_set_attr_f08)

typedef void namer(const MPI_Fint *win, char *name, MPI_Fint *length, MPI_Fint *code,
                   int name_bytes);

ORIEL_EXPORT void mpi_win_get_name_f08_(const MPI_Fint *win, char *name, MPI_Fint *length,
                                        MPI_Fint *code, size_t name_bytes);

/* Open MPI 4.1's own treats every name as one character long. */
ORIEL_EXPORT void mpi_win_get_name_f08_(const MPI_Fint *win, char *name, MPI_Fint *length,
                                        MPI_Fint *code, size_t name_bytes)
{
    MPI_Fint unwanted;
    ((namer *)oriel_host_symbol("ompi_win_get_name_f"))(
        win, name, length, code != NULL ? code : &unwanted, (int)name_bytes);
}

typedef MPI_Fint to_fortran(MPI_Win win);
typedef MPI_Win from_fortran(MPI_Fint win);

ORIEL_EXPORT MPI_Fint PMPI_Win_c2f(MPI_Win win)
{
    return ((to_fortran *)oriel_host_symbol("PMPI_Win_c2f"))(win);
}

ORIEL_EXPORT MPI_Win PMPI_Win_f2c(MPI_Fint win)
{
    return ((from_fortran *)oriel_host_symbol("PMPI_Win_f2c"))(win);
}

ORIEL_EXPORT MPI_Fint MPI_Win_c2f(MPI_Win win) __attribute__((weak, alias("PMPI_Win_c2f")));
ORIEL_EXPORT MPI_Win MPI_Win_f2c(MPI_Fint win) __attribute__((weak, alias("PMPI_Win_f2c")));
