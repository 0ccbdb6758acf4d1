/* The memory file in a forked child: it reads everything, its writes stay private unless memory is
 * of the shared type, and it cannot affect the parent's blocks. Each test runs in its own process,
 * which alone starts the file. */
#include "memory/file.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../busy.h"
#include "cmocka_all.h"
#include "expect.h"

#define KIB UINT64_C(1024)

enum { BLOCKS = 40, FORKS = 100 };

static void in_process(void (*body)(void))
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(busy_limit_s(30));
        EXPECT(oriel_file_start() == ORIEL_OK);
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* Forks; true in the child, which ends by _exit. The parent waits for it first. */
static bool is_child(void)
{
    int status = 0;
    pid_t pid = fork();
    EXPECT(pid >= 0);
    if (pid == 0)
        return true;
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
    return false;
}

static uint64_t held_bytes(int fd)
{
    struct stat info;
    EXPECT(fstat(fd, &info) == 0);
    return (uint64_t)info.st_blocks * 512;
}

static char *block_of(uint64_t len_bytes, bool shared)
{
    uint64_t offset;
    EXPECT((shared ? oriel_file_alloc_shared(len_bytes, 64, &offset)
                   : oriel_file_alloc(len_bytes, 64, &offset)) == ORIEL_OK);
    memset(oriel_file_base() + offset, 1, len_bytes);
    return oriel_file_base() + offset;
}

static uint64_t offset_of(const char *block)
{
    return (uint64_t)(block - oriel_file_base());
}

static bool all_are(const char *bytes, uint64_t len_bytes, char value)
{
    return bytes[0] == value && memcmp(bytes, bytes + 1, len_bytes - 1) == 0;
}

/* Small and large blocks mixed, every third of them freed again. */
static void writes_body(void)
{
    static const uint64_t lengths[] = {64, 4096, 32 * KIB, 100 * KIB};
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = block_of(lengths[i / 2 % 4], i % 2 == 1);
    for (int i = 0; i < BLOCKS; i += 3)
        EXPECT(oriel_file_free(offset_of(blocks[i])));
    char *view =
        mmap(NULL, oriel_file_reserve(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
             oriel_file_identity()->memory_fd, 0); /* a peer's */
    EXPECT(view != MAP_FAILED);
    if (is_child()) {
        for (int i = 0; i < BLOCKS; i++) {
            EXPECT(i % 3 == 0 || all_are(blocks[i], lengths[i / 2 % 4], 1));
            memset(blocks[i], 2, lengths[i / 2 % 4]);
        }
        _exit(0);
    }
    for (int i = 0; i < BLOCKS; i++) {
        if (i % 3 == 0)
            continue;
        EXPECT(all_are(blocks[i], lengths[i / 2 % 4], i % 2 == 1 ? 2 : 1));
        blocks[i][5] = 3;
        EXPECT(view[offset_of(blocks[i]) + 5] == 3); /* the parent still shares with its peers */
    }
}

static void only_shared_blocks_get_the_childs_writes(void **state)
{
    (void)state;
    in_process(writes_body);
}

static void changes_body(void)
{
    char *block = block_of(100 * KIB, false);
    char *shared = block_of(100 * KIB, true);
    const struct oriel_file_header *header = (const struct oriel_file_header *)oriel_file_base();
    int fd = oriel_file_identity()->memory_fd;
    uint64_t before_bytes = held_bytes(fd);
    if (is_child()) {
        uint64_t offset;
        EXPECT(oriel_file_alloc(64, 64, &offset) == ORIEL_E_OTHER &&
               strlen(oriel_fail_message()) > 0);
        EXPECT(oriel_file_alloc_shared(1 << 20, 64, &offset) == ORIEL_E_OTHER);
        EXPECT(oriel_file_alloc_sparse(1 << 20, &offset) == ORIEL_E_OTHER);
        EXPECT(oriel_file_start() == ORIEL_E_OTHER);
        oriel_file_free(offset_of(block));
        oriel_file_free(offset_of(shared));
        oriel_file_finalise();
        EXPECT(oriel_file_find(block, 1,
                               /* still known as this process's, so that no other code frees it */
                               &offset));
        _exit(0);
    }
    EXPECT(header->state == ORIEL_FILE_RUNNING);
    EXPECT(all_are(block, 100 * KIB, 1) && all_are(shared, 100 * KIB, 1));
    EXPECT(held_bytes(fd) == before_bytes);
    EXPECT(oriel_file_free(offset_of(block)) && oriel_file_free(offset_of(shared)));
}

static void child_changes_no_block_of_the_parents(void **state)
{
    (void)state;
    in_process(changes_body);
}

static void grandchild_body(void)
{
    char *block = block_of(100 * KIB, false);
    if (!is_child())
        return;
    block[7] = 4;
    if (is_child()) {
        EXPECT(block[7] == 4 && block[8] == 1);
        block[8] = 5;
        _exit(0);
    }
    EXPECT(block[8] == 1);
    _exit(0);
}

static void grandchild_has_its_parents_writes(void **state)
{
    (void)state;
    in_process(grandchild_body);
}

/* A freed shared block is an ordinary one when it is allocated again, and vice versa. */
static void reuse_body(void)
{
    for (int round = 0; round < 6; round++) {
        bool shared = round % 2 == 0;
        char *block = block_of(100 * KIB, shared);
        if (is_child()) {
            memset(block, 2, 100 * KIB);
            _exit(0);
        }
        EXPECT(all_are(block, 100 * KIB, shared ? 2 : 1));
        EXPECT(oriel_file_free(offset_of(block)));
    }
}

static void reused_pages_are_shared_like_the_new_block(void **state)
{
    (void)state;
    in_process(reuse_body);
}

/* Programs close descriptors in bulk; the number may be another file's then. */
static void closed_body(void)
{
    char *block = block_of(100 * KIB, false);
    char text[] = "another file";
    int fd = oriel_file_identity()->memory_fd;
    int saved = dup(fd);
    int other = memfd_create("other", MFD_CLOEXEC);
    uint64_t before_bytes = held_bytes(saved);
    uint64_t offset;
    struct stat info;
    EXPECT(oriel_file_is_open());
    EXPECT(write(other, text, sizeof text) == (ssize_t)sizeof text);
    close(fd);
    EXPECT(!oriel_file_is_open());
    EXPECT(dup2(other, fd) == fd);
    EXPECT(!oriel_file_is_open());
    EXPECT(oriel_file_alloc(1 << 20, 64, &offset) == ORIEL_E_OTHER);
    EXPECT(strstr(oriel_fail_message(), "descriptor") != NULL);
    if (is_child()) {
        EXPECT(all_are(block, 100 * KIB, 1));
        _exit(0);
    }
    EXPECT(oriel_file_free(offset_of(block)));
    EXPECT(held_bytes(saved) <=
           before_bytes - 100 * KIB); /* before a read of them brings them back */
    EXPECT(all_are(block, 100 * KIB, 0));
    EXPECT(fstat(other, &info) == 0 && info.st_size == (off_t)sizeof text);
    EXPECT(pread(other, text, sizeof text, 0) == (ssize_t)sizeof text &&
           strcmp(text, "another file") == 0);
    EXPECT(dup2(saved, fd) == fd && oriel_file_is_open());
    EXPECT(oriel_file_alloc(1 << 20, 64, &offset) == ORIEL_OK);
}

static void closed_descriptor_harms_no_other_file(void **state)
{
    (void)state;
    in_process(closed_body);
}

static atomic_bool stop;

static void *allocate_always(void *unused)
{
    uint64_t offset;
    while (!atomic_load(&stop))
        if (oriel_file_alloc(40 * KIB, 64, &offset) == ORIEL_OK)
            oriel_file_free(offset);
    return unused;
}

static void busy_body(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        EXPECT(pthread_create(&threads[i], NULL, allocate_always, NULL) == 0);
    for (int i = 0; i < FORKS; i++) {
        if (is_child()) {
            uint64_t offset;
            EXPECT(oriel_file_alloc(40 * KIB, 64, &offset) == ORIEL_E_OTHER);
            _exit(0);
        }
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void fork_while_other_threads_allocate_does_not_hang(void **state)
{
    (void)state;
    in_process(busy_body);
}

/* The child's pages cost nothing until it writes: the whole file is a few mappings. */
static void large_body(void)
{
    uint64_t offset;
    enum oriel_status status = oriel_file_alloc_sparse(oriel_file_reserve() / 2, &offset);
    EXPECT(status == ORIEL_OK);
    if (is_child()) {
        char line[256];
        int mappings = 0;
        FILE *maps = fopen("/proc/self/maps", "re");
        EXPECT(maps != NULL);
        while (fgets(line, sizeof line, maps) != NULL)
            mappings += strstr(line, "memfd:oriel") != NULL;
        fclose(maps);
        EXPECT(mappings >= 1 &&
               mappings <=
                   4); /* private up to the end, the rest after it, the part that core files omit */
        oriel_file_base()[offset] = 1;
        _exit(0);
    }
    EXPECT(oriel_file_base()[offset] == 0);
}

static void fork_maps_a_file_of_any_size_at_once(void **state)
{
    (void)state;
    in_process(large_body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_shared_blocks_get_the_childs_writes),
        cmocka_unit_test(child_changes_no_block_of_the_parents),
        cmocka_unit_test(grandchild_has_its_parents_writes),
        cmocka_unit_test(reused_pages_are_shared_like_the_new_block),
        cmocka_unit_test(closed_descriptor_harms_no_other_file),
        cmocka_unit_test(fork_while_other_threads_allocate_does_not_hang),
        cmocka_unit_test(fork_maps_a_file_of_any_size_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
