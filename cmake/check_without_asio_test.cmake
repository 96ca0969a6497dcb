# SPDX-License-Identifier: BSL-1.0
# cmake -DSCRATCH=<folder> "-DCOMPILER=<c++>|<flag>..." "-DINCLUDES=<folder>|..." -P check_without_asio_test.cmake
# The check accepts a good tree, and names the file of a bad one, however deep Asio lies.
cmake_minimum_required(VERSION 3.25)
if(NOT SCRATCH)
  message(FATAL_ERROR "SCRATCH is not set")
endif()
set(checker ${CMAKE_CURRENT_LIST_DIR}/check_without_asio.cmake)

function(expect verdict compiler path line)
  file(REMOVE_RECURSE ${SCRATCH})
  file(WRITE ${SCRATCH}/src/base/executor.hpp "#pragma once\n#include <boost/asio/any_io_executor.hpp>\n")
  file(WRITE ${SCRATCH}/src/sync/line.hpp "#pragma once\n#include <string>\n")
  file(WRITE ${SCRATCH}/${path} "${line}\n")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -DROOT=${SCRATCH} "-DCOMPILER=${compiler}" "-DINCLUDES=src|${INCLUDES}" -P ${checker}
    RESULT_VARIABLE failed ERROR_VARIABLE output)
  file(REMOVE_RECURSE ${SCRATCH})
  if(verdict STREQUAL "good" AND failed)
    message(FATAL_ERROR "refused in ${path}: ${line}\n${output}")
  elseif(verdict STREQUAL "bad" AND NOT (failed AND output MATCHES "${path}"))
    message(FATAL_ERROR "not found in ${path}: ${line}\n${output}")
  endif()
endfunction()

expect(good "${COMPILER}" src/sync/claim/claim.cpp "#include \"sync/line.hpp\"")
expect(bad "${COMPILER}" src/sync/claim/claim.cpp "#include <boost/asio/post.hpp>")
expect(bad "${COMPILER}" src/sync/kinds/fair.hpp "#include \"base/executor.hpp\"")
expect(bad "${COMPILER}" src/sync/claim/claim.cpp "#ifdef HOLDFAST_ASSERTIONS\n#include \"base/executor.hpp\"\n#endif")
expect(bad "${COMPILER}" include/holdfast/lock_options.hpp "#include <boost/asio/awaitable.hpp>")
expect(bad true src/sync/claim/claim.cpp "int fine;")
