/* Parses a command's arguments by its table of options, an argp. argp prints the help and stores
 * the values; this file checks the words first, so that each mistake is one line with a suggestion.
 * It adds the options that all commands have: --help, --usage and --version. */
#ifndef ORIEL_CLI_OPTION_PARSER_H
#define ORIEL_CLI_OPTION_PARSER_H

#include <argp.h>
#include <stdbool.h>

/* The kind of one word of a command line. Options must be spelt out: no abbreviations. */
enum oriel_word_kind {
    ORIEL_WORD_PLAIN,       /* not an option */
    ORIEL_WORD_END,         /* "--", after which no word is an option */
    ORIEL_WORD_OPTION,      /* a correct option */
    ORIEL_WORD_UNKNOWN,     /* an option that the table does not have */
    ORIEL_WORD_NO_VALUE,    /* an option whose value is missing */
    ORIEL_WORD_EXTRA_VALUE, /* an option with a value that it does not take */
};

struct oriel_word {
    enum oriel_word_kind kind;
    const struct argp_option *option; /* NULL for the kinds PLAIN, END and UNKNOWN */
    int count;                        /* 2 when the next word is the option's value, else 1 */
};

struct oriel_word oriel_word_classify(const struct argp *argp, char *const *words);

/* True for an option of all commands. */
bool oriel_option_is_common(const struct argp_option *option);

/* The option whose name is similar to the word's; NULL for none. */
const struct argp_option *oriel_option_similar(const struct argp *argp, const char *word);

/* Checks the words and parses them with argp_parse; ends the command for a mistake. argv[0] is the
 * name for the messages. in_order: the words after the first plain one are not the command's. */
void oriel_arguments_parse(const struct argp *argp, int argc, char **argv, bool in_order,
                           void *input);

#endif
