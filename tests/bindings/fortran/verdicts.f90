! The verdicts of the Fortran tests: a rank prints its failed checks, and a case's verdict is that
! of all ranks. Every rank runs the same cases in one order; the verdict at the end of each is
! collective. The module works with every Fortran interface of MPI.
module verdicts
  use mpi
  use, intrinsic :: iso_c_binding, only: c_int
  use, intrinsic :: iso_fortran_env, only: output_unit
  implicit none
  private
  public :: verdicts_start, check, verdict, verdicts_end, look_at_window
  integer, public, protected :: rank, nranks, right, left
  ! communicator of the ranks on this node, this rank in it, and the next one
  integer, public, protected :: machine, here, next_here
  ! Open MPI's Fortran interface has defects; each check that allows for one names it
  logical, public, protected :: on_openmpi
  logical :: failed = .false., any_failed = .false.

  interface
    ! In C, handles.c.
    function look_at_window(handle, nbytes, first) bind(C) result(again)
      import :: c_int, MPI_ADDRESS_KIND
      integer(c_int), value :: handle
      integer(kind=MPI_ADDRESS_KIND), intent(out) :: nbytes
      integer(c_int), intent(out) :: first
      integer(c_int) :: again
    end function look_at_window
  end interface

contains

  subroutine verdicts_start()
    character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
    integer :: length, ierr
    call MPI_Init(ierr)
    call MPI_Get_library_version(version, length, ierr)
    on_openmpi = index(version(:length), 'Open MPI') > 0
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, nranks, ierr)
    right = mod(rank + 1, nranks)
    left = mod(rank + nranks - 1, nranks)
    call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, machine, ierr)
    call MPI_Comm_rank(machine, here, ierr)
    call MPI_Comm_size(machine, length, ierr)
    next_here = mod(here + 1, length)
  end subroutine verdicts_start

  subroutine check(condition, what)
    logical, intent(in) :: condition
    character(len=*), intent(in) :: what
    if (condition) return
    print '(a,i0,2a)', '  rank ', rank, ': ', what
    failed = .true.
  end subroutine check

  subroutine verdict(name)
    character(len=*), intent(in) :: name
    logical :: somewhere
    integer :: ierr
    call MPI_Allreduce(failed, somewhere, 1, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD, ierr)
    if (rank == 0 .and. somewhere) print '(2a)', 'not ok ', name
    if (rank == 0 .and. .not. somewhere) print '(2a)', 'ok ', name
    any_failed = any_failed .or. somewhere
    failed = .false.
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
  end subroutine verdict

  subroutine verdicts_end()
    integer :: ierr
    call MPI_Comm_free(machine, ierr)
    flush (output_unit)
    call leave_without_finalize(merge(1, 0, any_failed))
    call MPI_Finalize(ierr)
    if (any_failed) stop 1
  end subroutine verdicts_end
end module verdicts
