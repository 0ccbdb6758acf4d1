/* Lists for the tests of layouts. */
#ifndef ORIEL_TESTS_UNIT_LAYOUT_LISTS_H
#define ORIEL_TESTS_UNIT_LAYOUT_LISTS_H

#include "datatype/layout.h"

#include <stdlib.h>

#include "cmocka_all.h"

static inline struct oriel_node *list_of_two(int64_t at_a, struct oriel_node *a, int64_t at_b,
                                             struct oriel_node *b)
{
    struct oriel_branch *branches = malloc(2 * sizeof *branches);
    assert_non_null(branches);
    branches[0] = (struct oriel_branch){at_a, a};
    branches[1] = (struct oriel_branch){at_b, b};
    return oriel_node_list(2, branches);
}

#endif
