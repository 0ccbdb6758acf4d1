! Attribute callbacks and an error handler in Fortran with integer handles, for mpif.h and the
! module mpi. They record their arguments, which a program checks after the call that invokes them.
module callbacks
  use mpi, only: MPI_ADDRESS_KIND, MPI_SUCCESS
  implicit none
  private :: MPI_ADDRESS_KIND, MPI_SUCCESS
  integer :: removals = 0, removed_win, errors = 0, error_code, error_win
  integer(kind=MPI_ADDRESS_KIND) :: removed_value, removed_extra

contains

  subroutine copy_nothing(oldwin, keyval, extra, value_in, value_out, flag, ierror)
    integer :: oldwin, keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra, value_in, value_out
    logical :: flag
    flag = .false. .and. oldwin + keyval == 0 .and. extra + value_in == 0
    value_out = 0
    ierror = MPI_SUCCESS
  end subroutine copy_nothing

  subroutine note_removal(win, keyval, value, extra, ierror)
    integer :: win, keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: value, extra
    removals = removals + 1
    removed_win = win + 0 * keyval
    removed_value = value
    removed_extra = extra
    ierror = MPI_SUCCESS
  end subroutine note_removal

  subroutine note_error(win, code)
    integer :: win, code
    errors = errors + 1
    error_win = win
    error_code = code
  end subroutine note_error
end module callbacks
