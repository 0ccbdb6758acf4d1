/* Descriptors that may have pinned pages are found. Promotion refuses them unless pins are allowed,
 * and accepts them once closed. Other descriptors are accepted. Pinned pages still receive writes
 * after their promotion has ended. */
#include "memory/promote/pinned_pages.h"

#include "memory/file.h"
#include "memory/promote/promote.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/if_alg.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cmocka_all.h"

static char *page;

static enum oriel_status try_promotion(bool pins_allowed)
{
    struct oriel_promote_options how = {.method = ORIEL_BARRIER_AUTO, .pins_allowed = pins_allowed};
    struct oriel_promoted promoted;
    enum oriel_status status = oriel_promote((uintptr_t)page, ORIEL_PAGE_BYTES, &how, &promoted);
    if (status == ORIEL_OK)
        oriel_promote_release(&promoted);
    return status;
}

/* Refused, with a reason that contains this text; accepted if pins are allowed. */
static void expect_refusal(const char *text)
{
    char reason[300] = "";
    assert_true(oriel_pinned_pages_possible(reason, sizeof reason));
    if (strstr(reason, text) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", reason, text);
    assert_int_not_equal(try_promotion(false), ORIEL_OK);
    assert_non_null(strstr(oriel_fail_message(), text));
    if (try_promotion(true) != ORIEL_OK)
        fail_msg("%s", oriel_fail_message());
}

static void expect_none(void)
{
    char reason[300] = "";
    if (oriel_pinned_pages_possible(reason, sizeof reason))
        fail_msg("%s", reason);
    if (try_promotion(false) != ORIEL_OK)
        fail_msg("%s", oriel_fail_message());
}

static int open_or_skip(const char *path, int how)
{
    int fd = open(path, how | O_CLOEXEC, 0600);
    if (fd < 0) {
        print_message("%s: %s\n", path, strerror(errno));
        skip();
    }
    return fd;
}

static void ring_is_refused(void **state)
{
    struct io_uring_params parameters = {.flags = 0};
    (void)state;
    int ring = (int)syscall(SYS_io_uring_setup, 4, &parameters);
    if (ring < 0) {
        print_message("io_uring_setup: %s\n", strerror(errno));
        skip();
    }
    expect_refusal("anon_inode:[io_uring]");
    close(ring);
    expect_none();
}

static bool is_promoted(void)
{
    uint64_t offset, held_bytes;
    return oriel_promote_find((uintptr_t)page, ORIEL_PAGE_BYTES, &offset, &held_bytes);
}

static void pages_that_may_have_been_pinned_meanwhile_stay_shared(void **state)
{
    static const char path[] = "pins-meanwhile";
    struct oriel_promoted promoted;
    (void)state;
    close(open_or_skip(path, O_CREAT | O_RDWR | O_DIRECT)); /* before the page is promoted */
    memset(page, 'a', ORIEL_PAGE_BYTES);
    assert_int_equal(oriel_promote((uintptr_t)page, ORIEL_PAGE_BYTES, NULL, &promoted), ORIEL_OK);
    int fd = open_or_skip(path, O_CREAT | O_RDWR | O_DIRECT);
    unlink(path);
    assert_int_equal(oriel_promote_release(&promoted), 0);
    assert_true(is_promoted());
    assert_int_equal(page[ORIEL_PAGE_BYTES - 1], 'a');
    assert_int_equal(oriel_promote((uintptr_t)page, ORIEL_PAGE_BYTES, NULL, &promoted),
                     ORIEL_OK); /* nothing moves for it */
    assert_int_equal(oriel_promote_release(&promoted), 0);
    assert_true(is_promoted());
    close(fd);
    assert_int_equal(oriel_promote((uintptr_t)page, ORIEL_PAGE_BYTES, NULL, &promoted), ORIEL_OK);
    assert_int_equal(oriel_promote_release(&promoted), 0);
    assert_false(is_promoted());
    assert_int_equal(page[ORIEL_PAGE_BYTES - 1], 'a');
}

/* The parts of a ring that one request needs. */
struct ring {
    int fd;
    struct io_uring_params about;
    char *requests, *answers;
    struct io_uring_sqe *entries;
};

static char *map_ring(const struct ring *ring, size_t len_bytes, off_t offset)
{
    char *base = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, offset);
    assert_true(base != MAP_FAILED);
    return base;
}

static bool open_ring(struct ring *ring)
{
    *ring = (struct ring){.fd = -1};
    ring->fd = (int)syscall(SYS_io_uring_setup, 4, &ring->about);
    if (ring->fd < 0)
        return false;
    const struct io_sqring_offsets *sq = &ring->about.sq_off;
    const struct io_cqring_offsets *cq = &ring->about.cq_off;
    ring->requests =
        map_ring(ring, sq->array + ring->about.sq_entries * sizeof(uint32_t), IORING_OFF_SQ_RING);
    ring->answers = map_ring(ring, cq->cqes + ring->about.cq_entries * sizeof(struct io_uring_cqe),
                             IORING_OFF_CQ_RING);
    ring->entries =
        (void *)map_ring(ring, ring->about.sq_entries * sizeof *ring->entries, IORING_OFF_SQES);
    return true;
}

static void close_ring(const struct ring *ring)
{
    munmap(ring->requests, ring->about.sq_off.array + ring->about.sq_entries * sizeof(uint32_t));
    munmap(ring->answers,
           ring->about.cq_off.cqes + ring->about.cq_entries * sizeof(struct io_uring_cqe));
    munmap(ring->entries, ring->about.sq_entries * sizeof *ring->entries);
    close(ring->fd);
}

/* Reads a page of the file into the registered page; returns the kernel's result. */
static int read_registered(struct ring *ring, int file)
{
    *ring->entries =
        (struct io_uring_sqe){.opcode = IORING_OP_READ_FIXED, .fd = file, .len = ORIEL_PAGE_BYTES};
    ring->entries->addr = (uintptr_t)page;
    *(uint32_t *)(ring->requests + ring->about.sq_off.array) = 0;
    __atomic_store_n((uint32_t *)(ring->requests + ring->about.sq_off.tail), 1, __ATOMIC_RELEASE);
    assert_int_equal(syscall(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0),
                     1);
    return ((const struct io_uring_cqe *)(ring->answers + ring->about.cq_off.cqes))->res;
}

static void buffers_registered_meanwhile_are_the_programs_later(void **state)
{
    static char wanted[ORIEL_PAGE_BYTES];
    struct ring ring;
    struct oriel_promoted promoted;
    (void)state;
    memset(page, 'a', ORIEL_PAGE_BYTES);
    memset(wanted, 'b', sizeof wanted);
    assert_int_equal(oriel_promote((uintptr_t)page, ORIEL_PAGE_BYTES, NULL, &promoted), ORIEL_OK);
    if (!open_ring(&ring)) {
        print_message("io_uring_setup: %s\n", strerror(errno));
        oriel_promote_release(&promoted);
        skip();
    }
    int file = memfd_create("pins", MFD_CLOEXEC);
    assert_int_equal(write(file, wanted, sizeof wanted), sizeof wanted);
    struct iovec whole = {page, ORIEL_PAGE_BYTES};
    assert_int_equal(syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, &whole, 1),
                     0);
    assert_int_equal(oriel_promote_release(&promoted), 0);
    assert_int_equal(read_registered(&ring, file), ORIEL_PAGE_BYTES);
    assert_memory_equal(page, wanted, sizeof wanted);
    close_ring(&ring);
    close(file);
    expect_none();
    assert_false(is_promoted());
}

static void file_with_direct_io_is_refused(void **state)
{
    static const char path[] = "pins-direct";
    (void)state;
    int fd = open_or_skip(path, O_CREAT | O_RDWR | O_DIRECT);
    unlink(path);
    expect_refusal(path);
    fcntl(fd, F_SETFL, 0);
    expect_none();
    fcntl(fd, F_SETFL, O_DIRECT);
    expect_refusal(path);
    close(fd);
    expect_none();
}

static void aio_context_is_refused(void **state)
{
    aio_context_t context = 0;
    (void)state;
    if (syscall(SYS_io_setup, 8, &context) != 0) {
        print_message("io_setup: %s\n", strerror(errno));
        skip();
    }
    expect_refusal("AIO context");
    assert_int_equal(syscall(SYS_io_destroy, context), 0);
    expect_none();
}

static void socket_that_fills_pinned_pages_is_refused(void **state)
{
    (void)state;
    int fd = socket(AF_ALG, SOCK_SEQPACKET, 0);
    if (fd < 0) {
        print_message("AF_ALG: %s\n", strerror(errno));
        skip();
    }
    expect_refusal("socket:");
    close(fd);
    expect_none();
}

static void unknown_device_is_refused(void **state)
{
    static const char *const devices[] = {"/dev/kvm", "/dev/fuse", "/dev/vfio/vfio", "/dev/hwrng"};
    (void)state;
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        int fd = open(devices[i], O_RDWR | O_CLOEXEC);
        if (fd < 0)
            fd = open(devices[i], O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            print_message("%s: %s\n", devices[i], strerror(errno));
            continue;
        }
        expect_refusal(devices[i]);
        close(fd);
    }
    expect_none();
}

/* Descriptors opened with O_PATH pin nothing. */
static void device_without_access_is_accepted(void **state)
{
    (void)state;
    int fd = open_or_skip("/dev/kvm", O_PATH);
    expect_none();
    close(fd);
}

/* All that ordinary programs and the hosts have open. */
static void ordinary_descriptors_are_accepted(void **state)
{
    (void)state;
    int fds[40];
    int count = 0;
    sigset_t none;
    sigemptyset(&none);
    fds[count++] = open("/dev/null", O_RDWR);
    fds[count++] = open("/dev/zero", O_RDONLY);
    fds[count++] = open("/dev/urandom", O_RDONLY);
    fds[count++] = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    fds[count++] = open("/dev/cpu_dma_latency", O_RDWR);
    fds[count++] = open("/dev/userfaultfd", O_RDWR);
    fds[count++] = open("/proc/self/exe", O_RDONLY);
    fds[count++] = open("/proc", O_RDONLY | O_DIRECTORY);
    fds[count++] = open("/", O_PATH);
    fds[count++] = memfd_create("pins", 0);
    fds[count++] = eventfd(0, 0);
    fds[count++] = epoll_create1(0);
    fds[count++] = timerfd_create(CLOCK_MONOTONIC, 0);
    fds[count++] = signalfd(-1, &none, 0);
    fds[count++] = inotify_init();
    fds[count++] = (int)syscall(SYS_pidfd_open, getpid(), 0);
    fds[count++] = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1);
    fds[count++] = socket(AF_INET, SOCK_STREAM, 0);
    fds[count++] = socket(AF_INET6, SOCK_DGRAM, 0);
    fds[count++] = socket(AF_NETLINK, SOCK_RAW, 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, &fds[count]), 0);
    count += 2;
    assert_int_equal(pipe2(&fds[count], O_DIRECT), 0); /* packets, which pin nothing */
    count += 2;
    expect_none();
    while (count > 0)
        close(fds[--count]);
}

static void one_of_many_descriptors_is_found(void **state)
{
    struct io_uring_params parameters = {.flags = 0};
    int fds[200];
    (void)state;
    for (size_t i = 0; i < 200; i++)
        fds[i] = dup(0);
    int ring = (int)syscall(SYS_io_uring_setup, 4, &parameters);
    if (ring >= 0)
        expect_refusal("anon_inode:[io_uring]");
    close(ring);
    expect_none();
    for (size_t i = 0; i < 200; i++)
        close(fds[i]);
    if (ring < 0)
        skip();
}

static int start(void **state)
{
    (void)state;
    page = mmap(NULL, ORIEL_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    page[0] = 1;
    return oriel_file_start() == ORIEL_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordinary_descriptors_are_accepted),
        cmocka_unit_test(ring_is_refused),
        cmocka_unit_test(pages_that_may_have_been_pinned_meanwhile_stay_shared),
        cmocka_unit_test(buffers_registered_meanwhile_are_the_programs_later),
        cmocka_unit_test(file_with_direct_io_is_refused),
        cmocka_unit_test(aio_context_is_refused),
        cmocka_unit_test(socket_that_fills_pinned_pages_is_refused),
        cmocka_unit_test(unknown_device_is_refused),
        cmocka_unit_test(device_without_access_is_accepted),
        cmocka_unit_test(one_of_many_descriptors_is_found),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
