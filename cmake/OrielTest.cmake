# Tests as rows.
#
#   oriel_test_row(PROGRAM p [RANKS "2;4"] [NAME n] [MODES oriel user ...] [ENV K=V ...]
#                  [FULL_RANKS "1;3;8;16"] [TIMEOUT s] [HOSTS mpich] [ARGS ...])
#
# registers, for every host, one launch per number of ranks and mode. Where the standard ABI is
# built for, abi-mpich and abi-openmpi are hosts too: the same program of the ABI in front of each
# of the two. PROGRAM is a program that
# oriel_mpi_program() builds in the same folder, or a path (an interpreter or script). Modes:
#
#   oriel      through `oriel run` (the default)
#   plain      on the bare host
#   user       through `oriel run` as an unprivileged user
#   promoted   through `oriel run`, with ORIEL_PROMOTE=always
#   copied     through `oriel run`, with ORIEL_PROMOTE=never
#   cma-never  through `oriel run`, with ORIEL_PROMOTE=never and ORIEL_CMA=never
#   denied     through `oriel run`, with ORIEL_PROMOTE=never and a seccomp filter that refuses
#              copies between processes
#   denied-promoted   the same with ORIEL_PROMOTE=always
#   net2, net3        through `oriel run`, across two or three emulated nodes (scripts/testnet),
#                     neighbouring ranks on the same node
#   net2-cyclic, net3-cyclic   the same with neighbouring ranks on different nodes
#   net2-plain, net3-plain     across the emulated nodes, on the bare host
#   node1, node2      through `oriel run`, on one node, of which every one or two ranks are treated
#                     as a separate node (ORIEL_NODE_SIZE)
#   rdma              through `oriel run`, in a guest with an RDMA device, every rank treated as a
#                     separate node; one such row at a time, with five times the row's time limit
#   rdma-plain        in the guest, on the bare host
#   promoted-user, copied-user, denied-user, denied-promoted-user, net2-user, net3-user,
#   node1-user, node2-user, rdma-user   the same as an unprivileged user
#
# Rows as an unprivileged user have 2 to 4 ranks: permissions do not depend on more.
#
# `make test` runs a row's first mode at its first number of RANKS on every host. It runs the first
# mode at the other numbers, and the other modes at the first number, on one host each: the hosts
# take turns from one such launch to the next. The rest and FULL_RANKS belong to `make test-full`.
#
#   oriel_unit_test(folder/n [WITH a.c ...] [OBJECTS stem ...] [VARIANT v] [TIMEOUT s] [PARTS])
#                            cmocka, one process, no MPI: folder/n.c and WITH, linked with objects
#                            of src/ (OrielObjects.cmake). PARTS: writes folder/n.parts in the build
#                            folder, for scripts that build the program of changed sources: the
#                            variant, and the sources, named from the top folder, a line each
#   oriel_protocol_test(...)                              the same with its own processes and delays
#   oriel_script_test(NAME n COMMAND ... [TIMEOUT s] [PROCESSORS n] [FULL] [QUICK_HOST h HOST g])
#                            any command. FULL: not in `make test`. QUICK_HOST: there only where the
#                            row's HOST is that one or the ABI on it, or that one is not installed.
#
# Status 77 is a skip; its reason is in the output.

set(ORIEL_MODE_oriel "")
set(ORIEL_MODE_plain --plain)
set(ORIEL_MODE_user --user)
set(ORIEL_MODE_promoted --env ORIEL_PROMOTE=always)
set(ORIEL_MODE_copied --env ORIEL_PROMOTE=never)
set(ORIEL_MODE_cma-never --env ORIEL_PROMOTE=never --env ORIEL_CMA=never)
set(ORIEL_MODE_denied --deny --env ORIEL_PROMOTE=never)
set(ORIEL_MODE_denied-promoted --deny --env ORIEL_PROMOTE=always)
foreach(nodes 2 3)
  set(ORIEL_MODE_net${nodes} --net ${nodes})
  set(ORIEL_MODE_net${nodes}-cyclic --net ${nodes} --map cyclic)
  set(ORIEL_MODE_net${nodes}-plain --net ${nodes} --plain)
endforeach()
foreach(size 1 2)
  set(ORIEL_MODE_node${size} --node-size ${size})
endforeach()
set(ORIEL_MODE_rdma --rdma)
set(ORIEL_MODE_rdma-plain --rdma --plain)
foreach(mode promoted copied denied denied-promoted rdma net2 net3 node1 node2)
  set(ORIEL_MODE_${mode}-user --user ${ORIEL_MODE_${mode}})
endforeach()

# Enables tests under `oriel check`, which needs the preload position of ThreadSanitizer's runtime.
set(ORIEL_TEST_CHECK TRUE)
set(ORIEL_TEST_SLOWER 1) # factor on the time limit of every row
if(CMAKE_CROSSCOMPILING)
  set(ORIEL_TEST_SLOWER 10) # the processor is emulated
endif()
if(SANITIZE MATCHES "address")
  # The sanitised library is preloaded into programs without the sanitiser, so its runtime starts
  # too late. Leak detection is off because the hosts leak.
  set(ORIEL_SCRIPT_ENV ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0)
  set(ORIEL_TEST_ENV --env ${ORIEL_SCRIPT_ENV})
elseif(SANITIZE STREQUAL "thread")
  set(ORIEL_TEST_CHECK FALSE)
  set(ORIEL_TEST_SLOWER 6)
  # UCX's hooks of memory calls run in threads that have ended for the sanitiser, and crash there,
  # on the bare host too. Suppressions match stacks of old accesses, so the history must be long.
  set(ORIEL_SCRIPT_ENV
      "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/races.supp history_size=7"
      UCX_MEM_EVENTS=no TEST_SECONDS=300)
  list(TRANSFORM ORIEL_SCRIPT_ENV PREPEND "--env;" OUTPUT_VARIABLE ORIEL_TEST_ENV)
endif()

set_property(GLOBAL PROPERTY ORIEL_TEST_TURN 0)

# The hosts of rows. A folder for each MPI that offers the standard ABI has its library under the
# common name; tests/launch puts it first in LD_LIBRARY_PATH.
set(ORIEL_TEST_HOSTS ${ORIEL_MPIS})
foreach(mpi IN LISTS ORIEL_MPIS)
  find_library(oriel_abi_${mpi} NAMES libmpi_abi_${mpi}.so.1.0.0 NO_CACHE)
  if("abi" IN_LIST ORIEL_HOSTS AND oriel_abi_${mpi})
    list(APPEND ORIEL_TEST_HOSTS abi-${mpi})
    file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/tests/abi/${mpi}")
    file(CREATE_LINK "${oriel_abi_${mpi}}" "${CMAKE_BINARY_DIR}/tests/abi/${mpi}/libmpi_abi.so.1"
         SYMBOLIC)
  endif()
endforeach()

# A hang reaches the limit of tests/launch, which knows how busy the machine is, or of the program.
# That of ctest ends what they miss, on a machine ten times as busy as one test needs. COST: rows
# with a long time limit start first.
function(oriel_test_register name quick timeout processors)
  set(labels full)
  if(quick)
    list(APPEND labels quick)
  endif()
  math(EXPR last "10 * ${timeout}")
  set_tests_properties(${name} PROPERTIES
    LABELS "${labels}" TIMEOUT ${last} COST ${timeout} PROCESSORS ${processors}
    SKIP_RETURN_CODE 77)
endfunction()

function(oriel_test_row)
  cmake_parse_arguments(PARSE_ARGV 0 arg
                        "" "PROGRAM;NAME;TIMEOUT" "RANKS;FULL_RANKS;MODES;ENV;HOSTS;ARGS")
  if(NOT arg_PROGRAM OR NOT (arg_RANKS OR arg_FULL_RANKS) OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "oriel_test_row: PROGRAM and RANKS or FULL_RANKS are needed; unknown "
                        "arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  foreach(list RANKS FULL_RANKS MODES HOSTS)
    # A quoted "2;4" arrives as one word with the semicolon escaped.
    string(REPLACE "\\;" ";" arg_${list} "${arg_${list}}")
  endforeach()
  get_property(programs DIRECTORY PROPERTY ORIEL_PROGRAMS)
  if(NOT IS_ABSOLUTE "${arg_PROGRAM}" AND NOT arg_PROGRAM IN_LIST programs)
    message(FATAL_ERROR "oriel_test_row: no program ${arg_PROGRAM} has been made yet")
  endif()
  if(NOT arg_NAME)
    get_filename_component(arg_NAME "${arg_PROGRAM}" NAME)
  endif()
  if(NOT arg_MODES)
    set(arg_MODES oriel)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(NOT arg_HOSTS)
    set(arg_HOSTS ${ORIEL_TEST_HOSTS})
  endif()
  list(TRANSFORM arg_ENV PREPEND "--env;" OUTPUT_VARIABLE env)
  get_filename_component(folder "${CMAKE_CURRENT_SOURCE_DIR}" NAME)
  set(first_ranks 0)
  if(arg_RANKS)
    list(GET arg_RANKS 0 first_ranks)
  endif()
  list(GET arg_MODES 0 first_mode)

  set(hosts "")
  foreach(host IN LISTS ORIEL_TEST_HOSTS)
    if(host IN_LIST arg_HOSTS)
      list(APPEND hosts ${host})
    endif()
  endforeach()
  if(NOT hosts)
    return()
  endif()
  # which launches are quick: MODE.RANKS.HOST
  set(quick_launches "")
  list(LENGTH hosts host_count)
  get_property(turn GLOBAL PROPERTY ORIEL_TEST_TURN)
  foreach(mode IN LISTS arg_MODES)
    foreach(ranks IN LISTS arg_RANKS)
      if(mode STREQUAL first_mode AND ranks EQUAL first_ranks)
        list(TRANSFORM hosts PREPEND "${mode}.${ranks}." OUTPUT_VARIABLE launches)
        list(APPEND quick_launches ${launches})
      elseif(mode STREQUAL first_mode OR ranks EQUAL first_ranks)
        math(EXPR turn "${turn} + 1")
        math(EXPR index "${turn} % ${host_count}")
        list(GET hosts ${index} host)
        list(APPEND quick_launches "${mode}.${ranks}.${host}")
      endif()
    endforeach()
  endforeach()
  set_property(GLOBAL PROPERTY ORIEL_TEST_TURN ${turn})

  foreach(host IN LISTS hosts)
    set(program "${arg_PROGRAM}")
    if(NOT IS_ABSOLUTE "${arg_PROGRAM}")
      oriel_program_target(${arg_PROGRAM} ${host} target)
      if(NOT TARGET ${target})
        continue() # no compiler for the language on this host
      endif()
      set(program "$<TARGET_FILE:${target}>")
    endif()
    foreach(mode IN LISTS arg_MODES)
      if(SANITIZE STREQUAL "thread" AND mode MATCHES "promoted-user$")
        # Promotion as an ordinary user stops all threads; the sanitiser's own cannot be stopped.
        continue()
      endif()
      if(NOT DEFINED ORIEL_MODE_${mode})
        message(FATAL_ERROR "oriel_test_row: no mode is called ${mode}")
      endif()
      foreach(ranks IN LISTS arg_RANKS arg_FULL_RANKS)
        set(quick FALSE)
        if("${mode}.${ranks}.${host}" IN_LIST quick_launches)
          set(quick TRUE)
        elseif(mode MATCHES "user$" AND (ranks LESS 2 OR ranks GREATER 4))
          continue()
        endif()
        set(name "${folder}.${arg_NAME}.${host}.${ranks}.${mode}")
        math(EXPR timeout "${arg_TIMEOUT} * ${ORIEL_TEST_SLOWER}")
        math(EXPR limit "${timeout} + 20") # the launcher's own limit expires first, with a report
        if(mode MATCHES "^rdma")
          math(EXPR timeout "${timeout} * 5") # the processor is emulated
          math(EXPR limit "${timeout} + 130") # time for the guest to start
        endif()
        add_test(NAME ${name} COMMAND "${PROJECT_SOURCE_DIR}/tests/launch"
                 --build "${CMAKE_BINARY_DIR}" --host ${host} -n ${ranks} --timeout ${timeout}
                 ${ORIEL_MODE_${mode}} ${ORIEL_TEST_ENV} ${env} -- "${program}" ${arg_ARGS})
        oriel_test_register(${name} ${quick} ${limit} ${ranks})
        if(mode MATCHES "^rdma")
          set_tests_properties(${name} PROPERTIES RESOURCE_LOCK guest)
        endif()
      endforeach()
    endforeach()
  endforeach()
endfunction()

function(oriel_script_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "FULL" "NAME;TIMEOUT;PROCESSORS;QUICK_HOST;HOST" "COMMAND")
  set(quick TRUE)
  if(arg_FULL OR (arg_QUICK_HOST IN_LIST ORIEL_MPIS AND NOT arg_HOST MATCHES "${arg_QUICK_HOST}$"))
    set(quick FALSE)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(NOT arg_PROCESSORS)
    set(arg_PROCESSORS 1)
  endif()
  math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * ${ORIEL_TEST_SLOWER}")
  get_filename_component(folder "${CMAKE_CURRENT_SOURCE_DIR}" NAME)
  add_test(NAME ${folder}.${arg_NAME} COMMAND ${arg_COMMAND})
  oriel_test_register(${folder}.${arg_NAME} ${quick} ${arg_TIMEOUT} ${arg_PROCESSORS})
  # for programs that the script starts
  set_property(TEST ${folder}.${arg_NAME} APPEND PROPERTY ENVIRONMENT ${ORIEL_SCRIPT_ENV})
endfunction()

find_library(ORIEL_CMOCKA cmocka)
if(NOT ORIEL_CMOCKA)
  message(STATUS "No cmocka: the unit and protocol tests are left out")
endif()

function(oriel_cmocka_test path default_variant processors)
  cmake_parse_arguments(PARSE_ARGV 3 arg "PARTS" "VARIANT;TIMEOUT" "WITH;OBJECTS")
  if(NOT ORIEL_CMOCKA)
    return()
  endif()
  if(NOT arg_VARIANT)
    set(arg_VARIANT ${default_variant})
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * ${ORIEL_TEST_SLOWER}")
  get_filename_component(area "${CMAKE_CURRENT_SOURCE_DIR}" NAME)
  get_filename_component(name "${path}" NAME)
  set(target ${area}_${name})
  oriel_objects(objects ${arg_VARIANT} ${arg_OBJECTS})
  add_executable(${target} ${path}.c ${arg_WITH} ${objects})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name})
  target_compile_options(${target} PRIVATE ${ORIEL_WARNINGS})
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  if(TARGET oriel_host_${arg_VARIANT}) # its header alone
    target_include_directories(${target} SYSTEM PRIVATE
      $<TARGET_PROPERTY:oriel_host_${arg_VARIANT},INTERFACE_SYSTEM_INCLUDE_DIRECTORIES>)
  else()
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests/unit/without_mpi")
  endif()
  if(arg_VARIANT STREQUAL "delays")
    target_compile_definitions(${target} PRIVATE ORIEL_DELAYS=1)
  endif()
  target_link_libraries(${target} PRIVATE oriel_base ${ORIEL_CMOCKA})
  add_test(NAME ${area}.${name} COMMAND ${target})
  oriel_test_register(${area}.${name} TRUE ${arg_TIMEOUT} ${processors})
  if(arg_PARTS)
    set(own ${path}.c ${arg_WITH})
    list(TRANSFORM own PREPEND "tests/${area}/")
    oriel_stems_find(stems base)
    list(APPEND stems ${arg_OBJECTS})
    list(TRANSFORM stems PREPEND src/)
    list(TRANSFORM stems APPEND .c)
    set(parts ${arg_VARIANT} ${own} ${stems})
    list(JOIN parts "\n" parts)
    file(CONFIGURE OUTPUT ${path}.parts CONTENT "${parts}\n" @ONLY)
  endif()
endfunction()

function(oriel_unit_test path)
  oriel_cmocka_test(${path} no_mpi 1 ${ARGN})
endfunction()

function(oriel_protocol_test path)
  oriel_cmocka_test(${path} delays 2 ${ARGN})
endfunction()
