/* Checks the words of a command line against a table of options, and suggests the similar option.
 * The tables of the commands are the only lists of options: help, manual, completion and
 * suggestions come from them. */
#include "cli/option_parser.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/similar.h"
#include "cli/cli.h"
#include "oriel/oriel.h"

enum { OPTION_USAGE = 1000 };

static const struct argp_option common_options[] = {
    {"help", 'h', NULL, 0, "Give this help list", -1},
    {NULL, '?', NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, -1},
    {"usage", OPTION_USAGE, NULL, 0, "Give a short usage message", -1},
    {"version", 'V', NULL, 0, "Print program version", -1},
    {0},
};

static error_t common_option_parse(int key, char *argument, struct argp_state *state)
{
    (void)argument;
    switch (key) {
    case 'h':
    case '?': argp_state_help(state, state->out_stream, ARGP_HELP_STD_HELP); return 0;
    case OPTION_USAGE:
        argp_state_help(state, state->out_stream, ARGP_HELP_USAGE | ARGP_HELP_EXIT_OK);
        return 0;
    case 'V': puts("oriel " ORIEL_VERSION); exit(0);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp common = {.options = common_options, .parser = common_option_parse};

/* The option at index, counted over the command's own options and then the common ones; NULL after
 * the last. */
static const struct argp_option *option_at(const struct argp *argp, size_t index)
{
    const struct argp_option *tables[] = {argp->options, common_options};
    for (size_t table = 0; table < 2; table++)
        for (const struct argp_option *option = tables[table];
             option != NULL && (option->name != NULL || option->key != 0); option++)
            if (index-- == 0)
                return option;
    return NULL;
}

static const struct argp_option *option_named(const struct argp *argp, const char *name, size_t len)
{
    const struct argp_option *option;
    for (size_t i = 0; (option = option_at(argp, i)) != NULL; i++)
        if (option->name != NULL && strlen(option->name) == len &&
            memcmp(option->name, name, len) == 0)
            return option;
    return NULL;
}

static const struct argp_option *option_of_letter(const struct argp *argp, char letter)
{
    const struct argp_option *option;
    for (size_t i = 0; (option = option_at(argp, i)) != NULL; i++)
        if (isprint((unsigned char)letter) && option->key == letter)
            return option;
    return NULL;
}

static bool takes_value(const struct argp_option *option)
{
    return option->arg != NULL;
}

static bool needs_value(const struct argp_option *option)
{
    return takes_value(option) && (option->flags & OPTION_ARG_OPTIONAL) == 0;
}

/* An option that needs a value and has none in its own word. */
static struct oriel_word word_with_next(const struct argp_option *option, const char *next)
{
    return (struct oriel_word){.kind = next == NULL ? ORIEL_WORD_NO_VALUE : ORIEL_WORD_OPTION,
                               .option = option,
                               .count = next == NULL ? 1 : 2};
}

static struct oriel_word long_option_classify(const struct argp *argp, char *const *words)
{
    const char *name = words[0] + 2;
    size_t len = strcspn(name, "=");
    const struct argp_option *option = option_named(argp, name, len);
    struct oriel_word word = {.kind = ORIEL_WORD_OPTION, .option = option, .count = 1};
    if (option == NULL)
        word.kind = ORIEL_WORD_UNKNOWN;
    else if (name[len] == '=' && !takes_value(option))
        word.kind = ORIEL_WORD_EXTRA_VALUE;
    else if (name[len] == '\0' && needs_value(option))
        word = word_with_next(option, words[1]);
    return word;
}

/* "-V", "-o FILE", "-oFILE", or several letters in one word. */
static struct oriel_word letters_classify(const struct argp *argp, char *const *words)
{
    struct oriel_word word = {.kind = ORIEL_WORD_OPTION, .count = 1};
    for (const char *letter = words[0] + 1; *letter != '\0'; letter++) {
        word.option = option_of_letter(argp, *letter);
        if (word.option == NULL) {
            word.kind = ORIEL_WORD_UNKNOWN;
            break;
        }
        if (takes_value(word.option))
            return letter[1] != '\0' || !needs_value(word.option)
                       ? word
                       : word_with_next(word.option, words[1]);
    }
    return word;
}

struct oriel_word oriel_word_classify(const struct argp *argp, char *const *words)
{
    if (words[0][0] != '-' || words[0][1] == '\0')
        return (struct oriel_word){.kind = ORIEL_WORD_PLAIN, .count = 1};
    if (strcmp(words[0], "--") == 0)
        return (struct oriel_word){.kind = ORIEL_WORD_END, .count = 1};
    return words[0][1] == '-' ? long_option_classify(argp, words) : letters_classify(argp, words);
}

bool oriel_option_is_common(const struct argp_option *option)
{
    return option >= common_options &&
           option < common_options + sizeof common_options / sizeof common_options[0];
}

const struct argp_option *oriel_option_similar(const struct argp *argp, const char *word)
{
    struct oriel_similar similar;
    const struct argp_option *option;
    const char *name = word + strspn(word, "-");
    oriel_similar_start(&similar, name, strcspn(name, "="));
    for (size_t i = 0; (option = option_at(argp, i)) != NULL; i++)
        if (option->name != NULL && (option->flags & OPTION_HIDDEN) == 0)
            oriel_similar_offer(&similar, option->name);
    return similar.found == NULL ? NULL : option_named(argp, similar.found, strlen(similar.found));
}

static _Noreturn void word_refuse(const struct argp *argp, const char *command, const char *text,
                                  const struct oriel_word *word)
{
    if (word->kind == ORIEL_WORD_EXTRA_VALUE)
        oriel_die("%s: --%s takes no value; %s --help describes the options", text,
                  word->option->name, command);
    if (word->kind == ORIEL_WORD_NO_VALUE)
        oriel_die("%s needs a value: %s %s; %s --help describes the options", text, text,
                  word->option->arg, command);
    const struct argp_option *similar = oriel_option_similar(argp, text);
    if (similar != NULL)
        oriel_die("unknown option %s; did you mean --%s? %s --help lists the options", text,
                  similar->name, command);
    oriel_die("unknown option %s; %s --help lists the options", text, command);
}

static void words_check(const struct argp *argp, char **argv, bool in_order)
{
    int at = 1;
    while (argv[at] != NULL) {
        struct oriel_word word = oriel_word_classify(argp, &argv[at]);
        if (word.kind == ORIEL_WORD_END || (word.kind == ORIEL_WORD_PLAIN && in_order))
            return;
        if (word.kind != ORIEL_WORD_PLAIN && word.kind != ORIEL_WORD_OPTION)
            word_refuse(argp, argv[0], argv[at], &word);
        at += word.count;
    }
}

void oriel_arguments_parse(const struct argp *argp, int argc, char **argv, bool in_order,
                           void *input)
{
    const struct argp_child children[] = {{.argp = &common}, {0}};
    struct argp whole = *argp;
    whole.children = children;
    words_check(argp, argv, in_order);
    argp_parse(&whole, argc, argv, ARGP_NO_HELP | (in_order ? ARGP_IN_ORDER : 0), NULL, input);
}
