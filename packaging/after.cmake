# Runs last in an installation and in `make deb`. It prints one line when the HTML pages are missing, because the build lacked
# their dependencies (web/CMakeLists.txt).
if(CMAKE_INSTALL_COMPONENT)
  return() # `make deb` prints it once for all
endif()
if(NOT EXISTS "${ORIEL_BUILD}/share/oriel/report.html")
  message(NOTICE "oriel: the HTML pages of oriel report and oriel bench are missing: run scripts/install-deps "
                 "pages, then build again")
endif()
