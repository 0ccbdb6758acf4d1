/* Several threads concurrently promote, demote, free and reuse memory of the program's allocator.
 * TESTS_ALLOCATOR names a function of a preloaded allocator that replaces libc's. */
#include "promote_common.h"

#include <dlfcn.h>
#include <pthread.h>

enum { THREADS = 3, ROUNDS = 150, KEPT = 8 };

static void allocator_is_the_one_that_was_asked_for(void **state)
{
    (void)state;
    const char *name = getenv("TESTS_ALLOCATOR");
    if (name != NULL && dlsym(RTLD_DEFAULT, name) == NULL)
        fail_msg("no library has %s: the allocator was not preloaded", name);
}

struct piece {
    char *memory;
    uint64_t len_bytes;
    int salt;
};

struct user {
    pthread_t thread;
    const struct oriel_promote_options *how;
    uint32_t random;
    const char *failure; /* a message, or NULL */
    char refusal[200];
    /* pieces refused because a thread got no processor in time: not an error on a busy node */
    int late;
    int done;
};

static uint32_t draw(struct user *user)
{
    user->random = user->random * 1103515245u + 12345u;
    return user->random >> 8;
}

static bool is_as_filled(const struct piece *piece)
{
    for (uint64_t i = 0; i < piece->len_bytes; i += 64)
        if ((unsigned char)piece->memory[i] != (unsigned char)(i / 64 + (uint64_t)piece->salt))
            return false;
    return true;
}

static void fill_piece(struct piece *piece, int salt)
{
    piece->salt = salt;
    for (uint64_t i = 0; i < piece->len_bytes; i += 64)
        piece->memory[i] = (char)(i / 64 + (uint64_t)salt);
}

static bool is_zero(const struct piece *piece)
{
    for (uint64_t i = 0; i < piece->len_bytes; i++)
        if (piece->memory[i] != 0)
            return false;
    return true;
}

/* Sizes from a part of a page to the allocators' mmap threshold. */
static const char *renew(struct user *user, struct piece *piece)
{
    static const uint64_t sizes[] = {600, 3000, 9000, 5 * ORIEL_PAGE_BYTES, 70000, 300000, 2500000};
    if (piece->memory != NULL && !is_as_filled(piece))
        return "memory that was not promoted has changed";
    free(piece->memory);
    piece->len_bytes = sizes[draw(user) % (sizeof sizes / sizeof sizes[0])] + draw(user) % 500;
    piece->memory = calloc(1, piece->len_bytes);
    if (piece->memory == NULL || !is_zero(piece))
        return "calloc returned no zeroes";
    fill_piece(piece, (int)draw(user) % 256);
    return NULL;
}

/* Small pieces contain no whole page; not all methods accept that. A thread's first allocation
 * shares a page with its arena's state. */
static const char *use(struct user *user, struct piece *piece)
{
    struct oriel_promoted promoted;
    if (oriel_promote((uintptr_t)piece->memory, piece->len_bytes, user->how, &promoted) !=
        ORIEL_OK) {
        snprintf(user->refusal, sizeof user->refusal, "a piece was refused: %s",
                 oriel_fail_message());
        bool is_late = strstr(user->refusal, "did not stop in time") != NULL;
        user->late += is_late;
        bool is_first = strstr(user->refusal, "the start of a malloc arena") != NULL;
        return is_late || is_first || piece->len_bytes < 2 * PAGE ? NULL : user->refusal;
    }
    user->done++;
    bool is_same = is_as_filled(piece);
    fill_piece(piece, piece->salt + 1);
    oriel_promote_release(&promoted);
    return is_same && is_as_filled(piece) ? NULL : "promoted memory has changed";
}

static void *allocate_always(void *context)
{
    struct user *user = context;
    struct piece pieces[KEPT] = {{.memory = NULL}};
    for (int round = 0; round < ROUNDS && user->failure == NULL; round++) {
        struct piece *piece = &pieces[draw(user) % KEPT];
        user->failure = renew(user, piece);
        if (user->failure == NULL)
            user->failure = use(user, piece);
    }
    for (int i = 0; i < KEPT; i++)
        free(pieces[i].memory);
    return NULL;
}

static void freed_memory_is_reused_and_zeroed(void **state)
{
    struct user user = {.how = means_of(state), .random = 1};
    allocate_always(&user);
    if (user.failure != NULL)
        fail_msg("%s: %s", user.failure, oriel_fail_message());
}

static void threads_allocate_and_promote(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct user users[THREADS];
    for (int i = 0; i < THREADS; i++) {
        users[i] = (struct user){.how = how, .random = 7u + (uint32_t)i};
        assert_int_equal(pthread_create(&users[i].thread, NULL, allocate_always, &users[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(users[i].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        if (users[i].failure != NULL)
            fail_msg("thread %d: %s", i, users[i].failure);
        else if (users[i].late > users[i].done)
            fail_msg("thread %d: %d pieces promoted, %d refused since others did not stop", i,
                     users[i].done, users[i].late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocator_is_the_one_that_was_asked_for),
        BY_BOTH(freed_memory_is_reused_and_zeroed),
        BY_BOTH(threads_allocate_and_promote),
    };
    return cmocka_run_group_tests(tests, promote_setup, NULL);
}
