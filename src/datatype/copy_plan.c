/* Executes and caches plans. Cached plans are in a list at a tree node, which only grows until the
 * node is freed. A plan is complete before a compare-and-swap makes it the head of the list and
 * publishes it (release). A thread that finds it (acquire) only reads it, so no lock is needed. If
 * two threads make the same plan at once, both are cached. */
#include "datatype/copy_plan.h"

#include "datatype/copy_plan_pass.h"
#include "transport/shared/copy_strided.h"

#include <stdatomic.h>
#include <stdlib.h>

/* ---- run ---- */

static void pass_execute(const struct pass *pass, char *to, int64_t to_step, const char *from,
                         int64_t from_step, uint64_t items)
{
    to += pass->to_bytes;
    from += pass->from_bytes;
    if (pass->form == FORM_ROW) {
        pass->loop.row(to, to_step, from, from_step, pass->at, items);
    } else if (pass->form == FORM_RUNS) {
        oriel_copy_runs(to, to_step, from, from_step, pass->count, items);
    } else {
        for (; items > 0; items--, to += to_step, from += from_step) {
            const int32_t *piece = pass->offsets;
            if (pass->form == FORM_LIST)
                pass->loop.list(to, from, pass->offsets, pass->count);
            else if (pass->form == FORM_EVEN)
                pass->loop.even(to, from, pass->even.stride_bytes, pass->even.second_bytes,
                                pass->offsets, pass->count);
            else
                for (uint64_t i = 0; i < pass->count; i++, piece += 3)
                    oriel_move_any(to + piece[0], from + piece[1], (uint32_t)piece[2]);
        }
    }
}

void oriel_plan_run(const struct oriel_plan *plan, char *to, const char *from, uint64_t items)
{
    if (plan->count == 1) {
        pass_execute(&plan->passes[0], to, plan->to_step, from, plan->from_step, items);
        return;
    }
    for (uint64_t now; items > 0; items -= now) {
        now = items < plan->chunk ? items : plan->chunk;
        for (unsigned i = 0; i < plan->count; i++)
            pass_execute(&plan->passes[i], to, plan->to_step, from, plan->from_step, now);
        if (now < items) {
            to += (int64_t)now * plan->to_step;
            from += (int64_t)now * plan->from_step;
        }
    }
}

void oriel_plan_free(struct oriel_plan *plan)
{
    free(plan);
}

/* ---- cache ---- */

static bool plan_matches(const struct oriel_plan *plan, const struct oriel_plan_key *key)
{
    return plan->key.to_number == key->to_number && plan->key.from_number == key->from_number &&
           plan->key.to_stride_bytes == key->to_stride_bytes &&
           plan->key.from_stride_bytes == key->from_stride_bytes;
}

const struct oriel_plan *oriel_plan_find(const struct oriel_node *node,
                                         const struct oriel_plan_key *key, uint64_t counted,
                                         uint64_t *items)
{
    const struct oriel_memo *memo = atomic_load_explicit(&node->memos, memory_order_acquire);
    for (; memo != NULL; memo = memo->next) {
        const struct oriel_plan *plan = (const struct oriel_plan *)memo;
        if (!plan_matches(plan, key))
            continue;
        *items = counted == plan->counted ? plan->items : counted / (plan->counted / plan->items);
        return plan;
    }
    return NULL;
}

static bool cache_has_room(const struct oriel_node *node, const struct oriel_memo *memo)
{
    unsigned cached_count = 0;
    for (; memo != NULL; memo = memo->next)
        cached_count++;
    return node->number != 0 && cached_count < ORIEL_PLANS_CACHED;
}

/* The cached plans of a node are not part of its value, which is constant. */
static struct oriel_node *node_mutable(const struct oriel_node *node)
{
    return (struct oriel_node *)(uintptr_t)node;
}

bool oriel_plan_pays(const struct oriel_node *node)
{
    return cache_has_room(node, atomic_load_explicit(&node->memos, memory_order_acquire)) &&
           atomic_exchange_explicit(&node_mutable(node)->walked, true, memory_order_relaxed);
}

bool oriel_plan_cache_insert(const struct oriel_node *node, const struct oriel_plan_key *key,
                             uint64_t counted, uint64_t items, struct oriel_plan *plan)
{
    struct oriel_memo *first = atomic_load_explicit(&node->memos, memory_order_acquire);
    plan->key = *key;
    plan->counted = counted;
    plan->items = items;
    do {
        if (!cache_has_room(node, first))
            return false;
        plan->memo.next = first;
    } while (!atomic_compare_exchange_weak_explicit(&node_mutable(node)->memos, &first, &plan->memo,
                                                    memory_order_release, memory_order_acquire));
    return true;
}
