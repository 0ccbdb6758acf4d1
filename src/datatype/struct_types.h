/* Struct datatypes with a meaning of their own, recognised by the arguments of their constructor.
 *
 * Pairs for MINLOC and MAXLOC with an index of 64 bits: MPI has no predefined type for them. A
 * struct datatype of exactly one value of a type that MINLOC allows and one integer of 64 bits, as
 * in a struct of C, is one. It may be resized and duplicated.
 *
 * 16-bit reals on hosts without such a type: a struct datatype of 16-bit integers, and of no bytes
 * at a displacement that marks it. A mark in an attribute would be lost, since hosts return
 * duplicates of derived datatypes as contents. */
#ifndef ORIEL_DATATYPE_STRUCT_TYPES_H
#define ORIEL_DATATYPE_STRUCT_TYPES_H

#include "datatype/datatype.h"
#include "host/contents.h"

/* The pair's kind; ORIEL_KIND_NONE for other datatypes. */
enum oriel_kind oriel_struct_pair_find(MPI_Datatype datatype);

/* Makes and commits the datatype of one 16-bit real, or of a complex number of two parts. */
enum oriel_status oriel_struct_half_create(int parts, MPI_Datatype *out);

/* The kind of such a datatype by its contents, or by its handle; ORIEL_KIND_NONE for others. */
enum oriel_kind oriel_struct_half_of(const struct oriel_contents *contents);
enum oriel_kind oriel_struct_half_find(MPI_Datatype datatype);

#endif
