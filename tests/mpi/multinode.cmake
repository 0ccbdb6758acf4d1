# The suite over several nodes: emulated ones (net2, net3), or one or two ranks treated as a node
# (node1, node2). MPICH has one rank on each node of a net (tests/net gives the reason); node2
# covers its ranks that share a node.

# oriel_multinode_rows(PROGRAM p [NAME n] [QUICK] [TIMEOUT s] [ENV K=V ...] [ARGS ...]): all modes.
# QUICK: five rows in `make test`, and more numbers of ranks otherwise.
function(oriel_multinode_rows)
  cmake_parse_arguments(PARSE_ARGV 0 arg "QUICK" "PROGRAM;NAME;TIMEOUT" "ENV;ARGS")
  if(NOT arg_NAME)
    get_filename_component(arg_NAME "${arg_PROGRAM}" NAME)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 240)
  endif()
  set(row PROGRAM ${arg_PROGRAM} NAME ${arg_NAME} TIMEOUT ${arg_TIMEOUT})
  if(arg_ENV)
    list(APPEND row ENV ${arg_ENV})
  endif()
  set(last)
  if(arg_ARGS)
    set(last ARGS ${arg_ARGS})
  endif()
  set(quick FULL_RANKS)
  if(arg_QUICK)
    set(quick RANKS)
  endif()
  oriel_test_row(${row} ${quick} "2" FULL_RANKS "4" MODES node1 ${last})
  oriel_test_row(${row} ${quick} "4" MODES node2 HOSTS openmpi ${last})
  oriel_test_row(${row} FULL_RANKS "4" MODES node2 HOSTS mpich ${last})
  oriel_test_row(${row} ${quick} "2" MODES net2 HOSTS mpich ${last})
  oriel_test_row(${row} FULL_RANKS "3" MODES net3 HOSTS mpich ${last})
  oriel_test_row(${row} ${quick} "4" MODES net2-cyclic HOSTS openmpi ${last})
  oriel_test_row(${row} FULL_RANKS "4" MODES net3 HOSTS openmpi ${last})
  if(arg_QUICK)
    oriel_test_row(${row} FULL_RANKS "3;8" MODES node1 node2 ${last})
    oriel_test_row(${row} FULL_RANKS "2;8" MODES net2 net3-cyclic HOSTS openmpi ${last})
  endif()
endfunction()

foreach(area put_get accumulate_order fence pscw lock dynamic ext_notify
    ext_persistent ext_persistent_errors ext_memory ext_flush ext_wait)
  oriel_multinode_rows(PROGRAM ${area} QUICK)
endforeach()
foreach(area create shared accumulate accumulate_mix accumulate_pairs accumulate_refused atomicity
    derived derived_accumulate requests request_storm progress litmus attributes hints large_forms
    large_transfers resources memory_returned threads thread_objects thread_epochs object_groups
    object_handles later_windows freed_communicators host_progress presence children finalise
    errors_create errors_operate errors_sync errors_dynamic errors_buffers errors_corners
    errors_forms errors_handlers small_windows limits ext_atomics ext_types)
  oriel_multinode_rows(PROGRAM ${area})
endforeach()
oriel_test_row(PROGRAM lock_all_cycles RANKS "4" FULL_RANKS "8" MODES node1 node2 TIMEOUT 120)
# Handles of a process that has no window over several nodes, and of one without a network.
oriel_test_row(PROGRAM ext_memory NAME ext_memory_outside
    RANKS "2" MODES node1 ARGS --only processes_outside_the_window_open_it)
oriel_test_row(PROGRAM ext_memory NAME ext_memory_without_net RANKS "2" FULL_RANKS "4"
    MODES node1 ENV ORIEL_NET=off ARGS --only owners_without_a_network_are_opened_on_their_node)
# The error for ranks without shared memory is short.
oriel_test_row(PROGRAM shared NAME shared_apart
    RANKS "2" MODES net2 ARGS --only ranks_that_share_no_memory_get_the_error)
# Memory that another rank of the same node shares, in a window over several nodes.
oriel_test_row(PROGRAM shared NAME shared_each_node
    RANKS "4" MODES node2 ARGS --only each_node_has_a_shared_window)
# Its other cases make windows until the host has no handles left, which takes minutes internode.
foreach(case thousands_of_windows_live_at_once windows_of_all_flavours_in_turn_leave_nothing)
  oriel_multinode_rows(PROGRAM many_windows NAME many_windows_${case} ARGS --only ${case})
endforeach()
# Ranks that wait in MPICH serve requests themselves; with Open MPI the agent's thread does.
oriel_test_row(PROGRAM host_waits RANKS "2" FULL_RANKS "4" MODES node1 HOSTS mpich)
oriel_test_row(PROGRAM host_waits RANKS "2" MODES net2 HOSTS mpich)
oriel_test_row(PROGRAM host_waits FULL_RANKS "2" MODES node1-user HOSTS mpich)
oriel_test_row(PROGRAM host_waits FULL_RANKS "4" MODES node2 HOSTS mpich)
# The user sets one of UCX's two segment sizes; it must not exceed the other one, which Oriel sets.
oriel_test_row(PROGRAM put_get NAME put_get_small_pieces
    RANKS "2" MODES net2 ENV UCX_TCP_RX_SEG_SIZE=8k HOSTS openmpi)
oriel_multinode_rows(PROGRAM small_reserve ENV ORIEL_RESERVE=8M)
foreach(area promoted_threads promoted_waits promoted_fork promoted_children promoted_reuse
    promoted_memory_kinds promoted_dynamic)
  oriel_multinode_rows(PROGRAM ${area} NAME ${area}_always ENV ORIEL_PROMOTE=always)
  oriel_test_row(PROGRAM ${area} NAME ${area}_always
      FULL_RANKS "4" MODES node2-user TIMEOUT 240 ENV ORIEL_PROMOTE=always)
endforeach()
# Internode accesses while pages move, by the kernel's copies and where it refuses them.
oriel_test_row(PROGRAM promote_under_copies NAME promote_under_copies_always
    FULL_RANKS "4" MODES node2-user TIMEOUT 120 ENV ORIEL_PROMOTE=always)
oriel_test_row(PROGRAM promote_under_copies NAME promote_under_copies_always_by_agent
    FULL_RANKS "4" MODES node2-user TIMEOUT 120 ENV ORIEL_PROMOTE=always ORIEL_CMA=never)
# As an ordinary user, and where the program's own memory stays private.
foreach(area put_get accumulate atomicity dynamic fence pscw lock)
  oriel_test_row(PROGRAM ${area}
      FULL_RANKS "2;4" MODES node1-user node2-user net2-user TIMEOUT 240 HOSTS openmpi)
  oriel_test_row(PROGRAM ${area} FULL_RANKS "2" MODES node1-user net2-user TIMEOUT 240 HOSTS mpich)
endforeach()
foreach(area create put_get accumulate accumulate_mix atomicity derived dynamic)
  oriel_test_row(PROGRAM ${area} NAME ${area}_copied
      FULL_RANKS "4" MODES node2 ENV ORIEL_PROMOTE=never TIMEOUT 240)
  oriel_test_row(PROGRAM ${area} NAME ${area}_by_agent
      FULL_RANKS "4" MODES node2 ENV ORIEL_PROMOTE=never ORIEL_CMA=never TIMEOUT 240)
endforeach()
# Over an RDMA device, all ranks in a guest.
foreach(area put_get accumulate accumulate_order fence pscw lock dynamic requests progress atomicity
    outstanding outstanding_gets derived)
  oriel_test_row(PROGRAM ${area} FULL_RANKS "2;3" MODES rdma TIMEOUT 120)
endforeach()
