# SPDX-License-Identifier: BSL-1.0
# holdfast::lua, where Lua 5.1 is found: the one that Redis has inside. Part of the installed package, too.
find_package(Lua 5.1 EXACT QUIET)
if(LUA_FOUND AND NOT TARGET holdfast::lua)
  add_library(holdfast::lua INTERFACE IMPORTED GLOBAL)
  target_include_directories(holdfast::lua SYSTEM INTERFACE ${LUA_INCLUDE_DIR})
  target_link_libraries(holdfast::lua INTERFACE ${LUA_LIBRARIES})
endif()
