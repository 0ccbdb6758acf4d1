/* One step: the choice of its windows, the kind of epoch of each, and the nesting of plans of two
 * windows. Members of both windows make their collective calls in the same order. They acquire
 * single locks in one order of all targets of both windows (execute.c). Both rules exclude cycles
 * of waits.  Alternatively each window has a thread of its own. No thread then waits for the other,
 * and calls of the two windows never share a communicator. */
#include "step.h"

#include <pthread.h>

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

static struct plan *plan_draw(struct soak_window *window, int phases, enum company company,
                              int track)
{
    static const char *const names[] = {"fence", "post-start-complete-wait", "lock", "lock_all"};
    static const char *const companies[] = {"", ", two windows at once",
                                            ", two windows with a thread each"};
    uint64_t number = (uint64_t)(soak.step * TRACKS_MOST + track);
    struct random random = stream(10, number);
    enum epoch epoch;
    do
        epoch = (enum epoch)below(&random, 4);
    while (epoch_is_passive(epoch) && !window->locks);
    doing("%s of window %d, flavour %d, %d ranks, %d phases%s", names[epoch], window->number,
          window->flavour, window->group->n, phases, companies[company]);
    return plan_make(window, epoch, phases, company, track, number);
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

static void *run_one(void *argument)
{
    struct plan *plan = argument;
    run(&plan, 1, plan->phases);
    return NULL;
}

static void run_apart(struct plan **plans)
{
    pthread_t other;
    count_one(COUNT_APART);
    for (int i = 0; i < TRACKS_MOST; i++)
        count_one(COUNT_APART_FENCE + (enum count)plans[i]->epoch);
    if (pthread_create(&other, NULL, run_one, plans[1]) != 0)
        fail("no thread");
    run_one(plans[0]);
    pthread_join(other, NULL);
}

void step_random(struct random *shared)
{
    struct soak_window *chosen[TRACKS_MOST] = {window_draw(shared), window_draw(shared)};
    struct plan *plans[TRACKS_MOST];
    bool alone = root_of(chosen[0]) == root_of(chosen[1]) || !one_in(shared, 2);
    enum company company = alone                                   ? COMPANY_NONE
                           : soak.threads > 1 && one_in(shared, 2) ? COMPANY_APART
                                                                   : COMPANY_MIXED;
    int phases = between(shared, 1, PHASES_MOST), count = 0;
    for (int i = 0; i < (alone ? 1 : TRACKS_MOST); i++)
        if (chosen[i]->group->me >= 0)
            plans[count++] = plan_draw(chosen[i], phases, company, i);
    if (count == 0)
        return;
    if (count == TRACKS_MOST && company == COMPANY_MIXED)
        count_one(COUNT_TWO_WINDOWS);
    if (count == TRACKS_MOST && company == COMPANY_APART)
        run_apart(plans);
    else
        run(plans, count, phases);
    for (int i = 0; i < count; i++)
        plan_free(plans[i]);
}
