! Halo exchange with fences in Fortran 2008 with the module mpi_f08: Conway's game of life on a grid
! that is distributed by columns. halo_fence.c explains the exchange, and why two halos are used in
! turn. Here each rank has columns, because Fortran stores the elements of a column in sequence.
!
! MPI changes the halo, which no statement of the program changes, and reads the cells after MPI_Put
! has returned. The attribute asynchronous keeps the compiler from holding them in registers.
program halo_fence
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
  implicit none

  integer, parameter :: rows = 24, columns = 8, before = 1, after = 2
  integer, parameter :: bytes = rows * storage_size(0) / 8 ! of a column
  integer :: rank, nranks, left, right, step, steps, r, c, wrong
  integer(MPI_ADDRESS_KIND) :: turn
  integer, asynchronous :: cells(rows, 0:columns+1) ! with the halo's columns on either side
  integer, pointer, asynchronous :: halos(:, :, :)  ! of a row, of a side, of a turn
  type(MPI_Win) :: win
  type(c_ptr) :: base

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks)
  left = mod(rank + nranks - 1, nranks)
  right = mod(rank + 1, nranks)
  steps = 4 * columns * nranks ! the glider passes all ranks once

  ! The displacement unit is one column, so that displacements are numbers of columns from 0.
  call MPI_Win_allocate(4_MPI_ADDRESS_KIND * bytes, bytes, MPI_INFO_NULL, MPI_COMM_WORLD, base, win)
  call c_f_pointer(base, halos, [rows, 2, 2])
  do c = 1, columns
    cells(:, c) = [(glider(r, rank * columns + c - 1), r = 0, rows - 1)]
  end do

  call MPI_Win_fence(MPI_MODE_NOPRECEDE, win) ! no operations come before it
  do step = 1, steps
    turn = mod(step, 2)
    ! My first column follows the left neighbour's, and my last one precedes the right neighbour's.
    call MPI_Put(cells(1, 1), rows, MPI_INTEGER, left, 2 * turn + after - 1, rows, MPI_INTEGER, win)
    call MPI_Put(cells(1, columns), rows, MPI_INTEGER, right, 2 * turn + before - 1, rows, &
                 MPI_INTEGER, win)
    call MPI_Win_fence(merge(MPI_MODE_NOSUCCEED, 0, step == steps), win)
    cells(:, 0) = halos(:, before, turn + 1)
    cells(:, columns + 1) = halos(:, after, turn + 1)
    cells(:, 1:columns) = next_step(cells)
  end do

  ! The glider is back in its columns, and columns * nranks rows on.
  wrong = 0
  do c = 1, columns
    wrong = wrong + count(cshift(cells(:, c), columns * nranks) /= &
                          [(glider(r, rank * columns + c - 1), r = 0, rows - 1)])
  end do
  call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (rank == 0) print '(a, 3(i0, a))', merge('right: ', 'WRONG: ', wrong == 0), wrong, &
    ' wrong cells after ', steps, ' steps on ', nranks, ' ranks'
  call MPI_Win_free(win)
  call MPI_Finalize()
  if (wrong /= 0) stop 1

contains

  ! The pattern at the start: in four steps it moves one row and one column on.
  pure integer function glider(row, column)
    integer, intent(in) :: row, column
    glider = merge(1, 0, (column == 0 .and. row == 1) .or. (column == 1 .and. row == 2) .or. &
                         (column == 2 .and. row <= 2))
  end function glider

  pure function next_step(old) result(new)
    integer, intent(in) :: old(rows, 0:columns+1)
    integer :: new(rows, columns), alive(rows, columns), three(rows, 0:columns+1)
    three = old + cshift(old, 1) + cshift(old, -1) ! each cell with those above and below
    alive = three(:, 0:columns-1) + three(:, 1:columns) + three(:, 2:columns+1) - old(:, 1:columns)
    new = merge(1, 0, alive == 3 .or. (alive == 2 .and. old(:, 1:columns) == 1))
  end function next_step

end program halo_fence
