! A correct program: calls in Fortran callbacks count like calls anywhere else.  A barrier orders,
! in a communicator's delete function on both ranks and in an error handler. A delete function on
! rank 0 frees a window, and the program itself on the other rank. Rank 1 frees another one in
! MPI_Finalize.
module called_back
  use mpi
  implicit none
  integer :: library_win, last_win

contains

  subroutine meet(comm, keyval, value, extra, ierror)
    integer :: comm, keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: value, extra
    if (value + extra + comm + keyval /= 0) call MPI_Barrier(MPI_COMM_WORLD, ierror)
  end subroutine meet

  subroutine free_library(comm, keyval, value, extra, ierror)
    integer :: comm, keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: value, extra
    if (value + extra + comm + keyval /= 0) call MPI_Win_free(library_win, ierror)
  end subroutine free_library

  subroutine free_last(comm, keyval, value, extra, ierror)
    integer :: comm, keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: value, extra
    if (value + extra + comm + keyval /= 0) call MPI_Win_free(last_win, ierror)
  end subroutine free_last

  subroutine barrier_in_handler(comm, code)
    integer :: comm, code, ierror
    if (comm + code /= 0) call MPI_Barrier(MPI_COMM_WORLD, ierror)
  end subroutine barrier_in_handler

  subroutine attach(comm, delete_function)
    integer, intent(in) :: comm
    external :: delete_function
    integer :: keyval, ierror
    integer(kind=MPI_ADDRESS_KIND), save :: extra = 7
    call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_function, keyval, extra, ierror)
    call MPI_Comm_set_attr(comm, keyval, 7_MPI_ADDRESS_KIND, ierror)
    call MPI_Comm_free_keyval(keyval, ierror)
  end subroutine attach

  subroutine make_window(win)
    integer, intent(out) :: win
    integer, save :: memory(4, 3) = 0
    integer, save :: made = 0
    integer :: ierror
    made = made + 1
    call MPI_Win_create(memory(:, made), 16_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierror)
  end subroutine make_window
end module called_back

program callbacks
  use called_back
  implicit none
  integer :: rank, comm, win, handler, ierror, value(1)

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call make_window(win)
  call make_window(library_win)
  call make_window(last_win)
  call MPI_Comm_create_errhandler(barrier_in_handler, handler, ierror)
  value = rank

  call MPI_Win_lock_all(0, win, ierror)
  if (rank == 1) then
    call MPI_Put(value, 1, MPI_INTEGER, 0, 0_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win, ierror)
    call MPI_Win_flush(0, win, ierror)
  end if
  call MPI_Comm_dup(MPI_COMM_SELF, comm, ierror)
  call attach(comm, meet)
  call MPI_Comm_free(comm, ierror)
  if (rank == 0) then
    call MPI_Put(value, 1, MPI_INTEGER, 0, 0_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win, ierror)
    call MPI_Win_flush(0, win, ierror)
  end if
  call MPI_Comm_dup(MPI_COMM_SELF, comm, ierror)
  call MPI_Comm_set_errhandler(comm, handler, ierror)
  call MPI_Send(value, 1, MPI_INTEGER, 1, 0, comm, ierror) ! there is no such rank
  if (rank == 1) call MPI_Put(value, 1, MPI_INTEGER, 0, 0_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win, ierror)
  call MPI_Win_unlock_all(win, ierror)
  call MPI_Win_free(win, ierror)
  call MPI_Comm_free(comm, ierror)

  if (rank == 0) then
    call MPI_Comm_dup(MPI_COMM_SELF, comm, ierror)
    call attach(comm, free_library)
    call MPI_Comm_free(comm, ierror)
  else
    call MPI_Win_free(library_win, ierror)
  end if
  if (rank == 1) then
    call attach(MPI_COMM_SELF, free_last)
  else
    call MPI_Win_free(last_win, ierror)
  end if
  call MPI_Finalize(ierror)
end program callbacks
