/* Tables of partners (src/sync/pscw_counters.c). The owner creates entries for three peers, in a
 * table of two slots and in one of four, where all have the same first slot; two of the peers
 * search for theirs meanwhile. */
#define PROCESSES 3
#define STORED 10
#define WORDS 12
#define NEWEST 0 /* the first table or the second; 0: none */
#define CAPACITY_OF(table) (table)
#define OLDER_OF_SECOND 3
#define PLACE(table, i, capacity) (2 * (table) + 2 + (i) % (capacity))
#define MADE 10
#define MADE_SLEEPERS 11

#include "memory.pml"
#include "wait.pml"

byte ended;

inline make_entry(table, capacity, i, peer)
{
    store_release(PLACE(table, i, capacity), peer + 1); /* N2 */
    signal(MADE, MADE_SLEEPERS) /* N3 */
}

active proctype owner()
{
    byte seen, was, sleeper;
    store_relaxed(CAPACITY_OF(1), 2);
    store_release(NEWEST, 1); /* N1 */
    make_entry(1, 2, 1, 1);
    store_relaxed(CAPACITY_OF(2), 4);
    store_relaxed(OLDER_OF_SECOND, 1);
    store_release(NEWEST, 2); /* N1 */
    make_entry(2, 4, 1, 3);
    make_entry(2, 4, 2, 2);
    ended++
}

inline find() /* F2 */
{
    table = load(NEWEST);
    do
    :: table == 0 || found -> break
    :: else ->
        capacity = load(CAPACITY_OF(table));
        assert(capacity > 0);
        i = 1;
        do
        :: seen = load(PLACE(table, i, capacity));
            if
            :: seen == me + 1 || seen == 0 -> break
            :: else -> i++
            fi
        od;
        found = (load(PLACE(table, i, capacity)) == me + 1);
        table = (table == 2 -> load(OLDER_OF_SECOND) : 0)
    od;
    atomic { seen = 0; table = 0; capacity = 0; i = 0 }
}

active [2] proctype peer()
{
    byte seen, was, sleeper, made, table, capacity, i;
    bool found;
    do
    :: made = load_shared(MADE); /* F1 */
        find();
        if
        :: found -> break
        :: else -> await(MADE, MADE_SLEEPERS, seen != made) /* F3 */
        fi
    od;
    made = 0;
    ended++
}

active proctype ending()
{
    ended == PROCESSES;
    assert(memory[MADE_SLEEPERS] == 0)
}
