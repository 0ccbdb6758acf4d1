/* The smallest pieces that the parser of PTX text accepts or expects. */
#include "ptx_parser.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ptx_parser_fail(struct ptx_parser *parser, const char *format, ...)
{
    char reason[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    snprintf(parser->text, parser->text_bytes, "line %d: %s", parser->lexer.line, reason);
    longjmp(parser->out, 1);
}

void *ptx_parser_grow(struct ptx_parser *parser, void *items, unsigned count, size_t item_bytes)
{
    void *more = items;
    if (!(count & (count - 1))) {
        more = realloc(items, (count ? 2 * (size_t)count : 1) * item_bytes);
        if (!more) {
            ptx_parser_fail(parser, "no memory");
        }
    }
    memset((char *)more + count * item_bytes, 0, item_bytes);
    return more;
}

void ptx_parser_next(struct ptx_parser *parser)
{
    ptx_next(&parser->lexer);
    if (parser->lexer.token == PTX_BAD) {
        ptx_parser_fail(parser, "a number or a name that is none");
    }
}

bool ptx_parser_is_sign(const struct ptx_parser *parser, char sign)
{
    return parser->lexer.token == PTX_SIGN && parser->lexer.sign == sign;
}

bool ptx_parser_accept(struct ptx_parser *parser, char sign)
{
    bool is_there = ptx_parser_is_sign(parser, sign);
    if (is_there) {
        ptx_parser_next(parser);
    }
    return is_there;
}

void ptx_parser_expect(struct ptx_parser *parser, char sign)
{
    if (!ptx_parser_accept(parser, sign)) {
        ptx_parser_fail(parser, "'%c' is missing", sign);
    }
}

bool ptx_parser_accept_name(struct ptx_parser *parser, const char *name)
{
    bool is_there = parser->lexer.token == PTX_NAME && strcmp(parser->lexer.name, name) == 0;
    if (is_there) {
        ptx_parser_next(parser);
    }
    return is_there;
}

void ptx_parser_expect_name(struct ptx_parser *parser, char *name)
{
    if (parser->lexer.token != PTX_NAME) {
        ptx_parser_fail(parser, "a name is missing");
    }
    memcpy(name, parser->lexer.name, PTX_NAME_BYTES);
    ptx_parser_next(parser);
}

uint64_t ptx_parser_expect_integer(struct ptx_parser *parser)
{
    bool is_negative = ptx_parser_accept(parser, '-');
    if (parser->lexer.token != PTX_INTEGER) {
        ptx_parser_fail(parser, "an integer is missing");
    }
    uint64_t value = parser->lexer.value;
    ptx_parser_next(parser);
    return is_negative ? -value : value;
}

struct ptx_type ptx_parser_expect_type(struct ptx_parser *parser)
{
    char name[PTX_NAME_BYTES];
    struct ptx_type type;
    ptx_parser_expect_name(parser, name);
    if (name[0] != '.' || !ptx_type_read(name + 1, &type)) {
        ptx_parser_fail(parser, "%s is no type", name);
    }
    return type;
}
