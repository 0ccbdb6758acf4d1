/* MPI's tool information interface: Oriel's options are control variables and its counters are
 * performance variables, before those of the host. The interface starts before MPI_Init and is read
 * again after MPI_Finalize. */
#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* These functions return their codes as they are. MPI_Error_class need not know them. */
#define CHECK_CODE(wanted, call) CHECK_EQUAL(call, wanted)

enum { NAME_BYTES = 256, TEXT_BYTES = 4096, THREADS = 4, ROUNDS = 200, MOST = 4096 };

typedef unsigned long long number;

/* --- before MPI_Init and after MPI_Finalize --- */

static char early_names[3][MOST][64]; /* of cvars, pvars and categories */
static int early_count[3];
static int early_failures;

#define EARLY(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("not ok outside MPI: %s:%d: %s\n", __FILE__, __LINE__, #condition);             \
            early_failures++;                                                                      \
        }                                                                                          \
    } while (0)

static int count_of(int sort)
{
    int count = -1;
    int code = sort == 0   ? MPI_T_cvar_get_num(&count)
               : sort == 1 ? MPI_T_pvar_get_num(&count)
                           : MPI_T_category_get_num(&count);
    return code == MPI_SUCCESS ? count : -1;
}

static int name_of(int sort, int index, char *name, int *len)
{
    if (sort == 0)
        return MPI_T_cvar_get_info(index, name, len, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    if (sort == 1)
        return MPI_T_pvar_get_info(index, name, len, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                                   NULL, NULL);
    return MPI_T_category_get_info(index, name, len, NULL, NULL, NULL, NULL, NULL);
}

/* The name at an index; "" if the host has a hole there. */
static void name_read(int sort, int index, char *name, int room)
{
    name[0] = '\0';
    (void)name_of(sort, index, name, &room);
}

static int cvar_write(const char *name, const void *value)
{
    int index, count;
    MPI_T_cvar_handle handle;
    int code = MPI_T_cvar_get_index(name, &index);
    if (code == MPI_SUCCESS)
        code = MPI_T_cvar_handle_alloc(index, NULL, &handle, &count);
    if (code != MPI_SUCCESS)
        return code;
    code = MPI_T_cvar_write(handle, value);
    MPI_T_cvar_handle_free(&handle);
    return code;
}

static int cvar_write_int(const char *name, int value)
{
    return cvar_write(name, &value);
}

static int cvar_read_int(const char *name)
{
    int index, count, value = -1;
    MPI_T_cvar_handle handle;
    if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS ||
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS)
        return -1;
    MPI_T_cvar_read(handle, &value);
    MPI_T_cvar_handle_free(&handle);
    return value;
}

/* A variable of each host, and its value in the environment. */
static const char *host_variable(void)
{
    int index;
    return MPI_T_cvar_get_index("MPIR_CVAR_BCAST_MIN_PROCS", &index) == MPI_SUCCESS
               ? "MPIR_CVAR_BCAST_MIN_PROCS"
               : "opal_abort_delay";
}

static int pvar_find(const char *name, int class)
{
    int index = -1;
    (void)MPI_T_pvar_get_index(name, class, &index);
    return index;
}

static bool host_is_open_mpi;
static MPI_T_pvar_session early_session;
static MPI_T_pvar_handle early_handle; /* all puts of the process */

/* The end of the interface ends its sessions and their handles. */
static void session_left_at_the_end(void)
{
    MPI_T_pvar_session session;
    int provided;
    EARLY(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS);
    EARLY(MPI_T_pvar_session_create(&session) == MPI_SUCCESS);
    EARLY(MPI_T_finalize() == MPI_SUCCESS);
    EARLY(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS);
    EARLY(MPI_T_pvar_session_free(&session) == MPI_T_ERR_INVALID_SESSION);
    EARLY(MPI_T_finalize() == MPI_SUCCESS);
}

static void values_write(void)
{
    char name[TEXT_BYTES] = "name.sarif";
    number limit = 1ULL << 20;
    EARLY(cvar_write("ORIEL_TRACE_LIMIT", &limit) == MPI_SUCCESS);
    EARLY(cvar_write("ORIEL_STATS", name) == MPI_SUCCESS);
    name[0] = '\0';
    EARLY(cvar_write("ORIEL_STATS", getenv("ORIEL_STATS") != NULL ? "1" : name) == MPI_SUCCESS);
    EARLY(cvar_write_int("ORIEL_SPIN", 1234) == MPI_SUCCESS);
    EARLY(cvar_read_int("ORIEL_SPIN") == 1234);
    EARLY(cvar_write_int("ORIEL_SPIN", -1) == MPI_T_ERR_INVALID);
    EARLY(cvar_write_int("ORIEL_TIMEOUT", 0) == MPI_T_ERR_INVALID);
    EARLY(cvar_write_int("ORIEL_PROMOTE", 3) == MPI_T_ERR_INVALID);
    EARLY(cvar_write_int("ORIEL_PROMOTE", -1) == MPI_T_ERR_INVALID);
    EARLY(cvar_write_int("ORIEL_PROMOTE", 2) == MPI_SUCCESS); /* never */
    EARLY(cvar_write_int("ORIEL_CHECK_WIDTH", 80) == MPI_T_ERR_CVAR_SET_NEVER);
    if (cvar_write_int(host_variable(), 14) == MPI_SUCCESS)
        EARLY(cvar_read_int(host_variable()) == 14);
    (void)cvar_write_int(host_variable(), 13);
}

static void before_mpi(void)
{
    int provided, number_of, count;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Get_library_version(version, &count);
    host_is_open_mpi = strstr(version, "Open MPI") != NULL;
    setenv("MPIR_CVAR_BCAST_MIN_PROCS", "13", 1);
    setenv("OMPI_MCA_opal_abort_delay", "13", 1);
    EARLY(MPI_T_cvar_get_num(&number_of) == MPI_T_ERR_NOT_INITIALIZED);
    EARLY(MPI_T_pvar_get_num(&number_of) == MPI_T_ERR_NOT_INITIALIZED);
    EARLY(MPI_T_category_get_num(&number_of) == MPI_T_ERR_NOT_INITIALIZED);
    EARLY(MPI_T_pvar_session_create(&early_session) == MPI_T_ERR_NOT_INITIALIZED);
    EARLY(MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED);
    if (host_is_open_mpi) /* MPICH 4.0 crashes when the interface starts again */
        session_left_at_the_end();
    EARLY(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS);
    for (int sort = 0; sort < 3; sort++) {
        early_count[sort] = count_of(sort);
        EARLY(early_count[sort] > 0 && early_count[sort] <= MOST);
        for (int i = 0; i < early_count[sort] && i < MOST; i++)
            name_read(sort, i, early_names[sort][i], sizeof early_names[sort][i]);
    }
    EARLY(cvar_read_int(host_variable()) == 13);
    values_write();
    if (getenv("TEST_COUNTS_EARLY") == NULL)
        return;
    EARLY(MPI_T_pvar_session_create(&early_session) == MPI_SUCCESS);
    EARLY(MPI_T_pvar_handle_alloc(early_session,
                                  pvar_find("oriel_put_count", MPI_T_PVAR_CLASS_COUNTER), NULL,
                                  &early_handle, &count) == MPI_SUCCESS);
    EARLY(MPI_T_pvar_start(early_session, early_handle) == MPI_SUCCESS);
}

static void after_mpi(void)
{
    number puts = 0;
    int count;
    if (early_session != MPI_T_PVAR_SESSION_NULL) {
        EARLY(MPI_T_pvar_read(early_session, early_handle, &puts) == MPI_SUCCESS);
        EARLY(puts > 0);
        EARLY(MPI_T_pvar_session_free(&early_session) == MPI_SUCCESS);
        EARLY(early_session == MPI_T_PVAR_SESSION_NULL);
    }
    if (host_is_open_mpi) /* 4.1 crashes in MPI_T_finalize after MPI_Finalize */
        return;
    EARLY(MPI_T_pvar_session_create(&early_session) == MPI_SUCCESS); /* left open */
    EARLY(MPI_T_finalize() == MPI_SUCCESS);
    EARLY(MPI_T_pvar_get_num(&count) == MPI_T_ERR_NOT_INITIALIZED);
    EARLY(MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED);
}

/* --- the list --- */

static void indices_and_names_stay(enum window_kind kind)
{
    (void)kind;
    for (int sort = 0; sort < 3; sort++) {
        CHECK(count_of(sort) >= early_count[sort], "%d is less than %d", count_of(sort),
              early_count[sort]);
        for (int i = 0; i < early_count[sort]; i++) {
            char name[64];
            name_read(sort, i, name, sizeof name);
            if (name[0] != '\0') /* Open MPI may have closed the variable's component */
                CHECK(strcmp(name, early_names[sort][i]) == 0, "%d was %s and is %s", i,
                      early_names[sort][i], name);
        }
    }
}

static int index_again(int sort, int index, const char *name)
{
    int again = -1, class;
    if (sort == 0) {
        CHECK_OK(MPI_T_cvar_get_index(name, &again));
    } else if (sort == 1) {
        CHECK_OK(MPI_T_pvar_get_info(index, NULL, NULL, NULL, &class, NULL, NULL, NULL, NULL, NULL,
                                     NULL, NULL, NULL));
        CHECK_OK(MPI_T_pvar_get_index(name, class, &again));
    } else {
        CHECK_OK(MPI_T_category_get_index(name, &again));
    }
    return again;
}

static void names_are_unique_and_found_again(enum window_kind kind)
{
    (void)kind;
    for (int sort = 0; sort < 3; sort++) {
        int count = count_of(sort), own = 0;
        bool host_follows = false;
        for (int i = 0; i < count; i++) {
            char name[NAME_BYTES];
            name_read(sort, i, name, sizeof name);
            bool is_own = strncmp(name, "oriel", 5) == 0 || strncmp(name, "ORIEL_", 6) == 0;
            CHECK(!is_own || !host_follows, "%s is after the host's", name);
            host_follows |= !is_own;
            own += is_own;
            if (name[0] != '\0')
                CHECK_EQUAL(index_again(sort, i, name), i);
        }
        CHECK(own > 5, "%d of sort %d are Oriel's", own, sort);
        CHECK(own < count || sort == 1, "the host has none of sort %d", sort);
    }
    CHECK_EQUAL(cvar_read_int(host_variable()), 13);
}

/* Each member of a category has an index, and Oriel's variables are in one category each. */
static void categories_contain_the_variables(enum window_kind kind)
{
    static int indices[MOST];
    int categories, numbers[3], contained[3] = {0, 0, 0};
    (void)kind;
    CHECK_OK(MPI_T_category_get_num(&categories));
    for (int category = 0; category < categories; category++) {
        char name[NAME_BYTES];
        int len = sizeof name;
        int known = MPI_T_category_get_info(category, name, &len, NULL, NULL, &numbers[0],
                                            &numbers[1], &numbers[2]);
        CHECK(known == MPI_SUCCESS || category > 6, "category %d: error %d", category, known);
        if (known != MPI_SUCCESS)
            continue;
        for (int sort = 0; sort < 3; sort++) {
            int wanted = numbers[sort] < MOST ? numbers[sort] : MOST;
            int code = sort == 0   ? MPI_T_category_get_cvars(category, wanted, indices)
                       : sort == 1 ? MPI_T_category_get_pvars(category, wanted, indices)
                                   : MPI_T_category_get_categories(category, wanted, indices);
            CHECK_OK(code);
            for (int i = 0; i < wanted; i++) {
                char member[NAME_BYTES];
                name_read(sort, indices[i], member, sizeof member);
                bool is_own = strncmp(member, "oriel", 5) == 0 || strncmp(member, "ORIEL_", 6) == 0;
                contained[sort] += is_own;
                CHECK(is_own == (strncmp(name, "oriel", 5) == 0), "%s contains %s", name, member);
            }
        }
    }
    for (int sort = 0; sort < 3; sort++) {
        int own = 0;
        for (int i = 0; i < count_of(sort); i++) {
            char member[NAME_BYTES];
            name_read(sort, i, member, sizeof member);
            own += strncmp(member, "oriel", 5) == 0 || strncmp(member, "ORIEL_", 6) == 0;
        }
        CHECK_EQUAL(contained[sort], own - (sort == 2)); /* one contains the others */
    }
    int two[2] = {-1, -1};
    int root;
    CHECK_OK(MPI_T_category_get_index("oriel_options", &root));
    CHECK_OK(MPI_T_category_get_cvars(root, 1, two));
    CHECK(two[0] >= 0 && two[1] == -1, "a list of 1 is %d, %d", two[0], two[1]);
}

/* Categories of Oriel have no events, and those of the host have theirs. */
static void events_are_the_hosts(enum window_kind kind)
{
    (void)kind;
#if MPI_VERSION >= 4
    static int indices[MOST];
    for (int i = 0; i < count_of(2); i++) {
        char name[NAME_BYTES];
        int events = -1;
        name_read(2, i, name, sizeof name);
        int code = MPI_T_category_get_num_events(i, &events);
        bool is_own = strncmp(name, "oriel", 5) == 0;
        CHECK(code == MPI_SUCCESS || !is_own, "%s: error %d", name, code);
        CHECK(events == 0 || !is_own, "%s has %d events", name, events);
        if (code == MPI_SUCCESS && events <= MOST)
            CHECK_OK(MPI_T_category_get_events(i, events, indices));
    }
    CHECK_CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_num_events(-1, indices));
    CHECK_CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_events(count_of(2), 1, indices));
#else
    harness_skip("the host has no events");
#endif
}

/* Of Oriel's options and of the host's variables: an enumeration has items, one after another. */
static void enumerations_have_items(enum window_kind kind)
{
    int found = 0;
    (void)kind;
    for (int i = 0; i < count_of(0); i++) {
        MPI_T_enum words = MPI_T_ENUM_NULL;
        char name[NAME_BYTES];
        int items, value, len = sizeof name;
        if (MPI_T_cvar_get_info(i, NULL, NULL, NULL, NULL, &words, NULL, NULL, NULL, NULL) !=
                MPI_SUCCESS ||
            words == MPI_T_ENUM_NULL)
            continue;
        found++;
        CHECK_OK(MPI_T_enum_get_info(words, &items, name, &len));
        CHECK(items > 1, "variable %d: %s has %d items", i, name, items);
        len = sizeof name;
        CHECK_OK(MPI_T_enum_get_item(words, items - 1, &value, name, &len));
        CHECK(len > 1, "variable %d: the last item has no name", i);
    }
    CHECK(found >= 6, "%d enumerations", found); /* five of Oriel's options, and the host's */
}

static void performance_variables_describe_themselves(enum window_kind kind)
{
    MPI_Datatype type;
    MPI_T_enum words;
    int verbosity, class, bind, readonly, continuous, atomic;
    int index = pvar_find("oriel_win_waited_busy_lock", MPI_T_PVAR_CLASS_TIMER);
    (void)kind;
    CHECK_OK(MPI_T_pvar_get_info(index, NULL, NULL, &verbosity, &class, &type, &words, NULL, NULL,
                                 &bind, &readonly, &continuous, &atomic));
    CHECK_EQUAL(verbosity, MPI_T_VERBOSITY_USER_DETAIL);
    CHECK_EQUAL(class, MPI_T_PVAR_CLASS_TIMER);
    CHECK(type == MPI_UNSIGNED_LONG_LONG && words == MPI_T_ENUM_NULL, "it has another type");
    CHECK_EQUAL(bind, MPI_T_BIND_MPI_WIN);
    CHECK(readonly == 0 && continuous == 0 && atomic == 1, "it is %d, %d, %d", readonly, continuous,
          atomic);
}

static void strings_are_cut_to_their_room(enum window_kind kind)
{
    char name[NAME_BYTES] = "untouched", desc[TEXT_BYTES];
    int index, len = 0, desc_len = sizeof desc;
    (void)kind;
    CHECK_OK(MPI_T_cvar_get_index("ORIEL_CMA", &index));
    CHECK_OK(name_of(0, index, name, &len));
    CHECK_EQUAL(len, sizeof "ORIEL_CMA");
    CHECK(strcmp(name, "untouched") == 0, "length 0 wrote %s", name);
    len = 6;
    CHECK_OK(name_of(0, index, name, &len));
    CHECK_EQUAL(len, sizeof "ORIEL_CMA");
    CHECK(strcmp(name, "ORIEL") == 0, "length 6 returns %s", name);
    len = 100;
    CHECK_OK(name_of(0, index, NULL, &len));
    CHECK_EQUAL(len, sizeof "ORIEL_CMA");
    CHECK_OK(name_of(0, index, name, NULL));
    CHECK_OK(MPI_T_cvar_get_info(index, NULL, NULL, NULL, NULL, NULL, desc, &desc_len, NULL, NULL));
    CHECK_EQUAL(desc_len, strlen(desc) + 1);
    CHECK(strstr(desc, "kernel") != NULL, "the description is %s", desc);
}

/* --- control variables --- */

static void options_have_their_values(enum window_kind kind)
{
    char name[NAME_BYTES], text[TEXT_BYTES];
    int index, count, scope, bind, items, value, len;
    number size = 1;
    MPI_Datatype type;
    MPI_T_enum words;
    MPI_T_cvar_handle handle;
    (void)kind;
    CHECK_EQUAL(cvar_read_int("ORIEL_SPIN"), 1234);
    CHECK_CODE(MPI_T_ERR_CVAR_SET_NOT_NOW, cvar_write_int("ORIEL_SPIN", 1));
    CHECK_EQUAL(cvar_read_int("ORIEL_SPIN"), 1234);

    CHECK_OK(MPI_T_cvar_get_index("ORIEL_PROMOTE", &index));
    CHECK_OK(
        MPI_T_cvar_get_info(index, NULL, NULL, NULL, &type, &words, NULL, NULL, &bind, &scope));
    CHECK(type == MPI_INT, "a choice is no MPI_INT");
    CHECK_EQUAL(bind, MPI_T_BIND_NO_OBJECT);
    CHECK_EQUAL(scope, MPI_T_SCOPE_ALL_EQ);
    len = sizeof name;
    CHECK_OK(MPI_T_enum_get_info(words, &items, name, &len));
    CHECK_EQUAL(items, 3);
    len = sizeof name;
    CHECK_OK(MPI_T_enum_get_item(words, cvar_read_int("ORIEL_PROMOTE"), &value, name, &len));
    CHECK(strcmp(name, "never") == 0 && value == 2, "ORIEL_PROMOTE is %s, %d", name, value);
    CHECK_CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_enum_get_item(words, 3, &value, name, &len));
    CHECK_CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_enum_get_item(words, -1, &value, name, &len));

    CHECK_OK(MPI_T_cvar_get_index("ORIEL_TRACE_LIMIT", &index));
    CHECK_OK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
    CHECK_OK(MPI_T_cvar_read(handle, &size));
    CHECK_EQUAL(size, 1ULL << 20);
    CHECK_OK(MPI_T_cvar_handle_free(&handle));
    CHECK(handle == MPI_T_CVAR_HANDLE_NULL, "the handle remains");
    CHECK_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_read(handle, &size));

    CHECK_OK(MPI_T_cvar_get_index("ORIEL_CHECK_ONLY", &index));
    CHECK_OK(MPI_T_cvar_get_info(index, NULL, NULL, NULL, &type, &words, NULL, NULL, NULL, &scope));
    CHECK(type == MPI_CHAR && words == MPI_T_ENUM_NULL, "a string has another type");
    CHECK_EQUAL(scope, MPI_T_SCOPE_CONSTANT);
    CHECK_OK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
    CHECK(count <= TEXT_BYTES, "%d characters", count);
    CHECK_OK(MPI_T_cvar_read(handle, text));
    CHECK(text[0] == '\0', "ORIEL_CHECK_ONLY is %s", text);
    CHECK_OK(MPI_T_cvar_handle_free(&handle));
}

/* --- performance variables --- */

/* A handle of one of Oriel's variables, started. */
static MPI_T_pvar_handle handle_make(MPI_T_pvar_session session, const char *name, int class,
                                     MPI_Win *win, int wanted_count)
{
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    int count = 0;
    CHECK_OK(MPI_T_pvar_handle_alloc(session, pvar_find(name, class), win, &handle, &count));
    CHECK_EQUAL(count, wanted_count);
    CHECK_OK(MPI_T_pvar_start(session, handle));
    return handle;
}

static number value_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    number value = 0;
    CHECK_OK(MPI_T_pvar_read(session, handle, &value));
    return value;
}

static void put_some(const struct window *window, int target, int times, int count)
{
    int64_t words[4] = {1, 2, 3, 4};
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window->win);
    for (int i = 0; i < times; i++) {
        MPI_Put(words, count, MPI_INT64_T, target, 0, count, MPI_INT64_T, window->win);
        MPI_Win_flush(target, window->win);
    }
    MPI_Win_unlock(target, window->win);
}

/* Puts until `ends` is true, and counts its puts. */
struct putting_thread {
    pthread_t thread;
    MPI_Win win;
    _Atomic number made;
    _Atomic bool ends;
};

static void *thread_put(void *context)
{
    struct putting_thread *own = context;
    int64_t word = 1;
    while (!own->ends) {
        MPI_Put(&word, 1, MPI_INT64_T, world_rank, 0, 1, MPI_INT64_T, own->win);
        MPI_Win_flush(world_rank, own->win);
        own->made++;
    }
    return NULL;
}

static void await_puts(const struct putting_thread *thread, number least)
{
    while (thread->made < least)
        sched_yield();
}

/* When the first handle is made, windows exist and another thread puts. The put that it is in may
 * be counted or not. */
static void existing_windows_count_from_their_next_call_on(enum window_kind kind)
{
    enum { PUTS = 1000 };
    int next = (world_rank + 1) % world_size;
    MPI_T_pvar_session session;
    if (harness_thread_level() != MPI_THREAD_MULTIPLE) {
        harness_skip("the host does not support MPI_THREAD_MULTIPLE");
        return;
    }
    struct window idle = window_make(kind, 64, 8, MPI_COMM_WORLD);
    struct window busy = window_make(kind, 64, 8, MPI_COMM_WORLD);
    struct putting_thread thread = {.win = busy.win};
    put_some(&idle, next, 5, 1);
    CHECK_OK(MPI_T_pvar_session_create(&session));
    MPI_Win_lock_all(0, busy.win);
    pthread_create(&thread.thread, NULL, thread_put, &thread);
    await_puts(&thread, PUTS);
    MPI_T_pvar_handle all =
        handle_make(session, "oriel_put_count", MPI_T_PVAR_CLASS_COUNTER, NULL, 1);
    MPI_T_pvar_handle of_busy =
        handle_make(session, "oriel_win_put_count", MPI_T_PVAR_CLASS_COUNTER, &busy.win, 1);
    number before = thread.made;
    await_puts(&thread, before + PUTS);
    thread.ends = true;
    pthread_join(thread.thread, NULL);
    MPI_Win_unlock_all(busy.win);
    number counted = value_read(session, of_busy);
    CHECK(counted + 1 >= thread.made - before && counted <= thread.made,
          "%llu puts since the start, of %llu in all, are %llu", thread.made - before, thread.made,
          counted);
    MPI_T_pvar_handle of_idle =
        handle_make(session, "oriel_win_put_count", MPI_T_PVAR_CLASS_COUNTER, &idle.win, 1);
    CHECK_OK(MPI_T_pvar_reset(session, all));
    put_some(&idle, next, 7, 2);
    CHECK_EQUAL(value_read(session, of_idle), 7);
    CHECK_EQUAL(value_read(session, all), 7);
    CHECK_OK(MPI_T_pvar_handle_free(session, &of_idle));
    CHECK_OK(MPI_T_pvar_session_free(&session));
    window_free(&busy);
    window_free(&idle);
}

static void counts_are_the_programs(enum window_kind kind)
{
    struct window windows[2] = {window_make(kind, 64, 8, MPI_COMM_WORLD),
                                window_make(kind, 64, 8, MPI_COMM_WORLD)};
    int next = (world_rank + 1) % world_size;
    number value, *of_target = calloc((size_t)world_size, sizeof *of_target);
    MPI_T_pvar_session session;
    CHECK_OK(MPI_T_pvar_session_create(&session));
    MPI_T_pvar_handle puts[2], bytes[2];
    for (int i = 0; i < 2; i++) {
        puts[i] = handle_make(session, "oriel_win_put_count", MPI_T_PVAR_CLASS_COUNTER,
                              &windows[i].win, 1);
        bytes[i] = handle_make(session, "oriel_win_put_bytes", MPI_T_PVAR_CLASS_AGGREGATE,
                               &windows[i].win, 1);
    }
    MPI_T_pvar_handle targets = handle_make(session, "oriel_win_target_count",
                                            MPI_T_PVAR_CLASS_COUNTER, &windows[0].win, world_size);
    MPI_T_pvar_handle all =
        handle_make(session, "oriel_put_bytes", MPI_T_PVAR_CLASS_AGGREGATE, NULL, 1);
    MPI_T_pvar_handle locks =
        handle_make(session, "oriel_lock_count", MPI_T_PVAR_CLASS_COUNTER, NULL, 1);
    MPI_T_pvar_handle time =
        handle_make(session, "oriel_put_time", MPI_T_PVAR_CLASS_TIMER, NULL, 1);
    put_some(&windows[0], next, 3, 2);
    put_some(&windows[1], world_rank, 4, 1);
    CHECK_EQUAL(value_read(session, puts[0]), 3);
    CHECK_EQUAL(value_read(session, bytes[0]), 48);
    CHECK_EQUAL(value_read(session, puts[1]), 4);
    CHECK_EQUAL(value_read(session, bytes[1]), 32);
    CHECK_EQUAL(value_read(session, all), 80);
    CHECK_EQUAL(value_read(session, locks), 2);
    CHECK(value_read(session, time) > 0, "puts take no time");
    CHECK_OK(MPI_T_pvar_read(session, targets, of_target));
    for (int i = 0; i < world_size; i++)
        CHECK_EQUAL(of_target[i], i == next ? 3 : 0);

    pid_t child = fork();
    if (child == 0)
        _exit(MPI_T_pvar_read(session, puts[0], &value) == MPI_SUCCESS && value == 3 ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0, "a child reads another value, or ends with %d", status);

    CHECK_OK(MPI_T_pvar_stop(session, puts[0]));
    put_some(&windows[0], next, 10, 1);
    CHECK_EQUAL(value_read(session, puts[0]), 3);
    CHECK_EQUAL(value_read(session, bytes[0]), 128);
    CHECK_OK(MPI_T_pvar_start(session, puts[0]));
    put_some(&windows[0], next, 1, 1);
    CHECK_EQUAL(value_read(session, puts[0]), 4);
    CHECK_OK(MPI_T_pvar_readreset(session, puts[0], &value));
    CHECK_EQUAL(value, 4);
    CHECK_EQUAL(value_read(session, puts[0]), 0);
    value = 100;
    CHECK_OK(MPI_T_pvar_write(session, puts[0], &value));
    put_some(&windows[0], next, 2, 1);
    CHECK_EQUAL(value_read(session, puts[0]), 102);
    CHECK_OK(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
    CHECK_OK(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES));
    put_some(&windows[0], next, 2, 1);
    CHECK_EQUAL(value_read(session, puts[0]), 0);
    CHECK_OK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    put_some(&windows[0], next, 2, 1);
    CHECK_EQUAL(value_read(session, puts[0]), 2);
    window_free(&windows[0]);
    window_free(&windows[1]);
    CHECK_EQUAL(value_read(session, puts[0]), 2); /* the record stays */
    CHECK_EQUAL(value_read(session, all), 16);
    CHECK_OK(MPI_T_pvar_session_free(&session));
    free(of_target);
}

enum { LEVELS = 3 };

static void levels_read(MPI_T_pvar_session session, const MPI_T_pvar_handle handles[LEVELS],
                        number values[LEVELS])
{
    for (int i = 0; i < LEVELS; i++)
        values[i] = value_read(session, handles[i]);
}

static void level_cannot_be_changed(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    number value = 0;
    CHECK_CODE(MPI_T_ERR_PVAR_NO_STARTSTOP, MPI_T_pvar_start(session, handle));
    CHECK_CODE(MPI_T_ERR_PVAR_NO_STARTSTOP, MPI_T_pvar_stop(session, handle));
    CHECK_CODE(MPI_T_ERR_PVAR_NO_WRITE, MPI_T_pvar_reset(session, handle));
    CHECK_CODE(MPI_T_ERR_PVAR_NO_WRITE, MPI_T_pvar_write(session, handle, &value));
    CHECK_CODE(MPI_T_ERR_PVAR_NO_ATOMIC, MPI_T_pvar_readreset(session, handle, &value));
    CHECK_OK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    CHECK_OK(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
    CHECK_OK(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES));
}

/* Levels are the present memory, whenever their handle was made. */
static void memory_is_what_the_process_has(enum window_kind kind)
{
    enum { BYTES = 1 << 20, OF_WINDOWS = 0, OF_FILE, IN_USE };
    static const char *const names[LEVELS] = {"oriel_memory_windows", "oriel_memory_file",
                                              "oriel_memory_used"};
    number before[LEVELS], during[LEVELS], after[LEVELS];
    number own = kind == KIND_ALLOCATE ? 2 * BYTES : BYTES; /* else malloc has the window's */
    MPI_T_pvar_handle handles[LEVELS];
    MPI_T_pvar_session session;
    void *memory;
    CHECK_OK(MPI_T_pvar_session_create(&session));
    for (int i = 0; i < LEVELS; i++) {
        int index = pvar_find(names[i], MPI_T_PVAR_CLASS_LEVEL), bind, readonly, continuous, count;
        CHECK_OK(MPI_T_pvar_get_info(index, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, &bind,
                                     &readonly, &continuous, NULL));
        CHECK(bind == MPI_T_BIND_NO_OBJECT && readonly == 1 && continuous == 1,
              "%s is bound to %d, %d, %d", names[i], bind, readonly, continuous);
        CHECK_OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handles[i], &count));
        CHECK_EQUAL(count, 1);
        level_cannot_be_changed(session, handles[i]);
    }
    levels_read(session, handles, before);
    struct window window = window_make(kind, BYTES, 8, MPI_COMM_SELF);
    MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &memory);
    levels_read(session, handles, during);
    CHECK_EQUAL(during[OF_WINDOWS] - before[OF_WINDOWS], BYTES);
    CHECK(during[IN_USE] >= before[IN_USE] + own, "%llu bytes are in use after %llu",
          during[IN_USE], before[IN_USE]);
    CHECK(during[OF_FILE] >= during[IN_USE], "%llu of %llu bytes are in use", during[IN_USE],
          during[OF_FILE]);
    MPI_Free_mem(memory);
    window_free(&window);
    levels_read(session, handles, after);
    CHECK_EQUAL(after[OF_WINDOWS], before[OF_WINDOWS]);
    CHECK(after[IN_USE] + own <= during[IN_USE], "%llu bytes are in use, after %llu", after[IN_USE],
          during[IN_USE]);
    CHECK_OK(MPI_T_pvar_session_free(&session));
}

/* MPI_Pcontrol pauses counting, and handles can be made in a pause. */
static void pauses_are_not_counted(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    MPI_T_pvar_session session;
    CHECK_OK(MPI_T_pvar_session_create(&session));
    MPI_T_pvar_handle all =
        handle_make(session, "oriel_put_count", MPI_T_PVAR_CLASS_COUNTER, NULL, 1);
    MPI_Pcontrol(0);
    MPI_T_pvar_handle puts =
        handle_make(session, "oriel_win_put_count", MPI_T_PVAR_CLASS_COUNTER, &window.win, 1);
    put_some(&window, world_rank, 5, 1);
    MPI_Pcontrol(1);
    put_some(&window, world_rank, 2, 1);
    CHECK_EQUAL(value_read(session, puts), 2);
    CHECK_EQUAL(value_read(session, all), 2);
    CHECK_OK(MPI_T_pvar_session_free(&session));
    window_free(&window);
}

/* Waiting has a cause and a rank. The last rank is late, unless another one is delayed as long:
 * then they try again. */
static void waiting_is_for_the_late_rank(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    number *of_rank = calloc((size_t)world_size, sizeof *of_rank);
    int all_waited = 0;
    MPI_T_pvar_session session;
    CHECK_OK(MPI_T_pvar_session_create(&session));
    MPI_T_pvar_handle late = handle_make(session, "oriel_win_waited_late_fence",
                                         MPI_T_PVAR_CLASS_TIMER, &window.win, world_size);
    MPI_T_pvar_handle waiting =
        handle_make(session, "oriel_win_fence_waiting", MPI_T_PVAR_CLASS_TIMER, &window.win, 1);
    MPI_Win_fence(0, window.win);
    CHECK_OK(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
    for (int round = 0; round < 200 && !all_waited; round++) {
        if (world_rank == world_size - 1)
            sleep_us(20000);
        MPI_Win_fence(0, window.win);
        CHECK_OK(MPI_T_pvar_read(session, late, of_rank));
        int waited = world_rank == world_size - 1 || of_rank[world_size - 1] > 0;
        MPI_Allreduce(&waited, &all_waited, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    }
    CHECK(all_waited, "waited %llu ns for the late rank", of_rank[world_size - 1]);
    CHECK(value_read(session, waiting) >= of_rank[world_size - 1], "waited less in all");
    CHECK_OK(MPI_T_pvar_session_free(&session));
    free(of_rank);
    window_free(&window);
}

struct counting_thread {
    pthread_t thread;
    MPI_Win *win;
    int number; /* and displacement */
    int wrong;
};

/* Counts its own windows' puts while other threads count too, and start and free handles. */
static void *thread_count(void *context)
{
    struct counting_thread *own = context;
    int64_t word = 1;
    int count, puts = pvar_find("oriel_win_put_count", MPI_T_PVAR_CLASS_COUNTER);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_T_pvar_session session;
        MPI_T_pvar_handle handle;
        number value = 0;
        own->wrong += MPI_T_pvar_session_create(&session) != MPI_SUCCESS;
        own->wrong += MPI_T_pvar_handle_alloc(session, puts, own->win, &handle, &count) != 0;
        own->wrong += MPI_T_pvar_start(session, handle) != MPI_SUCCESS;
        MPI_Put(&word, 1, MPI_INT64_T, world_rank, own->number, 1, MPI_INT64_T, *own->win);
        MPI_Win_flush(world_rank, *own->win);
        own->wrong += MPI_T_pvar_read(session, handle, &value) != MPI_SUCCESS || value < 1;
        if (i % 2 == 0)
            own->wrong += MPI_T_pvar_handle_free(session, &handle) != MPI_SUCCESS;
        own->wrong += MPI_T_pvar_session_free(&session) != MPI_SUCCESS;
    }
    return NULL;
}

static void threads_count_together(enum window_kind kind)
{
    struct counting_thread threads[THREADS];
    MPI_T_pvar_session session;
    if (harness_thread_level() != MPI_THREAD_MULTIPLE) {
        harness_skip("the host does not support MPI_THREAD_MULTIPLE");
        return;
    }
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    CHECK_OK(MPI_T_pvar_session_create(&session));
    MPI_T_pvar_handle puts =
        handle_make(session, "oriel_win_put_count", MPI_T_PVAR_CLASS_COUNTER, &window.win, 1);
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < THREADS; i++) {
        threads[i] = (struct counting_thread){.win = &window.win, .number = i};
        pthread_create(&threads[i].thread, NULL, thread_count, &threads[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i].thread, NULL);
        CHECK_EQUAL(threads[i].wrong, 0);
    }
    MPI_Win_unlock_all(window.win);
    CHECK_EQUAL(value_read(session, puts), THREADS * ROUNDS);
    CHECK_OK(MPI_T_pvar_session_free(&session));
    window_free(&window);
}

/* Handles of Oriel's and the host's variables are allocated and freed in any order, in two
 * sessions. Of the host, only variables without an object. */
static void handles_are_made_and_freed_at_random(enum window_kind kind)
{
    enum { LIVE = 64 };
    struct random random = random_start(17);
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    MPI_T_pvar_session sessions[2];
    MPI_T_pvar_handle live[LIVE] = {MPI_T_PVAR_HANDLE_NULL};
    static number values[MOST];
    int number_of, of_session[LIVE], count;
    CHECK_OK(MPI_T_pvar_get_num(&number_of));
    for (int i = 0; i < 2; i++)
        CHECK_OK(MPI_T_pvar_session_create(&sessions[i]));
    for (int i = 0; i < 2000 && !harness_failed(); i++) {
        int at = (int)random_below(&random, LIVE);
        int session = (int)random_below(&random, 2);
        int index = (int)random_below(&random, (uint64_t)number_of), bind, continuous;
        MPI_T_pvar_handle copy = live[at];
        if (live[at] == MPI_T_PVAR_HANDLE_NULL) {
            char name[NAME_BYTES] = "";
            int len = sizeof name;
            if (MPI_T_pvar_get_info(index, name, &len, NULL, NULL, NULL, NULL, NULL, NULL, &bind,
                                    NULL, &continuous, NULL) != MPI_SUCCESS)
                continue;
            bool is_own = strncmp(name, "oriel", 5) == 0;
            if (!is_own && bind != MPI_T_BIND_NO_OBJECT)
                continue;
            int code = MPI_T_pvar_handle_alloc(sessions[session], index,
                                               bind == MPI_T_BIND_MPI_WIN ? &window.win : NULL,
                                               &live[at], &count);
            CHECK(code == MPI_SUCCESS || !is_own, "%s: error %d", name, code);
            if (code != MPI_SUCCESS) {
                live[at] = MPI_T_PVAR_HANDLE_NULL;
                continue;
            }
            of_session[at] = session;
            if (!continuous)
                CHECK_OK(MPI_T_pvar_start(sessions[session], live[at]));
            if (is_own)
                CHECK_OK(MPI_T_pvar_read(sessions[session], live[at], values));
            continue;
        }
        CHECK_CODE(MPI_T_ERR_INVALID_HANDLE,
                   MPI_T_pvar_read(sessions[1 - of_session[at]], live[at], values));
        CHECK_OK(MPI_T_pvar_handle_free(sessions[of_session[at]], &live[at]));
        CHECK(live[at] == MPI_T_PVAR_HANDLE_NULL, "the handle remains");
        CHECK_CODE(MPI_T_ERR_INVALID_HANDLE,
                   MPI_T_pvar_read(sessions[of_session[at]], copy, values));
    }
    for (int i = 0; i < 2; i++)
        CHECK_OK(MPI_T_pvar_session_free(&sessions[i]));
    window_free(&window);
}

static void wrong_arguments_are_refused(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    MPI_Win none = MPI_WIN_NULL;
    MPI_T_pvar_session session, no_session = MPI_T_PVAR_SESSION_NULL;
    MPI_T_pvar_handle handle, no_handle = MPI_T_PVAR_HANDLE_NULL;
    MPI_T_cvar_handle cvar;
    int count, index, puts = pvar_find("oriel_win_put_count", MPI_T_PVAR_CLASS_COUNTER);
    number value = 0;
    CHECK_CODE(MPI_T_ERR_INVALID, MPI_T_pvar_get_num(NULL));
    CHECK_CODE(MPI_T_ERR_INVALID_INDEX, name_of(0, -1, NULL, NULL));
    CHECK_CODE(MPI_T_ERR_INVALID_INDEX, name_of(1, -1, NULL, NULL));
    CHECK_CODE(MPI_T_ERR_INVALID_INDEX, name_of(2, -1, NULL, NULL));
    CHECK_CODE(MPI_T_ERR_INVALID_INDEX, name_of(0, count_of(0), NULL, NULL));
    CHECK_CODE(MPI_T_ERR_INVALID_INDEX, name_of(1, count_of(1), NULL, NULL));
    CHECK_CODE(MPI_T_ERR_INVALID_INDEX, name_of(2, count_of(2), NULL, NULL));
    CHECK_CODE(MPI_T_ERR_INVALID_NAME, MPI_T_cvar_get_index("ORIEL_NOTHING", &index));
    CHECK_CODE(MPI_T_ERR_INVALID_NAME,
               MPI_T_pvar_get_index("oriel_put_count", MPI_T_PVAR_CLASS_TIMER, &index));
    CHECK_CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_cvar_handle_alloc(-1, NULL, &cvar, &count));
    CHECK_CODE(MPI_T_ERR_INVALID, MPI_T_cvar_handle_alloc(0, NULL, NULL, &count));
    CHECK_OK(MPI_T_pvar_session_create(&session));
    CHECK_CODE(MPI_T_ERR_INVALID_INDEX,
               MPI_T_pvar_handle_alloc(session, -1, NULL, &handle, &count));
    CHECK_CODE(MPI_T_ERR_INVALID_SESSION,
               MPI_T_pvar_handle_alloc(no_session, puts, &window.win, &handle, &count));
    CHECK_CODE(MPI_T_ERR_INVALID, MPI_T_pvar_handle_alloc(session, puts, NULL, &handle, &count));
    CHECK_CODE(MPI_T_ERR_INVALID_HANDLE,
               MPI_T_pvar_handle_alloc(session, puts, &none, &handle, &count));
    CHECK_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_start(session, no_handle));
    CHECK_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(session, no_handle, &value));
    CHECK_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(session, MPI_T_PVAR_ALL_HANDLES, &value));
    CHECK_CODE(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_session_free(&no_session));
    handle = handle_make(session, "oriel_win_put_count", MPI_T_PVAR_CLASS_COUNTER, &window.win, 1);
    CHECK_CODE(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_read(no_session, handle, &value));
    CHECK_CODE(MPI_T_ERR_INVALID, MPI_T_pvar_read(session, handle, NULL));
    MPI_T_pvar_session old = session;
    CHECK_OK(MPI_T_pvar_session_free(&session));
    CHECK_CODE(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_read(old, handle, &value));
    window_free(&window);
}

/* They share a record. The last case, since the number of records does not shrink. */
static void windows_beyond_the_limit_are_only_in_sums(enum window_kind kind)
{
    enum { LIMIT = 1000 };
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    int count;
    for (int i = 0; i < LIMIT; i++) {
        struct window window = window_make(kind, 64, 8, MPI_COMM_SELF);
        put_some(&window, 0, 1, 1);
        window_free(&window);
    }
    struct window window = window_make(kind, 64, 8, MPI_COMM_SELF);
    CHECK_OK(MPI_T_pvar_session_create(&session));
    CHECK_CODE(MPI_T_ERR_OUT_OF_HANDLES,
               MPI_T_pvar_handle_alloc(session,
                                       pvar_find("oriel_win_put_count", MPI_T_PVAR_CLASS_COUNTER),
                                       &window.win, &handle, &count));
    MPI_T_pvar_handle all =
        handle_make(session, "oriel_put_count", MPI_T_PVAR_CLASS_COUNTER, NULL, 1);
    put_some(&window, 0, 3, 1);
    CHECK_EQUAL(value_read(session, all), 3);
    CHECK_OK(MPI_T_pvar_session_free(&session));
    window_free(&window);
}

/* ORIEL_PROMOTE=never was written before MPI_Init. */
static void a_written_option_takes_effect(enum window_kind kind)
{
    char reason[MPI_MAX_INFO_VAL] = "";
    int flag;
    MPI_Info info;
    struct window window = window_make(kind, 1 << 16, 8, MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_get_info(window.win, &info));
    MPI_Info_get(info, "oriel_memory_reason", sizeof reason - 1, reason, &flag);
    CHECK(strstr(reason, "ORIEL_PROMOTE=never") != NULL, "the reason is '%s'", reason);
    MPI_Info_free(&info);
    window_free(&window);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        /* the first one that allocates a handle starts to count */
        CASE(existing_windows_count_from_their_next_call_on, KIND_HEAP, 1),
        CASE(indices_and_names_stay, KIND_ANY, 1),
        CASE(names_are_unique_and_found_again, KIND_ANY, 1),
        CASE(categories_contain_the_variables, KIND_ANY, 1),
        CASE(events_are_the_hosts, KIND_ANY, 1),
        CASE(enumerations_have_items, KIND_ANY, 1),
        CASE(performance_variables_describe_themselves, KIND_ANY, 1),
        CASE(strings_are_cut_to_their_room, KIND_ANY, 1),
        CASE(options_have_their_values, KIND_ANY, 1),
        CASE(a_written_option_takes_effect, KIND_HEAP | KIND_ONE_NODE, 2),
        CASE(counts_are_the_programs, KINDS_BOTH, 1),
        CASE(memory_is_what_the_process_has, KIND_ALLOCATE | KIND_HEAP, 1),
        CASE(pauses_are_not_counted, KIND_ALLOCATE, 1),
        CASE(waiting_is_for_the_late_rank, KIND_ALLOCATE | KIND_ONE_NODE, 2),
        CASE(threads_count_together, KIND_ALLOCATE, 1),
        CASE(handles_are_made_and_freed_at_random, KIND_ALLOCATE, 1),
        CASE(wrong_arguments_are_refused, KIND_ALLOCATE, 1),
        CASE(windows_beyond_the_limit_are_only_in_sums, KIND_ALLOCATE, 1),
    };
    before_mpi();
    int status = harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases));
    after_mpi();
    return early_failures > 0 ? 1 : status;
}
