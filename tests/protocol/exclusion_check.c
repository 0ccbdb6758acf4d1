/* Visits to a room: each visit announces itself, checks for others, pauses and checks again. The
 * announcements are sequentially consistent, so of two ranks that are inside together at least one
 * sees the other. */
#include "exclusion_check.h"

/* Where races are reported, the announcements must not order anything: then only the lock orders
 * the plain words. */
enum { ORDER = TEAM_SANITIZED ? memory_order_relaxed : memory_order_seq_cst };

static uint32_t come(_Atomic uint32_t *visitors)
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

void room_read(struct room *room)
{
    const volatile uint64_t *plain = room->plain;
    come(&room->readers);
    team_expect(is_empty(&room->writers));
    uint64_t first = plain[0];
    oriel_delay();
    team_expect(plain[1] == first);
    team_expect(is_empty(&room->writers));
    leave(&room->readers);
}

void room_write(struct room *room)
{
    volatile uint64_t *plain = room->plain;
    team_expect(come(&room->writers) == 0);
    team_expect(is_empty(&room->readers));
    uint64_t count = plain[0];
    team_expect(plain[1] == count);
    plain[0] = count + 1;
    oriel_delay();
    plain[1] = count + 1;
    team_expect(is_empty(&room->readers));
    team_expect(leave(&room->writers) == 1);
}

void room_write_together(struct room *room)
{
    come(&room->writers);
    team_expect(is_empty(&room->readers));
    oriel_delay();
    team_expect(is_empty(&room->readers));
    leave(&room->writers);
}
