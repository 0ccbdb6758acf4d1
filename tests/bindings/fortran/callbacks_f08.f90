! Attribute callbacks and an error handler in Fortran with typed handles, for the module mpi_f08.
! They record their arguments, which a program checks after the call that invokes them.
module callbacks_f08
  use mpi_f08, only: MPI_ADDRESS_KIND, MPI_SUCCESS, MPI_Win
  implicit none
  private :: MPI_ADDRESS_KIND, MPI_SUCCESS, MPI_Win
  integer :: removals = 0, errors = 0, error_code
  type(MPI_Win) :: removed_win, error_win
  integer(kind=MPI_ADDRESS_KIND) :: removed_value, removed_extra

contains

  subroutine copy_nothing(oldwin, keyval, extra, value_in, value_out, flag, ierror)
    type(MPI_Win) :: oldwin
    integer :: keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra, value_in, value_out
    logical :: flag
    flag = .false. .and. oldwin%MPI_VAL + keyval == 0 .and. extra + value_in == 0
    value_out = 0
    ierror = MPI_SUCCESS
  end subroutine copy_nothing

  subroutine note_removal(win, keyval, value, extra, ierror)
    type(MPI_Win) :: win
    integer :: keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: value, extra
    removals = removals + 1
    removed_win = win
    removed_value = value
    removed_extra = extra
    ierror = MPI_SUCCESS
  end subroutine note_removal

  subroutine note_error(win, code)
    type(MPI_Win) :: win
    integer :: code
    errors = errors + 1
    error_win = win
    error_code = code
  end subroutine note_error
end module callbacks_f08
