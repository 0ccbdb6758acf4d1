/* Pairs for MINLOC and MAXLOC with an index of 64 bits: MPI has no predefined type for them. A
 * struct datatype of exactly one value of a type that MINLOC allows and one integer of 64 bits, as
 * in a struct of C, is one. It may be resized and duplicated. */
#ifndef ORIEL_DATATYPE_STRUCT_PAIR_H
#define ORIEL_DATATYPE_STRUCT_PAIR_H

#include "datatype/datatype.h"

/* The pair's kind; ORIEL_KIND_NONE for other datatypes. */
enum oriel_kind oriel_struct_pair_find(MPI_Datatype datatype);

#endif
