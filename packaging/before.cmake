# Run first by an installation: refuses a prefix that `oriel run` could not serve from, that no option of a compiler could name or
# that a list would part, and notes which of the folders that others share do not exist yet, so that `make uninstall` takes them
# away again. The list grows until then, as several installations may come before.
if(CMAKE_INSTALL_PREFIX MATCHES "[ \t\r\n:;,$'\"\\]")
  message(FATAL_ERROR "oriel: nothing can be preloaded from '${CMAKE_INSTALL_PREFIX}', or linked there: choose a prefix without "
                      "blanks, colons, semicolons, commas, dollars, quotes and backslashes")
endif()
if(CMAKE_INSTALL_COMPONENT)
  return() # for a package, not for the machine
endif()
function(oriel_note folder)
  if(NOT EXISTS "${folder}")
    file(APPEND "${ORIEL_BUILD}/install_folders.txt" "${folder}\n")
  endif()
endfunction()
set(oriel_place "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
set(above "${oriel_place}")
while(NOT above MATCHES "^/?$")
  oriel_note("${above}")
  string(REGEX REPLACE "/[^/]*$" "" above "${above}")
endwhile()
foreach(folder bin include lib lib/cmake lib/pkgconfig share share/doc share/man share/modulefiles
        share/man/man1 share/man/man3 share/man/man5 share/man/man7)
  oriel_note("${oriel_place}/${folder}")
endforeach()
