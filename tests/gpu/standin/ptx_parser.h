/* The parser of PTX text: its state, and the pieces of a statement. A fault is reported by a jump
 * out of the parser. */
#ifndef ORIEL_TESTS_GPU_STANDIN_PTX_PARSER_H
#define ORIEL_TESTS_GPU_STANDIN_PTX_PARSER_H

#include "ptx.h"

#include <setjmp.h>

struct ptx_label {
    char name[PTX_NAME_BYTES];
    unsigned instruction;
    int line;
};

struct ptx_parser {
    struct ptx_lexer lexer;
    struct ptx_kernel *kernels, *kernel; /* the last is the current one */
    struct ptx_label *labels, *uses;
    unsigned label_count, use_count;
    int version; /* 10 times */
    int target;
    char *text;
    size_t text_bytes;
    jmp_buf out;
};

/* ptx_tokens.c: accept returns whether the piece is there; expect fails without it. */
__attribute__((format(printf, 2, 3), noreturn)) void ptx_parser_fail(struct ptx_parser *parser,
                                                                     const char *format, ...);
/* Makes room for one more item, which is zero. */
void *ptx_parser_grow(struct ptx_parser *parser, void *items, unsigned count, size_t item_bytes);
void ptx_parser_next(struct ptx_parser *parser);
bool ptx_parser_is_sign(const struct ptx_parser *parser, char sign);
bool ptx_parser_accept(struct ptx_parser *parser, char sign);
bool ptx_parser_accept_name(struct ptx_parser *parser, const char *name);
void ptx_parser_expect(struct ptx_parser *parser, char sign);
void ptx_parser_expect_name(struct ptx_parser *parser, char *name);
uint64_t ptx_parser_expect_integer(struct ptx_parser *parser);
struct ptx_type ptx_parser_expect_type(struct ptx_parser *parser);

/* ptx_operands.c: letter is one of ptx_form's. */
int ptx_parser_expect_register(struct ptx_parser *parser, struct ptx_type type, bool may_be_wider);
void ptx_parser_read_operand(struct ptx_parser *parser, const struct ptx_instruction *instruction,
                             char letter, unsigned vector, bool is_first,
                             struct ptx_operand *operand);

#endif
