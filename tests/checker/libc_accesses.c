/* Functions of libc that access buffers and window memory concurrently with operations. They are
 * seen without -fsanitize=thread, too; then only beside operations that are under way. */
#include "offenders.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ROOM = 64 };

/* The calling rank's part of the window. */
static int *own(MPI_Win win)
{
    int *memory;
    int found;
    MPI_Win_get_attr(win, MPI_WIN_BASE, &memory, &found);
    return memory;
}

static void unlock_and_free(MPI_Win win)
{
    if (rank == 0)
        MPI_Win_unlock(1, win);
    MPI_Win_free(&win);
}

/* Compilers call these for large files, and when they know the sizes. */
ssize_t pread64(int fd, void *to, size_t len_bytes, off_t offset);
ssize_t pwrite64(int fd, const void *from, size_t len_bytes, off_t offset);
ssize_t __read_chk(int fd, void *to, size_t len_bytes, size_t room_bytes);
size_t __fread_chk(void *to, size_t room_bytes, size_t item_bytes, size_t count, FILE *stream);
void *__mempcpy_chk(void *to, const void *from, size_t len_bytes, size_t room_bytes);

static volatile size_t two = 2; /* which the compiler does not know */

/* The compiler knows what mempcpy returns, and calls memcpy where it may. */
static void *(*volatile mempcpy_chk)(void *, const void *, size_t, size_t) = __mempcpy_chk;

static bool copy_by_mempcpy_chk(void *to)
{
    return mempcpy_chk(to, "7", two, 8) == (char *)to + 2;
}

static bool read_from_stream(void *to)
{
    FILE *stream = fopen("/dev/zero", "r");
    bool read = __fread_chk(to, 8, 4, 2, stream) == 2;
    return fclose(stream) == 0 && read;
}

/* In two parts, of which the message fills the first. */
static bool receive_message(void *to)
{
    int fds[2];
    struct iovec parts[] = {{to, 4}, {(char *)to + 4, 400}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0 || send(fds[1], "1234", 4, 0) != 4)
        return false;
    bool received = recvmsg(fds[0], &message, 0) == 4;
    return close(fds[0]) == 0 && close(fds[1]) == 0 && received;
}

/* A put of rank 0 to rank 1 that is under way, and its buffer. */
#define PUT_UNDER_WAY(values)                                                                      \
    MPI_Win win = ints_window(ROOM);                                                               \
    static int values[ROOM];                                                                       \
    if (rank == 0)                                                                                 \
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);

CASE(L1, memset_of_the_buffer_of_a_put, 2)
{
    PUT_UNDER_WAY(values)
    if (rank == 0) {
        MPI_Put(values, ROOM / 2, MPI_INT, 1, 0, ROOM / 2, MPI_INT, win); /* FINDS L1 here */
        memset(values + (right ? ROOM / 2 : ROOM / 2 - 1), 0, 128);       /* FINDS L1 here */
    }
    unlock_and_free(win);
}

/* Reading it is right. */
CASE(L1, memcpy_from_the_result_of_a_get, 2)
{
    PUT_UNDER_WAY(values)
    int copy[ROOM];
    volatile size_t len_bytes = sizeof copy; /* otherwise the compiler makes instructions of it */
    if (rank == 0) {
        if (right)
            MPI_Put(values, ROOM, MPI_INT, 1, 0, ROOM, MPI_INT, win);
        else
            MPI_Get(values, ROOM, MPI_INT, 1, 0, ROOM, MPI_INT, win); /* FINDS L1 here */
        memcpy(copy, values, len_bytes);                              /* FINDS L1 here */
    }
    unlock_and_free(win);
}

CASE(L1, strcpy_into_the_buffer_of_a_put, 2)
{
    PUT_UNDER_WAY(values)
    volatile char text[] = "a text of some length";
    if (rank == 0) {
        MPI_Put(values, 4, MPI_INT, 1, 0, 4, MPI_INT, win); /* FINDS L1 here */
        if (right)
            MPI_Win_flush_local(1, win);
        strcpy((char *)values, (char *)text); /* FINDS L1 here */
    }
    unlock_and_free(win);
}

CASE(L1, write_of_the_result_of_a_get_with_a_request, 2)
{
    PUT_UNDER_WAY(values)
    if (rank == 0) {
        MPI_Request request;
        int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
        MPI_Rget(values, 8, MPI_INT, 1, 0, 8, MPI_INT, win, &request); /* FINDS L1 here */
        if (right)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (write(fd, values + 7, 4) != 4) /* FINDS L1 here */
            abort();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        close(fd);
    }
    unlock_and_free(win);
}

/* Only the bytes that were read are stored. */
CASE(L1, read_into_the_buffer_of_a_message, 2)
{
    static int values[ROOM];
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0) {
        int fds[2];
        char *to = (char *)(values + (right ? 6 : 7));
        if (pipe(fds) != 0 || write(fds[1], "12345678", 8) != 8)
            abort();
        MPI_Issend(values + 8, 8, MPI_INT, 1, 9, MPI_COMM_WORLD, &request); /* FINDS L1 here */
        if (read(fds[0], to, sizeof values / 2) != 8)                       /* FINDS L1 here */
            abort();
        close(fds[0]);
        close(fds[1]);
    } else if (rank == 1) {
        MPI_Recv(values, 8, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

CASE(L1, fread_into_the_buffer_of_a_put, 2)
{
    PUT_UNDER_WAY(values)
    if (rank == 0) {
        FILE *zeros = fopen("/dev/zero", "r");
        MPI_Put(values, 4, MPI_INT, 1, 0, 4, MPI_INT, win); /* FINDS L1 here */
        if (right)
            MPI_Win_flush(1, win);
        if (fread(values, 4, 1, zeros) != 1) /* FINDS L1 here */
            abort();
        fclose(zeros);
    }
    unlock_and_free(win);
}

CASE(L1, recv_into_the_buffer_of_an_accumulate, 2)
{
    PUT_UNDER_WAY(values)
    if (rank == 0) {
        int fds[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0 || send(fds[1], "12345678", 8, 0) != 8)
            abort();
        MPI_Accumulate(values, 1, MPI_INT, 1, 0, 1, MPI_INT, MPI_SUM, win); /* FINDS L1 here */
        if (recv(fds[0], values + (right ? 1 : 0), 8, 0) != 8)              /* FINDS L1 here */
            abort();
        close(fds[0]);
        close(fds[1]);
    }
    unlock_and_free(win);
}

/* Other functions that store and load as those above do, also those that compilers call in place of
 * them when sizes are known. zeros: to read, which any write to it ignores. */
#define BESIDE_A_PUT(name, store) BESIDE(name, MPI_Put, store)
#define BESIDE_A_GET(name, load)  BESIDE(name, MPI_Get, load)
#define BESIDE(name, operate, access)                                                              \
    CASE(L1, name, 2)                                                                              \
    {                                                                                              \
        PUT_UNDER_WAY(values)                                                                      \
        int zeros = open("/dev/zero", O_RDWR);                                                     \
        int *at = values + (right ? 4 : 3);                                                        \
        if (rank == 0) {                                                                           \
            operate(values, 4, MPI_INT, 1, 0, 4, MPI_INT, win);                                    \
            if (!(access))                                                                         \
                abort();                                                                           \
        }                                                                                          \
        close(zeros);                                                                              \
        unlock_and_free(win);                                                                      \
    }

BESIDE_A_PUT(pread64_into_the_buffer, pread64(zeros, at, 8, 0) == 8)     /* FINDS L1 here */
BESIDE_A_PUT(read_chk_into_the_buffer, __read_chk(zeros, at, 8, 8) == 8) /* FINDS L1 here */
BESIDE_A_PUT(mempcpy_chk_to_the_buffer, copy_by_mempcpy_chk(at))         /* FINDS L1 here */
BESIDE_A_PUT(fread_chk_into_the_buffer, read_from_stream(at))            /* FINDS L1 here */
BESIDE_A_PUT(recvmsg_into_the_buffer, receive_message(at))               /* FINDS L1 here */
BESIDE_A_GET(pwrite_of_the_result, pwrite(zeros, at, 8, 0) == 8)         /* FINDS L1 here */
BESIDE_A_GET(pwrite64_of_the_result, pwrite64(zeros, at, 8, 0) == 8)     /* FINDS L1 here */

/* Window memory. The put is issued before the access, and is not complete after it. */
CASE(L1, memset_of_window_memory_during_a_put, 2)
{
    PUT_UNDER_WAY(values)
    if (rank == 0) {
        MPI_Put(values, 4, MPI_INT, 1, 0, 4, MPI_INT, win); /* FINDS L1 here */
        notify(1);
        await_notice(1);
    } else if (rank == 1) {
        await_notice(0);
        memset(own(win) + (right ? 4 : 2), 0, 3 * sizeof(int)); /* FINDS L1 here */
        notify(0);
    }
    unlock_and_free(win);
}
