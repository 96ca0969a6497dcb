// SPDX-License-Identifier: BSL-1.0
#include "base/direct_executor.hpp"

#include <memory>
#include <stdexcept>
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

/// Steps that go home from the strand.
struct home_rig {
  asio::io_context io;
  const asio::any_io_executor home = io.get_executor();
  const detail::direct_strand strand{home};
  std::string order;

  void note_at_home(char step) {
    detail::post_to(home, [this, step] {
      CHECK_FALSE(strand.any().running_in_this_thread());
      order += step;
    });
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

TEST_CASE(
    "the first step home runs in the handler that has left the strand, each further one in a handler of its own") {
  home_rig r;
  asio::post(r.home, [&] {
    asio::post(r.home, [&] { r.order += 'x'; });
    r.strand.enter_by_handler([&] {
      r.note_at_home('1');
      r.note_at_home('2');
      CHECK(r.order.empty());
    });
    CHECK(r.order == "1");
    r.note_at_home('3');
    CHECK(r.order == "1");
  });
  r.io.run();
  CHECK(r.order == "1x23");
}

TEST_CASE("a step to another context or to a wrapped executor is posted there") {
  home_rig r, other;
  asio::post(r.home, [&] {
    r.strand.enter_by_handler([&] {
      other.note_at_home('1');
      detail::post_to(r.strand.any(), [&] { r.order += '2'; });
    });
    CHECK(r.order.empty());
  });
  r.io.run();
  CHECK(other.order.empty());
  other.io.run();
  CHECK(other.order == "1");
  CHECK(r.order == "2");
}

TEST_CASE("a step home runs also when a function on the strand throws") {
  home_rig r;
  asio::post(r.home, [&] {
    r.strand.enter_by_handler([&] {
      r.note_at_home('1');
      throw std::runtime_error("no memory, say");
    });
  });
  CHECK_THROWS_AS(r.io.run(), std::runtime_error);
  CHECK(r.order == "1");
}
