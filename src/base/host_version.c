#include "base/host_version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The value after blanks and a colon; NULL if there are none. */
static const char *value_after(const char *at)
{
    at += strspn(at, " \t");
    return *at == ':' ? at + 1 + strspn(at + 1, " \t") : NULL;
}

void oriel_host_version_format(const char *text, char *out, size_t room)
{
    static const char word[] = " Version";    /* after the MPI's name */
    static const char cray[] = "MPI VERSION"; /* before it */
    const char *end = text + strcspn(text, ",\n");
    const char *at = strstr(text, word);
    const char *number = at == NULL || at > end ? NULL : value_after(at + strlen(word));
    const char *start =
        strncmp(text, cray, strlen(cray)) == 0 ? value_after(text + strlen(cray)) : NULL;
    if (start == NULL || start > end)
        start = text;
    if (number == NULL || number > end)
        snprintf(out, room, "%.*s", (int)(end - start), start);
    else
        snprintf(out, room, "%.*s %.*s", (int)(at - text), text, (int)(end - number), number);
}

bool oriel_host_version_is_tested(const char *version, char *tested, size_t room)
{
    static const struct {
        const char *name;
        long first, last; /* major versions */
    } hosts[] = {{"MPICH ", 4, 5}, {"Open MPI v", 4, 6}};
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        const size_t len = strlen(hosts[i].name);
        if (strncmp(version, hosts[i].name, len) != 0)
            continue;
        const long major = strtol(version + len, NULL, 10);
        snprintf(tested, room, "%s%ld to %ld", hosts[i].name, hosts[i].first, hosts[i].last);
        return major >= hosts[i].first && major <= hosts[i].last;
    }
    return true;
}
