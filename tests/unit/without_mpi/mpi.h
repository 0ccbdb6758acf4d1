/* Replaces a host's header in unit tests of files that only pass its handles on. */
#ifndef ORIEL_TESTS_UNIT_WITHOUT_MPI_H
#define ORIEL_TESTS_UNIT_WITHOUT_MPI_H

typedef void *MPI_Datatype;
typedef void *MPI_Op;
typedef void *MPI_Win;
typedef long long MPI_Count;

#endif
