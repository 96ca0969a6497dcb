# SPDX-License-Identifier: BSL-1.0
# cmake -DCOMPILER=<c++> "-DINCLUDES=<folder>|..." -P check_without_asio.cmake: no file of src/sync includes Boost.Asio, directly or
# through another header. The compiler itself lists what a file depends on.
cmake_minimum_required(VERSION 3.25)
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH ROOT)
string(REPLACE "|" ";" INCLUDES "${INCLUDES}")
list(TRANSFORM INCLUDES PREPEND -I)
file(GLOB files ${ROOT}/src/sync/*.hpp ${ROOT}/src/sync/*.cpp)
set(violations 0)
foreach(file IN LISTS files)
  execute_process(COMMAND ${COMPILER} -std=c++20 -M ${INCLUDES} -x c++ ${file}
    OUTPUT_VARIABLE dependencies COMMAND_ERROR_IS_FATAL ANY)
  if(dependencies MATCHES "[^ \n]*boost/asio[^ \n]*")
    message("${file}: ${CMAKE_MATCH_0}")
    math(EXPR violations "${violations} + 1")
  endif()
endforeach()
if(violations)
  message(FATAL_ERROR "${violations} files of src/sync include Boost.Asio")
elseif(NOT files)
  message(FATAL_ERROR "${ROOT}/src/sync: nothing to check")
endif()
