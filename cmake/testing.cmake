# SPDX-License-Identifier: BSL-1.0
# holdfast::testing: a Redis server in memory, for the tests of users and for ours. It runs scripts, and needs Lua 5.1.
if(NOT HOLDFAST_WITH_TESTING)
  return()
endif()
if(HOLDFAST_BUILD_TESTS)
  add_test(NAME "lua: a user's other one stays apart" COMMAND ${CMAKE_COMMAND} -DSCRATCH=${PROJECT_BINARY_DIR}/lua_target
    -DGENERATOR=${CMAKE_GENERATOR} -P ${PROJECT_SOURCE_DIR}/cmake/lua_target_test.cmake)
endif()
include(lua_target)
if(NOT TARGET holdfast::lua)
  message(STATUS "holdfast::testing is not built: Lua 5.1 was not found (liblua5.1-0-dev)")
  return()
endif()
file(GLOB testing_headers CONFIGURE_DEPENDS include/holdfast/testing/*.hpp)
file(GLOB_RECURSE testing_sources CONFIGURE_DEPENDS src/testing/*.cpp)

# Static, also beside a shared library: nothing but a test links it.
function(holdfast_testing_library target library)
  add_library(${target} STATIC ${testing_sources})
  if(NOT HOLDFAST_INSTALL)
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS include FILES ${testing_headers})
  target_include_directories(${target} PRIVATE src ${generated_dir}/private)
  target_link_libraries(${target} PUBLIC ${library} PRIVATE holdfast::lua)
  target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O2>)  # the simulator lives by it
  target_compile_definitions(${target} PRIVATE HOLDFAST_ASSERTIONS=$<BOOL:${HOLDFAST_ASSERTIONS}>)
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON)
  if(PROJECT_IS_TOP_LEVEL)
    holdfast_warnings(${target})
  endif()
endfunction()

holdfast_testing_library(holdfast_testing holdfast)
add_library(holdfast::testing ALIAS holdfast_testing)
set_target_properties(holdfast_testing PROPERTIES EXPORT_NAME testing VERIFY_INTERFACE_HEADER_SETS ${PROJECT_IS_TOP_LEVEL})
