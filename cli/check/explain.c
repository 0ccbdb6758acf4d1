/* Prints the rules from their table. rules.def holds the texts; this file only wraps lines. */
#include "cli/check/explain.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/cli.h"

struct rule {
    const char *number, *title, *text, *example, *remedy;
};

static const struct rule rules[] = {
#define RULE(name, number_, title_, text_, example_, remedy_)                                      \
    {.number = number_, .title = title_, .text = text_, .example = example_, .remedy = remedy_},
#include "check/rules/rules.def"
#undef RULE
};

enum { RULES = sizeof rules / sizeof rules[0], WIDTH = 100 };

/* Rule groups by the letter of their numbers, in the order of docs/rules.md. */
static const struct {
    char letter;
    const char *title;
} groups[] = {
    {'E', "Epochs"},
    {'C', "Conflicts between operations"},
    {'L', "Loads and stores of the program"},
    {'A', "Arguments"},
    {'H', "Hints and assertions"},
    {'D', "Deadlocks"},
};

/* Prints the text in lines of at most WIDTH columns, broken at spaces. */
static void wrapped_print(const char *text)
{
    while (*text != '\0') {
        size_t len = strlen(text);
        if (len > WIDTH) {
            len = WIDTH;
            while (len > 0 && text[len] != ' ')
                len--;
            if (len == 0)
                len = strcspn(text, " ");
        }
        printf("%.*s\n", (int)len, text);
        text += len;
        text += strspn(text, " ");
    }
}

static void indented_print(const char *lines)
{
    while (*lines != '\0') {
        size_t len = strcspn(lines, "\n");
        printf("    %.*s\n", (int)len, lines);
        lines += len + (lines[len] == '\n');
    }
}

int oriel_explain_rule(const char *number)
{
    for (size_t i = 0; i < RULES; i++) {
        if (strcasecmp(rules[i].number, number) != 0)
            continue;
        printf("%s: %s\n\n", rules[i].number, rules[i].title);
        wrapped_print(rules[i].text);
        printf("\nFor example:\n\n");
        indented_print(rules[i].example);
        printf("\nInstead:\n\n");
        wrapped_print(rules[i].remedy);
        return 0;
    }
    oriel_die("there is no rule \"%s\"; oriel check --rules lists them", number);
}

int oriel_explain_list(void)
{
    for (size_t group = 0; group < sizeof groups / sizeof groups[0]; group++)
        for (size_t i = 0; i < RULES; i++)
            if (rules[i].number[0] == groups[group].letter)
                printf("%-4s %s\n", rules[i].number, rules[i].title);
    return 0;
}

static void rule_page_print(const struct rule *rule)
{
    printf("\n### %s: %s\n\n%s\n\n```c\n%s%s```\n\n%s\n", rule->number, rule->title, rule->text,
           rule->example, rule->example[strlen(rule->example) - 1] == '\n' ? "" : "\n",
           rule->remedy);
}

int oriel_explain_page(void)
{
    printf("# The rules of `oriel check`\n\n"
           "Made by `scripts/rules` from `src/check/rules/rules.def`; `oriel check --explain RULE` "
           "prints one of them. "
           "Clauses are those of MPI-4.1. [checker.md](checker.md) tells how the checker is used "
           "and what it cannot see.\n");
    for (size_t group = 0; group < sizeof groups / sizeof groups[0]; group++) {
        bool titled = false;
        for (size_t i = 0; i < RULES; i++) {
            if (rules[i].number[0] != groups[group].letter)
                continue;
            if (!titled)
                printf("\n## %s\n", groups[group].title);
            titled = true;
            rule_page_print(&rules[i]);
        }
    }
    return 0;
}
