/* The writer of traces, and the contents of a trace when the process ends, the disk is full or the
 * limit is reached. */
#include "tests/unit/trace_common.h"

#include "base/wait.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define MIB (UINT64_C(1) << 20)

enum { THREADS = 3, EACH = 40000, SOME = 5000 };

/* The contents read from the folder; the next size that each thread's events must have. */
struct reading {
    uint64_t events;
    uint64_t next[256];
    bool in_order;
    uint32_t place; /* of all events; UINT32_MAX: they have different ones */
};

static bool look(const struct oriel_trace_record *event, void *context)
{
    struct reading *reading = context;
    uint64_t *next = &reading->next[event->event->thread];
    reading->in_order =
        reading->in_order && event->event->bytes >= *next && event->rank == 0 && event->window == 0;
    *next = event->event->bytes + 1;
    reading->place =
        reading->events == 0 || reading->place == event->place ? event->place : UINT32_MAX;
    reading->events++;
    return true;
}

/* Ignores the complaints that a run of one of four ranks always causes. */
static struct reading read_back_at(struct oriel_traced_rank *rank, const char *site)
{
    char text[ORIEL_CODE_ADDRESS_TEXT];
    struct reading reading = {.in_order = true};
    struct oriel_traces *traces;
    FILE *nowhere = fopen("/dev/null", "w");
    assert_true(oriel_traces_open(folder, nowhere, &traces));
    fclose(nowhere);
    oriel_traces_each(traces, look, &reading);
    *rank = traces->ranks[0];
    assert_null(rank->problem);
    assert_int_equal(traces->windows_count, 1);
    assert_string_equal(traces->windows[0].name, "halo");
    assert_int_equal(traces->windows[0].world_ranks[3], 3);
    assert_string_equal(traces->windows[0].site, site);
    assert_true(reading.place < traces->sites.places_count);
    oriel_code_address_text(&traces->sites.places[reading.place], text);
    if (reading.events > 0)
        assert_string_equal(text, site);
    assert_int_equal(reading.events, rank->events);
    assert_true(reading.in_order);
    oriel_traces_close(traces);
    return reading;
}

static struct reading read_back(struct oriel_traced_rank *rank)
{
    return read_back_at(rank, "halo+0x1234");
}

static const char *path_of_log(void)
{
    static char log[96];
    snprintf(log, sizeof log, "%s/log", folder);
    return log;
}

static uint64_t file_bytes(void)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return (uint64_t)info.st_size;
}

/* --- threads --- */

/* No thread ends before all have a ring. */
static void *add_some(void *all)
{
    for (uint64_t i = 0; i < EACH; i++)
        add_put(i);
    (void)pthread_barrier_wait(all);
    return NULL;
}

static void three_threads(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_t all;
    EXPECT(pthread_barrier_init(&all, NULL, THREADS) == 0);
    trace_begin(100 * MIB);
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&threads[i], NULL, add_some, &all) == 0);
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_join(threads[i], NULL) == 0);
    oriel_trace_writer_end(NULL, END_NS);
    add_put(0); /* too late: it is dropped */
}

static void all_events_arrive_in_order(void **state)
{
    struct oriel_traced_rank rank;
    (void)state;
    assert_int_equal(in_process(three_threads), 0);
    read_back(&rank);
    assert_true(rank.ended);
    assert_int_equal(rank.events + rank.dropped, THREADS * EACH);
    assert_int_equal(rank.dropped, 0); /* each ring has space for all */
}

/* Rings of ended threads are reused: a thousand threads need fewer than a thousand rings. */
static void *add_one(void *unused)
{
    (void)unused;
    add_put(0);
    return NULL;
}

static void thousand_threads(void)
{
    trace_begin(100 * MIB);
    for (int i = 0; i < 1000; i++) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, add_one, NULL) == 0);
        EXPECT(pthread_join(thread, NULL) == 0);
    }
    oriel_trace_writer_end(NULL, END_NS);
}

static bool has_few_threads(const struct oriel_trace_record *event, void *context)
{
    *(bool *)context = *(bool *)context && event->event->thread < 4;
    return true;
}

static void rings_are_used_again(void **state)
{
    struct oriel_traces *traces;
    FILE *nowhere = fopen("/dev/null", "w");
    bool few = true;
    (void)state;
    assert_int_equal(in_process(thousand_threads), 0);
    assert_true(oriel_traces_open(folder, nowhere, &traces));
    oriel_traces_each(traces, has_few_threads, &few);
    assert_true(few);
    assert_int_equal(traces->ranks[0].events, 1000);
    oriel_traces_close(traces);
    fclose(nowhere);
}

static void flood(void)
{
    trace_begin(1000 * MIB);
    for (uint64_t i = 0; i < 1000000; i++)
        add_put(i);
    oriel_trace_writer_end(NULL, END_NS);
}

static void events_without_room_are_counted(void **state)
{
    struct oriel_traced_rank rank;
    (void)state;
    assert_int_equal(in_process(flood), 0);
    read_back(&rank);
    assert_int_equal(rank.events + rank.dropped, 1000000);
}

static void add_and_die(void)
{
    trace_begin(100 * MIB);
    for (uint64_t i = 0; i < SOME; i++)
        add_put(i);
    usleep(1000000); /* ten times as long as events may wait */
    raise(SIGKILL);
}

static void killed_trace_is_readable_up_to_the_last_flush(void **state)
{
    struct oriel_traced_rank rank;
    (void)state;
    assert_int_equal(in_process(add_and_die), SIGKILL);
    read_back(&rank);
    assert_false(rank.ended);
    assert_int_equal(rank.events, SOME);
}

static void slowly_to_limit(void)
{
    trace_begin(100000);
    for (uint64_t i = 0; i < SOME; i++) {
        add_put(i);
        if (i % 500 == 0)
            usleep(60000);
    }
    oriel_trace_writer_end(NULL, END_NS);
}

static void disk_is_bounded(void **state)
{
    struct oriel_traced_rank rank;
    (void)state;
    assert_int_equal(in_process(slowly_to_limit), 0);
    read_back(&rank);
    assert_true(rank.ended);
    assert_true(rank.dropped > 0 && rank.events > 0);
    assert_int_equal(rank.events + rank.dropped, SOME);
    assert_in_range(file_bytes(), 50000, 100000);
}

/* A file size limit replaces a full disk; its signal does not reach the program. */
static void on_full_disk(void)
{
    struct rlimit most = {.rlim_cur = 64 << 10, .rlim_max = 64 << 10};
    EXPECT(setrlimit(RLIMIT_FSIZE, &most) == 0);
    EXPECT(freopen(path_of_log(), "w", stderr) != NULL);
    trace_begin(100 * MIB);
    for (uint64_t i = 0; i < SOME; i++) {
        add_put(i);
        if (i % 500 == 0)
            usleep(60000);
    }
    oriel_trace_writer_end(NULL, END_NS);
}

static void full_disk_is_reported_once(void **state)
{
    struct oriel_traced_rank rank;
    char text[4096] = "";
    (void)state;
    assert_int_equal(in_process(on_full_disk), 0);
    read_back(&rank);
    assert_true(rank.ended);
    assert_true(rank.dropped > 0 && rank.events > 0);
    assert_int_equal(rank.events + rank.dropped, SOME);
    assert_in_range(file_bytes(), 30000, 64 << 10);
    FILE *log = fopen(path_of_log(), "r");
    assert_true(fread(text, 1, sizeof text - 1, log) > 0);
    fclose(log);
    assert_non_null(strstr(text, ": File too large; the program continues"));
    assert_ptr_equal(strchr(text, '\n') + 1, text + strlen(text));
}

static void add_in_child_too(void)
{
    trace_begin(100 * MIB);
    for (uint64_t i = 0; i < SOME; i++)
        add_put(i);
    pid_t child = fork();
    if (child == 0) {
        EXPECT(!oriel_tracing); /* its events would only use memory */
        for (uint64_t i = 0; i < SOME; i++)
            add_put(i);
        usleep(200000);
        _exit(0);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    oriel_trace_writer_end(NULL, END_NS);
}

static void children_do_not_write(void **state)
{
    struct oriel_traced_rank rank;
    (void)state;
    assert_int_equal(in_process(add_in_child_too), 0);
    read_back(&rank);
    assert_int_equal(rank.events, SOME);
}

/* The descriptors of the writer's thread: the file, and standard error. Valgrind's own are above
 * the limit. */
static int open_in_writer(void)
{
    int count = 0;
    char name[64];
    DIR *threads = opendir("/proc/self/task");
    for (const struct dirent *entry; (entry = readdir(threads)) != NULL;) {
        char comm[32] = "";
        snprintf(name, sizeof name, "/proc/self/task/%.16s/comm", entry->d_name);
        FILE *file = fopen(name, "r");
        if (file != NULL && fgets(comm, sizeof comm, file) != NULL &&
            strcmp(comm, "oriel-trace\n") == 0) {
            snprintf(name, sizeof name, "/proc/self/task/%.16s/fd", entry->d_name);
            DIR *open_files = opendir(name);
            for (const struct dirent *one; (one = readdir(open_files)) != NULL;)
                count += one->d_name[0] != '.' && atol(one->d_name) < sysconf(_SC_OPEN_MAX);
            closedir(open_files);
        }
        if (file != NULL)
            fclose(file);
    }
    closedir(threads);
    return count;
}

static void close_all(void)
{
    trace_begin(100 * MIB);
    EXPECT(open_in_writer() == 2);
    add_put(1);
    usleep(200000);
    for (int fd = 3; fd < 100; fd++)
        (void)close(fd);
    int other = open("/dev/null", O_RDWR);
    add_put(2);
    oriel_trace_writer_end(NULL, END_NS);
    EXPECT(write(other, "x", 1) == 1);
}

static void descriptors_are_not_the_programs(void **state)
{
    struct oriel_traced_rank rank;
    (void)state;
    assert_int_equal(in_process(close_all), 0);
    read_back(&rank);
    assert_true(rank.ended);
    assert_int_equal(rank.events, 2);
}

static void write_small(void)
{
    trace_begin(MIB);
    add_put(1);
    oriel_trace_writer_end(NULL, END_NS);
}

static void earlier_run_is_replaced(void **state)
{
    struct oriel_traced_rank rank;
    (void)state;
    assert_int_equal(in_process(flood), 0);
    assert_int_equal(in_process(write_small), 0);
    read_back(&rank);
    assert_int_equal(rank.events, 1);
}

static void find_lines_at_the_end(void)
{
    static const struct oriel_code_address lines[] = {{.module = "/bin/halo",
                                                       .offset = 0x1234,
                                                       .function = "main",
                                                       .file = "halo.c",
                                                       .line = 42}};
    trace_begin(MIB);
    for (uint64_t i = 0; i < SOME; i++)
        add_put(i);
    oriel_trace_sites_set(lines, 1);
    oriel_trace_writer_end(NULL, END_NS);
}

static void the_last_description_of_a_call_site_counts(void **state)
{
    (void)state;
    struct oriel_traced_rank rank;
    assert_int_equal(in_process(find_lines_at_the_end), 0);
    assert_int_equal(read_back_at(&rank, "main at halo.c:42").events, SOME);
}

static void find_other_file(void)
{
    const char *refusal = oriel_trace_writer_open(path, MIB);
    EXPECT(refusal != NULL &&
           strcmp(refusal, "the file exists and is not a trace: it is not overwritten") == 0);
}

static void other_file_is_left_alone(void **state)
{
    char text[32] = "";
    (void)state;
    FILE *file = fopen(path, "w");
    fputs("dear diary\n", file);
    fclose(file);
    assert_int_equal(in_process(find_other_file), 0);
    file = fopen(path, "r");
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    assert_string_equal(text, "dear diary\n");
}

/* --- what is traced, regions and pauses --- */

static const struct oriel_trace_selection one_in_ten = {.sample = 10, .filter = "rank=0"};
static struct oriel_counted_region regions[2] = {{.name = ""}, {.name = "solve"}};

static void add_mark(struct oriel_trace_mark mark)
{
    struct oriel_trace_event event;
    memcpy(&event, &mark, sizeof event);
    oriel_trace_add(&event);
}

static void write_selected(void)
{
    selection = &one_in_ten;
    trace_begin(MIB);
    for (uint64_t i = 0; i < SOME; i++)
        add_put(i);
    oriel_trace_regions_set(regions, 2);
    add_mark((struct oriel_trace_mark){.kind = ORIEL_MARK_REGION,
                                       .region = 1,
                                       .begin_ns = 1000,
                                       .duration_ns = UINT64_C(1) << 40,
                                       .operations = 7,
                                       .calls_ns_low = 5,
                                       .calls_ns_high = 1});
    add_mark(
        (struct oriel_trace_mark){.kind = ORIEL_MARK_PAUSE, .begin_ns = 500, .duration_ns = 200});
    oriel_trace_flush();
    raise(SIGKILL);
}

static bool has_weight_ten(const struct oriel_trace_record *event, void *context)
{
    *(uint64_t *)context += event->weight;
    return event->weight == 10;
}

static bool look_at_mark(const struct oriel_trace_mark_record *found, void *context)
{
    int *seen = context;
    const struct oriel_trace_mark *mark = found->mark;
    if (mark->kind == ORIEL_MARK_PAUSE) {
        assert_int_equal(found->begin_ns, 0); /* the earliest */
        assert_int_equal(found->end_ns, 200);
        *seen += 1;
    } else {
        assert_string_equal(found->name, "solve");
        assert_int_equal(mark->operations, 7);
        *seen += 10;
    }
    return true;
}

/* The flush has everything in the file before the process is killed. */
static void selection_and_marks_are_read_back(void **state)
{
    struct oriel_traces *traces;
    uint64_t weight = 0;
    int marks = 0;
    FILE *nowhere = fopen("/dev/null", "w");
    (void)state;
    assert_int_equal(in_process(write_selected), SIGKILL);
    assert_true(oriel_traces_open(folder, nowhere, &traces));
    fclose(nowhere);
    assert_int_equal(traces->sample, 10);
    assert_string_equal(traces->filter, "rank=0");
    assert_int_equal(traces->ranks[0].events, SOME);
    assert_int_equal(traces->ranks[0].paused_ns, 200);
    oriel_traces_each(traces, has_weight_ten, &weight);
    assert_int_equal(weight, 10 * SOME);
    oriel_traces_marks_each(traces, look_at_mark, &marks);
    assert_int_equal(marks, 11);
    oriel_traces_close(traces);
}

static void find_no_folder(void)
{
    EXPECT(strcmp(oriel_trace_writer_open("/proc/none/rank-0.oriel", MIB),
                  "No such file or directory") == 0);
}

static void missing_folder_is_reported(void **state)
{
    (void)state;
    assert_int_equal(in_process(find_no_folder), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_remove)
    const struct CMUnitTest tests[] = {
        TEST(all_events_arrive_in_order),
        TEST(rings_are_used_again),
        TEST(events_without_room_are_counted),
        TEST(killed_trace_is_readable_up_to_the_last_flush),
        TEST(disk_is_bounded),
        TEST(full_disk_is_reported_once),
        TEST(children_do_not_write),
        TEST(descriptors_are_not_the_programs),
        TEST(earlier_run_is_replaced),
        TEST(the_last_description_of_a_call_site_counts),
        TEST(other_file_is_left_alone),
        TEST(missing_folder_is_reported),
        TEST(selection_and_marks_are_read_back),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
