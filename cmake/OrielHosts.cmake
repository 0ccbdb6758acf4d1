# Finds the host MPIs and describes each by targets:
#   oriel_host_<host>          include folders and libraries of C programs
#   oriel_host_<host>_CXX      the same for C++
#   oriel_host_<host>_Fortran  the same for Fortran, where the host has Fortran wrappers
# ORIEL_HOSTS lists the hosts found (mpich, openmpi, abi), ORIEL_HOST_<host>_VERSION their versions.
# ORIEL_MPIS lists those of them that start jobs: all but abi, MPI's standard ABI, which MPICH 5 and
# Open MPI 6 offer in addition to their own interfaces.
#
# A host's compiler wrapper defines it: the wrapper prints the command that it would run, and
# preprocessing its mpi.h identifies the MPI. If one host is installed several times, the first
# mpicc in PATH is used.

set(ORIEL_MPICC "" CACHE STRING
    "Compiler wrappers of the hosts to build for, as /opt/mpich/bin/mpicc; empty: all found")
set(ORIEL_HOSTS "")
set(ORIEL_HOST_mpich_TITLE "MPICH")
set(ORIEL_HOST_openmpi_TITLE "Open MPI")
set(ORIEL_HOST_abi_TITLE "MPI's standard ABI")

# The command line of a compiler wrapper, without the compiler's name.
function(oriel_wrapper_flags wrapper out)
  foreach(question -show -showme)
    execute_process(COMMAND "${wrapper}" ${question} OUTPUT_VARIABLE answer ERROR_QUIET
                    RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(status EQUAL 0 AND answer MATCHES "-l")
      separate_arguments(words UNIX_COMMAND "${answer}")
      list(POP_FRONT words)
      set(${out} "${words}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${out} "" PARENT_SCOPE)
endfunction()

# Splits flags into compiler and linker flags. Drops the optimisation, hardening and path-mapping
# flags of the host's own build; Oriel's apply.
function(oriel_flags_sort flags includes_out compile_out link_out)
  set(includes "")
  set(compile "")
  set(link "")
  set(rpath_follows FALSE)
  set(word_follows FALSE)
  foreach(flag IN LISTS flags)
    if(word_follows) # -Xlinker WORD, as Intel MPI's wrappers print it, is -Wl,WORD
      string(PREPEND flag "-Wl,")
      set(word_follows FALSE)
    endif()
    if(flag STREQUAL "-Xlinker")
      set(word_follows TRUE)
    elseif(rpath_follows)
      string(REPLACE "-Wl," "" folder "${flag}")
      list(APPEND link "-Wl,-rpath,${folder}")
      set(rpath_follows FALSE)
    elseif(flag STREQUAL "-Wl,-rpath")
      set(rpath_follows TRUE)
    elseif(flag MATCHES "^-I(.+)")
      get_filename_component(folder "${CMAKE_MATCH_1}" REALPATH)
      list(APPEND includes "${folder}")
    elseif(flag MATCHES "^-(D|fallow-)")
      list(APPEND compile "${flag}")
    elseif(flag MATCHES "^-(L|l|Wl,)")
      list(APPEND link "${flag}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES includes)
  set(${includes_out} "${includes}" PARENT_SCOPE)
  set(${compile_out} "${compile}" PARENT_SCOPE)
  set(${link_out} "${link}" PARENT_SCOPE)
endfunction()

# The host and version of the mpi.h under these include folders, with these compiler flags.
function(oriel_host_identify includes compile name_out version_out)
  list(TRANSFORM includes PREPEND "-I")
  file(WRITE "${CMAKE_BINARY_DIR}/CMakeFiles/oriel_identify.c" "#include <mpi.h>\n")
  execute_process(COMMAND "${CMAKE_C_COMPILER}" ${includes} ${compile} -E -dM
                          "${CMAKE_BINARY_DIR}/CMakeFiles/oriel_identify.c"
                  OUTPUT_VARIABLE macros ERROR_QUIET)
  set(name "")
  set(version "")
  if(macros MATCHES "#define MPICH_VERSION \"([^\"]+)\"")
    set(name mpich)
    set(version "${CMAKE_MATCH_1}")
  elseif(macros MATCHES "#define MPICH_NAME ") # a relative of MPICH that hides MPICH's version
    set(name mpich)
    set(version "unknown")
    if(macros MATCHES "#define [A-Z_]*MPI_VERSION \"([^\"]+)\"") # Intel's: I_MPI_VERSION
      set(version "${CMAKE_MATCH_1}")
    endif()
  elseif(macros MATCHES "#define OMPI_MAJOR_VERSION ([0-9]+)")
    set(name openmpi)
    set(version "${CMAKE_MATCH_1}")
    foreach(part MINOR RELEASE)
      if(macros MATCHES "#define OMPI_${part}_VERSION ([0-9]+)")
        string(APPEND version ".${CMAKE_MATCH_1}")
      endif()
    endforeach()
  elseif(macros MATCHES "#define MPI_ABI_VERSION ([0-9]+)")
    set(name abi)
    set(version "${CMAKE_MATCH_1}")
    if(macros MATCHES "#define MPI_ABI_SUBVERSION ([0-9]+)")
      string(APPEND version ".${CMAKE_MATCH_1}")
    endif()
  endif()
  set(${name_out} "${name}" PARENT_SCOPE)
  set(${version_out} "${version}" PARENT_SCOPE)
endfunction()

# Makes one interface target from a list of flags.
function(oriel_host_target target language flags)
  oriel_flags_sort("${flags}" includes compile link)
  add_library(${target} INTERFACE)
  if(language STREQUAL "Fortran")
    # Compilers do not search system include folders for module files.
    list(TRANSFORM includes PREPEND "-I")
    target_compile_options(${target} INTERFACE ${includes} ${compile})
  else()
    target_include_directories(${target} SYSTEM INTERFACE ${includes})
    target_compile_options(${target} INTERFACE ${compile})
  endif()
  target_link_libraries(${target} INTERFACE ${link})
endfunction()

# Adds one candidate by its C flags and their wrapper, which may be empty. The wrappers for other
# languages are in the same folder. A host that is already known is unchanged. Returns the host, or
# "" for none, and whether it was added.
function(oriel_host_add flags wrapper out added)
  oriel_flags_sort("${flags}" includes compile link)
  oriel_host_identify("${includes}" "${compile}" host version)
  set(${out} "${host}" PARENT_SCOPE)
  set(${added} FALSE PARENT_SCOPE)
  if(NOT host OR host IN_LIST ORIEL_HOSTS)
    return()
  endif()
  oriel_host_target(oriel_host_${host} C "${flags}")
  # for programs that link to an installation (packaging/orielConfig.cmake.in)
  set(ORIEL_HOST_${host}_INCLUDES "${includes}" PARENT_SCOPE)
  set(ORIEL_HOST_${host}_COMPILE "${compile}" PARENT_SCOPE)
  set(ORIEL_HOST_${host}_LINK "${link}" PARENT_SCOPE)
  set(languages C)
  foreach(pair CXX:mpicxx Fortran:mpifort)
    string(REPLACE ":" ";" pair "${pair}")
    list(GET pair 0 language)
    list(GET pair 1 name)
    string(REGEX REPLACE "mpicc([^/]*)$" "${name}\\1" program "${wrapper}")
    if(EXISTS "${program}" AND NOT program STREQUAL wrapper AND CMAKE_${language}_COMPILER)
      oriel_wrapper_flags("${program}" language_flags)
      if(language_flags)
        oriel_host_target(oriel_host_${host}_${language} ${language} "${language_flags}")
        list(APPEND languages ${language})
      endif()
    endif()
  endforeach()
  # The standard ABI is an interface of C. Without wrappers, its C++ programs have the same flags.
  if(host STREQUAL "abi" AND CMAKE_CXX_COMPILER AND NOT TARGET oriel_host_abi_CXX)
    oriel_host_target(oriel_host_abi_CXX CXX "${flags}")
    list(APPEND languages CXX)
  endif()
  list(JOIN languages ", " languages)
  message(STATUS "Host MPI: ${host} ${version} (${languages})")
  list(APPEND ORIEL_HOSTS ${host})
  set(ORIEL_HOSTS "${ORIEL_HOSTS}" PARENT_SCOPE)
  set(ORIEL_HOST_${host}_VERSION "${version}" PARENT_SCOPE)
  set(${added} TRUE PARENT_SCOPE)
endfunction()

set(oriel_names ${ORIEL_MPICC})
if(NOT oriel_names)
  set(oriel_names mpicc mpicc.mpich mpicc.openmpi mpicc_abi)
endif()
foreach(name IN LISTS oriel_names)
  find_program(oriel_wrapper NAMES "${name}" NO_CACHE)
  set(oriel_found "")
  if(oriel_wrapper)
    oriel_wrapper_flags("${oriel_wrapper}" oriel_flags)
    oriel_host_add("${oriel_flags}" "${oriel_wrapper}" oriel_found oriel_added)
  endif()
  if(ORIEL_MPICC AND NOT oriel_wrapper)
    message(FATAL_ERROR "ORIEL_MPICC: there is no program ${name}: give the wrapper's whole path")
  elseif(ORIEL_MPICC AND NOT oriel_found)
    message(FATAL_ERROR
      "ORIEL_MPICC: ${name} is for no MPI that Oriel knows: what it prints for -show or -showme "
      "does not lead to the mpi.h of MPICH, Open MPI or MPI's standard ABI")
  elseif(ORIEL_MPICC AND NOT oriel_added)
    message(FATAL_ERROR
      "ORIEL_MPICC: ${name} is for the same interface (${oriel_found}) as an earlier wrapper: a "
      "build has one MPI of each")
  endif()
  unset(oriel_wrapper)
endforeach()

find_program(oriel_pkg_config NAMES pkg-config pkgconf NO_CACHE)
if(oriel_pkg_config AND NOT ORIEL_MPICC)
  foreach(package mpich ompi-c)
    execute_process(COMMAND "${oriel_pkg_config}" --cflags --libs ${package} ERROR_QUIET
                    OUTPUT_VARIABLE oriel_flags OUTPUT_STRIP_TRAILING_WHITESPACE)
    separate_arguments(oriel_flags UNIX_COMMAND "${oriel_flags}")
    oriel_host_add("${oriel_flags}" "" oriel_found oriel_added)
  endforeach()
endif()

# The standard ABI where no mpicc_abi brings it: Open MPI's header is in a folder of its own,
# MPICH's behind a macro. Both libraries have the same name.
set(oriel_with_abi ${ORIEL_HOSTS})
if(ORIEL_MPICC)
  set(oriel_with_abi "") # only the wrappers that it names
endif()
foreach(host IN LISTS oriel_with_abi)
  oriel_flags_sort("${ORIEL_HOST_${host}_LINK}" unused unused folders)
  list(FILTER folders INCLUDE REGEX "^-L")
  list(TRANSFORM folders REPLACE "^-L" "")
  find_library(oriel_abi_library NAMES mpi_abi HINTS ${folders} NO_CACHE)
  if(oriel_abi_library)
    foreach(folder IN LISTS ORIEL_HOST_${host}_INCLUDES)
      get_filename_component(libraries "${oriel_abi_library}" DIRECTORY)
      oriel_host_add("-I${folder}/standard_abi;-L${libraries};-lmpi_abi" ""
                     oriel_found oriel_added)
      oriel_host_add("-I${folder};-DMPI_ABI;-L${libraries};-lmpi_abi" "" oriel_found oriel_added)
    endforeach()
  endif()
  unset(oriel_abi_library)
endforeach()
list(SORT ORIEL_HOSTS)
set(ORIEL_MPIS ${ORIEL_HOSTS})
list(REMOVE_ITEM ORIEL_MPIS abi)

if(ORIEL_HOSTS AND NOT ORIEL_MPIS)
  message(FATAL_ERROR
    "ORIEL_MPICC: only the standard ABI is named: name the wrapper of MPICH or Open MPI, too")
elseif(NOT ORIEL_MPIS)
  message(FATAL_ERROR
    "No MPI found: Oriel is built for MPICH and for Open MPI, and neither mpicc nor pkg-config "
    "leads to one of them.\nOn Debian: scripts/install-deps build, or "
    "scripts/install-deps build mpich for one of them. Elsewhere: -DORIEL_MPICC=/path/to/mpicc")
endif()
foreach(host mpich openmpi)
  if(NOT host IN_LIST ORIEL_HOSTS AND NOT ORIEL_MPICC)
    message(STATUS "No ${host}: Oriel is built without it; "
                   "scripts/install-deps build ${host} installs it")
  endif()
endforeach()
