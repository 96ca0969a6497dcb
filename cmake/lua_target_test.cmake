# SPDX-License-Identifier: BSL-1.0
# cmake -DSCRATCH=<folder> -DGENERATOR=<CMake's> -P lua_target_test.cmake: holdfast::lua is Lua 5.1 beside a user's Lua
# 5.4, whichever of the two is looked for first; and the headers of Lua 5.4 are not taken for its own.
cmake_minimum_required(VERSION 3.25)
if(NOT SCRATCH)
  message(FATAL_ERROR "SCRATCH is not set")
endif()
file(REMOVE_RECURSE ${SCRATCH})
set(users "find_package(Lua 5.4 REQUIRED)")
set(ours "include(${CMAKE_CURRENT_LIST_DIR}/lua_target.cmake)")

# Nothing is compiled, so a header with its version and an empty library are enough.
function(install_lua version number include lib)
  string(REPLACE "." ";" parts ${version})
  list(GET parts 0 major)
  list(GET parts 1 minor)
  file(WRITE ${SCRATCH}/${include}/lua.h "#define LUA_VERSION_MAJOR \"${major}\"\n#define LUA_VERSION_MINOR \"${minor}\"\n"
    "#define LUA_VERSION_RELEASE \"0\"\n#define LUA_VERSION \"Lua ${version}\"\n#define LUA_VERSION_NUM\t${number}\n")
  file(WRITE ${SCRATCH}/${lib} "")
endfunction()

# A project of these lines, which sees the folder `prefix` and nothing of the system.
function(configure prefix)
  list(JOIN ARGN "\n" lines)
  file(REMOVE_RECURSE ${SCRATCH}/build)
  file(WRITE ${SCRATCH}/project/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)\nproject(user LANGUAGES NONE)\n"
    "set(CMAKE_FIND_USE_CMAKE_SYSTEM_PATH OFF)\nset(CMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH OFF)\n"
    "set(CMAKE_FIND_LIBRARY_PREFIXES lib)\nset(CMAKE_FIND_LIBRARY_SUFFIXES .so)\n${lines}\n")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${SCRATCH}/project -B ${SCRATCH}/build -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${SCRATCH}/${prefix}
    RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(failed)
    message(FATAL_ERROR "${lines}\n${said}")
  endif()
endfunction()

set(check_ours [[
get_target_property(include holdfast::lua INTERFACE_INCLUDE_DIRECTORIES)
get_target_property(libraries holdfast::lua INTERFACE_LINK_LIBRARIES)
if(NOT include MATCHES "/both/include/lua5.1$" OR NOT libraries MATCHES "/both/lib/liblua5.1.so")
  message(FATAL_ERROR "holdfast::lua: ${include} ${libraries}")
endif()]])
set(check_users [[
if(NOT LUA_INCLUDE_DIR MATCHES "/both/include/lua5.4$" OR NOT LUA_LIBRARY MATCHES "/both/lib/liblua5.4.so$")
  message(FATAL_ERROR "the user's: ${LUA_INCLUDE_DIR} ${LUA_LIBRARY}")
endif()]])

install_lua(5.1 501 both/include/lua5.1 both/lib/liblua5.1.so)
install_lua(5.4 504 both/include/lua5.4 both/lib/liblua5.4.so)
file(WRITE ${SCRATCH}/both/lib/libm.so "")  # which find_package(Lua) looks for, too
configure(both ${users} ${ours} ${check_users} ${check_ours})
configure(both ${ours} ${users} ${check_users} ${check_ours})

# The library of the one with the header of the other.
install_lua(5.4 504 other/include other/lib/liblua5.1.so)
configure(other ${ours} [[
if(TARGET holdfast::lua)
  message(FATAL_ERROR "the headers of Lua 5.4 are taken for those of 5.1")
endif()]])
file(REMOVE_RECURSE ${SCRATCH})
