/* `oriel report`: reads the traces that a run has left in a folder, and shows them: as text, or in the form that an option asks
 * for.  What is wrong with files is said on standard error, and what can be read of them is shown.
 * Called by main. */
#include "cli/report.h"

#include <argp.h>
#include <string.h>

#include "cli/cli.h"

struct request {
    const char *folder;
    const char *perfetto;
    const char *otf2;
};

enum { OPTION_PERFETTO = 256, OPTION_OTF2 };

static error_t option_take(int key, char *argument, struct argp_state *state)
{
    struct request *request = state->input;
    switch (key) {
    case OPTION_PERFETTO: request->perfetto = argument; return 0;
    case OPTION_OTF2: request->otf2 = argument; return 0;
    case ARGP_KEY_ARG:
        if (request->folder != NULL)
            argp_usage(state);
        request->folder = argument;
        return 0;
    case ARGP_KEY_NO_ARGS: argp_usage(state); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void request_parse(int argc, char **argv, struct request *out)
{
    static const struct argp_option options[] = {
        {"perfetto", OPTION_PERFETTO, "FILE", 0, "Write the events to FILE as JSON that the Perfetto viewer opens", 0},
        {"otf2", OPTION_OTF2, "FOLDER", 0, "Write the events to FOLDER, which must not be there yet, as an OTF2 archive", 0},
        {0},
    };
    static const struct argp argp = {
        .options = options,
        .parser = option_take,
        .args_doc = "FOLDER",
        .doc = "Show the traces that oriel run --trace FOLDER has written.\v"
               "Without options a summary is printed: for each window the operations, their paths, the time in each call and what "
               "of it was waiting, who waited for whom, and the busiest pairs of ranks. Traces of a run that is still going, or "
               "that was killed, are read up to what was written last. docs/traces.md tells more.",
    };
    memset(out, 0, sizeof *out);
    argp_parse(&argp, argc, argv, 0, NULL, out);
}

int oriel_command_report(int argc, char **argv)
{
    struct request request;
    struct oriel_traces *traces;
    request_parse(argc, argv, &request);
    if (!oriel_traces_open(request.folder, stderr, &traces))
        return ORIEL_EXIT_REFUSED;
    bool done = true;
    if (request.perfetto != NULL)
        done = oriel_report_perfetto(traces, request.perfetto) && done;
    if (request.otf2 != NULL)
        done = oriel_report_otf2(traces, request.otf2) && done;
    if (request.perfetto == NULL && request.otf2 == NULL)
        oriel_report_print(traces, stdout);
    oriel_traces_close(traces);
    return done ? 0 : ORIEL_EXIT_REFUSED;
}
