/* The terminal's alternate screen, drawn with control sequences that all current terminals support
 * (xterm, the Linux console, screen, tmux). A curses library would add a dependency for these few
 * sequences. It also could not draw the line of `oriel run --watch` (watch_line.c), on a terminal
 * to which other processes write. */
#include "cli/top/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios before;
static volatile sig_atomic_t ended_by;

static void signal_record(int number)
{
    ended_by = number;
}

static void size_change_ignore(int number)
{
    (void)number; /* interrupting the wait is enough */
}

bool oriel_screen_available(void)
{
    const char *term = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term != NULL && term[0] != '\0' &&
           strcmp(term, "dumb") != 0;
}

void oriel_screen_open(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction action = {.sa_handler = signal_record};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        sigaction(ends[i], &action, NULL);
    action.sa_handler = size_change_ignore;
    sigaction(SIGWINCH, &action, NULL);
    tcgetattr(STDIN_FILENO, &before);
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG); /* Ctrl-C and Ctrl-Z arrive as keys */
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    fputs("\033[?1049h\033[?25l", stdout);
    fflush(stdout);
}

static struct winsize size_read(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
        size = (struct winsize){.ws_row = 24, .ws_col = 80};
    return size;
}

int oriel_screen_columns(void)
{
    return size_read().ws_col;
}

/* The bytes of a line that fit: whole UTF-8 characters, and escape sequences. */
static int line_fit(const char *line, int columns)
{
    int shown = 0;
    for (int used = 0; line[shown] != '\n' && line[shown] != '\0'; shown++) {
        if (line[shown] == '\033') {
            shown += (int)strcspn(line + shown, "m");
            continue;
        }
        used += (line[shown] & 0xc0) != 0x80;
        if (used > columns)
            break;
    }
    return shown;
}

static int lines_count(const char *text)
{
    int count = 0;
    for (; *text != '\0'; text += strcspn(text, "\n"), text += *text == '\n')
        count++;
    return count;
}

void oriel_screen_show(const char *text)
{
    struct winsize size = size_read();
    fputs("\033[H", stdout);
    for (int row = 1; row <= size.ws_row; row++) {
        int more = row == size.ws_row ? lines_count(text) : 0;
        if (more > 1)
            printf("\033[K%d more lines", more);
        else
            printf("\033[K%.*s\033[0m%s", line_fit(text, size.ws_col), text,
                   row < size.ws_row ? "\n" : "");
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    fflush(stdout);
}

int oriel_screen_key(int ms)
{
    struct pollfd key = {.fd = STDIN_FILENO, .events = POLLIN};
    unsigned char pressed = 0;
    int count = poll(&key, 1, ms);
    if (ended_by != 0 || (count > 0 && read(STDIN_FILENO, &pressed, 1) <= 0))
        return ORIEL_SCREEN_END;
    return count > 0 ? pressed : 0;
}

void oriel_screen_close(void)
{
    fputs("\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
    if (ended_by != 0) {
        signal(ended_by, SIG_DFL);
        raise(ended_by);
    }
}
