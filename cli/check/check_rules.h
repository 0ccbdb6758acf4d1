/* The rows of src/check/report/rules.def, for all texts and formats of the command. */
#ifndef ORIEL_CLI_CHECK_CHECK_RULES_H
#define ORIEL_CLI_CHECK_CHECK_RULES_H

#include <stddef.h>
#include <stdint.h>

struct oriel_check_rule {
    const char *number, *severity, *title, *text, *example, *remedy;
};

enum {
#define RULE(name, number, severity, title, text, example, remedy) ORIEL_CHECK_RULE_##name,
#include "check/report/rules.def"
#undef RULE
    ORIEL_CHECK_RULES
};

extern const struct oriel_check_rule oriel_check_rules[ORIEL_CHECK_RULES];

/* The rule of a record, which may be damaged. */
const struct oriel_check_rule *oriel_check_rule(uint32_t rule);

/* Ends the command, with the option's name, unless each pattern of a list such as "C*,E13" fits a
 * rule, and none is D1. */
void oriel_check_rule_list_check(const char *option, const char *list);

/* Whether a pattern such as "C*" fits a rule; NULL: any rule. Letters have no case. */
int oriel_check_rule_fits(const char *pattern, const char *number);

#endif
