# SPDX-License-Identifier: BSL-1.0
# hiredis::hiredis for hiredis 0.14 (whose package config has no target) and 1.x (whose package config is preferred).
# Include as <hiredis/...>. Ask for no version: CMake hands it down, and the package config of 1.x refuses 0.14.
find_package(hiredis CONFIG QUIET)
if(TARGET hiredis::hiredis)
  set(hiredis_FOUND TRUE)
  return()
endif()

find_path(hiredis_INCLUDE_DIR hiredis/hiredis.h)
find_library(hiredis_LIBRARY hiredis)
mark_as_advanced(hiredis_INCLUDE_DIR hiredis_LIBRARY)
if(hiredis_INCLUDE_DIR)
  file(STRINGS ${hiredis_INCLUDE_DIR}/hiredis/hiredis.h version REGEX "^#define HIREDIS_(MAJOR|MINOR|PATCH) ")
  string(REGEX MATCHALL "[0-9]+" version "${version}")
  string(REPLACE ";" "." hiredis_VERSION "${version}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(hiredis REQUIRED_VARS hiredis_LIBRARY hiredis_INCLUDE_DIR VERSION_VAR hiredis_VERSION)
if(hiredis_FOUND)
  add_library(hiredis::hiredis UNKNOWN IMPORTED)
  set_target_properties(hiredis::hiredis PROPERTIES
    IMPORTED_LOCATION ${hiredis_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${hiredis_INCLUDE_DIR})
endif()
