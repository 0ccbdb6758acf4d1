# Runs first in an installation. It rejects a prefix that LD_PRELOAD, compiler options or lists cannot hold. It records which
# shared folders do not exist yet, so that `make uninstall` removes them again. The list grows until then, because several
# installations may precede it.
if(CMAKE_INSTALL_PREFIX MATCHES "[ \t\r\n:;,$'\"\\]")
  message(FATAL_ERROR "oriel: libraries in '${CMAKE_INSTALL_PREFIX}' cannot be preloaded or linked: choose a prefix without "
                      "blanks, colons, semicolons, commas, dollars, quotes and backslashes")
endif()
if(CMAKE_INSTALL_COMPONENT)
  return() # a package, not an installation
endif()
# CMake overwrites its list with each installation: one with fewer files, or elsewhere, must not hide
# the earlier ones from `make uninstall`.
if(EXISTS "${ORIEL_BUILD}/install_manifest.txt")
  file(READ "${ORIEL_BUILD}/install_manifest.txt" earlier)
  file(APPEND "${ORIEL_BUILD}/install_earlier.txt" "${earlier}\n")
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
        share/man/man1 share/man/man3 share/man/man5 share/man/man7 share/bash-completion share/bash-completion/completions
        share/zsh share/zsh/site-functions share/fish share/fish/vendor_completions.d)
  oriel_note("${oriel_place}/${folder}")
endforeach()
