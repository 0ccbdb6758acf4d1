/* The checker's rules as text: one explained, all listed, and docs/reference/findings.md. The
 * texts come from src/check/report/rules.def. */
#ifndef ORIEL_CLI_CHECK_EXPLAIN_H
#define ORIEL_CLI_CHECK_EXPLAIN_H

/* These print to stdout and return the exit status. */
int oriel_explain_rule(const char *number);
int oriel_explain_list(void);
int oriel_explain_page(void);

#endif
