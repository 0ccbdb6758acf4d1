// Counts into a histogram that is spread over all ranks, in C++. The argument is how often each
// rank counts. histogram.c is the same in C.
//
// The histogram is an object that owns its window. Its destructor is collective, as MPI_Win_free
// is: all ranks leave its scope together, and none of them by an exception.
#include <mpi.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>

// Bin b is element b / ranks of rank b % ranks.
class Histogram
{
  public:
    Histogram(int count, MPI_Comm communicator) : comm(communicator), bins(count)
    {
        MPI_Comm_size(comm, &ranks);
        MPI_Win_allocate(bins * static_cast<MPI_Aint>(sizeof(long)), sizeof(long), MPI_INFO_NULL,
                         comm, &mine, &win);
        MPI_Win_lock_all(0, win); // an epoch for the object's life; it excludes no other rank
        std::fill_n(mine, bins, 0L);
        complete();
    }
    ~Histogram()
    {
        MPI_Win_unlock_all(win);
        MPI_Win_free(&win);
    }
    Histogram(const Histogram &) = delete;
    Histogram &operator=(const Histogram &) = delete;

    // Returns before the count is complete.
    void count(int bin)
    {
        MPI_Accumulate(&one, 1, MPI_LONG, bin % ranks, bin / ranks, 1, MPI_LONG, MPI_SUM, win);
    }

    // Completes the counts of all ranks, after which loads see them; collective.
    void complete()
    {
        MPI_Win_flush_all(win); // completes what this rank has issued,
        MPI_Win_sync(win);      // and shows what it has stored;
        MPI_Barrier(comm);      // the same for the other ranks;
        MPI_Win_sync(win);      // loads see all of it
    }

    // The sum over all ranks; collective, after complete().
    long total() const
    {
        long sum = std::accumulate(mine, mine + bins, 0L);
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_LONG, MPI_SUM, comm);
        return sum;
    }

    int size() const
    {
        return bins;
    }

  private:
    static constexpr long one = 1; // MPI may read it until a flush, after count() has returned
    MPI_Comm comm;
    MPI_Win win;
    long *mine; // the elements of this rank
    int bins, ranks;
};

int main(int argc, char **argv)
{
    bool right;
    MPI_Init(&argc, &argv);
    { // the histogram ends before MPI does
        int rank, ranks;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        const long times = argc > 1 ? std::atol(argv[1]) : 1000;
        Histogram histogram(64, MPI_COMM_WORLD);
        std::minstd_rand random(1 + static_cast<unsigned>(rank));
        const double begin = MPI_Wtime();
        for (long i = 0; i < times; i++)
            histogram.count(static_cast<int>(random() % static_cast<unsigned>(histogram.size())));
        histogram.complete();
        const double seconds = MPI_Wtime() - begin;

        const long total = histogram.total();
        right = total == times * ranks;
        if (rank == 0)
            std::printf("%s: %ld of %ld, %.0f ns each\n", right ? "right" : "WRONG", total,
                        times * ranks, seconds * 1e9 / static_cast<double>(times));
    }
    MPI_Finalize();
    return !right;
}
