/* A team: n processes made by fork, each with its own memory file and one window over all, as after
 * MPI_Win_create. For thread sanitisers it is n threads of one such process. The ranks share struct
 * team, whose words are not under test. A rank that finds an error prints it and ends its process
 * with status 1; team_run then fails the calling test. */
#ifndef ORIEL_TESTS_PROTOCOL_TEAM_H
#define ORIEL_TESTS_PROTOCOL_TEAM_H

#include "base/delay.h"
#include "sync/sync.h"

#include <stdio.h>
#include <unistd.h>

#include "../unit/cmocka_all.h"

/* Whether the compiler reports every race between threads. */
#if defined(__SANITIZE_THREAD__)
#define TEAM_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TEAM_SANITIZED 1
#endif
#endif
#ifndef TEAM_SANITIZED
#define TEAM_SANITIZED 0
#endif

enum { TEAM_MOST = 16, TEAM_FLAGS = 8, TEAM_MEMORY_BYTES = 4096 };

struct team {
    int32_t n;
    uint64_t seed;
    _Atomic uint32_t arrivals; /* ranks that have arrived at any barrier so far */
    _Atomic uint32_t dying;    /* bit r: rank r ends by SIGKILL, intentionally */
    _Atomic uint32_t flags[TEAM_FLAGS];
    _Atomic uint32_t last_round; /* 0 until rank 0 has decided */
    /* exchanged between ranks while the window is created */
    struct oriel_member members[TEAM_MOST];
    struct oriel_target targets[TEAM_MOST];
    uint64_t common_offset;
};

extern struct team *team;
extern _Thread_local int32_t team_rank;

/* The number of futex waits of this rank that lasted to the time limit, which the harness sets to
 * 100 ms. */
extern _Thread_local uint32_t team_timeouts;

typedef void team_body(struct oriel_window *window);

/* Whether ranks are threads: in a build with -fsanitize=thread, or as PROTOCOL_THREADS selects (1
 * or 0). Threads see each other's stores as processes do; they cannot die one by one. */
bool team_has_threads(void);

/* Runs body in n ranks, each of which must return, or end by team_die, before the time limit. */
void team_run(int32_t n, team_body *body);

/* Runs body with 2, 3, 4, 8 and 16 ranks. */
void team_run_sizes(team_body *body);

/* Whether a killed process stays a zombie until all others have ended (the default), or is reaped
 * at once. */
extern bool team_leaves_zombies;

/* Returns when all n ranks have called it. */
void team_barrier(void);

/* Flags start at 0. Waits for flags are not timed: a waiting rank yields the processor. */
void team_flag_set(int flag, uint32_t value);
void team_flag_await(int flag, uint32_t value);

/* Ends this process as SIGKILL does. */
void team_die(void) __attribute__((noreturn));

/* Kills another rank, whatever it does, and returns when it is dead. */
void team_kill(int32_t rank);

/* Stops another rank by SIGSTOP and returns when each of its threads is stopped: the signal itself
 * is asynchronous. */
void team_stop(int32_t rank);

/* Replaces the random delay if set: a test may hold a thread back at one step. */
extern void (*team_at_delay)(void);

/* A random number of this rank. */
uint64_t team_random(void);

/* Rounds of a test: fewer if there are more ranks than processors. */
int team_rounds(int most);

/* Whether this rank has used its share of a test's time: on busy nodes it ends the rounds, after at
 * least one. */
bool team_time_is_up(void);

/* The same for collective rounds, counted from 0: all ranks call it before each round, and meet in
 * it. */
bool team_continues(uint32_t round);

void team_complain(const char *file, int line, const char *what) __attribute__((noreturn));
#define team_expect(condition)                                                                     \
    ((condition) ? (void)0 : team_complain(__FILE__, __LINE__, #condition))

/* Runs the tests, or those whose names match argv[1], with random delays from PROTOCOL_SEED or a
 * new seed, which is printed. */
#define team_main(tests, argc, argv)                                                               \
    (team_prepare(argc, argv), cmocka_run_group_tests(tests, NULL, NULL))
void team_prepare(int argc, char **argv);

#endif
