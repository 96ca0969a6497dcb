# SPDX-License-Identifier: BSL-1.0
# cmake -DSCRATCH=<folder> -P check_kinds_test.cmake: a kind that the tests do not know is found.
cmake_minimum_required(VERSION 3.25)
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH root)

function(expect result)
  execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${SCRATCH} -P ${root}/cmake/check_kinds.cmake
    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if((result STREQUAL good AND failed) OR (result STREQUAL bad AND NOT failed))
    message(FATAL_ERROR "expected ${result}: ${ARGN}")
  endif()
endfunction()

foreach(file src/protocol/kind.hpp tests/integration/every_kind.hpp tests/sim/world.cpp)
  file(READ ${root}/${file} text)
  file(WRITE ${SCRATCH}/${file} "${text}")
endforeach()
expect(good the tree as it is)
file(APPEND ${SCRATCH}/src/protocol/kind.hpp "extern const kind odd_lock;\n")
expect(bad a kind that nobody tests)
file(APPEND ${SCRATCH}/tests/integration/every_kind.hpp "// odd_lock\n")
expect(bad a kind that the simulator does not know)
file(APPEND ${SCRATCH}/tests/sim/world.cpp "// odd_lock\n")
expect(good a kind that all know)
file(WRITE ${SCRATCH}/src/protocol/kind.hpp "")
expect(bad no kind at all)
