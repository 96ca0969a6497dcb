# SPDX-License-Identifier: BSL-1.0
# holdfast::lua, where Lua 5.1 is found: the one that Redis has inside. Part of the installed package, too. Not by
# find_package(Lua): its cache entries have room for one Lua, and that one is the user's.
function(holdfast_is_lua_5_1 result folder)
  set(version)
  if(EXISTS ${folder}/lua.h)
    file(STRINGS ${folder}/lua.h version REGEX "^#define[ \t]+LUA_VERSION_NUM[ \t]+501")
  endif()
  if(NOT version)
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

if(NOT TARGET holdfast::lua)
  find_path(HOLDFAST_LUA_INCLUDE_DIR lua.h PATH_SUFFIXES lua5.1 lua51 lua-5.1 VALIDATOR holdfast_is_lua_5_1)
  find_library(HOLDFAST_LUA_LIBRARY NAMES lua5.1 lua-5.1 lua51)
  mark_as_advanced(HOLDFAST_LUA_INCLUDE_DIR HOLDFAST_LUA_LIBRARY)
  if(HOLDFAST_LUA_INCLUDE_DIR AND HOLDFAST_LUA_LIBRARY)
    add_library(holdfast::lua INTERFACE IMPORTED GLOBAL)
    target_include_directories(holdfast::lua SYSTEM INTERFACE ${HOLDFAST_LUA_INCLUDE_DIR})
    target_link_libraries(holdfast::lua INTERFACE ${HOLDFAST_LUA_LIBRARY} ${CMAKE_DL_LIBS})  # a static one needs it
  endif()
endif()
