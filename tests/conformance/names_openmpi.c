/* The names that only Open MPI has among Oriel's: its Fortran attribute functions and name getter,
 * and the handle conversions. Each does nothing when it is the broken one. Programs and the host's
 * Fortran libraries call them. */
#include "breaker.h"

typedef void getter(const MPI_Fint *win, const MPI_Fint *keyval, MPI_Aint *value, MPI_Fint *flag,
                    MPI_Fint *code);
typedef MPI_Fint to_fortran(MPI_Win win);
typedef MPI_Win from_fortran(MPI_Fint win);

void ompi_win_get_attr_f(const MPI_Fint *win, const MPI_Fint *keyval, MPI_Aint *value,
                         MPI_Fint *flag, MPI_Fint *code);

void ompi_win_get_attr_f(const MPI_Fint *win, const MPI_Fint *keyval, MPI_Aint *value,
                         MPI_Fint *flag, MPI_Fint *code)
{
    if (!breaker_breaks("ompi_win_get_attr_f"))
        ((getter *)breaker_next("ompi_win_get_attr_f"))(win, keyval, value, flag, code);
}

#define GETTER(name) __typeof__(getter) name __attribute__((alias("ompi_win_get_attr_f")));
GETTER(mpi_win_get_attr_)
GETTER(pmpi_win_get_attr_)
GETTER(MPI_Win_get_attr_f08)
GETTER(PMPI_Win_get_attr_f08)

typedef void setter(const MPI_Fint *win, const MPI_Fint *keyval, const MPI_Aint *value,
                    MPI_Fint *code);

void ompi_win_set_attr_f(const MPI_Fint *win, const MPI_Fint *keyval, const MPI_Aint *value,
                         MPI_Fint *code);

void ompi_win_set_attr_f(const MPI_Fint *win, const MPI_Fint *keyval, const MPI_Aint *value,
                         MPI_Fint *code)
{
    if (!breaker_breaks("ompi_win_set_attr_f"))
        ((setter *)breaker_next("ompi_win_set_attr_f"))(win, keyval, value, code);
}

#define SETTER(name) __typeof__(setter) name __attribute__((alias("ompi_win_set_attr_f")));
SETTER(mpi_win_set_attr_)
SETTER(pmpi_win_set_attr_)
SETTER(MPI_Win_set_attr_f08)
SETTER(PMPI_Win_set_attr_f08)

typedef void namer(const MPI_Fint *win, char *name, MPI_Fint *length, MPI_Fint *code,
                   size_t name_bytes);

void mpi_win_get_name_f08_(const MPI_Fint *win, char *name, MPI_Fint *length, MPI_Fint *code,
                           size_t name_bytes);

void mpi_win_get_name_f08_(const MPI_Fint *win, char *name, MPI_Fint *length, MPI_Fint *code,
                           size_t name_bytes)
{
    if (!breaker_breaks("mpi_win_get_name_f08_"))
        ((namer *)breaker_next("mpi_win_get_name_f08_"))(win, name, length, code, name_bytes);
}

MPI_Fint PMPI_Win_c2f(MPI_Win win)
{
    return breaker_breaks("Win_c2f") ? 0 : ((to_fortran *)breaker_next("PMPI_Win_c2f"))(win);
}

MPI_Win PMPI_Win_f2c(MPI_Fint win)
{
    return breaker_breaks("Win_f2c") ? MPI_WIN_NULL
                                     : ((from_fortran *)breaker_next("PMPI_Win_f2c"))(win);
}

MPI_Fint MPI_Win_c2f(MPI_Win win) __attribute__((alias("PMPI_Win_c2f")));
MPI_Win MPI_Win_f2c(MPI_Fint win) __attribute__((alias("PMPI_Win_f2c")));
