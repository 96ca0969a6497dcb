# SPDX-License-Identifier: BSL-1.0
# Run by CPack when packages are made. A TGZ is packed again, so that two builds make the same bytes: CPack keeps the
# order, the times and the owner of the files as it finds them.
cmake_minimum_required(VERSION 3.25)
if(NOT CPACK_GENERATOR STREQUAL "TGZ")
  return()
endif()
set(moment $ENV{SOURCE_DATE_EPOCH})
if(moment STREQUAL "")
  string(TIMESTAMP moment %s UTC)
endif()

foreach(archive IN LISTS CPACK_PACKAGE_FILES)
  set(folder ${archive}.files)
  file(REMOVE_RECURSE ${folder})
  file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${folder})
  execute_process(
    COMMAND tar --create --directory ${folder} --sort=name --mtime=@${moment} --owner=0 --group=0 --numeric-owner --format=gnu
            ${CPACK_PACKAGE_FILE_NAME}
    COMMAND gzip -9n OUTPUT_FILE ${archive} COMMAND_ERROR_IS_FATAL ANY)
  file(REMOVE_RECURSE ${folder})
endforeach()
