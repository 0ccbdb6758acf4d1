! A mistake in Fortran: the finding must name the program's line, not the binding's.
program mistaken_fortran
  use mpi
  implicit none
  integer :: ierr, win, value
  integer :: memory(16)
  integer(kind=MPI_ADDRESS_KIND) :: bytes, place
  call MPI_Init(ierr)
  bytes = 64
  place = 0
  value = 42
  call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
  call MPI_Put(value, 1, MPI_INTEGER, 0, place, 1, MPI_INTEGER, win, ierr) ! the mistake
  call MPI_Win_free(win, ierr)
  call MPI_Finalize(ierr)
end program mistaken_fortran
