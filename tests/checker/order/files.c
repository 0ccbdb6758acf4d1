/* File functions, which the checker passes on without a model. Each has the requested effect on the
 * file, and orders earlier accesses. */
#include "order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INTS = 2, BYTES = INTS * (int)sizeof(int) };

static MPI_File file;
static int out[INTS], in[INTS];
static int mine; /* start of this rank's part, in elements of the view */

/* Each call uses its own values. The results of an earlier call cannot pass for its own. */
static void fill(void)
{
    static int calls;
    calls++;
    for (int i = 0; i < INTS; i++) {
        out[i] = 1000 * calls + 10 * rank + i;
        in[i] = -1;
    }
}

static void expect_read(const char *call)
{
    if (memcmp(in, out, sizeof in) != 0)
        complain(call, in[0], "the value that was read");
}

/* Moves the file pointer back to this rank's own part. */
static void rewind_own(void)
{
    EXPECT(MPI_File_seek(file, mine, MPI_SEEK_SET) == MPI_SUCCESS);
}

static bool open_file(void)
{
    char path[] = "/tmp/oriel-files-XXXXXX";
    MPI_Offset bytes = -1;
    if (rank == 0) {
        int fd = mkstemp(path);
        EXPECT(fd >= 0);
        close(fd);
    }
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    int code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                             MPI_INFO_NULL, &file);
    EXPECT(code == MPI_SUCCESS);
    if (code != MPI_SUCCESS)
        return false;
    MPI_File_preallocate(file, 4096);
    MPI_File_set_size(file, size * BYTES);
    MPI_File_get_size(file, &bytes);
    EXPECT(bytes == size * BYTES);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    mine = rank * INTS;
    return true;
}

/* --- each pair writes, and reads the data back --- */

static void by_offsets(void)
{
    fill();
    MPI_File_write_at(file, mine, out, INTS, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_read_at(file, mine, in, INTS, MPI_INT, MPI_STATUS_IGNORE);
    expect_read("MPI_File_read_at");
    fill();
    MPI_File_write_at_all(file, mine, out, INTS, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_read_at_all(file, mine, in, INTS, MPI_INT, MPI_STATUS_IGNORE);
    expect_read("MPI_File_read_at_all");
    fill();
    MPI_File_write_at_all_begin(file, mine, out, INTS, MPI_INT);
    MPI_File_write_at_all_end(file, out, MPI_STATUS_IGNORE);
    MPI_File_read_at_all_begin(file, mine, in, INTS, MPI_INT);
    MPI_File_read_at_all_end(file, in, MPI_STATUS_IGNORE);
    expect_read("MPI_File_read_at_all_begin");
}

static void by_own_pointers(void)
{
    fill();
    rewind_own();
    MPI_File_write(file, out, INTS, MPI_INT, MPI_STATUS_IGNORE);
    rewind_own();
    MPI_File_read(file, in, INTS, MPI_INT, MPI_STATUS_IGNORE);
    expect_read("MPI_File_read");
    fill();
    rewind_own();
    MPI_File_write_all(file, out, INTS, MPI_INT, MPI_STATUS_IGNORE);
    rewind_own();
    MPI_File_read_all(file, in, INTS, MPI_INT, MPI_STATUS_IGNORE);
    expect_read("MPI_File_read_all");
    fill();
    rewind_own();
    MPI_File_write_all_begin(file, out, INTS, MPI_INT);
    MPI_File_write_all_end(file, out, MPI_STATUS_IGNORE);
    rewind_own();
    MPI_File_read_all_begin(file, in, INTS, MPI_INT);
    MPI_File_read_all_end(file, in, MPI_STATUS_IGNORE);
    expect_read("MPI_File_read_all_begin");
}

static void finish(MPI_Request *request)
{
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

static void by_requests(void)
{
    MPI_Request request;
    fill();
    MPI_File_iwrite_at(file, mine, out, INTS, MPI_INT, &request);
    finish(&request);
    MPI_File_iread_at(file, mine, in, INTS, MPI_INT, &request);
    finish(&request);
    expect_read("MPI_File_iread_at");
    fill();
    MPI_File_iwrite_at_all(file, mine, out, INTS, MPI_INT, &request);
    finish(&request);
    MPI_File_iread_at_all(file, mine, in, INTS, MPI_INT, &request);
    finish(&request);
    expect_read("MPI_File_iread_at_all");
    fill();
    rewind_own();
    MPI_File_iwrite(file, out, INTS, MPI_INT, &request);
    finish(&request);
    rewind_own();
    MPI_File_iread(file, in, INTS, MPI_INT, &request);
    finish(&request);
    expect_read("MPI_File_iread");
    fill();
    rewind_own();
    MPI_File_iwrite_all(file, out, INTS, MPI_INT, &request);
    finish(&request);
    rewind_own();
    MPI_File_iread_all(file, in, INTS, MPI_INT, &request);
    finish(&request);
    expect_read("MPI_File_iread_all");
}

/* The order of the ranks at the shared pointer is open. Only rank 0 accesses the file. */
static void by_the_shared_pointer(void)
{
    MPI_Request request;
    MPI_Offset position = -1;
    for (int turn = 0; turn < 2; turn++) {
        fill();
        MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
        if (rank == 0) {
            if (turn == 0) {
                MPI_File_write_shared(file, out, INTS, MPI_INT, MPI_STATUS_IGNORE);
            } else {
                MPI_File_iwrite_shared(file, out, INTS, MPI_INT, &request);
                finish(&request);
            }
            MPI_File_get_position_shared(file, &position);
            EXPECT(position == INTS);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
        if (rank == 0) {
            if (turn == 0) {
                MPI_File_read_shared(file, in, INTS, MPI_INT, MPI_STATUS_IGNORE);
            } else {
                MPI_File_iread_shared(file, in, INTS, MPI_INT, &request);
                finish(&request);
            }
            expect_read("MPI_File_read_shared");
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void in_the_order_of_ranks(void)
{
    fill();
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_write_ordered(file, out, INTS, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_read_ordered(file, in, INTS, MPI_INT, MPI_STATUS_IGNORE);
    expect_read("MPI_File_read_ordered");
    fill();
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_write_ordered_begin(file, out, INTS, MPI_INT);
    MPI_File_write_ordered_end(file, out, MPI_STATUS_IGNORE);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_read_ordered_begin(file, in, INTS, MPI_INT);
    MPI_File_read_ordered_end(file, in, MPI_STATUS_IGNORE);
    expect_read("MPI_File_read_ordered_begin");
}

/* --- cases --- */

static void each_call_has_its_effect(void)
{
    if (!open_file())
        return;
    MPI_File_set_atomicity(file, 1);
    by_offsets();
    by_own_pointers();
    MPI_File_set_atomicity(file, 0);
    by_requests();
    by_the_shared_pointer();
    in_the_order_of_ranks();
    MPI_File_close(&file);
    EXPECT(unknown_calls() == (rank == 0 ? 52 : 46)); /* all except MPI_File_seek */
}

/* The source of the order is unknown. The mark from before the request counts. */
static void a_request_orders_when_it_is_complete(void)
{
    MPI_Request request;
    if (!open_file())
        return;
    fill();
    meet();
    mark(0);
    MPI_File_iwrite_at(file, mine, out, INTS, MPI_INT, &request);
    meet();
    finish(&request);
    for (int i = 0; i < size; i++)
        EXPECT_KNOWS(i, 0);
    meet();
    MPI_File_close(&file);
}

/* A refused request cannot complete, and the next call behaves as before. */
static void a_refused_request_leaves_nothing(void)
{
    MPI_Request request = MPI_REQUEST_NULL;
    if (!open_file())
        return;
    EXPECT(MPI_File_iwrite_at(file, mine, out, -1, MPI_INT, &request) != MPI_SUCCESS);
    by_offsets();
    MPI_File_close(&file);
}

static const struct order_case cases[] = {
    CASE(each_call_has_its_effect, 2),
    CASE(a_request_orders_when_it_is_complete, 2),
    CASE(a_refused_request_leaves_nothing, 2),
};

int main(int argc, char **argv)
{
    return order_main(argc, argv, cases, (int)(sizeof cases / sizeof cases[0]), UINT64_C(4) << 20);
}
