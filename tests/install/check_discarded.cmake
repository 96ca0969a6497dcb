# SPDX-License-Identifier: BSL-1.0
# What a compiler says of what is thrown away. All warn of an awaitable that is not awaited, and of a blocking try whose
# answer nobody reads; of `co_await m.lock();`, which locks nothing, clang does. Correct code has no warning.
# COMPILER, INCLUDES, SCRATCH: see CMakeLists.txt.
cmake_minimum_required(VERSION 3.25)

if(NOT COMPILER)
  message("skipped: there is no such compiler")
  return()
endif()

list(TRANSFORM INCLUDES PREPEND -I)

function(warnings_of text into)
  set(source ${SCRATCH}/thrown_away.cpp)
  file(WRITE ${source} "#include <holdfast/blocking.hpp>\n#include <holdfast/holdfast.hpp>\n${text}")
  execute_process(COMMAND ${COMPILER} -std=c++20 -Wall -Wextra -fsyntax-only ${INCLUDES} ${source}
    ERROR_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
  set(${into} "${said}" PARENT_SCOPE)
endfunction()

function(expect_warnings said)
  foreach(line IN LISTS ARGN)
    if(NOT said MATCHES "thrown_away.cpp:${line}:[0-9]+: warning:")
      message(FATAL_ERROR "no warning in line ${line}\n${said}")
    endif()
  endforeach()
endfunction()

warnings_of("holdfast::asio::awaitable<void> work(holdfast::client& redis, holdfast::mutex m) {
  m.lock();
  auto held = co_await m.lock();
  held.unlock();
  held.held();
  holdfast::owner{}.bind(redis.get_executor());
  co_await m.lock();
}
" said)
set(expected 4 6 7 8)
execute_process(COMMAND ${COMPILER} --version OUTPUT_VARIABLE version COMMAND_ERROR_IS_FATAL ANY)
if(version MATCHES clang)
  list(APPEND expected 9)
endif()
expect_warnings("${said}" ${expected})

warnings_of("void work(holdfast::blocking::mutex& m) {
  m.try_lock();
  m.try_lock_for(std::chrono::seconds(1));
  m.try_lock_until(std::chrono::steady_clock::now());
  m.held();
}
" said)
expect_warnings("${said}" 4 5 6 7)

warnings_of("holdfast::asio::awaitable<void> work(holdfast::client& redis, holdfast::mutex m) {
  auto held = co_await m.lock();
  co_await held.unlock();
  if (auto tried = co_await m.try_lock()) co_await tried->unlock();
  auto body = [](holdfast::lease& l) -> holdfast::asio::awaitable<bool> { co_return l.held(); };
  co_await holdfast::with_lock(m, body);
  auto outcome = co_await holdfast::as_result(m.lock());
  if (outcome) outcome->feed();
  held = co_await m.lock();
  static_cast<void>(co_await m.lock());
  co_await redis.shutdown(std::chrono::seconds(1));
}
void work(holdfast::blocking::mutex& m) {
  if (m.try_lock()) m.unlock();
  holdfast::blocking::with_lock(m, [](std::stop_token) {});
  holdfast::blocking::try_with_lock_for(m, std::chrono::seconds(1), [](std::stop_token) {});
}
" said)
if(said)
  message(FATAL_ERROR "${said}")
endif()
