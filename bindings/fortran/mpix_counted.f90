! The functions with counts, as mpi_f08 has them: for counts that are default integers, and for
! counts of the kind MPI_COUNT_KIND.
module mpix_count_kinds
  use mpi_f08, only: MPI_COUNT_KIND
  implicit none
  integer, parameter :: small = kind(0), large = MPI_COUNT_KIND
end module mpix_count_kinds

module mpix_small_counts
  use mpix_count_kinds, only: count_kind => small
  include 'mpix_counted.inc'
end module mpix_small_counts

module mpix_large_counts
  use mpix_count_kinds, only: count_kind => large
  include 'mpix_counted.inc'
end module mpix_large_counts
