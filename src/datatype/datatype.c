/* Predefined datatypes come from predefined.def; derived ones are flattened at their first use
 * (flatten.c). A derived datatype carries an attribute of Oriel for one purpose: its delete
 * callback reports that the handle no longer denotes this datatype. Thread-safe. */
#include "datatype/datatype.h"

#include "base/hash_table.h"
#include "datatype/flatten.h"
#include "datatype/struct_types.h"
#include "host/contents.h"
#include "host/host.h"

#include <float.h>
#include <stdlib.h>

static struct oriel_hash_table table = ORIEL_HASH_TABLE_INIT;
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
    LETTERS,
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

static enum oriel_kind opaque_kind_of(int size_bytes)
{
    switch (size_bytes) {
    case 2: return ORIEL_KIND_OPAQUE16;
    case 4: return ORIEL_KIND_OPAQUE32;
    case 8: return ORIEL_KIND_OPAQUE64;
    case 16: return ORIEL_KIND_OPAQUE128;
    case 32: return ORIEL_KIND_OPAQUE256;
    default: return ORIEL_KIND_NONE;
    }
}

/* Kinds for 1, 2, 4, 8 and 16 bytes; any other size is only moved. */
static enum oriel_kind kind_by_width(int size_bytes, const enum oriel_kind widths[5])
{
    for (int i = 0; i < 5; i++)
        if (size_bytes == 1 << i)
            return widths[i] == ORIEL_KIND_NONE ? opaque_kind_of(size_bytes) : widths[i];
    return opaque_kind_of(size_bytes);
}

static enum oriel_kind kind_of_class(enum type_class type_class, int size_bytes)
{
    static const enum oriel_kind integers[5] = {ORIEL_KIND_INT8, ORIEL_KIND_INT16, ORIEL_KIND_INT32,
                                                ORIEL_KIND_INT64, ORIEL_KIND_INT128};
    static const enum oriel_kind naturals[5] = {
        ORIEL_KIND_UINT8, ORIEL_KIND_UINT16, ORIEL_KIND_UINT32, ORIEL_KIND_UINT64, ORIEL_KIND_NONE};
    static const enum oriel_kind reals[5] = {ORIEL_KIND_NONE, ORIEL_KIND_HALF, ORIEL_KIND_FLOAT,
                                             ORIEL_KIND_DOUBLE, ORIEL_KIND_QUAD};
    static const enum oriel_kind logicals[5] = {ORIEL_KIND_LOGICAL8, ORIEL_KIND_LOGICAL16,
                                                ORIEL_KIND_LOGICAL32, ORIEL_KIND_LOGICAL64,
                                                ORIEL_KIND_NONE};
    switch (type_class) {
    case SIGNED: return kind_by_width(size_bytes, integers);
    case UNSIGNED: return kind_by_width(size_bytes, naturals);
    case FLOATING: return kind_by_width(size_bytes, reals);
    case LONG_FLOATING: return ORIEL_KIND_LONG_DOUBLE;
    case COMPLEX:
        return size_bytes == 4    ? ORIEL_KIND_HALF_COMPLEX
               : size_bytes == 8  ? ORIEL_KIND_FLOAT_COMPLEX
               : size_bytes == 16 ? ORIEL_KIND_DOUBLE_COMPLEX
               : size_bytes == 32 ? ORIEL_KIND_QUAD_COMPLEX
                                  : opaque_kind_of(size_bytes);
    case LONG_COMPLEX: return ORIEL_KIND_LONG_DOUBLE_COMPLEX;
    case LOGICAL: return kind_by_width(size_bytes, logicals);
    case BITS: return ORIEL_KIND_BYTE;
    case LETTERS: return ORIEL_KIND_CHAR;
    case NOTHING: return opaque_kind_of(size_bytes);
    case PAIR_FLOAT_INT: return ORIEL_KIND_FLOAT_INT;
    case PAIR_DOUBLE_INT: return ORIEL_KIND_DOUBLE_INT;
    case PAIR_LONG_INT: return ORIEL_KIND_LONG_INT;
    case PAIR_SHORT_INT: return ORIEL_KIND_SHORT_INT;
    case PAIR_LONG_DOUBLE_INT: return ORIEL_KIND_LONG_DOUBLE_INT;
    case PAIR_INT_INT: return ORIEL_KIND_INT_INT;
    case PAIR_FLOAT_FLOAT: return ORIEL_KIND_FLOAT_FLOAT;
    case PAIR_DOUBLE_DOUBLE: return ORIEL_KIND_DOUBLE_DOUBLE;
    }
    return ORIEL_KIND_NONE;
}

/* Takes ownership of layout, and frees it if memory is exhausted. */
static struct oriel_type *type_create(struct oriel_node *layout, int64_t extent_bytes)
{
    struct oriel_type *type = layout == NULL ? NULL : malloc(sizeof *type);
    if (type == NULL) {
        oriel_node_free(layout);
        return NULL;
    }
    bool is_run = layout->form == ORIEL_NODE_RUN;
    uint64_t run_bytes = is_run ? layout->count * oriel_kinds[layout->kind].extent_bytes : 0;
    *type = (struct oriel_type){.kind = layout->kind,
                                .dense = is_run && run_bytes == (uint64_t)extent_bytes,
                                .elements = layout->elements,
                                .size_bytes = layout->size_bytes,
                                .extent_bytes = extent_bytes,
                                .plain_bytes = INT64_MAX,
                                .layout = layout};
    atomic_init(&type->references, 1);
    if (type->dense && !oriel_kinds[layout->kind].padded)
        type->plain_bytes = extent_bytes;
    return type;
}

static struct oriel_type *type_variable(const struct oriel_type *type)
{
    return (struct oriel_type *)(uintptr_t)type;
}

void oriel_type_retain(const struct oriel_type *type)
{
    atomic_fetch_add_explicit(&type_variable(type)->references, 1, memory_order_relaxed);
}

void oriel_type_release(const struct oriel_type *type)
{
    if (atomic_fetch_sub_explicit(&type_variable(type)->references, 1, memory_order_acq_rel) != 1)
        return;
    if (type->as_pair != NULL)
        oriel_type_release(type->as_pair);
    oriel_node_free(type->layout);
    free(type_variable(type));
}

/* Returns false if there is no memory. */
static bool predefined_insert(MPI_Datatype datatype, enum type_class type_class)
{
    int size_bytes = 0;
    if (datatype == MPI_DATATYPE_NULL ||
        oriel_host()->Type_size(datatype, &size_bytes) != MPI_SUCCESS)
        return true;
    enum oriel_kind kind = kind_of_class(type_class, size_bytes);
    if (kind != ORIEL_KIND_NONE &&
        oriel_kinds[kind].value_bytes + oriel_kinds[kind].index_bytes != (uint32_t)size_bytes)
        /* a Fortran compiler was configured with wider reals and integers */
        kind = opaque_kind_of(size_bytes);
    if (kind == ORIEL_KIND_NONE)
        return true;
    struct oriel_type *type = type_create(oriel_node_run(kind, 1), oriel_kinds[kind].extent_bytes);
    if (type == NULL)
        return false;
    type->predefined = true;
    bool added = oriel_hash_table_set(&table, oriel_type_key(datatype), type);
    if (!added)
        oriel_type_release(type);
    return added;
}

enum oriel_kind oriel_type_predefined(MPI_Datatype datatype)
{
    const struct oriel_type *type = oriel_hash_table_find(&table, oriel_type_key(datatype));
    return type != NULL && type->predefined ? type->kind : ORIEL_KIND_NONE;
}

enum oriel_kind oriel_type_parameterised(int combiner, int size_bytes, int64_t precision)
{
    enum type_class type_class = combiner == MPI_COMBINER_F90_INTEGER   ? SIGNED
                                 : combiner == MPI_COMBINER_F90_COMPLEX ? COMPLEX
                                                                        : FLOATING;
    int wide_bytes = combiner == MPI_COMBINER_F90_COMPLEX ? 32 : 16;
    /* the x87 format has the size of IEEE binary128 */
    if (type_class != SIGNED && size_bytes == wide_bytes && precision <= LDBL_DIG)
        type_class = type_class == COMPLEX ? LONG_COMPLEX : LONG_FLOATING;
    return kind_of_class(type_class, size_bytes);
}

/* The program has freed a derived datatype; its handle may be reused for another. */
static int type_delete_callback(MPI_Datatype datatype, int key, void *value, void *extra)
{
    (void)key;
    (void)extra;
    if (oriel_hash_table_remove(&table, oriel_type_key(datatype), value)) {
        oriel_tls_cache_invalidate();
        oriel_type_release(value);
    }
    return MPI_SUCCESS;
}

static void type_free_visit(void *type, void *context)
{
    (void)context;
    oriel_type_release(type);
}

static void types_free(void)
{
    oriel_hash_table_visit(&table, type_free_visit, NULL);
    oriel_hash_table_close(&table);
}

enum oriel_status oriel_type_start(void)
{
    bool all = true;
#define TYPE(handle, type_class) all = all && predefined_insert(handle, type_class);
#include "datatype/predefined.def"
    if (!all) {
        types_free();
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for the table of datatypes");
    }
    oriel_host()->Type_create_keyval(MPI_TYPE_NULL_COPY_FN, type_delete_callback, &keyval, NULL);
    return ORIEL_OK;
}

/* Types of 16-bit reals that the host lacks, by parts; MPI_DATATYPE_NULL: not made. */
static pthread_mutex_t halves_mutex = PTHREAD_MUTEX_INITIALIZER;
static MPI_Datatype halves[2] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};

enum oriel_status oriel_type_half(int parts, MPI_Datatype *out)
{
    static const MPI_Datatype of_host[] = {
#ifdef MPI_REAL2
        MPI_REAL2,
#endif
#ifdef MPIX_C_FLOAT16
        MPIX_C_FLOAT16,
#endif
#ifdef MPI_COMPLEX4
        MPI_COMPLEX4,
#endif
        MPI_DATATYPE_NULL,
    };
    const enum oriel_kind kind = parts == 1 ? ORIEL_KIND_HALF : ORIEL_KIND_HALF_COMPLEX;
    for (unsigned i = 0; i < sizeof of_host / sizeof of_host[0]; i++)
        if (oriel_type_predefined(of_host[i]) == kind) {
            *out = of_host[i];
            return ORIEL_OK;
        }
    pthread_mutex_lock(&halves_mutex);
    enum oriel_status status = halves[parts - 1] != MPI_DATATYPE_NULL
                                   ? ORIEL_OK
                                   : oriel_struct_half_create(parts, &halves[parts - 1]);
    *out = halves[parts - 1];
    pthread_mutex_unlock(&halves_mutex);
    return status;
}

/* Also frees the descriptions of derived datatypes that the program has not freed. If their
 * callback runs later, the table no longer contains them. */
void oriel_type_stop(void)
{
    types_free();
    oriel_tls_cache_invalidate();
    for (int i = 0; i < 2; i++)
        if (halves[i] != MPI_DATATYPE_NULL)
            oriel_host()->Type_free(&halves[i]);
    oriel_host()->Type_free_keyval(&keyval);
}

static enum oriel_status derived_insert(MPI_Datatype datatype, const struct oriel_type **out)
{
    MPI_Aint low;
    MPI_Aint extent;
    int combiner;
    struct oriel_node *layout;
    if (!oriel_host_type_is_committed(datatype) ||
        oriel_host()->Type_get_extent(datatype, &low, &extent) != MPI_SUCCESS)
        return oriel_fail(ORIEL_E_TYPE, "the datatype is not valid or not committed");
    enum oriel_status status = oriel_flatten(datatype, &layout);
    if (status != ORIEL_OK)
        return status;
    struct oriel_type *type = type_create(layout, extent);
    if (type == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory to describe a datatype");
    enum oriel_kind pair = oriel_struct_pair_find(datatype);
    if (pair != ORIEL_KIND_NONE)
        type->as_pair = type_create(oriel_node_run(pair, 1), extent);
    /* MPI-1's MPI_LB and MPI_UB have no element */
    type->predefined = type->kind != ORIEL_KIND_NONE &&
                       ((oriel_contents_combiner(datatype, &combiner) == ORIEL_OK &&
                         oriel_contents_is_leaf(combiner)) ||
                        oriel_struct_half_find(datatype) != ORIEL_KIND_NONE);
    if (oriel_host()->Type_set_attr(datatype, keyval, type) != MPI_SUCCESS)
        status = oriel_fail(ORIEL_E_TYPE, "the host rejects an attribute on the datatype");
    else if (!oriel_hash_table_set(&table, oriel_type_key(datatype), type))
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory for the table of datatypes");
    if (status != ORIEL_OK) {
        oriel_type_release(type);
        return status;
    }
    *out = type;
    return ORIEL_OK;
}

/* Other datatypes that the thread has used recently: an operation has two, and tls_cache holds only
 * one. Plain types are not cached here, so they go to tls_cache. As there, an entry is valid only
 * while its generation equals the process's. */
struct recent_type {
    uint64_t generation;
    uint64_t key;
    const struct oriel_type *type;
};

enum { RECENT_TYPES = 8 };

static struct recent_type *recent_type_slot(uint64_t key)
{
    static _Thread_local struct recent_type recent[RECENT_TYPES];
    return &recent[(key ^ key >> 5 ^ key >> 10) % RECENT_TYPES];
}

static __attribute__((noinline)) enum oriel_status
type_find_or_insert(MPI_Datatype datatype, uint64_t generation, struct recent_type *recent,
                    const struct oriel_type **out)
{
    /* each datatype is described once */
    static pthread_mutex_t insert_mutex = PTHREAD_MUTEX_INITIALIZER;
    if (datatype == MPI_DATATYPE_NULL)
        return oriel_fail(ORIEL_E_TYPE, "the datatype is MPI_DATATYPE_NULL");
    uint64_t key = oriel_type_key(datatype);
    enum oriel_status status = ORIEL_OK;
    *out = oriel_hash_table_find(&table, key);
    if (*out == NULL) {
        pthread_mutex_lock(&insert_mutex);
        *out = oriel_hash_table_find(&table, key);
        if (*out == NULL)
            status = derived_insert(datatype, out);
        pthread_mutex_unlock(&insert_mutex);
    }
    if (status == ORIEL_OK && (*out)->plain_bytes == INT64_MAX)
        *recent = (struct recent_type){generation, key, *out};
    else if (status == ORIEL_OK)
        oriel_tls_cache_set_type(generation, key, *out, (*out)->plain_bytes);
    return status;
}

enum oriel_status oriel_type_find_slow(MPI_Datatype datatype, const struct oriel_type **out)
{
    uint64_t key = oriel_type_key(datatype);
    uint64_t generation = oriel_tls_cache_begin();
    struct recent_type *recent = recent_type_slot(key);
    if (oriel_unlikely(recent->generation != generation || recent->key != key))
        return type_find_or_insert(datatype, generation, recent, out);
    *out = recent->type;
    return ORIEL_OK;
}

enum oriel_operator oriel_operator_find(MPI_Op op)
{
    static const struct {
        MPI_Op op;
        enum oriel_operator operator;
    } operators[] = {
        {MPI_SUM, ORIEL_OPERATOR_SUM},       {MPI_REPLACE, ORIEL_OPERATOR_REPLACE},
        {MPI_NO_OP, ORIEL_OPERATOR_NO_OP},   {MPI_MAX, ORIEL_OPERATOR_MAX},
        {MPI_MIN, ORIEL_OPERATOR_MIN},       {MPI_PROD, ORIEL_OPERATOR_PROD},
        {MPI_LAND, ORIEL_OPERATOR_LAND},     {MPI_BAND, ORIEL_OPERATOR_BAND},
        {MPI_LOR, ORIEL_OPERATOR_LOR},       {MPI_BOR, ORIEL_OPERATOR_BOR},
        {MPI_LXOR, ORIEL_OPERATOR_LXOR},     {MPI_BXOR, ORIEL_OPERATOR_BXOR},
        {MPI_MINLOC, ORIEL_OPERATOR_MINLOC}, {MPI_MAXLOC, ORIEL_OPERATOR_MAXLOC},
    };
    for (unsigned i = 0; i < sizeof operators / sizeof operators[0]; i++)
        if (operators[i].op == op)
            return operators[i].operator;
    return ORIEL_OPERATOR_NONE;
}
