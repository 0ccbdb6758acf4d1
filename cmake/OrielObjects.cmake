# Objects of src/: each source is compiled once per variant. Libraries, the command and tests link
# the objects.
#
#   oriel_objects(out VARIANT stem...)   the objects of src/<stem>.c in a variant;
#                                        cli/<stem> is a source of the command
#
# A source that does not include <mpi.h>, directly or not, is compiled once for all hosts. The
# variants:
#
#   <host>    as in the libraries: with that host's mpi.h
#   no_mpi    without MPI: the command, and tests with the replacement of mpi.h in
#             tests/unit/without_mpi
#   delays    the same with random delays between the steps of protocols (ORIEL_DELAYS)
#
# The object libraries are oriel_free and oriel_delays_free for sources that do not reach <mpi.h>;
# oriel_with_<host>, oriel_with_no_mpi and oriel_with_delays for the others. The tests' libraries
# contain only the sources that tests ask for (ORIEL_WANTED_<library>).

# The stems of the sources in folders of src/.
function(oriel_stems_find out)
  list(TRANSFORM ARGN APPEND "/*.c")
  list(TRANSFORM ARGN PREPEND "${PROJECT_SOURCE_DIR}/src/")
  file(GLOB stems RELATIVE "${PROJECT_SOURCE_DIR}/src" CONFIGURE_DEPENDS ${ARGN})
  list(TRANSFORM stems REPLACE "\\.c$" "")
  set(${out} "${stems}" PARENT_SCOPE)
endfunction()

# True if src/<source> or a header that it includes needs <mpi.h>.
function(oriel_reaches_mpi source out)
  get_property(reaches GLOBAL PROPERTY "ORIEL_REACHES_MPI_${source}")
  if("${reaches}" STREQUAL "")
    set(reaches FALSE)
    # ends the recursion for headers that include each other
    set_property(GLOBAL PROPERTY "ORIEL_REACHES_MPI_${source}" FALSE)
    file(STRINGS "${PROJECT_SOURCE_DIR}/src/${source}" lines REGEX "^[ \t]*#[ \t]*include")
    foreach(line IN LISTS lines)
      if(line MATCHES "<mpi\\.h>")
        set(reaches TRUE)
      elseif(line MATCHES "\"(.+)\"")
        set(header "${CMAKE_MATCH_1}")
        if(header MATCHES "^oriel/mpi_")
          set(reaches TRUE) # in include/, for programs
        elseif(EXISTS "${PROJECT_SOURCE_DIR}/src/${header}")
          oriel_reaches_mpi("${header}" reaches)
        endif()
      endif()
      if(reaches)
        break()
      endif()
    endforeach()
    set_property(GLOBAL PROPERTY "ORIEL_REACHES_MPI_${source}" ${reaches})
  endif()
  set(${out} ${reaches} PARENT_SCOPE)
endfunction()

# Splits stems into those that do not reach <mpi.h> and the others.
function(oriel_stems_sort free_out bound_out)
  set(free "")
  set(bound "")
  foreach(stem IN LISTS ARGN)
    oriel_reaches_mpi("${stem}.c" reaches)
    if(reaches)
      list(APPEND bound ${stem})
    else()
      list(APPEND free ${stem})
    endif()
  endforeach()
  set(${free_out} "${free}" PARENT_SCOPE)
  set(${bound_out} "${bound}" PARENT_SCOPE)
endfunction()

function(oriel_objects out variant)
  set(stems ${ARGN})
  set(command ${stems})
  list(FILTER command INCLUDE REGEX "^cli/")
  list(FILTER stems EXCLUDE REGEX "^cli/")
  list(TRANSFORM command REPLACE "^cli/" "")
  oriel_stems_sort(free bound ${stems})
  set(free_library oriel_free)
  if(variant STREQUAL "delays")
    set(free_library oriel_delays_free)
  endif()
  set(objects "")
  set(bound_library oriel_with_${variant})
  set(command_library oriel_cli)
  foreach(kind free bound command)
    if(${kind})
      set_property(GLOBAL APPEND PROPERTY ORIEL_WANTED_${${kind}_library} ${${kind}})
      list(JOIN ${kind} "|" pattern)
      # No stem is a suffix of another one, so the end of an object's path identifies its source.
      list(APPEND objects
           "$<FILTER:$<TARGET_OBJECTS:${${kind}_library}>,INCLUDE,/(${pattern})\\.c\\.o$>")
    endif()
  endforeach()
  set(${out} "${objects}" PARENT_SCOPE)
endfunction()

# The flags of all objects of the product.
set(ORIEL_LIBRARY_FLAGS -fvisibility=hidden -ftls-model=initial-exec -fno-semantic-interposition
    ${ORIEL_WARNINGS})

# Options of single sources, for the objects that the calling folder compiles.
function(oriel_sources_configure)
  # The loops over many elements are as fast as -O3 makes them.
  set_source_files_properties("${PROJECT_SOURCE_DIR}/src/reduce/kernel.c"
    "${PROJECT_SOURCE_DIR}/src/reduce/half.c" PROPERTIES COMPILE_OPTIONS -O3)
  # Sanitisers call dlsym and dlopen before they have started.
  set_source_files_properties("${PROJECT_SOURCE_DIR}/src/host/dlsym.c"
    "${PROJECT_SOURCE_DIR}/src/gpu/dlopen.c" PROPERTIES COMPILE_OPTIONS -fno-sanitize=all)
  # Functions that sanitisers and all other code call before this library has started. Loops stay
  # loops.
  set_source_files_properties("${PROJECT_SOURCE_DIR}/src/check/intercept/program_memory.c"
    PROPERTIES COMPILE_OPTIONS -fno-sanitize=all)
  set_source_files_properties("${PROJECT_SOURCE_DIR}/src/check/intercept/libc_accesses.c"
    PROPERTIES COMPILE_OPTIONS "-fno-sanitize=all;-fno-builtin;-U_FORTIFY_SOURCE")
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    # The checks of the data path stay branches, which are never taken, instead of arithmetic.
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/api/*.c")
    set_source_files_properties(${sources} PROPERTIES
      COMPILE_OPTIONS --param=logical-op-non-short-circuit=0)
  endif()
  if(SANITIZE MATCHES "address")
    # A function that checks for use after return reads a word among the program's own data. Its
    # page may be moving into the memory file, and the thread that moves it would wait for itself.
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/memory/*.c"
         "${PROJECT_SOURCE_DIR}/src/memory/promote/*.c")
    set(gnu --param=asan-use-after-return=0)
    set(clang -fsanitize-address-use-after-return=never)
    set_source_files_properties(${sources} PROPERTIES
      COMPILE_OPTIONS "$<$<C_COMPILER_ID:GNU>:${gnu}>;$<$<C_COMPILER_ID:Clang>:${clang}>")
  endif()
endfunction()
