# Run last by an installation, and by `make deb`: says in one line that the HTML pages are not in it, which are left out where the
# build had nothing to make them of (web/CMakeLists.txt).
if(CMAKE_INSTALL_COMPONENT)
  return() # `make deb` says it for all of them
endif()
if(NOT EXISTS "${ORIEL_BUILD}/share/oriel/report.html")
  message(NOTICE "oriel: without the HTML pages of oriel report and oriel bench: scripts/install-deps brings what they are made of, "
                 "then build again")
endif()
