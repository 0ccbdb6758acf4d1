/* Visits to a room: each announces itself, looks around, loses some time and looks around again.  The announcements are
 * sequentially consistent, so that of two who are inside together at least one sees the other.  Tests of locks call. */
#include "room.h"

void room_read(struct room *room)
{
    const volatile uint64_t *plain = room->plain;
    atomic_fetch_add(&room->readers, 1);
    team_expect(atomic_load(&room->writers) == 0);
    uint64_t first = plain[0];
    oriel_delay();
    team_expect(plain[1] == first);
    team_expect(atomic_load(&room->writers) == 0);
    atomic_fetch_sub(&room->readers, 1);
}

void room_write(struct room *room)
{
    volatile uint64_t *plain = room->plain;
    team_expect(atomic_fetch_add(&room->writers, 1) == 0);
    team_expect(atomic_load(&room->readers) == 0);
    uint64_t count = plain[0];
    team_expect(plain[1] == count);
    plain[0] = count + 1;
    oriel_delay();
    plain[1] = count + 1;
    team_expect(atomic_load(&room->readers) == 0);
    team_expect(atomic_fetch_sub(&room->writers, 1) == 1);
}

void room_write_together(struct room *room)
{
    atomic_fetch_add(&room->writers, 1);
    team_expect(atomic_load(&room->readers) == 0);
    oriel_delay();
    team_expect(atomic_load(&room->readers) == 0);
    atomic_fetch_sub(&room->writers, 1);
}
