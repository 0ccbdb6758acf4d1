/* Formats and writes Oriel's lines. base/log_claims.h has which process prints a message that
 * several notice. A line that is too long is cut and ends in "...". */
#include "base/log.h"

#include "base/caller_line.h"
#include "base/job.h"
#include "base/log_claims.h"
#include "base/options.h"
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 1024, FATAL_MS = 5000, LATE_MS = 200, LINGER_MS = 1000 };

/* If standard error is closed, the text is discarded. */
void oriel_log_write(const char *text, size_t len_bytes)
{
    for (size_t done = 0; done < len_bytes;) {
        ssize_t written = write(STDERR_FILENO, text + done, len_bytes - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return;
        done += (size_t)written;
    }
}

static void ms_sleep(int ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

/* --- lines --- */

/* A text that is cut ends in "...". */
static void text_format(char out[LINE_BYTES], const char *format, va_list args)
{
    if (vsnprintf(out, LINE_BYTES, format, args) >= LINE_BYTES)
        memcpy(out + LINE_BYTES - 4, "...", 4);
}

static void line_write(int32_t rank, const char *text)
{
    char line[LINE_BYTES + 32];
    char by[20] = "";
    if (rank >= 0)
        snprintf(by, sizeof by, "rank %d: ", (int)rank);
    int len = snprintf(line, sizeof line, "oriel: %s%s\n", by, text);
    oriel_log_write(line, (size_t)len);
}

/* What this process has noticed. */
static void noticed_write(enum oriel_log_kind kind, const char *format, va_list args)
{
    char text[LINE_BYTES];
    text_format(text, format, args);
    if (oriel_log_claim(kind, 0, text) == ORIEL_LOG_CLAIM_OWN)
        line_write(oriel_job_rank(), text);
}

void oriel_warn(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    noticed_write(ORIEL_LOG_WARNING, format, args);
    va_end(args);
}

void oriel_note(const char *format, ...)
{
    if (oriel_options()->verbose < 1)
        return;
    va_list args;
    va_start(args, format);
    noticed_write(ORIEL_LOG_NOTE, format, args);
    va_end(args);
}

static void job_write(const char *format, va_list args)
{
    char text[LINE_BYTES];
    text_format(text, format, args);
    line_write(-1, text);
}

void oriel_warn_job(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    job_write(format, args);
    va_end(args);
}

void oriel_note_job(const char *format, ...)
{
    if (oriel_options()->verbose < 1)
        return;
    va_list args;
    va_start(args, format);
    job_write(format, args);
    va_end(args);
}

/* --- calls of the program --- */

/* "CALL at FILE:LINEREST". Only a process that prints looks up the line. */
static void call_format(char text[LINE_BYTES], const char *call, struct oriel_code_address *caller,
                        const char *rest)
{
    char line[ORIEL_CALLER_LINE_BYTES] = "";
    if (caller->offset != 0)
        oriel_caller_line_find(caller, line);
    if (snprintf(text, LINE_BYTES, "%s%s%s%s", call, line[0] == '\0' ? "" : " at ", line, rest) >=
        LINE_BYTES)
        memcpy(text + LINE_BYTES - 4, "...", 4);
}

static void caller_find(struct oriel_code_address *out)
{
    if (!oriel_code_address_caller(out))
        out->offset = 0;
}

void oriel_log_call(enum oriel_log_kind kind, const char *call, const char *rest)
{
    struct oriel_code_address caller;
    char text[LINE_BYTES];
    if (kind == ORIEL_LOG_NOTE && oriel_options()->verbose < 1)
        return;
    caller_find(&caller);
    snprintf(text, sizeof text, "%s%s", call, rest);
    bool prints = oriel_log_claim(kind, caller.offset, text) == ORIEL_LOG_CLAIM_OWN;
    if (kind == ORIEL_LOG_FATAL && (!prints || oriel_fail_is_of_other())) {
        ms_sleep(FATAL_MS); /* another rank or thread prints its line and ends the job */
        prints = oriel_log_claim(ORIEL_LOG_LATE, caller.offset, text) == ORIEL_LOG_CLAIM_OWN;
        if (!prints)
            ms_sleep(LATE_MS); /* this rank must not end the job before that line is printed */
    }
    if (!prints)
        return;
    call_format(text, call, &caller, rest);
    /* a loop that the compiler unrolled has several calls in one line */
    if (kind != ORIEL_LOG_NOTE || oriel_log_claim(kind, 0, text) == ORIEL_LOG_CLAIM_OWN)
        line_write(oriel_job_rank(), text);
}

void oriel_note_call(const char *call, const char *format, ...)
{
    char rest[LINE_BYTES] = ": ";
    va_list args;
    if (oriel_options()->verbose < 1)
        return;
    va_start(args, format);
    vsnprintf(rest + 2, sizeof rest - 2, format, args);
    va_end(args);
    oriel_log_call(ORIEL_LOG_NOTE, call, rest);
}

void oriel_note_job_call(const char *call, const char *format, ...)
{
    struct oriel_code_address caller;
    char text[LINE_BYTES];
    char rest[LINE_BYTES] = ": ";
    va_list args;
    if (oriel_options()->verbose < 1)
        return;
    va_start(args, format);
    vsnprintf(rest + 2, sizeof rest - 2, format, args);
    va_end(args);
    caller_find(&caller);
    call_format(text, call, &caller, rest);
    line_write(-1, text);
}

/* --- the end --- */

void oriel_log_refusal(const char *reason)
{
    char line[ORIEL_LOG_REFUSAL_BYTES + 16];
    if (oriel_log_claim(ORIEL_LOG_REFUSAL, 0, reason) == ORIEL_LOG_CLAIM_OTHER)
        return;
    int len = snprintf(line, sizeof line, "oriel: %s\n", reason);
    oriel_log_write(line, (size_t)len);
    if (oriel_log_claims_any())
        ms_sleep(LINGER_MS);
}

static void count_write(int others, const char *text)
{
    char line[LINE_BYTES];
    snprintf(line, sizeof line, "also in %d other process%s: %.*s", others, others == 1 ? "" : "es",
             LINE_BYTES / 2, text);
    line_write(-1, line);
}

__attribute__((destructor)) static void counts_write(void)
{
    oriel_log_claims_count(count_write);
}
