/* A visit announces itself, checks for others, pauses and checks again. The
 * announcements are sequentially consistent, so of two ranks that are inside together at least one
 * sees the other. */
#include "exclusion_check.h"

/* Where races are reported, the announcements must not order anything: then only the lock orders
 * the plain words. */
enum { ORDER = TEAM_SANITIZED ? memory_order_relaxed : memory_order_seq_cst };

static uint32_t enter(_Atomic uint32_t *visitors)
{
    return atomic_fetch_add_explicit(visitors, 1, ORDER);
}

static uint32_t leave(_Atomic uint32_t *visitors)
{
    return atomic_fetch_sub_explicit(visitors, 1, ORDER);
}

static bool is_empty(const _Atomic uint32_t *visitors)
{
    return atomic_load_explicit(visitors, ORDER) == 0;
}

void exclusion_check_reader(struct exclusion *exclusion)
{
    const volatile uint64_t *plain = exclusion->plain;
    enter(&exclusion->readers);
    team_expect(is_empty(&exclusion->writers));
    uint64_t first = plain[0];
    oriel_delay();
    team_expect(plain[1] == first);
    team_expect(is_empty(&exclusion->writers));
    leave(&exclusion->readers);
}

void exclusion_check_writer(struct exclusion *exclusion)
{
    volatile uint64_t *plain = exclusion->plain;
    team_expect(enter(&exclusion->writers) == 0);
    team_expect(is_empty(&exclusion->readers));
    uint64_t count = plain[0];
    team_expect(plain[1] == count);
    plain[0] = count + 1;
    oriel_delay();
    plain[1] = count + 1;
    team_expect(is_empty(&exclusion->readers));
    team_expect(leave(&exclusion->writers) == 1);
}

void exclusion_check_gate_writer(struct exclusion *exclusion)
{
    enter(&exclusion->writers);
    team_expect(is_empty(&exclusion->readers));
    oriel_delay();
    team_expect(is_empty(&exclusion->readers));
    leave(&exclusion->writers);
}
