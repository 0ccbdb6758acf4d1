# Debian packages by CPack: oriel, and oriel-mpich, oriel-openmpi and oriel-abi for the hosts found.
# dpkg-shlibdeps determines the dependencies on linked libraries. Programs and libraries used at run time are recommended.
# Set DEBEMAIL to the maintainer's address, as for Debian's other tools; the project itself has none.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME oriel)
set(CPACK_PACKAGE_VENDOR "The Oriel developers")
set(CPACK_PACKAGE_VERSION "${ORIEL_VERSION}")
set(CPACK_PACKAGE_CONTACT "The Oriel developers <developers@oriel.invalid>")
if(DEFINED ENV{DEBEMAIL})
  set(CPACK_PACKAGE_CONTACT "$ENV{DEBEMAIL}")
endif()
set(CPACK_PACKAGE_DIRECTORY "${CMAKE_BINARY_DIR}/packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS "${CMAKE_CURRENT_LIST_DIR}/debian-files.cmake")

set(CPACK_COMPONENTS_ALL oriel ${ORIEL_HOSTS})
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)

set(CPACK_DEBIAN_ORIEL_PACKAGE_NAME oriel)
list(TRANSFORM ORIEL_HOSTS PREPEND "oriel-" OUTPUT_VARIABLE host_packages)
string(REGEX REPLACE ";([^;]+)$" " and \\1" libraries "${host_packages}")
string(REPLACE ";" ", " libraries "${libraries}")
list(JOIN host_packages " | " host_packages)
set(CPACK_DEBIAN_ORIEL_PACKAGE_RECOMMENDS "${host_packages}, python3")
set(CPACK_COMPONENT_ORIEL_DESCRIPTION "One-sided communication for unmodified MPI programs
The oriel command, headers and manual. The libraries in ${libraries}
serve the windows of MPI programs, in front of the installed MPI.")

set(launcher_mpich mpich)
set(launcher_openmpi openmpi-bin)
set(launcher_abi "mpich | openmpi-bin")
foreach(host IN LISTS ORIEL_HOSTS)
  string(TOUPPER "${host}" component)
  set(CPACK_DEBIAN_${component}_PACKAGE_NAME oriel-${host})
  set(CPACK_DEBIAN_${component}_PACKAGE_SECTION libs)
  set(CPACK_DEBIAN_${component}_PACKAGE_DEPENDS "oriel (= ${ORIEL_VERSION})")
  set(CPACK_DEBIAN_${component}_PACKAGE_RECOMMENDS "${launcher_${host}}, libucx0")
  set(CPACK_COMPONENT_${component}_DESCRIPTION "One-sided communication in front of ${ORIEL_HOST_${host}_TITLE}
The libraries that serve and check the windows of ${ORIEL_HOST_${host}_TITLE} programs,
and the benchmark's program.")
endforeach()

include(CPack)
