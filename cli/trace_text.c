/* Characters of UTF-8, and cleaning text in place. */
#include "cli/trace_text.h"

#include <stdint.h>
#include <string.h>

size_t oriel_utf8_len(const unsigned char *text, size_t left)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = text[0] < 0x80       ? 1
                 : text[0] >> 5 == 6  ? 2
                 : text[0] >> 4 == 14 ? 3
                 : text[0] >> 3 == 30 ? 4
                                      : 0;
    if (len < 2 || len > left)
        return len == 1 ? 1 : 0;
    uint32_t code = text[0] & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if (text[i] >> 6 != 2)
            return 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    return code < least[len] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : len;
}

static int is_control(const unsigned char *text, size_t len)
{
    return (len == 1 && (text[0] < 0x20 || text[0] == 0x7f)) ||
           (len == 2 && text[0] == 0xc2 && text[1] < 0xa0);
}

void oriel_trace_text_clean(char *text, size_t room)
{
    text[room - 1] = '\0';
    size_t end = strlen(text);
    for (size_t at = 0; at < end;) {
        unsigned char *bytes = (unsigned char *)text + at;
        size_t len = oriel_utf8_len(bytes, end - at);
        if (len == 0 || is_control(bytes, len))
            memset(bytes, '?', len = len == 0 ? 1 : len);
        at += len;
    }
}
