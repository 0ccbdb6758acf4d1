/* Memory handles: an opened window has the lock and the bytes of its owner's. */
#include "offenders.h"

#include <oriel/ext.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FROM = 2, PART = 4, FLAG = 3 }; /* ints of the owner's window, and of the part */

/* Rank 0 lends a part of its memory in the window; rank 1 gets the window. */
static MPI_Win part_open(MPI_Win win, MPIX_Memory_handle *handle)
{
    MPI_Win opened = MPI_WIN_NULL;
    if (rank == 0) {
        MPIX_Win_memory_handle_create(win, FROM, PART * sizeof(int), handle);
        MPI_Send(handle, sizeof *handle, MPI_BYTE, 1, 8, MPI_COMM_WORLD);
    }
    if (rank == 1) {
        MPI_Recv(handle, sizeof *handle, MPI_BYTE, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPIX_Win_memory_open(handle, MPI_INFO_NULL, &opened);
        named(opened);
    } else {
        MPI_Barrier(MPI_COMM_WORLD); /* of the name */
    }
    return opened;
}

static void part_close(MPI_Win *opened)
{
    if (*opened != MPI_WIN_NULL)
        MPI_Win_free(opened);
    MPI_Barrier(MPI_COMM_WORLD); /* the owner withdraws the handle by MPI_Win_free */
}

/* A window of each rank alone: rank 1 is no member of that of rank 0. */
static MPI_Win own_window(void)
{
    int *memory;
    MPI_Win win;
    MPI_Win_allocate((FROM + PART) * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_SELF,
                     &memory, &win);
    memset(memory, 0, (FROM + PART) * sizeof *memory);
    return named(win);
}

/* How rank 1 lets rank 0 go on. */
enum way { BY_LOCK, BY_FETCH, BY_SYNC, BY_WITHDRAWAL, BY_END };

static void flag_give(MPI_Win opened, enum way way)
{
    const int set = 1;
    if (way == BY_FETCH)
        MPI_Accumulate(&set, 1, MPI_INT, 0, FLAG, 1, MPI_INT, MPI_REPLACE, opened);
    else
        MPI_Put(&set, 1, MPI_INT, 0, FLAG, 1, MPI_INT, opened);
    delay();
    MPI_Win_unlock(0, opened);
}

/* The owner's MPI_Win_sync tells it what others have done, who are no members. */
static void flag_await_by_sync(MPI_Win win)
{
    volatile int *memory;
    int has_base;
    MPI_Win_get_attr(win, MPI_WIN_BASE, &memory, &has_base);
    MPI_Win_lock_all(0, win);
    while (memory[FROM + FLAG] == 0)
        MPI_Win_sync(win);
    MPI_Win_sync(win);
    MPI_Win_unlock_all(win);
}

static void flag_await(MPI_Win *win, MPIX_Memory_handle *handle, enum way way)
{
    if (way == BY_WITHDRAWAL) {
        MPIX_Memory_handle later; /* is withdrawn by itself */
        MPIX_Win_memory_handle_create(*win, 0, sizeof(int), &later);
        MPIX_Win_memory_handle_free(handle);
        MPIX_Win_memory_handle_free(&later);
    }
    if (way == BY_END)
        MPI_Win_free(win);
    if (way == BY_SYNC)
        flag_await_by_sync(*win);
    for (int flag = 0; flag == 0 && way <= BY_FETCH;) {
        MPI_Win_lock(way == BY_FETCH ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, *win);
        if (way == BY_FETCH)
            MPI_Fetch_and_op(NULL, &flag, MPI_INT, 0, FROM + FLAG, MPI_NO_OP, *win);
        else
            MPI_Get(&flag, 1, MPI_INT, 0, FROM + FLAG, 1, MPI_INT, *win);
        MPI_Win_unlock(0, *win);
    }
}

/* A put to another window before the flag, or after it. A withdrawal also waits for locks without
 * checks. */
static void put_and_flag(bool right, enum way way)
{
    int got;
    MPIX_Memory_handle handle;
    MPI_Win data = ints_window(1);
    MPI_Win win = own_window();
    MPI_Win opened = part_open(win, &handle);
    MPI_Win_lock_all(0, data);
    if (rank == 1) {
        MPI_Win_lock(way == BY_LOCK ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0,
                     way >= BY_WITHDRAWAL ? MPI_MODE_NOCHECK : 0, opened);
        notify(0); /* it has the lock */
        if (right) {
            MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, data); /* the same, before */
            MPI_Win_flush(0, data);
        }
        flag_give(opened, way);
        await_notice(0);
        if (!right)
            MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, data); /* FINDS C1 here */
    }
    if (rank == 0) {
        await_notice(1);
        flag_await(&win, &handle, way);
        MPI_Get(&got, 1, MPI_INT, 0, 0, 1, MPI_INT, data); /* FINDS C1 here */
        notify(1);
    }
    MPI_Win_unlock_all(data);
    part_close(&opened);
    if (win != MPI_WIN_NULL)
        MPI_Win_free(&win);
    MPI_Win_free(&data);
}

/* The part begins behind the owner's first bytes. */
CASE(C1, put_by_handle_beside_a_get, 2)
{
    int got;
    MPIX_Memory_handle handle;
    MPI_Win win = own_window();
    MPI_Win opened = part_open(win, &handle);
    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, opened);
        MPI_Put(&rank, 1, MPI_INT, 0, 1, 1, MPI_INT, opened); /* FINDS C1 here */
        MPI_Win_unlock(0, opened);
    }
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Get(&got, 1, MPI_INT, 0, right ? 1 : FROM + 1, 1, MPI_INT, win); /* FINDS C1 here */
        MPI_Win_unlock(0, win);
    }
    part_close(&opened);
    MPI_Win_free(&win);
}

/* Locks by both windows exclude each other, of all kinds. */
CASE(C1, locks_by_handle, 2)
{
    enum { TIMES = 8 };
    int got;
    MPIX_Memory_handle handle;
    MPI_Win win = ints_window(FROM + PART);
    MPI_Win opened = part_open(win, &handle);
    for (int i = 0; i < TIMES; i++) {
        delay();
        if (rank == 1 && i % 2 == 0) {
            MPI_Win_lock(right ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, opened);
            MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, opened); /* FINDS C1 here */
            MPI_Win_unlock(0, opened);
        }
        if (rank == 1 && i % 2 == 1) {
            MPI_Win_lock_all(0, opened);
            MPI_Get(&got, 1, MPI_INT, 0, 0, 1, MPI_INT, opened);
            MPI_Win_unlock_all(opened);
        }
        if (rank == 0) {
            MPI_Win_lock(right ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, win);
            MPI_Put(&rank, 1, MPI_INT, 0, FROM, 1, MPI_INT, win); /* FINDS C1 here */
            MPI_Win_unlock(0, win);
        }
    }
    part_close(&opened);
    MPI_Win_free(&win);
}

CASE(C1, put_after_the_unlock_by_handle, 2)
{
    put_and_flag(right, BY_LOCK);
}

CASE(C1, put_after_the_accumulate_by_handle, 2)
{
    put_and_flag(right, BY_FETCH);
}

CASE(C1, put_after_the_flag_that_a_sync_finds, 2)
{
    put_and_flag(right, BY_SYNC);
}

CASE(C1, put_after_the_epoch_of_a_withdrawn_handle, 2)
{
    put_and_flag(right, BY_WITHDRAWAL);
}

CASE(C1, put_after_the_epoch_on_a_window_that_ends, 2)
{
    put_and_flag(right, BY_END);
}

/* The opener's fetch finds what the owner has accumulated. */
CASE(C1, put_after_the_accumulate_of_the_owner, 2)
{
    const int set = 1;
    MPIX_Memory_handle handle;
    MPI_Win data = ints_window(1);
    MPI_Win win = own_window();
    MPI_Win opened = part_open(win, &handle);
    MPI_Win_lock_all(0, data);
    if (rank == 0) {
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, data); /* FINDS C1 here */
        if (right)
            MPI_Win_flush(0, data);
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Accumulate(&set, 1, MPI_INT, 0, FROM + FLAG, 1, MPI_INT, MPI_REPLACE, win);
        MPI_Win_unlock(0, win);
    }
    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, opened);
        for (int flag = 0; flag == 0;) {
            MPI_Fetch_and_op(NULL, &flag, MPI_INT, 0, FLAG, MPI_NO_OP, opened);
            MPI_Win_flush(0, opened);
        }
        MPI_Win_unlock(0, opened);
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, data); /* FINDS C1 here */
        notify(0);
    }
    if (rank == 0)
        await_notice(1);
    MPI_Win_unlock_all(data);
    part_close(&opened);
    MPI_Win_free(&win);
    MPI_Win_free(&data);
}

CASE(E1, put_by_handle_without_a_lock, 2)
{
    MPIX_Memory_handle handle;
    MPI_Win win = own_window();
    MPI_Win opened = part_open(win, &handle);
    if (rank == 1) {
        if (right)
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, opened);
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, opened); /* FINDS E1 here */
        if (right)
            MPI_Win_unlock(0, opened);
    }
    part_close(&opened);
    MPI_Win_free(&win);
}

CASE(A1, put_beyond_the_handle, 2)
{
    const MPI_Aint disp = right ? PART - 1 : PART;
    MPIX_Memory_handle handle;
    MPI_Win win = ints_window(FROM + PART + 2);
    MPI_Win opened = part_open(win, &handle);
    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, opened);
        MPI_Put(&rank, 1, MPI_INT, 0, disp, 1, MPI_INT, opened); /* FINDS A1 here, saying 'bytes 16 to 19' */
        MPI_Win_unlock(0, opened);
    }
    part_close(&opened);
    MPI_Win_free(&win);
}

/* The owner takes a notification through an opened window; its window has no other rank. */
CASE(C1, get_before_a_notification_by_handle, 2)
{
    int got, *memory;
    MPIX_Memory_handle handle;
    MPI_Info info;
    MPI_Win win;
    MPI_Info_create(&info);
    MPI_Info_set(info, "oriel_notifications", "1");
    MPI_Win_allocate((FROM + PART) * sizeof *memory, sizeof *memory, info, MPI_COMM_SELF, &memory,
                     &win);
    MPI_Info_free(&info);
    named(win);
    MPI_Win opened = part_open(win, &handle);
    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, opened);
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, opened); /* FINDS C1 here */
        MPIX_Put_notify(NULL, 0, MPI_INT, 0, 0, 0, MPI_INT, 0, opened);
        await_notice(0);
        MPI_Win_unlock(0, opened);
    }
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        if (right)
            MPIX_Win_notify_wait(win, 0, 1);
        MPI_Get(&got, 1, MPI_INT, 0, FROM, 1, MPI_INT, win); /* FINDS C1 here */
        MPI_Win_unlock(0, win);
        notify(1);
    }
    part_close(&opened);
    MPI_Win_free(&win);
}

/* A rank that is no member may notify while all members wait. */
CASE_ALONE(D1, notification_by_handle_that_members_await, 3)
{
    int *memory;
    MPIX_Memory_handle handle;
    MPI_Comm members;
    MPI_Info info;
    MPI_Win win = MPI_WIN_NULL, opened;
    MPI_Comm_split(MPI_COMM_WORLD, rank == 1, 0, &members);
    MPI_Info_create(&info);
    MPI_Info_set(info, "oriel_notifications", "1");
    if (rank != 1)
        MPI_Win_allocate(PART * sizeof *memory, sizeof *memory, info, members, &memory, &win);
    MPI_Info_free(&info);
    if (rank != 1)
        named(win); /* with a barrier of all */
    else
        MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && right)
        MPIX_Win_memory_handle_create(win, 0, PART * sizeof *memory, &handle);
    MPI_Bcast(&handle, sizeof handle, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == 1 && right) {
        MPIX_Win_memory_open(&handle, MPI_INFO_NULL, &opened);
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, opened);
        sleep(4);
        MPIX_Put_notify(NULL, 0, MPI_INT, 0, 0, 0, MPI_INT, 0, opened);
        MPI_Win_unlock(0, opened);
        MPI_Win_free(&opened);
    }
    if (rank == 0)
        MPIX_Win_notify_wait(win, 0, 1); /* FINDS D1 here */
    MPI_Barrier(members);                /* FINDS D1 here */
    if (rank != 1)
        MPI_Win_free(&win);
    MPI_Comm_free(&members);
}
