/* The `oriel` command: finds the subcommand and calls it. The table of commands is the only list of
 * them; the help text is generated from it. */
#include "cli/cli.h"

#include <argp.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "oriel/oriel.h"

struct command {
    const char *name;
    const char *meaning;
    int (*start)(int argc, char **argv);
};

static const struct command commands[] = {
    {"run", "Run an MPI program with its windows served by Oriel", oriel_command_run},
    {"check", "Run an MPI program and report errors in its one-sided communication",
     oriel_command_check},
    {"report", "Show the results of oriel run --trace and oriel check --json",
     oriel_command_report},
    {"top", "Show what running jobs do, and which ranks wait for which", oriel_command_top},
    {"bench", "Time one-sided patterns on each host MPI, with and without Oriel",
     oriel_command_bench},
    {"demo", "Compare a small program on each host MPI alone and with Oriel", oriel_command_demo},
    {"info", "Show versions, hosts, mechanisms and options", oriel_command_info},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

/* Inserts the list of commands between the options and the last line of the help text. */
static char *help_filter(int key, const char *text, void *input)
{
    (void)input;
    if (key != ARGP_KEY_HELP_POST_DOC)
        return (char *)text;
    char *help = NULL;
    size_t len_bytes = 0;
    FILE *out = open_memstream(&help, &len_bytes);
    if (out == NULL)
        return NULL;
    fputs("Commands:\n", out);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-6s %s\n", commands[i].name, commands[i].meaning);
    fprintf(out, "\n%s", text);
    fclose(out);
    return help;
}

static error_t command_parse(int key, char *argument, struct argp_state *state)
{
    if (key == ARGP_KEY_NO_ARGS)
        argp_usage(state);
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;

    const struct command *command = command_find(argument);
    if (command == NULL)
        oriel_die("unknown command \"%s\"; oriel --help lists the commands", argument);
    *(int *)state->input = state->next - 1;
    state->next = state->argc; /* the remaining arguments belong to the subcommand */
    return 0;
}

/* Opens /dev/null on each closed standard stream, in the direction that fails when used. Otherwise
 * a file opened later, such as a memory file, would get its number. A started program still finds
 * the stream closed (O_CLOEXEC). */
static void closed_streams_reserve(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", (fd == 0 ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        .parser = command_parse,
        .args_doc = "COMMAND [ARGUMENT...]",
        .doc = "One-sided communication for unmodified MPI programs.\voriel COMMAND --help "
               "describes a command.",
        .help_filter = help_filter,
    };
    int first = 0;
    closed_streams_reserve();
    oriel_stdout_check_at_exit();
    argp_program_version = "oriel " ORIEL_VERSION;
    argp_err_exit_status = ORIEL_EXIT_REFUSED;
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &first);

    const struct command *command = command_find(argv[first]);
    char name[32];
    snprintf(name, sizeof name, "oriel %s", command->name);
    argv[first] = name; /* the subcommand's own messages begin with both words */
    return command->start(argc - first, argv + first);
}
