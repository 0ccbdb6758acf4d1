/* `oriel top`: shows the jobs on this node, and which ranks wait for which. It observes from
 * outside: no job takes part, and the only cost is processor time. */
#include "cli/top/top.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/option_parser.h"
#include "cli/cli.h"
#include "cli/json.h"
#include "cli/top/screen.h"
#include "oriel/oriel.h"

enum { REFRESH_MS = 1000 };

struct request {
    const char *job; /* NULL: all jobs */
    bool once, json;
    enum oriel_top_order order;
    const char *color; /* of --color, or NULL */
};

enum { OPTION_ONCE = 256, OPTION_JSON, OPTION_SORT, OPTION_COLOR };

static enum oriel_top_order order_parse(const char *name)
{
    for (int order = 0; order < ORIEL_TOP_ORDERS; order++)
        if (strcmp(name, oriel_top_orders[order]) == 0)
            return (enum oriel_top_order)order;
    oriel_die("--sort: \"%s\" is neither rank, wait, operations nor bytes", name);
}

static error_t top_option_parse(int key, char *argument, struct argp_state *state)
{
    struct request *request = state->input;
    switch (key) {
    case OPTION_ONCE: request->once = true; return 0;
    case OPTION_JSON: request->json = true; return 0;
    case OPTION_SORT: request->order = order_parse(argument); return 0;
    case OPTION_COLOR: request->color = argument; return 0;
    case ARGP_KEY_ARG:
        if (request->job != NULL)
            argp_usage(state);
        request->job = argument;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void top_request_parse(int argc, char **argv, struct request *out)
{
    static const struct argp_option options[] = {
        {"once", OPTION_ONCE, NULL, 0, "Print once and exit", 0},
        {"json", OPTION_JSON, NULL, 0, "Print once as JSON", 0},
        {"sort", OPTION_SORT, "KEY", 0,
         "Sort ranks by rank (default), wait, operations or bytes; the highest first", 0},
        {"color", OPTION_COLOR, "WHEN", 0,
         "Use colours: auto (default: on a terminal, unless NO_COLOR is set), always or never", 0},
        {0},
    };
    static const struct argp argp = {
        .options = options,
        .parser = top_option_parse,
        .args_doc = "[JOB|PROCESS]",
        .doc = "Show what the jobs on this node do, and which ranks wait for which.\vWithout an "
               "argument it shows all jobs of the user, or of all users for root. An argument "
               "selects a job by its number, or by a process, which may be a rank or the launcher. "
               "On a terminal the display is updated every second until q is pressed, and h lists "
               "the other keys; otherwise it is printed once. Lines are wrapped to the width of "
               "the terminal. Rates require counters: start the job with oriel run --watch or "
               "--stats. docs/guides/watching.md describes the display.",
    };
    *out = (struct request){.job = NULL};
    oriel_arguments_parse(&argp, argc, argv, false, out);
}

/* --- selecting jobs --- */

static bool is_number(const char *text)
{
    return text[0] != '\0' && strspn(text, "0123456789") == strlen(text) && strlen(text) < 10;
}

/* A job that was named by a process is identified by the job's number from then on, because
 * launchers may end before their ranks. */
static bool job_is_selected(const struct oriel_jobs *jobs, size_t first, size_t end,
                            const struct request *request)
{
    char name[16];
    if (!jobs->processes[first].has_state)
        return false;
    snprintf(name, sizeof name, "%08" PRIx32, (uint32_t)(jobs->processes[first].job >> 32));
    return request->job == NULL || strcmp(name, request->job) == 0 ||
           (is_number(request->job) &&
            oriel_jobs_has(jobs, first, end, (int32_t)atoi(request->job)));
}

static _Noreturn void no_job_die(const struct request *request)
{
    struct stat owner;
    char path[64];
    if (request->job == NULL)
        oriel_die("no process of %s has an Oriel window [O30]",
                  geteuid() == 0 ? "this node" : "yours");
    snprintf(path, sizeof path, "/proc/%d", is_number(request->job) ? atoi(request->job) : 0);
    if (stat(path, &owner) != 0)
        oriel_die("there is no job or process %s with Oriel windows here [O30]", request->job);
    if (geteuid() != 0 && owner.st_uid != geteuid())
        oriel_die("process %s belongs to another user: only root can inspect it", request->job);
    oriel_die("neither process %s nor its descendants have an Oriel window [O30]", request->job);
}

static void job_waits_open(struct oriel_waits *waits, const struct oriel_jobs *jobs, size_t first,
                           size_t end)
{
    oriel_waits_open(waits, &jobs->processes[first], end - first);
}

/* Calls report for each process that cannot be read; its job is unknown. Returns the number of
 * them. */
static size_t unreadable_visit(const struct oriel_jobs *jobs, const struct request *request,
                               void (*report)(const struct oriel_process *process, void *context),
                               void *context)
{
    size_t count = 0;
    for (size_t i = 0; i < jobs->count; i++) {
        const struct oriel_process *process = &jobs->processes[i];
        if (process->why[0] == '\0' || process->has_ended ||
            (request->job != NULL &&
             !(is_number(request->job) &&
               oriel_jobs_has(jobs, i, i + 1, (int32_t)atoi(request->job)))))
            continue;
        report(process, context);
        count++;
    }
    return count;
}

/* --- output --- */

static void unreadable_print(const struct oriel_process *process, void *context)
{
    fprintf(context, "process %d: %s\n", (int)process->pid, process->why);
}

static size_t jobs_print(const struct oriel_jobs *jobs, const struct request *request,
                         struct oriel_waits *waits, const struct oriel_text_style *style, FILE *out)
{
    size_t shown = 0;
    for (size_t first = 0, end; first < jobs->count; first = end) {
        end = oriel_jobs_end(jobs, first);
        if (!job_is_selected(jobs, first, end, request))
            continue;
        job_waits_open(waits, jobs, first, end);
        oriel_top_print(waits, request->order, style, out);
        shown++;
    }
    return shown + unreadable_visit(jobs, request, unreadable_print, out);
}

static void unreadable_append(const struct oriel_process *process, void *context)
{
    oriel_json_append(context,
                      json_pack("{s:i, s:s}", "process", (int)process->pid, "why", process->why));
}

static size_t jobs_print_json(const struct oriel_jobs *jobs, const struct request *request,
                              struct oriel_waits *waits)
{
    json_t *list = json_array();
    json_t *unreadable = json_array();
    for (size_t first = 0, end; first < jobs->count; first = end) {
        end = oriel_jobs_end(jobs, first);
        if (!job_is_selected(jobs, first, end, request))
            continue;
        job_waits_open(waits, jobs, first, end);
        oriel_json_append(list, oriel_top_json(waits));
    }
    unreadable_visit(jobs, request, unreadable_append, unreadable);
    size_t shown = json_array_size(list) + json_array_size(unreadable);
    json_t *all = oriel_alloc_checked(json_pack("{s:s, s:o, s:o}", "oriel", ORIEL_VERSION, "jobs",
                                                list, "unreadable", unreadable));
    if (shown > 0) {
        json_dumpf(all, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    json_decref(all);
    return shown;
}

static bool any_counts(const struct oriel_jobs *jobs)
{
    for (size_t i = 0; i < jobs->count; i++)
        if (jobs->processes[i].counts)
            return true;
    return false;
}

/* Rates need two readings. */
static int jobs_print_once(struct oriel_jobs *jobs, const struct request *request,
                           struct oriel_waits *waits)
{
    oriel_jobs_find(jobs);
    oriel_jobs_read(jobs);
    if (any_counts(jobs)) {
        usleep(REFRESH_MS * 1000);
        oriel_jobs_read(jobs);
    }
    const struct oriel_text_style style = {
        .color = oriel_color_choose(request->color, isatty(STDOUT_FILENO) != 0),
        .width = oriel_text_width(STDOUT_FILENO)};
    size_t shown = request->json ? jobs_print_json(jobs, request, waits)
                                 : jobs_print(jobs, request, waits, &style, stdout);
    if (shown == 0)
        no_job_die(request);
    return 0;
}

/* --- full screen --- */

static const char help[] = "  q  quit\n"
                           "  h  show or hide this help\n"
                           "  r  sort by rank\n"
                           "  w  sort by the time of the wait, the longest first\n"
                           "  o  sort by operations per second\n"
                           "  b  sort by bytes per second\n"
                           "\n"
                           "op/s and B/s need counters: start the job with oriel run --watch or\n"
                           "--stats. The busiest windows are listed before the ranks.\n";

struct screen {
    bool is_help, color;
    uint64_t next_ns; /* when the processes are read again */
};

/* Shows the processes as they were read last. Returns the number of jobs. */
static size_t screen_draw(const struct oriel_jobs *jobs, const struct request *request,
                          const struct screen *screen, struct oriel_waits *waits)
{
    char *text = NULL;
    size_t len = 0;
    FILE *memory = oriel_alloc_checked(open_memstream(&text, &len));
    const struct oriel_text_style style = {.color = screen->color, .width = oriel_screen_columns()};
    fprintf(memory, "oriel top: q quits, h: help, by %s\n\n", oriel_top_orders[request->order]);
    if (screen->is_help)
        fprintf(memory, "%s\n", help);
    size_t shown = jobs_print(jobs, request, waits, &style, memory);
    if (shown == 0)
        fputs("no job\n", memory);
    fclose(memory);
    oriel_screen_show(text);
    free(text);
    return shown;
}

static size_t screen_update(struct oriel_jobs *jobs, const struct request *request,
                            struct screen *screen, struct oriel_waits *waits)
{
    if (oriel_now_ns() >= screen->next_ns) {
        oriel_jobs_find(jobs);
        oriel_jobs_read(jobs);
        screen->next_ns = oriel_now_ns() + REFRESH_MS * UINT64_C(1000000);
    }
    size_t shown = screen_draw(jobs, request, screen, waits);
    oriel_jobs_remove_ended(jobs);
    return shown;
}

/* Waits for a key until the next reading is due. Returns false when the screen ends. */
static bool key_handle(struct request *request, struct screen *screen)
{
    uint64_t now_ns = oriel_now_ns();
    uint64_t rest_ns = screen->next_ns > now_ns ? screen->next_ns - now_ns : 0;
    switch (oriel_screen_key((int)(rest_ns / 1000000) + 1)) {
    case ORIEL_SCREEN_END:
    case 'q':
    case 'Q':
    case 3: return false; /* Ctrl-C */
    case 'h':
    case '?': screen->is_help = !screen->is_help; return true;
    case 'r': request->order = ORIEL_TOP_BY_RANK; return true;
    case 'w': request->order = ORIEL_TOP_BY_WAIT; return true;
    case 'o': request->order = ORIEL_TOP_BY_OPERATIONS; return true;
    case 'b': request->order = ORIEL_TOP_BY_BYTES; return true;
    default: return true;
    }
}

static int screen_run(struct oriel_jobs *jobs, struct request *request, struct oriel_waits *waits)
{
    oriel_jobs_find(jobs);
    oriel_jobs_read(jobs);
    bool any = false;
    static char name[16];
    for (size_t first = 0, end; first < jobs->count; first = end) {
        end = oriel_jobs_end(jobs, first);
        if (!job_is_selected(jobs, first, end, request))
            continue;
        any = true;
        /* Launchers may end before their ranks, and processes before their job. */
        if (request->job != NULL) {
            snprintf(name, sizeof name, "%08" PRIx32, (uint32_t)(jobs->processes[first].job >> 32));
            request->job = name;
        }
    }
    if (!any && request->job != NULL)
        no_job_die(request);
    struct screen screen = {.color = oriel_color_choose(request->color, true)};
    oriel_screen_open();
    bool is_running = true;
    while (is_running && (screen_update(jobs, request, &screen, waits) > 0 || request->job == NULL))
        is_running = key_handle(request, &screen);
    oriel_screen_close();
    if (is_running)
        printf("job %s has ended\n", request->job);
    return 0;
}

int oriel_command_top(int argc, char **argv)
{
    struct request request;
    struct oriel_jobs jobs = {.count = 0};
    top_request_parse(argc, argv, &request);
    struct oriel_waits *waits = oriel_alloc(sizeof *waits);
    bool on_screen = !request.once && !request.json && oriel_screen_available();
    int status =
        on_screen ? screen_run(&jobs, &request, waits) : jobs_print_once(&jobs, &request, waits);
    oriel_jobs_close(&jobs);
    free(waits);
    return status;
}
