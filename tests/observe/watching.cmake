# `oriel top` and `oriel run --watch`: jobs that hang or are busy, observed from outside.
oriel_mpi_program(NAME hang SOURCES hang.c LINES)
oriel_mpi_program(NAME busy SOURCES busy.c)

# The ranks of hanging jobs sleep.
function(watching_row name host ranks script)
  oriel_script_test(NAME ${name} ${ARGN} TIMEOUT 400
    COMMAND "${CMAKE_COMMAND}" -E env "TESTS_BUILD=${CMAKE_BINARY_DIR}" "TESTS_HOST=${host}"
            "TESTS_RANKS=${ranks}" /usr/bin/python3 -B "${CMAKE_CURRENT_SOURCE_DIR}/${script}.py")
endfunction()

# These take up to half a minute each, most of it waiting. The quick rows run `top` on one host and
# `--watch` on the other.
list(GET ORIEL_MPIS 0 seen)
foreach(host IN LISTS ORIEL_TEST_HOSTS)
  foreach(ranks 2 4 8)
    set(full FULL)
    if(ranks EQUAL 2)
      set(full "")
    endif()
    watching_row(top.${host}.${ranks} ${host} ${ranks} test_top ${full} HOST ${host}
        QUICK_HOST mpich)
    watching_row(watch.${host}.${ranks} ${host} ${ranks} test_watch ${full} HOST ${host}
        QUICK_HOST openmpi)
  endforeach()
endforeach()
watching_row(top_screen ${seen} 4 test_top_screen)
