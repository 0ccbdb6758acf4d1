/* The flags of internode targets in one process (enum oriel_internode_target_flag). Thread-safe. */
#ifndef ORIEL_INTERNODE_ORIGIN_TARGET_FLAGS_H
#define ORIEL_INTERNODE_ORIGIN_TARGET_FLAGS_H

#include "internode/internode.h"

void oriel_internode_flag_set(struct oriel_internode *internode, int32_t target,
                              enum oriel_internode_target_flag mark);

/* Clears a flag of target, or of the first rank that has it for -1. Returns that rank, or -1 if
 * there is none. */
int32_t oriel_internode_flag_take(struct oriel_internode *internode, int32_t target,
                                  enum oriel_internode_target_flag mark);

/* The lowest rank above this one that has the flag, or -1. */
int32_t oriel_internode_flag_next(struct oriel_internode *internode, int32_t above,
                                  enum oriel_internode_target_flag mark);

#endif
