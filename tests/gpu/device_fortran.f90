! Device memory from Fortran: the driver is called by its C interface, and MPI gets Fortran pointers
! to memory that no statement of the program may touch. Each rank puts numbers into its right
! neighbour's device memory, adds to them, and gets them back.
program device_fortran
  use mpi_f08
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: output_unit
  implicit none

  interface
    function cuInit(flags) bind(C, name="cuInit") result(error)
      import :: c_int
      integer(c_int), value :: flags
      integer(c_int) :: error
    end function cuInit
    function cuDevicePrimaryCtxRetain(context, device) bind(C, name="cuDevicePrimaryCtxRetain") result(error)
      import :: c_int, c_ptr
      type(c_ptr) :: context
      integer(c_int), value :: device
      integer(c_int) :: error
    end function cuDevicePrimaryCtxRetain
    function cuCtxSetCurrent(context) bind(C, name="cuCtxSetCurrent") result(error)
      import :: c_int, c_ptr
      type(c_ptr), value :: context
      integer(c_int) :: error
    end function cuCtxSetCurrent
    function cuMemAlloc(memory, length) bind(C, name="cuMemAlloc_v2") result(error)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr) :: memory
      integer(c_size_t), value :: length
      integer(c_int) :: error
    end function cuMemAlloc
    function cuMemcpy(to, from, length) bind(C, name="cuMemcpy") result(error)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: to, from
      integer(c_size_t), value :: length
      integer(c_int) :: error
    end function cuMemcpy
    function cuCtxSynchronize() bind(C, name="cuCtxSynchronize") result(error)
      import :: c_int
      integer(c_int) :: error
    end function cuCtxSynchronize
  end interface

  integer, parameter :: n = 1000
  integer(MPI_ADDRESS_KIND), parameter :: bytes = 8 * n
  integer :: rank, nranks, right, left, i
  type(c_ptr) :: context, field_address, buffer_address
  double precision, pointer, contiguous :: field(:), buffer(:)
  double precision, target :: numbers(n)
  type(MPI_Win) :: win

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks)
  right = mod(rank + 1, nranks)
  left = mod(rank + nranks - 1, nranks)
  call need(cuInit(0_c_int))
  call need(cuDevicePrimaryCtxRetain(context, 0_c_int))
  call need(cuCtxSetCurrent(context))
  call need(cuMemAlloc(field_address, int(bytes, c_size_t)))
  call need(cuMemAlloc(buffer_address, int(bytes, c_size_t)))
  call c_f_pointer(field_address, field, [n])
  call c_f_pointer(buffer_address, buffer, [n])

  numbers = [(rank + 1000d0 * i, i = 1, n)]
  call copy(buffer_address, c_loc(numbers))
  call MPI_Win_create(field, bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, win)
  call MPI_Win_fence(0, win)
  call MPI_Put(buffer, n, MPI_DOUBLE_PRECISION, right, 0_MPI_ADDRESS_KIND, n, MPI_DOUBLE_PRECISION, win)
  call MPI_Win_fence(0, win)
  call MPI_Accumulate(buffer, n, MPI_DOUBLE_PRECISION, right, 0_MPI_ADDRESS_KIND, n, MPI_DOUBLE_PRECISION, MPI_SUM, win)
  call MPI_Win_fence(0, win)
  call copy(c_loc(numbers), field_address)
  call expect(left, 'put and accumulate')
  call MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win)
  call MPI_Get(buffer, n, MPI_DOUBLE_PRECISION, right, 0_MPI_ADDRESS_KIND, n, MPI_DOUBLE_PRECISION, win)
  call MPI_Win_unlock(right, win)
  call copy(c_loc(numbers), buffer_address)
  call expect(rank, 'get')
  call MPI_Win_free(win)
  if (rank == 0) print '(a)', 'done'
  flush (output_unit)
  call MPI_Finalize()

contains

  subroutine need(error)
    integer(c_int), intent(in) :: error
    if (error == 0) return
    print *, 'the driver failed:', error
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine need

  subroutine copy(to, from)
    type(c_ptr), intent(in) :: to, from
    call need(cuMemcpy(to, from, int(bytes, c_size_t)))
    call need(cuCtxSynchronize())
  end subroutine copy

  subroutine expect(origin, what)
    integer, intent(in) :: origin
    character(*), intent(in) :: what
    if (all(numbers == [(2 * (origin + 1000d0 * i), i = 1, n)])) return
    print *, 'rank', rank, what, 'gave', numbers(1), numbers(n)
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine expect
end program device_fortran
