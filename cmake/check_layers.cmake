# SPDX-License-Identifier: BSL-1.0
# cmake [-DROOT=<tree>] -P check_layers.cmake: an include may point down only, and what must be passed in is never
# fetched.
cmake_minimum_required(VERSION 3.25)

# What every layer may include: its own rank and below.
set(rank_base 0)
set(rank_redis 1)
set(rank_topology 2)
set(rank_protocol 3)
set(rank_sync 4)
set(rank_face 5)  # the public headers besides those below
set(rank_metrics 5)  # of the public headers, and nothing else
set(rank_otel 5)
set(rank_config 6)  # what a user may set: read and checked
set(rank_api 6)
set(rank_top 6)
set(rank_blocking 7)  # src/blocking and its headers, which stand on the public face alone
set(rank_testing 8)   # a Redis in memory, for tests
set(leaf_headers error observer export version config owner_id lease_state lock_holder lock_options)  # of no layer
set(top_headers client holdfast)

# The only Boost in public headers: everything else would be paid by each file of every user.
set(public_boost "boost/asio/(awaitable|any_io_executor)\\.hpp|boost/system/.*")

# Clock, timers, transport and randomness come from outside, or the simulator could not replace them.
set(fetched "(clock::now|clock_gettime|gettimeofday|random_device|getrandom|getentropy|socket|boost/asio/(ip|local|ssl|io_context|.*timer)|steady_timer|system_timer|waitable_timer|timerfd)")
set(fetching_allowed src/api/client.cpp src/otel/otel_spans.cpp)  # the one passes them in, the other is told durations

# Set by people and by NTP: nothing may depend on it.
set(wall_clock "(chrono::system_clock|CLOCK_REALTIME|gettimeofday|std::time\\()")

if(NOT ROOT)
  cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH ROOT)
endif()
set(violations 0)

macro(violation why)
  message("${file}:${number}: ${why}\n    ${line}")
  math(EXPR violations "${violations} + 1")
endmacro()

# The rank of what is included: "sync/acquire.hpp", "settings.hpp", <holdfast/mutex.hpp>.
function(rank_of include result)
  if(include MATCHES "^holdfast/(.*)\\.hpp$")
    set(header ${CMAKE_MATCH_1})
    if(header IN_LIST leaf_headers)
      set(rank ${rank_base})
    elseif(header IN_LIST top_headers)
      set(rank ${rank_top})
    elseif(header MATCHES "^testing/")
      set(rank ${rank_testing})
    elseif(header MATCHES "^blocking(/|$)")
      set(rank ${rank_blocking})
    else()
      set(rank ${rank_face})
    endif()
  elseif(include STREQUAL "lua_scripts.hpp")
    set(rank ${rank_protocol})
  else()
    string(REGEX REPLACE "/.*" "" layer ${include})
    set(rank ${rank_top})
    if(DEFINED rank_${layer})
      set(rank ${rank_${layer}})
    endif()
  endif()
  set(${result} ${rank} PARENT_SCOPE)
endfunction()

file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/include/*.hpp ${ROOT}/src/*.hpp ${ROOT}/src/*.cpp)
foreach(file IN LISTS files)
  set(public FALSE)
  if(file MATCHES "^include/(holdfast/.*)")
    set(public TRUE)
    rank_of(${CMAKE_MATCH_1} own_rank)
  else()
    string(REGEX REPLACE "^src/" "" path ${file})
    rank_of(${path} own_rank)
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
      rank_of(${include} rank)
      set(ours FALSE)
      if(bracket STREQUAL "\"" OR include MATCHES "^holdfast/")
        set(ours TRUE)
      endif()
      if(ours AND rank GREATER own_rank)
        violation("includes a higher layer")
      elseif(file MATCHES "^src/(metrics|otel)/" AND bracket STREQUAL "\"" AND NOT include MATCHES "^metrics/")
        violation("metrics are an observer like any other: of the public headers alone")
      elseif(file MATCHES "^src/blocking/" AND bracket STREQUAL "\"" AND NOT include MATCHES "^(blocking|base)/")
        violation("src/blocking stands on the public face, and on base")
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
    if(code MATCHES "${wall_clock}" AND NOT file STREQUAL "src/otel/otel_spans.cpp")  # a span has its time of day
      violation("the wall clock is nobody's business here")
    endif()
  endforeach()
endforeach()

if(violations)
  message(FATAL_ERROR "${violations} violations of the layers")
elseif(NOT files)
  message(FATAL_ERROR "${ROOT}: nothing to check")
endif()
