/* The rules of the checker, for people: one explained, all listed, and docs/rules.md.
 * All of it comes from src/check/rules/rules.def.
 * Only files in cli/ include this. */
#ifndef ORIEL_CLI_CHECK_EXPLAIN_H
#define ORIEL_CLI_CHECK_EXPLAIN_H

/* Each prints to stdout and returns the exit status. */
int oriel_explain_rule(const char *number);
int oriel_explain_list(void);
int oriel_explain_page(void);

#endif
