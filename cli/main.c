/* The `oriel` command: finds the subcommand and calls it. The table of commands is the only list of
 * them: help, manual, completion and suggestions come from it. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/similar.h"
#include "cli/option_parser.h"
#include "cli/run/command_line.h"
#include "cli/run/launcher.h"
#include "cli/run/program.h"
#include "oriel/oriel.h"

struct command {
    const char *name;
    const char *meaning;
    int (*start)(int argc, char **argv);
    bool runs_program; /* in which the library complains about variables */
};

static int help_command(int argc, char **argv);
static int version_command(int argc, char **argv);

static const struct command commands[] = {
    {"run", "Run an MPI program with its windows served by Oriel", oriel_command_run, true},
    {"check", "Run an MPI program and report errors in its one-sided communication",
     oriel_command_check, true},
    {"report", "Show the results of oriel run --trace and oriel check --json", oriel_command_report,
     false},
    {"top", "Show what running jobs do, and which ranks wait for which", oriel_command_top, false},
    {"bench", "Time one-sided patterns on each host MPI, with and without Oriel",
     oriel_command_bench, false},
    {"demo", "Compare a small program on each host MPI alone and with Oriel", oriel_command_demo,
     false},
    {"info", "Show versions, hosts, mechanisms and options", oriel_command_info, false},
    {"help", "Describe a command or a variable", help_command, false},
    {"version", "Print the version", version_command, false},
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
        fprintf(out, "  %-7s %s\n", commands[i].name, commands[i].meaning);
    fprintf(out, "\n%s", text);
    fclose(out);
    return help;
}

static _Noreturn void command_refuse(char **words)
{
    struct oriel_similar similar;
    oriel_similar_start(&similar, words[0], strlen(words[0]));
    for (size_t i = 0; i < COMMANDS; i++)
        oriel_similar_offer(&similar, commands[i].name);
    if (similar.found != NULL)
        oriel_die("unknown command \"%s\"; did you mean %s? oriel --help lists the commands",
                  words[0], similar.found);
    if (oriel_launcher_is_named(words[0]))
        oriel_launcher_order_die("run", NULL, 0, words);
    if (oriel_program_exists(words[0]))
        oriel_die("unknown command \"%s\"; to run a program: oriel run %s", words[0], words[0]);
    oriel_die("unknown command \"%s\"; oriel --help lists the commands", words[0]);
}

static error_t command_parse(int key, char *argument, struct argp_state *state)
{
    if (key == ARGP_KEY_NO_ARGS)
        argp_usage(state);
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;

    if (command_find(argument) == NULL)
        command_refuse(&state->argv[state->next - 1]);
    *(int *)state->input = state->next - 1;
    state->next = state->argc; /* the remaining arguments belong to the subcommand */
    return 0;
}

static const struct argp main_argp = {
    .parser = command_parse,
    .args_doc = "COMMAND [ARGUMENT...]",
    .doc = "One-sided communication for unmodified MPI programs.\voriel COMMAND --help or oriel "
           "help COMMAND describes a command.",
    .help_filter = help_filter,
};

/* Starts the subcommand. Its own messages begin with both words. */
static int command_start(const struct command *command, int argc, char **argv)
{
    char name[32];
    snprintf(name, sizeof name, "oriel %s", command->name);
    argv[0] = name;
    return command->start(argc, argv);
}

/* --- help and version --- */

static error_t help_argument_parse(int key, char *argument, struct argp_state *state)
{
    const char **topic = state->input;
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    if (*topic != NULL)
        argp_usage(state);
    *topic = argument;
    return 0;
}

/* Offers the variables' names, and prints the one that is asked for. */
static bool variable_print(const char *name, struct oriel_similar *similar)
{
    struct oriel_option_description option;
    for (size_t i = 0; oriel_option_describe(i, oriel_options(), &option); i++) {
        oriel_similar_offer(similar, option.name);
        if (strcmp(option.name, name) != 0)
            continue;
        printf("%s=%s  (default %s%s%s)\n    %s\n", name, oriel_option_value(&option),
               option.initial, option.words[0] == '\0' ? "" : "; one of ", option.words,
               option.meaning);
        return true;
    }
    return false;
}

static _Noreturn void main_help_print(char *option)
{
    char *words[] = {program_invocation_short_name, option, NULL};
    oriel_arguments_parse(&main_argp, 2, words, true, NULL);
    exit(0);
}

static int help_command(int argc, char **argv)
{
    static const struct argp argp = {
        .parser = help_argument_parse,
        .args_doc = "[COMMAND|VARIABLE]",
        .doc = "Describe a command, as its option --help does, or an ORIEL_ variable.\vWithout an "
               "argument it lists the commands. oriel info lists the variables.",
    };
    static char option[] = "--help";
    char *words[] = {argv[0], option, NULL};
    const char *topic = NULL;
    struct oriel_similar similar;
    oriel_arguments_parse(&argp, argc, argv, false, &topic);
    if (topic == NULL)
        main_help_print(option);
    if (command_find(topic) != NULL)
        return command_start(command_find(topic), 2, words);
    oriel_similar_start(&similar, topic, strlen(topic));
    if (variable_print(topic, &similar))
        return 0;
    for (size_t i = 0; i < COMMANDS; i++)
        oriel_similar_offer(&similar, commands[i].name);
    if (similar.found != NULL)
        oriel_die("\"%s\" is neither a command nor a variable; did you mean %s? oriel --help lists "
                  "the commands",
                  topic, similar.found);
    oriel_die("\"%s\" is neither a command nor a variable; oriel --help lists the commands, oriel "
              "info the variables",
              topic);
}

static error_t version_argument_parse(int key, char *argument, struct argp_state *state)
{
    (void)argument;
    if (key == ARGP_KEY_ARG)
        argp_usage(state);
    return ARGP_ERR_UNKNOWN;
}

static int version_command(int argc, char **argv)
{
    static const struct argp argp = {
        .parser = version_argument_parse,
        .doc = "Print the version, as oriel --version does.",
    };
    oriel_arguments_parse(&argp, argc, argv, false, NULL);
    puts("oriel " ORIEL_VERSION);
    return 0;
}

/* --- main --- */

/* Opens /dev/null on each closed standard stream, in the direction that fails when used. Otherwise
 * a file opened later, such as a memory file, would get its number. A started program still finds
 * the stream closed (O_CLOEXEC). */
static void closed_streams_reserve(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", (fd == 0 ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

/* "oriel --trace traces run ./app" */
static void options_order_check(char **argv)
{
    if (argv[1] != NULL && oriel_word_classify(&main_argp, &argv[1]).kind == ORIEL_WORD_UNKNOWN &&
        oriel_option_similar(&main_argp, argv[1]) == NULL)
        oriel_die("unknown option %s; a command's options follow its name, as in oriel run "
                  "--stats; oriel --help lists the commands",
                  argv[1]);
}

int main(int argc, char **argv)
{
    int first = 0;
    closed_streams_reserve();
    oriel_stdout_check_at_exit();
    argp_err_exit_status = ORIEL_EXIT_REFUSED;
    argv[0] = program_invocation_short_name;
    options_order_check(argv);
    oriel_arguments_parse(&main_argp, argc, argv, true, &first);

    const struct command *command = command_find(argv[first]);
    if (!command->runs_program)
        oriel_options();
    return command_start(command, argc - first, argv + first);
}
