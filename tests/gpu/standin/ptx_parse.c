/* Parses PTX text: one pass, and labels at the end of each kernel. The first fault ends it. */
#include "ptx_parser.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void read_guard(struct ptx_parser *parser, struct ptx_instruction *instruction)
{
    instruction->guard = -1;
    if (ptx_parser_accept(parser, '@')) {
        instruction->guard_negated = ptx_parser_accept(parser, '!');
        instruction->guard = ptx_parser_expect_register(parser, (struct ptx_type){'p', 1}, false);
    }
}

static void read_instruction(struct ptx_parser *parser, struct ptx_instruction *instruction,
                             const char *mnemonic)
{
    unsigned vector;
    const char *reason;
    const char *letters =
        ptx_form(mnemonic, parser->target, parser->version, instruction, &vector, &reason);
    if (!letters) {
        ptx_parser_fail(parser, "%s: %s", mnemonic, reason);
    }
    for (unsigned i = 0; letters[i]; i++) {
        if (i) {
            ptx_parser_expect(parser, ',');
        }
        ptx_parser_read_operand(parser, instruction, letters[i], vector, !i,
                                &instruction->operands[i]);
    }
    ptx_parser_expect(parser, ';');
    struct ptx_kernel *kernel = parser->kernel;
    kernel->instructions = ptx_parser_grow(parser, kernel->instructions, kernel->instruction_count,
                                           sizeof *kernel->instructions);
    kernel->instructions[kernel->instruction_count++] = *instruction;
}

static void add_label(struct ptx_parser *parser, const char *name)
{
    for (unsigned i = 0; i < parser->label_count; i++) {
        if (strcmp(parser->labels[i].name, name) == 0) {
            ptx_parser_fail(parser, "label %s is defined twice", name);
        }
    }
    parser->labels =
        ptx_parser_grow(parser, parser->labels, parser->label_count, sizeof *parser->labels);
    struct ptx_label *label = &parser->labels[parser->label_count++];
    memcpy(label->name, name, PTX_NAME_BYTES);
    label->instruction = parser->kernel->instruction_count;
}

static void add_register(struct ptx_parser *parser, const char *name, struct ptx_type type)
{
    struct ptx_kernel *kernel = parser->kernel;
    for (unsigned i = 0; i < kernel->register_count; i++) {
        if (strcmp(kernel->registers[i].name, name) == 0) {
            ptx_parser_fail(parser, "register %s is declared twice", name);
        }
    }
    kernel->registers = ptx_parser_grow(parser, kernel->registers, kernel->register_count,
                                        sizeof *kernel->registers);
    struct ptx_register *added = &kernel->registers[kernel->register_count++];
    snprintf(added->name, sizeof added->name, "%s", name);
    added->type = type;
}

static void read_registers(struct ptx_parser *parser)
{
    struct ptx_type type = ptx_parser_expect_type(parser);
    if (type.kind != 'p' && type.bytes == 1) {
        ptx_parser_fail(parser, "registers of 8 bits are not supported");
    }
    do {
        char name[PTX_NAME_BYTES], numbered[PTX_NAME_BYTES + 12];
        ptx_parser_expect_name(parser, name);
        if (ptx_parser_accept(parser, '<')) {
            uint64_t count = ptx_parser_expect_integer(parser);
            if (count > 1000) {
                ptx_parser_fail(parser, "too many registers");
            }
            for (uint64_t i = 0; i < count; i++) {
                snprintf(numbered, sizeof numbered, "%s%u", name, (unsigned)i);
                add_register(parser, numbered, type);
            }
            ptx_parser_expect(parser, '>');
        } else {
            add_register(parser, name, type);
        }
    } while (ptx_parser_accept(parser, ','));
    ptx_parser_expect(parser, ';');
}

static void resolve_labels(struct ptx_parser *parser)
{
    for (unsigned i = 0; i < parser->use_count; i++) {
        const struct ptx_label *use = &parser->uses[i];
        unsigned number = 0;
        while (number < parser->label_count &&
               strcmp(parser->labels[number].name, use->name) != 0) {
            number++;
        }
        if (number == parser->label_count) {
            parser->lexer.line = use->line;
            ptx_parser_fail(parser, "label %s is not defined", use->name);
        }
        parser->kernel->instructions[use->instruction].operands[0].value =
            parser->labels[number].instruction;
    }
    parser->use_count = parser->label_count = 0;
    free(parser->labels);
    free(parser->uses);
    parser->labels = parser->uses = NULL;
}

static void read_body(struct ptx_parser *parser)
{
    ptx_parser_expect(parser, '{');
    while (!ptx_parser_accept(parser, '}')) {
        struct ptx_instruction instruction = {.line = parser->lexer.line};
        char name[PTX_NAME_BYTES];
        if (ptx_parser_accept_name(parser, ".reg")) {
            read_registers(parser);
            continue;
        }
        read_guard(parser, &instruction);
        ptx_parser_expect_name(parser, name);
        if (instruction.guard < 0 && ptx_parser_accept(parser, ':')) {
            add_label(parser, name);
        } else {
            read_instruction(parser, &instruction, name);
        }
    }
    resolve_labels(parser);
}

static void read_parameters(struct ptx_parser *parser)
{
    struct ptx_kernel *kernel = parser->kernel;
    ptx_parser_expect(parser, '(');
    while (!ptx_parser_accept(parser, ')')) {
        if (kernel->parameter_count) {
            ptx_parser_expect(parser, ',');
        }
        if (!ptx_parser_accept_name(parser, ".param")) {
            ptx_parser_fail(parser, ".param is missing");
        }
        kernel->parameters = ptx_parser_grow(parser, kernel->parameters, kernel->parameter_count,
                                             sizeof *kernel->parameters);
        struct ptx_parameter *added = &kernel->parameters[kernel->parameter_count++];
        added->type = ptx_parser_expect_type(parser);
        ptx_parser_expect_name(parser, added->name);
    }
}

static void read_kernel(struct ptx_parser *parser)
{
    ptx_parser_accept_name(parser, ".visible");
    if (!ptx_parser_accept_name(parser, ".entry")) {
        ptx_parser_fail(parser, ".entry is missing");
    }
    struct ptx_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel) {
        ptx_parser_fail(parser, "no memory");
    }
    kernel->next = parser->kernels;
    parser->kernels = parser->kernel = kernel;
    ptx_parser_expect_name(parser, kernel->name);
    read_parameters(parser);
    while (ptx_parser_accept_name(parser, ".maxntid") ||
           ptx_parser_accept_name(parser, ".reqntid")) {
        do {
            ptx_parser_expect_integer(parser);
        } while (ptx_parser_accept(parser, ','));
    }
    read_body(parser);
}

static void read_head(struct ptx_parser *parser)
{
    char name[PTX_NAME_BYTES];
    double version;
    if (!ptx_parser_accept_name(parser, ".version") || parser->lexer.token != PTX_DOUBLE) {
        ptx_parser_fail(parser, ".version is missing");
    }
    memcpy(&version, &parser->lexer.value, 8);
    parser->version = (int)(version * 10 + 0.5);
    ptx_parser_next(parser);
    if (!ptx_parser_accept_name(parser, ".target")) {
        ptx_parser_fail(parser, ".target is missing");
    }
    ptx_parser_expect_name(parser, name);
    if (sscanf(name, "sm_%d", &parser->target) != 1) {
        ptx_parser_fail(parser, "%s is no target", name);
    }
    if (!ptx_parser_accept_name(parser, ".address_size") ||
        ptx_parser_expect_integer(parser) != 64) {
        ptx_parser_fail(parser, ".address_size 64 is missing");
    }
}

/* Not inline: nothing of it is in the frame of setjmp. */
__attribute__((noinline)) static void read_module(struct ptx_parser *parser)
{
    ptx_parser_next(parser);
    read_head(parser);
    do {
        read_kernel(parser);
    } while (parser->lexer.token != PTX_END);
}

struct ptx_kernel *ptx_parse(const char *source, char *text, size_t text_bytes)
{
    struct ptx_parser parser = {
        .lexer = {.at = source, .line = 1}, .text = text, .text_bytes = text_bytes};
    if (setjmp(parser.out)) {
        ptx_free(parser.kernels);
        free(parser.labels);
        free(parser.uses);
        return NULL;
    }
    read_module(&parser);
    return parser.kernels;
}

void ptx_free(struct ptx_kernel *kernels)
{
    while (kernels) {
        struct ptx_kernel *kernel = kernels;
        kernels = kernel->next;
        free(kernel->parameters);
        free(kernel->registers);
        free(kernel->instructions);
        free(kernel);
    }
}
