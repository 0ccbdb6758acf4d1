/* Stores the message of the last failure, one per thread. The message is complete before its status
 * is returned. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char last_message[512];
static _Thread_local bool last_is_of_other;

static void message_store(const char *format, va_list args, bool is_of_other)
{
    vsnprintf(last_message, sizeof last_message, format, args);
    last_is_of_other = is_of_other;
}

enum oriel_status oriel_fail(enum oriel_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    message_store(format, args, false);
    va_end(args);
    return status;
}

enum oriel_status oriel_fail_of_other(enum oriel_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    message_store(format, args, true);
    va_end(args);
    return status;
}

bool oriel_fail_is_of_other(void)
{
    return last_is_of_other;
}

const char *oriel_fail_message(void)
{
    return last_message;
}

void oriel_first_failure_record(struct oriel_first_failure *first, enum oriel_status status)
{
    if (status == ORIEL_OK || first->status != ORIEL_OK)
        return;
    first->status = status;
    snprintf(first->text, sizeof first->text, "%s", last_message);
}

enum oriel_status oriel_first_failure_raise(const struct oriel_first_failure *first)
{
    return first->status == ORIEL_OK ? ORIEL_OK : oriel_fail(first->status, "%s", first->text);
}
