/* Buffers and window memory that are freed, unmapped or returned from while they are needed. No
 * operation writes to such a buffer: that would harm the rest of the job. */
#include "offenders.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ROOM = 64 };

/* A lock of rank 1, by rank 0 only. */
static bool locks(MPI_Win win)
{
    if (rank == 0)
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    return rank == 0;
}

static void unlock_and_free(MPI_Win win)
{
    if (rank == 0)
        MPI_Win_unlock(1, win);
    MPI_Win_free(&win);
}

CASE(L3, free_of_the_buffer_of_a_put, 2)
{
    MPI_Win win = ints_window(ROOM);
    if (locks(win)) {
        int *values = calloc(ROOM, sizeof *values);
        int *others = calloc(ROOM, sizeof *others);
        MPI_Put(values, ROOM / 2, MPI_INT, 1, 0, ROOM / 2, MPI_INT, win); /* FINDS L3 here */
        delay();
        free(others);
        if (right)
            MPI_Win_flush_local(1, win);
        free(values); /* FINDS L3 here */
    }
    unlock_and_free(win);
}

/* A small operation, repeated: most of its calls take the fast path. */
CASE(L3, free_of_the_buffer_of_the_last_put, 2)
{
    MPI_Win win = ints_window(ROOM);
    if (locks(win)) {
        int *value = malloc(sizeof *value);
        for (int i = 0; i < 20; i++) {
            *value = i;
            MPI_Put(value, 1, MPI_INT, 1, 3, 1, MPI_INT, win); /* FINDS L3 here */
            if (right || i < 19)
                MPI_Win_flush(1, win);
        }
        free(value); /* FINDS L3 here */
    }
    unlock_and_free(win);
}

CASE(L3, free_of_the_buffer_of_a_put_with_a_request, 2)
{
    MPI_Win win = ints_window(ROOM);
    if (locks(win)) {
        MPI_Request request;
        int *values = calloc(ROOM, sizeof *values);
        MPI_Rput(values, ROOM, MPI_INT, 1, 0, ROOM, MPI_INT, win, &request); /* FINDS L3 here */
        if (right)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        free(values); /* FINDS L3 here */
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    unlock_and_free(win);
}

CASE(L3, free_of_the_buffer_of_a_message, 2)
{
    int *values = calloc(ROOM, sizeof *values);
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0) {
        MPI_Issend(values, ROOM, MPI_INT, 1, 9, MPI_COMM_WORLD, &request); /* FINDS L3 here */
        if (right)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        /* from here on the host does not read the buffer */
        MPI_Recv(NULL, 0, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Recv(values, ROOM, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(NULL, 0, MPI_INT, 0, 9, MPI_COMM_WORLD);
    }
    free(values); /* FINDS L3 here */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Both sends are complete at once, and hosts then use one handle for both. */
CASE(L3, free_of_the_buffer_of_the_second_message, 2)
{
    int *values = calloc(2, sizeof *values);
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[2];
    if (rank == 0) {
        MPI_Isend(&rank, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(values, 2, MPI_INT, 1, 9, MPI_COMM_WORLD, &requests[1]); /* FINDS L3 here */
        if (right)
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Recv(values, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(values, 2, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    free(values); /* FINDS L3 here */
    MPI_Waitall(2, requests, statuses);
}

/* C++'s operators new and delete, if their library is here. */
static void *(*cxx_new)(size_t bytes) = malloc;
static void (*cxx_delete)(void *block) = free;

static void cxx_find(void)
{
    void *library = dlopen("libstdc++.so.6", RTLD_NOW);
    if (library == NULL)
        return;
    *(void **)&cxx_new = dlsym(library, "_Znwm");
    *(void **)&cxx_delete = dlsym(library, "_ZdlPv");
}

CASE(L3, delete_of_the_buffer_of_a_put, 2)
{
    MPI_Win win = ints_window(ROOM);
    cxx_find();
    if (locks(win)) {
        int *values = cxx_new(ROOM * sizeof *values);
        memset(values, 0, ROOM * sizeof *values);
        MPI_Put(values, ROOM, MPI_INT, 1, 0, ROOM, MPI_INT, win); /* FINDS L3 here */
        if (right)
            MPI_Win_flush_all(win);
        cxx_delete(values); /* FINDS L3 here */
    }
    unlock_and_free(win);
}

CASE(L3, realloc_of_the_buffer_of_an_accumulate, 2)
{
    MPI_Win win = ints_window(ROOM);
    MPI_Win_fence(0, win);
    int *values = calloc(ROOM, sizeof *values);
    if (rank == 0)
        MPI_Accumulate(values, ROOM, MPI_INT, 1, 0, ROOM, /* FINDS L3 here */
                       MPI_INT, MPI_SUM, win);
    if (right)
        MPI_Win_fence(0, win);
    if (rank == 0)
        values = realloc(values, 2 * ROOM * sizeof *values); /* FINDS L3 here */
    if (!right)
        MPI_Win_fence(0, win);
    free(values);
    fence_and_free(win);
}

/* Blocks that are not contiguous, and more of them than the list of short buffers has room for. */
CASE(L3, free_of_one_of_many_buffers, 2)
{
    enum { MANY = 40 };
    int *values[MANY];
    MPI_Datatype odd;
    MPI_Win win = ints_window(ROOM * MANY);
    MPI_Type_vector(ROOM / 2, 1, 2, MPI_INT, &odd);
    MPI_Type_commit(&odd);
    if (locks(win)) {
        for (int i = 0; i < MANY; i++) {
            values[i] = calloc(ROOM, sizeof *values[i]);
            MPI_Put(values[i], 1, odd, 1, i * ROOM, 1, odd, win); /* FINDS L3 here */
        }
        if (right)
            MPI_Win_flush_local(1, win);
        free(values[MANY - 1]); /* FINDS L3 here */
        MPI_Win_flush_local(1, win);
        for (int i = 0; i < MANY - 1; i++)
            free(values[i]);
    }
    MPI_Type_free(&odd);
    unlock_and_free(win);
}

CASE(L3, munmap_of_the_buffer_of_a_put, 2)
{
    enum { BYTES = 1 << 16 };
    MPI_Win win = ints_window(ROOM);
    if (locks(win)) {
        int flags = MAP_PRIVATE | MAP_ANONYMOUS;
        char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
        MPI_Put(memory + BYTES / 2, ROOM, MPI_INT, 1, 0, ROOM, MPI_INT, win); /* FINDS L3 here */
        if (right)
            MPI_Win_flush(1, win);
        munmap(memory, BYTES); /* FINDS L3 here */
        mmap(memory, BYTES, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0);
        MPI_Win_flush(1, win);
        munmap(memory, BYTES);
    }
    unlock_and_free(win);
}

CASE(L3, free_mem_of_the_buffer_of_a_put, 2)
{
    MPI_Win win = ints_window(ROOM);
    if (locks(win)) {
        int *values;
        MPI_Alloc_mem(ROOM * sizeof *values, MPI_INFO_NULL, &values);
        MPI_Put(values + 2, 4, MPI_INT, 1, 0, 4, MPI_INT, win); /* FINDS L3 here */
        if (right)
            MPI_Win_flush(1, win);
        MPI_Free_mem(values); /* FINDS L3 here */
    }
    unlock_and_free(win);
}

/* --- local variables --- */

static void put_local_value(MPI_Win win, bool completes);

CASE(L3, return_before_the_put_of_a_local_variable_is_complete, 2)
{
    MPI_Win win = ints_window(ROOM);
    if (locks(win)) {
        put_local_value(win, right);
        MPI_Win_flush(1, win); /* FINDS L3 here */
    }
    unlock_and_free(win);
}

static __attribute__((noinline)) void put_local_value(MPI_Win win, bool completes)
{
    int value = 5;
    MPI_Put(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, win); /* FINDS L3 here */
    if (completes)
        MPI_Win_flush_local(1, win);
}

/* A variable of the caller lives on. */
static __attribute__((noinline)) void put_value(const int *value, MPI_Win win)
{
    MPI_Put(value, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
}

static void send_local_values(MPI_Request *request, bool completes);

CASE(L3, return_before_the_message_from_a_local_array_is_complete, 2)
{
    int value = 7;
    int values[ROOM];
    MPI_Request request;
    MPI_Win win = ints_window(ROOM);
    if (locks(win)) {
        put_value(&value, win);
        send_local_values(&request, right);
        MPI_Wait(&request, MPI_STATUS_IGNORE); /* FINDS L3 here */
    } else if (rank == 1) {
        MPI_Recv(values, ROOM, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    unlock_and_free(win);
}

static __attribute__((noinline)) void send_local_values(MPI_Request *request, bool completes)
{
    int values[ROOM];
    memset(values, 0, sizeof values);
    MPI_Issend(values, ROOM, MPI_INT, 1, 9, MPI_COMM_WORLD, request); /* FINDS L3 here */
    if (completes)
        MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* --- memory of windows --- */

CASE(L4, free_of_the_memory_of_a_window, 2)
{
    MPI_Win win;
    int *memory = calloc(ROOM, sizeof *memory);
    MPI_Win_create(memory, ROOM / 2 * (MPI_Aint)sizeof *memory, 1, /* FINDS L4 here */
                   MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    named(win);
    if (!right)
        free(memory); /* FINDS L4 here */
    MPI_Win_free(&win);
    if (right)
        free(memory);
}

CASE(L4, free_of_attached_memory, 2)
{
    MPI_Win win;
    char *memory = calloc(ROOM, 2);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win); /* FINDS L4 here */
    named(win);
    MPI_Win_attach(win, memory + ROOM, ROOM);
    if (right)
        MPI_Win_detach(win, memory + ROOM);
    free(memory); /* FINDS L4 here */
    MPI_Win_free(&win);
}

static MPI_Win window_of_a_local_variable(int *memory);

CASE(L4, return_from_the_function_of_window_memory, 2)
{
    int memory = 0;
    MPI_Win win = window_of_a_local_variable(right ? &memory : NULL);
    MPI_Barrier(MPI_COMM_WORLD); /* FINDS L4 here */
    MPI_Win_free(&win);
}

static __attribute__((noinline)) MPI_Win window_of_a_local_variable(int *memory)
{
    MPI_Win win;
    volatile int value = 0;
    MPI_Win_create(memory != NULL ? memory : (int *)&value, sizeof value, 1, /* FINDS L4 here */
                   MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    return named(win);
}
