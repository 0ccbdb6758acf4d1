! A mistake in Fortran: the finding must name the program's line, not the binding's, and the
! procedure in the module.
module mistakes
  use mpi
  implicit none
contains
  subroutine put_without_epoch(win)
    integer :: ierr, win, value
    integer(kind=MPI_ADDRESS_KIND) :: place
    place = 0
    value = 42
    call MPI_Put(value, 1, MPI_INTEGER, 0, place, 1, MPI_INTEGER, win, ierr) ! the mistake
  end subroutine put_without_epoch
end module mistakes

program mistaken_fortran
  use mpi
  use mistakes
  implicit none
  integer :: ierr, win
  integer :: memory(16)
  integer(kind=MPI_ADDRESS_KIND) :: bytes
  call MPI_Init(ierr)
  bytes = 64
  call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
  call put_without_epoch(win)
  call MPI_Win_free(win, ierr)
  call MPI_Finalize(ierr)
end program mistaken_fortran
