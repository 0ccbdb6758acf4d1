/* Suppression files: lines of the form
 *
 *     RULE [function=PATTERN] [file=PATTERN] [library=PATTERN] [window=PATTERN] because REASON
 *
 * Patterns are the shell's, in quotes if they have spaces. Lines that are empty or begin with # are
 * skipped. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/check/check_rules.h"
#include "cli/check/standing.h"
#include "cli/cli.h"

/* The next word, which may be key="a b"; quotes are removed in place. NULL: the line has ended.
 * *is_open: a quote has no end. */
static char *word_next(char **at, bool *is_open)
{
    char *in = *at + strspn(*at, " \t");
    char *word = in;
    char *out = in;
    bool is_quoted = false;
    if (*in == '\0')
        return NULL;
    for (; *in != '\0' && (is_quoted || (*in != ' ' && *in != '\t')); in++)
        if (*in == '"')
            is_quoted = !is_quoted;
        else
            *out++ = *in;
    *at = in + (*in != '\0');
    *out = '\0';
    *is_open = is_quoted;
    return word;
}

static char **field_find(struct oriel_suppression *item, const char *key, size_t len)
{
    const struct {
        const char *key;
        char **field;
    } fields[] = {{"function", &item->function},
                  {"file", &item->file},
                  {"library", &item->library},
                  {"window", &item->window}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (strlen(fields[i].key) == len && strncmp(fields[i].key, key, len) == 0)
            return fields[i].field;
    return NULL;
}

/* Parses one line. Returns NULL or the reason why it is wrong, to be freed. */
static char *line_parse(char *line, struct oriel_suppression *item)
{
    bool is_open = false;
    char *rule = word_next(&line, &is_open);
    if (strcasecmp(rule, "D1") == 0)
        return oriel_format("D1 is always reported, because a deadlock ends the job");
    if (!oriel_check_rule_fits(rule, NULL))
        return oriel_format("no rule is named \"%s\"; oriel check --rules lists the rules", rule);
    item->rule = oriel_format("%s", rule);
    for (char *word; (word = word_next(&line, &is_open)) != NULL;) {
        char *equals = strchr(word, '=');
        if (is_open)
            return oriel_format("a quote has no end");
        if (strcmp(word, "because") == 0) {
            line += strspn(line, " \t");
            item->reason = *line == '\0' ? NULL : oriel_format("%s", line);
            break;
        }
        char **field = equals == NULL ? NULL : field_find(item, word, (size_t)(equals - word));
        if (field == NULL)
            return oriel_format("\"%s\" is neither function=, file=, library= or window= nor "
                                "\"because REASON\"",
                                word);
        if (equals[1] == '\0')
            return oriel_format("%s has no pattern", word);
        if (*field != NULL)
            return oriel_format("%.*s is given twice", (int)(equals - word + 1), word);
        *field = oriel_format("%s", equals + 1);
    }
    return item->reason != NULL ? NULL : oriel_format("the reason is missing: because REASON");
}

static void problem_append(char **problems, const char *path, unsigned number, char *problem)
{
    char *longer = oriel_format("%s%s%s:%u: %s", *problems == NULL ? "" : *problems,
                                *problems == NULL ? "" : "\noriel: ", path, number, problem);
    free(*problems);
    free(problem);
    *problems = longer;
}

char *oriel_suppressions_read(const char *path, struct oriel_suppressions *out)
{
    char *problems = NULL;
    char *line = NULL;
    size_t room = 0;
    unsigned number = 0;
    ssize_t len;
    errno = 0;
    FILE *in = fopen(path, "re");
    *out = (struct oriel_suppressions){.path = oriel_format("%s", path)};
    if (in == NULL)
        return oriel_format("%s: %s", path, strerror(errno));
    while ((len = getline(&line, &room, in)) >= 0) {
        struct oriel_suppression item = {.line = ++number};
        while (len > 0 && strchr("\r\n \t", line[len - 1]) != NULL)
            line[--len] = '\0';
        const char *first = line + strspn(line, " \t");
        if (*first == '\0' || *first == '#')
            continue;
        char *problem = line_parse(line, &item);
        if (problem != NULL) {
            problem_append(&problems, path, number, problem);
            continue;
        }
        out->items = oriel_alloc_checked(
            realloc(out->items, (out->count + 1) * sizeof *out->items)); /* NOLINT */
        out->items[out->count++] = item;
    }
    if (ferror(in))
        problem_append(&problems, path, number + 1, oriel_format("%s", strerror(errno)));
    free(line);
    fclose(in);
    return problems;
}
