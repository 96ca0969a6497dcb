# SPDX-License-Identifier: BSL-1.0
# Warnings are asked for in every top-level build. They are errors in our presets only: another compiler finds other
# ones. Also where there is no OpenSSL. SOURCE, SCRATCH, GENERATOR, COMPILER: see CMakeLists.txt.
cmake_minimum_required(VERSION 3.25)
unset(ENV{CXXFLAGS})

function(check_flags build wanted)
  execute_process(COMMAND ${CMAKE_COMMAND} -B ${build} -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_EXPORT_COMPILE_COMMANDS=ON ${ARGN}
                  WORKING_DIRECTORY ${SOURCE} COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE said)
  set(said "${said}" PARENT_SCOPE)
  file(READ ${build}/compile_commands.json commands)
  if(NOT commands MATCHES " -Wall ")
    message(FATAL_ERROR "${build} asks for no warnings")
  endif()
  if(commands MATCHES " -Werror")
    set(found errors)
  else()
    set(found warnings)
  endif()
  if(NOT found STREQUAL wanted)
    message(FATAL_ERROR "${build} makes ${found} of warnings, not ${wanted}")
  endif()
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
check_flags(${SCRATCH}/user warnings -G ${GENERATOR})
check_flags(${SCRATCH}/no_openssl warnings -G ${GENERATOR}
            -DHOLDFAST_WITH_TLS=OFF -DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON -DHOLDFAST_LUA_LIBRARY=OFF)
if(NOT said MATCHES "holdfast::testing is not built: Lua 5.1 was not found")
  message(FATAL_ERROR "nothing is said of the test kit: ${said}")
endif()
check_flags(${SCRATCH}/demo warnings --preset demo)
check_flags(${SCRATCH}/ours errors --preset test -DHOLDFAST_BUILD_TESTS=OFF)
