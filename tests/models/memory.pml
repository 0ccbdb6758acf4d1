/* Memory and futexes as the models see them, weaker than x86-64's. A process's stores stay in its
 * buffer, one for each word, and reach memory at any time and in any order, except that a release
 * store waits for earlier stores. A seq_cst read-modify-write and a full fence drain the buffer
 * first; a relaxed read-modify-write acts on memory and does not. Loads execute in program order
 * and see the process's own stores first: a missing acquire changes nothing here.
 *
 * A futex sleeps without a time limit, unlike the code's, and never wakes spontaneously: a lost
 * wake is an end state with a sleeper. A model defines PROCESSES, the number of processes that
 * share memory; WORDS; and STORED, at most 10: words from there on are only changed by
 * read-modify-writes. */
byte memory[WORDS];
byte asleep[PROCESSES]; /* word + 1 */

typedef buffer { short queued; byte value[STORED]; short before[STORED] };
buffer stored[PROCESSES];

#define me (_pid - PROCESSES)
#define bit_of(word) (1 << (word))
#define drained (stored[me].queued == 0)
#define load(word) (stored[me].queued & bit_of(word) -> stored[me].value[word] : memory[word])
#define load_shared(word) memory[word] /* of words that are never stored */

inline store_after(word, new, what)
{
    atomic {
        !(stored[me].queued & bit_of(word));
        stored[me].value[word] = new;
        stored[me].before[word] = what;
        stored[me].queued = stored[me].queued | bit_of(word)
    }
}
#define store_relaxed(word, new) store_after(word, new, 0)
#define store_release(word, new) store_after(word, new, stored[me].queued)
#define store_seq_cst(word, new) atomic { drained; memory[word] = new }
#define fence_full() drained

/* Whether a wait of the process has ended with an error: in models of deaths. */
#ifndef FAILED
#define FAILED false
#endif

/* was: the word's previous value. */
#define fetch_add(word, step, modulus) atomic { drained; was = memory[word]; memory[word] = (was + (step)) % (modulus) }
#define fetch_add_relaxed(word, step, modulus) \
    atomic { !(stored[me].queued & bit_of(word)); was = memory[word]; memory[word] = (was + (step)) % (modulus) }

/* The kernel compares and starts the sleep in one step. */
inline futex_wait(word, seen)
{
    atomic {
        if
        :: memory[word] == seen -> asleep[me] = word + 1
        :: else
        fi
    };
    asleep[me] == 0
}

inline futex_wake_all(word)
{
    d_step {
        sleeper = 0;
        do
        :: sleeper < PROCESSES ->
            if
            :: asleep[sleeper] == word + 1 -> asleep[sleeper] = 0
            :: else
            fi;
            sleeper++
        :: else -> break
        od;
        sleeper = 0
    }
}

/* Any one of them. */
inline futex_wake_one(word)
{
    atomic {
        if
        :: asleep[0] == word + 1 -> asleep[0] = 0
        :: asleep[1] == word + 1 -> asleep[1] = 0
        :: asleep[2] == word + 1 -> asleep[2] = 0
        :: else
        fi
    }
}

#define DRAIN(word) \
    :: d_step { \
           word < STORED && (stored[_pid].queued & bit_of(word)) && !(stored[_pid].before[word] & stored[_pid].queued); \
           memory[word] = stored[_pid].value[word]; \
           stored[_pid].value[word] = 0; \
           stored[_pid].before[word] = 0; \
           stored[_pid].queued = stored[_pid].queued & ~bit_of(word); \
           other = 0; \
           do \
           :: other < STORED -> stored[_pid].before[other] = stored[_pid].before[other] & ~bit_of(word); other++ \
           :: else -> break \
           od; \
           other = 0 \
       }

/* The stores of one process each reach memory. */
active [PROCESSES] proctype buffers()
{
    byte other;
end:
    do
    DRAIN(0)
#if STORED > 1
    DRAIN(1)
#endif
#if STORED > 2
    DRAIN(2)
#endif
#if STORED > 3
    DRAIN(3)
#endif
#if STORED > 4
    DRAIN(4)
#endif
#if STORED > 5
    DRAIN(5)
#endif
#if STORED > 6
    DRAIN(6)
#endif
#if STORED > 7
    DRAIN(7)
#endif
#if STORED > 8
    DRAIN(8)
#endif
#if STORED > 9
    DRAIN(9)
#endif
    od
}
