/* Finds words in the wrong order before anything is parsed, and prints the user's own words in the
 * right one:
 *
 *     oriel run [OPTION...] mpiexec -n 4 ./app     the launcher belongs before oriel
 *     oriel run -n 4 ./app                         so do its options
 *     oriel run --trace ./app                      the option's value is missing
 *     oriel run ./app --trace traces               the option is passed to the program (a note) */
#include "cli/run/command_line.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/job.h"
#include "cli/option_parser.h"
#include "cli/cli.h"
#include "cli/run/launcher.h"
#include "cli/run/program.h"

/* --- text made of words --- */

struct text {
    FILE *out;
    char *bytes;
    size_t len;
};

static void text_open(struct text *text)
{
    text->out = oriel_alloc_checked(open_memstream(&text->bytes, &text->len));
}

/* Adds the word, quoted for a shell if necessary, after a blank. */
static void text_add(struct text *text, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_@%+=:,./-^";
    bool is_plain = word[0] != '\0' && word[strspn(word, plain)] == '\0';
    if (ftell(text->out) > 0)
        putc(' ', text->out);
    if (!is_plain)
        putc('\'', text->out);
    for (; *word != '\0'; word++)
        fputs(*word == '\'' ? "'\\''" : (char[]){*word, '\0'}, text->out);
    if (!is_plain)
        putc('\'', text->out);
}

/* --- the launcher's place --- */

/* The number of words that are values of this option of a launcher. The table has the options with
 * two values, and those whose value may also be a program's name. An unknown option has a value
 * unless the next word is an option or a program. */
static int launcher_values_count(char *const *words)
{
    static const struct {
        const char *name;
        int values;
    } options[] = {
        {"-x", 1},       {"-map-by", 1},   {"--map-by", 1}, {"-bind-to", 1},  {"--bind-to", 1},
        {"-rank-by", 1}, {"--rank-by", 1}, {"-host", 1},    {"--host", 1},    {"-hosts", 1},
        {"-wdir", 1},    {"-env", 2},      {"-genv", 2},    {"-mca", 2},      {"--mca", 2},
        {"-gmca", 2},    {"--gmca", 2},    {"-prtemca", 2}, {"--prtemca", 2}, {"-launcher", 1},
    };
    int wanted = -1;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (strcmp(words[0], options[i].name) == 0)
            wanted = options[i].values;
    if (wanted < 0)
        wanted = strchr(words[0], '=') == NULL && words[1] != NULL && words[1][0] != '-' &&
                 !oriel_program_exists(words[1]);
    int count = 0;
    while (count < wanted && words[1 + count] != NULL)
        count++;
    return count;
}

struct order {
    const char *command;     /* "run" or "check" */
    const struct argp *argp; /* its options, where they may be among the launcher's; or NULL */
    char *const *ours;       /* the words between the command and the launcher's */
    size_t ours_count;
};

static bool is_oriel_name(const char *word)
{
    const char *base = strrchr(word, '/');
    return strcmp(base == NULL ? word : base + 1, "oriel") == 0;
}

/* Adds the launcher's options from *at on, and oriel with its options before the program. A program
 * that is oriel already is not preceded by another. */
static void until_program_add(const struct order *order, char *const **at, struct text *ours,
                              struct text *line)
{
    while (**at != NULL && (**at)[0] == '-') {
        struct oriel_word word = {.kind = ORIEL_WORD_UNKNOWN};
        if (order->argp != NULL)
            word = oriel_word_classify(order->argp, *at);
        bool is_ours = word.kind == ORIEL_WORD_OPTION;
        int count = is_ours ? word.count : 1 + launcher_values_count(*at);
        for (int i = 0; i < count; i++)
            text_add(is_ours ? ours : line, *(*at)++);
    }
    if (**at == NULL || !is_oriel_name(**at)) {
        fflush(ours->out);
        fprintf(line->out, " %s", ours->bytes);
    }
    text_add(line, **at == NULL ? "PROGRAM" : *(*at)++);
}

/* The words begin with the launcher's options. A word ":" separates programs. */
static _Noreturn void order_die(const struct order *order, const char *launcher, char *const *words)
{
    struct text ours, line;
    text_open(&ours);
    text_add(&ours, program_invocation_name);
    text_add(&ours, order->command);
    for (size_t i = 0; i < order->ours_count; i++)
        text_add(&ours, order->ours[i]);
    text_open(&line);
    text_add(&line, launcher);
    do {
        until_program_add(order, &words, &ours, &line);
        while (*words != NULL) {
            text_add(&line, *words);
            if (strcmp(*words++, ":") == 0)
                break;
        }
    } while (*words != NULL);
    fclose(line.out);
    oriel_die("put oriel after the launcher: %s", line.bytes);
}

_Noreturn void oriel_launcher_order_die(const char *command, char *const *ours, size_t ours_count,
                                        char *const *words)
{
    const struct order order = {.command = command, .ours = ours, .ours_count = ours_count};
    order_die(&order, words[0], words + 1);
}

static bool is_number(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

/* "-n 4", "-np4", "--ntasks=4": an option that Oriel does not have, with a number. */
static bool is_launcher_option(const struct argp *argp, char *const *words)
{
    size_t len = strlen(words[0]);
    if (words[0][1] == '-' && oriel_option_similar(argp, words[0]) != NULL)
        return false;
    return isdigit((unsigned char)words[0][len - 1]) || (words[1] != NULL && is_number(words[1]));
}

/* --- options and the program --- */

/* "--trace ./app": the program was taken for the option's value. */
static _Noreturn void value_missing_die(const char *command, char *const *words,
                                        const struct oriel_word *word)
{
    char *what = oriel_format("%s", word->option->arg);
    for (char *letter = what; *letter != '\0'; letter++)
        *letter = (char)tolower((unsigned char)*letter);
    oriel_die("%s %s: the %s is missing; write %s %s %s %s", words[0], words[1], what, command,
              words[0], word->option->arg, words[1]);
}

void oriel_program_missing(const struct argp_state *state)
{
    char **at = state->argv + 1;
    while (*at != NULL) {
        struct oriel_word word = oriel_word_classify(state->root_argp, at);
        if (word.count == 2 && at[2] == NULL)
            value_missing_die(state->argv[0], at, &word);
        at += word.count;
    }
    oriel_die("the program is missing: mpiexec -n 2 %s %s; %s --help lists the options",
              state->argv[0], state->root_argp->args_doc, state->argv[0]);
}

/* Only options by their full names, and only the first one. */
static void options_after_note(const struct argp *argp, const char *command, char *const *program)
{
    for (char *const *at = program + 1; *at != NULL && strcmp(*at, "--") != 0; at++) {
        if (strncmp(*at, "--", 2) != 0)
            continue;
        struct oriel_word word = oriel_word_classify(argp, at);
        if (word.kind != ORIEL_WORD_OPTION || oriel_option_is_common(word.option))
            continue;
        oriel_warning_print("%s after %s is passed to it; as an option of oriel: %s %s%s%s %s", *at,
                            program[0], command, at[0], word.count == 2 ? " " : "",
                            word.count == 2 ? at[1] : "", program[0]);
        return;
    }
}

static void command_line_check(const struct argp *argp, char **argv)
{
    const char *command = strrchr(argv[0], ' ') + 1;
    bool is_ended = false;
    char **at = argv + 1;
    while (*at != NULL && !is_ended) {
        struct oriel_word word = oriel_word_classify(argp, at);
        if (word.kind == ORIEL_WORD_PLAIN)
            break;
        if (word.kind == ORIEL_WORD_UNKNOWN && is_launcher_option(argp, at))
            order_die(&(struct order){.command = command,
                                      .argp = argp,
                                      .ours = argv + 1,
                                      .ours_count = (size_t)(at - argv - 1)},
                      "mpiexec", at);
        if (word.kind != ORIEL_WORD_OPTION && word.kind != ORIEL_WORD_END)
            return;
        if (word.count == 2 && strchr(at[1], '/') != NULL && oriel_file_is_program(at[1]))
            value_missing_die(argv[0], at, &word);
        is_ended = word.kind == ORIEL_WORD_END;
        at += word.count;
    }
    if (*at == NULL)
        return;
    if (oriel_launcher_is_named(*at))
        oriel_launcher_order_die(command, argv + 1, (size_t)(at - argv - 1) - is_ended, at);
    if (!is_ended && oriel_job_rank() <= 0)
        options_after_note(argp, argv[0], at);
}

void oriel_command_line_parse(const struct argp *argp, int argc, char **argv, void *input)
{
    command_line_check(argp, argv);
    oriel_arguments_parse(argp, argc, argv, true, input);
}
