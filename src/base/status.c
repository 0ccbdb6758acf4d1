/* Stores the message of the last failure, one per thread. The message is complete before its status
 * is returned. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char last_message[512];

enum oriel_status oriel_fail(enum oriel_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(last_message, sizeof last_message, format, args);
    va_end(args);
    return status;
}

const char *oriel_fail_message(void)
{
    return last_message;
}
