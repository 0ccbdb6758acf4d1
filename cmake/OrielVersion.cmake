# Reads the version from the public header, which alone defines it.
file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/../include/oriel/oriel.h" oriel_version_lines
     REGEX "^#define ORIEL_VERSION_(MAJOR|MINOR|PATCH) [0-9]+$")
list(TRANSFORM oriel_version_lines REPLACE "^.* " "")
list(JOIN oriel_version_lines "." ORIEL_VERSION)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
             "${CMAKE_CURRENT_LIST_DIR}/../include/oriel/oriel.h")
