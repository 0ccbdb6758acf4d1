# Compiler settings for all of Oriel's own code, and the languages that are available.
# Assertions stay on in every build type: no configuration defines NDEBUG.

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

include(CheckSymbolExists)
check_symbol_exists(__GLIBC__ features.h ORIEL_HAS_GLIBC)
if(NOT ORIEL_HAS_GLIBC)
  message(FATAL_ERROR "Oriel needs glibc, and ${CMAKE_C_COMPILER} compiles for another C library, "
                      "such as musl: the interposition of madvise and dlsym is glibc's")
endif()

# C++ serves the tests only, Fortran also Oriel's module (bindings/): both are optional.
set(without_CXX "its tests are left out")
set(without_Fortran "its tests and Oriel's Fortran module are left out")
include(CheckLanguage)
foreach(language CXX Fortran)
  if(NOT CMAKE_${language}_COMPILER)
    unset(CMAKE_${language}_COMPILER CACHE) # installed since the folder was configured?
  endif()
  check_language(${language})
  if(CMAKE_${language}_COMPILER)
    enable_language(${language})
  else()
    message(STATUS "No ${language} compiler: ${without_${language}}")
  endif()
endforeach()

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, RelWithDebInfo or Release" FORCE)
endif()
foreach(language C CXX Fortran)
  set(CMAKE_${language}_FLAGS_RELWITHDEBINFO "-O2 -g")
  set(CMAKE_${language}_FLAGS_RELEASE "-O2")
endforeach()
# valgrind 3.19 cannot read clang's DWARF 5.
add_compile_options($<$<COMPILE_LANG_AND_ID:C,Clang>:-gdwarf-4>
                    $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-gdwarf-4>)

# Newer hosts deprecate functions that have no replacement in older ones.
set(ORIEL_WARNINGS -Wall -Wextra -Wundef -Wshadow -Wno-deprecated-declarations)
# Later compilers have new warnings, which must not stop the build of a release.
if(EXISTS "${PROJECT_SOURCE_DIR}/.git")
  list(APPEND ORIEL_WARNINGS -Werror)
endif()

set(SANITIZE "" CACHE STRING "Sanitizers for everything that is built: address,undefined or thread")
if(SANITIZE)
  # Code that a sanitiser inserts causes warnings, so warnings are not errors here.
  list(REMOVE_ITEM ORIEL_WARNINGS -Werror)
  add_compile_options(-fsanitize=${SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SANITIZE})
  # The sources test gcc's macros; clang defines none of them.
  if(CMAKE_C_COMPILER_ID MATCHES "Clang" AND SANITIZE MATCHES "address|thread")
    string(TOUPPER "__SANITIZE_${CMAKE_MATCH_0}__" macro)
    add_compile_definitions(${macro}=1)
  endif()
endif()

option(COVERAGE "Count which lines are executed, for make coverage (gcc)" OFF)
if(COVERAGE)
  set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O1 -g")
  add_library(oriel_coverage OBJECT "${PROJECT_SOURCE_DIR}/tests/coverage/write_at_exit.c")
  target_compile_definitions(oriel_coverage PRIVATE _GNU_SOURCE)
  set_target_properties(oriel_coverage PROPERTIES POSITION_INDEPENDENT_CODE ON)
  # Applies to all targets that follow.
  add_compile_options($<$<COMPILE_LANGUAGE:C>:--coverage>
                      $<$<COMPILE_LANGUAGE:C>:-fprofile-update=atomic>)
  # Each library has its own functions that write its counters.
  add_link_options(--coverage -Wl,--exclude-libs,libgcov.a)
  link_libraries($<TARGET_OBJECTS:oriel_coverage>)
endif()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
