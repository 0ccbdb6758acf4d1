/* One step: the windows that it is about, what kind of epoch each sees, and the order in which plans of two windows are nested.
 * Whoever takes part in both passes their collective calls in the same order, and takes single locks in an order of all targets of
 * both (execute.c), so nobody waits in a circle.  Called by main.c. */
#include "step.h"

static int root_of(const struct soak_window *window)
{
    return window->parent >= 0 ? window->parent : (int)(window - windows);
}

static struct soak_window *window_draw(struct random *shared)
{
    int live[WINDOWS_MOST], count = 0;
    for (int i = 0; i < WINDOWS_MOST; i++)
        if (windows[i].live)
            live[count++] = i;
    return &windows[live[below(shared, count)]];
}

static struct plan *plan_draw(struct soak_window *window, int phases, bool alone, int track)
{
    static const char *const names[] = { "fence", "post-start-complete-wait", "lock", "lock_all" };
    uint64_t number = (uint64_t)(soak.step * TRACKS_MOST + track);
    struct random random = stream(10, number);
    enum epoch epoch;
    do
        epoch = (enum epoch)below(&random, 4);
    while (epoch_is_passive(epoch) && !window->locks);
    doing("%s of window %d, flavour %d, %d ranks, %d phases%s", names[epoch], window->number, window->flavour, window->group->n,
          phases, alone ? "" : ", two windows at once");
    return plan_make(window, epoch, phases, alone, number);
}

static void run(struct plan **plans, int count, int phases)
{
    for (int i = 0; i < count; i++)
        plan_prepare(plans[i]);
    for (int phase = 0; phase < phases; phase++) {
        for (int i = 0; i < count; i++)
            plan_open(plans[i], phase);
        struct execution *execution = execution_run(plans, count, phase);
        for (int i = 0; i < count; i++)
            plan_close(plans[i], phase);
        execution_end(execution);
    }
    for (int i = 0; i < count; i++)
        plan_compare(plans[i]);
}

void step_random(struct random *shared)
{
    struct soak_window *chosen[TRACKS_MOST] = { window_draw(shared), window_draw(shared) };
    struct plan *plans[TRACKS_MOST];
    bool alone = root_of(chosen[0]) == root_of(chosen[1]) || !one_in(shared, 2);
    int phases = between(shared, 1, PHASES_MOST), count = 0;
    for (int i = 0; i < (alone ? 1 : TRACKS_MOST); i++)
        if (chosen[i]->group->me >= 0)
            plans[count++] = plan_draw(chosen[i], phases, alone, i);
    if (count == 0)
        return;
    if (count == TRACKS_MOST)
        count_one(COUNT_TWO_WINDOWS);
    run(plans, count, phases);
    for (int i = 0; i < count; i++)
        plan_free(plans[i]);
}
