/* What Oriel does for this job: its version, the ranks, the host, the options that are set; and
 * whether it is tested with the host. Nothing is communicated, so the number of nodes is known only
 * if the launcher reports that all ranks are on this one. Programs with sessions only have no
 * MPI_COMM_WORLD: the launcher's environment has the rank. */
#include "api/banner.h"

#include "base/job.h"
#include "base/log.h"
#include "base/options.h"
#include "host/host.h"
#include "oriel/oriel.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "MPICH 4.0.2" of "MPICH Version:\t4.0.2\n...", with a tab or spaces; "Open MPI v4.1.4" of "Open
 * MPI v4.1.4, ..." */
static void host_format(char *out, size_t room)
{
    static const char word[] = " Version:";
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int len;
    if (oriel_host()->Get_library_version(text, &len) != MPI_SUCCESS)
        snprintf(text, sizeof text, "%s", oriel_host_name());
    text[strcspn(text, ",\n")] = '\0';
    char *at = strstr(text, word);
    if (at != NULL) {
        const char *number = at + strlen(word) + strspn(at + strlen(word), " \t");
        memmove(at + 1, number, strlen(number) + 1);
    }
    snprintf(out, room, "%.*s", (int)room - 1, text);
}

/* The hosts that Oriel is tested with. Derivatives have names of their own: their versions say
 * nothing. */
static const struct {
    const char *name; /* as host_format writes it, before the version */
    long first_major, last_major;
} tested_hosts[] = {{"MPICH ", 4, 5}, {"Open MPI v", 4, 6}};

static void version_warn(const char *host)
{
    for (size_t i = 0; i < sizeof tested_hosts / sizeof tested_hosts[0]; i++) {
        const size_t len = strlen(tested_hosts[i].name);
        const long first = tested_hosts[i].first_major, last = tested_hosts[i].last_major;
        if (strncmp(host, tested_hosts[i].name, len) != 0)
            continue;
        const long major = strtol(host + len, NULL, 10);
        if (major < first || major > last)
            oriel_warn_job("%s is a version that Oriel has not been tested with (tested: %s%ld to "
                           "%ld); ORIEL_BYPASS=1 runs the program without Oriel [O2]",
                           host, tested_hosts[i].name, first, last);
    }
}

/* " of 4 ranks on 1 node"; nothing without MPI_COMM_WORLD. */
static void ranks_format(bool has_world, char *out, size_t room)
{
    int ranks = 0;
    int here = (int)oriel_host_node_ranks();
    out[0] = '\0';
    if (!has_world || oriel_host()->Comm_size(MPI_COMM_WORLD, &ranks) != MPI_SUCCESS)
        return;
    size_t used = (size_t)snprintf(out, room, " of %d rank%s", ranks, ranks == 1 ? "" : "s");
    if (here == ranks || ranks == 1)
        snprintf(out + used, room - used, " on 1 node");
    else if (here > 0)
        snprintf(out + used, room - used, ", %d of them on this node", here);
}

static void options_format(char *out, size_t room)
{
    struct oriel_option_description option;
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; oriel_option_describe(i, oriel_options(), &option); i++)
        if (option.origin.is_set && used < room) {
            used += (size_t)snprintf(out + used, room - used, " %s=%s", option.name,
                                     oriel_option_value(&option));
            if (option.origin.file != NULL && used < room)
                used += (size_t)snprintf(out + used, room - used, " (%s:%u)", option.origin.file,
                                         option.origin.line);
        }
}

void oriel_banner_print(void)
{
    static atomic_flag printed = ATOMIC_FLAG_INIT;
    char host[128];
    char ranks[80];
    char options[700];
    const bool has_world = oriel_host_has_world();
    int rank = oriel_job_rank();
    if (atomic_flag_test_and_set(&printed))
        return;
    if (has_world)
        oriel_host()->Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank > 0)
        return;
    host_format(host, sizeof host);
    if (!oriel_options()->bypass)
        version_warn(host);
    if (oriel_options()->verbose < 1)
        return;
    ranks_format(has_world, ranks, sizeof ranks);
    options_format(options, sizeof options);
    if (oriel_options()->bypass)
        oriel_note_job("Oriel %s serves no windows, %s does; set:%s", ORIEL_VERSION, host, options);
    else
        oriel_note_job("Oriel %s serves windows%s, on %s; set:%s", ORIEL_VERSION, ranks, host,
                       options);
}
