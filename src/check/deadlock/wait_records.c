/* This process's record: the wait of its one thread in MPI. Needs are written while the serial is
 * even; the serial is odd from begin to end. So a reader that sees the same odd serial before and
 * after has read the needs of one wait. A second thread that waits ends the recording for good: the
 * process never counts as waiting again. */
#include "check/deadlock/wait_internal.h"

#include "base/identity.h"
#include "base/log.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct oriel_wait_record *own; /* NULL: nothing is recorded */
static bool noting;                   /* the record's thread is between open and end */
static bool waiting;                  /* and after begin */
static int32_t before[ORIEL_WAIT_THREADS];
static int before_count;

enum thread { THREAD_UNKNOWN, THREAD_FIRST, THREAD_OTHER };
static _Thread_local enum thread this_thread;

/* --- a wait --- */

static enum thread thread_enter(void)
{
    int32_t none = 0;
    int32_t tid = (int32_t)syscall(SYS_gettid);
    if (atomic_compare_exchange_strong(&own->thread, &none, tid) || none == tid)
        return THREAD_FIRST;
    atomic_store(&own->many, 1);
    return THREAD_OTHER;
}

bool oriel_wait_open(const struct oriel_site *site, const char *name, enum oriel_wait_mode mode)
{
    if (own == NULL)
        return false;
    if (this_thread == THREAD_UNKNOWN)
        this_thread = thread_enter();
    if (this_thread == THREAD_OTHER || noting ||
        atomic_load_explicit(&own->many, memory_order_relaxed) != 0 || !oriel_shm_is_open())
        return false;
    struct oriel_wait_noted *noted = &own->noted;
    noting = true;
    noted->site = *site;
    noted->mode = mode;
    noted->count = 0;
    noted->name[0] = '\0';
    if (name != NULL)
        snprintf(noted->name, sizeof noted->name, "%s", name);
    return true;
}

void oriel_wait_begin(void)
{
    waiting = true;
    atomic_fetch_add_explicit(&own->serial, 1, memory_order_release); /* odd */
}

void oriel_wait_end(void)
{
    if (waiting) {
        /* Even, before the record is written again: the fence orders later stores after this one,
         * which a read-modify-write alone does not. */
        atomic_fetch_add_explicit(&own->serial, 1, memory_order_seq_cst);
        atomic_thread_fence(memory_order_release);
        waiting = false;
    }
    noting = false;
}

struct oriel_wait_suspended {
    struct oriel_wait_noted noted;
};

void oriel_wait_interrupt(void)
{
    if (this_thread == THREAD_FIRST && noting)
        oriel_wait_end();
}

struct oriel_wait_suspended *oriel_wait_suspend(void)
{
    if (this_thread != THREAD_FIRST || !waiting)
        return NULL;
    struct oriel_wait_suspended *suspended = malloc(sizeof *suspended);
    if (suspended != NULL)
        suspended->noted = own->noted;
    oriel_wait_end();
    return suspended;
}

void oriel_wait_forget(struct oriel_wait_suspended *suspended)
{
    free(suspended);
}

void oriel_wait_resume(struct oriel_wait_suspended *suspended)
{
    if (suspended != NULL && own != NULL && !noting && oriel_shm_is_open()) {
        noting = true;
        own->noted = suspended->noted;
        oriel_wait_begin();
    }
    free(suspended);
}

void oriel_wait_add(const struct oriel_wait_need *need)
{
    struct oriel_wait_noted *noted = &own->noted;
    if (noted->count < ORIEL_WAIT_NEEDS)
        noted->needs[noted->count++] = *need;
    else if (noted->mode == ORIEL_WAIT_FOR_ANY)
        noted->needs[0].kind = ORIEL_NEED_UNKNOWN;
    else
        /* a need that may be fulfilled unseen counts only if all needs of the wait are recorded */
        for (uint32_t i = 0; i < noted->count; i++)
            if (noted->needs[i].kind & ORIEL_NEED_MAYBE)
                noted->needs[i].kind = ORIEL_NEED_UNKNOWN;
}

/* --- needs --- */

void oriel_wait_for_key(int world_rank, const struct oriel_key *key)
{
    struct oriel_wait_need need = {.kind = ORIEL_NEED_KEY, .rank = world_rank};
    memcpy(need.words, key->words, sizeof need.words);
    oriel_wait_add(&need);
}

struct oriel_wait_need oriel_need_call(const struct oriel_collective_progress *progress, int member,
                                       uint64_t number, uint16_t call, bool below)
{
    return (struct oriel_wait_need){
        .kind = ORIEL_NEED_CALL,
        .rank = member,
        .words = {oriel_shm_place(progress), number,
                  (uint64_t)call << 1 | below | (progress->is_window ? ORIEL_NEED_OF_WINDOW : 0),
                  progress->id}};
}

void oriel_wait_for_call(const struct oriel_collective_progress *progress, int member,
                         uint64_t number, uint16_t call, bool below)
{
    struct oriel_wait_need need = oriel_need_call(progress, member, number, call, below);
    oriel_wait_add(&need);
}

void oriel_wait_for_lock(const struct oriel_collective_progress *progress, int target,
                         bool exclusive)
{
    struct oriel_wait_need need = {
        .kind = ORIEL_NEED_LOCK,
        .rank = -1,
        .words = {oriel_shm_place(progress), (uint64_t)(int64_t)target, exclusive, progress->id}};
    if (progress->has_locks == 0)
        need.kind = ORIEL_NEED_UNKNOWN;
    oriel_wait_add(&need);
}

struct oriel_wait_need oriel_need_notification(const struct oriel_collective_progress *progress)
{
    struct oriel_wait_need need = oriel_need_call(progress, -1, 0, 0, false);
    need.kind = ORIEL_NEED_NOTIFICATION;
    return need;
}

struct oriel_wait_need oriel_need_send(int world_rank, uint64_t comm, int tag)
{
    return (struct oriel_wait_need){
        .kind = ORIEL_NEED_SEND, .rank = world_rank, .words = {comm, (uint64_t)(int64_t)tag}};
}

struct oriel_wait_need oriel_need_receive(int world_rank, uint64_t comm, int tag,
                                          const struct oriel_collective_progress *progress)
{
    return (struct oriel_wait_need){
        .kind = world_rank < 0 && progress == NULL ? ORIEL_NEED_UNKNOWN : ORIEL_NEED_RECEIVE,
        .rank = world_rank,
        .words = {comm, (uint64_t)(int64_t)tag, oriel_shm_place(progress)}};
}

void oriel_wait_sending(int peer, int count)
{
    if (own != NULL && oriel_shm_is_open() && peer >= 0)
        atomic_fetch_add_explicit(&own->sending[peer % ORIEL_WAIT_BUCKETS], count,
                                  memory_order_release);
}

void oriel_wait_receiving(int peer, int count)
{
    if (own == NULL || !oriel_shm_is_open())
        return;
    _Atomic int32_t *counter =
        peer < 0 ? &own->receiving_any : &own->receiving[peer % ORIEL_WAIT_BUCKETS];
    atomic_fetch_add_explicit(counter, count, memory_order_release);
}

/* --- threads --- */

int oriel_wait_threads_list(int32_t pid, int32_t *threads, int room)
{
    char path[64];
    int count = 0;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *folder = opendir(path);
    if (folder == NULL)
        return -1;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        int tid = atoi(entry->d_name);
        if (tid <= 0)
            continue;
        if (count == room) {
            count = -1;
            break;
        }
        threads[count++] = tid;
    }
    closedir(folder);
    return count;
}

void oriel_wait_records_before_init(void)
{
    before_count = oriel_wait_threads_list(getpid(), before, ORIEL_WAIT_THREADS);
}

static bool thread_is_listed(int32_t thread, const int32_t *threads, int count)
{
    for (int i = 0; i < count; i++)
        if (threads[i] == thread)
            return true;
    return false;
}

/* Records the threads that started during MPI_Init. */
static void host_threads_record(struct oriel_wait_record *record)
{
    int32_t now[ORIEL_WAIT_THREADS];
    int count = oriel_wait_threads_list(getpid(), now, ORIEL_WAIT_THREADS);
    if (before_count < 0 || count < 0)
        return;
    for (int i = 0; i < count; i++)
        if (!thread_is_listed(now[i], before, before_count) &&
            now[i] != (int32_t)syscall(SYS_gettid))
            record->host_threads[record->host_threads_count++] = now[i];
}

/* --- start and end --- */

struct oriel_key oriel_wait_table_key(void)
{
    return (struct oriel_key){
        .words = {UINT64_C(0x5741495453)}}; /* "WAITS": above all kinds of order.h */
}

enum oriel_status oriel_wait_records_start(int world_rank, int world_size, bool threads)
{
    struct oriel_key key = oriel_wait_table_key();
    struct oriel_identity identity;
    oriel_shm_offset *records =
        oriel_shm_at(oriel_shm_find(&key, (size_t)(unsigned)world_size * sizeof *records, NULL));
    oriel_shm_offset place = oriel_shm_allocate(sizeof(struct oriel_wait_record));
    struct oriel_wait_record *record = oriel_shm_at(place);
    if (records == NULL || record == NULL)
        return oriel_fail(ORIEL_E_NO_MEM,
                          "no room for the waits of rank %d in the checker's memory", world_rank);
    record->pid = (int32_t)getpid();
    record->process = oriel_identity_make(&identity) ? oriel_identity_own_word() : 0;
    record->threads = threads;
    host_threads_record(record);
    atomic_store(&record->state, ORIEL_STATE_RUNS);
    __atomic_store_n(&records[world_rank], place, __ATOMIC_RELEASE);
    own = record;
    return ORIEL_OK;
}

void oriel_wait_records_finish(const struct oriel_site *site)
{
    if (own == NULL || !oriel_shm_is_open())
        return;
    if (!noting) /* otherwise the serial may be odd, and the record is being read */
        own->noted.site = *site;
    atomic_store_explicit(&own->state, ORIEL_STATE_FINISHED, memory_order_release);
}

void oriel_wait_records_stop(void)
{
    own = NULL;
}

bool oriel_wait_record_has_died(const struct oriel_wait_record *record)
{
    return record->process != 0 && !oriel_identity_word_alive(record->process);
}

bool oriel_wait_rank_has_died(int world_rank)
{
    struct oriel_key key = oriel_wait_table_key();
    size_t table_bytes = (size_t)(unsigned)oriel_shm_world_size() * sizeof(oriel_shm_offset);
    const oriel_shm_offset *records = oriel_shm_at(oriel_shm_find(&key, table_bytes, NULL));
    const struct oriel_wait_record *record =
        records == NULL ? NULL
                        : oriel_shm_at(__atomic_load_n(&records[world_rank], __ATOMIC_ACQUIRE));
    return record != NULL &&
           atomic_load_explicit(&record->state, memory_order_acquire) == ORIEL_STATE_RUNS &&
           oriel_wait_record_has_died(record);
}
