/* Predefined datatypes come from types.def, derived ones are taken apart by the host's envelope and contents.  A derived
 * datatype carries an attribute of ours for one purpose: its delete callback tells when the handle is no longer this
 * datatype.  ops/ and api/ call, from any thread. */
#include "ops/datatype.h"

#include "base/table.h"
#include "host/host.h"

#include <stdlib.h>

static struct oriel_table table = ORIEL_TABLE_INIT;
static int keyval = MPI_KEYVAL_INVALID;

enum type_class {
    SIGNED,
    UNSIGNED,
    FLOATING,
    LONG_FLOATING,
    COMPLEX,
    LONG_COMPLEX,
    LOGICAL,
    BITS,
    NOTHING,
    PAIR_FLOAT_INT,
    PAIR_DOUBLE_INT,
    PAIR_LONG_INT,
    PAIR_SHORT_INT,
    PAIR_LONG_DOUBLE_INT,
    PAIR_INT_INT,
    PAIR_FLOAT_FLOAT,
    PAIR_DOUBLE_DOUBLE,
};

static enum oriel_kind opaque_of(int size_bytes)
{
    switch (size_bytes) {
    case 1:
        return ORIEL_KIND_CHAR;
    case 2:
        return ORIEL_KIND_OPAQUE16;
    case 4:
        return ORIEL_KIND_OPAQUE32;
    case 8:
        return ORIEL_KIND_OPAQUE64;
    case 16:
        return ORIEL_KIND_OPAQUE128;
    case 32:
        return ORIEL_KIND_OPAQUE256;
    default:
        return ORIEL_KIND_NONE;
    }
}

/* Kinds for 1, 2, 4 and 8 bytes; anything else is moved only. */
static enum oriel_kind by_width(int size_bytes, const enum oriel_kind widths[4])
{
    for (int i = 0; i < 4; i++)
        if (size_bytes == 1 << i)
            return widths[i] == ORIEL_KIND_NONE ? opaque_of(size_bytes) : widths[i];
    return opaque_of(size_bytes);
}

static enum oriel_kind kind_of(enum type_class type_class, int size_bytes)
{
    static const enum oriel_kind integers[4] = {ORIEL_KIND_INT8, ORIEL_KIND_INT16, ORIEL_KIND_INT32, ORIEL_KIND_INT64};
    static const enum oriel_kind naturals[4] = {ORIEL_KIND_UINT8, ORIEL_KIND_UINT16, ORIEL_KIND_UINT32,
                                                ORIEL_KIND_UINT64};
    static const enum oriel_kind reals[4] = {ORIEL_KIND_NONE, ORIEL_KIND_NONE, ORIEL_KIND_FLOAT, ORIEL_KIND_DOUBLE};
    static const enum oriel_kind logicals[4] = {ORIEL_KIND_LOGICAL8, ORIEL_KIND_LOGICAL16, ORIEL_KIND_LOGICAL32,
                                                ORIEL_KIND_LOGICAL64};
    switch (type_class) {
    case SIGNED:
        return by_width(size_bytes, integers);
    case UNSIGNED:
        return by_width(size_bytes, naturals);
    case FLOATING:
        return by_width(size_bytes, reals);
    case LONG_FLOATING:
        return ORIEL_KIND_LONG_DOUBLE;
    case COMPLEX:
        return size_bytes == 8    ? ORIEL_KIND_FLOAT_COMPLEX
               : size_bytes == 16 ? ORIEL_KIND_DOUBLE_COMPLEX
                                  : opaque_of(size_bytes);
    case LONG_COMPLEX:
        return ORIEL_KIND_LONG_DOUBLE_COMPLEX;
    case LOGICAL:
        return by_width(size_bytes, logicals);
    case BITS:
        return ORIEL_KIND_BYTE;
    case NOTHING:
        return opaque_of(size_bytes);
    case PAIR_FLOAT_INT:
        return ORIEL_KIND_FLOAT_INT;
    case PAIR_DOUBLE_INT:
        return ORIEL_KIND_DOUBLE_INT;
    case PAIR_LONG_INT:
        return ORIEL_KIND_LONG_INT;
    case PAIR_SHORT_INT:
        return ORIEL_KIND_SHORT_INT;
    case PAIR_LONG_DOUBLE_INT:
        return ORIEL_KIND_LONG_DOUBLE_INT;
    case PAIR_INT_INT:
        return ORIEL_KIND_INT_INT;
    case PAIR_FLOAT_FLOAT:
        return ORIEL_KIND_FLOAT_FLOAT;
    case PAIR_DOUBLE_DOUBLE:
        return ORIEL_KIND_DOUBLE_DOUBLE;
    }
    return ORIEL_KIND_NONE;
}

static void add_predefined(MPI_Datatype datatype, enum type_class type_class)
{
    int size_bytes = 0;
    if (datatype == MPI_DATATYPE_NULL || oriel_host()->Type_size(datatype, &size_bytes) != MPI_SUCCESS)
        return;
    enum oriel_kind kind = kind_of(type_class, size_bytes);
    struct oriel_type *type = kind == ORIEL_KIND_NONE ? NULL : malloc(sizeof *type);
    if (type == NULL)
        return; /* its first use will say that the datatype is not known */
    uint64_t extent_bytes = oriel_kinds[kind].extent_bytes;
    bool padded = oriel_kinds[kind].padded;
    *type = (struct oriel_type){kind, padded, 1, extent_bytes, padded ? INT64_MAX : (int64_t)extent_bytes};
    oriel_table_set(&table, oriel_type_key(datatype), type);
}

/* The program freed a derived datatype: its handle may come back as another. */
static int forget(MPI_Datatype datatype, int key, void *value, void *extra)
{
    (void)key;
    (void)extra;
    if (oriel_table_remove(&table, oriel_type_key(datatype), value)) {
        oriel_recent_invalidate();
        free(value);
    }
    return MPI_SUCCESS;
}

void oriel_type_start(void)
{
#define TYPE(handle, type_class) add_predefined(handle, type_class);
#include "ops/types.def"
    oriel_host()->Type_create_keyval(MPI_TYPE_NULL_COPY_FN, forget, &keyval, NULL);
}

static void free_type(void *type, void *context)
{
    (void)context;
    free(type);
}

/* Derived datatypes that the program has not freed lose their descriptions too; when their callback comes after all, the
 * table does not know them any more. */
void oriel_type_stop(void)
{
    oriel_table_visit(&table, free_type, NULL);
    oriel_table_close(&table);
    oriel_recent_invalidate();
    oriel_host()->Type_free_keyval(&keyval);
}

static enum oriel_status describe(MPI_Datatype datatype, struct oriel_type *out);

static enum oriel_status unsupported(void)
{
    return oriel_fail(ORIEL_E_UNSUPPORTED, "only predefined and contiguous datatypes are supported");
}

/* The contents of MPI_Type_dup and MPI_Type_contiguous: one old datatype and at most one integer. */
static enum oriel_status describe_contents(MPI_Datatype datatype, int combiner, struct oriel_type *out)
{
    int count = 1;
    MPI_Aint no_address;
    MPI_Datatype old;
    int integers = combiner == MPI_COMBINER_CONTIGUOUS ? 1 : 0;
    if (oriel_host()->Type_get_contents(datatype, integers, 0, 1, &count, &no_address, &old) != MPI_SUCCESS)
        return oriel_fail(ORIEL_E_TYPE, "the host cannot tell the datatype's contents");
    int ni, na, nd, old_combiner;
    enum oriel_status status = describe(old, out);
    if (oriel_host()->Type_get_envelope(old, &ni, &na, &nd, &old_combiner) == MPI_SUCCESS &&
        old_combiner != MPI_COMBINER_NAMED)
        oriel_host()->Type_free(&old); /* a new handle, unless predefined (MPI-4.1, 5.1.13) */
    out->elements *= (uint64_t)count;
    out->extent_bytes *= (uint64_t)count;
    out->plain_bytes = out->padded ? INT64_MAX : (int64_t)out->extent_bytes;
    return status;
}

static enum oriel_status describe(MPI_Datatype datatype, struct oriel_type *out)
{
    int ni, na, nd, combiner;
    if (oriel_host()->Type_get_envelope(datatype, &ni, &na, &nd, &combiner) != MPI_SUCCESS)
        return oriel_fail(ORIEL_E_TYPE, "the datatype is not valid");
    if (combiner == MPI_COMBINER_NAMED) {
        const struct oriel_type *known = oriel_table_find(&table, oriel_type_key(datatype));
        if (known == NULL)
            return unsupported();
        *out = *known;
        return ORIEL_OK;
    }
    if (combiner != MPI_COMBINER_DUP && combiner != MPI_COMBINER_CONTIGUOUS)
        return unsupported();
    return describe_contents(datatype, combiner, out);
}

static enum oriel_status add_derived(MPI_Datatype datatype, const struct oriel_type **out)
{
    struct oriel_type *type = malloc(sizeof *type);
    if (type == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory to describe a datatype");
    enum oriel_status status = oriel_host_type_is_committed(datatype)
                                   ? describe(datatype, type)
                                   : oriel_fail(ORIEL_E_TYPE, "the datatype is not valid or not committed");
    if (status == ORIEL_OK && oriel_host()->Type_set_attr(datatype, keyval, type) != MPI_SUCCESS)
        status = oriel_fail(ORIEL_E_TYPE, "the host refuses an attribute on the datatype");
    if (status == ORIEL_OK && !oriel_table_set(&table, oriel_type_key(datatype), type))
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory for the table of datatypes");
    if (status != ORIEL_OK) {
        free(type);
        return status;
    }
    *out = type;
    return ORIEL_OK;
}

enum oriel_status oriel_type_find_slow(MPI_Datatype datatype, const struct oriel_type **out)
{
    static pthread_mutex_t describing = PTHREAD_MUTEX_INITIALIZER; /* once per datatype */
    if (datatype == MPI_DATATYPE_NULL)
        return oriel_fail(ORIEL_E_TYPE, "the datatype is MPI_DATATYPE_NULL");
    uint64_t key = oriel_type_key(datatype);
    uint64_t generation = oriel_recent_begin();
    enum oriel_status status = ORIEL_OK;
    *out = oriel_table_find(&table, key);
    if (*out == NULL) {
        pthread_mutex_lock(&describing);
        *out = oriel_table_find(&table, key);
        if (*out == NULL)
            status = add_derived(datatype, out);
        pthread_mutex_unlock(&describing);
    }
    if (status == ORIEL_OK)
        oriel_recent_keep_type(generation, key, *out);
    return status;
}

enum oriel_operator oriel_operator_find(MPI_Op op)
{
    static const struct {
        MPI_Op op;
        enum oriel_operator operator;
    } operators[] = {
        {MPI_SUM, ORIEL_OPERATOR_SUM},       {MPI_REPLACE, ORIEL_OPERATOR_REPLACE}, {MPI_NO_OP, ORIEL_OPERATOR_NO_OP},
        {MPI_MAX, ORIEL_OPERATOR_MAX},       {MPI_MIN, ORIEL_OPERATOR_MIN},         {MPI_PROD, ORIEL_OPERATOR_PROD},
        {MPI_LAND, ORIEL_OPERATOR_LAND},     {MPI_BAND, ORIEL_OPERATOR_BAND},       {MPI_LOR, ORIEL_OPERATOR_LOR},
        {MPI_BOR, ORIEL_OPERATOR_BOR},       {MPI_LXOR, ORIEL_OPERATOR_LXOR},       {MPI_BXOR, ORIEL_OPERATOR_BXOR},
        {MPI_MINLOC, ORIEL_OPERATOR_MINLOC}, {MPI_MAXLOC, ORIEL_OPERATOR_MAXLOC},
    };
    for (unsigned i = 0; i < sizeof operators / sizeof operators[0]; i++)
        if (operators[i].op == op)
            return operators[i].operator;
    return ORIEL_OPERATOR_NONE;
}
