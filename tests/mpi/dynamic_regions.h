/* The cases of dynamic.c that dynamic_regions.c defines. */
#ifndef ORIEL_TESTS_DYNAMIC_REGIONS_H
#define ORIEL_TESTS_DYNAMIC_REGIONS_H

#include "dynamic.h"

void thousands_of_regions_are_attached_and_detached(enum window_kind kind);
void table_changes_under_accesses(enum window_kind kind);
void list_over_all_ranks_is_built_without_locks(enum window_kind kind);

#endif
