// SPDX-License-Identifier: BSL-1.0
#include <holdfast/owner.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "api/owner_executor.hpp"
#include "support/catch.hpp"
#include "support/run_coro.hpp"

using holdfast::owner;
namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;

namespace {

asio::awaitable<std::optional<owner>> mine() { co_return owner::of(co_await asio::this_coro::executor); }

asio::awaitable<std::optional<owner>> mine_after_a_timer() {
  asio::steady_timer soon(co_await asio::this_coro::executor, std::chrono::nanoseconds(0));
  co_await soon.async_wait(asio::use_awaitable);
  co_return co_await mine();
}

asio::awaitable<std::optional<owner>> mine_in_a_child() {
  co_return co_await asio::co_spawn(co_await asio::this_coro::executor, mine(), asio::use_awaitable);
}

asio::awaitable<std::optional<owner>> mine_on_a_strand_of_it() {
  co_return co_await asio::co_spawn(asio::make_strand(co_await asio::this_coro::executor), mine(), asio::use_awaitable);
}

asio::awaitable<std::optional<owner>> mine_in_a_branch() {
  auto [left, right] = co_await (mine() && mine_after_a_timer());
  CHECK(left == right);
  co_return left;
}

struct context {
  asio::io_context io;
  asio::any_io_executor plain = io.get_executor();
  owner alice, bob;
};

}  // namespace

TEST_CASE("every new owner is another and a copy is the same") {
  const owner a, b;
  CHECK(a != b);
  const auto copy = a;
  CHECK(copy == a);
  CHECK((a < b) != (b < a));
  static_assert(sizeof(owner) == 8);
  static_assert(std::is_nothrow_default_constructible_v<owner> && std::is_trivially_copyable_v<owner>);
}

TEST_CASE("owners are unique across threads") {
  constexpr int each = 1000;
  std::vector<owner> made[4];
  std::vector<std::thread> threads;
  for (auto& mine : made)
    threads.emplace_back([&mine] {
      for (int i = 0; i < each; ++i) mine.emplace_back();
    });
  for (auto& t : threads) t.join();
  std::set<owner> all;
  for (const auto& mine : made) all.insert(mine.begin(), mine.end());
  CHECK(all.size() == 4 * each);
}

TEST_CASE_METHOD(context, "an executor carries the owner that was bound to it") {
  CHECK(owner::of(alice.bind(plain)) == alice);
  CHECK(owner::of(plain) == std::nullopt);
  CHECK(owner::of(asio::any_io_executor()) == std::nullopt);
}

TEST_CASE_METHOD(context, "the owner bound last counts") { CHECK(owner::of(bob.bind(alice.bind(plain))) == bob); }

TEST_CASE_METHOD(context, "strands around a bound executor carry its owner") {
  const asio::any_io_executor once = asio::make_strand(alice.bind(plain));
  CHECK(owner::of(once) == alice);
  const asio::any_io_executor twice = asio::make_strand(once);
  CHECK(owner::of(twice) == alice);
  CHECK(owner::of(bob.bind(once)) == bob);
  CHECK(owner::of(asio::any_io_executor(asio::make_strand(plain))) == std::nullopt);
}

TEST_CASE_METHOD(context, "a bound executor compares by what it wraps and by its owner") {
  CHECK(alice.bind(plain) == alice.bind(plain));
  CHECK(alice.bind(plain) != bob.bind(plain));
  CHECK(alice.bind(plain) != plain);
  asio::io_context other;
  CHECK(alice.bind(plain) != alice.bind(other.get_executor()));
}

TEST_CASE_METHOD(context, "a bound executor is as good as the one inside") {
  const auto bound = alice.bind(plain);
  CHECK(&asio::query(bound, asio::execution::context) == &io);
  const auto never = asio::require(bound, asio::execution::blocking.never);
  CHECK(owner::of(never) == alice);
  const auto fork = asio::prefer(bound, asio::execution::relationship.fork);
  CHECK(owner::of(fork) == alice);
  int ran = 0;
  asio::post(bound, [&] { ++ran; });
  asio::dispatch(bound, [&] { ++ran; });
  CHECK(ran == 0);
  io.run();
  CHECK(ran == 2);
}

TEST_CASE_METHOD(context, "a bound executor keeps the context at work while it is tracked") {
  auto tracked = asio::prefer(alice.bind(plain), asio::execution::outstanding_work.tracked);
  CHECK(io.poll() == 0);
  CHECK_FALSE(io.stopped());
  tracked = asio::any_io_executor();
  io.poll();
  CHECK(io.stopped());
}

TEST_CASE_METHOD(context, "a coroutine keeps its owner through waits and children and branches and strands") {
  const auto bound = alice.bind(plain);
  for (auto* ask : {mine, mine_after_a_timer, mine_in_a_child, mine_on_a_strand_of_it, mine_in_a_branch})
    CHECK(holdfast::test::run(io, bound, ask()) == alice);
  CHECK(holdfast::test::run(io, mine()) == std::nullopt);
}
