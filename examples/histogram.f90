! Counts into a histogram that is spread over all ranks, in Fortran 2008 with the module mpi_f08.
! The argument is how often each rank counts. histogram.c is the same in C.
!
! MPI changes memory that no statement of the program changes, and reads memory that seems to be no
! longer needed. The attribute asynchronous keeps the compiler from holding such variables in
! registers or reusing them: window memory, and the buffers of operations that are not complete.
program histogram
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
  use, intrinsic :: iso_fortran_env, only: int64
  implicit none

  integer, parameter :: nbins = 64, bytes = storage_size(0) / 8 ! of a bin
  integer :: rank, nranks, times, i, total
  integer(int64) :: state
  double precision :: seconds
  character(len=16) :: argument
  character(len=5) :: verdict
  type(MPI_Win) :: win
  type(c_ptr) :: base
  integer, pointer, asynchronous :: bins(:)
  ! A variable: the compiler may pass a constant as a copy, which is gone before MPI reads it.
  integer, asynchronous, save :: one = 1

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks)
  times = 1000
  call get_command_argument(1, argument)
  if (argument /= '') read (argument, *) times

  ! The displacement unit is an element, so that displacements are indices from 0.
  call MPI_Win_allocate(int(nbins * bytes, MPI_ADDRESS_KIND), bytes, MPI_INFO_NULL, &
                        MPI_COMM_WORLD, base, win)
  call c_f_pointer(base, bins, [nbins])
  call MPI_Win_lock_all(0, win) ! an epoch for the whole program; it excludes no other rank
  bins = 0
  call MPI_Win_sync(win)           ! other ranks see the zeros,
  call MPI_Barrier(MPI_COMM_WORLD) ! and begin when all ranks have stored theirs

  state = 1 + rank
  seconds = MPI_Wtime()
  do i = 1, times
    state = iand(state * 1103515245_int64 + 12345_int64, int(z'ffffffff', int64))
    call count_in(int(mod(ishft(state, -16), int(nbins, int64))))
  end do
  call MPI_Win_flush_all(win)      ! completes what this rank has issued,
  call MPI_Barrier(MPI_COMM_WORLD) ! and the barrier what the others have;
  call MPI_Win_sync(win)           ! the loads below see all of it
  seconds = MPI_Wtime() - seconds

  total = sum(bins)
  call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  verdict = merge('right', 'WRONG', total == times * nranks)
  if (rank == 0) print '(a, 3(a, i0), a)', verdict, ': ', total, ' of ', times * nranks, ', ', &
    nint(seconds * 1d9 / times), ' ns each'
  call MPI_Win_unlock_all(win)
  call MPI_Win_free(win)
  call MPI_Finalize()
  if (verdict /= 'right') stop 1

contains

  ! Bin b, from 0, is element b / nranks of rank mod(b, nranks).
  subroutine count_in(bin)
    integer, intent(in) :: bin
    integer(MPI_ADDRESS_KIND) :: disp
    disp = bin / nranks
    call MPI_Accumulate(one, 1, MPI_INTEGER, mod(bin, nranks), disp, 1, MPI_INTEGER, MPI_SUM, win)
  end subroutine count_in

end program histogram
