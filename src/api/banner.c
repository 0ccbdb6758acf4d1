/* What Oriel does for this job: its version, the ranks, the host, the options that are set; and
 * whether it is tested with the host. Nothing is communicated, so the number of nodes is known only
 * if the launcher reports that all ranks are on this one. Programs with sessions only have no
 * MPI_COMM_WORLD: the launcher's environment has the rank. */
#include "api/banner.h"

#include "base/host_version.h"
#include "base/job.h"
#include "base/log.h"
#include "base/options.h"
#include "host/host.h"
#include "oriel/oriel.h"

#include <stdatomic.h>
#include <stdio.h>

static void version_warn(const char *host)
{
    char tested[40];
    if (!oriel_host_version_is_tested(host, tested, sizeof tested))
        oriel_warn_job("%s is a version that Oriel has not been tested with (tested: %s); "
                       "ORIEL_BYPASS=1 runs the program without Oriel [O2]",
                       host, tested);
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
    oriel_host_version(host, sizeof host);
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
