#include "base/host_version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void oriel_host_version_format(const char *text, char *out, size_t room)
{
    static const char word[] = " Version:"; /* MPICH's; a tab or spaces follow */
    const int line = (int)strcspn(text, ",\n");
    const char *at = strstr(text, word);
    if (at == NULL || at - text > line) {
        snprintf(out, room, "%.*s", line, text);
        return;
    }
    const char *number = at + strlen(word) + strspn(at + strlen(word), " \t");
    snprintf(out, room, "%.*s %.*s", (int)(at - text), text, line - (int)(number - text), number);
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
