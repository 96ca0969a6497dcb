// SPDX-License-Identifier: BSL-1.0
#include "base/direct_executor.hpp"

#include <memory>
#include <string>

#include "support/catch.hpp"

using namespace holdfast;
namespace asio = boost::asio;

namespace {

/// An io_context's own executor, or another that runs on it.
struct executors {
  asio::io_context io;
  asio::any_io_executor of(bool direct) {
    return direct ? asio::any_io_executor(io.get_executor()) : asio::any_io_executor(asio::make_strand(io));
  }
};

}  // namespace

TEST_CASE("what is posted runs when its executor does, whatever that is") {
  executors e;
  const bool direct = GENERATE(true, false);
  std::string ran;
  auto only_moved = std::make_unique<char>('a');
  detail::post_to(e.of(direct), [&ran, c = std::move(only_moved)] { ran += *c; });
  CHECK(ran.empty());
  e.io.run();
  CHECK(ran == "a");
}

TEST_CASE("a strand that is entered directly is the same strand") {
  executors e;
  const detail::direct_strand s(e.of(GENERATE(true, false)));
  std::string ran;
  CHECK_FALSE(s.any().running_in_this_thread());
  asio::post(s.any(), [&] {
    s.dispatch([&] { ran += 'b'; });  // at once: the strand is ours
    ran += 'c';
  });
  s.dispatch([&] {
    CHECK(s.any().running_in_this_thread());
    ran += 'd';
  });
  CHECK(ran.empty());  // nobody runs the context yet
  e.io.run();
  CHECK(ran == "bcd");
}
