/* Serves one request of the library or the checker.
 * A request that is not understood, or an asker that has gone, ends it without an answer; an alarm ends it when it hangs.
 * Called by `oriel check` through helper.h. */
#include "cli/helper.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/helper.h"
#include "cli/cli.h"
#include "cli/statistics.h"

enum { PATIENCE_S = 60 };

static bool read_all(void *bytes, size_t len_bytes)
{
    for (size_t done = 0; done < len_bytes;) {
        ssize_t got = read(STDIN_FILENO, (char *)bytes + done, len_bytes - done);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

static bool write_all(const void *bytes, size_t len_bytes)
{
    for (size_t done = 0; done < len_bytes;) {
        ssize_t put = write(STDOUT_FILENO, (const char *)bytes + done, len_bytes - done);
        if (put < 0 && errno != EINTR)
            return false;
        done += put > 0 ? (size_t)put : 0;
    }
    return true;
}

static bool answer(const void *bytes, size_t len_bytes)
{
    struct oriel_helper_head head = {.magic = ORIEL_HELPER_MAGIC, .len_bytes = (uint32_t)len_bytes};
    return write_all(&head, sizeof head) && write_all(bytes, len_bytes);
}

int oriel_helper_serve(const char *what)
{
    struct oriel_helper_head head;
    bool places = strcmp(what, ORIEL_HELPER_PLACES) == 0;
    bool statistics = strcmp(what, ORIEL_HELPER_STATISTICS) == 0;
    if (!places && !statistics && strcmp(what, ORIEL_HELPER_JSON) != 0)
        oriel_die("the helper is started by the library and the checker alone");
    alarm(PATIENCE_S);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is told, like a disk that is full */
    if (!read_all(&head, sizeof head) || head.magic != ORIEL_HELPER_MAGIC || head.len_bytes > ORIEL_HELPER_LEN_MAX)
        return ORIEL_EXIT_REFUSED;
    void *request = oriel_alloc((size_t)head.len_bytes + 1);
    if (!read_all(request, head.len_bytes))
        return ORIEL_EXIT_REFUSED;
    bool done = false;
    if (places) {
        oriel_places_find(request, head.len_bytes / sizeof(struct oriel_place));
        done = answer(request, head.len_bytes);
    } else {
        char *text = statistics ? oriel_statistics_write(request, head.len_bytes)
                                : oriel_findings_write(request, head.len_bytes);
        done = answer(text, strlen(text));
        free(text);
    }
    free(request);
    return done ? 0 : 1;
}
