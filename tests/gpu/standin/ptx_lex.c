/* Splits PTX text into names, numbers and signs. */
#include "ptx.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static void skip_space(struct ptx_lexer *lexer)
{
    for (;;) {
        if (lexer->at[0] == '/' && lexer->at[1] == '/') {
            lexer->at += strcspn(lexer->at, "\n");
        } else if (lexer->at[0] == '/' && lexer->at[1] == '*') {
            const char *end = strstr(lexer->at + 2, "*/");
            for (end = end ? end + 2 : lexer->at + strlen(lexer->at); lexer->at < end;
                 lexer->at++) {
                lexer->line += *lexer->at == '\n';
            }
        } else if (isspace((unsigned char)*lexer->at)) {
            lexer->line += *lexer->at++ == '\n';
        } else {
            return;
        }
    }
}

static bool is_name(char sign)
{
    return isalnum((unsigned char)sign) || (sign && strchr("_$.%", sign));
}

/* 0f and 8 digits, or 0d and 16: the bits of a floating-point number. */
static bool read_bits(struct ptx_lexer *lexer)
{
    char kind = (char)tolower((unsigned char)lexer->at[1]);
    if (lexer->at[0] != '0' || (kind != 'f' && kind != 'd')) {
        return false;
    }
    char *end;
    lexer->value = strtoull(lexer->at + 2, &end, 16);
    lexer->token = end - lexer->at != (kind == 'f' ? 10 : 18) ? PTX_BAD
                   : kind == 'f'                              ? PTX_FLOAT
                                                              : PTX_DOUBLE;
    lexer->at = end;
    return true;
}

static void read_number(struct ptx_lexer *lexer)
{
    if (read_bits(lexer)) {
        return;
    }
    char *end;
    size_t digits = strspn(lexer->at, "0123456789");
    if (lexer->at[digits] == '.') {
        double value = strtod(lexer->at, &end);
        memcpy(&lexer->value, &value, 8);
        lexer->token = PTX_DOUBLE;
    } else {
        lexer->value = strtoull(lexer->at, &end, 0);
        lexer->token = PTX_INTEGER;
        end += *end == 'U';
    }
    if (is_name(*end)) {
        lexer->token = PTX_BAD;
    }
    lexer->at = end;
}

void ptx_next(struct ptx_lexer *lexer)
{
    skip_space(lexer);
    if (!*lexer->at) {
        lexer->token = PTX_END;
    } else if (isdigit((unsigned char)*lexer->at)) {
        read_number(lexer);
    } else if (is_name(*lexer->at)) {
        size_t len = 0;
        while (is_name(lexer->at[len])) {
            len++;
        }
        lexer->token = len < sizeof lexer->name ? PTX_NAME : PTX_BAD;
        if (lexer->token == PTX_NAME) {
            memcpy(lexer->name, lexer->at, len);
            lexer->name[len] = '\0';
        }
        lexer->at += len;
    } else {
        lexer->token = PTX_SIGN;
        lexer->sign = *lexer->at++;
    }
}
