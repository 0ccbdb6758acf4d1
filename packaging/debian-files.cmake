# Debian's additional requirements for a package: the licence under its Debian name, a changelog, a compressed manual, and
# permissions that do not depend on the umask.
# CPack runs this after it has copied the components, before it packs them. gzip omits time stamps.

file(GLOB components LIST_DIRECTORIES TRUE "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*")
foreach(component IN LISTS components)
  get_filename_component(name "${component}" NAME)
  string(TOUPPER "${name}" key)
  set(package "${CPACK_DEBIAN_${key}_PACKAGE_NAME}")
  set(folder "${component}/usr/share/doc/${package}")
  file(MAKE_DIRECTORY "${folder}")
  file(COPY_FILE "${CMAKE_CURRENT_LIST_DIR}/../LICENSE" "${folder}/copyright")
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # time of the build, or SOURCE_DATE_EPOCH
  file(WRITE "${folder}/changelog.gz.in"
       "${package} (${CPACK_PACKAGE_VERSION}) unstable; urgency=low\n\n  * Packaged by Oriel's own build.\n\n"
       " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  execute_process(COMMAND gzip -9nc "${folder}/changelog.gz.in" OUTPUT_FILE "${folder}/changelog.gz" COMMAND_ERROR_IS_FATAL ANY)
  file(REMOVE "${folder}/changelog.gz.in" "${folder}/LICENSE")
  if(EXISTS "${folder}/README.md")
    file(READ "${folder}/README.md" readme)
    string(REPLACE "](LICENSE)" "](copyright)" readme "${readme}")
    file(WRITE "${folder}/README.md" "${readme}")
  endif()
  if(EXISTS "${component}/usr/share/zsh/site-functions") # Debian's zsh searches another folder
    file(RENAME "${component}/usr/share/zsh/site-functions" "${component}/usr/share/zsh/vendor-completions")
  endif()
  file(CHMOD "${folder}/copyright" "${folder}/changelog.gz" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  file(CHMOD_RECURSE "${component}" DIRECTORY_PERMISSIONS
       OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  file(GLOB pages "${component}/usr/share/man/man*/*.[1-9]")
  if(pages)
    execute_process(COMMAND gzip -9n ${pages} COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()
