# SPDX-License-Identifier: BSL-1.0
# Run by CPack when the files of a package stand in their folder: adds what Debian wants in each DEB.
cmake_minimum_required(VERSION 3.25)
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()

foreach(component package IN ZIP_LISTS CPACK_COMPONENTS_ALL CPACK_HOLDFAST_PACKAGES)
  set(docs ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr/share/doc)
  file(REMOVE ${docs}/holdfast/LICENSE)  # the file copyright has it
  file(COPY ${CPACK_HOLDFAST_DEBIAN_FILES}/copyright DESTINATION ${docs}/${package})
  execute_process(COMMAND gzip -9nc ${CPACK_HOLDFAST_DEBIAN_FILES}/changelog
    OUTPUT_FILE ${docs}/${package}/changelog.Debian.gz COMMAND_ERROR_IS_FATAL ANY)
  file(CHMOD ${docs}/${package}/changelog.Debian.gz PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endforeach()
file(GLOB manuals ${CPACK_TEMPORARY_DIRECTORY}/cli/usr/share/man/man1/*.1)
execute_process(COMMAND gzip -9n ${manuals} COMMAND_ERROR_IS_FATAL ANY)
