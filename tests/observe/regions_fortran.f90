! Regions from Fortran: names with trailing blanks, an end without a name, and one beside MPI_Init.
program regions_fortran
  use mpi
  use oriel_regions
  implicit none
  integer :: ierr, win, value, step
  integer :: memory(16)
  integer(kind=MPI_ADDRESS_KIND) :: bytes, place
  character(len=20) :: padded
  call oriel_region_begin("early")
  call oriel_region_end("early")
  call MPI_Init(ierr)
  bytes = 64
  place = 0
  value = 1
  padded = "exchange"
  call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
  call MPI_Win_fence(0, win, ierr)
  call oriel_region_begin("outer part")
  do step = 1, 3
    call oriel_region_begin(padded)
    call MPI_Put(value, 1, MPI_INTEGER, 0, place, 1, MPI_INTEGER, win, ierr)
    call MPI_Win_fence(0, win, ierr)
    call oriel_region_end(padded)
  end do
  call oriel_region_end()
  call MPI_Win_free(win, ierr)
  call MPI_Finalize(ierr)
  print '(a)', "done"
end program regions_fortran
