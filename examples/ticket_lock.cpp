// A ticket lock in C++, for std::lock_guard and its like. ticket_lock.c explains it.
#include <mpi.h>
#include <algorithm>
#include <cstdio>
#include <mutex>
#include <thread>

// Two words of a window, at `home` from `disp` on: the next ticket, and the ticket that is served.
// It has the functions that std::lock_guard calls, for use in an epoch of MPI_Win_lock_all.
class TicketLock
{
  public:
    static constexpr MPI_Aint words = 2;

    TicketLock(MPI_Win window, int home_rank, MPI_Aint disp)
        : win(window), home(home_rank), next(disp), served(disp + 1)
    {
    }
    void lock()
    {
        const long ticket = fetch_and_op(MPI_SUM, next);
        while (fetch_and_op(MPI_NO_OP, served) != ticket)
            std::this_thread::yield(); // the holder may need this processor
    }
    void unlock()
    {
        MPI_Win_flush_all(win); // first the operations of the critical section
        fetch_and_op(MPI_SUM, served);
    }

  private:
    // Adds 1 and returns the previous value. MPI_NO_OP adds nothing.
    long fetch_and_op(MPI_Op op, MPI_Aint disp)
    {
        const long one = 1;
        long before;
        MPI_Fetch_and_op(&one, &before, MPI_LONG, home, disp, op, win);
        MPI_Win_flush(home, win); // `before` has no value until then
        return before;
    }

    MPI_Win win;
    int home;
    MPI_Aint next, served;
};

int main(int argc, char **argv)
{
    constexpr int rounds = 100, home = 0;
    constexpr MPI_Aint value_disp = TicketLock::words; // the lock protects the word after it
    int rank, ranks;
    long *memory, value;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const MPI_Aint len = rank == home ? value_disp + 1 : 0;
    MPI_Win_allocate(len * static_cast<MPI_Aint>(sizeof *memory), sizeof *memory, MPI_INFO_NULL,
                     MPI_COMM_WORLD, &memory, &win);
    MPI_Win_lock_all(0, win); // an epoch for the whole program; it excludes no other rank
    std::fill_n(memory, len, 0L);
    MPI_Win_sync(win); // for the separate memory model: copies my stores to the public window
    MPI_Barrier(MPI_COMM_WORLD);

    TicketLock lock(win, home, 0);
    for (int round = 0; round < rounds; round++) {
        std::lock_guard<TicketLock> guard(lock);
        // Get and put are two operations. The lock makes one of them.
        MPI_Get(&value, 1, MPI_LONG, home, value_disp, 1, MPI_LONG, win);
        MPI_Win_flush(home, win);
        value++;
        MPI_Put(&value, 1, MPI_LONG, home, value_disp, 1, MPI_LONG, win);
    }

    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Get(&value, 1, MPI_LONG, home, value_disp, 1, MPI_LONG, win);
    MPI_Win_unlock_all(win); // completes the get
    if (rank == 0)
        std::printf("%s: %ld of %d\n", value == rounds * ranks ? "right" : "WRONG", value,
                    rounds * ranks);
    MPI_Win_free(&win);
    MPI_Finalize();
    return value != rounds * ranks;
}
