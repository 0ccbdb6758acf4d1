/* A program of one rank whose calls the checker passes on without a finding: from a callback,
 * without a window, with counts of MPI_Count where the host provides these functions (`passed
 * callback | none | large`).  Status 1 if a call does not have its effect. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static MPI_Win win;
static int *memory, failed;

static void expect(int right, const char *what)
{
    if (!right) {
        printf("%s\n", what);
        failed = 1;
    }
}
#define EXPECT(condition) expect(condition, #condition)
#define OK(call)          expect((call) == MPI_SUCCESS, #call)

/* --- from a callback: the checker tracks only the outer call --- */

static int in_callback(MPI_Comm comm, int keyval, void *value, void *more)
{
    static int some[4];
    int word = 7;
    MPI_Info info;
    MPI_Win made;
    MPI_Aint address;
    (void)comm, (void)keyval, (void)value, (void)more;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&word, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    EXPECT(memory[0] == 7);
    OK(MPI_Win_lock_all(0, win));
    word = 8;
    OK(MPI_Put(&word, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
    OK(MPI_Win_flush(0, win));
    OK(MPI_Win_flush_local(0, win));
    OK(MPI_Win_flush_all(win));
    OK(MPI_Win_flush_local_all(win));
    OK(MPI_Win_sync(win));
    EXPECT(memory[0] == 8);
    OK(MPI_Win_unlock_all(win));
    MPI_Info_create(&info);
    OK(MPI_Win_set_info(win, info));
    MPI_Info_free(&info);
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_SELF, &made));
    OK(MPI_Win_attach(made, some, sizeof some));
    MPI_Get_address(some, &address);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, made));
    OK(MPI_Put(&word, 1, MPI_INT, 0, address, 1, MPI_INT, made));
    OK(MPI_Win_unlock(0, made));
    EXPECT(some[0] == 8);
    OK(MPI_Win_detach(made, some));
    OK(MPI_Win_free(&made));
    return MPI_SUCCESS;
}

static int on_query(void *cancelled, MPI_Status *status)
{
    OK(MPI_Status_set_elements(status, MPI_BYTE, 0));
    return MPI_Status_set_cancelled(status, *(int *)cancelled);
}

static int on_free(void *cancelled)
{
    (void)cancelled;
    return MPI_SUCCESS;
}

static int on_cancel(void *cancelled, int is_complete)
{
    int word = 9;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    OK(MPI_Put(&word, 1, MPI_INT, 0, 1, 1, MPI_INT, win));
    OK(MPI_Win_unlock(0, win));
    *(int *)cancelled = !is_complete;
    return MPI_SUCCESS;
}

static void cancel_generalised(void)
{
    int cancelled = 0;
    int is_cancelled = 0;
    MPI_Request request;
    MPI_Status status;
    OK(MPI_Grequest_start(on_query, on_free, on_cancel, &cancelled, &request));
    OK(MPI_Cancel(&request));
    EXPECT(cancelled && memory[1] == 9);
    OK(MPI_Grequest_complete(request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &is_cancelled));
    EXPECT(is_cancelled);
}

static void callback(void)
{
    int keyval;
    MPI_Comm comm;
    cancel_generalised();
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, in_callback, &keyval, NULL);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_attr(comm, keyval, &failed);
    MPI_Comm_free(&comm);
    EXPECT(memory[0] == 8);
    MPI_Comm_free_keyval(&keyval);
}

/* --- without a window: the host reports the error --- */

static void none(void)
{
    MPI_Win null = MPI_WIN_NULL;
    int word = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    EXPECT(MPI_Win_fence(0, null) != MPI_SUCCESS);
    EXPECT(MPI_Win_flush(0, null) != MPI_SUCCESS);
    EXPECT(MPI_Win_sync(null) != MPI_SUCCESS);
    EXPECT(MPI_Put(&word, 1, MPI_INT, 0, 0, 1, MPI_INT, null) != MPI_SUCCESS);
    EXPECT(MPI_Win_attach(null, &word, sizeof word) != MPI_SUCCESS);
    EXPECT(MPI_Win_free(&null) != MPI_SUCCESS);
}

/* --- large counts --- */

#define PLAIN                                                                                      \
    (const void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype, MPI_Win)
#define ROOM (void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype, MPI_Win)
#define ASKED                                                                                      \
    (const void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype, MPI_Win,       \
     MPI_Request *)
#define ROOM_ASKED                                                                                 \
    (void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype, MPI_Win,             \
     MPI_Request *)
#define SUM                                                                                        \
    (const void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype, MPI_Op, MPI_Win)
#define SUM_ASKED                                                                                  \
    (const void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype, MPI_Op,        \
     MPI_Win, MPI_Request *)
#define BOTH                                                                                       \
    (const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype, int, MPI_Aint,        \
     MPI_Count, MPI_Datatype, MPI_Op, MPI_Win)
#define BOTH_ASKED                                                                                 \
    (const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype, int, MPI_Aint,        \
     MPI_Count, MPI_Datatype, MPI_Op, MPI_Win, MPI_Request *)
#define FIND(name, parameters) int(*name) parameters = dlsym(RTLD_DEFAULT, "MPI_" #name "_c")
#define HERE                   1, MPI_INT, 0, 0, 1, MPI_INT

/* Each function has its effect, and completes with the flush before the next one. */
static void large(void)
{
    FIND(Put, PLAIN);
    FIND(Get, ROOM);
    FIND(Rput, ASKED);
    FIND(Rget, ROOM_ASKED);
    FIND(Accumulate, SUM);
    FIND(Raccumulate, SUM_ASKED);
    FIND(Get_accumulate, BOTH);
    FIND(Rget_accumulate, BOTH_ASKED);
    MPI_Request request;
    int one = 1, got = 0;
    MPI_Win_lock_all(0, win);
    OK(MPI_Raccumulate(&one, HERE, MPI_SUM, win, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_flush(0, win);
    OK(MPI_Rget_accumulate(&one, 1, MPI_INT, &got, HERE, MPI_SUM, win, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_flush_local_all(win);
    MPI_Win_flush_all(win);
    EXPECT(got == 1);
    if (Put == NULL) {
        MPI_Win_unlock_all(win);
        printf("none\n");
        return;
    }
    OK(Put(&one, HERE, win));
    MPI_Win_flush(0, win);
    OK(Get(&got, HERE, win));
    MPI_Win_flush(0, win);
    EXPECT(got == 1);
    OK(Accumulate(&one, HERE, MPI_SUM, win));
    MPI_Win_flush(0, win);
    OK(Raccumulate(&one, HERE, MPI_SUM, win, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_flush(0, win);
    OK(Get_accumulate(&one, 1, MPI_INT, &got, HERE, MPI_SUM, win));
    MPI_Win_flush(0, win);
    EXPECT(got == 3);
    OK(Rget_accumulate(&one, 1, MPI_INT, &got, HERE, MPI_SUM, win, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_flush(0, win);
    EXPECT(got == 4);
    OK(Rput(&one, HERE, win, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_flush(0, win);
    OK(Rget(&got, HERE, win, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(got == 1);
    MPI_Win_unlock_all(win);
}

static void large_windows(void)
{
    int (*make)(void *, MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, MPI_Win *) =
        dlsym(RTLD_DEFAULT, "MPI_Win_create_c");
    int (*allocate)(MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, void *, MPI_Win *) =
        dlsym(RTLD_DEFAULT, "MPI_Win_allocate_c");
    int (*share)(MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, void *, MPI_Win *) =
        dlsym(RTLD_DEFAULT, "MPI_Win_allocate_shared_c");
    int (*query)(MPI_Win, int, MPI_Aint *, MPI_Aint *, void *) =
        dlsym(RTLD_DEFAULT, "MPI_Win_shared_query_c");
    int *given, *found, room[16];
    MPI_Aint bytes = 0, unit = 0;
    MPI_Win wins[3];
    if (make == NULL)
        return;
    OK(make(room, sizeof room, sizeof(int), MPI_INFO_NULL, MPI_COMM_SELF, &wins[0]));
    OK(allocate(64, sizeof(int), MPI_INFO_NULL, MPI_COMM_SELF, &given, &wins[1]));
    OK(share(64, sizeof(int), MPI_INFO_NULL, MPI_COMM_SELF, &given, &wins[2]));
    OK(query(wins[2], 0, &bytes, &unit, &found));
    EXPECT(bytes == 64 && unit == sizeof(int) && found == given);
    for (int i = 0; i < 3; i++)
        MPI_Win_free(&wins[i]);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Win_allocate(64, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memory[0] = 0;
    if (strcmp(argv[1], "callback") == 0)
        callback();
    else if (strcmp(argv[1], "none") == 0)
        none();
    else {
        large();
        large_windows();
    }
    MPI_Win_free(&win);
    MPI_Finalize();
    return failed;
}
