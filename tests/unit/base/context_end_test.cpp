// SPDX-License-Identifier: BSL-1.0
#include "base/context_end.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "support/catch.hpp"

using namespace holdfast;
namespace asio = boost::asio;
using detail::context_life;

namespace {

struct guest final : context_life::guest {
  guest(std::string& log, char n) : said(log), name(n) {}
  void context_ended() override { said += name; }
  std::string& said;
  const char name;
};

/// A context, and what is left of it.
struct rig {
  std::optional<asio::io_context> io{std::in_place};
  std::shared_ptr<context_life> life = context_life::of(io->get_executor());
  std::string ended;

  context_life::guest& add(char name) {
    const context_life::visit here(*life);
    REQUIRE(here);
    const auto who = std::make_shared<guest>(ended, name);
    life->add(who);
    return *who;
  }
};

}  // namespace

TEST_CASE("a context has one life, which ends with it and is not another's") {
  rig r;
  asio::io_context other;
  CHECK(context_life::of(r.io->get_executor()) == r.life);
  CHECK(context_life::of(other.get_executor()) != r.life);
  CHECK(r.life->is_of(*r.io));
  CHECK_FALSE(r.life->is_of(other));
  CHECK(context_life::visit(*r.life));
  r.io.reset();
  CHECK_FALSE(context_life::visit(*r.life));
}

TEST_CASE("a context ends its guests in the order in which they came, except those that have left") {
  rig r;
  r.add('a');
  auto& left = r.add('b');
  r.add('c');
  CHECK(r.life->remove(left).use_count() == 1);
  CHECK(r.ended.empty());
  r.io.reset();
  CHECK(r.ended == "ac");
}

TEST_CASE("a guest may let go of other guests when it ends") {
  rig r;
  struct last_of_another final : context_life::guest {
    void context_ended() override { other.reset(); }
    std::shared_ptr<context_life::guest> other;
  };
  const auto first = std::make_shared<last_of_another>();
  first->other = std::make_shared<guest>(r.ended, 'b');
  r.life->add(first);
  r.life->add(first->other);
  r.io.reset();
  CHECK(r.ended == "b");
  CHECK(first.use_count() == 1);
}

TEST_CASE("a context does not end while it is visited, and is not visited when it has begun to end") {
  rig r;
  r.add('a');
  std::optional<context_life::visit> outer(std::in_place, *r.life);
  std::thread ending([&] { r.io.reset(); });
  while (context_life::visit(*r.life)) std::this_thread::yield();
  CHECK(r.ended.empty());
  outer.reset();
  ending.join();
  CHECK(r.ended == "a");
}

TEST_CASE("the strands of a context work while it is visited, also those that were made later") {
  rig r;
  std::optional later(asio::strand<asio::any_io_executor>(r.io->get_executor()));
  std::optional<context_life::visit> here(std::in_place, *r.life);
  std::thread ending([&] { r.io.reset(); });
  while (context_life::visit(*r.life)) std::this_thread::yield();
  const auto kept = std::make_shared<int>();
  asio::dispatch(*later, [kept] {});
  CHECK(kept.use_count() == 2);  // it waits; a strand that has ended destroys it at once
  later.reset();
  here.reset();
  ending.join();
  CHECK(kept.use_count() == 1);
}
