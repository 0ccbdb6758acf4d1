/* Operands of PTX instructions: registers and numbers whose types agree with the instruction. */
#include "ptx_parser.h"

#include <string.h>

static int find_register(struct ptx_parser *parser, const char *name)
{
    const struct ptx_kernel *kernel = parser->kernel;
    for (unsigned i = 0; i < kernel->register_count; i++) {
        if (strcmp(kernel->registers[i].name, name) == 0) {
            return (int)i;
        }
    }
    ptx_parser_fail(parser, "%s is no register", name);
}

static bool is_integer(struct ptx_type type)
{
    return type.kind == 'u' || type.kind == 's';
}

/* Whether an operand of the register's type fits an instruction's type. */
static bool agrees(struct ptx_type own, struct ptx_type type, bool may_be_wider)
{
    if (own.kind == 'p' || type.kind == 'p') {
        return own.kind == type.kind;
    }
    bool is_same_kind = own.kind == type.kind || own.kind == 'b' || type.kind == 'b' ||
                        (is_integer(own) && is_integer(type));
    bool is_wide = may_be_wider && own.kind != 'f' && type.kind != 'f' && own.bytes >= type.bytes;
    return is_same_kind && (own.bytes == type.bytes || is_wide);
}

int ptx_parser_expect_register(struct ptx_parser *parser, struct ptx_type type, bool may_be_wider)
{
    char name[PTX_NAME_BYTES];
    ptx_parser_expect_name(parser, name);
    int number = find_register(parser, name);
    if (!agrees(parser->kernel->registers[number].type, type, may_be_wider)) {
        ptx_parser_fail(parser, "%s does not have the instruction's type", name);
    }
    return number;
}

static uint64_t expect_real(struct ptx_parser *parser, struct ptx_type type)
{
    bool is_negative = ptx_parser_accept(parser, '-');
    uint64_t value = parser->lexer.value;
    if (type.bytes == 8 && parser->lexer.token == PTX_DOUBLE) {
        value ^= (uint64_t)is_negative << 63;
    } else if (type.bytes == 4 && parser->lexer.token == PTX_FLOAT) {
        value ^= (uint64_t)is_negative << 31;
    } else if (type.bytes == 4 && parser->lexer.token == PTX_DOUBLE) {
        double wide;
        memcpy(&wide, &value, 8);
        float narrow = is_negative ? -(float)wide : (float)wide;
        value = 0;
        memcpy(&value, &narrow, 4);
    } else {
        ptx_parser_fail(parser, "a number of the instruction's type is missing");
    }
    ptx_parser_next(parser);
    return value;
}

static void read_source(struct ptx_parser *parser, struct ptx_type type, bool may_be_wider,
                        struct ptx_operand *operand)
{
    if (parser->lexer.token == PTX_NAME) {
        *operand = (struct ptx_operand){.kind = PTX_REGISTERS, .count = 1};
        operand->registers[0] = ptx_parser_expect_register(parser, type, may_be_wider);
        return;
    }
    bool is_real = parser->lexer.token == PTX_FLOAT || parser->lexer.token == PTX_DOUBLE;
    if (type.kind == 'p') {
        ptx_parser_fail(parser, "a predicate is missing");
    }
    operand->kind = PTX_IMMEDIATE;
    operand->value = type.kind == 'f' || (type.kind == 'b' && is_real)
                         ? expect_real(parser, type)
                         : ptx_parser_expect_integer(parser) & ptx_mask(type.bytes);
}

static void read_special_or_source(struct ptx_parser *parser, struct ptx_type type,
                                   struct ptx_operand *operand)
{
    static const char *const names[] = {"%tid.", "%ntid.", "%ctaid.", "%nctaid."};
    const char *name = parser->lexer.token == PTX_NAME ? parser->lexer.name : "";
    for (unsigned i = 0; i < 4; i++) {
        size_t len = strlen(names[i]);
        if (strncmp(name, names[i], len) == 0 && name[len] >= 'x' && name[len] <= 'z') {
            if (type.kind != 'u' || type.bytes != 4) {
                ptx_parser_fail(parser, "%s needs mov.u32", name);
            }
            operand->kind = PTX_SPECIAL;
            operand->value = 4 * (uint64_t)(name[len] - 'x') + i;
            ptx_parser_next(parser);
            return;
        }
    }
    read_source(parser, type, false, operand);
}

static void read_vector(struct ptx_parser *parser, const struct ptx_instruction *instruction,
                        unsigned count, struct ptx_operand *operand)
{
    if (count == 1 && instruction->op == PTX_ST) {
        read_source(parser, instruction->type, true, operand);
        return;
    }
    operand->kind = PTX_REGISTERS;
    operand->count = count;
    if (count > 1) {
        ptx_parser_expect(parser, '{');
    }
    for (unsigned i = 0; i < count; i++) {
        if (i) {
            ptx_parser_expect(parser, ',');
        }
        operand->registers[i] = ptx_parser_expect_register(parser, instruction->type, true);
    }
    if (count > 1) {
        ptx_parser_expect(parser, '}');
    }
}

static void read_address(struct ptx_parser *parser, struct ptx_operand *operand)
{
    ptx_parser_expect(parser, '[');
    operand->kind = PTX_ADDRESS;
    operand->registers[0] = ptx_parser_expect_register(parser, (struct ptx_type){'u', 8}, false);
    if (ptx_parser_accept(parser, '+') || ptx_parser_is_sign(parser, '-')) {
        operand->value = ptx_parser_expect_integer(parser);
    }
    ptx_parser_expect(parser, ']');
}

static void read_parameter(struct ptx_parser *parser, struct ptx_type type,
                           struct ptx_operand *operand)
{
    char name[PTX_NAME_BYTES];
    unsigned number = 0;
    ptx_parser_expect(parser, '[');
    ptx_parser_expect_name(parser, name);
    ptx_parser_expect(parser, ']');
    while (number < parser->kernel->parameter_count &&
           strcmp(parser->kernel->parameters[number].name, name) != 0) {
        number++;
    }
    if (number == parser->kernel->parameter_count ||
        parser->kernel->parameters[number].type.bytes != type.bytes) {
        ptx_parser_fail(parser, "%s is no parameter of that size", name);
    }
    operand->kind = PTX_PARAMETER;
    operand->value = number;
}

static void add_use(struct ptx_parser *parser)
{
    parser->uses = ptx_parser_grow(parser, parser->uses, parser->use_count, sizeof *parser->uses);
    struct ptx_label *use = &parser->uses[parser->use_count];
    use->line = parser->lexer.line;
    use->instruction = parser->kernel->instruction_count;
    ptx_parser_expect_name(parser, use->name);
    parser->use_count++;
}

void ptx_parser_read_operand(struct ptx_parser *parser, const struct ptx_instruction *instruction,
                             char letter, unsigned vector, bool is_first,
                             struct ptx_operand *operand)
{
    struct ptx_type type = instruction->type;
    struct ptx_type wide = {type.kind, (unsigned char)(2 * type.bytes)};
    switch (letter) {
    case 'd':
    case 'D':
    case 'P':
        operand->kind = PTX_REGISTERS;
        operand->count = 1;
        operand->registers[0] = ptx_parser_expect_register(parser,
                                                           letter == 'P' ? (struct ptx_type){'p', 1}
                                                           : letter == 'D' ? wide
                                                                           : type,
                                                           false);
        break;
    case 's':
        if (!is_first) {
            type = instruction->source_type;
        }
        if (is_first && parser->lexer.token != PTX_NAME) {
            ptx_parser_fail(parser, "a register is missing");
        }
        read_source(parser, type, true, operand);
        break;
    case 'a': read_source(parser, type, false, operand); break;
    case 'A': read_source(parser, wide, false, operand); break;
    case 'p': read_source(parser, (struct ptx_type){'p', 1}, false, operand); break;
    case 'i': read_source(parser, (struct ptx_type){'u', 4}, false, operand); break;
    case 'x': read_special_or_source(parser, type, operand); break;
    case 'v': read_vector(parser, instruction, vector, operand); break;
    case 'm': read_address(parser, operand); break;
    case 'M': read_parameter(parser, type, operand); break;
    default:
        operand->kind = PTX_LABEL;
        add_use(parser);
        break;
    }
}
