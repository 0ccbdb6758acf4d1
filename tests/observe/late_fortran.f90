! The last rank is late. Calls pass through the host's bindings, and are the program's.
module exchange
  use mpi
  implicit none
contains
  subroutine put_and_fence(win, to, is_late)
    integer, intent(in) :: win, to
    logical, intent(in) :: is_late
    integer :: ierr, value
    integer(kind=MPI_ADDRESS_KIND) :: place
    place = 0
    value = to
    call MPI_Put(value, 1, MPI_INTEGER, to, place, 1, MPI_INTEGER, win, ierr) ! SITE put
    if (is_late) call sleep(1)
    call MPI_Win_fence(0, win, ierr) ! WAITS for the late rank
    value = ierr
  end subroutine put_and_fence
end module exchange

program late_fortran
  use mpi
  use exchange
  implicit none
  integer :: ierr, win, rank, ranks, step
  integer :: memory(16)
  integer(kind=MPI_ADDRESS_KIND) :: bytes
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  bytes = 64
  call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
  call MPI_Win_fence(0, win, ierr)
  do step = 1, 2
    call put_and_fence(win, mod(rank + 1, ranks), rank == ranks - 1)
  end do
  call MPI_Win_free(win, ierr)
  call MPI_Finalize(ierr)
end program late_fortran
