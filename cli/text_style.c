#include "cli/text_style.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "cli/cli.h"

enum { NARROWEST = 20 };

bool oriel_color_choose(const char *choice, bool is_terminal)
{
    const char *no_color = getenv("NO_COLOR");
    if (choice == NULL || strcmp(choice, "auto") == 0)
        return is_terminal && (no_color == NULL || no_color[0] == '\0');
    if (strcmp(choice, "always") != 0 && strcmp(choice, "never") != 0)
        oriel_die("--color: \"%s\" is neither auto, always nor never", choice);
    return strcmp(choice, "always") == 0;
}

int oriel_text_columns(int terminal_columns)
{
    const char *text = getenv("COLUMNS");
    int columns = text != NULL && atoi(text) > 0 ? atoi(text) : terminal_columns;
    return columns > 0 && columns < NARROWEST ? NARROWEST : columns;
}

int oriel_text_width(int fd)
{
    struct winsize size = {.ws_col = 0};
    ioctl(fd, TIOCGWINSZ, &size);
    int columns = oriel_text_columns(size.ws_col);
    return columns > 0 ? columns : ORIEL_TEXT_UNWRAPPED;
}

void oriel_text_wrap(FILE *out, const char *text, int used, int indent, int width)
{
    int room = width - used;
    do {
        size_t len = strlen(text);
        if ((int)len > room) {
            size_t cut = room > 0 ? (size_t)room : 0;
            while (cut > 0 && text[cut] != ' ')
                cut--;
            len = cut > 0 ? cut : strcspn(text, " ");
        }
        fprintf(out, "%.*s\n", (int)len, text);
        text += len;
        text += strspn(text, " ");
        if (*text != '\0')
            fprintf(out, "%*s", indent, "");
        room = width - indent;
    } while (*text != '\0');
}
