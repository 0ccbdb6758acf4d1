/* Generates datatypes (random_datatypes.h).  Extents are random, too, as if every type were
 * resized. */
#include "random_datatypes.h"

#include "host/host.h"

static struct random_datatype types[DATATYPES_MOST];
static int count_of_types;

void random_datatype_start(void)
{
    count_of_types = 0;
}

MPI_Datatype random_datatype_handle(int number)
{
    return (MPI_Datatype)(intptr_t)(number + 1);
}

struct random_datatype *random_datatype_of(MPI_Datatype type)
{
    return &types[(intptr_t)type - 1];
}

static int type_get_extent(MPI_Datatype type, MPI_Aint *low, MPI_Aint *extent)
{
    *low = 0;
    *extent = random_datatype_of(type)->extent_bytes;
    return MPI_SUCCESS;
}

static int type_size(MPI_Datatype type, int *size)
{
    *size = (int)random_datatype_of(type)->size_bytes;
    return MPI_SUCCESS;
}

const struct oriel_host_calls *oriel_host(void)
{
    static const struct oriel_host_calls calls = {.Type_get_extent = type_get_extent,
                                                  .Type_size = type_size};
    return &calls;
}

bool oriel_contents_is_leaf(int combiner)
{
    return combiner == MPI_COMBINER_NAMED;
}

enum oriel_status oriel_contents_open(MPI_Datatype type, struct oriel_contents *out)
{
    struct random_datatype *datatype = random_datatype_of(type);
    bool fit = true;
    for (int i = 0; i < NUMBERS_MOST; i++) {
        datatype->integers[i] = (int)datatype->numbers[i];
        fit = fit && datatype->integers[i] == datatype->numbers[i];
    }
    *out = (struct oriel_contents){.combiner = datatype->combiner,
                                   .integers = datatype->integers,
                                   .integer_count = fit ? NUMBERS_MOST : 0,
                                   .wide = datatype->numbers,
                                   .types = datatype->types,
                                   .type_count = datatype->parts};
    return ORIEL_OK;
}

void oriel_contents_close(struct oriel_contents *contents)
{
    (void)contents;
}

enum oriel_kind oriel_type_predefined(MPI_Datatype type)
{
    return random_datatype_of(type)->combiner == MPI_COMBINER_NAMED ? random_datatype_of(type)->kind
                                                                    : ORIEL_KIND_NONE;
}

enum oriel_kind oriel_type_parameterised(int combiner, int size_bytes, int64_t precision)
{
    (void)combiner, (void)size_bytes, (void)precision;
    return ORIEL_KIND_NONE;
}

/* Mostly small. */
static int64_t draw_number(struct input *input)
{
    const uint8_t byte = input_byte(input);
    return byte < 250 ? (int64_t)byte % 40 - 12 : (int64_t)input_word(input);
}

static int64_t draw_count(struct input *input)
{
    const uint8_t byte = input_byte(input);
    return byte < 252 ? byte % 6 : (int64_t)(input_word(input) >> 1);
}

static void draw_list(struct input *input, struct random_datatype *type)
{
    const bool same = type->combiner == MPI_COMBINER_INDEXED_BLOCK ||
                      type->combiner == MPI_COMBINER_HINDEXED_BLOCK;
    const int64_t count =
        type->combiner == MPI_COMBINER_STRUCT ? type->parts : (int64_t)input_below(input, 9);
    const int64_t lengths = same ? 1 : count;
    type->numbers[0] = count;
    for (int64_t i = 0; i < lengths; i++)
        type->numbers[1 + i] = draw_count(input);
    for (int64_t i = 0; i < count; i++)
        type->numbers[1 + lengths + i] = draw_number(input);
}

static void draw_array(struct input *input, struct random_datatype *type)
{
    const int n = 1 + (int)input_below(input, DIMENSIONS);
    const int order = input_byte(input) % 2 ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
    int64_t *numbers = type->numbers + 1;
    if (type->combiner == MPI_COMBINER_SUBARRAY) {
        type->numbers[0] = n;
        for (int d = 0; d < n; d++) {
            numbers[d] = 1 + input_below(input, 6);
            numbers[n + d] = 1 + input_below(input, (uint32_t)numbers[d]);
            numbers[2 * n + d] = input_below(input, (uint32_t)(numbers[d] - numbers[n + d] + 1));
        }
        numbers[3 * n] = order;
        return;
    }
    numbers = type->numbers + 3;
    int64_t processes = 1;
    for (int d = 0; d < n; d++) {
        static const int distributions[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC,
                                            MPI_DISTRIBUTE_NONE};
        const int64_t size = numbers[d] = 1 + input_below(input, 6);
        const int distribution = distributions[input_below(input, 3)];
        const int64_t psize = distribution == MPI_DISTRIBUTE_NONE ? 1 : 1 + input_below(input, 3);
        const int64_t least = distribution == MPI_DISTRIBUTE_BLOCK ? (size + psize - 1) / psize : 1;
        numbers[n + d] = distribution;
        numbers[2 * n + d] =
            input_byte(input) % 2 ? MPI_DISTRIBUTE_DFLT_DARG : least + input_below(input, 3);
        numbers[3 * n + d] = psize;
        processes *= psize;
    }
    numbers[4 * n] = order;
    type->numbers[0] = processes;
    type->numbers[1] = input_below(input, (uint32_t)processes);
    type->numbers[2] = n;
}

static int draw_leaf(struct input *input)
{
    const enum oriel_kind kind = (enum oriel_kind)input_below(input, ORIEL_KIND_COUNT);
    const struct oriel_kind_properties *properties = &oriel_kinds[kind];
    const uint32_t tail_bytes = oriel_kind_tail_bytes(properties);
    types[count_of_types] = (struct random_datatype){
        .combiner = MPI_COMBINER_NAMED,
        .kind = kind,
        .extent_bytes = properties->extent_bytes,
        .elements = 1,
        .size_bytes = properties->padded ? properties->value_bytes + properties->index_bytes
                                         : properties->extent_bytes,
        .high_bytes = properties->extent_bytes - tail_bytes,
        .types = {random_datatype_handle(count_of_types)},
    };
    return count_of_types++;
}

/* A type's number: a new type, or an existing one. */
int random_datatype_make(struct input *input, int depth)
{
    static const int combiners[] = {
        MPI_COMBINER_DUP,        MPI_COMBINER_RESIZED,
        MPI_COMBINER_CONTIGUOUS, MPI_COMBINER_VECTOR,
        MPI_COMBINER_HVECTOR,    MPI_COMBINER_INDEXED,
        MPI_COMBINER_HINDEXED,   MPI_COMBINER_INDEXED_BLOCK,
        MPI_COMBINER_STRUCT,     MPI_COMBINER_HINDEXED_BLOCK,
        MPI_COMBINER_SUBARRAY,   MPI_COMBINER_DARRAY,
    };
    const uint8_t choice = input_byte(input);
    if (count_of_types > 0 &&
        (choice % 8 == 7 || count_of_types >= DATATYPES_MOST - DEPTH * PARTS / 2))
        return (int)input_below(input, (uint32_t)count_of_types);
    if (depth == 0 || choice % 8 == 6 || count_of_types >= DATATYPES_MOST - 1)
        return draw_leaf(input);
    struct random_datatype type = {.combiner = combiners[choice / 8 % 12]};
    type.parts = type.combiner == MPI_COMBINER_STRUCT ? 1 + (int)input_below(input, PARTS) : 1;
    for (int i = 0; i < type.parts; i++)
        type.types[i] = random_datatype_handle(random_datatype_make(input, depth - 1));
    if (type.combiner == MPI_COMBINER_SUBARRAY || type.combiner == MPI_COMBINER_DARRAY) {
        draw_array(input, &type);
    } else if (type.combiner == MPI_COMBINER_CONTIGUOUS || type.combiner == MPI_COMBINER_VECTOR ||
               type.combiner == MPI_COMBINER_HVECTOR) {
        type.numbers[0] = draw_count(input);
        type.numbers[1] = draw_count(input);
        type.numbers[2] = draw_number(input);
    } else {
        draw_list(input, &type);
    }
    random_datatype_sum_up(&type);
    type.extent_bytes = draw_number(input);
    if (count_of_types == DATATYPES_MOST)
        return 0;
    types[count_of_types] = type;
    return count_of_types++;
}
