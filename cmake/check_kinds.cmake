# SPDX-License-Identifier: BSL-1.0
# cmake [-DROOT=<tree>] -P check_kinds.cmake: each kind of lock is in each list of all kinds.
cmake_minimum_required(VERSION 3.25)

if(NOT ROOT)
  cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH ROOT)
endif()

set(lists
  tests/integration/every_kind.hpp  # the contract
  tests/sim/world.cpp)              # the simulator

file(READ ${ROOT}/src/protocol/kind.hpp text)
string(REGEX MATCHALL "extern const kind [a-z_]+" kinds "${text}")
if(NOT kinds)
  message(FATAL_ERROR "src/protocol/kind.hpp declares no kind")
endif()
set(missing 0)
foreach(kind IN LISTS kinds)
  string(REPLACE "extern const kind " "" kind "${kind}")
  foreach(list IN LISTS lists)
    file(READ ${ROOT}/${list} text)
    if(NOT text MATCHES "[^a-z_]${kind}[^a-z_]")
      message("${list}: ${kind} is not there")
      math(EXPR missing "${missing} + 1")
    endif()
  endforeach()
endforeach()
if(missing)
  message(FATAL_ERROR "${missing} kinds are missing")
endif()
