/* The rules, and patterns of their numbers. */
#include "cli/check/check_rules.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/cli.h"

const struct oriel_check_rule oriel_check_rules[ORIEL_CHECK_RULES] = {
#define RULE(name, number_, severity_, title_, text_, example_, remedy_)                           \
    {.number = number_,                                                                            \
     .severity = severity_,                                                                        \
     .title = title_,                                                                              \
     .text = text_,                                                                                \
     .example = example_,                                                                          \
     .remedy = remedy_},
#include "check/report/rules.def"
#undef RULE
};

const struct oriel_check_rule *oriel_check_rule(uint32_t rule)
{
    return &oriel_check_rules[rule < ORIEL_CHECK_RULES ? rule : 0];
}

int oriel_check_rule_fits(const char *pattern, const char *number)
{
    if (number != NULL)
        return fnmatch(pattern, number, FNM_CASEFOLD) == 0;
    for (size_t i = 0; i < ORIEL_CHECK_RULES; i++)
        if (fnmatch(pattern, oriel_check_rules[i].number, FNM_CASEFOLD) == 0)
            return 1;
    return 0;
}

void oriel_check_rule_list_check(const char *option, const char *list)
{
    if (list[0] == '\0')
        oriel_die("%s: no rule is named; oriel check --rules lists the rules", option);
    for (size_t len = strcspn(list, ","); *list != '\0'; len = strcspn(list, ",")) {
        char *pattern = oriel_format("%.*s", (int)len, list);
        if (strcasecmp(pattern, "D1") == 0 && strcmp(option, "--ignore") == 0)
            oriel_die("--ignore: D1 is always reported, because a deadlock ends the job");
        if (!oriel_check_rule_fits(pattern, NULL))
            oriel_die("%s: no rule is named \"%s\"; oriel check --rules lists the rules", option,
                      pattern);
        free(pattern);
        list += len + (list[len] == ',');
    }
}
