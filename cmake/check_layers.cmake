# SPDX-License-Identifier: BSL-1.0
# cmake [-DROOT=<tree>] -P check_layers.cmake: an include may point down only, and what must be passed in is never
# fetched.
cmake_minimum_required(VERSION 3.25)

# Every room of src with its rank. A file may include its own room, and rooms of a lower rank. The room of a file is the
# longest of these that its path begins with.
set(rank_base 0)
set(rank_redis 100)
set(rank_topology 200)
set(rank_topology/replicas 210)
set(rank_topology/standalone 220)
set(rank_topology/cluster 220)
set(rank_topology/sentinel 220)
set(rank_protocol 300)
set(rank_protocol/vote 310)
set(rank_protocol/note 310)
set(rank_protocol/hash 320)
set(rank_protocol/simple 320)
set(rank_protocol/shared 320)
set(rank_protocol/latch 320)
set(rank_protocol/election 320)
set(rank_protocol/fair 320)
set(rank_sync/claim 400)
set(rank_sync/command 410)
set(rank_sync/note 415)
set(rank_sync/vote 420)
set(rank_sync/release 420)
set(rank_sync/renewal 420)
set(rank_sync/hold 430)
set(rank_sync/inquiry 440)
set(rank_sync/line 440)
set(rank_sync/lookout 445)
set(rank_sync/several 450)
set(rank_sync/worker 450)
set(rank_sync 460)    # engine, registry, name: they put the rooms together
set(rank_config 500)  # what a user may set: read and checked
set(rank_face 500)    # the public headers besides those below
set(rank_metrics 510) # of the public headers, and nothing else
set(rank_otel 520)
set(rank_api 600)
set(rank_top 550)
set(rank_blocking 700)    # src/blocking and its headers, which stand on the public face alone
set(rank_testing/sim 800) # a Redis in memory, for tests
set(rank_testing 810)     # and what users have of it
set(rank_cli/server 900)  # the command line's own view of servers
set(rank_cli 910)
set(rank_cli/web 920)    # the page of `holdfast serve`
set(leaf_headers error observer export version config owner_id lease_state lock_holder lock_options worker_state)  # of no layer
set(top_headers client holdfast)

# The only Boost in public headers: everything else would be paid by each file of every user.
set(public_boost "boost/asio/(awaitable|any_io_executor)\\.hpp|boost/system/.*")

# Clock, timers, transport and randomness come from outside, or the simulator could not replace them.
set(fetched "(clock::now|clock_gettime|gettimeofday|random_device|getrandom|getentropy|socket|boost/asio/(ip|local|ssl|io_context|.*timer)|steady_timer|system_timer|waitable_timer|timerfd)")
set(fetching_allowed src/api/client.cpp src/otel/otel_spans.cpp)  # the one passes them in, the other is told durations

# Set by people and by NTP: nothing may depend on it.
set(wall_clock "(chrono::system_clock|CLOCK_REALTIME|gettimeofday|std::time\\()")
set(wall_clock_allowed src/otel/otel_spans.cpp src/cli/doctor.cpp)  # a span has its time of day; clocks are compared

if(NOT ROOT)
  cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH ROOT)
endif()
set(violations 0)

macro(violation why)
  message("${file}:${number}: ${why}\n    ${line}")
  math(EXPR violations "${violations} + 1")
endmacro()

# The room and the rank of a file as it is included: "sync/line/handoff_window.hpp", <holdfast/mutex.hpp>.
function(place_of include room rank)
  if(include MATCHES "^holdfast/(.*)\\.hpp$")
    set(header ${CMAKE_MATCH_1})
    set(found face)
    if(header IN_LIST leaf_headers)
      set(found base)
    elseif(header IN_LIST top_headers)
      set(found top)
    elseif(header MATCHES "^(testing|blocking)(/|$)")
      set(found ${CMAKE_MATCH_1})
    endif()
  elseif(include STREQUAL "lua_scripts.hpp")
    set(found protocol)
  else()
    cmake_path(GET include PARENT_PATH found)
    while(found AND NOT DEFINED rank_${found})
      cmake_path(GET found PARENT_PATH found)
    endwhile()
  endif()
  set(${room} "${found}" PARENT_SCOPE)
  set(${rank} "${rank_${found}}" PARENT_SCOPE)
endfunction()

file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/include/*.hpp ${ROOT}/src/*.hpp ${ROOT}/src/*.cpp)
foreach(file IN LISTS files)
  set(number 1)
  set(line "")
  set(public FALSE)
  if(file MATCHES "^include/(holdfast/.*)")
    set(public TRUE)
    place_of(${CMAKE_MATCH_1} own_room own_rank)
  else()
    string(REGEX REPLACE "^src/(otel/include/)?" "" path ${file})
    place_of(${path} own_room own_rank)
  endif()
  if(NOT own_room)
    violation("is in no room")
    continue()
  endif()

  file(READ ${ROOT}/${file} text)
  string(REGEX REPLACE "[][\\;]" "_" text "${text}")  # what would disturb a CMake list
  string(REPLACE "\n" ";" lines "${text}")
  set(number 0)
  foreach(line IN LISTS lines)
    math(EXPR number "${number} + 1")
    string(REGEX REPLACE "//.*" "" code "${line}")
    if(code MATCHES "^ *# *include *([<\"])([^>\"]+)")
      set(bracket "${CMAKE_MATCH_1}")
      set(include "${CMAKE_MATCH_2}")
      place_of(${include} room rank)
      set(ours FALSE)
      if(bracket STREQUAL "\"" OR include MATCHES "^holdfast/")
        set(ours TRUE)
      endif()
      if(ours AND NOT room)
        violation("includes a file of no room")
      elseif(ours AND NOT room STREQUAL own_room AND NOT rank LESS own_rank)
        violation("includes a room that is not below its own: ${room}")
      elseif(file MATCHES "^src/(metrics|otel)/" AND bracket STREQUAL "\"" AND NOT include MATCHES "^metrics/")
        violation("metrics are an observer like any other: of the public headers alone")
      elseif(file MATCHES "^src/blocking/" AND bracket STREQUAL "\"" AND NOT include MATCHES "^(blocking|base)/")
        violation("src/blocking stands on the public face, and on base")
      elseif(file MATCHES "^src/cli/(web/)?[^/]*$" AND bracket STREQUAL "\"" AND NOT include MATCHES "^(cli|config|base)/")
        violation("src/cli and src/cli/web stand on the public face, config and base; src/cli/server looks into servers")
      elseif(public AND bracket STREQUAL "\"")
        violation("a public header includes a private one")
      elseif(public AND NOT ours AND NOT include MATCHES "^([a-z_]+|${public_boost})$")
        violation("a public header may include only std, holdfast, asio/{awaitable,any_io_executor} and boost/system")
      elseif(include MATCHES "hiredis" AND NOT file MATCHES "^src/redis/resp\\.")
        violation("hiredis belongs to src/redis/resp only")
      elseif(include MATCHES "^(lua|lualib|lauxlib)\\.h$" AND NOT file STREQUAL "src/testing/sim/script_host.cpp")
        violation("Lua belongs to src/testing/sim/script_host.cpp only")
      elseif(include MATCHES "openssl|asio/ssl" AND NOT file STREQUAL "src/redis/tls.cpp")
        violation("OpenSSL belongs to src/redis/tls.cpp only")
      endif()
    endif()
    if(file MATCHES "^src/(api|metrics|otel|sync|protocol)/" AND code MATCHES "${fetched}" AND NOT file IN_LIST fetching_allowed)
      violation("clock, timers, transport and randomness are passed in here, never fetched")
    endif()
    if(code MATCHES "${wall_clock}" AND NOT file IN_LIST wall_clock_allowed)
      violation("the wall clock is nobody's business here")
    endif()
  endforeach()
endforeach()

if(violations)
  message(FATAL_ERROR "${violations} violations of the layers")
elseif(NOT files)
  message(FATAL_ERROR "${ROOT}: nothing to check")
endif()
