/* Converts the host's datatype to a layout, once per datatype. */
#ifndef ORIEL_DATATYPE_FLATTEN_H
#define ORIEL_DATATYPE_FLATTEN_H

#include "base/status.h"
#include "datatype/layout.h"

#include <mpi.h>

/* The layout of one item of datatype, relative to its displacement 0. Returns ORIEL_E_TYPE if a
 * part of the datatype is unknown, if it is nested too deep, or if its extent exceeds the address
 * space. Returns ORIEL_E_NO_MEM if memory is exhausted. */
enum oriel_status oriel_flatten(MPI_Datatype datatype, struct oriel_node **out);

/* The kind of a predefined datatype; ORIEL_KIND_NONE for others (datatype.c). */
enum oriel_kind oriel_type_predefined(MPI_Datatype datatype);

/* The kind of an F90 parameterised type by its class, size and precision in digits (datatype.c). */
enum oriel_kind oriel_type_parameterised(int combiner, int size_bytes, int64_t precision);

#endif
