# SPDX-License-Identifier: BSL-1.0
# One consumer: KIND = static | shared, WAY = add_subdirectory | find_package | pkg-config | symbols. See
# CMakeLists.txt.
cmake_minimum_required(VERSION 3.25)
set(consumer ${CMAKE_CURRENT_LIST_DIR}/consumer)
set(prefix ${SCRATCH}/prefix)
set(build ${SCRATCH}/${WAY})

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# As one unity build, which is the quickest, and which some users make: no two sources may use one name for two things.
function(build_with_cmake)
  run(${CMAKE_COMMAND} -S ${consumer} -B ${build} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
      -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_UNITY_BUILD=ON
      -DCMAKE_UNITY_BUILD_BATCH_SIZE=0 ${ARGV})
  run(${CMAKE_COMMAND} --build ${build} --parallel 2)
endfunction()

# The test kit in one of the two, to save time: what the shared library hides is what the kit could miss.
set(testing OFF)
if(KIND STREQUAL "shared")
  set(testing ON)
endif()

if(WAY STREQUAL "add_subdirectory")
  set(kind -DBUILD_SHARED_LIBS=OFF)
  if(KIND STREQUAL "shared")
    set(kind -DBUILD_SHARED_LIBS=ON -DHOLDFAST_WITH_TLS=OFF -DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON)
  endif()
  build_with_cmake(${kind} -DHOLDFAST_SOURCE_DIR=${SOURCE} -DHOLDFAST_INSTALL=ON
    -DHOLDFAST_WITH_TESTING=${testing} -DWITH_TESTING=${testing})
  file(REMOVE_RECURSE ${prefix})
  run(${CMAKE_COMMAND} --install ${build} --prefix ${prefix})
  set(docs share/doc/holdfast)
  foreach(file share/holdfast/fencing/fenced_task.lua share/holdfast/fencing/fence.sql share/holdfast/fencing/fence_mariadb.sql
               share/holdfast/fencing/fenced_transaction.hpp ${docs}/LICENSE ${docs}/README.md
               ${docs}/docs/quickstart.md ${docs}/docs/guide/operating.md ${docs}/docs/examples/1_tutorial/1_hello_lock.cpp
               ${docs}/docs/examples/3_fencing/fenced_store.hpp)
    if(NOT EXISTS ${prefix}/${file})
      message(FATAL_ERROR "not installed: ${file}")
    endif()
  endforeach()
  foreach(file ${docs}/docs/demo ${docs}/docs/examples/CMakeLists.txt)
    if(EXISTS ${prefix}/${file})
      message(FATAL_ERROR "installed, and of no use there: ${file}")
    endif()
  endforeach()
elseif(WAY STREQUAL "find_package")
  build_with_cmake(-DCMAKE_PREFIX_PATH=${prefix} -DWITH_TESTING=${testing})
  if(NOT testing)
    execute_process(COMMAND ${CMAKE_COMMAND} -S ${consumer} -B ${build}_testing -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
      -DCMAKE_PREFIX_PATH=${prefix} -DWITH_TESTING=ON RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE said)
    string(REGEX REPLACE "[ \n]+" " " said "${said}")
    if(NOT failed OR NOT said MATCHES "this holdfast was built without holdfast::testing")
      message(FATAL_ERROR "a component that is missing: ${said}")
    endif()
  endif()
elseif(WAY STREQUAL "pkg-config")
  if(NOT PKG_CONFIG)
    message("skipped: no pkg-config")
    return()
  endif()
  set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBDIR}/pkgconfig)
  execute_process(COMMAND ${PKG_CONFIG} --cflags --libs holdfast
                  OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(flags MATCHES "-I[^ ]*hiredis")
    message(FATAL_ERROR "pkg-config leaks the include folder of hiredis: ${flags}")
  endif()
  separate_arguments(flags UNIX_COMMAND "${flags}")
  file(MAKE_DIRECTORY ${build})
  run(${COMPILER} -std=c++20 ${consumer}/main.cpp ${flags} -o ${build}/consumer)
  set(ENV{LD_LIBRARY_PATH} ${prefix}/${LIBDIR})
elseif(WAY STREQUAL "symbols")
  # Weak symbols (Asio's services, vtables) are shared on purpose; a strong one outside of our namespace is a leak.
  execute_process(COMMAND ${NM} -D --defined-only ${prefix}/${LIBDIR}/libholdfast.so
                  OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL " T [^\n]+" strong "${symbols}")
  set(foreign ${strong})
  list(FILTER foreign EXCLUDE REGEX " T _Z(T[hv][n0-9_]+)?N[VKRO]*8holdfast")
  if(foreign OR NOT strong)
    message(FATAL_ERROR "not in namespace holdfast: ${foreign}")
  endif()
  return()
endif()

if(testing AND NOT WAY STREQUAL "pkg-config")
  run(${build}/consumer_test)
endif()

set(url nonsense://localhost)
set(complaint "holdfast::error: ")
if(KIND STREQUAL "shared")
  set(url rediss://localhost)
  set(complaint "holdfast::error: .*built without TLS")
endif()
execute_process(COMMAND ${build}/consumer ${url} RESULT_VARIABLE result OUTPUT_VARIABLE output)
if(NOT result EQUAL 3 OR NOT output MATCHES "${complaint}")
  message(FATAL_ERROR "the consumer ended with ${result}: ${output}")
endif()
