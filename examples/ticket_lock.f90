! A ticket lock in Fortran 2008 with the module mpi_f08. ticket_lock.c explains it.
!
! A result has no value until the flush, and the compiler does not know that the flush changes it,
! nor that it reads the buffer of a put. The attribute asynchronous tells it that MPI may access the
! variable at any time, so that it does not stay in a register.
program ticket_lock
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer, c_int
  implicit none

  integer, parameter :: rounds = 100, home = 0, bytes = storage_size(0) / 8 ! of a word
  ! Displacements at rank home; the lock protects the value.
  integer(MPI_ADDRESS_KIND), parameter :: next_word = 0, served_word = 1, value_word = 2, nwords = 3
  integer :: rank, nranks, round
  integer, asynchronous :: value
  integer, pointer, asynchronous :: words(:)
  integer(MPI_ADDRESS_KIND) :: mine
  type(MPI_Win) :: win
  type(c_ptr) :: base
  interface
    integer(c_int) function sched_yield() bind(C) ! of POSIX
      import :: c_int
    end function sched_yield
  end interface

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks)
  mine = merge(nwords, 0_MPI_ADDRESS_KIND, rank == home)
  call MPI_Win_allocate(mine * bytes, bytes, MPI_INFO_NULL, MPI_COMM_WORLD, base, win)
  call MPI_Win_lock_all(0, win) ! an epoch for the whole program; it excludes no other rank
  if (rank == home) then
    call c_f_pointer(base, words, [nwords])
    words = 0
  end if
  call MPI_Win_sync(win) ! for the separate memory model: copies my stores to the public window
  call MPI_Barrier(MPI_COMM_WORLD)

  do round = 1, rounds
    call acquire()
    ! Get and put are two operations. The lock makes one of them.
    call MPI_Get(value, 1, MPI_INTEGER, home, value_word, 1, MPI_INTEGER, win)
    call MPI_Win_flush(home, win)
    value = value + 1
    call MPI_Put(value, 1, MPI_INTEGER, home, value_word, 1, MPI_INTEGER, win)
    call release()
  end do

  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_Get(value, 1, MPI_INTEGER, home, value_word, 1, MPI_INTEGER, win)
  call MPI_Win_unlock_all(win) ! completes the get
  if (rank == 0) print '(a, i0, a, i0)', merge('right: ', 'WRONG: ', value == rounds * nranks), &
    value, ' of ', rounds * nranks
  call MPI_Win_free(win)
  call MPI_Finalize()
  if (value /= rounds * nranks) stop 1

contains

  ! Adds to a counter and returns its previous value. MPI_NO_OP adds nothing.
  integer function fetch_and_op(op, word)
    type(MPI_Op), intent(in) :: op
    integer(MPI_ADDRESS_KIND), intent(in) :: word
    integer, asynchronous :: before, one
    one = 1
    call MPI_Fetch_and_op(one, before, MPI_INTEGER, home, word, op, win)
    call MPI_Win_flush(home, win)
    fetch_and_op = before
  end function fetch_and_op

  subroutine acquire()
    integer :: ticket, ignored
    ticket = fetch_and_op(MPI_SUM, next_word)
    do while (fetch_and_op(MPI_NO_OP, served_word) /= ticket)
      ignored = sched_yield() ! the holder may need this processor
    end do
  end subroutine acquire

  subroutine release()
    integer :: ignored
    call MPI_Win_flush(home, win) ! first the operations of the critical section
    ignored = fetch_and_op(MPI_SUM, served_word)
  end subroutine release

end program ticket_lock
