/* Marks of far targets, for one process: what has been told, which locks are held, and how.  Thread-safe; origin_sync.c calls. */
#ifndef ORIEL_INTERNODE_ORIGIN_TARGET_FLAGS_H
#define ORIEL_INTERNODE_ORIGIN_TARGET_FLAGS_H

#include "internode/internode.h"

void oriel_internode_set_mark(struct oriel_internode *far, int32_t target,
                              enum oriel_internode_mark mark);

/* Takes a mark away from target, or from the first that has it for -1; that rank, or -1 when there is none. */
int32_t oriel_internode_take_mark(struct oriel_internode *far, int32_t target,
                                  enum oriel_internode_mark mark);

/* The lowest rank above this one that has the mark, or -1. */
int32_t oriel_internode_next_marked(struct oriel_internode *far, int32_t above,
                                    enum oriel_internode_mark mark);

#endif
