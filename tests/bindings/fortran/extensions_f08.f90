! The extensions of <oriel/ext.h> from Fortran 2008, through the module mpix_oriel. Each rank works
! on its right neighbour. On the bare host the program links and starts, and MPIX_Query_oriel() is
! false.
program extensions_f08
  use mpi_f08
  use mpix_oriel
  use verdicts
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int64_t, c_ptr
  implicit none
  integer, parameter :: aint = MPI_ADDRESS_KIND, counts = MPI_COUNT_KIND
  integer, parameter :: nwords = 16
  type(MPI_Win) :: win
  integer, pointer, asynchronous :: words(:)

  call verdicts_start()
  call the_query_tells_whether_oriel_is_loaded()
  if (MPIX_Query_oriel()) then
    call window_make()
    call notified_operations_of_both_kinds_of_counts()
    call notifications_are_taken_in_every_way()
    call errors_are_in_ierror()
    call sections_are_refused()
    call bottom_is_an_address()
    call a_request_waits_for_notifications()
    call flushes_complete_operations()
    call atomic_operations_return_results()
    call waits_see_the_element()
    call persistent_operations_are_started()
    call a_handle_opens_a_part_of_a_window()
    call MPI_Win_unlock_all(win)
    call MPI_Win_free(win)
  end if
  call verdicts_end()

contains

  subroutine the_query_tells_whether_oriel_is_loaded()
    character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
    integer :: length
    call MPI_Get_library_version(version, length)
    call check(MPIX_Query_oriel() .eqv. index(version(:length), 'windows by Oriel') > 0, 'the query')
    call verdict('the_query_tells_whether_oriel_is_loaded')
  end subroutine the_query_tells_whether_oriel_is_loaded

  ! A window of integers with four notification counters, in an epoch for all ranks.
  subroutine window_make()
    type(MPI_Info) :: info
    type(c_ptr) :: base
    call MPI_Info_create(info)
    call MPI_Info_set(info, 'oriel_notifications', '4')
    call MPI_Win_allocate(4_aint * nwords, 4, info, MPI_COMM_WORLD, base, win)
    call MPI_Info_free(info)
    call c_f_pointer(base, words, [nwords])
    words = 0
    call MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN)
    call MPI_Win_lock_all(0, win)
    call MPI_Barrier(MPI_COMM_WORLD)
  end subroutine window_make

  ! Ends a case: after it, the window is 0 again.
  subroutine done(name)
    character(len=*), intent(in) :: name
    call MPI_Win_flush_all(win)
    call MPI_Barrier(MPI_COMM_WORLD)
    words = 0
    call MPI_Win_sync(win)
    call verdict(name)
  end subroutine done

  subroutine notified_operations_of_both_kinds_of_counts()
    integer, asynchronous :: sent(2), more(3, 2), got(2), one
    sent = [rank, 7]
    more = 50 + rank
    one = 1
    call MPIX_Put_notify(sent, 2, MPI_INTEGER, right, 1_aint, 2, MPI_INTEGER, 0, win)
    call MPIX_Put_notify(more, 6_counts, MPI_INTEGER, right, 3_aint, 6_counts, MPI_INTEGER, 0, win)
    call MPIX_Accumulate_notify(one, 1, MPI_INTEGER, right, 0_aint, 1, MPI_INTEGER, MPI_SUM, 1, win)
    call MPIX_Accumulate_notify(one, 1_counts, MPI_INTEGER, right, 0_aint, 1_counts, MPI_INTEGER, &
                                MPI_SUM, 1, win)
    call MPIX_Win_notify_wait(win, 0, 2)
    call MPIX_Win_notify_wait(win, 1, 2_counts)
    call check(all(words(:9) == [2, left, 7, spread(50 + left, 1, 6)]), 'words that were put')
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPIX_Get_notify(got, 1, MPI_INTEGER, right, 1_aint, 1, MPI_INTEGER, 2, win)
    call MPIX_Get_notify(got(2), 1_counts, MPI_INTEGER, right, 2_aint, 1_counts, MPI_INTEGER, 2, win)
    call MPI_Win_flush(right, win)
    call check(all(got == [rank, 7]), 'words that were read')
    call MPIX_Win_notify_wait(win, 2, 2)
    call done('notified_operations_of_both_kinds_of_counts')
  end subroutine notified_operations_of_both_kinds_of_counts

  subroutine notify(number)
    integer, intent(in) :: number
    call MPIX_Put_notify(number, 0, MPI_INTEGER, right, 0_aint, 0, MPI_INTEGER, number, win)
    call MPI_Win_flush(right, win)
    call MPI_Barrier(MPI_COMM_WORLD)
  end subroutine notify

  subroutine notifications_are_taken_in_every_way()
    integer :: place, ierr
    logical :: flag
    flag = .true.
    call MPIX_Win_notify_test(win, 3, 1, flag)
    call check(.not. flag, 'no notification yet')
    call MPI_Barrier(MPI_COMM_WORLD)
    call notify(3)
    call MPIX_Win_notify_test(win, 3, 1_counts, flag, ierr)
    call check(flag .and. ierr == MPI_SUCCESS, 'a notification')
    call notify(2)
    call MPIX_Win_notify_wait_any(win, 3, [0, 2, 3], place)
    call check(place == 2, 'the place among the numbers')
    call done('notifications_are_taken_in_every_way')
  end subroutine notifications_are_taken_in_every_way

  subroutine expect_class(code, wanted, what)
    integer, intent(in) :: code, wanted
    character(len=*), intent(in) :: what
    integer :: class
    call MPI_Error_class(code, class)
    call check(class == wanted, what)
  end subroutine expect_class

  subroutine errors_are_in_ierror()
    integer :: ierr, place
    ierr = MPI_SUCCESS
    call MPIX_Win_notify_wait(win, 4, 1, ierr)
    call expect_class(ierr, MPI_ERR_ARG, 'an unknown number')
    call MPIX_Win_notify_wait(win, 0, -1_counts, ierr)
    call expect_class(ierr, MPI_ERR_COUNT, 'a negative count')
    call MPIX_Win_notify_wait_any(win, 1, [4], place, ierr)
    call expect_class(ierr, MPI_ERR_ARG, 'an unknown number among several')
    call check(place == 0, 'no place')
    call MPIX_Put_notify(ierr, 1, MPI_INTEGER, nranks, 0_aint, 1, MPI_INTEGER, 0, win, ierr)
    call expect_class(ierr, MPI_ERR_RANK, 'an unknown rank')
    call notify(0)
    call MPIX_Win_notify_wait(win, 0, 1)
    call done('errors_are_in_ierror')
  end subroutine errors_are_in_ierror

  subroutine sections_are_refused()
    integer, asynchronous :: matrix(4, 3)
    integer :: ierr
    matrix = 5
    call MPIX_Put_notify(matrix(1, :), 3, MPI_INTEGER, right, 0_aint, 3, MPI_INTEGER, 0, win, ierr)
    call expect_class(ierr, MPI_ERR_BUFFER, 'a row')
    call MPI_Barrier(MPI_COMM_WORLD)
    call check(all(words == 0), 'nothing was put')
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPIX_Put_notify(matrix(2:, 1), 3, MPI_INTEGER, right, 0_aint, 3, MPI_INTEGER, 0, win, ierr)
    call check(ierr == MPI_SUCCESS, 'a part of a column')
    call MPIX_Win_notify_wait(win, 0, 1)
    call check(all(words(:4) == [5, 5, 5, 0]), 'a part of a column was put')
    call done('sections_are_refused')
  end subroutine sections_are_refused

  subroutine bottom_is_an_address()
    integer, asynchronous, target :: value
    type(MPI_Datatype) :: there
    integer(MPI_ADDRESS_KIND) :: address
    integer :: ierr
    value = 90 + rank
    call MPI_Get_address(value, address)
    call MPI_Type_create_hindexed(1, [1], [address], MPI_INTEGER, there)
    call MPI_Type_commit(there)
    call MPIX_Put_notify(MPI_BOTTOM, 1, there, right, 5_aint, 1, MPI_INTEGER, 1, win)
    call MPIX_Win_notify_wait(win, 1, 1)
    call check(words(6) == 90 + left, 'a word at an absolute address')
    call MPIX_Put_notify(MPI_BOTTOM, 1, MPI_INTEGER, right, 0_aint, 1, MPI_INTEGER, 1, win, ierr)
    call expect_class(ierr, MPI_ERR_BUFFER, 'MPI_BOTTOM with a basic type')
    call MPI_Type_free(there)
    call done('bottom_is_an_address')
  end subroutine bottom_is_an_address

  subroutine a_request_waits_for_notifications()
    type(MPI_Request) :: requests(2)
    call MPIX_Win_notify_init(win, 3, 1, requests(1))
    call MPIX_Win_notify_init(win, 2, 1_counts, requests(2))
    call MPI_Startall(2, requests)
    call notify(3)
    call notify(2)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
    call done('a_request_waits_for_notifications')
  end subroutine a_request_waits_for_notifications

  subroutine flushes_complete_operations()
    integer, asynchronous :: got(4)
    type(MPI_Request) :: request
    type(MPI_Win) :: wins(2)
    integer :: ierr
    words(:4) = [rank, rank + 1, rank + 2, rank + 3]
    call MPI_Win_sync(win)
    call MPI_Barrier(MPI_COMM_WORLD)
    got = -1
    call MPI_Get(got(1), 1, MPI_INTEGER, right, 0_aint, 1, MPI_INTEGER, win)
    call MPIX_Win_order(right, win)
    call MPIX_Win_flush_list(2, [right, rank], win)
    call MPI_Get(got(2), 1, MPI_INTEGER, right, 1_aint, 1, MPI_INTEGER, win)
    wins = win
    call MPIX_Win_flush_windows(2, wins)
    call MPI_Get(got(3), 1, MPI_INTEGER, right, 2_aint, 1, MPI_INTEGER, win)
    call MPIX_Win_iflush(right, win, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Get(got(4), 1, MPI_INTEGER, right, 3_aint, 1, MPI_INTEGER, win)
    call MPIX_Win_iflush_all(win, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(got == [right, right + 1, right + 2, right + 3]), 'words that were read')
    call MPIX_Win_flush_list(1, [nranks], win, ierr)
    call expect_class(ierr, MPI_ERR_RANK, 'an unknown rank')
    wins(2) = MPI_WIN_NULL
    call MPIX_Win_flush_windows(0, wins, ierr)
    call check(ierr == MPI_SUCCESS, 'no windows')
    call done('flushes_complete_operations')
  end subroutine flushes_complete_operations

  subroutine atomic_operations_return_results()
    integer, asynchronous :: one(3), before(3)
    integer(c_int64_t), asynchronous :: pair(2), old(2)
    integer(c_int64_t), parameter :: zeros(2) = 0
    type(MPI_Request) :: request
    type(MPI_Datatype) :: half
    integer :: nbytes
    one = 1
    call MPIX_Rfetch_and_op(one, before, MPI_INTEGER, right, 0_aint, MPI_SUM, win, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(before(1) == 0, 'fetch_and_op')
    call MPIX_Rcompare_and_swap(5, one, before, MPI_INTEGER, right, 0_aint, win, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(before(1) == 1, 'compare_and_swap')
    call MPIX_Fetch_and_op_list(one, before, 3, MPI_INTEGER, right, [1_aint, 0_aint, 1_aint], &
                                MPI_SUM, win)
    call MPI_Win_flush(right, win)
    call check(all(before == [0, 5, 1]), 'a list')
    call MPIX_Fetch_and_op_list(one, before, 1_counts, MPI_INTEGER, right, [1_aint], MPI_NO_OP, win)
    call MPI_Win_flush(right, win)
    call check(before(1) == 2, 'a list of one')
    pair = [7, 8]
    call MPIX_Compare_and_swap_128(pair, zeros, old, right, 4_aint, win)
    call MPI_Win_flush(right, win)
    call check(all(old == 0), 'compare_and_swap of 16 bytes')
    call MPI_Barrier(MPI_COMM_WORLD)
    call check(all(words(:8) == [6, 2, 0, 0, 7, 0, 8, 0]), 'the words of the window')
    call MPIX_Type_float16(half)
    call MPI_Type_size(half, nbytes)
    call check(nbytes == 2, 'a real of 16 bits')
    call MPIX_Type_float16_complex(half)
    call MPI_Type_size(half, nbytes)
    call check(nbytes == 4, 'a complex number of 16-bit reals')
    call done('atomic_operations_return_results')
  end subroutine atomic_operations_return_results

  subroutine waits_see_the_element()
    integer, asynchronous :: value
    logical :: flag
    integer :: ierr
    flag = .true.
    call MPIX_Win_test_until(win, 2_aint, MPI_INTEGER, MPIX_CMP_GT, 3, flag)
    call check(.not. flag, 'not yet')
    call MPI_Barrier(MPI_COMM_WORLD)
    value = 4
    call MPI_Accumulate(value, 1, MPI_INTEGER, right, 2_aint, 1, MPI_INTEGER, MPI_REPLACE, win)
    call MPI_Win_flush(right, win)
    call MPIX_Win_wait_until(win, 2_aint, MPI_INTEGER, MPIX_CMP_EQ, value)
    call MPIX_Win_test_until(win, 2_aint, MPI_INTEGER, MPIX_CMP_GT, 3, flag)
    call check(flag, 'the comparison holds')
    call MPIX_Win_wait_until(win, 2_aint, MPI_INTEGER, 7, value, ierr)
    call expect_class(ierr, MPI_ERR_ARG, 'an unknown comparison')
    call done('waits_see_the_element')
  end subroutine waits_see_the_element

  subroutine persistent_operations_are_started()
    integer, asynchronous :: sent(2), more, got(2), result, before, none, found, read
    type(MPI_Request) :: requests(10)
    integer :: i
    sent = [rank, rank + 10]
    more = 2
    none = 0
    call MPIX_Put_init(sent, 2, MPI_INTEGER, right, 0_aint, 2, MPI_INTEGER, win, requests(1))
    call MPIX_Put_init(more, 1_counts, MPI_INTEGER, right, 2_aint, 1_counts, MPI_INTEGER, win, &
                       requests(2))
    call MPIX_Accumulate_init(more, 1, MPI_INTEGER, right, 3_aint, 1, MPI_INTEGER, MPI_SUM, win, &
                              requests(3))
    call MPIX_Get_accumulate_init(more, 1, MPI_INTEGER, result, 1, MPI_INTEGER, right, 4_aint, 1, &
                                  MPI_INTEGER, MPI_SUM, win, requests(4))
    call MPIX_Fetch_and_op_init(more, before, MPI_INTEGER, right, 5_aint, MPI_SUM, win, requests(5))
    call MPIX_Put_notify_init(sent, 1, MPI_INTEGER, right, 6_aint, 1, MPI_INTEGER, 1, win, &
                              requests(6))
    call MPIX_Compare_and_swap_init(more, none, found, MPI_INTEGER, right, 7_aint, win, &
                                    requests(7))
    call MPIX_Get_notify_init(read, 1_counts, MPI_INTEGER, right, 8_aint, 1_counts, MPI_INTEGER, &
                              1, win, requests(8))
    call MPIX_Accumulate_notify_init(more, 1, MPI_INTEGER, right, 9_aint, 1, MPI_INTEGER, MPI_SUM, &
                                     1, win, requests(9))
    do i = 1, 2
      call MPI_Startall(9, requests)
      call MPI_Waitall(9, requests, MPI_STATUSES_IGNORE)
    end do
    call MPI_Win_flush(right, win)
    call check(result == 2 .and. before == 2, 'results of the second start')
    call check(found == 2 .and. read == 0, 'what the second start found and read')
    call MPIX_Win_notify_wait(win, 1, 6)
    call MPI_Barrier(MPI_COMM_WORLD)
    call check(all(words(:10) == [left, left + 10, 2, 4, 4, 4, left, 2, 0, 4]), &
               'the words of the window')
    call MPIX_Get_init(got, 2, MPI_INTEGER, right, 0_aint, 2, MPI_INTEGER, win, requests(10))
    call MPI_Start(requests(10))
    call MPI_Wait(requests(10), MPI_STATUS_IGNORE)
    call check(all(got == sent), 'words that were read')
    do i = 1, 10
      call MPI_Request_free(requests(i))
    end do
    call done('persistent_operations_are_started')
  end subroutine persistent_operations_are_started

  ! Each rank opens its left neighbour's words 9 to 12, as a window of its own, if the ranks are on
  ! one node.
  subroutine a_handle_opens_a_part_of_a_window()
    type(MPIX_Memory_handle) :: mine, of_left
    type(MPI_Win) :: opened
    integer, asynchronous :: value
    integer :: ierr
    logical :: opens
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    call MPIX_Win_memory_handle_create(win, 8_aint, 16_aint, mine)
    call MPI_Sendrecv(mine, 1280, MPI_BYTE, right, 0, of_left, 1280, MPI_BYTE, left, 0, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPIX_Win_memory_open(of_left, MPI_INFO_NULL, opened, ierr)
    if (ierr /= MPI_SUCCESS) call expect_class(ierr, MPI_ERR_UNSUPPORTED_OPERATION, 'another node')
    call MPI_Allreduce(ierr == MPI_SUCCESS, opens, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD)
    if (opens) then
      call MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, opened)
      value = 30 + rank
      call MPI_Put(value, 1, MPI_INTEGER, 0, 1_aint, 1, MPI_INTEGER, opened)
      call MPI_Win_unlock(0, opened)
      call MPI_Barrier(MPI_COMM_WORLD)
      call MPI_Win_sync(win)
      call check(words(10) == 30 + right, 'the word that was put')
    end if
    if (ierr == MPI_SUCCESS) call MPI_Win_free(opened)
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPIX_Win_memory_handle_free(mine)
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPIX_Win_memory_open(of_left, MPI_INFO_NULL, opened, ierr)
    if (opens) call expect_class(ierr, MPI_ERR_RMA_ATTACH, 'a handle that is withdrawn')
    call done('a_handle_opens_a_part_of_a_window')
  end subroutine a_handle_opens_a_part_of_a_window
end program extensions_f08
